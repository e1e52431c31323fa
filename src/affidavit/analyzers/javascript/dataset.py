"""From the reports of single files to the rows of the dataset: resolution, counting, identities."""

from __future__ import annotations

import hashlib
import marshal
from array import array
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Module:
    """A module or an export while its references are counted.

    There may be hundreds of thousands, and millions of references to them: of each reference only its place in the
    spool is kept.
    """

    node_id: str
    path: str
    kind: ModuleKind
    status: ModuleStatus
    key: str
    export: str | None = None
    sites: int = 0
    places: array[int] | None = None
    ranges: int = 0
    bindings: int = 0
    basis: tuple[_Triple, ...] = ()


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
        # What each file is and how far it was read; only those that are referred to are modules yet.
        self._files: dict[str, tuple[FileKind, SourceState]] = {}
        self._present: dict[str, _Module] = {}
        # Of the file that is being read: the statements that refer to each module.
        self._statements: dict[str, set[tuple[int, int]]] = {}
        self._bases: dict[tuple[_Triple, ...], tuple[_Triple, ...]] = {}
        # By file: where the exports wait in the spool, and what is asked for by name.
        self._exports: dict[str, int] = {}
        self._asked: dict[str, dict[str, _Module]] = {}
        self.references = 0
        self.modules = 0

    def expect(self, path: str, kind: FileKind) -> None:
        """Make a file known, so that references can lead to it. All files come before all references."""
        self._files[path] = (kind, "unknown")

    def add_file(self, row: FilesItem, state: SourceState) -> None:
        """Write one row of `files`, once how far it could be read is known."""
        item = cast(dict[str, Any], row)
        projection = {name: value for name, value in item.items() if name != "problems"}
        self._facts.add("files", projection, item if row["problems"] else None)
        if row["path"] in self._files:
            self._files[row["path"]] = (self._files[row["path"]][0], state)

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
            module = self._module(path, site, resolution, lacking)
            row = _reference_row(reference_id, path, site, resolution)
            item: ReferencesItem = {
                **row,
                "module": None if module is None else module.node_id,
                "key": resolution.key,
                "rule": resolution.rule,
                "statement": _statement(site),
                "bindings": site.bindings,
                "names": [name for name, _ in site.names],
                "source": site.excerpt,
                "basis": basis,
            }
            self._facts.add("references", cast(dict[str, Any], row), cast(dict[str, Any], item))
            self.references += 1
            if module is not None:
                self._count(module, site, _site(row, item), basis)
        for key in sorted(lacking):
            self._write(lacking[key])
        if report.packed_exports:
            self._exports[path] = self._spool.keep(report.packed_exports)

    def finish(self) -> None:
        """Write the rows of the files and of their exports in `modules`."""
        for path in sorted(self._files):
            _, state = self._files[path]
            present = self._file_module(path)
            self._rest(present, ("artifact-bytes", state, "observed"))
            del self._present[path]
            # An asset is a module only where something refers to it.
            if present.kind != "asset" or present.sites:
                self._write(present)
            if path in self._exports:
                self._write_exports(present, state)

    def _count(self, module: _Module, site: Site, reference: SiteDict, basis: BasisDict) -> None:
        triple = (basis["authority"], basis["state"], basis["confidence"])
        self._count_one(module, reference, triple)
        if module.status == "present" and site.names:
            asked = self._asked.setdefault(module.path, {})
            for name, bindings in site.names:
                export = asked.get(name)
                if export is None:
                    export = asked[name] = self._export(module, name)
                self._count_one(export, {**reference, "bindings": bindings}, triple)

    def _count_one(self, module: _Module, site: SiteDict, basis: _Triple) -> None:
        statement = (site["statement"]["start"], site["statement"]["end"])
        statements = self._statements.setdefault(module.node_id, set())
        if statement not in statements:
            statements.add(statement)
            module.ranges += 1
        if module.sites < MAX_LISTED:
            module.places = array("Q") if module.places is None else module.places
            module.places.append(self._spool.keep(marshal.dumps(cast(Any, site))))
        module.sites += 1
        module.bindings += len(site["bindings"])
        self._rest(module, basis)

    def _rest(self, module: _Module, basis: _Triple) -> None:
        """Note what a module rests on; modules that rest on the same share one tuple."""
        if basis not in module.basis:
            together = tuple(sorted((*module.basis, basis)))
            module.basis = self._bases.setdefault(together, together)

    def _export(self, module: _Module, name: str) -> _Module:
        node_id = self._id("m", module.path, "module-export", name.encode("utf-8", "surrogatepass").hex())
        name = shorten(name) if len(name) > _LONGEST_SPECIFIER else name
        return _Module(node_id, module.path, module.kind, module.status, f"{module.path}:{name}", name)

    def _write_exports(self, module: _Module, state: SourceState) -> None:
        place = self._exports.pop(module.path)
        places: dict[str, list[Exported]] = {}
        for one in unpack_exports(self._spool.read(place)):
            places.setdefault(one.name, []).append(one)
        asked = self._asked.pop(module.path, {})
        for name in sorted(places):
            export = asked.get(name) or self._export(module, name)
            for one in places[name]:
                confidence = "derived" if one.form in _COMMONJS else "observed"
                self._rest(export, ("static-analysis", state, confidence))
            self._write(export, [_export_place(one) for one in places[name]])

    def _resolve(self, path: str, site: Site) -> Resolution:
        if site.specifier is None:
            return Resolution("computed")
        mode: Mode = "require" if site.kind in _REQUIRING else "import"
        url = site.kind in _URLS
        resolution = self._resolver.resolve(site.specifier, path, mode, url=url)
        if site.base == "file" or _is_placeless(site.specifier, url=url):
            return resolution
        return Resolution("unknown")

    def _module(
        self, path: str, site: Site, resolution: Resolution, lacking: dict[str, _Module]
    ) -> _Module | None:
        if resolution.target is not None:
            return self._file_module(resolution.target)
        if resolution.key is None:
            return None
        module = lacking.get(resolution.key)
        if module is None:
            status = cast(ModuleStatus, resolution.status)
            module = self._make(path, _kind_of_missing(site, resolution), status, resolution.key)
            lacking[resolution.key] = module
        return module

    def _write(self, module: _Module, exports: list[ExportDict] | None = None) -> None:
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
            "basis": [cast(BasisDict, dict(zip(_BASIS, triple, strict=True))) for triple in module.basis],
        }
        references = [marshal.loads(self._spool.read(place)) for place in module.places or ()]  # noqa: S302 - our own
        item: ModulesItem = {**row, "references": references, "exports": exports or []}
        self._facts.add("modules", cast(dict[str, Any], row), cast(dict[str, Any], item))
        self.modules += 1

    def _file_module(self, path: str) -> _Module:
        module = self._present.get(path)
        if module is None:
            kind = cast(ModuleKind, self._files[path][0])
            module = self._present[path] = self._make(path, kind, "present", path)
        return module

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


def _basis(site: Site, resolution: Resolution, state: SourceState) -> BasisDict:
    confidence = "observed" if site.kind in _DECLARED else "derived"
    if not resolution.standard:
        confidence = "inferred"
    return cast(BasisDict, {"authority": "static-analysis", "state": state, "confidence": confidence})


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
