"""What every path from one block to another, or to an exit, passes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from affidavit.facts.graph.search import Ways, shortest, witness

__all__ = ["Passed", "must_pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A block or an edge (its place) that every path passes; `step` counts the edges of a shortest path before it."""

    is_edge: bool
    at: int
    step: int


def must_pass(left: Ways, start: int, goals: Collection[int]) -> list[Passed] | None:
    """The blocks and edges on every path to a goal, in the order in which paths pass them; None without a path.

    Walks along one shortest path and keeps how far along it one gets by leaving it. An edge, or a block, that no way
    around passes is on every path. Each block is looked at once.
    """
    path = shortest(left, start, goals)
    if path is None:
        return None
    edges = witness(left, path)
    graph = left.graph
    place = {block: at for at, block in enumerate(path)}
    beyond = len(path)  # what no block of the path is: another goal
    on_the_way = place | dict.fromkeys(set(goals) - {path[-1]}, beyond)
    seen = set(path) | left.blocks
    furthest = 0
    found = [Passed(is_edge=False, at=start, step=0)]
    for step, edge in enumerate(edges):
        aside = [
            graph.targets[at] for at in graph.outgoing[path[step]] if at != edge and at not in left.edges
        ]
        furthest = max(furthest, _furthest(left, aside, on_the_way, seen))
        if furthest <= step:
            found.append(Passed(is_edge=True, at=edge, step=step))
        if furthest <= step + 1:
            found.append(Passed(is_edge=False, at=path[step + 1], step=step + 1))
    return found


def _furthest(left: Ways, blocks: list[int], on_the_way: dict[int, int], seen: set[int]) -> int:
    """The furthest place on the path that is reached from these blocks beside it."""
    furthest = 0
    waiting = blocks
    while waiting:
        block = waiting.pop()
        if block in left.blocks:
            continue
        at = on_the_way.get(block)
        if at is not None:
            furthest = max(furthest, at)
        elif block not in seen:
            seen.add(block)
            waiting.extend(left.successors[block])
    return furthest
