"""What others can add, on one page. Our own analyzers come in through the same door as a stranger's.

| Protocol       | what it adds                                      | entry-point group      |
|----------------|---------------------------------------------------|------------------------|
| `Analyzer`     | turns files of one kind into a dataset            | `affidavit.analyzers`  |
| `MountAdapter` | turns what a URI names into a namespace of calls  | `affidavit.mounts`     |
| `Embedder`     | turns texts into vectors, for search by meaning   | `affidavit.embedders`  |

An extension is loaded when it is first needed; one that cannot be loaded is a `doctor` finding, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from affidavit.evidence.record import Authority, Coverage, JsonValue, Limitation, Subject
from affidavit.facts.collection import CollectionSpec
from affidavit.facts.factfile import FactFileWriter
from affidavit.facts.graph import GraphSpec
from affidavit.namespaces.operation import Namespace

__all__ = [
    "ANALYZERS",
    "EMBEDDERS",
    "MOUNTS",
    "Analysis",
    "Analyzer",
    "Artifact",
    "Description",
    "Embedder",
    "GraphAnalyzer",
    "HelperModule",
    "ImportingAnalyzer",
    "Mount",
    "MountAdapter",
    "PartAnalyzer",
    "Progress",
    "Snapshot",
    "Source",
    "analyzer_scheme",
    "load_analyzers",
    "load_embedders",
    "load_mounts",
]

ANALYZERS = "affidavit.analyzers"
"""Entry-point group: each entry names a callable without arguments that makes an `Analyzer`."""

MOUNTS = "affidavit.mounts"
"""Entry-point group: each entry names a callable without arguments that makes a `MountAdapter`."""


EMBEDDERS = "affidavit.embedders"
"""Entry-point group: each entry names a callable without arguments that makes an `Embedder`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file or folder, identified by its bytes.

    Attributes:
        path: where it is now. Never enters a record.
        subject: digest and format. For folders, tarballs and archives with companions the digest is that of a
            manifest of paths, modes, links and content.
        signature: what tells cheaply that nothing changed (sizes, times, inodes); opaque to all but its analyzer.
        opened: what the analyzer read to identify it and can go on with when it analyzes; it is let go together with
            the artifact.
    """

    path: Path
    subject: Subject
    signature: str
    opened: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analyzer says of a finished analysis; becomes the parent record of every query.

    `kept` is what a `PartAnalyzer` wants back when it looks into parts. It stands beside the facts, in no record.
    """

    summary: Mapping[str, JsonValue]
    coverage: Coverage
    limitations: tuple[Limitation, ...] = field(default_factory=tuple)
    kept: JsonValue = None


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


@runtime_checkable
class GraphAnalyzer(Analyzer, Protocol):
    """An analyzer whose datasets have graphs.

    Attributes:
        graphs: what they are made of, by the collection whose operations they join; "" for the dataset itself.
    """

    graphs: Mapping[str, GraphSpec]


@runtime_checkable
class ImportingAnalyzer(Analyzer, Protocol):
    """An analyzer whose facts others found: its records say so.

    Attributes:
        authority: what its facts rest on, where that is not its own analysis.
    """

    authority: Authority


