"""What is known of one source file: the types that `references.extract` returns.

All of them are frozen, hold only builtin values and pickle small, because files are analysed in worker processes.

**Units.** Offsets and columns are UTF-8 bytes of the file as it is (a byte order mark counts three). Lines are counted
as ECMAScript counts them: LF, CR, CRLF, U+2028 and U+2029 each end one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Base",
    "Encoding",
    "ErrorRange",
    "Export",
    "ExportForm",
    "FileFacts",
    "Position",
    "Reference",
    "ReferenceKind",
    "Span",
]

ReferenceKind: TypeAlias = Literal[
    "import",
    "side-effect-import",
    "export-from",
    "import-type",
    "dynamic-import",
    "require",
    "require-resolve",
    "create-require",
    "worker",
    "asset-url",
]

Encoding: TypeAlias = Literal["utf-8", "utf-8-bom", "utf-16", "invalid"]

ExportForm: TypeAlias = Literal[
    "declaration",
    "default",
    "list",
    "from",
    "star",
    "equals",
    "property",
    "object",
    "define",
    "copy",
    "value",
]

Base: TypeAlias = Literal["file", "other"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file: `offset` in bytes from its start, `line` from 1, `column` in bytes from 0."""

    offset: int
    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of a file."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRange:
    """A range that the grammar could not read; what lies in it is unknown, the rest of the file is used.

    Attributes:
        span: the range. Empty where a token is missing.
        reason: `unexpected` text that fits nowhere, a `missing` token, or `truncated`: the last range of a file with
            very many errors, which then covers everything from its start to the last error.
    """

    span: Span
    reason: Literal["unexpected", "missing", "truncated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One reference expression: a **site**.

    Attributes:
        kind: what kind of reference it is; see `references` for what counts as which.
        specifier: the exact string value, with every escape decoded; None when it is computed, left out, or (for
            `create-require`) no module is named. May hold lone surrogates where the source escapes them.
        base: what a relative specifier starts from: this `file`, or something `other` (the document or the working
            folder of a plain `new Worker("x")`, the place that a `createRequire` was made for).
        span: the whole call, `new` or `import(...)` expression; for declarations the whole statement.
        statement: the innermost statement that holds it. A **range** is a distinct `statement` span of a file, so
            `const a = require("a"), b = require("b")` has two sites and one range. Heads of `for` and declarations
            behind `export` are no statements of their own; a `case` belongs to its `switch`, a class member to its
            class.
        bindings: the local names that it **binds**, in source order: those of an import declaration, or those of the
            variable declarator whose initial value is the reference itself, awaited or not, or a member of it
            (`const { a, b: c } = require("x").y` binds `a` and `c`). Assignments, exports and results of a further
            call bind nothing.
        names: the exported names that it **asks for**, each with those of its bindings that are bound to it; one entry
            per name, in order of their first place. `import x from` asks for `default`; `import * as`, `export *`,
            TypeScript's `import x = require()`, types `import("m").T` and a module taken as a whole ask for none. A
            call asks for the member that is read from it (`require("x").a`, `(await import("x")).a`) or for the keys
            of the pattern that it initialises; what is later read from a variable is not followed.
    """

    kind: ReferenceKind
    specifier: str | None
    span: Span
    statement: Span
    bindings: tuple[str, ...] = ()
    base: Base = "file"
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One place where a file exports a name; see `exported.names` for what counts.

    Attributes:
        name: the exported name; `*` for all names of another module, `export=` for a value in place of the module.
        form: how. ECMAScript and TypeScript: a `declaration` behind `export`; `default`; a `list` `export { a as b }`;
            `from` another module by name; `star`, all of another module; `equals`, `export = x`. CommonJS: a `property`
            that is assigned; a key of an `object` literal; a call that will `define` it; `copy`, all of another
            module; `value`, another value in place of the module.
        span: the whole statement of `export * from`, `export * as`, `export default`, `export =` and of declarations
            but for variables; else the declarator, list item, assignment, key and value, call or loop.
        local: the variable of this file that gives the value, for `from` the name in the other module (`*` for all of
            it as one object); None where an expression gives it.
        specifier: the other module's, where one is named at the export itself.
        type_only: whether TypeScript erases it.
    """

    name: str
    form: ExportForm
    span: Span
    local: str | None = None
    specifier: str | None = None
    type_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Everything that one file says.

    Attributes:
        language: the grammar that read it.
        encoding: `invalid` bytes are read as Node reads them (each bad sequence as U+FFFD), `utf-16` is not read.
        invalid_at: offset of the first byte that is not UTF-8, else None.
        size: bytes of the file.
        references: every site in source order (by start, outermost first).
        exports: every place that exports a name, in source order.
        errors: ranges that the grammar could not read, in source order, not overlapping.
    """

    language: str
    encoding: Encoding
    size: int
    references: tuple[Reference, ...] = ()
    exports: tuple[Export, ...] = ()
    errors: tuple[ErrorRange, ...] = ()
    invalid_at: int | None = None
