"""A binary as memory: what is mapped where, what may be executed, what cannot change while the program runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

__all__ = ["Area", "DamagedError", "Frame", "Image", "Symbol", "UnsupportedError"]

POINTER: Final = 8
_ABOVE: Final = 1 << 64


class DamagedError(Exception):
    """The file is not what its headers say. The text names the place."""


class UnsupportedError(Exception):
    """The file is well-formed and of a kind that is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A mapped range with its bytes.

    Attributes:
        name: the section's name, or `load0`, `load1` where there are no sections.
        start: first address.
        data: its bytes in the file; what follows them in memory is zero and not here.
        executable: whether it holds code.
        constant: whether its bytes stay as they are once the program is loaded.
    """

    name: str
    start: int
    data: bytes
    executable: bool
    constant: bool

    @property
    def end(self) -> int:
        """The first address behind the bytes."""
        return self.start + len(self.data)


class Symbol(NamedTuple):
    """A named function: where, how long (0 where the symbol does not say), and which table says so."""

    address: int
    size: int
    name: str
    dynamic: bool


class Frame(NamedTuple):
    """One entry of the unwind table.

    Attributes:
        start: first address of the code that it describes.
        end: the first address behind it.
        part: whether the stack is not as at a function's entry, so that this is the later part of a function.
        handlers: address of the language's table of landing pads, or 0.
        program: its rules.
        shared: those that all entries of its kind share.
        unit: bytes of code by which the rules count.
    """

    start: int
    end: int
    part: bool
    handlers: int
    program: bytes
    shared: bytes
    unit: int


@dataclass(slots=True, kw_only=True)
class Image:
    """All that is known of a binary before its code is decoded.

    Attributes:
        machine: `x86-64` or `aarch64`.
        abi: whose rules for registers and calls the code follows.
        areas: mapped ranges that have bytes, by address, without overlap.
        fixed: whether the code runs at the addresses of the file (no relocation may move it).
        entry: where the program starts, or None.
        roots: addresses that the loader calls, each with what says so (`init`, `init-array`, ...).
        symbols: named functions.
        imports: slots that the loader fills with the address of a named function of another file.
        stubs: code that only jumps through such a slot: address to name.
        thunks: where code may stand that only jumps through a slot, outside of sections of stubs.
        behind: stubs that lead to a function of this very file: address to that function's.
        pointers: values that the loader writes, by address.
        frames: the unwind table, by address.
        data: ranges in executable areas that symbols declare to be data, by address.
        limitations: places that could not be read, each with its reason.
    """

    machine: str
    areas: Sequence[Area]
    fixed: bool
    abi: Literal["system-v", "windows"] = "system-v"
    entry: int | None = None
    roots: Sequence[tuple[int, str]] = ()
    symbols: Sequence[Symbol] = ()
    imports: Mapping[int, str] = field(default_factory=dict[int, str])
    stubs: dict[int, str] = field(default_factory=dict[int, str])
    thunks: Sequence[int] = ()
    behind: dict[int, int] = field(default_factory=dict[int, int])
    pointers: Mapping[int, int] = field(default_factory=dict[int, int])
    frames: Sequence[Frame] = ()
    data: Sequence[tuple[int, int]] = ()
    limitations: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._starts = [area.start for area in self.areas]

    def add_stub(self, address: int, slot: int) -> None:
        """Note that the code at an address only jumps through a slot of `imports`."""
        self.stubs[address] = self.imports[slot]
        if self.pointers.get(slot):
            self.behind[address] = self.pointers[slot]

    def area(self, address: int) -> Area | None:
        """The area that holds an address, or None."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0:
            area = self.areas[at]
            if address < area.end:
                return area
        return None

    def code(self, address: int) -> Area | None:
        """The executable area that holds an address, or None, also where that is declared to be data."""
        area = self.area(address)
        if area is None or not area.executable:
            return None
        at = bisect_right(self.data, (address, _ABOVE)) - 1
        return None if at >= 0 and address < self.data[at][1] else area

    def data_behind(self, address: int) -> int:
        """Where the next range begins that is declared to be data."""
        at = bisect_right(self.data, (address, _ABOVE))
        return self.data[at][0] if at < len(self.data) else _ABOVE

    def constant(self, address: int, size: int) -> int | None:
        """The unsigned little-endian integer at an address, or None where it is not there or may change."""
        area = self.area(address)
        if area is None or not area.constant or address + size > area.end:
            return None
        if size == POINTER and address in self.pointers:
            return self.pointers[address]
        offset = address - area.start
        return int.from_bytes(area.data[offset : offset + size], "little")

    def pointer(self, address: int) -> int | None:
        """The pointer at an address once the program is loaded, or None; changeable data is read too."""
        if address in self.pointers:
            return self.pointers[address]
        area = self.area(address)
        if area is None or address + POINTER > area.end:
            return None
        offset = address - area.start
        return int.from_bytes(area.data[offset : offset + POINTER], "little")
