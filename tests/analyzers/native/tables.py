"""Tables of PE and Mach-O files read by `struct` alone: an oracle that knows no more than these four tables."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["fat", "macho_imports", "macho_starts", "pe_imports", "pe_starts"]

_X86_64 = 0x0100_0007
_ARM64 = 0x0100_000C
_SYMTAB, _FUNCTION_STARTS, _SEGMENT = 0x2, 0x26, 0x19
_CHAINED = 4 << 3


def pe_starts(data: bytes) -> set[int]:
    """Where functions begin that `.pdata` tells and that are no later part of another."""
    base, at = _directory(data, 3)
    (size,) = struct.unpack_from("<I", data, _optional(data) + 112 + 8 * 3 + 4)
    return {
        base + begin
        for begin, _, unwind in struct.iter_unpack("<III", data[at : at + size // 12 * 12])
        if begin and not data[_offset(data, unwind)] & _CHAINED
    }


def pe_imports(data: bytes) -> dict[int, str]:
    """Names of imported functions by the address of their slot."""
    base, at = _directory(data, 1)
    found: dict[int, str] = {}
    while True:
        names, _, _, library, slots = struct.unpack_from("<5I", data, at)
        if not library:
            return found
        for number, entry in enumerate(_entries(data, _offset(data, names or slots))):
            assert not entry >> 63, "no ordinals in these files"
            found[base + slots + 8 * number] = _text(data, _offset(data, entry) + 2)
        at += 20


def macho_starts(data: bytes) -> set[int]:
    """Where functions begin that `LC_FUNCTION_STARTS` tells."""
    commands = dict(_commands(data))
    at, size = struct.unpack_from("<II", data, commands[_FUNCTION_STARTS] + 8)
    base = struct.unpack_from("<Q", data, commands[_SEGMENT] + 24)[0]
    found: set[int] = set()
    for step in _numbers(data[at : at + size]):
        if not step:
            break
        base += step
        found.add(base)
    return found


def macho_imports(data: bytes) -> set[str]:
    """Names of undefined external symbols, without the underscore."""
    at, count, strings, _ = struct.unpack_from("<4I", data, dict(_commands(data))[_SYMTAB] + 8)
    symbols = (struct.unpack_from("<IBBHQ", data, at + 16 * number) for number in range(count))
    return {
        _text(data, strings + name).removeprefix("_")
        for name, kind, section, _, _ in symbols
        if kind & 0xEF == 1 and not section
    }


def fat(thin: bytes, machine: int = _X86_64) -> bytes:
    """A file of two slices: one for another machine that is empty but for its header, then the one given."""
    other = struct.pack("<8I", 0xFEEDFACF, _ARM64, 0, 6, 0, 0, 0, 0)
    first, second = 0x1000, 0x2000
    head = struct.pack(">II", 0xCAFEBABE, 2)
    head += struct.pack(">5I", _ARM64, 0, first, len(other), 12)
    head += struct.pack(">5I", machine, 3, second, len(thin), 12)
    return head.ljust(first, b"\0") + other.ljust(second - first, b"\0") + thin


def _optional(data: bytes) -> int:
    (header,) = struct.unpack_from("<I", data, 60)
    return header + 24


def _directory(data: bytes, number: int) -> tuple[int, int]:
    """The image base, and where in the file a data directory begins."""
    optional = _optional(data)
    (base,) = struct.unpack_from("<Q", data, optional + 24)
    (address,) = struct.unpack_from("<I", data, optional + 112 + 8 * number)
    return base, _offset(data, address)


def _offset(data: bytes, address: int) -> int:
    optional = _optional(data)
    (sections,) = struct.unpack_from("<H", data, optional - 18)
    (size,) = struct.unpack_from("<H", data, optional - 4)
    for number in range(sections):
        where = optional + size + 40 * number + 8
        memory, start, held, offset = struct.unpack_from("<4I", data, where)
        if start <= address < start + max(memory, held):
            return offset + address - start
    raise AssertionError(hex(address))


def _entries(data: bytes, at: int) -> Iterator[int]:
    while entry := struct.unpack_from("<Q", data, at)[0]:
        yield entry
        at += 8


def _commands(data: bytes) -> Iterator[tuple[int, int]]:
    """Load commands and where they stand; of several segments the one that maps the header comes last."""
    (count,) = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, at)
        if kind != _SEGMENT or _text(data, at + 8) == "__TEXT":
            yield kind & 0xFFFF, at
        at += size


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
