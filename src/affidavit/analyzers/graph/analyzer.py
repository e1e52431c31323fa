"""The analyzer of exports: a graph that another tool recovered, as facts. Nothing is recovered anew."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from affidavit.analyzers.files import signature_of, unreadable
from affidavit.analyzers.graph.rows import COLLECTIONS, GRAPHS, CallsRow, EdgesRow, FunctionsRow
from affidavit.errors import FailedError
from affidavit.evidence.record import Authority, Coverage, Limitation, Subject
from affidavit.extensions import Analysis, Artifact, Progress

if TYPE_CHECKING:
    from affidavit.analyzers.graph.form import Function
    from affidavit.analyzers.graph.reading import Exported
    from affidavit.facts.collection import CollectionSpec
    from affidavit.facts.factfile import FactFileWriter
    from affidavit.facts.graph import GraphSpec

__all__ = ["MAX_LIMITATIONS", "ExportAnalyzer"]

MAX_LIMITATIONS = 1000
"""Refused functions that an analysis lists; the last limitation says how many more there were."""

_EVERY = 500
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"


class ExportAnalyzer:
    """Reads control flow that another tool exported: the documented JSON form, or what radare2 prints."""

    name = "graph"
    version = "1"
    authority: Authority = "imported"
    collections: tuple[CollectionSpec, ...] = COLLECTIONS
    graphs: Mapping[str, GraphSpec] = GRAPHS

    def detect(self, path: Path, head: bytes) -> bool:
        """Whether this analyzer reads the file (its first 4 KiB in `head`)."""
        # Every file is asked about, and what reads an export takes a while to load.
        if not head.lstrip(_BEFORE_JSON).startswith((b"{", b"[")) or not path.is_file():
            return False
        from affidavit.analyzers.graph.reading import looks_exported

        return looks_exported(head)

    def identify(self, path: Path) -> Artifact:
        """Digest the file.

        Raises:
            NotFoundError: `artifact-not-found`.
            FailedError: `artifact-unsupported`, `value-too-large`.
        """
        signature = self.signature(path)
        data = _read(path)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return Artifact(
            path=path,
            subject=Subject(digest=digest, format="graph-export"),
            signature=signature,
        )

    def signature(self, path: Path) -> str:
        """Size, time of change and inode. Raises `NotFoundError`."""
        return signature_of(path)

    def analyze(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write every row. A function that makes no graph is refused by itself, and its record kept.

        Raises:
            FailedError: `artifact-changed`, `artifact-unsupported`, `value-too-large`.
            VerificationError: `artifact-damaged`, `format-unknown`.
        """
        from affidavit.analyzers.graph.reading import read_export

        data = _read(artifact.path)
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != artifact.subject.digest:
            raise FailedError(
                "artifact-changed", f"{artifact.path} is no longer what was mounted", hint="mount it again"
            )
        run = _Import(read_export(data, artifact.path.name), facts, progress)
        run.write()
        return run.analysis()


def _read(path: Path) -> bytes:
    from affidavit.analyzers.graph.reading import MAX_BYTES

    if path.is_dir():
        raise FailedError(
            "artifact-unsupported", f"{path.name} is a folder; an export is a file", hint="name the file"
        )
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(data) > MAX_BYTES:
        raise FailedError(
            "value-too-large",
            f"{path.name} has more than {MAX_BYTES >> 20} MiB",
            hint="export fewer functions, or without what blocks need not have",
        )
    return data


