"""Breadth-first search under exclusions: distances, shortest paths, and the frontier where exclusions stopped it.

Of several shortest paths the first one is the witness: compared edge by edge from the start, in the native order of
the edges out of each block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from affidavit.facts.graph.model import Graph

__all__ = ["Frontier", "Ways", "closure", "frontier", "shortest", "ways", "witness"]

Adjacency: TypeAlias = Sequence[tuple[int, ...]]

# What is known of a block during a search from both ends: these, or its distance to the goals from 0 on.
_UNSEEN: Final = -1
_AHEAD: Final = -2
_AVOIDED: Final = -3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """A graph less the blocks and edges that must be avoided; all of these are places.

    Attributes:
        graph: the whole graph.
        blocks: the avoided blocks.
        edges: the avoided edges.
        successors: blocks after each block without the avoided edges; avoided blocks are still in it.
        predecessors: blocks before each block, likewise.
    """

    graph: Graph
    blocks: frozenset[int]
    edges: frozenset[int]
    successors: Adjacency
    predecessors: Adjacency


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Where a search ended: the certificate that there is nothing beyond, as far as the graph goes.

    Attributes:
        reached: how many blocks were reached.
        blocks: places of the avoided blocks that the search met, in native order.
        edges: places of the avoided edges that it met.
        unresolved: places of reached blocks from which control may go where no edge says.
    """

    reached: int
    blocks: tuple[int, ...]
    edges: tuple[int, ...]
    unresolved: tuple[int, ...]


def ways(graph: Graph, blocks: Collection[int] = (), edges: Collection[int] = ()) -> Ways:
    """What is left of a graph without these blocks and edges (places)."""
    successors: Adjacency = graph.successors
    predecessors: Adjacency = graph.predecessors
    gone = frozenset(edges)
    if gone:
        sources, targets = graph.sources, graph.targets
        after, before = list(successors), list(predecessors)
        for block in {sources[edge] for edge in gone}:
            after[block] = tuple(
                dict.fromkeys([targets[at] for at in graph.outgoing[block] if at not in gone])
            )
        for block in {targets[edge] for edge in gone if targets[edge] >= 0}:
            before[block] = tuple(
                dict.fromkeys([sources[at] for at in graph.incoming[block] if at not in gone])
            )
        successors, predecessors = after, before
    return Ways(
        graph=graph, blocks=frozenset(blocks), edges=gone, successors=successors, predecessors=predecessors
    )


def closure(adjacency: Adjacency, starts: Iterable[int], avoided: Iterable[int]) -> list[list[int]]:
    """All that can be reached, by distance: the starts, what is one step away, and so on. No level is empty.

    Blocks of a level stand in the order in which they were met.
    """
    seen = bytearray(len(adjacency))
    for block in avoided:
        seen[block] = 1
    level = _unseen(starts, seen)
    levels: list[list[int]] = []
    while level:
        levels.append(level)
        level = _unseen([after for block in level for after in adjacency[block]], seen)
    return levels


def _unseen(blocks: Iterable[int], seen: bytearray) -> list[int]:
    fresh: list[int] = []
    for block in blocks:
        if not seen[block]:
            seen[block] = 1
            fresh.append(block)
    return fresh


def shortest(left: Ways, start: int, goals: Iterable[int]) -> list[int] | None:
    """The blocks of the first shortest path from `start` to one of `goals`, both included; None where there is none.

    Searches level by level from both ends, always on the smaller side. A level of the forward side is in the order
    of the first paths to its blocks, since the blocks before them were and their edges are; so the first of them that
    the backward side also has begins the first path, and from there on each first edge that comes nearer is right.
    """
    distance = [_UNSEEN] * len(left.successors)
    for block in left.blocks:
        distance[block] = _AVOIDED
    if distance[start] == _AVOIDED:
        return None
    behind = [goal for goal in goals if distance[goal] != _AVOIDED]
    for goal in behind:
        distance[goal] = 0
    if distance[start] == 0:
        return [start]
    distance[start] = _AHEAD
    came: dict[int, int] = {}
    ahead = [start]
    steps = 0
    while ahead and behind:
        if len(ahead) <= len(behind):
            ahead, met = _advance(left.successors, ahead, distance, came)
        else:
            steps += 1
            behind, meeting = _retreat(left.predecessors, behind, distance, steps)
            met = next((block for block in ahead if block in meeting), None) if meeting else None
        if met is not None:
            path = _back(came, met)
            return _descend(left.successors, path, distance, distance[met] if distance[met] >= 0 else steps)
    return None


def _advance(
    successors: Adjacency, level: Sequence[int], distance: list[int], came: dict[int, int]
) -> tuple[list[int], int | None]:
    """The next forward level, or the first block on it that the backward side has."""
    following: list[int] = []
    for block in level:
        for after in successors[block]:
            state = distance[after]
            if state == _UNSEEN:
                distance[after] = _AHEAD
                came[after] = block
                following.append(after)
            elif state >= 0:
                came[after] = block
                return following, after
    return following, None


def _retreat(
    predecessors: Adjacency, level: Sequence[int], distance: list[int], steps: int
) -> tuple[list[int], set[int]]:
    """The next backward level, and the blocks of the forward side that are on it."""
    following: list[int] = []
    meeting: set[int] = set()
    for block in level:
        for before in predecessors[block]:
            state = distance[before]
            if state == _UNSEEN:
                distance[before] = steps
                following.append(before)
            elif state == _AHEAD:
                meeting.add(before)
    return following, meeting


def _back(came: Mapping[int, int], block: int) -> list[int]:
    path = [block]
    while block in came:
        block = came[block]
        path.append(block)
    return path[::-1]


def _descend(successors: Adjacency, path: list[int], distance: Sequence[int], steps: int) -> list[int]:
    """The path, prolonged by its last block's first way to a goal that is `steps` away."""
    block = path[-1]
    for nearer in range(steps - 1, -1, -1):
        for after in successors[block]:
            if distance[after] == nearer:
                path.append(after)
                block = after
                break
    return path


def witness(left: Ways, path: Sequence[int]) -> tuple[int, ...]:
    """The edges between the blocks of a path: of parallel ones the first that is not avoided."""
    outgoing, targets, gone = left.graph.outgoing, left.graph.targets, left.edges
    edges: list[int] = []
    for block, after in pairwise(path):
        for edge in outgoing[block]:
            if targets[edge] == after and edge not in gone:
                edges.append(edge)
                break
    return tuple(edges)


def frontier(left: Ways, starts: Collection[int], *, backward: bool = False) -> Frontier:
    """How far a search from `starts` gets, and which of the avoided blocks and edges it met."""
    adjacency = left.predecessors if backward else left.successors
    reached = {block for level in closure(adjacency, starts, left.blocks) for block in level}
    graph = left.graph
    beyond = left.successors if backward else left.predecessors
    near = graph.targets if backward else graph.sources
    begun = frozenset(starts)
    return Frontier(
        reached=len(reached),
        blocks=tuple(sorted(at for at in left.blocks if at in begun or not reached.isdisjoint(beyond[at]))),
        edges=tuple(sorted(at for at in left.edges if near[at] in reached)),
        unresolved=tuple(sorted(graph.unresolved & reached)),
    )
