"""AArch64: kinds of branches from the encoding (Arm ARM, C4.1), text by pypcode, whose p-code gives the meaning too."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from affidavit.analyzers.native.flow.blocks import Block
from affidavit.analyzers.native.flow.decoding import Convention, Kind, Reference, Run
from affidavit.analyzers.native.flow.machines.aarch64_addresses import (
    Addresses,
    loaded_slot,
    page_of,
    sum_of,
)
from affidavit.analyzers.native.loading.image import Area, Image

__all__ = ["AArch64Decoder"]

_STEP: Final = 4
_X0: Final = 0x4000
_CONVENTION: Final = Convention(
    language="AARCH64:LE:64:v8A",
    # sp, x19 to x29 (Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1)
    preserved=frozenset({0x08, *range(_X0 + 8 * 19, _X0 + 8 * 30, 8)}),
    stack=0x08,
    result=_X0 >> 3,
    popped=0,
    step=_STEP,
    aligned=_STEP,
)
_WORD: Final = struct.Struct("<I")
_NOP: Final = 0xD503201F
_HINT: Final = 0xD503201F
_HINTS: Final = 0xFFFFF01F
_ALWAYS: Final = 14
"""From this condition code on a conditional branch is always taken."""
_DEBUGGER: Final = 0xF000
"""The breakpoint behind which a debugger goes on."""
_STUB_INSTRUCTIONS: Final = 6
_UNREADABLE: Final = "(bad)"
_SETTING: Final = frozenset(
    {
        "adds",
        "subs",
        "cmp",
        "cmn",
        "negs",
        "ngcs",
        "adcs",
        "sbcs",
        "ands",
        "bics",
        "tst",
        "ccmp",
        "ccmn",
        "fcmp",
        "fcmpe",
        "fccmp",
        "fccmpe",
        "rmif",
        "setf8",
        "setf16",
        "cfinv",
        "ptest",
    }
)
"""What sets the flags."""
_REGISTER: Final[Mapping[int, Kind]] = {0: "indirect-jump", 1: "indirect-call", 2: "return"}
"""Branches to a register by bits 22 and 21; bit 24 says that the address is signed with a second register."""


class AArch64Decoder:
    """See `flow.decoding.Decoder`.

    Args:
        image: whose code.
    """

    convention = _CONVENTION

    def __init__(self, image: Image) -> None:
        self._image = image
        self._context: Any = None
        self._addresses = Addresses(image, self._word)
        self.nexts: dict[int, int] = {}
        self._texts: dict[int, tuple[str, str]] = {}

    def begin(self) -> None:
        """Forget what was decoded."""
        self.nexts = {}
        self._texts = {}

    def run(self, address: int, low: int, high: int) -> Run:
        """Decode from an address on, within `[low, high)`."""
        area = self._image.code(address)
        if area is None or address % _STEP:
            return Run("undecodable", address, address)
        run = self._scan(area, address, low, min(high, self._image.data_behind(address)), high)
        return self._readable(area, address, run)

    def stub(self, address: int) -> int | None:
        """The slot of a stub of the linkage table: perhaps `bti c`, `adrp`, `ldr`, `add`, then `br`."""
        registers: dict[int, int] = {}
        slots: dict[int, int] = {}
        for at in range(address, address + _STUB_INSTRUCTIONS * _STEP, _STEP):
            word = self._word(at)
            page, loaded, moved = page_of(word, at), loaded_slot(word), sum_of(word)
            if page is not None:
                registers[page[0]] = page[1]
            elif loaded is not None and loaded[1] in registers:
                slots[loaded[0]] = registers[loaded[1]] + loaded[2]
            elif moved is not None and moved[1] in registers:
                registers[moved[0]] = registers[moved[1]] + moved[2]
            elif word & 0xFE000000 == 0xD6000000:
                return slots.get(word >> 5 & 31) if word >> 21 & 3 == 0 else None
            elif word & _HINTS != _HINT:
                return None
        return None

    def text(self, address: int) -> str:
        """Assembler syntax, addresses in full."""
        mnemonic, operands = self._texts.get(address, (_UNREADABLE, ""))
        return f"{mnemonic} {operands}".rstrip()

    def condition(self, block: Sequence[int]) -> str:
        """The condition code, and what last set the flags where the block shows it; or the test: `cbz x0`."""
        mnemonic, operands = self._texts[block[-1]]
        if "." not in mnemonic:
            return f"{mnemonic} {operands.rpartition(',')[0]}".rstrip()
        code = mnemonic.rpartition(".")[2]
        for address in reversed(block[:-1]):
            set_by = self._texts[address][0]
            if set_by in _SETTING:
                return f"{code} after {self.text(address)}"
            if set_by.startswith("bl"):
                break
        return code

    def references(self, blocks: Mapping[int, Block]) -> Iterator[Reference]:
        """Addresses that are made by `adr`, by `adrp` and a sum, or kept in a register; literals."""
        return self._addresses.references(blocks)

    def is_padding(self, code: bytes) -> bool:
        """`nop`, or the zeros that are permanently undefined."""
        return all(
            not word or word == _NOP for (word,) in _WORD.iter_unpack(code[: len(code) // _STEP * _STEP])
        )

    def _scan(self, area: Area, address: int, low: int, end: int, high: int) -> Run:
        """Follow the encodings up to the first that ends the run; `end` is where data begins."""
        nexts, data, start = self.nexts, area.data, area.start
        end = min(end, start + len(data) - _STEP + 1)
        last = address
        while True:
            if address in nexts:
                return Run("joined", last, address)
            if not low <= address < high:
                return Run("left", last, address)
            if address >= end:
                return Run("undecodable", address, address)
            (word,) = _WORD.unpack_from(data, address - start)
            last, address = address, address + _STEP
            nexts[last] = address
            if word & 0x1C000000 == 0x14000000:
                run = _leaving(word, last)
                if run is not None:
                    return self._called_by_slot(run, word)
            elif word < 0x10000:
                return Run("trap", last, address)

    def _readable(self, area: Area, begin: int, run: Run) -> Run:
        """The run as far as its instructions can be read."""
        end = run.next if run.kind not in ("joined", "left", "undecodable") else run.at + _STEP
        if run.kind == "undecodable":
            end = run.at
        at = begin
        for mnemonic, operands in self._disassembled(area.data[begin - area.start : end - area.start], begin):
            self._texts[at] = (mnemonic, operands)
            at += _STEP
        if at >= end:
            return run
        for address in range(at, end, _STEP):
            self.nexts.pop(address, None)
        return Run("undecodable", at, at)

    def _disassembled(self, code: bytes, address: int) -> Iterator[tuple[str, str]]:
        import pypcode

        if self._context is None:
            self._context = pypcode.Context(_CONVENTION.language)
        if not code:
            return
        try:
            found: Any = self._context.disassemble(code, base_address=address)
        except (pypcode.BadDataError, pypcode.UnimplError):
            return
        for one in found.instructions:
            yield one.mnem, one.body.replace(", LSL ]", "]")

    def _called_by_slot(self, run: Run, word: int) -> Run:
        """A call through a slot of imported functions, where the instructions just before it read that slot."""
        if run.kind != "indirect-call":
            return run
        register = word >> 5 & 31
        at = run.at - _STEP
        slot: tuple[int, int] | None = None
        while at in self.nexts:
            before = self._word(at)
            page = page_of(before, at)
            if slot is not None and page is not None and page[0] == register:
                found = page[1] + slot[0]
                return run._replace(slot=found, since=slot[1]) if found in self._image.imports else run
            loaded = loaded_slot(before)
            if slot is None and loaded is not None and loaded[0] == register:
                register, slot = loaded[1], (loaded[2], at)
            elif self._addresses.may_write(before, register):
                return run
            at -= _STEP
        return run

    def _word(self, address: int) -> int:
        """The encoding at an address, 0 where there is no code."""
        area = self._image.code(address)
        if area is None or address + _STEP > area.end:
            return 0
        return _WORD.unpack_from(area.data, address - area.start)[0]


def _leaving(word: int, at: int) -> Run | None:
    """How the flow goes on behind an instruction of the class of branches; None where it just goes on."""
    following = at + _STEP
    if word & 0x7C000000 == 0x14000000:
        target = _target(at, word, 0, 26)
        if not word >> 31:
            return Run("jump", at, following, target)
        return None if target == following else Run("call", at, following, target)
    if word & 0xFF000000 == 0x54000000:
        kind: Kind = "jump" if word & 15 >= _ALWAYS else "branch"
        return Run(kind, at, following, _target(at, word, 5, 19))
    if word & 0x7E000000 == 0x34000000:
        return Run("branch", at, following, _target(at, word, 5, 19))
    if word & 0x7E000000 == 0x36000000:
        return Run("branch", at, following, _target(at, word, 5, 14))
    if word & 0xFE000000 == 0xD6000000:
        leaves = _REGISTER.get(word >> 21 & 3) if not word >> 23 & 1 else "return"
        return None if leaves is None else Run(leaves, at, following)
    if word & 0xFF000000 == 0xD4000000 and word >> 21 & 7 in (1, 2, 5):
        breakpoint_ = word >> 21 & 7 == 1 and word >> 5 & 0xFFFF == _DEBUGGER
        return None if breakpoint_ else Run("trap", at, following)
    return None


def _target(at: int, word: int, shift: int, bits: int) -> int:
    offset = word >> shift & ((1 << bits) - 1)
    if offset >> (bits - 1):
        offset -= 1 << bits
    return (at + _STEP * offset) & 0xFFFF_FFFF_FFFF_FFFF
