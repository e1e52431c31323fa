"""From the reports of single files to the rows of the dataset: resolution, counting, identities."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from affidavit.analyzers.javascript.containers.content import kind_of
from affidavit.analyzers.javascript.resolution.resolver import Resolution, Resolver
from affidavit.analyzers.javascript.resolution.specifier import shorten
from affidavit.analyzers.javascript.rows import (
    BasisDict,
    FilesItem,
    ModuleKind,
    ModulesItem,
    ModulesRow,
    ModuleStatus,
    ProblemDict,
    RangeDict,
    ReferencesItem,
    ReferencesRow,
    SiteDict,
    SourceModule,
    UnresolvedModule,
)

if TYPE_CHECKING:
    from affidavit.analyzers.javascript.parsing.wire import FileReport, Site
    from affidavit.analyzers.javascript.resolution.exports import Mode
    from affidavit.facts.factfile import FactFileWriter

__all__ = ["Dataset", "SourceState", "problems_of"]

_REQUIRING: Final = frozenset({"require", "require-resolve", "create-require"})
_URLS: Final = frozenset({"worker", "asset-url"})
_DECLARED: Final = frozenset({"import", "side-effect-import", "export-from", "import-type", "dynamic-import"})
_LONGEST_SPECIFIER: Final = 2000

SourceState = str
"""How completely a file was read: `complete`, `partial` or `unknown`."""


@dataclass(slots=True)
class _Module:
    """A module while its references are counted."""

    path: str
    kind: ModuleKind
    status: ModuleStatus
    key: str
    sites: list[SiteDict] = field(default_factory=list[SiteDict])
    ranges: set[tuple[str, int, int]] = field(default_factory=set[tuple[str, int, int]])
    bindings: int = 0
    basis: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])


class Dataset:
    """Collects one artifact's facts and writes them in a fixed order: files, references by path, modules by path.

    Args:
        artifact: digest of the artifact; ids are hashed with it.
        resolver: of the artifact's tree.
        facts: where rows go.
    """

    def __init__(self, artifact: str, resolver: Resolver, facts: FactFileWriter) -> None:
        self._artifact = artifact
        self._resolver = resolver
        self._facts = facts
        self._present: dict[str, _Module] = {}
        self._unresolved: defaultdict[str, dict[str, _Module]] = defaultdict(dict)
        self.references = 0
        self.modules = 0

    def add_file(self, row: FilesItem, state: SourceState) -> None:
        """Write one row of `files`; a module of its own unless it is an asset, a link or a directory."""
        item = cast(dict[str, Any], row)
        projection = {name: value for name, value in item.items() if name != "problems"}
        self._facts.add("files", projection, item if row["problems"] else None)
        kind = row["kind"]
        if kind in {"link", "directory"}:
            return
        module = _Module(row["path"], cast(ModuleKind, kind), "present", row["path"])
        module.basis.add(("artifact-bytes", state, "observed"))
        self._present[row["path"]] = module

    def add_references(self, path: str, report: FileReport) -> None:
        """Resolve the sites of one file and write its rows of `references`. Files are to come in order of path."""
        state = "partial" if report.problems else "complete"
        seen: dict[tuple[str, int, int], int] = {}
        for site in report.sites:
            resolution = self._resolve(path, site)
            place = (site.kind, site.start, site.end)
            seen[place] = seen.get(place, 0) + 1
            reference_id = self._id("r", path, *place, seen[place])
            basis = _basis(site, resolution, state)
            module = self._module(path, site, resolution)
            row = _reference_row(reference_id, path, site, resolution)
            item: ReferencesItem = {
                **row,
                "module": None if module is None else self._node_id(module),
                "key": resolution.key,
                "rule": resolution.rule,
                "statement": _statement(site),
                "bindings": site.bindings,
                "source": site.excerpt,
                "basis": basis,
            }
            self._facts.add("references", cast(dict[str, Any], row), cast(dict[str, Any], item))
            self.references += 1
            if module is not None:
                _count(module, row, item)

    def finish(self) -> None:
        """Write the rows of `modules`."""
        for path in sorted(self._present.keys() | self._unresolved.keys()):
            present = self._present.get(path)
            # An asset is a module only where something refers to it.
            if present is not None and (present.kind != "asset" or present.sites):
                self._write(present)
            unresolved = self._unresolved.get(path, {})
            for key in sorted(unresolved):
                self._write(unresolved[key])

    def _resolve(self, path: str, site: Site) -> Resolution:
        if site.specifier is None:
            return Resolution("computed")
        mode: Mode = "require" if site.kind in _REQUIRING else "import"
        resolution = self._resolver.resolve(site.specifier, path, mode, url=site.kind in _URLS)
        if site.base == "file" or resolution.status in {"builtin", "rejected"} or _is_address(resolution):
            return resolution
        return Resolution("unknown")

    def _module(self, path: str, site: Site, resolution: Resolution) -> _Module | None:
        if resolution.target is not None:
            return self._present[resolution.target]
        if resolution.key is None:
            return None
        modules = self._unresolved[path]
        module = modules.get(resolution.key)
        if module is None:
            status = cast(ModuleStatus, resolution.status)
            module = _Module(path, _kind_of_missing(site, resolution), status, resolution.key)
            modules[resolution.key] = module
        return module

    def _write(self, module: _Module) -> None:
        identity: SourceModule | UnresolvedModule
        if module.status == "present":
            identity = {"strategy": "source-module", "key": module.key}
        else:
            identity = {"strategy": "unresolved-module", "key": module.key}
        row: ModulesRow = {
            "node_id": self._node_id(module),
            "path": module.path,
            "kind": module.kind,
            "status": module.status,
            "identity": identity,
            "sites": len(module.sites),
            "ranges": len(module.ranges),
            "bindings": module.bindings,
            "basis": [
                cast(BasisDict, dict(zip(_BASIS, triple, strict=True))) for triple in sorted(module.basis)
            ],
        }
        item: ModulesItem = {**row, "references": module.sites}
        self._facts.add("modules", cast(dict[str, Any], row), cast(dict[str, Any], item))
        self.modules += 1

    def _node_id(self, module: _Module) -> str:
        return self._id("m", module.path, module.status, module.key)

    def _id(self, prefix: str, *parts: str | int) -> str:
        # 128 bits of the hash: short enough for pages, long enough that no two modules meet.
        return f"{prefix}_{hashlib.sha256(orjson.dumps([self._artifact, *parts])).hexdigest()[:32]}"


_BASIS: Final = ("authority", "state", "confidence")


def _is_address(resolution: Resolution) -> bool:
    return resolution.status == "external" and resolution.key is not None and ":" in resolution.key[9:]


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


def _count(module: _Module, row: ReferencesRow, item: ReferencesItem) -> None:
    statement = item["statement"]
    module.sites.append(
        {
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
            "statement": statement,
            "bindings": item["bindings"],
            "source": item["source"],
        }
    )
    module.ranges.add((row["path"], statement["start"], statement["end"]))
    module.bindings += len(item["bindings"])
    basis = item["basis"]
    module.basis.add((basis["authority"], basis["state"], basis["confidence"]))


def problems_of(report: FileReport) -> list[ProblemDict]:
    """The unreadable ranges of a file as its full item shows them."""
    return [cast(ProblemDict, problem._asdict()) for problem in report.problems]
