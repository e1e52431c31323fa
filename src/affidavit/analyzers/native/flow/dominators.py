"""Immediate dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from affidavit.analyzers.native.flow.blocks import Block

__all__ = ["immediate_dominators"]


def immediate_dominators(
    entry: int, blocks: Mapping[int, Block], before: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """For each block reached from `entry`, but for that, the nearest other one that every path to it passes."""
    order = _postorder(entry, blocks)
    number = {block: at for at, block in enumerate(order)}
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block == entry:
                continue
            above: int | None = None
            for other in before[block]:
                if other in found:
                    above = other if above is None else _common(other, above, found, number)
            if above is not None and found.get(block) != above:
                found[block] = above
                changed = True
    del found[entry]
    return found


def _common(first: int, second: int, found: Mapping[int, int], number: Mapping[int, int]) -> int:
    while first != second:
        while number[first] < number[second]:
            first = found[first]
        while number[second] < number[first]:
            second = found[second]
    return first


def _postorder(entry: int, blocks: Mapping[int, Block]) -> list[int]:
    if entry not in blocks:
        return []
    order: list[int] = []
    seen = {entry}
    work = [(entry, iter([step.target for step in blocks[entry].steps]))]
    while work:
        block, ways = work[-1]
        for target in ways:
            if target in blocks and target not in seen:
                seen.add(target)
                work.append((target, iter([step.target for step in blocks[target].steps])))
                break
        else:
            order.append(block)
            work.pop()
    return order
