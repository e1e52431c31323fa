"""From what descent found of a function to its rows, as JSON."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Final, NamedTuple

from affidavit.analyzers.native.flow.blocks import Block, blocks_of
from affidavit.analyzers.native.flow.descent import Call, Descent, Flow, Step, World
from affidavit.analyzers.native.flow.functions import Function
from affidavit.analyzers.native.flow.returning import plain_name
from affidavit.analyzers.native.working.strings import Strings

__all__ = [
    "Outline",
    "failed_outline",
    "failed_report",
    "import_report",
    "outline_of",
    "outlined_row",
    "report_of",
]

_CONDITIONAL: Final = frozenset({"taken", "fallthrough"})


class Outline(NamedTuple):
    """What a descent says of a function before its blocks are written down.

    Attributes:
        status: `complete`, `partial`, or `unknown` where it could not be analysed.
        returns: whether some way returns, None where that is not known.
        size: bytes of its blocks.
        blocks: how many there are.
        edges: how many ways lead from one to another.
        calls: how many calls there are.
        references: how many instructions name an address.
        texts: the string of each of them that names one.
        unknowns: address, kind and reason of what could not be followed.
    """

    status: str
    returns: bool | None
    size: int
    blocks: int
    edges: int
    calls: int
    references: int
    texts: list[int]
    unknowns: list[tuple[int, str, str]]


def outline_of(world: World, strings: Strings, flow: Flow) -> Outline:
    """Count what `report_of` would write down of a function."""
    blocks = blocks_of(flow, world.decoder.nexts)
    texts: list[int] = []
    references = 0
    for one in world.decoder.references(blocks):
        references += 1
        text = strings.holding(one.target)
        if text is not None:
            texts.append(text)
    return Outline(
        status="partial" if flow.unknowns else "complete",
        returns=_returns(flow),
        size=sum(block.end - block.start for block in blocks.values()),
        blocks=len(blocks),
        edges=sum(len(block.steps) for block in blocks.values()),
        calls=len(flow.calls),
        references=references,
        texts=texts,
        unknowns=[(one.at, one.kind, one.reason) for _, one in sorted(flow.unknowns.items())],
    )


def failed_outline(start: int, reason: str) -> Outline:
    """What is said of a function that could not be analysed."""
    return Outline("unknown", None, 0, 0, 0, 0, 0, [], [(start, "failed", reason)])


def outlined_row(function: Function, outline: Outline) -> dict[str, Any]:
    """The row of a function, from its outline."""
    row = _row(hex(function.start), function.name, "part" if function.part else "function", _basis(function))
    return row | {
        "status": outline.status,
        "returns": outline.returns,
        "size": outline.size,
        "block_count": outline.blocks,
        "edge_count": outline.edges,
        "call_count": outline.calls,
    }


def report_of(world: World, strings: Strings, function: Function, imports: Container[int]) -> dict[str, Any]:
    """Descend into a function and say everything about it: its rows by collection."""
    descent = Descent(world, function)
    flow = descent.run()
    return _Report(world, strings, descent, flow, imports).rows()


def import_report(address: int, name: str) -> dict[str, Any]:
    """The row of a stub."""
    row = _row(hex(address), plain_name(name), "import", ["linkage-table"])
    return _rows(row | {"returns": None, "status": "complete"})


def failed_report(function: Function, reason: str) -> dict[str, Any]:
    """The row of a function that could not be analysed."""
    row = _row(hex(function.start), function.name, "part" if function.part else "function", _basis(function))
    item = {
        "aliases": list(function.aliases),
        "ranges": [_range(function.start, function.end)],
        "unreached": [_range(function.start, function.end)],
        "tables": [],
        "unknowns": [{"address": hex(function.start), "kind": "failed", "reason": reason}],
    }
    return _rows(row | {"returns": None, "status": "unknown"}, item)


class _Report:
    """One function on its way to rows."""

    def __init__(
        self, world: World, strings: Strings, descent: Descent, flow: Flow, imports: Container[int]
    ) -> None:
        self.imports = imports
        self.world = world
        self.strings = strings
        self.descent = descent
        self.flow = flow
        self.start = descent.function.start
        self.id = hex(self.start)
        found = blocks_of(flow, world.decoder.nexts)
        # The block that the function begins with comes first: a part of it may stand before it.
        self.blocks = {at: found[at] for at in sorted(found, key=lambda at: (at != self.start, at))}
        self.guards = {
            table.guard: table.outside for table in flow.tables.values() if table.guard is not None
        }
        self.holding: dict[int, str] = {}

    def rows(self) -> dict[str, Any]:
        """The function's row, what its item has beside, and the rows of the other collections."""
        function = self.descent.function
        blocks: list[dict[str, Any]] = []
        edges: list[dict[str, Any]] = []
        for block in self.blocks.values():
            name = self.place(block.start)
            for address in block.instructions:
                self.holding.setdefault(address, name)
            blocks.append(self.block(block, name))
            edges += self.edges(block, name)
        references = list(self.references())
        self.order(edges)
        calls = [self.call(call) for _, call in sorted(self.flow.calls.items())]
        unknowns = [
            {"address": hex(one.at), "kind": one.kind, "reason": one.reason}
            for _, one in sorted(self.flow.unknowns.items())
        ]
        row = _row(self.id, function.name, "part" if function.part else "function", _basis(function))
        row |= {
            "status": "partial" if unknowns else "complete",
            "returns": _returns(self.flow),
            "size": sum(block["size"] for block in blocks),
            "block_count": len(blocks),
            "edge_count": len(edges),
            "call_count": len(calls),
        }
        item = {
            "aliases": list(function.aliases),
            "ranges": [_range(low, high) for low, high in sorted(self.descent.ranges)],
            "unreached": [_range(low, high) for low, high in self.unreached()],
            "tables": list(self.tables()),
            "unknowns": unknowns,
        }
        return _rows(row, item, blocks, edges, calls, references)

    def place(self, address: int) -> str:
        """A place in the function: its id and an offset."""
        return f"{self.id}{address - self.start:+#x}"

    def block(self, block: Block, name: str) -> dict[str, Any]:
        text = self.world.decoder.text
        return {
            "id": name,
            "function": self.id,
            "address": hex(block.start),
            "size": block.end - block.start,
            "instructions": len(block.instructions),
            "entry": block.start == self.start,
            "exit": self.flow.exits.get(block.instructions[-1]),
            "text": [f"{address:#x} {text(address)}" for address in block.instructions],
        }

    def edges(self, block: Block, name: str) -> Iterator[dict[str, Any]]:
        if not block.steps:
            return
        last = block.instructions[-1]
        operation = f"{last:#x} {self.world.decoder.text(last)}"
        condition: str | None = None
        if self.flow.exits.get(last) == "tail-call" or any(step.kind == "taken" for step in block.steps):
            condition = self.world.decoder.condition(block.instructions)
        for step in block.steps:
            yield self.edge(name, last, step, condition) | {"operation": operation}

    def edge(self, source: str, at: int, step: Step, condition: str | None) -> dict[str, Any]:
        kind = step.kind
        conditional = kind in _CONDITIONAL and condition is not None
        polarity = kind == "taken" if conditional else None
        if conditional and at in self.guards and self.guards[at] == step.target:
            kind = "default"
        return {
            "function": self.id,
            "source": source,
            "target": self.place(step.target),
            "kind": kind,
            "condition": condition if conditional else None,
            "polarity": polarity,
            "case": step.case,
            "proven": step.proven,
        }

    def unreached(self) -> Iterator[tuple[int, int]]:
        """What no flow reaches between the function's blocks or behind them and is not padding."""
        blocks = sorted((block.start, block.end) for block in self.blocks.values())
        for low, high in sorted(self.descent.ranges):
            at = low
            for start, end in [*((one, end) for one, end in blocks if low <= one < high), (high, high)]:
                if at < start and not self.pads(at, start):
                    yield at, start
                at = max(at, end)

    def pads(self, low: int, high: int) -> bool:
        area = self.world.image.area(low)
        data = b"" if area is None else area.data[low - area.start : high - area.start]
        return self.world.decoder.is_padding(data)

    def order(self, edges: list[dict[str, Any]]) -> None:
        """Number the edges of each source."""
        ordinal, source = 0, ""
        for edge in edges:
            ordinal = ordinal + 1 if edge["source"] == source else 0
            source = edge["source"]
            edge["ordinal"] = ordinal
            edge["id"] = f"{source}#{ordinal}"

    def call(self, call: Call) -> dict[str, Any]:
        functions = self.world.functions
        callee = None if call.target is None else functions.get(call.target)
        name = call.name
        if name is None and callee is not None:
            name = callee.name
        known = call.target is not None and (callee is not None or call.target in self.imports)
        return {
            "id": self.place(call.at),
            "function": self.id,
            "block": self.holding.get(call.at, self.id + "+0x0"),
            "address": hex(call.at),
            "kind": call.kind,
            "target": None if call.target is None else hex(call.target),
            "callee": hex(call.target) if known and call.target is not None else None,
            "name": None if name is None else plain_name(name),
            "returns": call.returns,
        }

    def references(self) -> Iterator[dict[str, Any]]:
        for one in self.world.decoder.references(self.blocks):
            text = self.strings.holding(one.target)
            yield {
                "id": self.place(one.at),
                "function": self.id,
                "block": self.holding[one.at],
                "address": hex(one.at),
                "kind": one.kind,
                "target": hex(one.target),
                "string": None if text is None else hex(text),
            }

    def tables(self) -> Iterator[dict[str, Any]]:
        for _, table in sorted(self.flow.tables.items()):
            yield {
                "address": hex(table.at),
                "base": hex(table.base),
                "first": table.first,
                "entries": len(table.targets),
                "proven": table.proven,
                "guard": None if table.guard is None else hex(table.guard),
            }


