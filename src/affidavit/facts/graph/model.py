"""A directed graph over facts: blocks and edges under their own ids, in the order of the facts.

Inside, blocks and edges are places in that order (0, 1, ...) and everything is a plain list, which is what searches are
quick over. Parallel edges and self-loops are kept. Nothing changes once a graph is built, so threads may share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from affidavit.errors import FailedError, VerificationError
from affidavit.evidence.record import Coverage

__all__ = ["DEFAULT_EXITS", "EXIT_KINDS", "Block", "Bounds", "Edge", "ExitKind", "Graph", "too_large"]

ExitKind: TypeAlias = Literal["return", "noreturn", "tail-call", "trap", "unresolved"]

EXIT_KINDS: Final[tuple[ExitKind, ...]] = get_args(ExitKind)
DEFAULT_EXITS: Final[tuple[ExitKind, ...]] = tuple(kind for kind in EXIT_KINDS if kind != "unresolved")
"""What "an exit" means where no kinds are given: every way out that is known to be one."""

_SHOWN: Final = 10


class Block(NamedTuple):
    """A node: its id, and how control leaves the graph here, or None where it goes on along the edges alone."""

    id: str
    exit: ExitKind | None = None


class Edge(NamedTuple):
    """An edge under its own id.

    `ordinal` orders the edges out of one block; equal ordinals keep the order of the facts. `target` is None where it
    is not known where the edge leads. `row` is the native record; whoever builds a graph from it leaves it unchanged.
    """

    id: str
    source: str
    target: str | None
    ordinal: int = 0
    row: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large a graph may be. The blocks and edges that a query avoids share the bound on blocks."""

    blocks: int = 12_000
    edges: int = 50_000


