"""The native analyzer: a binary in, facts out. No target code is run."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from affidavit.analyzers.files import signature_of, unreadable
from affidavit.analyzers.native.loading.formats import HEAD, format_of
from affidavit.analyzers.native.rows import COLLECTIONS, GRAPHS
from affidavit.analyzers.native.working.pool import Allowance, Workers
from affidavit.analyzers.native.working.wire import Known, Task
from affidavit.errors import FailedError, VerificationError
from affidavit.evidence.record import Coverage, JsonValue, Limitation, Subject
from affidavit.extensions import Analysis, Artifact, Progress

if TYPE_CHECKING:
    from affidavit.facts.collection import CollectionSpec
    from affidavit.facts.factfile import FactFileWriter
    from affidavit.facts.graph import GraphSpec

__all__ = ["DECODERS", "MAX_LIMITATIONS", "NativeAnalyzer"]

DECODERS: Final = {"iced-x86": "1.21.0", "pypcode": "3.3.3", "pyelftools": "0.33", "lief": "1.0.0"}
"""The third-party decoders that the facts depend on, pinned the same on every Python."""

MAX_LIMITATIONS: Final = 1000
"""Limitations that an analysis lists; the last one says how many more there were."""

_MODULES: Final = ("iced_x86", "pypcode", "elftools", "lief")
_AT_ONCE: Final = 150_000
"""Blocks that are written in a quarter of a minute or so."""

_PLACE: Final = re.compile(r"(0x[0-9a-f]{1,16})[+-]0x[0-9a-f]{1,16}(#[0-9]+)?\Z")
_CHUNK: Final = 1 << 20
_CODES: Final = {
    "indirect-jump": "flow-unresolved",
    "beyond-end": "flow-unresolved",
    "inside-other": "flow-unresolved",
    "landing-pads": "flow-unresolved",
    "table-bound": "table-unproven",
    "undecodable": "code-undecodable",
    "failed": "analysis-failed",
}


class NativeAnalyzer:
    """Reads ELF files for x86-64 and AArch64, and PE and Mach-O files for x86-64.

    Args:
        processes: decoding processes; by default as many as there are cores.
        allowance: CPU time that one binary may take.
    """

    name = "native"
    version = "2;" + ";".join(f"{name}={version}" for name, version in DECODERS.items())
    collections: tuple[CollectionSpec, ...] = COLLECTIONS
    graphs: Mapping[str, GraphSpec] = GRAPHS
    parts = "functions"
    detailed: Mapping[str, str] = dict.fromkeys(("blocks", "edges", "calls", "references"), "function")

    def __init__(self, *, processes: int | None = None, allowance: Allowance | None = None) -> None:
        self._processes = processes
        self._allowance = allowance

    def detect(self, path: Path, head: bytes) -> bool:
        """Whether this analyzer reads the file (its first 4 KiB in `head`)."""
        return path.is_file() and format_of(head) is not None

    def identify(self, path: Path) -> Artifact:
        """Digest the file.

        Raises:
            NotFoundError: `artifact-not-found`.
            FailedError: `extra-missing`.
        """
        _check_installed()
        signature = self.signature(path)
        hasher = hashlib.sha256()
        try:
            with path.open("rb") as file:
                kind = format_of(file.read(HEAD)) or "unknown"
                file.seek(0)
                while chunk := file.read(_CHUNK):
                    hasher.update(chunk)
        except OSError as error:
            raise unreadable(path, error) from error
        return Artifact(
            path=path,
            subject=Subject(digest=f"sha256:{hasher.hexdigest()}", format=kind),
            signature=signature,
        )

    def signature(self, path: Path) -> str:
        """Size, time of change and inode. Raises `NotFoundError`."""
        return signature_of(path)

    def analyze(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write every row.

        Raises:
            FailedError: `artifact-changed`, `artifact-unsupported`, `analysis-failed`, `extra-missing`.
            VerificationError: `artifact-damaged`.
        """
        return self._run(_Run(artifact, facts, progress), Task(rows=True))

    def outline(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write the rows of `functions` and `strings`. Every function is decoded once, so that their counts are final.

        Raises:
            FailedError: `artifact-changed`, `artifact-unsupported`, `analysis-failed`, `extra-missing`.
            VerificationError: `artifact-damaged`.
        """
        return self._run(_Run(artifact, facts, progress), Task(rows=False))

    def detail(
        self,
        artifact: Artifact,
        kept: JsonValue,
        parts: Sequence[str] | None,
        facts: FactFileWriter,
        progress: Progress,
    ) -> None:
        """Write the rows of some functions, or of all and of all strings.

        Args:
            artifact: the binary.
            kept: `Analysis.kept` of its outline.
            parts: ids of functions; None for all.
            facts: where the rows go.
            progress: told how far it is.

        Raises:
            FailedError: `artifact-changed`, `analysis-failed`, `extra-missing`.
        """
        known = Known(*cast("list[Any]", kept))
        wanted = None if parts is None else [int(part, 16) for part in parts]
        self._run(_Run(artifact, facts, progress), Task(rows=True, known=known, wanted=wanted))

    def at_once(self, summary: Mapping[str, JsonValue]) -> bool:
        """Whether there are few enough blocks to write everything about them while a query waits."""
        return cast("int", summary["blocks"]) <= _AT_ONCE

    def part_of(self, key: str) -> str | None:
        """The id of the function that a block, edge, call or reference belongs to, from its own id."""
        found = _PLACE.match(key)
        return None if found is None else found[1]

    def _run(self, run: _Run, task: Task) -> Analysis:
        _check_installed()
        self._check_unchanged(run.artifact)
        path = run.artifact.path
        size = path.stat().st_size
        processes = self._processes if task.wanted is None else 1
        with Workers(path, size, task, processes=processes, allowance=self._allowance) as workers:
            run.read(workers)
        self._check_unchanged(run.artifact)
        return run.analysis()

    def _check_unchanged(self, artifact: Artifact) -> None:
        if self.signature(artifact.path) != artifact.signature:
            raise FailedError(
                "artifact-changed", f"{artifact.path} is no longer what was mounted", hint="mount it again"
            )


def _check_installed() -> None:
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise FailedError(
            "extra-missing",
            f"reading native code needs {', '.join(missing)}",
            hint="pip install 'affidavit[native]'",
        )


@dataclass(slots=True)
class _Run:
    """One analysis."""

    artifact: Artifact
    facts: FactFileWriter
    progress: Progress
    machine: str = ""
    kept: JsonValue = None
    counts: Counter[str] = field(default_factory=Counter[str])
    limitations: list[Limitation] = field(default_factory=list[Limitation])
    more: int = 0
    named: Counter[str] = field(default_factory=Counter[str])

    def read(self, workers: Workers) -> None:
        """Take in everything that the processes say."""
        found: dict[str, Any] = {}
        for message in workers.messages():
            if message["kind"] == "progress":
                self.progress(message["done"], message["total"], "following the flow")
            elif message["kind"] == "failed":
                raise self._refused(message)
            else:
                found = message
        self.machine = found["machine"]
        self.kept = found.get("known")
        for place, reason in found["limitations"]:
            self._note("entry-damaged", place, reason)
        total, done = found.get("functions", 0), 0
        for batch in workers.batches(found.get("batches", 0)):
            for report in batch:
                self._add(report)
            done += len(batch)
            self.progress(done, total, "writing functions")
        for message in workers.messages():
            for row, references, unknowns in message.get("rows", ()):
                self._add_outline(row, references, unknowns)
            for text in message.get("texts", ()):
                self._add_string(*text)

    def analysis(self) -> Analysis:
        """What was examined."""
        limitations = self.limitations
        if self.more:
            last = Limitation(code="entry-skipped", place="", message=f"and {self.more:,} more limitations")
            limitations = [*limitations, last]
        unknown = self.counts["unknown"]
        coverage = Coverage(
            state="partial" if limitations else "complete",
            selection="functions told by symbols, the unwind table, entry points and calls",
            examined=self.counts["function"],
            omitted=0,
            unknown=unknown,
        )
        names = ("function", "import", "part", "blocks", "edges", "calls", "references", "strings")
        summary = {
            "format": self.artifact.subject.format,
            "machine": self.machine,
            **{name: self.counts[name] for name in names},
            "decoders": dict(DECODERS),
        }
        return Analysis(summary=summary, coverage=coverage, limitations=tuple(limitations), kept=self.kept)

    def _add(self, report: dict[str, Any]) -> None:
        row, item = report["row"], report["item"]
        blocks = [{name: value for name, value in one.items() if name != "text"} for one in report["blocks"]]
        self.facts.add(
            "functions",
            row,
            {**row, **item, "blocks": report["blocks"], "edges": report["edges"], "calls": report["calls"]},
        )
        for block, full in zip(blocks, report["blocks"], strict=True):
            self.facts.add("blocks", block, full)
        for name in ("edges", "calls", "references"):
            for one in report[name]:
                self.facts.add(name, one)
            self.counts[name] += len(report[name])
        for one in report["references"]:
            if one["string"] is not None:
                self.named[one["string"]] += 1
        self.counts["blocks"] += len(blocks)
        self.counts[row["kind"]] += 1
        for unknown in item["unknowns"]:
            self.counts["unknown"] += 1
            self._note(_CODES[unknown["kind"]], f"{row['id']} {unknown['address']}", unknown["reason"])

    def _add_outline(self, row: dict[str, Any], references: int, unknowns: list[list[Any]]) -> None:
        self.facts.add("functions", row)
        self.counts["references"] += references
        for name in ("blocks", "edges", "calls"):
            self.counts[name] += row[f"{name[:-1]}_count"]
        self.counts[row["kind"]] += 1
        for address, kind, reason in unknowns:
            self.counts["unknown"] += 1
            self._note(_CODES[kind], f"{row['id']} {address:#x}", reason)

    def _add_string(self, address: int, section: str, length: int, value: str, references: int) -> None:
        identity = hex(address)
        self.facts.add(
            "strings",
            {
                "id": identity,
                "section": section,
                "length": length,
                "value": value,
                "references": references or self.named[identity],
            },
        )
        self.counts["strings"] += 1

    def _note(self, code: str, place: str, message: str) -> None:
        if len(self.limitations) < MAX_LIMITATIONS - 1:
            self.limitations.append(Limitation(code=code, place=place, message=message))
        else:
            self.more += 1

    def _refused(self, message: dict[str, Any]) -> FailedError | VerificationError:
        name = self.artifact.path.name
        reason = str(message["reason"])
        if message["state"] == "DamagedError":
            return VerificationError(
                "artifact-damaged", f"{name}: {reason}", hint="the file is truncated or altered"
            )
        if message["state"] == "UnsupportedError":
            return FailedError(
                "artifact-unsupported",
                f"{name} is {reason}",
                hint="linked ELF files for x86-64 and AArch64, PE and Mach-O files for x86-64 are read",
            )
        return FailedError("analysis-failed", f"{name}: {message['state']}: {reason}")
