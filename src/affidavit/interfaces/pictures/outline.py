"""Blocks that are drawn as one box, where a function has more than a picture can show.

First chains are drawn as one: blocks that follow each other and nothing else. Then regions: a block with all blocks
that only it leads to (its subtree of the dominator tree), of at most so many blocks as it takes. Where a block leads
to more regions than can be drawn, they become one box. Blocks that are marked stay by themselves as long as there is
room.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias

from affidavit.facts.graph.dominance import Dominators, dominators

__all__ = ["Group", "outline"]

Kind: TypeAlias = Literal["block", "chain", "loop", "region", "regions"]
Adjacency: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Blocks that are one box: places in native order, where control comes in first.

    Attributes:
        loops: how many edges within it lead back to a block that dominates where they start.
    """

    kind: Kind
    blocks: tuple[int, ...]
    loops: int = 0


def outline(successors: Adjacency, entry: int, kept: Collection[int], most: int) -> list[Group]:
    """The boxes of a graph, at most so many, in the native order of their first blocks; each block is in one.

    Args:
        successors: places of the blocks after each block.
        entry: where control comes in.
        kept: blocks that should stay by themselves; given up where they alone are too many.
        most: boxes at most.
    """
    total = len(successors)
    single = [Group(kind="block", blocks=(at,)) for at in range(total)]
    if total <= most:
        return single
    if len(kept) > most // 2:
        kept = ()
    chains = _chains(successors, frozenset(kept) | {entry})
    if len(chains) <= most:
        return chains
    of = {block: at for at, chain in enumerate(chains) for block in chain.blocks}
    above: list[tuple[int, ...]] = [
        tuple(dict.fromkeys(of[after] for after in successors[chain.blocks[-1]])) for chain in chains
    ]
    tree = _tree(above, of[entry])
    held = {of[block] for block in kept}
    largest = 2
    while largest < 2 * total:
        for together in (False, True):
            # Regions of a few blocks each tell more than a heap of them, as long as they are not half of everything.
            if together or largest <= max(2, total // 8):
                found = _regions(chains, above, tree, held, largest, together=together)
                if len(found) <= most:
                    return found
        largest *= 2
    return outline(successors, entry, (), most) if kept else [_whole(successors, entry)]


def _whole(successors: Adjacency, entry: int) -> Group:
    rest = [at for at in range(len(successors)) if at != entry]
    return Group(kind="region", blocks=(entry, *rest))


def _chains(successors: Adjacency, kept: Collection[int]) -> list[Group]:
    before: list[int] = [0] * len(successors)
    for after in successors:
        for target in after:
            before[target] += 1
    follows = {
        after[0]: at
        for at, after in enumerate(successors)
        if len(after) == 1 and before[after[0]] == 1 and after[0] != at and not {at, after[0]} & set(kept)
    }
    following = {source: target for target, source in follows.items()}
    placed: set[int] = set()
    found: list[Group] = []
    # A cycle of blocks that only follow each other has no first one; its blocks begin chains of their own.
    for at in [*(at for at in range(len(successors)) if at not in follows), *follows]:
        if at in placed:
            continue
        chain = [at]
        while (after := following.get(chain[-1])) is not None and after not in placed and after != at:
            chain.append(after)
        placed.update(chain)
        found.append(Group(kind="chain" if len(chain) > 1 else "block", blocks=tuple(chain)))
    return sorted(found, key=lambda group: group.blocks[0])


def _tree(successors: Adjacency, entry: int) -> Dominators:
    """Dominators from the entry, and from the first block of what it does not reach, again and again."""
    predecessors: list[list[int]] = [[] for _ in successors]
    for at, after in enumerate(successors):
        for target in after:
            predecessors[target].append(at)
    roots = [entry]
    reached = _reached(successors, entry, set())
    for at in range(len(successors)):
        if at not in reached:
            roots.append(at)
            _reached(successors, at, reached)
    return dominators([tuple(it) for it in successors], [tuple(it) for it in predecessors], roots)


def _reached(successors: Adjacency, start: int, seen: set[int]) -> set[int]:
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            waiting.extend(successors[at])
    return seen


def _regions(
    chains: Sequence[Group],
    successors: Adjacency,
    tree: Dominators,
    held: Collection[int],
    largest: int,
    *,
    together: bool,
) -> list[Group]:
    """Subtrees of at most `largest` blocks as one group each; with `together`, those below one block as one."""
    size = [len(chain.blocks) for chain in chains]
    whole = [at not in held for at in range(len(chains))]
    for at in reversed(tree.order):
        above = tree.immediate[at]
        if above >= 0:
            size[above] += size[at]
            whole[above] = whole[above] and whole[at]
    top: dict[int, int] = {}  # the topmost place of the region that a place is in
    for at in tree.order:
        above = tree.immediate[at]
        inside = above in top and top[above] != -1
        top[at] = top[above] if inside else at if whole[at] and size[at] <= largest else -1
    members: dict[int, list[int]] = {}
    for at in tree.order:
        members.setdefault(top[at] if top[at] != -1 else at, []).append(at)
    loops = _loops(successors, tree)
    found = [
        (tree.immediate[first] if top[first] != -1 else -3 - first, _joined(chains, places, loops))
        for first, places in members.items()
    ]
    if together:
        found = [(above, group) for above, group in _together(found)]
    return sorted((group for _, group in found), key=lambda group: group.blocks[0])


def _joined(chains: Sequence[Group], places: Sequence[int], loops: Mapping[int, int]) -> Group:
    if len(places) == 1:
        return chains[places[0]]
    first, *rest = places
    blocks = (*chains[first].blocks, *sorted(block for at in rest for block in chains[at].blocks))
    number = sum(loops.get(at, 0) for at in places)
    return Group(kind="loop" if loops.get(first) else "region", blocks=blocks, loops=number)


def _together(found: Sequence[tuple[int, Group]]) -> list[tuple[int, Group]]:
    made: list[tuple[int, Group]] = []
    for above, some in groupby(sorted(found, key=lambda item: item[0]), key=lambda item: item[0]):
        groups = [group for _, group in some]
        if len(groups) == 1:
            made.append((above, groups[0]))
            continue
        blocks = sorted(block for group in groups for block in group.blocks)
        joined = replace(
            groups[0], kind="regions", blocks=tuple(blocks), loops=sum(it.loops for it in groups)
        )
        made.append((above, joined))
    return made


def _loops(successors: Adjacency, tree: Dominators) -> dict[int, int]:
    """By loop header, how many edges lead back to it."""
    found: dict[int, int] = {}
    for at, after in enumerate(successors):
        for target in after:
            if tree.depth[target] <= tree.depth[at] and target in _up(tree, at, tree.depth[target]):
                found[target] = found.get(target, 0) + 1
    return found


def _up(tree: Dominators, at: int, depth: int) -> tuple[int]:
    while tree.depth[at] > depth:
        at = tree.immediate[at]
    return (at,)