@dataclass(slots=True)
class _Import:
    """One import."""

    exported: Exported
    facts: FactFileWriter
    progress: Progress
    read: list[tuple[str, Function | str]] = field(default_factory=list["tuple[str, Function | str]"])
    counts: Counter[str] = field(default_factory=Counter[str])
    limitations: list[Limitation] = field(default_factory=list[Limitation])

    def write(self) -> None:
        """Write every row."""
        self._read()
        known = frozenset(identity for identity, _ in self.read)
        for at, (identity, function) in enumerate(self.read):
            if isinstance(function, str):
                self._refuse(at, identity, function)
            else:
                self._add(function, known)
            if at % _EVERY == 0:
                self.progress(at, len(self.read), "writing functions")

    def analysis(self) -> Analysis:
        """What was imported."""
        refused = self.counts["refused"]
        limitations = self.limitations[:MAX_LIMITATIONS]
        if len(self.limitations) > MAX_LIMITATIONS:
            more = len(self.limitations) - MAX_LIMITATIONS + 1
            limitations[-1] = Limitation(code="entry-skipped", place="", message=f"and {more:,} more")
        coverage = Coverage(
            state="partial" if refused else "complete",
            selection="functions of the export",
            examined=len(self.read),
            unknown=refused,
        )
        tool = self.exported.tool
        summary = {
            "form": self.exported.form,
            "tool": {"name": tool.name, "version": tool.version},
            **{name: self.counts[name] for name in ("functions", "refused", "blocks", "edges", "calls")},
        }
        return Analysis(summary=summary, coverage=coverage, limitations=tuple(limitations))

    def _read(self) -> None:
        """Check every function. One whose id cannot be used, or is used already, stands under its place."""
        from affidavit.analyzers.graph.form import read_function

        seen: set[str] = set()
        for at, value in enumerate(self.exported.functions):
            function = read_function(value)
            identity = _id_of(value, f"{self.exported.place}[{at}]")
            if identity in seen:
                function = f"id: {ascii(identity)[:80]} is that of an earlier function, too"
                identity = f"{self.exported.place}[{at}]"
            seen.add(identity)
            self.read.append((identity, function))

    def _refuse(self, at: int, identity: str, problem: str) -> None:
        record = json.dumps(self.exported.records[at])
        name = _field(self.exported.functions[at], "name")
        row = _function_row(identity, name if isinstance(name, str) else None, problem=problem)
        self.facts.add(
            "functions", dict(row), {**row, "blocks": [], "edges": [], "calls": [], "record": record}
        )
        self.counts["refused"] += 1
        place = f"{self.exported.place}[{at}]"
        self.limitations.append(Limitation(code="graph-invalid", place=place, message=problem))

    def _add(self, function: Function, known: frozenset[str]) -> None:
        blocks, edges, calls = _blocks(function), _edges(function), _calls(function, known)
        row = _function_row(
            function.id, function.name, blocks=len(blocks), edges=len(edges), calls=len(calls)
        )
        item = {**row, "blocks": blocks, "edges": edges, "calls": calls, "record": None}
        self.facts.add("functions", dict(row), item)
        for block in blocks:
            self.facts.add("blocks", {name: block[name] for name in block if name != "text"}, block)
        for edge in edges:
            self.facts.add("edges", dict(edge))
        for call in calls:
            self.facts.add("calls", dict(call))
        self.counts.update(functions=1, blocks=len(blocks), edges=len(edges), calls=len(calls))


def _function_row(
    identity: str,
    name: str | None,
    *,
    blocks: int = 0,
    edges: int = 0,
    calls: int = 0,
    problem: str | None = None,
) -> FunctionsRow:
    return {
        "id": identity,
        "name": name,
        "status": "refused" if problem is not None else "complete" if blocks else "calls-only",
        "problem": problem,
        "block_count": blocks,
        "edge_count": edges,
        "call_count": calls,
        "basis": ["imported"],
    }


def _blocks(function: Function) -> list[dict[str, Any]]:
    """The blocks as items, the entry first: what a graph begins with is its entry."""
    ordered = sorted(function.blocks, key=lambda block: block.id != function.entry)
    return [
        {
            "id": f"{function.id}/{block.id}",
            "function": function.id,
            "address": block.address,
            "size": block.size,
            "instructions": len(block.text),
            "entry": block.id == function.entry,
            "exit": block.exit,
            "text": block.text,
        }
        for block in ordered
    ]


def _edges(function: Function) -> list[EdgesRow]:
    return [
        {
            "id": f"{function.id}/{edge.own_id}",
            "function": function.id,
            "source": f"{function.id}/{edge.source}",
            "target": None if edge.target is None else f"{function.id}/{edge.target}",
            "ordinal": edge.ordinal,
            "kind": edge.kind,
            "condition": edge.condition,
            "polarity": edge.polarity,
            "case": edge.case,
            "operation": edge.operation,
        }
        for edge in function.edges
    ]


def _calls(function: Function, known: frozenset[str]) -> list[CallsRow]:
    return [
        {
            "id": f"{function.id}/call{at}",
            "function": function.id,
            "block": None if call.block is None else f"{function.id}/{call.block}",
            "address": call.address,
            "kind": call.kind,
            "target": call.target,
            "callee": call.callee if call.callee in known else None,
            "name": call.name,
        }
        for at, call in enumerate(function.calls)
    ]


def _id_of(value: Any, place: str) -> str:
    found = _field(value, "id")
    return found if isinstance(found, str) and 0 < len(found) <= 1000 else place


def _field(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
