"""What others can add, on one page. Our own analyzers come in through the same door as a stranger's.

| Protocol   | what it adds                                   | entry-point group      |
|------------|------------------------------------------------|------------------------|
| `Analyzer` | turns files of one kind into a dataset         | `affidavit.analyzers`  |

An extension is loaded when it is first needed; one that cannot be loaded is a `doctor` finding, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from affidavit.evidence.record import Coverage, JsonValue, Limitation, Subject
from affidavit.facts.collection import CollectionSpec
from affidavit.facts.factfile import FactFileWriter

__all__ = ["ANALYZERS", "Analysis", "Analyzer", "Artifact", "Progress", "load_analyzers"]

ANALYZERS = "affidavit.analyzers"
"""Entry-point group: each entry names a callable without arguments that makes an `Analyzer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder, identified by its bytes.

    Attributes:
        path: where it is now. Never enters a record.
        subject: digest and format. For folders, tarballs and archives with companions the digest is that of a
            manifest of paths, modes, links and content.
        signature: what tells cheaply that nothing changed (sizes, times, inodes); opaque to all but its analyzer.
    """

    path: Path
    subject: Subject
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analyzer says of a finished analysis; becomes the parent record of every query."""

    summary: Mapping[str, JsonValue]
    coverage: Coverage
    limitations: tuple[Limitation, ...] = field(default_factory=tuple)


Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with (done, total, what); may raise `KeyboardInterrupt` to interrupt."""


class Analyzer(Protocol):
    """Turns files of one kind into immutable facts. No target code is ever run.

    Attributes:
        name: the analyzer's name; its operations are called `name.collection.verb/N`.
        version: contract version of the *facts*: changes whenever the same bytes may give other rows.
        collections: the typed collections of its datasets.
    """

    name: str
    version: str
    collections: tuple[CollectionSpec, ...]

    def detect(self, path: Path, head: bytes) -> bool:
        """Whether this analyzer reads the file (its first 4 KiB in `head`, empty for folders)."""
        ...

    def identify(self, path: Path) -> Artifact:
        """Digest the artifact. Raises `NotFoundError`, `VerificationError(artifact-damaged)`."""
        ...

    def signature(self, path: Path) -> str:
        """The cheap signature alone, to notice that the artifact changed."""
        ...

    def analyze(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write every row. Either completes or raises: time never truncates facts."""
        ...


def load_analyzers() -> Iterator[tuple[EntryPoint, Analyzer | Exception]]:
    """Every registered analyzer in order of name, or what went wrong with it: one fault must not stop the others."""
    for point in sorted(entry_points(group=ANALYZERS), key=lambda point: point.name):
        try:
            yield point, cast("Callable[[], Analyzer]", point.load())()
        except Exception as error:
            yield point, error
