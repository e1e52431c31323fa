"""The documented form of an export, and whether a function in it makes a graph.

`docs/graph-export.schema.json` is the JSON Schema of `Export`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from affidavit.analyzers.graph.rows import CallKind, EdgeKind, Exit

__all__ = ["FORMAT", "VERSION", "Block", "Call", "Edge", "Export", "Function", "Tool", "read_function"]

FORMAT: Final = "affidavit-graph"
VERSION: Final = 1

_SHOWN: Final = 5

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]
Address: TypeAlias = Annotated[str, Field(pattern=r"^0x(0|[1-9a-f][0-9a-f]*)$", max_length=34)]
Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Tool(_Form):
    """What made the export."""

    name: Name
    version: Name | None = None


class Block(_Form):
    """A basic block: an id that no other of the function has, and how the flow leaves the function behind it."""

    id: Name
    address: Address | None = None
    size: Count | None = None
    exit: Exit | None = None
    text: list[str] = []


class Edge(_Form):
    """A way from a block to another. No two edges of a block have one ordinal; the order is the machine's."""

    id: Name | None = None
    source: Name
    target: Name | None
    ordinal: Count
    kind: EdgeKind
    condition: str | None = None
    polarity: bool | None = None
    case: int | None = None
    operation: str | None = None

    @property
    def own_id(self) -> str:
        """Its id: the given one, or its source and ordinal."""
        return self.id if self.id is not None else f"{self.source}#{self.ordinal}"


class Call(_Form):
    """A call: `callee` is the id of a function, of this export or not."""

    block: Name | None = None
    address: Address | None = None
    kind: CallKind
    callee: Name | None = None
    target: Address | None = None
    name: str | None = None


class Function(_Form):
    """A function. One without blocks and without entry is known by its calls alone."""

    id: Name
    name: str | None = None
    entry: Name | None
    blocks: list[Block]
    edges: list[Edge]
    calls: list[Call] = []


class Export(_Form):
    """A whole file."""

    format: Literal["affidavit-graph"]
    version: Literal[1]
    tool: Tool
    functions: list[Function]


def read_function(value: object) -> Function | str:
    """The function that a value is, or where and why it is none."""
    try:
        function = Function.model_validate(value)
    except ValidationError as error:
        return _listed(f"{_place(item['loc'])} {_said(item)}" for item in error.errors(include_url=False))
    return _listed(_faults(function)) or function


def _faults(function: Function) -> Iterator[str]:
    ids = {block.id for block in function.blocks}
    if function.entry is None and (function.blocks or function.edges):
        yield "entry: is missing, so it is not known where the function begins"
    elif function.entry is not None and function.entry not in ids:
        yield f"entry: names {_shown(function.entry)}, which is no block"
    for name, number in Counter(block.id for block in function.blocks).items():
        if number > 1:
            yield f"blocks: {number} have the id {_shown(name)}"
    yield from _edge_faults(function, ids)
    for at, call in enumerate(function.calls):
        if call.block is not None and call.block not in ids:
            yield f"calls[{at}].block: names {_shown(call.block)}, which is no block"


def _edge_faults(function: Function, ids: set[str]) -> Iterator[str]:
    for at, edge in enumerate(function.edges):
        for end, name in (("source", edge.source), ("target", edge.target)):
            if name is not None and name not in ids:
                yield f"edges[{at}].{end}: names {_shown(name)}, which is no block"
    orders = Counter((edge.source, edge.ordinal) for edge in function.edges)
    for (source, ordinal), number in orders.items():
        if number > 1:
            yield f"edges: {number} out of {_shown(source)} have the ordinal {ordinal}, so they have no order"
    for name, number in Counter(edge.own_id for edge in function.edges).items():
        if number > 1:
            yield f"edges: {number} have the id {_shown(name)}"


def _listed(faults: Iterable[str]) -> str:
    found = list(faults)
    more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _place(location: tuple[int | str, ...]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return (place.removeprefix(".") or "it") + ":"


def _said(item: Any) -> str:
    if item["type"] == "missing":
        return "is missing"
    if item["type"] == "extra_forbidden":
        return "is no field of this form"
    return str(item["msg"][:1]).lower() + str(item["msg"][1:])


def _shown(text: str) -> str:
    return ascii(text)[:80]
