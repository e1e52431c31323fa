"""The rows of a JavaScript dataset, and the collections they make.

Three counts of one module are three different things:

* **sites**: reference expressions. "How often does it refer to X" means sites.
* **ranges**: distinct source ranges of the statements that hold them.
* **bindings**: names that they bind (`import a, { b } from "x"` binds two).

They count references *to* the module. A row of an **export** counts those that ask for its name: reference expressions,
distinct statements, and local names that are bound to this one export (`import { a, a as b, c } from "x"` is one site
of `a` and binds two names to it, is one site of `c` and binds one, and one site of `x` that binds three). Asked for is

* by `import { name } from`, `export { name } from` and `import x from` (the name `default`), types included;
* by `require("x").name`, `const { name } = require("x")` and the same of `await import("x")`,

where the specifier resolves to the file. These counts are lower bounds of use: what is read from a variable that holds
the whole module (`const x = require("x"); x.name`, `import * as x`) is not followed, and what is asked of a file that
passes it on by `export *` counts for no export, because that file has no row of this name.

Lines are counted from 1, columns and byte offsets from 0 in UTF-8 bytes of the file as it is; ends are exclusive.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from typing_extensions import TypedDict

from affidavit.analyzers.javascript._facts import ExportForm, ReferenceKind
from affidavit.analyzers.javascript.containers.content import FileKind, IntegrityState
from affidavit.analyzers.javascript.resolution.resolver import Rule, Status
from affidavit.facts.collection import CollectionSpec

__all__ = [
    "COLLECTIONS",
    "MAX_LISTED",
    "BasisDict",
    "ExportDict",
    "FileKind",
    "FileStatus",
    "FilesRow",
    "IntegrityState",
    "ModuleExport",
    "ModuleKind",
    "ModuleStatus",
    "ModuleStrategy",
    "ModulesItem",
    "ModulesRow",
    "ProblemDict",
    "RangeDict",
    "ReferencesItem",
    "ReferencesRow",
    "SiteDict",
    "SourceModule",
    "UnresolvedModule",
]

MAX_LISTED: Final = 10_000
"""References that the full item of a module lists."""

ModuleKind: TypeAlias = Literal["javascript-module", "json-module", "native-addon", "asset", "html"]
ModuleStatus: TypeAlias = Literal["present", "external", "builtin", "missing", "rejected"]
ModuleStrategy: TypeAlias = Literal["source-module", "module-export", "unresolved-module"]
FileStatus: TypeAlias = Literal["parsed", "partial", "limited", "listed"]


class RangeDict(TypedDict):
    """A half-open range of a file: lines from 1, columns and offsets in UTF-8 bytes from 0."""

    line: int
    column: int
    start: int
    end_line: int
    end_column: int
    end: int


class ProblemDict(TypedDict):
    """A range of a source file that the grammar could not read: what it refers to is unknown."""

    reason: Literal["unexpected", "missing", "truncated"]
    line: int
    column: int
    start: int
    end: int


class FilesRow(TypedDict):
    """One entry of the artifact.

    `status`: `parsed` source; `partial`, with ranges that the grammar could not read; `limited`, not read at all (a
    limitation says why); `listed`, of a kind that is not parsed. `kind` is `directory` for empty directories only.
    `link` is where a link leads inside the artifact, or None. `integrity` compares with the digest that an archive
    declares of the file. `sha256` is lower-case hex, None where the bytes could not be read.
    """

    path: str
    kind: FileKind
    language: Literal["javascript", "jsx", "typescript", "tsx"] | None
    status: FileStatus
    size: int
    sha256: str | None
    executable: bool
    unpacked: bool
    link: str | None
    integrity: IntegrityState


class FilesItem(FilesRow):
    """A file with the ranges that could not be read."""

    problems: list[ProblemDict]


class SourceModule(TypedDict):
    """A file of the artifact; `key` is its path."""

    strategy: Literal["source-module"]
    key: str


class ModuleExport(TypedDict):
    """A name that a file exports; `key` is the file's path, a colon and the name.

    The name is `*` for all names of another module (they are not listed one by one), and `export=` for a value that
    takes the place of the whole module (`export = x`, `module.exports = x`). Computed names are not listed.
    """

    strategy: Literal["module-export"]
    key: str


class UnresolvedModule(TypedDict):
    """What a file refers to and the artifact does not hold.

    `key` is `external:name` (a package's name, or an address), `builtin:name` (without `node:`), `missing:specifier` or
    `rejected:specifier` (a path that leaves the artifact or may not be used).
    """

    strategy: Literal["unresolved-module"]
    key: str


class BasisDict(TypedDict):
    """What a row rests on.

    `state` is how completely the file behind it was read. `confidence`: `observed` bytes and declarations, `derived` by
    scope analysis or resolution, `inferred` by rules beyond those of Node.js.
    """

    authority: Literal["artifact-bytes", "static-analysis"]
    state: Literal["complete", "partial", "unknown"]
    confidence: Literal["observed", "derived", "inferred"]


class ModulesRow(TypedDict):
    """One module: a file of the artifact, a name that a file exports, or what a file refers to and the artifact lacks.

    `strategy` is that of `identity`, to select by. `path` is the file itself, the file that exports, or the file that
    refers to an unresolved module: one path has many identities. `export` is the exported name, None for all but
    exports; one above 2,000 characters is cut and ends in its digest. `kind` and `status` of an export are those of its
    file. `sites`, `ranges` and `bindings` count references *to* the module: of its referring file for an unresolved
    one, of all files for a file, of all files that ask for this name for an export.
    """

    node_id: str
    path: str | None
    kind: ModuleKind
    status: ModuleStatus
    strategy: ModuleStrategy
    export: str | None
    identity: SourceModule | ModuleExport | UnresolvedModule
    sites: int
    ranges: int
    bindings: int
    basis: list[BasisDict]


class ExportDict(TypedDict):
    """One place where a file exports a name.

    `form`: a `declaration`, `default`, an entry of a `list`, a name `from` another module, `star` for all names of
    another module, `equals` for `export = x`; in CommonJS an assigned `property`, a key of an `object` literal, a call
    that will `define` it, `copy` for all names of another module, `value` for another value of `module.exports`.
    `local` is the variable that gives the value; with `from` the name in the other module. `specifier` is that
    module's. `type_only`: erased by TypeScript. `source` is the text of the range, cut at 240 bytes.
    """

    form: ExportForm
    local: str | None
    specifier: str | None
    type_only: bool
    range: RangeDict
    source: str


class SiteDict(TypedDict):
    """One reference to a module: the file, the expression's range, its statement's range and what it binds.

    At an export, `bindings` are only those that are bound to it.
    """

    reference_id: str
    path: str
    kind: ReferenceKind
    specifier: str | None
    range: RangeDict
    statement: RangeDict
    bindings: list[str]
    source: str


class ModulesItem(ModulesRow):
    """A module with the references to it, and for an export with every place that makes it.

    `references` lists the first 10,000; `sites` counts all, and the rows of `references` by `target` are all of them.
    """

    references: list[SiteDict]
    exports: list[ExportDict]


class ReferencesRow(TypedDict):
    """One reference expression (a site).

    `specifier` is None when it is computed; one above 2,000 characters is cut and ends in its digest. `resolution`:
    `resolved` to a file of the artifact (`target`), `external`, `builtin`, `missing`, `rejected`, `computed` (no
    literal specifier), or `unknown` (relative to what the source does not say). The six numbers are the range of the
    whole call or statement.
    """

    reference_id: str
    path: str
    kind: ReferenceKind
    specifier: str | None
    resolution: Status
    target: str | None
    line: int
    column: int
    start: int
    end_line: int
    end_column: int
    end: int


class ReferencesItem(ReferencesRow):
    """A reference with the module it means, how it was resolved, its statement, what it binds and its source text.

    `module` is the `node_id` in `modules`, None when no module is known. `rule` is what found the target. `names` are
    the exported names that it asks for. `source` is cut at 240 bytes and then ends in an ellipsis.
    """

    module: str | None
    key: str | None
    rule: Rule | None
    statement: RangeDict
    bindings: list[str]
    names: list[str]
    source: str
    basis: BasisDict


COLLECTIONS: Final = (
    CollectionSpec(
        name="files",
        contract="javascript.files",
        version=1,
        doc="every file, link and empty directory of the artifact: size, digest, language, how far it was read",
        row=FilesRow,
        item=FilesItem,
        key="path",
        where=("path", "kind", "language", "status", "executable", "unpacked", "integrity"),
    ),
    CollectionSpec(
        name="modules",
        contract="javascript.modules",
        version=1,
        doc="modules: files, names they export, and external, builtin, missing or rejected modules by referring file",
        row=ModulesRow,
        item=ModulesItem,
        key="node_id",
        where=("path", "kind", "status", "strategy", "export", "node_id"),
    ),
    CollectionSpec(
        name="references",
        contract="javascript.references",
        version=1,
        doc="every import, export from, import(), require, require.resolve, createRequire, worker and asset URL",
        row=ReferencesRow,
        item=ReferencesItem,
        key="reference_id",
        where=("path", "kind", "specifier", "resolution", "target"),
    ),
)