@runtime_checkable
class PartAnalyzer(Analyzer, Protocol):
    """An analyzer that outlines an artifact first, and looks into its parts as they are asked for.

    An outline has all rows of some collections, its parts among them, and no rows of the others. What is said of a part
    when it is asked for is what `analyze` says of it.

    Attributes:
        parts: the collection whose keys name the parts. Its full items are details.
        detailed: the collections that an outline leaves empty; for each the field that names the part of a row.
    """

    parts: str
    detailed: Mapping[str, str]

    def outline(self, artifact: Artifact, facts: FactFileWriter, progress: Progress) -> Analysis:
        """Write the rows of an outline, with the same coverage and limitations that `analyze` comes to."""
        ...

    def detail(
        self,
        artifact: Artifact,
        kept: JsonValue,
        parts: Sequence[str] | None,
        facts: FactFileWriter,
        progress: Progress,
    ) -> None:
        """Write every row of these parts, or of all (None), and nothing of others; `kept` is the outline's."""
        ...

    def at_once(self, summary: Mapping[str, JsonValue]) -> bool:
        """Whether everything may be looked into while a query waits; from the summary of the outline."""
        ...

    def part_of(self, key: str) -> str | None:
        """The part that a row of a detailed collection belongs to, from its key; None for what is no such key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a person mounted, as an adapter sees it.

    Attributes:
        name: the namespace's Python name below `df.tool` or `df.db`: an alias of this workspace. It never enters a
            record: contract names and producers come from what is mounted.
        uri: what stands behind it, as it was written, scheme included: `mcp+stdio:python server.py`.
        folder: the absolute folder in which relative paths of the URI start, and in which programs are started.
        options: what was said beside the URI, by option name. They are kept in the log as they are, so they
            hold no secret: only the name of an environment variable that does.
        secret: the value of an environment variable that the options name, read when it is called and never
            kept by the adapter. What it gave is redacted from every value, error and description of this mount.
            Raises `UsageError(secret-missing)` when the variable is not set.
        tell: tells the person something of this mount that is no failure of a call (the server offers other tools
            now); each notice is shown once.
        cache: an absolute folder for what may be derived from the source again (an index), shared by the mounts of
            a tenant. It need not be there yet. What is kept there is named by content, never by the mount's name.
    """

    name: str
    uri: str
    folder: Path
    options: Mapping[str, JsonValue]
    secret: Callable[[str], str]
    tell: Callable[[str], None]
    cache: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Which state of a source answers, and how one knows.

    Attributes:
        identity: equal identities answer equal calls equally; empty where the source cannot tell.
        basis: what the identity is taken from, or why there is none, as a phrase: `SHA-256 of the file`,
            `a live server: each reply stands for the moment of its call`.
    """

    identity: str
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperModule:
    """Hand-written functions that a mount brings into `df.lib`, for what scripts would write again and again.

    Attributes:
        key: what messages call it: a file's path, or a word of the adapter.
        code: Python source that imports and defines. Each public `async def` is a helper; its parameters and result are
            annotated with built-in types, `Any`, `Literal`, `Mapping`, `Sequence` or TypedDicts of the module. It calls
            `df` as scripts do. At most 64 KiB.
    """

    key: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a source said of itself when a person mounted it.

    It is kept with the mount in the log, and everything that scripts are checked against is made from it alone: so a
    session opens without a connection, and its stubs are the same each time. A source that changed is mounted again.

    Attributes:
        contents: JSON that only the adapter reads (the tools with their schemas, the tables with their columns): at
            most 64 MiB. No secrets, no paths of this machine, nothing that changes when the source does not.
        summary: one line for people: `everything 2.0.0: 13 tools`.
        snapshot: which state answered.
        limitations: what is there and cannot be offered, each with its place (`tool deep-search`).
        helpers: what it brings into `df.lib`; `Source.name` is what its calls are called by.
    """

    contents: JsonValue
    summary: str
    snapshot: Snapshot
    limitations: tuple[Limitation, ...] = ()
    helpers: tuple[HelperModule, ...] = ()


class Mount(Protocol):
    """One mount that is open in this process. Nothing is connected before the first call.

    Its handlers run in the event loop beside those of every other mount and session: they await, or use a thread,
    for whatever takes longer than a millisecond; they bound what they hold of a reply; when they are cancelled the
    far side is told; they raise `AffidavitError` alone (`tool-failed` for what the far side reports, `retryable`
    when the same call may succeed later).

    Attributes:
        namespace: the operations, named by `Source.name`, made from the description alone.
    """

    @property
    def namespace(self) -> Namespace:
        """The operations."""
        ...

    async def snapshot(self) -> Snapshot:
        """Ask the source which state answers now. Raises `AffidavitError` when it cannot be reached."""
        ...

    async def close(self) -> None:
        """Release connections and processes. Called once, also after failures; calls under way end with an error."""
        ...


