"""The rows of an imported dataset, and the collections they make.

They have the fields of native rows where both can be known. Ids are those of the export below that of the function:
block `b3` of function `0x4010` is `0x4010/b3`, so that two functions may share a block. Where the blocks end is the
other tool's convention (some end one after each call).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from typing_extensions import TypedDict

from affidavit.facts.collection import CollectionSpec
from affidavit.facts.graph import Bounds, GraphSpec

__all__ = [
    "COLLECTIONS",
    "GRAPHS",
    "BlocksItem",
    "BlocksRow",
    "CallKind",
    "CallsRow",
    "EdgeKind",
    "EdgesRow",
    "Exit",
    "FunctionsItem",
    "FunctionsRow",
    "Status",
]

Exit: TypeAlias = Literal["return", "noreturn", "tail-call", "trap", "unresolved"]
EdgeKind: TypeAlias = Literal["taken", "fallthrough", "jump", "case", "default", "unwind"]
CallKind: TypeAlias = Literal["direct", "indirect", "tail"]
Status: TypeAlias = Literal["complete", "calls-only", "refused"]


class FunctionsRow(TypedDict):
    """One function of the export.

    `status`: `complete`; `calls-only` where the export has no blocks of it; `refused` where what it has makes no
    graph: `problem` says where and why, and the item keeps the `record` as it was given. `basis` is `imported`.
    """

    id: str
    name: str | None
    status: Status
    problem: str | None
    block_count: int
    edge_count: int
    call_count: int
    basis: list[str]


class BlocksRow(TypedDict):
    """One basic block. `instructions` counts the lines of its text. `entry`: the function begins with it."""

    id: str
    function: str
    address: str | None
    size: int | None
    instructions: int
    entry: bool
    exit: Exit | None


class BlocksItem(BlocksRow):
    """A block with its instructions as the tool writes them."""

    text: list[str]


class EdgesRow(TypedDict):
    """One way from a block to another of the same function; None as target where it is not known.

    `ordinal` is its place among those of its source. `operation` is the instruction that makes it, `condition` what
    that tests; the edge is gone where it has come out as `polarity`. `case` is the value that selects it.
    """

    id: str
    function: str
    source: str
    target: str | None
    ordinal: int
    kind: EdgeKind
    condition: str | None
    polarity: bool | None
    case: int | None
    operation: str | None


class CallsRow(TypedDict):
    """One call. `callee` is the function that is called, None where it is not one of the export."""

    id: str
    function: str
    block: str | None
    address: str | None
    kind: CallKind
    target: str | None
    callee: str | None
    name: str | None


class FunctionsItem(FunctionsRow):
    """Everything about one function. `record` is the JSON text of a refused one, None for the others."""

    blocks: list[BlocksItem]
    edges: list[EdgesRow]
    calls: list[CallsRow]
    record: str | None


COLLECTIONS: Final = (
    CollectionSpec(
        name="functions",
        contract="graph.functions",
        version=1,
        doc="functions of the export, and which of them have a graph",
        row=FunctionsRow,
        item=FunctionsItem,
        key="id",
        where=("id", "name", "status"),
    ),
    CollectionSpec(
        name="blocks",
        contract="graph.blocks",
        version=1,
        doc="basic blocks of functions, and how the flow leaves the function behind them",
        row=BlocksRow,
        item=BlocksItem,
        key="id",
        where=("id", "function", "address", "exit", "entry"),
    ),
    CollectionSpec(
        name="edges",
        contract="graph.edges",
        version=1,
        doc="ways from block to block, in the order that the export states",
        row=EdgesRow,
        item=EdgesRow,
        key="id",
        where=("id", "function", "source", "target", "kind"),
    ),
    CollectionSpec(
        name="calls",
        contract="graph.calls",
        version=1,
        doc="calls between functions",
        row=CallsRow,
        item=CallsRow,
        key="id",
        where=("id", "function", "block", "kind", "callee", "name"),
    ),
)

_FUNCTIONS, _BLOCKS, _EDGES, _CALLS = COLLECTIONS

GRAPHS: Final[Mapping[str, GraphSpec]] = {
    "": GraphSpec(
        contract="graph",
        version=1,
        blocks=_BLOCKS,
        edges=_EDGES,
        owner="function",
        source="source",
        target="target",
        owners=_FUNCTIONS,
        problem="problem",
    ),
    "calls": GraphSpec(
        contract="graph.calls",
        version=1,
        blocks=_FUNCTIONS,
        edges=_CALLS,
        owner=None,
        source="function",
        target="callee",
        ordinal=None,
        exit=None,
        bounds=Bounds(blocks=200_000, edges=2_000_000),
    ),
}
"""Control flow within a function, and calls between functions."""