def _returns(flow: Flow) -> bool | None:
    """Whether some way returns; None where a way that is not known might."""
    exits = set(flow.exits.values())
    if "return" in exits:
        return True
    tails = [call for call in flow.calls.values() if call.kind == "tail"]
    if any(call.returns and (call.target is not None or call.name) for call in tails):
        return True
    return None if "unresolved" in exits or any(call.returns for call in tails) else False


def _row(identity: str, name: str | None, kind: str, basis: list[str]) -> dict[str, Any]:
    shown = None if name is None else plain_name(name)
    counts = {"size": 0, "block_count": 0, "edge_count": 0, "call_count": 0}
    return {"id": identity, "name": shown, "kind": kind, "basis": basis, **counts}


def _rows(
    row: dict[str, Any],
    item: dict[str, Any] | None = None,
    blocks: list[dict[str, Any]] | None = None,
    edges: list[dict[str, Any]] | None = None,
    calls: list[dict[str, Any]] | None = None,
    references: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    return {
        "row": row,
        "item": item or {"aliases": [], "ranges": [], "unreached": [], "tables": [], "unknowns": []},
        "blocks": blocks or [],
        "edges": edges or [],
        "calls": calls or [],
        "references": references or [],
    }


def _basis(function: Function) -> list[str]:
    return sorted(function.basis)


def _range(low: int, high: int) -> dict[str, str]:
    return {"start": hex(low), "end": hex(high)}
