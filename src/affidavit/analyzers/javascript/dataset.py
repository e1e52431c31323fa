"""From the reports of single files to the rows of the dataset: resolution, counting, identities."""

from __future__ import annotations

import hashlib
import marshal
from array import array
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from affidavit.analyzers.javascript.containers.content import FileKind, kind_of
from affidavit.analyzers.javascript.parsing.wire import unpack_exports
from affidavit.analyzers.javascript.resolution.resolver import PROVIDED, Resolution, Resolver
from affidavit.analyzers.javascript.resolution.specifier import parse_specifier, shorten
from affidavit.analyzers.javascript.rows import (
    MAX_LISTED,
    BasisDict,
    ExportDict,
    FilesItem,
    ModuleExport,
    ModuleKind,
    ModulesItem,
    ModulesRow,
    ModuleStatus,
    ModuleStrategy,
    ProblemDict,
    RangeDict,
    ReferencesItem,
    ReferencesRow,
    SiteDict,
    SourceModule,
    UnresolvedModule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from affidavit.analyzers.javascript.parsing.spool import Spool
    from affidavit.analyzers.javascript.parsing.wire import Exported, FileReport, Problem, Site
    from affidavit.analyzers.javascript.resolution.exports import Mode
    from affidavit.facts.factfile import FactFileWriter

__all__ = ["Dataset", "SourceState", "problems_of"]

_REQUIRING: Final = frozenset({"require", "require-resolve", "create-require"})
_URLS: Final = frozenset({"worker", "asset-url"})
_DECLARED: Final = frozenset({"import", "side-effect-import", "export-from", "import-type", "dynamic-import"})
_LONGEST_SPECIFIER: Final = 2000

SourceState = str
"""How completely a file was read: `complete`, `partial` or `unknown`."""


_Triple: TypeAlias = tuple[str, str, str]
_Spooled: TypeAlias = tuple[int, _Triple, list[tuple[str, list[str]]], SiteDict]
"""A reference in the spool: the place after the one before it to its file, its basis, the names it asks for, and how
the items of modules show it."""

_MOST_READ: Final = 10_000
"""References of the spool that are kept once they are read."""


@dataclass(slots=True)
class _Module:
    """A module or an export while its references are counted; of each, only its place in the spool is kept."""

    node_id: str
    path: str
    kind: ModuleKind
    status: ModuleStatus
    key: str
    export: str | None = None
    sites: int = 0
    places: array[int] = field(default_factory=lambda: array("Q"))
    ranges: int = 0
    bindings: int = 0
    basis: list[_Triple] = field(default_factory=list[_Triple])


class Dataset:
    """Collects one artifact's facts and writes them in a fixed order.

    References come by path. Of the modules, those that the artifact lacks come first, by referring file and key; the
    files follow by path, each with its exports by name, because only then is known how often they are referred to.

    Args:
        artifact: digest of the artifact; ids are hashed with it.
        resolver: of the artifact's tree.
        facts: where rows go.
        spool: where what is needed for later rows waits.
    """

    def __init__(self, artifact: str, resolver: Resolver, facts: FactFileWriter, spool: Spool) -> None:
        self._artifact = artifact
        self._resolver = resolver
        self._facts = facts
        self._spool = spool
        # Files may be hundreds of thousands, and references to them millions, which therefore wait in the spool. By
        # the number of a file: what it is, how far it was read, the places after its exports and its last reference.
        self._numbers: dict[str, int] = {}
        self._kinds: list[FileKind] = []
        self._states: list[SourceState] = []
        self._exports = array("Q")
        self._latest = array("Q")
        # Of the file that is being read: the statements that refer to each module.
        self._statements: dict[str, set[tuple[int, int]]] = {}
        self._read: dict[int, _Spooled] = {}
        self.references = 0
        self.modules = 0

    def expect(self, path: str, kind: FileKind) -> None:
        """Make a file known, so that references can lead to it. All files come before all references, by path."""
        self._numbers[path] = len(self._numbers)
        self._kinds.append(kind)
        self._states.append("unknown")
        self._exports.append(0)
        self._latest.append(0)

    def add_file(self, row: FilesItem, state: SourceState) -> None:
        """Write one row of `files`, once how far it could be read is known."""
        item = cast(dict[str, Any], row)
        projection = {name: value for name, value in item.items() if name != "problems"}
        self._facts.add("files", projection, item if row["problems"] else None)
        number = self._numbers.get(row["path"])
        if number is not None:
            self._states[number] = state

    def add_references(self, path: str, report: FileReport) -> None:
        """Resolve the sites of one file and write its rows of `references`. Files are to come in order of path."""
        state = "partial" if report.problems else "complete"
        seen: dict[tuple[str, int, int], int] = {}
        lacking: dict[str, _Module] = {}
        self._statements.clear()
        for site in report.sites:
            resolution = self._resolve(path, site)
            place = (site.kind, site.start, site.end)
            seen[place] = seen.get(place, 0) + 1
            reference_id = self._id("r", path, *place, seen[place])
            basis = _basis(site, resolution, state)
            module = self._lacking(path, site, resolution, lacking)
            present = resolution.target
            row = _reference_row(reference_id, path, site, resolution)
            item: ReferencesItem = {
                **row,
                "module": self._file_id(present) if present is not None else module and module.node_id,
                "key": resolution.key,
                "rule": resolution.rule,
                "statement": _statement(site),
                "bindings": site.bindings,
                "names": [name for name, _ in site.names],
                "source": site.excerpt,
                "basis": _basis_row(basis),
            }
            self._facts.add("references", cast(dict[str, Any], row), cast(dict[str, Any], item))
            self.references += 1
            if present is not None:
                number = self._numbers[present]
                self._latest[number] = 1 + self._keep(self._latest[number], site, _site(row, item), basis)
            elif module is not None:
                reference = _site(row, item)
                self._count(module, self._keep(0, site, reference, basis), reference, site.bindings, basis)
        for key in sorted(lacking):
            self._write(lacking[key])
        self._read.clear()
        if report.packed_exports:
            self._exports[self._numbers[path]] = 1 + self._spool.keep(report.packed_exports)

    def finish(self) -> None:
        """Write the rows of the files and of their exports in `modules`."""
        for path, number in self._numbers.items():
            state = self._states[number]
            present = self._make(path, cast(ModuleKind, self._kinds[number]), "present", path)
            places = self._export_places(number)
            exports = {name: self._export(present, name) for name in places}
            self._count_all(number, present, exports)
            _rest(present, ("artifact-bytes", state, "observed"))
            # An asset is a module only where something refers to it.
            if present.kind != "asset" or present.sites:
                self._write(present)
            for name in sorted(places):
                for one in places[name]:
                    confidence = "derived" if one.form in _COMMONJS else "observed"
                    _rest(exports[name], ("static-analysis", state, confidence))
                self._write(exports[name], name, [_export_place(one) for one in places[name]])
            self._read.clear()

    def _export_places(self, number: int) -> dict[str, list[Exported]]:
        """Where a file exports each name."""
        places: dict[str, list[Exported]] = {}
        if self._exports[number]:
            for one in unpack_exports(self._spool.read(self._exports[number] - 1)):
                places.setdefault(one.name, []).append(one)
        return places

    def _count_all(self, number: int, present: _Module, exports: dict[str, _Module]) -> None:
        """Count the references to a file and to its exports, in their order."""
        places = array("Q")
        after = self._latest[number]
        while after:
            places.append(after - 1)
            after = self._spooled(after - 1)[0]
        places.reverse()
        referrer = ""
        for place in places:
            _, basis, names, site = self._spooled(place)
            if site["path"] != referrer:
                referrer = site["path"]
                self._statements.clear()
            self._count(present, place, site, site["bindings"], basis)
            for name, bindings in names:
                if name in exports:
                    self._count(exports[name], place, site, bindings, basis)

    def _keep(self, before: int, site: Site, reference: SiteDict, basis: _Triple) -> int:
        return self._spool.keep(marshal.dumps((before, basis, site.names, cast(Any, reference))))

    def _spooled(self, place: int) -> _Spooled:
        known = self._read.get(place)
        if known is None:
            known = cast(_Spooled, marshal.loads(self._spool.read(place)))  # noqa: S302 - our own
            if len(self._read) < _MOST_READ:
                self._read[place] = known
        return known

    def _count(
        self, module: _Module, place: int, site: SiteDict, bindings: list[str], basis: _Triple
    ) -> None:
        _rest(module, basis)
        statement = (site["statement"]["start"], site["statement"]["end"])
        statements = self._statements.setdefault(module.node_id, set())
        if statement not in statements:
            statements.add(statement)
            module.ranges += 1
        if module.sites < MAX_LISTED:
            module.places.append(place)
        module.sites += 1
        module.bindings += len(bindings)

    def _export(self, module: _Module, name: str) -> _Module:
        node_id = self._id("m", module.path, "module-export", name.encode("utf-8", "surrogatepass").hex())
        name = shorten(name) if len(name) > _LONGEST_SPECIFIER else name
        return _Module(node_id, module.path, module.kind, module.status, f"{module.path}:{name}", name)

    def _resolve(self, path: str, site: Site) -> Resolution:
        if site.specifier is None:
            return Resolution("computed")
        mode: Mode = "require" if site.kind in _REQUIRING else "import"
        url = site.kind in _URLS
        resolution = self._resolver.resolve(site.specifier, path, mode, url=url)
        if site.base == "file" or _is_placeless(site.specifier, url=url):
            return resolution
        return Resolution("unknown")

    def _lacking(
        self, path: str, site: Site, resolution: Resolution, lacking: dict[str, _Module]
    ) -> _Module | None:
        """What a reference means that leads to nothing in the artifact."""
        if resolution.key is None or resolution.target is not None:
            return None
        module = lacking.get(resolution.key)
        if module is None:
            status = cast(ModuleStatus, resolution.status)
            module = self._make(path, _kind_of_missing(site, resolution), status, resolution.key)
            lacking[resolution.key] = module
        return module

    def _write(
        self, module: _Module, name: str | None = None, exports: list[ExportDict] | None = None
    ) -> None:
        strategy: ModuleStrategy = "source-module" if module.status == "present" else "unresolved-module"
        if module.export is not None:
            strategy = "module-export"
        identity = {"strategy": strategy, "key": module.key}
        row: ModulesRow = {
            "node_id": module.node_id,
            "path": module.path,
            "kind": module.kind,
            "status": module.status,
            "strategy": strategy,
            "export": module.export,
            "identity": cast("SourceModule | ModuleExport | UnresolvedModule", identity),
            "sites": module.sites,
            "ranges": module.ranges,
            "bindings": module.bindings,
            "basis": [_basis_row(triple) for triple in sorted(module.basis)],
        }
        references = [_asked(self._spooled(place), name) for place in module.places]
        item: ModulesItem = {**row, "references": references, "exports": exports or []}
        self._facts.add("modules", cast(dict[str, Any], row), cast(dict[str, Any], item))
        self.modules += 1

    def _file_id(self, path: str) -> str:
        return self._id("m", path, "present", path)

    def _make(self, path: str, kind: ModuleKind, status: ModuleStatus, key: str) -> _Module:
        return _Module(self._id("m", path, status, key), path, kind, status, key)

    def _id(self, prefix: str, *parts: str | int) -> str:
        # 128 bits of the hash: short enough for pages, long enough that no two modules meet.
        return f"{prefix}_{hashlib.sha256(orjson.dumps([self._artifact, *parts])).hexdigest()[:32]}"


_BASIS: Final = ("authority", "state", "confidence")
_COMMONJS: Final = frozenset({"property", "object", "define", "copy", "value"})
"""Exports that rest on what `exports` and `module` mean in their place; the others are declared."""


def _is_placeless(specifier: str, *, url: bool) -> bool:
    """Whether a specifier means the same wherever it stands."""
    parsed = parse_specifier(specifier)
    if parsed.shape == "settled":
        return not url or parsed.status in {"external", "rejected"}
    return parsed.shape == "package" and parsed.name in PROVIDED and not url


def _rest(module: _Module, basis: _Triple) -> None:
    if basis not in module.basis:
        module.basis.append(basis)


def _asked(spooled: _Spooled, name: str | None) -> SiteDict:
    """A reference as the item of a module shows it, or that of an export: with what is bound to this name alone."""
    _, _, names, site = spooled
    if name is None:
        return site
    return {**site, "bindings": next(bindings for asked, bindings in names if asked == name)}


def _basis_row(basis: _Triple) -> BasisDict:
    return cast(BasisDict, dict(zip(_BASIS, basis, strict=True)))


def _basis(site: Site, resolution: Resolution, state: SourceState) -> _Triple:
    confidence = "observed" if site.kind in _DECLARED else "derived"
    if not resolution.standard:
        confidence = "inferred"
    return ("static-analysis", state, confidence)


def _kind_of_missing(site: Site, resolution: Resolution) -> ModuleKind:
    if resolution.status in {"external", "builtin"}:
        return "javascript-module"
    name = (site.specifier or "").partition("?")[0]
    kind = kind_of(name)
    if kind in {"json-module", "native-addon", "html"}:
        return cast(ModuleKind, kind)
    suffix = PurePosixPath(name).suffix
    return (
        "asset" if site.kind == "asset-url" and suffix not in {".js", ".mjs", ".cjs"} else "javascript-module"
    )


def _reference_row(reference_id: str, path: str, site: Site, resolution: Resolution) -> ReferencesRow:
    specifier = site.specifier
    if specifier is not None and len(specifier) > _LONGEST_SPECIFIER:
        specifier = shorten(specifier)
    return {
        "reference_id": reference_id,
        "path": path,
        "kind": site.kind,
        "specifier": specifier,
        "resolution": resolution.status,
        "target": resolution.target,
        "line": site.line,
        "column": site.column,
        "start": site.start,
        "end_line": site.end_line,
        "end_column": site.end_column,
        "end": site.end,
    }


def _statement(site: Site) -> RangeDict:
    return {
        "line": site.statement_line,
        "column": site.statement_column,
        "start": site.statement_start,
        "end_line": site.statement_end_line,
        "end_column": site.statement_end_column,
        "end": site.statement_end,
    }


def _site(row: ReferencesRow, item: ReferencesItem) -> SiteDict:
    return {
        "reference_id": row["reference_id"],
        "path": row["path"],
        "kind": row["kind"],
        "specifier": row["specifier"],
        "range": {
            "line": row["line"],
            "column": row["column"],
            "start": row["start"],
            "end_line": row["end_line"],
            "end_column": row["end_column"],
            "end": row["end"],
        },
        "statement": item["statement"],
        "bindings": item["bindings"],
        "source": item["source"],
    }


def _export_place(one: Exported) -> ExportDict:
    return {
        "form": one.form,
        "local": one.local,
        "specifier": one.specifier,
        "type_only": one.type_only,
        "range": {
            "line": one.line,
            "column": one.column,
            "start": one.start,
            "end_line": one.end_line,
            "end_column": one.end_column,
            "end": one.end,
        },
        "source": one.excerpt,
    }


def problems_of(problems: Iterable[Problem]) -> list[ProblemDict]:
    """The unreadable ranges of a file as its full item shows them."""
    return [cast(ProblemDict, problem._asdict()) for problem in problems]
