"""The unwind table `.eh_frame` and the tables of landing pads it points to.

The LSB Core Specification (Exception Frames) and the Itanium C++ ABI's exception tables define both. Reading them by
`struct` takes a fortieth of the time that a general DWARF reader takes, and this table has an entry per function.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from affidavit.analyzers.native.loading.image import Frame, Image

__all__ = ["ENTRY_HEIGHTS", "Pads", "at_entry_height", "landing_pads", "read_frames"]

ENTRY_HEIGHTS: Final = {"x86-64": (7, 8), "aarch64": (31, 0)}
"""By machine, register and offset of the canonical frame address at a function's entry."""

_ABSENT: Final = 0xFF
_SIZES: Final = {0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}
_SIGNED: Final = 8
_PCREL: Final = 0x10
_MAX_FRAMES: Final = 4 << 20
_MAX_PADS: Final = 1 << 16
_OPERANDS: Final = {0x00: 0, 0x2D: 0, 0x06: 1, 0x07: 1, 0x08: 1, 0x2E: 1, 0x05: 2, 0x09: 2, 0x11: 2, 0x14: 2}
"""Rules that say nothing of the frame address: how many numbers follow."""


class _Kind(NamedTuple):
    """What the entries of one kind (CIE) have in common."""

    encoding: int
    handlers: int
    augmented: bool
    signal: bool
    code: int
    program: bytes


class Pads(NamedTuple):
    """Calls in `[start, end)` may continue at `pad` by an exception."""

    start: int
    end: int
    pad: int


class _Cursor:
    """Reads forward; beyond the end it raises IndexError."""

    def __init__(self, data: bytes, at: int, base: int) -> None:
        self.data = data
        self.at = at
        self.base = base

    def byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def take(self, size: int) -> bytes:
        value = self.data[self.at : self.at + size]
        if len(value) < size:
            raise IndexError
        self.at += size
        return value

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value
            if shift > 63:
                raise IndexError

    def pointer(self, encoding: int) -> int | None:
        """An encoded pointer; None for a form that is not known. An indirect one gives the place that holds it."""
        form = encoding & 0x0F
        where = self.base + self.at
        if form == 1:
            value = self.unsigned()
        elif form in _SIZES:
            value = int.from_bytes(self.take(_SIZES[form]), "little", signed=form >= _SIGNED)
        else:
            return None
        if not value:
            return 0
        if encoding & 0x70 == _PCREL:
            value += where
        elif encoding & 0x70:
            return None
        return value & 0xFFFF_FFFF_FFFF_FFFF


def read_frames(data: bytes, base: int, *, height: int = 8) -> tuple[list[Frame], str]:
    """Every entry, by address, and what was wrong with the table ("" where nothing was).

    Args:
        data: the table.
        base: its address.
        height: offset of the canonical frame address at a function's entry.
    """
    kinds: dict[int, _Kind | None] = {}
    frames: list[Frame] = []
    at = 0
    problem = ""
    while at + 4 <= len(data) and len(frames) < _MAX_FRAMES:
        length = int.from_bytes(data[at : at + 4], "little")
        if not length:
            at += 4
            continue
        body = at + 4
        if length == 0xFFFF_FFFF:
            length = int.from_bytes(data[at + 4 : at + 12], "little")
            body = at + 12
        end = body + length
        if end > len(data) or length < 4:
            problem = f"an entry at {base + at:#x} ends behind the table"
            break
        try:
            back = int.from_bytes(data[body : body + 4], "little")
            if not back:
                kinds[at] = _kind(data, body + 4, end, base)
            else:
                kind = kinds.get(body - back)
                frame = None if kind is None else _frame(data, body + 4, end, base, kind, height)
                if frame is not None:
                    frames.append(frame)
                else:
                    problem = problem or f"an entry at {base + at:#x} is of an unknown form"
        except IndexError:
            problem = problem or f"an entry at {base + at:#x} is cut short"
        at = end
    frames.sort(key=lambda frame: frame.start)
    return frames, problem


def _kind(data: bytes, at: int, end: int, base: int) -> _Kind | None:
    cursor = _Cursor(data[:end], at, base)
    version = cursor.byte()
    stop = data.index(b"\0", cursor.at, end) if b"\0" in data[cursor.at : end] else -1
    if version not in (1, 3) or stop < 0:
        return None
    letters = data[cursor.at : stop]
    cursor.at = stop + 1
    code = cursor.unsigned()
    cursor.unsigned()
    cursor.unsigned()
    encoding, handlers = 0, _ABSENT
    if letters[:1] == b"z":
        size = cursor.unsigned()
        after = cursor.at + size
        for letter in letters[1:]:
            if letter == ord("R"):
                encoding = cursor.byte()
            elif letter == ord("L"):
                handlers = cursor.byte()
            elif letter == ord("P"):
                cursor.pointer(cursor.byte())
        cursor.at = after
    elif letters:
        return None
    program = data[cursor.at : end]
    return _Kind(encoding, handlers, bool(letters), b"S" in letters, code, program)


