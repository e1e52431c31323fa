"""Which addresses AArch64 code names: constants in registers, followed forward over the blocks of a function.

An address takes two instructions, `adrp` for its page and a sum or an access for its place there, and compilers keep
one or both in registers over loops and calls. What is not understood is taken to write every register it mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from affidavit.analyzers.native.flow.blocks import Block
from affidavit.analyzers.native.flow.decoding import Access, Reference
from affidavit.analyzers.native.loading.image import Image

__all__ = ["Addresses", "loaded_slot", "page_of", "sum_of"]

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_ZERO: Final = 31
_CALL_WRITES: Final = (0, 1, 30)
"""What a call leaves in registers, and where it returns to.

Another register is read behind a call only where the callee leaves it alone: a compiler that sees both knows that.
"""
_POINTER: Final = 8

State: TypeAlias = dict[int, int]
"""The registers that hold a known address."""


class _Memory(NamedTuple):
    """An access: at which offset from which register, how, which registers it writes."""

    base: int
    offset: int
    access: Access
    writes: tuple[int, ...]


class Addresses:
    """Follows addresses through the code of an image.

    Args:
        image: whose.
        word: the encoding of the instruction at an address.
    """

    def __init__(self, image: Image, word: Callable[[int], int]) -> None:
        self._image = image
        self._word = word

    def references(self, blocks: Mapping[int, Block]) -> Iterator[Reference]:
        """What the instructions of a function name, block by block."""
        entered = self._entered(blocks)
        for start, block in blocks.items():
            found: list[Reference] = []
            self._pass(block, dict(entered.get(start, {})), found)
            yield from found

    def may_write(self, word: int, register: int) -> bool:
        """Whether an instruction may write a register."""
        group = word >> 25 & 15
        if group & 0b1110 == 0b1010:
            return True
        if group & 0b0101 != 0b0100:
            return register in _written(word)
        memory = _memory(word)
        return memory is None or register in memory.writes

    def _entered(self, blocks: Mapping[int, Block]) -> dict[int, State]:
        """What is known at the start of each block: what all ways to it agree on."""
        entered: dict[int, State] = {}
        led_to = {step.target for block in blocks.values() for step in block.steps}
        first = next(iter(blocks), None)
        work = [start for start in blocks if start not in led_to or start == first]
        entered.update((start, {}) for start in work)
        while work:
            start = work.pop()
            state = dict(entered[start])
            self._pass(blocks[start], state, None)
            targets = (step.target for step in blocks[start].steps if step.target in blocks)
            work += [target for target in targets if _met(entered, target, state)]
        return entered

    def _pass(self, block: Block, state: State, found: list[Reference] | None) -> None:
        """Bring the state behind a block, and list what it names."""
        for at in block.instructions:
            one = self._step(self._word(at), at, state)
            if one is not None and found is not None:
                found.append(one)

    def _step(self, word: int, at: int, state: State) -> Reference | None:
        group = word >> 25 & 15
        if group & 0b1110 == 0b1000:
            return self._immediate(word, at, state)
        if group & 0b1110 == 0b1010:
            _branch(word, state)
            return None
        if group & 0b0101 == 0b0100:
            return self._access(word, at, state)
        if word & 0xFFE0FFE0 == 0xAA0003E0:  # mov
            _set(state, word & 31, state.get(word >> 16 & 31))
            return None
        for register in _written(word):
            state.pop(register, None)
        return None

    def _immediate(self, word: int, at: int, state: State) -> Reference | None:
        page, moved = page_of(word, at), sum_of(word)
        if page is not None:
            _set(state, *page)
            return None
        if word & 0x9F000000 == 0x10000000:  # adr
            target = (at + _paged(word)) & _MASK
            _set(state, word & 31, target)
            return Reference(at, "address", target)
        if moved is not None and moved[1] in state:
            target = (state[moved[1]] + moved[2]) & _MASK
            _set(state, moved[0], target)
            return Reference(at, "address", target)
        state.pop(word & 31, None)
        return None

    def _access(self, word: int, at: int, state: State) -> Reference | None:
        if word & 0x3B000000 == 0x18000000:
            return self._literal(word, at, state)
        memory = _memory(word)
        if memory is None:
            for register in (word & 31, word >> 5 & 31, word >> 10 & 31, word >> 16 & 31):
                state.pop(register, None)
            return None
        base = state.get(memory.base)
        for register in memory.writes:
            state.pop(register, None)
        return None if base is None else Reference(at, memory.access, (base + memory.offset) & _MASK)

    def _literal(self, word: int, at: int, state: State) -> Reference:
        """A load of a literal: what it names is the address that stands there, if one does."""
        offset = (word >> 5 & 0x7FFFF) << 2
        place = (at + (offset - (1 << 21) if offset >> 20 else offset)) & _MASK
        state.pop(word & 31, None)
        if word >> 24 == 0x58:
            value = self._image.constant(place, _POINTER)
            moved = place in self._image.pointers
            if value is not None and (moved or self._image.fixed) and self._image.area(value) is not None:
                _set(state, word & 31, value)
                return Reference(at, "address", value)
        return Reference(at, "address" if word >> 24 == 0xD8 else "read", place)


def page_of(word: int, at: int) -> tuple[int, int] | None:
    """Register and address of an `adrp`, or None."""
    if word & 0x9F000000 != 0x90000000:
        return None
    return word & 31, ((at & ~0xFFF) + (_paged(word) << 12)) & _MASK


def sum_of(word: int) -> tuple[int, int, int] | None:
    """Registers (result, first) and number of a 64-bit `add` or `sub` of a number, or None."""
    if word & 0xBF800000 != 0x91000000 or _ZERO in (word & 31, word >> 5 & 31):
        return None
    number = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
    return word & 31, word >> 5 & 31, -number if word >> 30 & 1 else number


def loaded_slot(word: int) -> tuple[int, int, int] | None:
    """Registers (result, base) and offset of a load of 64 bits, or None."""
    if word & 0xFFC00000 != 0xF9400000:
        return None
    return word & 31, word >> 5 & 31, (word >> 10 & 0xFFF) << 3


def _paged(word: int) -> int:
    value = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
    return value - (1 << 21) if value >> 20 else value


def _set(state: State, register: int, value: int | None) -> None:
    if value is None or register == _ZERO:
        state.pop(register, None)
    else:
        state[register] = value


def _met(entered: dict[int, State], target: int, state: State) -> bool:
    """Let a way into a block have its say; whether that changes what is known there."""
    known = entered.get(target)
    if known is None:
        entered[target] = dict(state)
        return True
    kept = {register: value for register, value in known.items() if state.get(register) == value}
    if len(kept) == len(known):
        return False
    entered[target] = kept
    return True


def _branch(word: int, state: State) -> None:
    """Calls write their results; system instructions write one register, and those that sign a return address two."""
    if word & 0xFC000000 == 0x94000000 or word & 0xFE600000 == 0xD6200000:
        for register in _CALL_WRITES:
            state.pop(register, None)
    elif word >> 24 == 0xD5:
        for register in (word & 31, 17, 30):
            state.pop(register, None)
    elif word >> 24 == 0xD4:
        state.pop(0, None)


def _written(word: int) -> tuple[int, ...]:
    """The register that an instruction of computation may write."""
    if word >> 25 & 7 == 7:  # floating point and vectors: few move to a general register
        moves = (
            word & 0x5F20FC00 == 0x1E200000
            or word & 0x5F200000 == 0x1E000000
            or word & 0x9FE08400 == 0x0E000400
        )
        return (word & 31,) if moves else ()
    return (word & 31,)


def _memory(word: int) -> _Memory | None:
    """An access at a number's distance from a register; None for all others."""
    if word & 0x3B000000 == 0x39000000:
        number = (word >> 10 & 0xFFF) << _scale(word)
        return _single(word, number, ())
    if word & 0x3B200000 == 0x38000000:
        number = word >> 12 & 0x1FF
        number = number - 0x200 if number >> 8 else number
        moves = word >> 10 & 1
        behind = word >> 10 & 3 == 1
        return _single(word, 0 if behind else number, (word >> 5 & 31,) if moves else ())
    if word & 0x3B200C00 == 0x38200800:  # with a register as offset: where is not known, what it writes is
        single = _single(word, 0, ())
        return single._replace(base=_ZERO)
    if word & 0x3A000000 == 0x28000000:
        return _pair(word)
    return None


def _single(word: int, offset: int, writes: tuple[int, ...]) -> _Memory:
    vector, kind = word >> 26 & 1, word >> 22 & 3
    loads = kind & 1 if vector else kind
    access: Access = "read" if loads else "write"
    if not vector and word >> 30 == 3 and kind == 2:
        access, loads = "address", 0  # a prefetch
    if loads and not vector:
        writes = (word & 31, *writes)
    return _Memory(word >> 5 & 31, offset, access, writes)


def _pair(word: int) -> _Memory:
    vector, loads, mode = word >> 26 & 1, word >> 22 & 1, word >> 23 & 3
    scale = 2 + (word >> 30) if vector else 2 + (word >> 31)
    number = word >> 15 & 0x7F
    number = (number - 0x80 if number >> 6 else number) << scale
    writes = (word >> 5 & 31,) if mode & 1 else ()
    if loads and not vector:
        writes = (word & 31, word >> 10 & 31, *writes)
    return _Memory(word >> 5 & 31, 0 if mode == 1 else number, "read" if loads else "write", writes)


def _scale(word: int) -> int:
    size = word >> 30
    return size | 4 if word >> 26 & 1 and word >> 23 & 1 else size