class MountAdapter(Protocol):
    """Turns URIs of one kind into namespaces: `df.tool.NAME` or `df.db.NAME`.

    An adapter keeps no state: what lives as long as a mount stands in the `Mount` that `open` makes. The life of one:

    ```
    affidavit mount add NAME=URI   probe -> describe -> the description is kept in the log
    a session opens                open(source, contents) -> namespace: operations, stubs, schemas; no connection
    a script calls                 a handler of an operation connects, calls, replies; the broker records
    the workspace closes           close
    ```

    Operations are made by `namespaces.schema.operation_from_schema` (a contract given as JSON Schema),
    `namespaces.functions.operation_from_function` (a typed function) or `namespaces.datasets` (collections). Rules:

    - The contract name is `KIND.what-is-mounted.operation/VERSION`: never the alias, never a path of this machine.
    - The producer is the adapter's name and contract version with those of the far side, where it tells them.
    - Effects: `read` for what provably changes nothing, `write` for what a person must grant by itself, `external` for
      the rest. Mounting by a person grants the mount's `read` and `external` operations.
    - What a reply rests on (a file's digest, a snapshot) is the `subject` of its `Reply`.

    Attributes:
        name: kind of its mounts (`mcp`, `sql`), the first part of its contract names.
        version: contract version: changes whenever the same reply of the same source may be recorded otherwise.
        place: where its namespaces stand: `db` for typed collections, `tool` for everything else.
    """

    name: str
    version: str
    place: Literal["db", "tool"]

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI is this adapter's, without connecting. Exactly one adapter may say so.

        Args:
            uri: as it was written. Adapters own the URIs with their scheme (`mcp+stdio:`).
            head: the first 4 KiB of the file when the URI is the path of one, else empty. An adapter may claim files by
                their bytes or their ending; analyzers are asked about those that no adapter claims.
        """
        ...

    async def describe(self, source: Source) -> Description:
        """Ask the source what it offers, and let go of it again. Called when a person mounts, never by a script.

        Raises:
            AffidavitError: `mount-invalid` for a URI or option that cannot be, `extra-missing`, `mount-failed` when
                the source does not answer as it should.
        """
        ...

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the mount from its description, without connecting.

        Raises:
            AffidavitError: when the contents were written by a version of the adapter that this one does not read.
        """
        ...


class Embedder(Protocol):
    """Gives texts vectors, so that texts of like meaning have vectors of like direction. Deterministic, and offline.

    Attributes:
        name: what options call it.
        dimensions: numbers of one vector.
    """

    name: str
    dimensions: int

    @property
    def version(self) -> str:
        """Changes whenever the same text may get another vector."""
        ...

    def embed(self, texts: Sequence[str]) -> bytes:
        """The vectors of texts, one after the other: little-endian float32, `dimensions` for each.

        Raises:
            FailedError: `extra-missing`.
        """
        ...


def analyzer_scheme(uri: str) -> str | None:
    """The analyzer that a URI names as its scheme, as `graph` in `graph:./export.json`; None where it names none."""
    scheme, colon, _ = uri.partition(":")
    registered = bool(colon) and scheme.isidentifier() and entry_points(group=ANALYZERS, name=scheme)
    return scheme if registered else None


def load_analyzers() -> Iterator[tuple[EntryPoint, Analyzer | Exception]]:
    """Every registered analyzer in order of name, or what went wrong with it: one fault must not stop the others."""
    return _load(ANALYZERS)


def load_mounts() -> Iterator[tuple[EntryPoint, MountAdapter | Exception]]:
    """Every registered mount adapter in order of name, or what went wrong with it."""
    return _load(MOUNTS)


def load_embedders() -> Iterator[tuple[EntryPoint, Embedder | Exception]]:
    """Every registered embedder in order of name, or what went wrong with it."""
    return _load(EMBEDDERS)


def _load(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            yield point, point.load()()
        except Exception as error:
            yield point, error
