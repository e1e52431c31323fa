"""The shapes that graph queries take and return, whatever the graph is of.

Like those of `facts.page` these are plain data: what is hashed, what crosses into a script and what `--json` prints.
"""

from __future__ import annotations

from typing import Generic, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

from affidavit.facts.graph.model import ExitKind
from affidavit.facts.page import CoverageDict, Source

__all__ = [
    "BlockTarget",
    "Certificate",
    "DominatorRow",
    "ExitTarget",
    "GraphPage",
    "GraphReply",
    "LoopRow",
    "MissingId",
    "PassedRow",
    "PathsRow",
    "ReachableRow",
]

Row = TypeVar("Row")


class BlockTarget(TypedDict):
    """The block with this id."""

    kind: Literal["block"]
    id: str


class ExitTarget(TypedDict):
    """Any block at which control leaves in one of these ways; omitted: in any way but `unresolved`."""

    kind: Literal["exit"]
    exit: NotRequired[list[ExitKind]]


class GraphPage(TypedDict):
    """Where this page stands among the rows.

    `total` is None where it is not known: an id was missing, or `paths` ended at `k` and there may be more.
    `next_cursor` is outside the hash.
    """

    offset: int
    returned: int
    total: int | None
    exhausted: bool
    shortened: bool
    next_cursor: str | None


class Certificate(TypedDict):
    """Where the search ended. With empty `blocks` and `edges`, nothing was excluded that it could have used.

    `reached` counts the blocks that it reached; `blocks` and `edges` are the avoided ones that it met: every way on
    passes one of them. `unresolved` names the first 100 reached blocks from which control may go where no edge says.
    """

    reached: int
    blocks: list[str]
    edges: list[str]
    unresolved: list[str]
    unresolved_omitted: int


class MissingId(TypedDict):
    """An id that is not in the graph, and the argument that names it."""

    argument: Literal["source", "target", "block", "avoid", "avoid_edges"]
    id: str


class GraphReply(TypedDict, Generic[Row]):
    """One page of what a graph query found.

    `found`: the rows say what. `not-found`: there is nothing, under these exclusions and as far as `coverage` goes.
    `unknown`: ids in `missing` are not in the graph, so nothing is said. `coverage` is that of the graph: blocks
    examined, and as unknown those from which control may go where no edge says. `certificate` says where the search
    ended; None where the rows speak for themselves.
    """

    status: Literal["found", "not-found", "unknown"]
    rows: list[Row]
    evidence_id: str
    source: Source
    coverage: CoverageDict
    certificate: Certificate | None
    missing: list[MissingId]
    page: GraphPage


class PathsRow(TypedDict):
    """One path: its place among the paths found, its blocks and the edges between them."""

    number: int
    length: int
    blocks: list[str]
    edges: list[str]


class ReachableRow(TypedDict):
    """A block and how many edges away it is."""

    block: str
    distance: int


class PassedRow(TypedDict):
    """A block or edge that every path passes, and how many edges of a shortest path come before it."""

    kind: Literal["block", "edge"]
    id: str
    step_index: int


class DominatorRow(TypedDict):
    """A block, its nearest dominator other than itself (None: it has no other), and how many it has with itself."""

    block: str
    immediate: str | None
    depth: int


class LoopRow(TypedDict):
    """A natural loop, or an irreducible part: blocks that reach each other and have no header before all others.

    `entries` are the blocks at which it is entered, `back_edges` the edges that close a natural loop, `parent` the
    header of the natural loop around it and `depth` how many loops it is in with itself (None for irreducible parts).
    """

    kind: Literal["natural", "irreducible"]
    header: str | None
    entries: list[str]
    blocks: list[str]
    back_edges: list[str]
    parent: str | None
    depth: int | None
