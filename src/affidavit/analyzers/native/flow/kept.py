"""Registers that hold one constant wherever they are set: followed through copies, and over calls.

A register that holds no result is read behind a call only where the callee leaves it alone: a compiler that sees both
knows that it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from affidavit.analyzers.native.flow.pcode import REGISTER, Op, constant_of

__all__ = ["Kept"]

_WORD: Final = 8


class Kept:
    """The constants in the registers of one function.

    Args:
        ops: the p-code of a block.
        writes: for each register (in words) the last operation of a block that writes it.
        before: the predecessors of each block.
        entry: where the function begins.
        result: the register in which a function returns its value, in words.
    """

    def __init__(
        self,
        ops: Callable[[int], Sequence[Op]],
        writes: Callable[[int], Mapping[int, int]],
        before: Mapping[int, Sequence[int]],
        entry: int,
        result: int,
    ) -> None:
        self._ops = ops
        self._writes = writes
        self._before = before
        self._entry = entry
        self._result = result
        self._known: dict[tuple[int, int], int | None] = {}

    def constant(self, block: int, word: int, index: int) -> int | None:
        """The constant that all definitions which reach an operation set a register to, or None."""
        value, source = self._traced(block, word, index)
        if source is None:
            return value
        key = (block, source)
        if key not in self._known:
            self._known[key] = self._common(block, source)
        return self._known[key]

    def _common(self, block: int, word: int) -> int | None:
        said: set[int | None] = set()
        seen: set[tuple[int, int]] = set()
        work = [(block, word)]
        while work and None not in said and len(said) < 2:
            one, register = work.pop()
            before = self._before[one]
            if one == self._entry or not before:
                return None
            for other in before:
                if (other, register) in seen:
                    continue
                seen.add((other, register))
                value, source = self._traced(other, register, None)
                if source is None:
                    said.add(value)
                else:
                    work.append((other, source))
        return said.pop() if len(said) == 1 else None

    def _traced(self, block: int, word: int, index: int | None) -> tuple[int | None, int | None]:
        """What a register holds before an operation, or at the end of a block: a constant if that shows.

        Where the block does not set it, the register that it was copied from at the start of the block.
        """
        ops = self._ops(block)
        while word != self._result:
            at = self._last_write(block, word, index)
            if at is None:
                return None, word
            op = ops[at]
            if op.maybe or op.out is None or op.out.size != _WORD:
                return None, None
            node = op.inputs[0] if op.code == "COPY" else None
            if node is None or node.space != REGISTER or node.size != _WORD:
                return constant_of(ops, at), None
            word, index = node.offset >> 3, at
        return None, None

    def _last_write(self, block: int, word: int, index: int | None) -> int | None:
        if index is None:
            return self._writes(block).get(word)
        ops = self._ops(block)
        for at in range(index - 1, -1, -1):
            out = ops[at].out
            if (
                out is not None
                and out.space == REGISTER
                and out.offset >> 3 <= word <= (out.offset + out.size - 1) >> 3
            ):
                return at
        return None