def _frame(data: bytes, at: int, end: int, base: int, kind: _Kind, height: int) -> Frame | None:
    cursor = _Cursor(data[:end] if end - at > 64 else data, at, base)
    start = cursor.pointer(kind.encoding)
    size = cursor.pointer(kind.encoding & 0x0F)
    if start is None or size is None:
        return None
    handlers = 0
    if kind.augmented:
        length = cursor.unsigned()
        after = cursor.at + length
        if kind.handlers != _ABSENT and length:
            handlers = cursor.pointer(kind.handlers) or 0
        cursor.at = after
    program = data[cursor.at : end]
    part = not kind.signal and _begins_later(program, height)
    return Frame(start, start + size, part, handlers, program, kind.program, kind.code)


def _begins_later(program: bytes, height: int) -> bool:
    """Whether the first rules, which hold at the first address, differ from those at a function's entry.

    Compilers describe the part of a function that they moved away so: its stack frame is there from the start.
    """
    if not program:
        return False
    first = program[0]
    # def_cfa, def_cfa_register, def_cfa_expression, negate_ra_state (the return address is signed), offset
    if first in (0x0C, 0x0D, 0x0F, 0x2D) or first & 0xC0 == 0x80:
        return True
    return first == 0x0E and program[1:2] != bytes((height,))


def at_entry_height(frame: Frame, address: int, *, entry: tuple[int, int] = (7, 8)) -> bool | None:
    """Whether the stack stands at `address` as it does at the function's entry; None where the rules are unknown.

    Args:
        frame: the entry of the unwind table that describes the address.
        address: the place.
        entry: register and offset of the canonical frame address at entry: `rsp + 8` on x86-64.
    """
    if not frame.shared and not frame.program:
        return None
    try:
        return _Rules(frame).at(address) == entry
    except (IndexError, ValueError):
        return None


class _Rules:
    """Runs the rules of an entry as far as they concern the canonical frame address."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.cfa: tuple[int, int] | None = None
        self.stack: list[tuple[int, int] | None] = []

    def at(self, address: int) -> tuple[int, int] | None:
        self._run(self.frame.shared, 0, 1 << 64)
        self._run(self.frame.program, self.frame.start, address)
        return self.cfa

    def _run(self, program: bytes, where: int, until: int) -> None:
        cursor = _Cursor(program, 0, 0)
        while cursor.at < len(program):
            op = cursor.byte()
            high, low = op & 0xC0, op & 0x3F
            if high == 0x40 or op in (2, 3, 4):
                by = low if high == 0x40 else int.from_bytes(cursor.take(1 << (op - 2)), "little")
                where += self.frame.unit * by
                if where > until:
                    return
            elif high == 0x80:
                cursor.unsigned()
            elif not high:
                self._rule(op, cursor)

    def _rule(self, op: int, cursor: _Cursor) -> None:
        register, offset = self.cfa or (-1, 0)
        if op == 0x0C:
            register = cursor.unsigned()
            self.cfa = (register, cursor.unsigned())
        elif op == 0x0D:
            self.cfa = (cursor.unsigned(), offset)
        elif op == 0x0E:
            self.cfa = (register, cursor.unsigned())
        elif op == 0x0A:
            self.stack.append(self.cfa)
        elif op == 0x0B:
            self.cfa = self.stack.pop()
        else:
            self._skip(op, cursor)

    def _skip(self, op: int, cursor: _Cursor) -> None:
        """Pass the operands of a rule; those of an expression for the frame address make it unknown."""
        if op in (0x0F, 0x10, 0x16):
            if op == 0x0F:
                self.cfa = None
            else:
                cursor.unsigned()
            cursor.take(cursor.unsigned())
        elif op in _OPERANDS:
            for _ in range(_OPERANDS[op]):
                cursor.unsigned()
        else:
            raise ValueError(op)


def landing_pads(image: Image, frame: Frame) -> list[Pads]:
    """The calls of a function that an exception may leave to a landing pad.

    Raises:
        IndexError: the table is cut short or of an unknown form.
    """
    area = image.area(frame.handlers)
    if area is None:
        raise IndexError
    offset = frame.handlers - area.start
    cursor = _Cursor(area.data, offset, area.start)
    base: int | None = frame.start
    encoding = cursor.byte()
    if encoding != _ABSENT:
        base = cursor.pointer(encoding)
    if cursor.byte() != _ABSENT:
        cursor.unsigned()
    form = cursor.byte()
    end = cursor.unsigned()
    end += cursor.at
    pads: list[Pads] = []
    while cursor.at < end and len(pads) < _MAX_PADS:
        start, size, pad = cursor.pointer(form), cursor.pointer(form), cursor.pointer(form)
        cursor.unsigned()
        if start is None or size is None or pad is None or base is None:
            raise IndexError
        if pad:
            pads.append(Pads(frame.start + start, frame.start + start + size, base + pad))
    return pads
