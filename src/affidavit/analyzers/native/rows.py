"""The rows of a native dataset, and the collections they make.

Addresses are those of the file, as lower-case hex text with `0x`. A **function** has its entry's address as id. Places
in a function are its id and an offset: the block `0x4010+0x2c`, the edge `0x4010+0x2c#1`, the call `0x4010+0x30`. A
part that the compiler moved away has negative or large offsets.

A **block** ends at a branch, at a call that does not return or may go on at a landing pad, and before an address that
is branched to, not at other calls.
`exit` says how the flow leaves the function behind it:

* `return`; `trap`: an instruction that faults; `noreturn`: a call that does not come back;
* `tail-call`: the flow goes on in another function, whose return is this one's; a block that ends in a *conditional*
  tail call has an edge as well;
* `unresolved`: where it leads is not known. The place and the reason stand in the function's `unknowns`.

**Edges** keep the order of the machine: `taken` before `fallthrough`, the entries of a jump table by index, equal ones
repeated. `default` is the branch that leads around a jump table, on whichever side it does. `unwind` leads from a
call to the landing pad that an exception continues at. An edge without proof (`proven` false) was read from
a jump table whose number of entries nothing in the code proves.
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
    "CallsRow",
    "EdgesRow",
    "FunctionsItem",
    "FunctionsRow",
    "RangeDict",
    "ReferencesRow",
    "StringsRow",
    "TableDict",
    "UnknownDict",
]

Exit: TypeAlias = Literal["return", "noreturn", "tail-call", "trap", "unresolved"]
EdgeKind: TypeAlias = Literal["taken", "fallthrough", "jump", "case", "default", "unwind"]
CallKind: TypeAlias = Literal["direct", "indirect", "tail"]
ReferenceKind: TypeAlias = Literal["address", "read", "write", "read-write"]
UnknownKind: TypeAlias = Literal[
    "indirect-jump", "table-bound", "undecodable", "beyond-end", "inside-other", "landing-pads", "failed"
]


class FunctionsRow(TypedDict):
    """One function.

    `kind`: a `function`; an `import`, code that only jumps to a function of another file; a `part` of a function that
    nothing known leads to. `name` is None where the file has none. `basis` says what claims that it begins here:
    `symbol`, `dynamic-symbol`, `unwind-table`, `entry`, `init`, `fini`, `preinit-array`, `init-array`, `fini-array`,
    `call-target`, `tail-call-target`, `linkage-table`. `returns` is false where no way through it ends in a return;
    None where that is not known. `status`: `complete`, `partial` (some places are unknown) or `unknown` (it could not
    be analysed). `size` counts the bytes of its blocks.
    """

    id: str
    name: str | None
    kind: Literal["function", "import", "part"]
    status: Literal["complete", "partial", "unknown"]
    returns: bool | None
    size: int
    block_count: int
    edge_count: int
    call_count: int
    basis: list[str]


class RangeDict(TypedDict):
    """Addresses from `start` up to, not including, `end`."""

    start: str
    end: str


class UnknownDict(TypedDict):
    """A place where the flow could not be followed, or not with proof, and why."""

    address: str
    kind: UnknownKind
    reason: str


class TableDict(TypedDict):
    """A jump table: the jump that reads it, where its first entry stands, the index of that entry, how many there are.

    `proven`: whether the code proves that number. `guard` is the branch that does, None for a mask.
    """

    address: str
    base: str
    first: int
    entries: int
    proven: bool
    guard: str | None


class BlocksRow(TypedDict):
    """One basic block. `instructions` counts them, `size` is in bytes. `entry`: the function begins with it."""

    id: str
    function: str
    address: str
    size: int
    instructions: int
    entry: bool
    exit: Exit | None


class BlocksItem(BlocksRow):
    """A block with its instructions, each as its address and Intel syntax."""

    text: list[str]


class EdgesRow(TypedDict):
    """One way from a block to another of the same function.

    `ordinal` is its place among those of its source, from 0. `operation` is the instruction that makes it. `condition`
    is what a branch tests, and what set the flags where the block shows it; the edge is gone where it has come out as
    `polarity`. `case` is the value of the index that selects an entry of a jump table.
    """

    id: str
    function: str
    source: str
    target: str
    ordinal: int
    kind: EdgeKind
    condition: str | None
    polarity: bool | None
    case: int | None
    operation: str
    proven: bool


class CallsRow(TypedDict):
    """One call, or a jump that is one (`tail`).

    `target` is the address that is called, None where it is computed; `callee` the function that begins there, None
    where none is known to. `name` is the callee's, also where an import is called through its slot. `returns`: whether
    the flow goes on behind the call.
    """

    id: str
    function: str
    block: str
    address: str
    kind: CallKind
    target: str | None
    callee: str | None
    name: str | None
    returns: bool


class ReferencesRow(TypedDict):
    """An instruction that takes the address of data or code, or reads or writes there.

    Places that are computed from more than a constant are not listed. `string` is the id of the string that `target`
    lies in.
    """

    id: str
    function: str
    block: str
    address: str
    kind: ReferenceKind
    target: str
    string: str | None


class StringsRow(TypedDict):
    """Text in memory that does not change: four characters of UTF-8 or more, and a zero byte.

    `value` is cut at 1,000 characters and then ends in an ellipsis; `length` is in bytes, without the zero.
    `references` counts the instructions that name an address in it.
    """

    id: str
    section: str
    length: int
    value: str
    references: int


class FunctionsItem(FunctionsRow):
    """Everything about one function: its native record.

    `unreached`: what stands in its ranges, is no padding, and no flow leads to: data, such as literals and tables, or
    code that only what is unknown could lead to.
    """

    aliases: list[str]
    ranges: list[RangeDict]
    unreached: list[RangeDict]
    blocks: list[BlocksItem]
    edges: list[EdgesRow]
    calls: list[CallsRow]
    tables: list[TableDict]
    unknowns: list[UnknownDict]


COLLECTIONS: Final = (
    CollectionSpec(
        name="functions",
        contract="native.functions",
        version=1,
        doc="functions: entry, name, what claims that they are there, how many blocks, edges and calls they have",
        row=FunctionsRow,
        item=FunctionsItem,
        key="id",
        where=("id", "name", "kind", "status", "returns"),
    ),
    CollectionSpec(
        name="blocks",
        contract="native.blocks",
        version=1,
        doc="basic blocks of functions, and how the flow leaves the function behind them",
        row=BlocksRow,
        item=BlocksItem,
        key="id",
        where=("id", "function", "exit", "entry"),
    ),
    CollectionSpec(
        name="edges",
        contract="native.edges",
        version=1,
        doc="ways from block to block, in native order, with condition, polarity and the instruction that makes them",
        row=EdgesRow,
        item=EdgesRow,
        key="id",
        where=("id", "function", "source", "target", "kind", "proven"),
    ),
    CollectionSpec(
        name="calls",
        contract="native.calls",
        version=1,
        doc="calls: direct, indirect, and jumps that are calls",
        row=CallsRow,
        item=CallsRow,
        key="id",
        where=("id", "function", "block", "kind", "callee", "name", "returns"),
    ),
    CollectionSpec(
        name="references",
        contract="native.references",
        version=1,
        doc="instructions that name an address: of data, of a string, of code",
        row=ReferencesRow,
        item=ReferencesRow,
        key="id",
        where=("id", "function", "kind", "target", "string"),
    ),
    CollectionSpec(
        name="strings",
        contract="native.strings",
        version=1,
        doc="texts in memory that does not change, with how often code names them",
        row=StringsRow,
        item=StringsRow,
        key="id",
        where=("id", "section", "value"),
    ),
)

_FUNCTIONS, _BLOCKS, _EDGES, _CALLS = COLLECTIONS[:4]

GRAPHS: Final[Mapping[str, GraphSpec]] = {
    "": GraphSpec(
        contract="native",
        version=1,
        blocks=_BLOCKS,
        edges=_EDGES,
        owner="function",
        source="source",
        target="target",
    ),
    "calls": GraphSpec(
        contract="native.calls",
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
