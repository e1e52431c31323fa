"""Where functions begin and how far they reach, before any code is decoded, each with the basis of that claim."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from affidavit.analyzers.native.loading.image import Frame, Image

__all__ = ["STUBS", "Basis", "Function", "Functions"]

Basis: TypeAlias = Literal[
    "symbol",
    "dynamic-symbol",
    "unwind-table",
    "entry",
    "init",
    "fini",
    "preinit-array",
    "init-array",
    "fini-array",
    "thread-callback",
    "function-starts",
    "call-target",
    "tail-call-target",
]
"""What says that a function begins at an address."""

_PART: Final = re.compile(r"(?P<whole>.+)\.cold(\.\d+)?\Z")
STUBS: Final = (".plt", "__stubs")
"""What the names of sections begin with that hold stubs."""
_UNNAMED: Final = re.compile(r"(|\$[xd](\..*)?|e(843419|835769)@.*)\Z")
"""Symbols that name no function: none, mapping symbols, and what GNU ld puts around errata of processors."""


@dataclass(slots=True, kw_only=True)
class Function:
    """A function, or a later part of one.

    Attributes:
        start: its first address.
        end: the first address that is no longer its own.
        sized: whether `end` is told by a symbol or the unwind table; else the next function or the area ends it.
        name: its name; symbols of the static table are preferred, then the shortest, then by code point.
        aliases: its other names.
        basis: what says that it is there.
        frame: its entry of the unwind table.
        part: whether it is a part that the compiler moved away from its function.
    """

    start: int
    end: int = 0
    sized: bool = False
    name: str | None = None
    aliases: tuple[str, ...] = ()
    basis: set[Basis] = field(default_factory=set[Basis])
    frame: Frame | None = None
    part: bool = False


class Functions:
    """The functions of an image by address. Grows while calls are found."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._frames = [
            frame for frame in image.frames if self.is_code(frame.start) and frame.end > frame.start
        ]
        self._frame_starts = [frame.start for frame in self._frames]
        self.by_start: dict[int, Function] = {}
        self._read()
        self._starts = sorted(self.by_start)
        for function in self.by_start.values():
            self._bound(function)

    def __iter__(self) -> Iterator[Function]:
        """By address."""
        return (self.by_start[start] for start in self._starts)

    def __len__(self) -> int:
        return len(self._starts)

    def get(self, address: int) -> Function | None:
        """The function that begins here, or None."""
        return self.by_start.get(address)

    def part_at(self, address: int) -> Function | None:
        """The part of a function that holds an address, or None."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        function = self.by_start[self._starts[at]]
        return function if function.part and address < function.end else None

    def holder(self, address: int) -> Function | None:
        """The function that begins nearest before an address and reaches beyond it."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        function = self.by_start[self._starts[at]]
        return function if address < function.end else None

    def add(self, address: int, basis: Basis) -> Function | None:
        """Make a function known that was found by a call; None where there is no code."""
        known = self.by_start.get(address)
        if known is not None:
            known.basis.add(basis)
            return None
        if not self.is_code(address):
            return None
        function = Function(start=address, basis={basis})
        before = self.holder(address)
        if before is not None and not before.sized:
            before.end = address
        self.by_start[address] = function
        insort(self._starts, address)
        self._bound(function)
        return function

    def frame_of(self, address: int) -> Frame | None:
        """The entry of the unwind table that describes an address."""
        at = bisect_right(self._frame_starts, address) - 1
        if at >= 0 and address < self._frames[at].end:
            return self._frames[at]
        return None

    def is_code(self, address: int) -> bool:
        """Whether there is code at an address that is no stub of the linkage table."""
        area = self._image.code(address)
        return area is not None and not area.name.startswith(STUBS)

    def _read(self) -> None:
        names: dict[int, list[tuple[bool, int, str]]] = {}
        for symbol in self._image.symbols:
            if self.is_code(symbol.address) and not _UNNAMED.match(symbol.name):
                function = self._make(symbol.address, "dynamic-symbol" if symbol.dynamic else "symbol")
                function.end = max(function.end, symbol.address + symbol.size if symbol.size else 0)
                names.setdefault(symbol.address, []).append((symbol.dynamic, len(symbol.name), symbol.name))
        for address, found in names.items():
            ordered = list(dict.fromkeys(name for _, _, name in sorted(found)))
            function = self.by_start[address]
            function.name, function.aliases = ordered[0], tuple(ordered[1:])
            function.part = all(_PART.match(name) for name in ordered)
        for frame in self._frames:
            function = self._make(frame.start, "unwind-table")
            function.end = max(function.end, frame.end)
            function.frame = frame
            function.part = function.part or (frame.part and function.name is None)
        roots = [(self._image.entry, "entry"), *self._image.roots]
        for address, basis in roots:
            if address is not None and self.is_code(address):
                self._make(address, basis).part = False

    def _make(self, address: int, basis: str) -> Function:
        function = self.by_start.get(address)
        if function is None:
            function = self.by_start[address] = Function(start=address)
        function.basis.add(basis)  # type: ignore[arg-type]
        return function

    def _bound(self, function: Function) -> None:
        """Settle where a function ends: as it says itself, else as its unwind entry does, else at the next one."""
        area = self._image.code(function.start)
        limit = function.start if area is None else area.end
        function.sized = function.end > function.start
        if not function.sized:
            frame = self.frame_of(function.start)
            if frame is not None:
                function.end, function.sized = frame.end, True
            else:
                at = bisect_right(self._starts, function.start)
                function.end = self._starts[at] if at < len(self._starts) else limit
        function.end = min(function.end, limit)
