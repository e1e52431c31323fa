"""Dominators: which blocks are on every way from the roots to a block.

Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (TOPLAS 1, 1979), with path compression:
O(edges x log blocks) on any graph. Over the predecessors and from the exits the same gives post-dominators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from affidavit.facts.graph.search import Adjacency

__all__ = ["Dominators", "dominators"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominators:
    """The dominator tree.

    Attributes:
        immediate: the nearest dominator of each block, -1 for roots and blocks that several roots reach apart, -2
            for blocks that are not reached.
        depth: how many dominators each block has, itself included; 0 where it is not reached.
        order: the reached blocks, each after all of its dominators.
    """

    immediate: list[int]
    depth: list[int]
    order: list[int]

    def chain(self, block: int) -> list[int]:
        """All dominators of a block, itself first; none of one that is not reached."""
        found = [block] if self.depth[block] else []
        while (block := self.immediate[block]) >= 0:
            found.append(block)
        return found


def dominators(successors: Adjacency, predecessors: Adjacency, roots: Iterable[int]) -> Dominators:
    """The dominators of all blocks that the roots reach."""
    # Blocks are numbered in the order of a depth-first search; 0 is a block before all roots.
    number, order, parents = _depth_first(successors, roots)
    total = len(order) + 1
    semi = list(range(total))
    best = list(range(total))
    ancestor = [-1] * total
    immediate = [0] * total
    buckets: list[list[int]] = [[] for _ in range(total)]
    begins = set(roots)
    for at in range(total - 1, 0, -1):
        block, parent = order[at - 1], parents[at]
        if block in begins:
            semi[at] = 0
        for before in predecessors[block]:
            if number[before]:
                semi[at] = min(semi[at], semi[_best(number[before], ancestor, best, semi)])
        buckets[semi[at]].append(at)
        ancestor[at] = parent
        for one in buckets[parent]:
            through = _best(one, ancestor, best, semi)
            immediate[one] = through if semi[through] < semi[one] else parent
        buckets[parent].clear()
    tree = [-2] * len(successors)
    depth = [0] * len(successors)
    for at in range(1, total):
        if immediate[at] != semi[at]:
            immediate[at] = immediate[immediate[at]]
        block = order[at - 1]
        tree[block] = order[immediate[at] - 1] if immediate[at] else -1
        depth[block] = depth[tree[block]] + 1 if immediate[at] else 1
    return Dominators(immediate=tree, depth=depth, order=order)


def _depth_first(successors: Adjacency, roots: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
    """Numbers from 1 by block (0: not reached), blocks in that order, and the number of each number's parent."""
    number = [0] * len(successors)
    order: list[int] = []
    parents = [0]
    for root in roots:
        waiting = [(root, 0)]
        while waiting:
            block, parent = waiting.pop()
            if number[block]:
                continue
            order.append(block)
            parents.append(parent)
            number[block] = len(order)
            waiting.extend(
                [(after, len(order)) for after in reversed(successors[block]) if not number[after]]
            )
    return number, order, parents


def _best(one: int, ancestor: list[int], best: list[int], semi: list[int]) -> int:
    """The block of least semidominator between `one` and the root of its part of the forest; shortens the way."""
    if ancestor[one] < 0:
        return one
    way: list[int] = []
    while ancestor[ancestor[one]] >= 0:
        way.append(one)
        one = ancestor[one]
    for below in reversed(way):
        above = ancestor[below]
        if semi[best[above]] < semi[best[below]]:
            best[below] = best[above]
        ancestor[below] = ancestor[above]
    return best[way[0] if way else one]
