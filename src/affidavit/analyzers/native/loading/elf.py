"""ELF files: the headers by pyelftools, the long tables by `struct`, every claim checked against the file's size."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, Final

from affidavit.analyzers.native.loading.frames import ENTRY_HEIGHTS, read_frames
from affidavit.analyzers.native.loading.image import (
    Area,
    DamagedError,
    Frame,
    Image,
    Symbol,
    UnsupportedError,
)

__all__ = ["FORMATS", "load_elf"]

FORMATS: Final = {"EM_X86_64": "x86-64", "EM_AARCH64": "aarch64"}

_MAX_HEADERS: Final = 65_536
_ALLOC: Final = 2
_EXEC: Final = 4
_WRITE: Final = 1
_LOAD: Final = "PT_LOAD"
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")
_DYNAMIC: Final = struct.Struct("<QQ")
_NUL: Final = b"\0"
_MARKS: Final = (b"$d", b"$x")
_FUNCTIONS: Final = frozenset({2, 10})  # STT_FUNC, STT_GNU_IFUNC
_RELATIVE: Final = {"x86-64": (8, 37), "aarch64": (1027, 1032)}  # RELATIVE, IRELATIVE
_SLOTS: Final = {"x86-64": (6, 7), "aarch64": (1025, 1026)}  # GLOB_DAT, JUMP_SLOT
_ABSOLUTE: Final = {"x86-64": 1, "aarch64": 257}
_CALLED: Final = {12: "init", 13: "fini"}
_ARRAYS: Final = {(32, 33): "preinit-array", (25, 27): "init-array", (26, 28): "fini-array"}
_ENTRIES: Final = 1 << 24
"""Entries of one table that are read; more than any known program has."""


@dataclass(slots=True)
class _Segment:
    kind: str
    offset: int
    address: int
    size: int
    memory: int
    flags: int


@dataclass(slots=True)
class _Section:
    name: str
    kind: str
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry: int


@dataclass(slots=True)
class _File:
    """An open file with its headers, checked."""

    data: mmap.mmap | bytes
    machine: str
    kind: str
    entry: int
    segments: list[_Segment]
    sections: list[_Section]
    limitations: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def bytes_at(self, address: int, size: int) -> bytes | None:
        """Bytes of memory that stand in the file; None where any does not."""
        for one in self.segments:
            if one.kind == _LOAD and one.address <= address and address + size <= one.address + one.size:
                start = one.offset + address - one.address
                return self.data[start : start + size]
        return None

    def section(self, name: str) -> _Section | None:
        return next((one for one in self.sections if one.name == name and one.kind != "SHT_NOBITS"), None)

    def content(self, section: _Section) -> bytes:
        return self.data[section.offset : section.offset + section.size]


def load_elf(file: BinaryIO) -> Image:
    """Read an ELF file.

    Args:
        file: open for reading; kept open by nobody.

    Raises:
        DamagedError: it is truncated or contradicts itself.
        UnsupportedError: another class, byte order, machine or kind of file.
    """
    read = _open(file)
    if not any(one.kind == _LOAD for one in read.segments):
        raise UnsupportedError(f"an ELF file of kind {read.kind} without loadable segments")
    dynamic = _dynamic(read)
    areas = _areas(read)
    pointers, imports = _relocations(read, dynamic)
    image = Image(
        machine=read.machine,
        areas=areas,
        fixed=read.kind == "ET_EXEC",
        entry=read.entry or None,
        symbols=list(_symbols(read, dynamic)),
        imports=imports,
        pointers=pointers,
        frames=_frames(read),
        data=_declared_data(read),
        limitations=read.limitations,
    )
    image.roots = list(_roots(image, dynamic))
    return image


# ---- headers ----


def _open(file: BinaryIO) -> _File:
    from elftools.common.exceptions import ELFError
    from elftools.construct.core import ConstructError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(file)
        return _headers(elf, file)
    except (DamagedError, UnsupportedError):
        raise
    except (
        ELFError,
        ConstructError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise DamagedError(f"its headers cannot be read: {type(error).__name__}: {error}"[:200]) from error
    except (UnicodeError, struct.error, IndexError, RecursionError, OSError) as error:
        raise DamagedError(f"its headers cannot be read: {type(error).__name__}") from error


def _headers(elf: Any, file: BinaryIO) -> _File:
    header = elf.header
    if elf.elfclass != 64 or not elf.little_endian:
        raise UnsupportedError(
            f"a {elf.elfclass}-bit {'little' if elf.little_endian else 'big'}-endian ELF file"
        )
    machine = FORMATS.get(str(header["e_machine"]))
    if machine is None:
        raise UnsupportedError(f"code for {header['e_machine']}")
    if header["e_type"] not in ("ET_EXEC", "ET_DYN"):
        raise UnsupportedError(f"an ELF file of kind {header['e_type']}, which is not linked")
    file.seek(0, 2)
    size = file.tell()
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    read = _File(data, machine, header["e_type"], header["e_entry"], [], [])
    read.segments = list(_segments(elf, header, size))
    read.sections = list(_sections(elf, header, size, read.limitations))
    return read


def _segments(elf: Any, header: Any, size: int) -> Iterator[_Segment]:
    count = header["e_phnum"]
    if not count:
        return
    if header["e_phentsize"] != 56 or header["e_phoff"] + 56 * count > size:
        raise DamagedError(f"{count} program headers at {header['e_phoff']:#x} do not fit the file")
    loads: list[_Segment] = []
    for at in range(count):
        one = elf._get_segment_header(at)
        segment = _Segment(
            str(one["p_type"]),
            one["p_offset"],
            one["p_vaddr"],
            one["p_filesz"],
            one["p_memsz"],
            one["p_flags"],
        )
        if segment.kind == _LOAD:
            if segment.offset + segment.size > size:
                raise DamagedError(
                    f"segment {at} ends at {segment.offset + segment.size:#x} and the file at {size:#x}"
                )
            if segment.size > segment.memory or segment.address + segment.memory >= 1 << 64:
                raise DamagedError(f"segment {at} does not fit its memory")
            loads.append(segment)
        yield segment
    for first, second in pairwise(sorted(loads, key=lambda one: one.address)):
        if first.address + first.memory > second.address:
            raise DamagedError(f"segments overlap at {second.address:#x}")


def _sections(elf: Any, header: Any, size: int, limitations: list[tuple[str, str]]) -> Iterator[_Section]:
    """The sections, or none where their headers do not hold: a loader does not need them, nor do we."""
    if not header["e_shoff"]:
        return
    if header["e_shentsize"] != 64 or header["e_shoff"] + 64 > size:
        limitations.append(("section-headers", "outside of the file; segments are used instead"))
        return
    count = elf.num_sections()
    if count > _MAX_HEADERS or header["e_shoff"] + 64 * count > size:
        limitations.append(("section-headers", "more than the file holds; segments are used instead"))
        return
    names = _section_names(elf, size)
    for at in range(count):
        one = elf._get_section_header(at)
        where = one["sh_name"]
        end = names.find(_NUL, where)
        name = names[where:end].decode("utf-8", "replace") if end >= 0 else ""
        section = _Section(
            name,
            str(one["sh_type"]),
            one["sh_flags"],
            one["sh_addr"],
            one["sh_offset"],
            one["sh_size"],
            one["sh_link"],
            one["sh_entsize"],
        )
        if section.kind not in ("SHT_NOBITS", "SHT_NULL") and section.offset + section.size > size:
            limitations.append((f"section {at}", "ends behind the end of the file; left out"))
            section.kind = "SHT_NULL"
        yield section


def _section_names(elf: Any, size: int) -> bytes:
    at = elf.get_shstrndx()
    if not at:
        return b""
    one = elf._get_section_header(at)
    if one["sh_offset"] + one["sh_size"] > size:
        return b""
    elf.stream.seek(one["sh_offset"])
    return elf.stream.read(one["sh_size"])


# ---- memory ----


def _areas(read: _File) -> list[Area]:
    areas = list(_section_areas(read))
    if not any(area.executable for area in areas):
        areas = list(_segment_areas(read))
    return sorted(areas, key=lambda area: area.start)


def _section_areas(read: _File) -> Iterator[Area]:
    end = 0
    wanted = [
        one
        for one in read.sections
        if one.flags & _ALLOC and one.kind not in ("SHT_NOBITS", "SHT_NULL") and one.size
    ]
    for one in sorted(wanted, key=lambda one: one.address):
        if one.address < end or not _mapped(read, one):
            read.limitations.append(
                (f"section {one.name}", "overlaps another or is not what is loaded there; left out")
            )
            continue
        end = one.address + one.size
        writable = bool(one.flags & _WRITE)
        yield Area(
            name=one.name,
            start=one.address,
            data=read.content(one),
            executable=bool(one.flags & _EXEC),
            constant=not writable or _protected(read, one.address, one.size),
        )


def _mapped(read: _File, section: _Section) -> bool:
    return any(
        one.kind == _LOAD
        and one.address <= section.address
        and section.address + section.size <= one.address + one.size
        and section.offset - one.offset == section.address - one.address
        for one in read.segments
    )


def _segment_areas(read: _File) -> Iterator[Area]:
    for at, one in enumerate(read.segments):
        if one.kind == _LOAD and one.size:
            yield Area(
                name=f"load{at}",
                start=one.address,
                data=read.data[one.offset : one.offset + one.size],
                executable=bool(one.flags & 1),
                constant=not one.flags & 2,
            )


def _protected(read: _File, start: int, size: int) -> bool:
    """Whether the loader makes the range read-only once it has filled it."""
    return any(
        one.kind == "PT_GNU_RELRO" and one.address <= start and start + size <= one.address + one.memory
        for one in read.segments
    )


# ---- tables ----


def _dynamic(read: _File) -> dict[int, int]:
    """The first value of each dynamic tag."""
    found: dict[int, int] = {}
    for one in read.segments:
        if one.kind == "PT_DYNAMIC":
            data = read.bytes_at(one.address, one.size - one.size % 16) or b""
            for tag, value in _DYNAMIC.iter_unpack(data):
                if not tag:
                    break
                found.setdefault(tag, value)
    return found


def _symbols(read: _File, dynamic: dict[int, int]) -> Iterator[Symbol]:
    for one in read.sections:
        if one.kind in ("SHT_SYMTAB", "SHT_DYNSYM") and 0 < one.link < len(read.sections):
            names = read.content(read.sections[one.link])
            data = read.content(one)
            yield from _functions_in(data, names, dynamic=one.kind == "SHT_DYNSYM")
    if not any(one.kind == "SHT_DYNSYM" for one in read.sections):
        table = _dynamic_symbols(read, dynamic)
        if table is not None:
            yield from _functions_in(*table, dynamic=True)


def _functions_in(data: bytes, names: bytes, *, dynamic: bool) -> Iterator[Symbol]:
    usable = min(len(data) // 24, _ENTRIES) * 24
    for where, info, _, section, value, size in _SYMBOL.iter_unpack(data[:usable]):
        if info & 15 in _FUNCTIONS and section and value:
            yield Symbol(value, size, _name(names, where), dynamic)


def _declared_data(read: _File) -> list[tuple[int, int]]:
    """Data in code, as mapping symbols tell it (ELF for the Arm 64-bit Architecture, 5.5.4): `$d` to the next `$x`."""
    if read.machine != "aarch64":
        return []
    marks: dict[int, bool] = {}
    for one in read.sections:
        if one.kind == "SHT_SYMTAB" and 0 < one.link < len(read.sections):
            names, data = read.content(read.sections[one.link]), read.content(one)
            for where, _, _, section, value, _ in _SYMBOL.iter_unpack(data[: len(data) // 24 * 24]):
                if names[where : where + 2] in _MARKS and section < len(read.sections):
                    marks[value] = names[where : where + 2] == _MARKS[0]
    code = [(one.address, one.address + one.size) for one in read.sections if one.flags & _EXEC]
    return [
        (start, min(end, high))
        for start, end in pairwise([*sorted(marks), 1 << 64])
        for low, high in code
        if marks[start] and low <= start < high
    ]


def _name(names: bytes, where: int) -> str:
    end = names.find(_NUL, where)
    return names[where : end if end >= 0 else where].decode("utf-8", "backslashreplace")


def _dynamic_symbols(read: _File, dynamic: dict[int, int]) -> tuple[bytes, bytes] | None:
    """Symbols and their names as the loader finds them. Their number stands nowhere: the names follow them."""
    symbols, names, size = dynamic.get(6), dynamic.get(5), dynamic.get(10)
    if symbols is None or names is None or size is None or not symbols < names:
        return None
    data = read.bytes_at(symbols, (names - symbols) // 24 * 24)
    text = read.bytes_at(names, size)
    return None if data is None or text is None else (data, text)


def _relocations(read: _File, dynamic: dict[int, int]) -> tuple[dict[int, int], dict[int, str]]:
    """What the loader writes: own addresses as values, others as names."""
    pointers: dict[int, int] = {}
    imports: dict[int, str] = {}
    table = _dynamic_symbols(read, dynamic)
    data, names = table or (b"", b"")
    relative, slots, absolute = _RELATIVE[read.machine], _SLOTS[read.machine], _ABSOLUTE[read.machine]
    for offset, info, addend in _entries(read, dynamic):
        kind, index = info & 0xFFFF_FFFF, info >> 32
        if kind in relative:
            pointers[offset] = addend & 0xFFFF_FFFF_FFFF_FFFF
        elif (kind in slots or kind == absolute) and 24 * index + 24 <= len(data):
            where, _, _, section, value, _ = _SYMBOL.unpack_from(data, 24 * index)
            if section and value:
                pointers[offset] = (value + addend) & 0xFFFF_FFFF_FFFF_FFFF
            imports[offset] = _name(names, where)
    pointers.update(_compact(read, dynamic))
    return pointers, imports


def _entries(read: _File, dynamic: dict[int, int]) -> Iterable[tuple[int, int, int]]:
    for start, size in ((7, 8), (23, 2)):
        if start in dynamic and size in dynamic:
            length = min(dynamic[size] // 24, _ENTRIES) * 24
            data = read.bytes_at(dynamic[start], length)
            if data is None:
                read.limitations.append(("relocations", "not in the file; left out"))
            else:
                yield from _RELA.iter_unpack(data)


def _compact(read: _File, dynamic: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Relative relocations in the compact form (DT_RELR): an address, then bit maps of the 63 words behind it."""
    if 36 not in dynamic or 35 not in dynamic:
        return
    data = read.bytes_at(dynamic[36], min(dynamic[35] // 8, _ENTRIES) * 8) or b""
    where = 0
    for (entry,) in struct.iter_unpack("<Q", data):
        if not entry & 1:
            places, where = [entry], entry + 8
        else:
            places = [where + 8 * bit for bit in range(63) if entry >> (bit + 1) & 1]
            where += 63 * 8
        for place in places:
            held = read.bytes_at(place, 8)
            if held is not None:
                yield place, int.from_bytes(held, "little")


def _frames(read: _File) -> list[Frame]:
    section = read.section(".eh_frame")
    if section is not None:
        start, data = section.address, read.content(section)
    else:
        found = _frames_by_header(read)
        if found is None:
            return []
        start, data = found
    frames, problem = read_frames(data, start, height=ENTRY_HEIGHTS[read.machine][1])
    if problem:
        read.limitations.append((".eh_frame", problem))
    return frames


def _frames_by_header(read: _File) -> tuple[int, bytes] | None:
    """The unwind table as the program header names it: its first bytes point to it (always pc-relative, 32 bits)."""
    for one in read.segments:
        if one.kind == "PT_GNU_EH_FRAME":
            head = read.bytes_at(one.address, 8)
            if head is None or head[:2] != b"\x01\x1b":
                return None
            start = one.address + 4 + int.from_bytes(head[4:8], "little", signed=True)
            for load in read.segments:
                if load.kind == _LOAD and load.address <= start < load.address + load.size:
                    end = load.address + load.size
                    return start, read.bytes_at(start, end - start) or b""
    return None


def _roots(image: Image, dynamic: dict[int, int]) -> Iterator[tuple[int, str]]:
    for tag, basis in _CALLED.items():
        if dynamic.get(tag):
            yield dynamic[tag], basis
    for (start, size), basis in _ARRAYS.items():
        if start in dynamic:
            for at in range(min(dynamic.get(size, 0) // 8, _ENTRIES)):
                target = image.pointer(dynamic[start] + 8 * at)
                if target is None:
                    break
                if target and image.code(target):
                    yield target, basis