class Graph:
    """An immutable graph. Build it with `Graph.build`.

    Attributes:
        bounds: the bounds that it was built under.
        blocks: ids of the blocks in native order. The first is the entry.
        edges: ids of the edges in native order.
        rows: the native record of each edge.
        exits: how control leaves at each block, or None. A block without edges and without a stated kind is
            `unresolved`, and so is one with an edge whose target is not known.
        sources: place of each edge's source block.
        targets: place of each edge's target block, -1 where it is not known.
        outgoing: places of the edges out of each block, by ordinal, then in the order of the facts. Only those whose
            target is known.
        incoming: places of the edges into each block, in the order of the facts.
        successors: places of the blocks after each block, each once, in the order of their first edge.
        predecessors: places of the blocks before each block, each once.
        unresolved: places of the blocks from which control may go where no edge says.
        coverage: what the graph covers: blocks examined, and as `unknown` those that are unresolved.
    """

    __slots__ = (
        "_block_places",
        "_edge_places",
        "blocks",
        "bounds",
        "coverage",
        "edges",
        "exits",
        "incoming",
        "outgoing",
        "predecessors",
        "rows",
        "sources",
        "successors",
        "targets",
        "unresolved",
    )

    def __init__(
        self,
        blocks: Sequence[Block],
        edges: Sequence[Edge],
        bounds: Bounds,
        leaf: ExitKind,
    ) -> None:
        self.bounds = bounds
        self.blocks = tuple(block.id for block in blocks)
        self.edges = tuple(edge.id for edge in edges)
        self.rows = tuple(edge.row for edge in edges)
        self._block_places = {block: at for at, block in enumerate(self.blocks)}
        self._edge_places = {edge: at for at, edge in enumerate(self.edges)}
        places = self._block_places
        self.sources = [places[edge.source] for edge in edges]
        self.targets = [-1 if edge.target is None else places[edge.target] for edge in edges]
        self.outgoing = self._outgoing(edges)
        self.incoming = self._incoming()
        targets, sources = self.targets, self.sources
        self.successors = [tuple(dict.fromkeys([targets[at] for at in out])) for out in self.outgoing]
        self.predecessors = [tuple(dict.fromkeys([sources[at] for at in into])) for into in self.incoming]
        self.exits = self._exits(blocks, leaf)
        self.unresolved = frozenset(
            at for at, kind in enumerate(self.exits) if kind == "unresolved"
        ) | frozenset(source for source, target in zip(sources, targets, strict=True) if target < 0)
        self.coverage = Coverage(
            state="partial" if self.unresolved else "complete",
            selection="all blocks",
            examined=len(blocks),
            unknown=len(self.unresolved),
            bounds={"blocks": bounds.blocks, "edges": bounds.edges},
        )

    @classmethod
    def build(
        cls,
        blocks: Iterable[Block],
        edges: Iterable[Edge],
        *,
        owner: str | None = None,
        bounds: Bounds = Bounds(),
        leaf: ExitKind = "unresolved",
    ) -> Graph:
        """Check blocks and edges and index them.

        Args:
            blocks: in native order, the entry first.
            edges: in native order.
            owner: what this is the graph of, for messages.
            bounds: how many blocks and edges there may be.
            leaf: what a block without any edge and without a stated exit is. `return` suits graphs of calls, where
                such a function merely calls no other.

        Raises:
            FailedError: `graph-too-large`.
            VerificationError: `graph-invalid`: an id twice, or an edge to or from a block that is not there; the
                first of them are named.
        """
        found, links = list(blocks), list(edges)
        for what, number, most in (
            ("blocks", len(found), bounds.blocks),
            ("edges", len(links), bounds.edges),
        ):
            if number > most:
                raise too_large(what, number, most, owner)
        ids = {block.id for block in found}
        if len(ids) < len(found):
            raise _invalid("blocks that are there twice", _repeated(block.id for block in found), owner)
        if len({edge.id for edge in links}) < len(links):
            raise _invalid("edges that are there twice", _repeated(edge.id for edge in links), owner)
        ends = {end for edge in links for end in (edge.source, edge.target) if end is not None}
        if ends - ids:
            raise _invalid("edges to or from blocks that are not there", sorted(ends - ids), owner)
        kinds = {str(block.exit) for block in found if block.exit not in (None, *EXIT_KINDS)}
        if kinds:
            raise _invalid("exits of no known kind", sorted(kinds), owner)
        return cls(found, links, bounds, leaf)

    def block(self, block: str) -> int | None:
        """The place of a block, or None where there is none of this id."""
        return self._block_places.get(block)

    def edge(self, edge: str) -> int | None:
        """The place of an edge, or None where there is none of this id."""
        return self._edge_places.get(edge)

    def exits_of(self, kinds: Iterable[ExitKind]) -> list[int]:
        """Places of the blocks at which control leaves in one of these ways, in native order."""
        wanted = frozenset(kinds)
        return [at for at, kind in enumerate(self.exits) if kind in wanted]

    def _outgoing(self, edges: Sequence[Edge]) -> list[tuple[int, ...]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for at, (source, target) in enumerate(zip(self.sources, self.targets, strict=True)):
            if target >= 0:
                found[source].append(at)
        return [tuple(sorted(out, key=lambda at: edges[at].ordinal)) for out in found]

    def _incoming(self) -> list[tuple[int, ...]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for at, target in enumerate(self.targets):
            if target >= 0:
                found[target].append(at)
        return [tuple(into) for into in found]

    def _exits(self, blocks: Sequence[Block], leaf: ExitKind) -> tuple[ExitKind | None, ...]:
        open_ended = {source for source, target in zip(self.sources, self.targets, strict=True) if target < 0}
        return tuple(
            block.exit or ("unresolved" if at in open_ended else None if self.outgoing[at] else leaf)
            for at, block in enumerate(blocks)
        )


def too_large(what: str, number: int, most: int, owner: str | None) -> FailedError:
    """The error for a graph beyond its bounds, for those who count before they read."""
    return FailedError(
        "graph-too-large",
        f"{_named(owner)} has {number:,} {what}, more than {most:,}",
        hint="ask about a smaller one, or set a larger bound",
        details={"owner": owner, what: number, "bound": most},
    )


def _invalid(problem: str, ids: Sequence[str], owner: str | None) -> VerificationError:
    shown = ", ".join(ascii(one)[:80] for one in ids[:_SHOWN])
    return VerificationError(
        "graph-invalid",
        f"{_named(owner)} has {problem}: {shown}{', ...' if len(ids) > _SHOWN else ''}",
        hint="the facts of this graph do not hold together; analyse or export it anew",
        details={"owner": owner, "ids": [ascii(one)[:200] for one in ids[:_SHOWN]]},
    )


def _named(owner: str | None) -> str:
    return "the graph" if owner is None else f"the graph of {ascii(owner)[:80]}"


def _repeated(ids: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [one for one in ids if one in seen or seen.add(one)]
