"""From a file to a dataset, whatever the analyzer: identify, analyse once, record, and answer queries.

The record of the analysis is the parent of every query's record, so what a page rests on can be followed to the bytes.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from affidavit.analyzers.parts import PartCollection, PartGraphs, Parts
from affidavit.errors import AffidavitError, FailedError, NotFoundError
from affidavit.evidence.record import Authority, JsonValue, Producer, Record, Subject, Success
from affidavit.extensions import (
    Analyzer,
    Artifact,
    GraphAnalyzer,
    ImportingAnalyzer,
    PartAnalyzer,
    Progress,
    load_analyzers,
)
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import Collection, CollectionSpec, ParentRef
from affidavit.facts.factfile import FactFile, FactFileWriter, FactKey, FactStore, analysis_meta
from affidavit.facts.graph import FactGraphs, GraphSource, GraphSpec, ResidentGraphs
from affidavit.namespaces.datasets.collections import collection_namespace
from affidavit.namespaces.datasets.graphs import graph_operations
from affidavit.namespaces.operation import Namespace

__all__ = ["Analysed", "Datasets", "Place"]

_HEAD_BYTES = 4096
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a dataset comes from, as its mount keeps it.

    Attributes:
        name: the mount's name, for messages.
        analyzer: the analyzer's name.
        path: the file or folder.
        subject: digest and format at the time of mounting.
        signature: what told cheaply, at that time, that it was unchanged.
        evidence_id: the record of the analysis.
    """

    name: str
    analyzer: str
    path: Path
    subject: Subject
    signature: str
    evidence_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """A finished analysis: the artifact, its facts, and the record to keep."""

    analyzer: Analyzer
    artifact: Artifact
    facts: FactFile
    record: Record


@dataclass(slots=True, kw_only=True)
class _Dataset:
    analyzer: Analyzer
    place: Place
    facts: FactFile
    parent: ParentRef
    cache: QueryCache = field(default_factory=QueryCache)
    parts: Parts | None = None
    looked: float | None = None

    def collection(self, spec: CollectionSpec) -> Collection:
        """The collection, after a look at the artifact; one look a second, for that of 8,000 files takes 30 ms."""
        self.check()
        if self.parts is not None:
            return PartCollection(spec, self.parts)
        return Collection(spec, self.facts, self.parent, self.cache)

    def check(self) -> None:
        """Look whether the artifact is what was mounted. Raises `FailedError(artifact-changed)`."""
        now = time.monotonic()
        if self.looked is None or now - self.looked > _LOOK_SECONDS:
            self._look()
            self.looked = now

    def _look(self) -> None:
        try:
            same = self.analyzer.signature(self.place.path) == self.place.signature
        except (AffidavitError, OSError):
            same = False
        if not same:
            raise _changed(self.place)


