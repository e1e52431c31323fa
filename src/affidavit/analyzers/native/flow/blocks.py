"""From the instructions that descent found to basic blocks and what leads from one to the other.

A block ends at a branch, at a call that does not return or has a landing pad, and before an address that is branched
to; not at other calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from affidavit.analyzers.native.flow.descent import Flow, Step

__all__ = ["Block", "blocks_of", "predecessors"]


class Block(NamedTuple):
    """A basic block: its instructions, one behind the other, and the ways on in native order."""

    start: int
    end: int
    instructions: list[int]
    steps: list[Step]


def blocks_of(flow: Flow, nexts: Mapping[int, int]) -> dict[int, Block]:
    """The blocks by address, as far as the flow is known."""
    blocks: dict[int, Block] = {}
    leaders, steps, exits = flow.leaders, flow.steps, flow.exits
    for start in sorted(leaders):
        if start not in nexts:
            continue
        instructions: list[int] = []
        address = start
        while True:
            instructions.append(address)
            after = nexts[address]
            if address in steps:
                ways = steps[address]
                break
            if address in exits or after not in nexts:
                ways = []
                break
            if after in leaders:
                ways = [Step("fallthrough", after)]
                break
            address = after
        blocks[start] = Block(start, after, instructions, ways)
    return blocks


def predecessors(blocks: Mapping[int, Block]) -> dict[int, list[int]]:
    """For each block those that lead to it, each once, in order of address."""
    found: dict[int, list[int]] = {start: [] for start in blocks}
    for block in blocks.values():
        for target in dict.fromkeys(step.target for step in block.steps):
            if target in found:
                found[target].append(block.start)
    return found
