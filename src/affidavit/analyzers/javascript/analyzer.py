"""The JavaScript analyzer: containers in, facts out. No target code is run."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from affidavit.analyzers.javascript.containers.content import Content, examine, is_script, kind_of, load
from affidavit.analyzers.javascript.containers.entry import (
    MAX_ENTRIES,
    Entry,
    EntryError,
    limitation,
    read_entry,
)
from affidavit.analyzers.javascript.containers.identity import manifest_digest, signature_of, subject_of
from affidavit.analyzers.javascript.containers.opening import AnyContainer, open_container, reads
from affidavit.analyzers.javascript.containers.tarball import TarballContainer
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.analyzers.javascript.dataset import Dataset, problems_of
from affidavit.analyzers.javascript.parsing.pool import Allowance, Job, Outcome, parse_all
from affidavit.analyzers.javascript.parsing.spool import Spool
from affidavit.analyzers.javascript.parsing.wire import FileReport, Problem, decode
from affidavit.analyzers.javascript.resolution.resolver import Resolver
from affidavit.analyzers.javascript.rows import COLLECTIONS, FilesItem, FileStatus
from affidavit.errors import FailedError
from affidavit.evidence.record import Coverage, Limitation
from affidavit.extensions import Analysis, Artifact, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from affidavit.analyzers.javascript.languages import LanguageName
    from affidavit.facts.collection import CollectionSpec
    from affidavit.facts.factfile import FactFileWriter

__all__ = ["DECODERS", "MAX_LIMITATIONS", "MAX_SOURCE", "JavaScriptAnalyzer"]

DECODERS: Final = {
    "tree-sitter": "0.26.1",
    "tree-sitter-javascript": "0.25.0",
    "tree-sitter-typescript": "0.23.2",
}
"""The third-party decoders that the facts depend on, pinned the same on every Python."""

MAX_SOURCE: Final = 32 << 20
"""Bytes of a source file that is parsed; above it the file is a limitation."""

MAX_LIMITATIONS: Final = 1000
"""Limitations that an analysis lists; the last one says how many more there were."""

_MAX_PACKAGE: Final = 4 << 20
_HARMLESS: Final = frozenset({"entry-skipped", "encoding"})


class JavaScriptAnalyzer:
    """Reads ASAR archives, folders, npm tarballs and single source files.

    Args:
        processes: parser processes; by default as many as there are cores.
        allowance: CPU time that one file may take.
    """

    name = "javascript"
    version = "2;" + ";".join(f"{name}={version}" for name, version in DECODERS.items())
    collections: tuple[CollectionSpec, ...] = COLLECTIONS

    def __init__(self, *, processes: int | None = None, allowance: Allowance | None = None) -> None:
        self._processes = processes
        self._allowance = allowance

    def detect(self, path: Path, head: bytes) -> bool:
        """Whether this analyzer reads the file (its first 4 KiB in `head`) or folder."""
        return reads(path, head)

    def identify(self, path: Path) -> Artifact:
        """Digest the artifact. Raises as `open_container` does."""
        signature = signature_of(path)
        container = open_container(path)
        if isinstance(container, TarballContainer):
            # Unpacking it is the larger part of reading it, so that is done once.
            return Artifact(path=path, subject=subject_of(container), signature=signature, opened=container)
        with closing(container):
            return Artifact(path=path, subject=subject_of(container), signature=signature)

    def signature(self, path: Path) -> str:
        """What changes when anything of the artifact does. Raises `NotFoundError`."""
        return signature_of(path)

    def analyze(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write every row.

        Raises:
            FailedError: `artifact-changed` when it is not, or does not stay, what was identified; `analysis-failed`
                when no parser process can be started.
            VerificationError: `artifact-damaged`.
        """
        _check_unchanged(artifact)
        with closing(_opened(artifact)) as container, closing(Spool()) as spool:
            run = _Run(artifact, container, facts, progress, spool)
            run.read()
            run.parse(self._processes, self._allowance)
            _check_unchanged(artifact)
            run.check_content()
            return run.finish()


def _check_unchanged(artifact: Artifact) -> None:
    if signature_of(artifact.path) != artifact.signature:
        raise _changed(artifact)


def _opened(artifact: Artifact) -> AnyContainer:
    kept = artifact.opened
    return kept if isinstance(kept, TarballContainer) and kept.is_open else open_container(artifact.path)


def _changed(artifact: Artifact) -> FailedError:
    return FailedError(
        "artifact-changed",
        f"{artifact.path} is no longer what was mounted",
        hint="mount it again",
    )


