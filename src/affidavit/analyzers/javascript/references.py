"""Every place where a source file names another one, and (`exported.names`) what it offers to others.

`extract(data, language)` is pure: bytes in, `FileFacts` out. What counts as a site, by kind:

| kind                 | what                                                                                  |
|----------------------|---------------------------------------------------------------------------------------|
| `import`             | `import x, { y } from "m"`, also with an empty `{}`                                   |
| `side-effect-import` | `import "m"`                                                                          |
| `export-from`        | `export ... from "m"`                                                                 |
| `import-type`        | what TypeScript erases: `import type`, `export type ... from`, the type `import("m")` |
| `dynamic-import`     | `import(x)`                                                                           |
| `require`            | a call of `require` or `module.require`; TypeScript's `import x = require("m")`       |
| `require-resolve`    | a call of `require.resolve` or `import.meta.resolve`: found, and not loaded           |
| `create-require`     | a call of `createRequire` of `node:module`                                            |
| `worker`             | `new Worker(x)`, `new SharedWorker(x)`, also over `new URL(x, import.meta.url)`       |
| `asset-url`          | `new URL(x, import.meta.url)`, unless it is the first argument of such a worker       |

**Names mean what they mean in their scope.** `require`, `module`, `Worker`, `SharedWorker` and `URL` count as long as
no scope of the file declares the name around the place and nothing in the file assigns to the global. `require` is
also each variable that is initialised by `createRequire(...)` and never assigned; `createRequire` is a member of
`node:module`, however that module was imported; `Worker` and `URL` may come from `node:worker_threads` and
`node:url`. Whether a file is a CommonJS or an ECMAScript module plays no part: bundlers accept `require` in both.

**As Node does.** `(require)("m")`, `(0, require)("m")`, `require?.("m")` load a module: they are sites. `new
require("m")`, tagged templates, `require.resolve.paths()`, `typeof require` and a mere mention are none. Values that
take a detour (`const r = require; r("m")`, `require.call(null, "m")`, `factory(require)`, `window.require`) are not
followed.

A **specifier** is the exact value of a string literal or of a template without substitutions; everything else is
computed and None, and still a site.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from tree_sitter import Node, Tree

from affidavit.analyzers.javascript._comments import without_html_comments
from affidavit.analyzers.javascript._facts import (
    Base,
    Encoding,
    ErrorRange,
    Export,
    ExportForm,
    FileFacts,
    Position,
    Reference,
    ReferenceKind,
    Span,
)
from affidavit.analyzers.javascript._flow import Flow, Site, Value, is_import_meta
from affidavit.analyzers.javascript._literals import argument, literal, operand, source_of, spelling
from affidavit.analyzers.javascript._masks import Mask, Masked, is_type_only, is_type_position, mask
from affidavit.analyzers.javascript._statements import (
    Asked,
    Statements,
    asked_by,
    bound_names,
    declared_by,
    export_names,
    import_names,
    imported_names,
)
from affidavit.analyzers.javascript._thinning import NotThinnedError, thin
from affidavit.analyzers.javascript.exported.names import exports_of
from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.scope import Names
from affidavit.analyzers.javascript.syntax import Frame, Lines, error_ranges, parse

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
    "extract",
]

_BOM: Final = b"\xef\xbb\xbf"
_ROUNDS: Final = 8
"""How often a file is thinned at most: once for the names that are always looked for, again where others turned up."""
_UTF_16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")


def extract(data: bytes, language: LanguageName, *, thinned: bool = False) -> FileFacts:
    """Read one source file.

    Bad input never raises: what the grammar cannot read is listed in `errors`, what is not UTF-8 in `encoding`.

    Args:
        data: the file's bytes.
        language: `javascript`, `jsx`, `typescript` or `tsx`; see `languages.language_of`.
        thinned: leave out statements that do not matter before the whole is parsed, for a file whose syntax tree would
            not fit into memory. The facts are the same.

    Raises:
        NotThinnedError: the file cannot be read so.
    """
    encoding, invalid_at = _encoding(data)
    if encoding == "utf-16":
        return FileFacts(language=language, encoding=encoding, invalid_at=invalid_at, size=len(data))
    typescript = language in {"typescript", "tsx"}
    masked = mask(data, typescript=typescript)
    again = partial(parse, language=language)
    read = _read_thinned if thinned else _read_whole
    extraction = read(data, masked, again, typescript)
    return FileFacts(
        language=language,
        encoding=encoding,
        invalid_at=invalid_at,
        size=len(data),
        references=extraction.references,
        exports=extraction.exports,
        errors=extraction.errors,
    )


def _read_whole(data: bytes, masked: Masked, again: Callable[[bytes], Tree], typescript: bool) -> _Extraction:
    return _read(data, masked, masked.data, again(masked.data), again, typescript)


def _read_thinned(
    data: bytes, masked: Masked, again: Callable[[bytes], Tree], typescript: bool
) -> _Extraction:
    keep: list[bytes] = []
    for _ in range(_ROUNDS):
        left = thin(masked.data, data, again, keep=keep)
        extraction = _read(data, masked, left.data, left.tree, again, typescript)
        lacking = left.lacks(extraction.asked, masked.data)
        if not lacking:
            return extraction
        keep += lacking
    raise NotThinnedError


def _read(
    data: bytes,
    masked: Masked,
    shown: bytes,
    tree: Tree,
    again: Callable[[bytes], Tree],
    typescript: bool,
) -> _Extraction:
    """Everything that a file says whose grammar was shown these bytes."""
    if not typescript:
        tree = without_html_comments(shown, tree, again)
    extraction = _Extraction(data, tree, masked)
    extraction.read()
    return extraction


def _encoding(data: bytes) -> tuple[Encoding, int | None]:
    if data.startswith(_UTF_16_BOMS):
        return "utf-16", 0
    if data.isascii():
        return "utf-8", None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return "invalid", error.start
    return ("utf-8-bom" if data.startswith(_BOM) else "utf-8"), None


class _Extraction:
    """What one file says, once it was read."""

    def __init__(self, data: bytes, tree: Tree, masked: Masked) -> None:
        self._data = data
        self._masked = masked
        self._names = Names(data, tree)
        self._flow = Flow(data, self._names)
        self._statements = Statements()
        self._tree = tree
        self._lines: Lines | None = None
        self._found: list[Reference] = []
        self._seen: set[int] = set()
        self.references: tuple[Reference, ...] = ()
        self.exports: tuple[Export, ...] = ()
        self.errors: tuple[ErrorRange, ...] = ()

    @property
    def asked(self) -> Collection[str]:
        """Every word that was looked for."""
        return self._names.asked

    def read(self) -> None:
        """Collect everything."""
        self.references = self._references()
        self.exports = exports_of(self._data, self._names, self._masked, self.lines)
        self.errors = error_ranges(self._tree, self.lines)

    def lines(self) -> Lines:
        """Line starts, counted when the first position is asked for."""
        if self._lines is None:
            self._lines = Lines(self._data)
        return self._lines

    def _references(self) -> tuple[Reference, ...]:
        for leaf in self._names.tokens("import"):
            self._import(leaf)
        for leaf in self._names.tokens("export"):
            if leaf.parent is not None and leaf.parent.type == "export_statement":
                self._export(leaf.parent)
        for hidden, leaf in self._names.at(self._masked.imports):
            self._masked_import(hidden, leaf)
        self._start_free_names()
        self._follow()
        return tuple(sorted(self._found, key=lambda found: (found.span.start.offset, -found.span.end.offset)))

    def _start_free_names(self) -> None:
        self._start_free("require", Value.REQUIRE)
        if any(_is_member_of_module(leaf, self._data) for leaf in self._names.tokens("require")):
            self._start_free("module", Value.COMMONJS_MODULE)
        if b"Worker" in self._data:
            self._start_free("Worker", Value.WORKER)
            self._start_free("SharedWorker", Value.WORKER)
        if b"URL" in self._data and b"meta" in self._data:
            self._start_free("URL", Value.URL)

    def _start_free(self, name: str, value: Value) -> None:
        free = self._names.use(name).free
        if not free.writes:
            for frame in free.reads:
                self._flow.start(frame, value)

    # declarations

    def _import(self, keyword: Frame) -> None:
        parent = keyword.parent
        if parent is None:
            return
        if parent.type == "import_statement":
            self._import_statement(parent)
        elif parent.type == "meta_property":
            self._flow.start(parent, Value.IMPORT_META)
        elif (
            parent.type == "import" and parent.parent is not None and parent.parent.type == "call_expression"
        ):
            self._import_call(parent.parent)

    def _import_statement(self, frame: Frame) -> None:
        clauses = {child.type: child for child in frame.node.named_children}
        equals = clauses.get("import_require_clause")
        clause = clauses.get("import_clause")
        owner = frame.node if equals is None else equals
        source = owner.child_by_field_name("source")
        if source is None:
            return
        specifier = literal(source, self._data)
        names = import_names(clause or equals)
        kind: ReferenceKind = "import"
        if is_type_only(frame.node):
            kind = "import-type"
        elif equals is not None:
            kind = "require"
        elif clause is None:
            kind = "side-effect-import"
        bindings = [spelling(local, self._data) for _, local in names]
        self._add(kind, specifier, frame, bindings=bindings, names=imported_names(clause, self._data))
        library = self._flow.library(specifier)
        if library is not None:
            for member, local in names:
                self._store(member, local, library)

    def _store(self, member: Node | None, local: Node, library: Value) -> None:
        name = spelling(local, self._data)
        if member is None:
            self._flow.store(name, local.start_byte, library)
            return
        imported = literal(member, self._data) if member.type == "string" else spelling(member, self._data)
        self._flow.store_member(name, local.start_byte, library, imported or "")

    def _export(self, frame: Frame) -> None:
        source = frame.node.child_by_field_name("source")
        if source is not None:
            is_type = frame.start in self._masked.types or is_type_only(frame.node)
            kind: ReferenceKind = "import-type" if is_type else "export-from"
            self._add(kind, literal(source, self._data), frame, names=export_names(frame.node, self._data))

    def _import_call(self, frame: Frame) -> None:
        self._dynamic_import(frame, literal(argument(frame.node, 0), self._data))

    def _masked_import(self, hidden: Mask, frame: Frame) -> None:
        if is_type_position(frame):
            self._add("import-type", hidden.specifier, frame)
        elif frame.type == "identifier":
            self._dynamic_import(frame, hidden.specifier)

    def _dynamic_import(self, frame: Frame, specifier: str | None) -> None:
        names = asked_by(frame, self._flow.awaits, self._data, promise=True)
        self._add("dynamic-import", specifier, frame, bindings=self._bindings(frame), names=names)
        self._flow.start_import(frame, specifier)

    # expressions

    def _follow(self) -> None:
        workers: list[Site] = []
        assets: dict[int, Site] = {}
        for site in self._flow.sites():
            if site.frame.id in self._seen:
                continue
            self._seen.add(site.frame.id)
            if site.value is Value.WORKER:
                workers.append(site)
            elif site.value is not Value.URL:
                self._call(site)
            elif is_import_meta(argument(site.frame.node, 1), self._data, b"url"):
                assets[site.frame.id] = site
        for site in workers:
            self._worker(site, assets)
        for site in assets.values():
            self._expression("asset-url", self._first(site.frame.node), site)

    def _call(self, site: Site) -> None:
        match site.value:
            case Value.CREATE_REQUIRE:
                self._expression("create-require", None, site)
            case Value.RESOLVE | Value.META_RESOLVE:
                self._expression("require-resolve", self._first(site.frame.node), site)
            case Value.RESOLVE_OTHER:
                self._expression("require-resolve", self._first(site.frame.node), site, base="other")
            case Value.REQUIRE_OTHER | Value.CREATED_OTHER:
                self._expression("require", self._first(site.frame.node), site, base="other")
            case _:
                self._expression("require", self._first(site.frame.node), site)

    def _worker(self, site: Site, assets: dict[int, Site]) -> None:
        first = operand(argument(site.frame.node, 0))
        if first is not None and assets.pop(first.id, None) is not None:
            self._expression("worker", self._first(first), site)
            return
        specifier = None if _has_eval_option(site.frame.node, self._data) else literal(first, self._data)
        self._expression("worker", specifier, site, base="other")

    def _first(self, call: Node) -> str | None:
        return literal(argument(call, 0), self._data)

    def _expression(
        self, kind: ReferenceKind, specifier: str | None, site: Site, *, base: Base = "file"
    ) -> None:
        frame = site.frame
        bindings = self._bindings(frame)
        names = asked_by(frame, self._flow.awaits, self._data) if kind == "require" else ()
        self._add(kind, specifier, frame, start=site.start, base=base, bindings=bindings, names=names)

    def _bindings(self, frame: Frame) -> list[str]:
        declarator = declared_by(frame, self._flow.awaits)
        return (
            [] if declarator is None else bound_names(declarator.node.child_by_field_name("name"), self._data)
        )

    def _add(
        self,
        kind: ReferenceKind,
        specifier: str | None,
        frame: Frame,
        *,
        start: int | None = None,
        bindings: Iterable[str] = (),
        base: Base = "file",
        names: Iterable[Asked] = (),
    ) -> None:
        masked = self._masked
        first, last = self._statements.of(frame)
        self._found.append(
            Reference(
                kind=kind,
                specifier=specifier,
                span=self.lines().span(
                    frame.start if start is None else start, masked.ends.get(frame.end, frame.end)
                ),
                statement=self.lines().span(masked.starts.get(first, first), masked.ends.get(last, last)),
                bindings=tuple(bindings),
                base=base,
                names=_together(names),
            )
        )


def _together(names: Iterable[Asked]) -> tuple[Asked, ...]:
    """One entry for each name."""
    bindings: dict[str, list[str]] = {}
    for name, bound in names:
        bindings.setdefault(name, []).extend(bound)
    return tuple((name, tuple(bound)) for name, bound in bindings.items())


def _is_member_of_module(leaf: Frame, data: bytes) -> bool:
    if leaf.type != "property_identifier" or leaf.parent is None:
        return False
    owner = operand(leaf.parent.node.child_by_field_name("object"))
    return owner is not None and owner.type == "identifier" and source_of(owner, data) == b"module"


def _has_eval_option(node: Node, data: bytes) -> bool:
    """Whether a worker of Node is given code instead of a place: `new Worker(code, { eval: true })`."""
    options = operand(argument(node, 1))
    if options is None or options.type != "object":
        return False
    keys = [pair.child_by_field_name("key") for pair in options.named_children if pair.type == "pair"]
    return any(key is not None and source_of(key, data).strip(b"\"'") == b"eval" for key in keys)
