"""What a function stores in its own frame: the writes at a number's distance from the stack pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from affidavit.analyzers.native.flow.pcode import CONSTANT, REGISTER, Op, Varnode

__all__ = ["StackStores"]

_WORD: Final = 8


class StackStores:
    """The stores of a function that name the stack pointer, by their distance from it.

    Args:
        blocks: the function's.
        ops: the p-code of one of them.
        stack: offset of the stack pointer in the register space.
    """

    def __init__(self, blocks: Iterable[int], ops: Callable[[int], Sequence[Op]], stack: int) -> None:
        register = Varnode(REGISTER, stack, _WORD)
        self._found = [
            (distance, ops(block)[at].inputs[2].size, block, at)
            for block in blocks
            for at, distance in _distances(ops(block), register)
        ]

    def over(self, distance: int, size: int) -> Iterator[tuple[int, int]]:
        """The stores, as block and place in it, that write any of the bytes at a distance."""
        for below, wide, block, at in self._found:
            if below < distance + size and distance < below + wide:
                yield block, at


def _distances(ops: Sequence[Op], register: Varnode) -> Iterator[tuple[int, int]]:
    known: dict[Varnode, int] = {}
    for at, op in enumerate(ops):
        known[register] = 0
        if op.code == "STORE" and op.inputs[1] in known:
            yield at, known[op.inputs[1]]
        if op.out is None:
            continue
        base = known.get(op.inputs[0]) if op.inputs else None
        known.pop(op.out, None)
        if base is not None and op.code == "COPY":
            known[op.out] = base
        elif base is not None and op.code == "INT_ADD" and op.inputs[1].space == CONSTANT:
            number = op.inputs[1].offset
            known[op.out] = base + (number - (1 << 64) if number >> 63 else number)