@dataclass(slots=True)
class _Source:
    """A source file on its way: what it is, and its facts or why there are none.

    `waiting` is where its encoded facts are until the turn of the file has come; `report` holds them on its turn.
    """

    entry: Entry
    language: LanguageName
    settled: bool = False
    is_read: bool = False
    report: FileReport | None = None
    waiting: int | None = None
    problems: Sequence[Problem] = ()
    fault: Limitation | None = None


@dataclass(slots=True)
class _Run:
    """One analysis."""

    artifact: Artifact
    container: AnyContainer
    facts: FactFileWriter
    progress: Progress
    spool: Spool
    tree: Tree = field(init=False)
    dataset: Dataset = field(init=False)
    contents: dict[str, Content] = field(default_factory=dict[str, Content])
    links: dict[str, str | None] = field(default_factory=dict[str, str | None])
    sources: dict[str, _Source] = field(default_factory=dict[str, _Source])
    limitations: list[Limitation] = field(default_factory=list[Limitation])

    def read(self) -> None:
        """Digest what is no source, follow links, and list the source files."""
        from affidavit.analyzers.javascript.languages import language_of

        self.tree = Tree(self.container.entries)
        self.dataset = Dataset(
            self.artifact.subject.digest, Resolver(self.tree, self._read_package), self.facts, self.spool
        )
        self.limitations.extend(self.container.limitations)
        for entry in self.container.entries:
            if entry.kind == "link":
                self.links[entry.path], fault = self.tree.follow(entry)
                self._note(fault)
            elif entry.kind == "file":
                language = language_of(entry.path)
                if language is None and is_script(self.container, entry):
                    language = "javascript"
                if language is None:
                    self._keep(entry, examine(self.container, entry))
                else:
                    self.sources[entry.path] = _Source(entry, language)
                self.dataset.expect(entry.path, "javascript-module" if language else kind_of(entry.path))

    def parse(self, processes: int | None, allowance: Allowance | None) -> None:
        """Parse every source file in other processes, and meanwhile resolve and write what they found.

        References are written by path, whatever the order in which the processes are done.
        """
        from affidavit.analyzers.javascript.languages import LANGUAGES

        sources = list(self.sources.values())

        def load(index: int) -> bytes | None:
            return self._load(sources[index])

        jobs = [
            Job(
                index=index,
                language=LANGUAGES.index(source.language),
                size=source.entry.size,
                load=load,
            )
            for index, source in enumerate(sources)
        ]
        self.progress(0, len(sources), "parsing")
        with closing(parse_all(jobs, processes=processes, allowance=allowance)) as outcomes:
            written = 0
            for done, outcome in enumerate(outcomes, 1):
                source = sources[outcome.index]
                self._settle(source, outcome)
                written = self._write_settled(sources, written)
                if source.report is not None:
                    source.waiting = self.spool.keep(outcome.body)
                    source.report = None
                self.progress(done, len(sources), "parsing")
        self._write_settled(sources, written)
        self.progress(len(sources), len(sources), "parsing")

    def _write_settled(self, sources: list[_Source], written: int) -> int:
        """Write the references of the files whose turn has come; how many files that makes."""
        while written < len(sources) and sources[written].settled:
            source = sources[written]
            if source.waiting is not None:
                source.report = decode(self.spool.read(source.waiting))
            if source.report is not None:
                self.dataset.add_references(source.entry.path, source.report)
            source.report = source.waiting = None
            written += 1
        return written

    def _load(self, source: _Source) -> bytes | None:
        data, content = load(self.container, source.entry, limit=MAX_SOURCE)
        if source.entry.path not in self.contents:
            self._keep(source.entry, content)
        if data is None:
            source.fault = content.fault
            source.settled = True
        return data

    def _keep(self, entry: Entry, content: Content) -> None:
        self.contents[entry.path] = content
        self._note(content.fault)

    def _note(self, fault: Limitation | None) -> None:
        if fault is not None:
            self.limitations.append(fault)

    def _settle(self, source: _Source, outcome: Outcome) -> None:
        path = source.entry.path
        if outcome.state == "facts":
            try:
                report = decode(outcome.body)
            except (ValueError, TypeError, LookupError, AttributeError):
                source.fault = limitation("parse-failed", path, "its parser process answered nonsense")
            else:
                self._accept(source, report)
        elif outcome.state == "timed-out":
            source.fault = limitation("parse-timed-out", path, outcome.reason)
        else:
            source.fault = limitation("parse-failed", path, outcome.reason)
        source.settled = True
        self._note(source.fault)

    def _accept(self, source: _Source, report: FileReport) -> None:
        path = source.entry.path
        if report.encoding == "utf-16":
            source.fault = limitation(
                "encoding", path, "UTF-16, which no JavaScript engine loads as a module"
            )
            return
        source.is_read, source.report = True, report
        source.problems = report.problems
        if report.encoding == "invalid":
            message = f"not UTF-8 at byte {report.invalid_at}; read as Node.js reads it, each bad sequence as U+FFFD"
            self._note(limitation("encoding", path, message))
        if report.problems:
            first = report.problems[0]
            many = "one range" if len(report.problems) == 1 else f"{len(report.problems)} ranges, the first"
            message = f"{many} at line {first.line}, column {first.column}"
            self._note(limitation("parse-error", path, message))

    def check_content(self) -> None:
        """Compare what was read with what was identified (the digest of a plain archive is held by its signature)."""
        if self.container.format == "asar":
            return
        contents: dict[str, str] = {}
        for path, content in self.contents.items():
            if content.sha256 is not None:
                contents[path] = f"sha256:{content.sha256}"
            else:
                contents[path] = content.fault.code if content.fault else ""
        if manifest_digest(self.container, contents) != self.artifact.subject.digest:
            raise _changed(self.artifact)

    def finish(self) -> Analysis:
        """Write the rows of files and modules, and say what was examined."""
        for entry in self.container.entries:
            self.dataset.add_file(self._file_row(entry), self._state(entry.path))
        self.dataset.finish()
        return self._analysis()

    def _read_package(self, path: str) -> dict[str, Any]:
        try:
            value = parse_package(read_entry(self.container, self.tree.entry(path), limit=_MAX_PACKAGE))
        except EntryError as error:
            self._note(error.limitation)
            return {}
        if value is None:
            self._note(
                limitation("json-invalid", path, "no JSON object; taken as empty where modules are resolved")
            )
        return value or {}

    def _state(self, path: str) -> str:
        source = self.sources.get(path)
        if source is None or not source.is_read:
            return "complete" if source is None and self._is_read(path) else "unknown"
        return "partial" if source.problems else "complete"

    def _is_read(self, path: str) -> bool:
        content = self.contents.get(path)
        return content is not None and content.sha256 is not None

    def _status(self, entry: Entry) -> FileStatus:
        source = self.sources.get(entry.path)
        if source is not None:
            if not source.is_read:
                return "limited"
            return "partial" if source.problems else "parsed"
        return "limited" if entry.kind == "file" and not self._is_read(entry.path) else "listed"

    def _file_row(self, entry: Entry) -> FilesItem:
        source = self.sources.get(entry.path)
        content = self.contents.get(entry.path)
        kind = "javascript-module" if source else kind_of(entry.path)
        return {
            "path": entry.path,
            "kind": kind if entry.kind == "file" else entry.kind,
            "language": source.language if source else None,
            "status": self._status(entry),
            "size": entry.size,
            "sha256": content.sha256 if content else None,
            "executable": entry.executable,
            "unpacked": entry.unpacked,
            "link": self.links.get(entry.path),
            "integrity": content.integrity if content else "undeclared",
            "problems": problems_of(source.problems) if source else [],
        }

    def _analysis(self) -> Analysis:
        limitations = sorted(set(self.limitations), key=lambda one: (one.place, one.code, one.message))
        # What was refused, could not be read or could not be parsed. A wrong encoding alone loses nothing, and what was
        # skipped (version control, pipes, replaced members) is no part of the artifact.
        unknown = {one.place for one in limitations if one.code not in _HARMLESS}
        unknown |= {path for path, source in self.sources.items() if not source.is_read and source.fault}
        too_large = {one.place for one in limitations if one.code == "entry-too-large"}
        unknown -= too_large
        coverage = Coverage(
            state="partial" if too_large or unknown else "complete",
            selection="all source files outside of version control",
            examined=sum(source.is_read for source in self.sources.values()),
            omitted=len(too_large),
            unknown=len(unknown),
            bounds={"entries": MAX_ENTRIES, "source-bytes": MAX_SOURCE},
        )
        summary = {
            "format": self.container.format,
            "entries": len(self.container.entries),
            "bytes": sum(entry.size for entry in self.container.entries),
            "sources": len(self.sources),
            "modules": self.dataset.modules,
            "references": self.dataset.references,
            "decoders": dict(DECODERS),
        }
        return Analysis(summary=summary, coverage=coverage, limitations=_bounded(limitations))


def parse_package(data: bytes) -> dict[str, Any] | None:
    """The object in a package.json as Node.js reads it (a BOM is fine, the last of equal keys counts), else None."""
    try:
        value: object = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _bounded(limitations: list[Limitation]) -> tuple[Limitation, ...]:
    if len(limitations) <= MAX_LIMITATIONS:
        return tuple(limitations)
    kept = limitations[: MAX_LIMITATIONS - 1]
    more = len(limitations) - len(kept)
    return (*kept, Limitation(code="entry-skipped", place="", message=f"and {more:,} more limitations"))