class Datasets:
    """The datasets of one workspace.

    Args:
        folder: where fact files are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._facts = FactStore(folder)
        self._open: dict[Place, _Dataset] = {}
        self._analyzers: dict[str, Analyzer] | None = None
        self._graphs = ResidentGraphs()

    def analyse(
        self, path: Path, *, named: str | None = None, known: Iterable[Place] = (), progress: Progress
    ) -> Analysed:
        """Analyse a file or folder; the same bytes are analysed once.

        Args:
            path: the artifact.
            named: the analyzer to take; by default the one that reads files of this kind.
            known: earlier places: where nothing about a file changed since, it is not read again for its digest.
            progress: told how far the analysis is.

        Raises:
            NotFoundError: `artifact-not-found`.
            FailedError: `artifact-unsupported`, `analysis-failed`.
            VerificationError: `artifact-damaged`.
        """
        analyzer = self._analyzer_for(path, named)
        with _interruptible():
            artifact = _identified(analyzer, path, known)
            facts = self._made(analyzer, artifact, progress)
        record = Record(
            kind="observation",
            operation=f"{analyzer.name}.analyze/1",
            parameters={},
            outcome=Success(result={"summary": facts.summary, "facts": facts.digest}),
            producer=Producer(name=analyzer.name, version=analyzer.version),
            authority=_authority(analyzer),
            confidence="observed",
            subject=artifact.subject,
            coverage=facts.coverage,
            limitations=facts.limitations,
        )
        return Analysed(analyzer=analyzer, artifact=artifact, facts=facts, record=record)

    def namespace(self, place: Place, progress: Progress) -> Namespace:
        """The collections of a dataset. Facts are opened at the first query, and made again when they were deleted.

        Raises:
            FailedError: `artifact-unsupported`, when the analyzer is no longer installed.
        """
        analyzer = self._loaded().get(place.analyzer)
        if analyzer is None:
            raise FailedError(
                "artifact-unsupported",
                f"mount {place.name} needs the analyzer {place.analyzer}, which is not installed",
                hint=f"install it, or `affidavit mount remove {place.name}`",
            )

        def opened(spec: CollectionSpec) -> Callable[[], Collection]:
            return lambda: self._dataset(place, analyzer, progress).collection(spec)

        def checked() -> _Dataset:
            dataset = self._dataset(place, analyzer, progress)
            dataset.check()
            return dataset

        producer = Producer(name=analyzer.name, version=analyzer.version)
        authority = _authority(analyzer)
        graphs = {
            name: graph_operations(
                spec,
                _source(spec, analyzer, checked),
                producer=producer,
                resident=self._graphs,
                authority=authority,
            )
            for name, spec in _graphs(analyzer).items()
        }
        collections = {
            spec.name: collection_namespace(spec, opened(spec), producer=producer, authority=authority)
            for spec in analyzer.collections
        }
        return Namespace(
            name=place.name,
            doc=f"{place.subject.format} {place.subject.digest[:19]}",
            operations=graphs.get("", {}),
            children={
                name: replace(one, operations={**one.operations, **graphs.get(name, {})})
                for name, one in collections.items()
            },
        )

    def complete(self, place: Place, progress: Progress) -> Mapping[str, JsonValue]:
        """Look into everything of a dataset that was only outlined; its summary.

        Raises:
            FailedError: `artifact-changed`, `analysis-failed`.
        """
        dataset = self._dataset(place, self._loaded()[place.analyzer], progress)
        dataset.check()
        if dataset.parts is not None:
            with _interruptible():
                dataset.parts.everything(progress)
        return dataset.facts.summary

    def close(self) -> None:
        """Close every fact file."""
        for dataset in self._open.values():
            dataset.facts.close()
            if dataset.parts is not None:
                dataset.parts.close()
        self._open.clear()
        self._graphs.clear()

    def _dataset(self, place: Place, analyzer: Analyzer, progress: Progress) -> _Dataset:
        if place in self._open:
            return self._open[place]
        facts = self._facts.get(_first_key(analyzer, place.subject.digest), analyzer.collections)
        if facts is None:
            artifact = analyzer.identify(place.path)
            if artifact.subject != place.subject:
                raise _changed(place)
            facts = self._made(analyzer, artifact, progress)
        parent = ParentRef(
            evidence_id=place.evidence_id,
            subject=place.subject,
            coverage=facts.coverage,
            limitations=facts.limitations,
        )
        dataset = _Dataset(analyzer=analyzer, place=place, facts=facts, parent=parent)
        if isinstance(analyzer, PartAnalyzer):
            artifact = Artifact(path=place.path, subject=place.subject, signature=place.signature)
            key = _key(analyzer, place.subject.digest)
            dataset.parts = Parts(place.name, analyzer, artifact, key, facts, parent, self._facts, progress)
        self._open[place] = dataset
        return dataset

    def _made(self, analyzer: Analyzer, artifact: Artifact, progress: Progress) -> FactFile:
        key = _first_key(analyzer, artifact.subject.digest)
        kept = self._facts.get(key, analyzer.collections)
        if kept is not None:
            return kept

        def fill(writer: FactFileWriter) -> Mapping[str, JsonValue]:
            begin = analyzer.outline if isinstance(analyzer, PartAnalyzer) else analyzer.analyze
            analysis = begin(artifact, writer, progress)
            meta = analysis_meta(
                summary=analysis.summary, coverage=analysis.coverage, limitations=analysis.limitations
            )
            return meta if analysis.kept is None else meta | {"kept": analysis.kept}

        return self._facts.build(key, analyzer.collections, fill)

    def _analyzer_for(self, path: Path, named: str | None) -> Analyzer:
        if not path.exists():
            raise NotFoundError("artifact-not-found", f"no file or folder at {path}", hint="check the path")
        head = b""
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        for analyzer in self._loaded().values():
            if analyzer.name == named or (named is None and analyzer.detect(path, head)):
                return analyzer
        known = ", ".join(self._loaded()) or "none"
        raise FailedError(
            "artifact-unsupported",
            f"no analyzer reads {path.name}",
            hint=f"installed analyzers: {known}; `affidavit doctor` says which could not be loaded",
        )

    def _loaded(self) -> dict[str, Analyzer]:
        if self._analyzers is None:
            usable = [loaded for _, loaded in load_analyzers() if not isinstance(loaded, Exception)]
            self._analyzers = {analyzer.name: analyzer for analyzer in usable}
        return self._analyzers


def _identified(analyzer: Analyzer, path: Path, known: Iterable[Place]) -> Artifact:
    signature = analyzer.signature(path)
    for place in known:
        if place.path == path and place.signature == signature and place.analyzer == analyzer.name:
            return Artifact(path=path, subject=place.subject, signature=signature)
    return analyzer.identify(path)


def _graphs(analyzer: Analyzer) -> Mapping[str, GraphSpec]:
    return analyzer.graphs if isinstance(analyzer, GraphAnalyzer) else {}


def _authority(analyzer: Analyzer) -> Authority:
    return analyzer.authority if isinstance(analyzer, ImportingAnalyzer) else "static-analysis"


def _key(analyzer: Analyzer, artifact: str) -> FactKey:
    return FactKey(artifact=artifact, analyzer=analyzer.name, version=analyzer.version)


def _first_key(analyzer: Analyzer, artifact: str) -> FactKey:
    """The key of what is made when the artifact is mounted."""
    key = _key(analyzer, artifact)
    return replace(key, options={"outline": True}) if isinstance(analyzer, PartAnalyzer) else key


def _source(spec: GraphSpec, analyzer: Analyzer, checked: Callable[[], _Dataset]) -> GraphSource:
    """The graphs of a dataset, which is asked for at each query."""

    def parts() -> Parts:
        found = checked().parts
        assert found is not None
        return found

    def facts() -> tuple[FactFile, ParentRef]:
        dataset = checked()
        return dataset.facts, dataset.parent

    return PartGraphs(spec, parts) if isinstance(analyzer, PartAnalyzer) else FactGraphs(spec, facts)


def _changed(place: Place) -> FailedError:
    return FailedError(
        "artifact-changed",
        f"the artifact of mount {place.name} is no longer what was mounted",
        hint=f"mount it again: affidavit mount add {place.name}=...",
        details={"artifact": place.subject.digest},
    )


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C stop long work at once also inside an event loop, whose own handler would wait for the next await."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
