"""The JavaScript analyzer: containers in, facts out. No target code is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, overload

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
from affidavit.analyzers.javascript.parsing.wire import FileReport, decode
from affidavit.analyzers.javascript.resolution.resolver import Resolver
from affidavit.analyzers.javascript.rows import COLLECTIONS, FilesItem, FileStatus
from affidavit.analyzers.javascript.standing import Standing
from affidavit.errors import FailedError
from affidavit.evidence.record import Coverage, Limitation
from affidavit.extensions import Analysis, Artifact, Progress

if TYPE_CHECKING:
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
class _Run:
    """One analysis."""

    artifact: Artifact
    container: AnyContainer
    facts: FactFileWriter
    progress: Progress
    spool: Spool
    tree: Tree = field(init=False)
    dataset: Dataset = field(init=False)
    standing: Standing = field(init=False)
    links: dict[str, str | None] = field(default_factory=dict[str, str | None])
    limitations: list[Limitation] = field(default_factory=list[Limitation])

    def read(self) -> None:
        """Digest what is no source, follow links, and list the source files."""
        from affidavit.analyzers.javascript.languages import language_of

        self.tree = Tree(self.container.entries)
        self.standing = Standing(len(self.container.entries))
        self.dataset = Dataset(
            self.artifact.subject.digest, Resolver(self.tree, self._read_package), self.facts, self.spool
        )
        self.limitations.extend(self.container.limitations)
        for number, entry in enumerate(self.container.entries):
            if entry.kind == "link":
                self.links[entry.path], fault = self.tree.follow(entry)
                self._note(fault)
            elif entry.kind == "file":
                language = language_of(entry.path)
                if language is None and is_script(self.container, entry):
                    language = "javascript"
                if language is None:
                    self._keep(number, examine(self.container, entry))
                else:
                    self.standing.is_source(number, language)
                self.dataset.expect(entry.path, "javascript-module" if language else kind_of(entry.path))

    def parse(self, processes: int | None, allowance: Allowance | None) -> None:
        """Parse every source file in other processes, and meanwhile resolve and write what they found.

        References are written by path, whatever the order in which the processes are done.
        """
        jobs = _Jobs(self.container.entries, self.standing, self._load)
        self.progress(0, len(jobs), "parsing")
        with closing(parse_all(jobs, processes=processes, allowance=allowance)) as outcomes:
            written = 0
            for done, outcome in enumerate(outcomes, 1):
                number = self.standing.sources[outcome.index]
                report = self._settle(number, outcome)
                if report is not None and outcome.index == written:
                    self.dataset.add_references(self.container.entries[number].path, report)
                    written += 1
                elif report is not None:
                    self.standing.wait(number, self.spool.keep(outcome.body))
                written = self._write_settled(written)
                self.progress(done, len(jobs), "parsing")
        self._write_settled(written)
        self.progress(len(jobs), len(jobs), "parsing")

    def _write_settled(self, written: int) -> int:
        """Write the references of the files whose turn has come; how many files that makes."""
        sources = self.standing.sources
        while written < len(sources) and self.standing.is_settled(sources[written]):
            number = sources[written]
            waiting = self.standing.waiting(number)
            if waiting is not None:
                path = self.container.entries[number].path
                self.dataset.add_references(path, decode(self.spool.read(waiting)))
            written += 1
        return written

    def _load(self, index: int) -> bytes | None:
        number = self.standing.sources[index]
        data, content = load(self.container, self.container.entries[number], limit=MAX_SOURCE)
        if not self.standing.has_content(number):
            self._keep(number, content)
        if data is None:
            self.standing.settle(number, fault=content.fault)
        return data

    def _keep(self, number: int, content: Content) -> None:
        self.standing.keep_content(number, content)
        self._note(content.fault)

    def _note(self, fault: Limitation | None) -> None:
        if fault is not None:
            self.limitations.append(fault)

    def _settle(self, number: int, outcome: Outcome) -> FileReport | None:
        path = self.container.entries[number].path
        report, fault = None, None
        if outcome.state == "facts":
            try:
                report = decode(outcome.body)
            except (ValueError, TypeError, LookupError, AttributeError):
                fault = limitation("parse-failed", path, "its parser process answered nonsense")
            else:
                fault = self._accept(number, path, report)
        elif outcome.state == "timed-out":
            fault = limitation("parse-timed-out", path, outcome.reason)
        else:
            fault = limitation("parse-failed", path, outcome.reason)
        self.standing.settle(number, fault=fault)
        self._note(fault)
        return report if fault is None else None

    def _accept(self, number: int, path: str, report: FileReport) -> Limitation | None:
        """Note how far a file was read, or say why it was not."""
        if report.encoding == "utf-16":
            return limitation("encoding", path, "UTF-16, which no JavaScript engine loads as a module")
        self.standing.parsed(number, report.problems)
        if report.encoding == "invalid":
            message = f"not UTF-8 at byte {report.invalid_at}; read as Node.js reads it, each bad sequence as U+FFFD"
            self._note(limitation("encoding", path, message))
        if report.problems:
            first = report.problems[0]
            many = "one range" if len(report.problems) == 1 else f"{len(report.problems)} ranges, the first"
            message = f"{many} at line {first.line}, column {first.column}"
            self._note(limitation("parse-error", path, message))
        return None

    def check_content(self) -> None:
        """Compare what was read with what was identified (the digest of a plain archive is held by its signature)."""
        if self.container.format == "asar":
            return
        contents: dict[str, str] = {}
        for number, entry in enumerate(self.container.entries):
            content = self.standing.content(number)
            if content is not None and content.sha256 is not None:
                contents[entry.path] = f"sha256:{content.sha256}"
            elif content is not None:
                contents[entry.path] = content.fault.code if content.fault else ""
        if manifest_digest(self.container, contents) != self.artifact.subject.digest:
            raise _changed(self.artifact)

    def finish(self) -> Analysis:
        """Write the rows of files and modules, and say what was examined."""
        for number, entry in enumerate(self.container.entries):
            self.dataset.add_file(self._file_row(number, entry), self._state(number))
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

    def _state(self, number: int) -> str:
        if self.standing.language(number) is None:
            return "complete" if self._is_read(number) else "unknown"
        if not self.standing.is_parsed(number):
            return "unknown"
        return "partial" if number in self.standing.problems else "complete"

    def _is_read(self, number: int) -> bool:
        content = self.standing.content(number)
        return content is not None and content.sha256 is not None

    def _status(self, number: int, entry: Entry) -> FileStatus:
        if self.standing.language(number) is not None:
            if not self.standing.is_parsed(number):
                return "limited"
            return "partial" if number in self.standing.problems else "parsed"
        return "limited" if entry.kind == "file" and not self._is_read(number) else "listed"

    def _file_row(self, number: int, entry: Entry) -> FilesItem:
        content = self.standing.content(number)
        language = self.standing.language(number)
        kind = "javascript-module" if language else kind_of(entry.path)
        return {
            "path": entry.path,
            "kind": kind if entry.kind == "file" else entry.kind,
            "language": language,
            "status": self._status(number, entry),
            "size": entry.size,
            "sha256": content.sha256 if content else None,
            "executable": entry.executable,
            "unpacked": entry.unpacked,
            "link": self.links.get(entry.path),
            "integrity": content.integrity if content else "undeclared",
            "problems": problems_of(self.standing.problems.get(number, ())),
        }

    def _analysis(self) -> Analysis:
        limitations = sorted(set(self.limitations), key=lambda one: (one.place, one.code, one.message))
        # What was refused, could not be read or could not be parsed. A wrong encoding alone loses nothing, and what was
        # skipped (version control, pipes, replaced members) is no part of the artifact.
        unknown = {one.place for one in limitations if one.code not in _HARMLESS}
        unknown |= {self.container.entries[number].path for number in self.standing.faults}
        too_large = {one.place for one in limitations if one.code == "entry-too-large"}
        unknown -= too_large
        coverage = Coverage(
            state="partial" if too_large or unknown else "complete",
            selection="all source files outside of version control",
            examined=sum(map(self.standing.is_parsed, self.standing.sources)),
            omitted=len(too_large),
            unknown=len(unknown),
            bounds={"entries": MAX_ENTRIES, "source-bytes": MAX_SOURCE},
        )
        summary = {
            "format": self.container.format,
            "entries": len(self.container.entries),
            "bytes": sum(entry.size for entry in self.container.entries),
            "sources": len(self.standing.sources),
            "modules": self.dataset.modules,
            "references": self.dataset.references,
            "decoders": dict(DECODERS),
        }
        return Analysis(summary=summary, coverage=coverage, limitations=_bounded(limitations))


class _Jobs(Sequence[Job]):
    """The source files of an artifact as jobs, made when they are asked for."""

    def __init__(
        self, entries: Sequence[Entry], standing: Standing, load: Callable[[int], bytes | None]
    ) -> None:
        self._entries = entries
        self._standing = standing
        self._load = load

    def __len__(self) -> int:
        return len(self._standing.sources)

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | Sequence[Job]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        from affidavit.analyzers.javascript.languages import LANGUAGES

        number = self._standing.sources[index]
        language = self._standing.language(number)
        assert language is not None, "a source has a language"
        size = self._entries[number].size
        return Job(index=index, language=LANGUAGES.index(language), size=size, load=self._load)


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
