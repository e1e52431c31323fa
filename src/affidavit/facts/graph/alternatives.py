"""The k shortest paths without repeated blocks, in the order of their lengths, then of their edges.

Yen's algorithm (Management Science 17, 1971) with Lawler's partition (18, 1972): each path found splits what is left
into the paths that part from it at one place. What such a part holds is first only bounded from below, by the distances
to the goals; mostly the bound is the answer. Parts of one bound are looked into one by one, when their turn comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final, TypeAlias

from affidavit.facts.graph.search import Ways, closure, shortest, ways, witness

__all__ = ["MAX_SEARCHES", "Alternatives", "alternatives"]

MAX_SEARCHES: Final = 2_000
"""After so many searches (a millisecond or two each in a graph of 50,000 edges) no further paths are looked for."""

Edges: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """Paths as the places of their edges, the first one first.

    `complete` is true when there are no others, and false when there are or when the search ended at its bound.
    """

    paths: tuple[Edges, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """All paths that begin with the first `kept` edges of `path` and go on otherwise than by the `barred` edges."""

    path: Edges
    kept: int
    barred: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """Parts of one bound, the one with the first path last; or the first path of a part, with those behind it."""

    parts: list[_Part]
    part: _Part | None = None
    edges: Edges = ()


@dataclass(slots=True)
class _Search:
    left: Ways
    start: int
    goals: frozenset[int]
    distance: list[int]
    searches: int = 0
    queue: list[tuple[int, bool, tuple[int, ...], int, _Candidate]] = field(
        default_factory=list[tuple[int, bool, tuple[int, ...], int, _Candidate]]
    )
    numbers: Iterator[int] = field(default_factory=count)

    def paths(self) -> Iterator[Edges]:
        """Every path in order, until the bound on searches is met."""
        while self.queue and self.searches < MAX_SEARCHES:
            length, _, _, _, one = heappop(self.queue)
            if one.part is None:
                self._look_into(length, one.parts)
            else:
                yield one.edges
                self._wait(length, one.parts)
                self.split(one.part, one.edges)

    def split(self, part: _Part, edges: Edges) -> None:
        """Queue what is left of a part without its first path."""
        targets = self.left.graph.targets
        blocks = self._blocks(edges[: part.kept])
        before, spur = set(blocks), blocks[-1]
        bounds: dict[int, list[tuple[bool, int, _Part]]] = {}
        for kept in range(part.kept, len(edges) + 1):
            barred = part.barred if kept == part.kept else frozenset[int]()
            following = edges[kept] if kept < len(edges) else None
            if following is not None:
                barred |= {following}
            rest = _Part(path=edges, kept=kept, barred=barred)
            nearest = self._nearest(rest, spur, before)
            if nearest is not None:
                # Of two parts the one that leaves the path first comes first only if it does so by an earlier edge.
                earlier = following is not None and self._rank(nearest) < self._rank(following)
                bound = kept + 1 + self.distance[targets[nearest]]
                bounds.setdefault(bound, []).append((not earlier, kept if earlier else -kept, rest))
            if following is not None:
                spur = targets[following]
                before.add(spur)
        for bound, parts in bounds.items():
            parts.sort(key=lambda one: one[:2], reverse=True)
            self._wait(bound, [one for _, _, one in parts])

    def _wait(self, bound: int, parts: list[_Part]) -> None:
        if parts:
            heappush(self.queue, (bound, False, (), next(self.numbers), _Candidate(parts=parts)))

    def _look_into(self, bound: int, parts: list[_Part]) -> None:
        """Queue the first path of the first of these parts; the others wait for it if it is as short as they may be."""
        part = parts.pop()
        edges = self._first_path(part)
        if edges is None or len(edges) > bound:
            self._wait(bound, parts)
            parts = []
        if edges is not None:
            ranks = tuple(map(self._rank, edges))
            candidate = _Candidate(parts=parts, part=part, edges=edges)
            heappush(self.queue, (len(edges), True, ranks, next(self.numbers), candidate))

    def _first_path(self, part: _Part) -> Edges | None:
        blocks = self._blocks(part.path[: part.kept])
        rest = self._straight(part, blocks)
        if rest is None:
            self.searches += 1
            left = ways(self.left.graph, self.left.blocks.union(blocks[:-1]), self.left.edges | part.barred)
            path = shortest(left, blocks[-1], self.goals.difference(blocks))
            rest = None if path is None else witness(left, path)
        return None if rest is None else part.path[: part.kept] + rest

    def _straight(self, part: _Part, blocks: list[int]) -> Edges | None:
        """The edges straight to the nearest goal, where they meet no block of the part's beginning; else None."""
        before = set(blocks)
        first = self._nearest(part, blocks[-1], before)
        if first is None:
            return None
        path = [self.left.graph.targets[first]]
        for nearer in range(self.distance[path[0]] - 1, -1, -1):
            path.append(
                next(after for after in self.left.successors[path[-1]] if self.distance[after] == nearer)
            )
            if path[-1] in before:
                return None
        return (first, *witness(self.left, path))

    def _nearest(self, part: _Part, spur: int, before: Collection[int]) -> int | None:
        """The first edge from which it is not further to a goal than from any other by which the part may go on."""
        graph, gone, distance = self.left.graph, self.left.edges, self.distance
        nearest: int | None = None
        least = len(distance)
        for edge in graph.outgoing[spur]:
            after = graph.targets[edge]
            barred = edge in part.barred or edge in gone or after in before
            if 0 <= distance[after] < least and not barred:
                nearest, least = edge, distance[after]
        return nearest

    def _rank(self, edge: int) -> int:
        return self.left.graph.outgoing[self.left.graph.sources[edge]].index(edge)

    def _blocks(self, edges: Sequence[int]) -> list[int]:
        return [self.start, *(self.left.graph.targets[edge] for edge in edges)]


def alternatives(left: Ways, start: int, goals: Collection[int], most: int) -> Alternatives:
    """The first `most` paths from a block to one of the goals (places) that pass no block twice.

    A path ends at a goal and may have passed others before. Paths that differ in parallel edges are different.
    """
    distance = [-1] * len(left.graph.blocks)
    for steps, level in enumerate(closure(left.predecessors, goals, left.blocks)):
        for block in level:
            distance[block] = steps
    if distance[start] < 0:
        return Alternatives(paths=(), complete=True)
    search = _Search(left, start, frozenset(goals), distance)
    search.split(_Part(path=(), kept=0, barred=frozenset()), ())
    found: list[Edges] = [()] if start in search.goals else []
    paths = search.paths()
    while len(found) <= most and (following := next(paths, None)) is not None:
        found.append(following)
    complete = len(found) <= most and not search.queue
    return Alternatives(paths=tuple(found[:most]), complete=complete)
