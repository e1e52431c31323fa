"""The names that a source file exports.

`exports_of` reads ECMAScript exports where the file has any import or export declaration, else CommonJS ones: a file is
one kind of module, and `exports` means nothing in the other.

**ECMAScript and TypeScript.** Every `export` of the file itself, not those inside of `namespace` or `declare module`
blocks. `export * from` is recorded under the name `*` and not expanded: which names it passes on is up to the other
file. `export = x` has the name `export=`, as TypeScript calls it. No names are made by `export {}`, by `export as
namespace X` (a global), and in declaration files by declarations that do not say `export`.

**CommonJS.** Assignments to properties of the exports object, the keys of an object literal that replaces it,
`Object.defineProperty`, `Object.defineProperties` and `Object.assign` on it, and what compilers write for `export *`
(`__exportStar(require("m"), exports)`, `__export(require("m"))`, a loop that sets every key of a required module; also
`module.exports = require("m")` and `...require("m")`): the name `*`. Any other value of `module.exports` has the name
`export=`. `__esModule` is a name like any other.

The exports object is the free `exports`, `exports` of the free `module`, a variable that is initialised with it,
declared once and never assigned, the parameter that it is given for in a function called on the spot, and the variable
of which `module.exports` is a copy made by `__toCommonJS`. Where a file gives `exports` another value, the name means
nothing any more and only `module.exports` counts. Where in the file an export stands, whether it is ever reached and
whether `module.exports` is replaced later plays no part. `Object` and the compilers' helpers are known by their
spelling.

A **computed name** (`exports[key] = x`, `{ [key]: x }`, `...rest`) is no name and not listed. Not followed: `this`
as the exports object, a choice of values (`typeof exports === "object" ? exports : {}`), and values handed to functions
that are called elsewhere, so a universal module that calls its factory exports nothing here.
"""

from __future__ import annotations

from collections.abc import Callable

from affidavit.analyzers.javascript._facts import Export
from affidavit.analyzers.javascript._masks import Masked
from affidavit.analyzers.javascript.exported._reader import Reader
from affidavit.analyzers.javascript.exported.commonjs import CommonJs
from affidavit.analyzers.javascript.exported.ecmascript import EcmaScript
from affidavit.analyzers.javascript.scope import Names
from affidavit.analyzers.javascript.syntax import Lines

__all__ = ["exports_of"]


def exports_of(data: bytes, names: Names, masked: Masked, lines: Callable[[], Lines]) -> tuple[Export, ...]:
    """Every export of a file in source order; one name may be exported at several places.

    Args:
        data: the file.
        names: of the file.
        masked: what was rewritten for the grammar.
        lines: its line starts, asked for when there is an export.
    """
    reader = Reader(data, masked, lines)
    modern = EcmaScript(reader, names)
    if modern.read() or not (b"exports" in data or b"\\u" in data):
        return reader.found()
    CommonJs(reader, names).read()
    return reader.found()
