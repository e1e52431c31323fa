"""PE files for x86-64 (Microsoft's PE format): sections, imports and relocations by lief, `.pdata` by `struct`.

Functions are told by the unwind table, by exports, the entry point and thread-local callbacks. A leaf function has no
entry in the unwind table: one that nothing calls directly is not found.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from affidavit.analyzers.native.loading.image import (
    Area,
    DamagedError,
    Frame,
    Image,
    Symbol,
    UnsupportedError,
)

__all__ = ["load_pe"]

_FUNCTION: Final = struct.Struct("<III")
_MOST: Final = 1 << 22
_CHAINED: Final = 4  # UNW_FLAG_CHAININFO
_HANDLED: Final = 3  # UNW_FLAG_EHANDLER, UNW_FLAG_UHANDLER
_EXECUTABLE: Final = 0x2000_0000
_WRITABLE: Final = 0x8000_0000
_DISCARDED: Final = 0x0200_0000
_DIR64: Final = 10
_EXCEPTIONS: Final = 3
_MACHINE: Final = 0x8664
_THUNK: Final = re.compile(rb"\xff\x25")
_BYTES: Final = 8


def load_pe(data: bytes) -> Image:
    """Read a PE file.

    Args:
        data: all of it.

    Raises:
        DamagedError: it is truncated or contradicts itself.
        UnsupportedError: another machine, or 32 bits.
    """
    import lief

    lief.logging.disable()
    (header,) = struct.unpack_from("<I", data, 60)
    if header + 24 > len(data):
        raise DamagedError("its header ends behind the file")
    (machine,) = struct.unpack_from("<H", data, header + 4)
    if machine != _MACHINE:
        raise UnsupportedError(f"a PE file for machine {machine:#x}")
    reading: Any = lief.PE
    binary = reading.parse(data)
    if binary is None:
        raise DamagedError("its headers cannot be read")
    return _Reader(data, binary).image()


class _Reader:
    """One file on its way to an image."""

    def __init__(self, data: bytes, binary: Any) -> None:
        self.data = data
        self.binary = binary
        self.base: int = binary.imagebase
        self.limitations: list[tuple[str, str]] = []
        self.areas = sorted(self._areas(), key=lambda area: area.start)

    def image(self) -> Image:
        frames = sorted(self._frames(), key=lambda frame: frame.start)
        pointers = dict(self._pointers())
        imports = dict(self._imports())
        entry = self.binary.entrypoint
        image = Image(
            machine="x86-64",
            abi="windows",
            areas=self.areas,
            fixed=not pointers,
            entry=entry if entry != self.base else None,
            symbols=list(self._symbols()),
            imports=imports,
            pointers=pointers,
            frames=frames,
            limitations=self.limitations,
        )
        image.roots = [(at, "thread-callback") for at in self._callbacks() if image.code(at)]
        image.thunks = list(self._thunks(frames))
        return image

    def _areas(self) -> Iterator[Area]:
        end = 0
        for section in sorted(self.binary.sections, key=lambda one: one.virtual_address):
            size = min(section.sizeof_raw_data, section.virtual_size or section.sizeof_raw_data)
            offset, flags = section.pointerto_raw_data, section.characteristics
            if not size or flags & _DISCARDED:
                continue
            start = self.base + section.virtual_address
            if offset + size > len(self.data):
                raise DamagedError(
                    f"section {section.name} ends at {offset + size:#x}, the file at {len(self.data):#x}"
                )
            if start < end or start + size >= 1 << 64:
                self.limitations.append((f"section {section.name}", "overlaps another; left out"))
                continue
            end = start + size
            yield Area(
                name=str(section.name),
                start=start,
                data=self.data[offset : offset + size],
                executable=bool(flags & _EXECUTABLE),
                constant=not flags & _WRITABLE,
            )

    def _read(self, address: int, size: int) -> bytes:
        """The bytes at an address, as many as there are."""
        for area in self.areas:
            if area.start <= address < area.end:
                return area.data[address - area.start : address - area.start + size]
        return b""

    def _frames(self) -> Iterator[Frame]:
        """The table of functions (`RUNTIME_FUNCTION`); an entry with a chained parent is a later part."""
        directory = self.binary.data_directories[_EXCEPTIONS]
        size = min(directory.size, _MOST)
        table = self._read(self.base + directory.rva, size) if directory.rva else b""
        if len(table) < size:
            self.limitations.append((".pdata", "ends behind its section"))
        handled = odd = 0
        for begin, end, unwind in _FUNCTION.iter_unpack(table[: len(table) // 12 * 12]):
            if not begin:
                continue
            info = self._read(self.base + unwind, 1)
            if begin >= end or not info or info[0] & 7 not in (1, 2):
                odd += 1
                continue
            flags = info[0] >> 3
            handled += bool(flags & _HANDLED)
            start = self.base + begin
            yield Frame(start, self.base + end, bool(flags & _CHAINED), 0, b"", b"", 1)
        if odd:
            self.limitations.append((".pdata", f"{odd} entries are of an unknown form; left out"))
        if handled:
            what = f"{handled} functions have exception handlers, to which no edges lead"
            self.limitations.append((".pdata", what))

    def _symbols(self) -> Iterator[Symbol]:
        export: Any = self.binary.get_export() if self.binary.has_exports else None
        entries: list[Any] = [] if export is None else list(export.entries)
        for entry in entries:
            if not entry.is_forwarded and entry.address:
                yield Symbol(self.base + entry.address, 0, str(entry.name) or f"#{entry.ordinal}", True)

    def _imports(self) -> Iterator[tuple[int, str]]:
        tables = [*self.binary.imports, *self.binary.delay_imports]
        for table in tables:
            for entry in table.entries:
                name = f"{table.name}#{entry.ordinal}" if entry.is_ordinal else str(entry.name)
                slot = entry.iat_address
                yield (slot if slot >= self.base else slot + self.base), name

    def _pointers(self) -> Iterator[tuple[int, int]]:
        for block in self.binary.relocations:
            for entry in block.entries:
                if int(entry.type) & 0xFFFF == _DIR64 or entry.size == 64:
                    address = self.base + entry.address
                    held = self._read(address, _BYTES)
                    if len(held) == _BYTES:
                        yield address, int.from_bytes(held, "little")

    def _callbacks(self) -> list[int]:
        return list(self.binary.tls.callbacks) if self.binary.has_tls else []

    def _thunks(self, frames: list[Frame]) -> Iterator[int]:
        """Where code may stand that only jumps through a slot: outside of what the unwind table describes."""
        starts = [frame.start for frame in frames]
        for area in self.areas:
            if area.executable:
                for match in _THUNK.finditer(area.data):
                    address = area.start + match.start()
                    at = bisect_right(starts, address) - 1
                    if at < 0 or address >= frames[at].end:
                        yield address
