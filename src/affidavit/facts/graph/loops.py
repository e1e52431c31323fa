"""Loops: natural loops with their nesting, and the parts that are cyclic without being one.

An edge whose target dominates its source closes a natural loop: the target is its header, the body is all that
reaches the edge without passing the header, and edges to one header close one loop (Aho, Sethi, Ullman, "Compilers",
10.4). What is still cyclic without those edges can be entered at several blocks and is called irreducible (Hecht and
Ullman, "Characterizations of Reducible Flow Graphs", JACM 21, 1974). The nesting is found in nearly linear time by
merging inner loops into their headers (Tarjan, "Testing Flow Graph Reducibility", JCSS 9, 1974).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from affidavit.facts.graph.dominance import Dominators, dominators
from affidavit.facts.graph.model import Graph
from affidavit.facts.graph.search import Adjacency

__all__ = ["Irreducible", "Loop", "Loops", "find_loops", "roots"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A natural loop; all are places.

    Attributes:
        header: the block by which it is entered.
        back_edges: the edges that close it, in native order.
        parent: header of the innermost loop around it, or None.
        depth: 1 for an outermost loop.
    """

    header: int
    back_edges: tuple[int, ...]
    parent: int | None
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Irreducible:
    """Blocks that reach each other without any of them dominating the others, and those at which they are entered."""

    blocks: tuple[int, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """The loops of a graph by the places of their headers, then its irreducible parts by their first block."""

    natural: tuple[Loop, ...]
    irreducible: tuple[Irreducible, ...]
    inside: dict[int, list[int]]

    def body(self, header: int) -> list[int]:
        """The blocks of a natural loop, inner loops included, in native order."""
        found = [header]
        for block in found:  # grows while it is read
            found += self.inside.get(block, ())
        return sorted(found)


def roots(graph: Graph) -> list[int]:
    """Blocks from which all others are reached: the entry, then in native order each that those before do not reach."""
    reached = bytearray(len(graph.blocks))
    found: list[int] = []
    # What nothing leads to must be a root; only what is left then, cycles that nothing enters, depends on the order.
    apart = [at for at, before in enumerate(graph.predecessors) if not before]
    for root in [*range(min(1, len(graph.blocks))), *apart, *range(len(graph.blocks))]:
        if reached[root]:
            continue
        found.append(root)
        reached[root] = 1
        waiting = [root]
        while waiting:
            for after in graph.successors[waiting.pop()]:
                if not reached[after]:
                    reached[after] = 1
                    waiting.append(after)
    return found


def find_loops(graph: Graph, starts: Iterable[int]) -> Loops:
    """The loops among all that is reached from these blocks."""
    begins = frozenset(starts)
    tree = dominators(graph.successors, graph.predecessors, sorted(begins))
    closing = _back_edges(graph, tree)
    parents = _nest(graph, tree, closing)
    inside: dict[int, list[int]] = {}
    for block, header in parents.items():
        inside.setdefault(header, []).append(block)
    depths: dict[int, int] = {}
    for header in sorted(closing, key=tree.depth.__getitem__):
        depths[header] = depths[parents[header]] + 1 if header in parents else 1
    natural = tuple(
        Loop(
            header=header,
            back_edges=tuple(closing[header]),
            parent=parents.get(header),
            depth=depths[header],
        )
        for header in sorted(closing)
    )
    return Loops(natural=natural, irreducible=_irreducible(graph, tree, closing, begins), inside=inside)


def _back_edges(graph: Graph, tree: Dominators) -> dict[int, list[int]]:
    """The edges to a dominator of their source, by target. Dominance is asked of intervals of a walk over the tree."""
    children: dict[int, list[int]] = {}
    tops: list[int] = []
    for block in tree.order:
        above = tree.immediate[block]
        (children.setdefault(above, []) if above >= 0 else tops).append(block)
    entered: dict[int, int] = {}
    left: dict[int, int] = {}
    waiting = [(block, False) for block in tops]
    while waiting:
        block, done = waiting.pop()
        if done:
            left[block] = len(entered)
            continue
        entered[block] = len(entered)
        waiting.append((block, True))
        waiting += [(below, False) for below in children.get(block, ())]
    closing: dict[int, list[int]] = {}
    for edge, (source, target) in enumerate(zip(graph.sources, graph.targets, strict=True)):
        if target in entered and source in entered and entered[target] <= entered[source] < left[target]:
            closing.setdefault(target, []).append(edge)
    return closing


def _nest(graph: Graph, tree: Dominators, closing: dict[int, list[int]]) -> dict[int, int]:
    """The header of the innermost loop around each block; of a header, that of the next loop outwards."""
    parents: dict[int, int] = {}
    merged: dict[int, int] = {}

    def top(block: int) -> int:
        way: list[int] = []
        while block in merged:
            way.append(block)
            block = merged[block]
        for one in way:
            merged[one] = block
        return block

    # Inner loops first: their headers are further down the dominator tree.
    for header in sorted(closing, key=lambda one: (-tree.depth[one], one)):
        waiting = [top(graph.sources[edge]) for edge in closing[header]]
        while waiting:
            block = waiting.pop()
            if block == header or block in parents:
                continue
            parents[block] = header
            merged[block] = header
            waiting += [top(before) for before in graph.predecessors[block] if tree.depth[before]]
    return parents


def _irreducible(
    graph: Graph, tree: Dominators, closing: dict[int, list[int]], begins: frozenset[int]
) -> tuple[Irreducible, ...]:
    gone = frozenset(edge for edges in closing.values() for edge in edges)
    ahead = [
        tuple(dict.fromkeys([graph.targets[edge] for edge in out if edge not in gone]))
        for out in graph.outgoing
    ]
    found: list[Irreducible] = []
    for blocks in _cyclic(ahead, tree.order):
        part = set(blocks)
        entries = [
            block
            for block in blocks
            if block in begins
            or any(tree.depth[before] and before not in part for before in graph.predecessors[block])
        ]
        found.append(Irreducible(blocks=tuple(sorted(blocks)), entries=tuple(sorted(entries))))
    return tuple(sorted(found, key=lambda one: one.blocks))


def _cyclic(successors: Adjacency, blocks: Iterable[int]) -> list[list[int]]:
    """The strongly connected parts of more than one block (Tarjan, SIAM Journal on Computing 1, 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    settled: set[int] = set()
    found: list[list[int]] = []
    walk: list[tuple[int, Iterator[int]]] = []

    def enter(block: int) -> None:
        number[block] = low[block] = len(number)
        stack.append(block)
        walk.append((block, iter(successors[block])))

    for root in blocks:
        if root not in number:
            enter(root)
        while walk:
            block, rest = walk[-1]
            after = next((one for one in rest if one not in settled), None)
            if after is None:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[block])
                part = _cut(stack, block) if low[block] == number[block] else []
                settled.update(part)
                if len(part) > 1:
                    found.append(part)
            elif after in number:
                low[block] = min(low[block], number[after])
            else:
                enter(after)
    return found


def _cut(stack: list[int], block: int) -> list[int]:
    part = [stack.pop()]
    while part[-1] != block:
        part.append(stack.pop())
    return part
