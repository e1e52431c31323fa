"""Mach-O files for x86-64, read by lief; of a file with several slices the one for x86-64.

Functions are told by `LC_FUNCTION_STARTS`, symbols and the entry point. Names are those of C: without the underscore
that the format puts before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from affidavit.analyzers.native.loading.image import (
    Area,
    DamagedError,
    Image,
    Symbol,
    UnsupportedError,
)

__all__ = ["load_macho"]

_ZERO_FILLED: Final = frozenset({0x01, 0x0C, 0x12})  # S_ZEROFILL, S_GB_ZEROFILL, S_THREAD_LOCAL_ZEROFILL
_CODE: Final = 0x8000_0400  # S_ATTR_PURE_INSTRUCTIONS, S_ATTR_SOME_INSTRUCTIONS
_X86_64: Final = 0x0100_0007
_WRITE: Final = 2
_KIND: Final = 0x0E
_DEFINED: Final = 0x0E  # N_SECT
_DEBUGGING: Final = 0xE0  # N_STAB
_LINKED: Final = frozenset({2, 6, 8})  # MH_EXECUTE, MH_DYLIB, MH_BUNDLE
_CONSTANT: Final = "__DATA_CONST"
_WORD: Final = 8


def load_macho(data: bytes) -> Image:
    """Read a Mach-O file.

    Args:
        data: all of it.

    Raises:
        DamagedError: it is truncated or contradicts itself.
        UnsupportedError: no slice of it is linked code for x86-64.
    """
    import lief

    lief.logging.disable()
    reading: Any = lief.MachO
    parsed = reading.parse(data)
    if parsed is None or not parsed.size:
        raise DamagedError("its headers cannot be read")
    slices = [parsed.at(at) for at in range(parsed.size)]
    fitting = [one for one in slices if _number(one.header.cpu_type) == _X86_64]
    if not fitting:
        names = ", ".join(str(one.header.cpu_type).rpartition(".")[2] for one in slices)
        raise UnsupportedError(f"a Mach-O file for {names}")
    binary = fitting[0]
    if _number(binary.header.file_type) not in _LINKED:
        raise UnsupportedError(f"a Mach-O file of kind {str(binary.header.file_type).rpartition('.')[2]}")
    reader = _Reader(data, binary)
    for other in slices:
        if other is not binary:
            name = str(other.header.cpu_type).rpartition(".")[2]
            reader.limitations.append((f"slice {name}", "not read; the slice for x86-64 is"))
    return reader.image()


class _Reader:
    """One slice on its way to an image."""

    def __init__(self, data: bytes, binary: Any) -> None:
        self.data = data
        self.binary = binary
        self.limitations: list[tuple[str, str]] = []
        self.areas = sorted(self._areas(), key=lambda area: area.start)

    def image(self) -> Image:
        base = self._base()
        entry = base + self.binary.main_command.entrypoint if self.binary.has_main_command else None
        image = Image(
            machine="x86-64",
            areas=self.areas,
            fixed=not self.binary.is_pie,
            entry=entry,
            symbols=list(self._symbols()),
            imports=dict(self._imports()),
            pointers=dict(self._pointers()),
            limitations=self.limitations,
        )
        image.roots = [(at, "function-starts") for at in self._starts(base) if image.code(at)]
        if any(area.name in ("__unwind_info", "__eh_frame") for area in self.areas):
            self.limitations.append(("__unwind_info", "no edges lead to what handles exceptions"))
        return image

    def _base(self) -> int:
        text = self.binary.get_segment("__TEXT")
        return 0 if text is None else text.virtual_address

    def _areas(self) -> Iterator[Area]:
        end = 0
        start_of_slice = self.binary.fat_offset
        for section in sorted(self.binary.sections, key=lambda one: one.virtual_address):
            if _number(section.type) in _ZERO_FILLED or not section.size:
                continue
            offset = start_of_slice + section.offset
            if offset + section.size > len(self.data):
                raise DamagedError(f"section {section.name} ends behind the end of the file")
            if section.virtual_address < end or section.virtual_address + section.size >= 1 << 64:
                self.limitations.append((f"section {section.name}", "overlaps another; left out"))
                continue
            end = section.virtual_address + section.size
            segment = section.segment
            writable = segment is None or bool(segment.init_protection & _WRITE)
            yield Area(
                name=str(section.name),
                start=section.virtual_address,
                data=self.data[offset : offset + section.size],
                executable=bool(_number(section.flags) & _CODE),
                constant=not writable or (segment is not None and str(segment.name) == _CONSTANT),
            )

    def _starts(self, base: int) -> list[int]:
        command = self.binary.function_starts if self.binary.has_function_starts else None
        if command is None:
            self.limitations.append(("LC_FUNCTION_STARTS", "not there; functions are told by symbols alone"))
            return []
        return [base + one for one in command.functions]

    def _symbols(self) -> Iterator[Symbol]:
        for one in self.binary.symbols:
            kind = int(one.raw_type)
            if not kind & _DEBUGGING and kind & _KIND == _DEFINED and one.value:
                yield Symbol(one.value, 0, _plain(str(one.name)), bool(kind & 1))

    def _imports(self) -> Iterator[tuple[int, str]]:
        for one in self.binary.bindings:
            if one.has_symbol:
                yield one.address, _plain(str(one.symbol.name))

    def _pointers(self) -> Iterator[tuple[int, int]]:
        for one in self.binary.relocations:
            target = getattr(one, "target", None)
            if isinstance(target, int) and target:
                yield one.address, target
                continue
            for area in self.areas:
                if area.start <= one.address and one.address + _WORD <= area.end:
                    at = one.address - area.start
                    yield one.address, int.from_bytes(area.data[at : at + _WORD], "little")


def _number(value: Any) -> int:
    """The number of an enumerator, or of a value that has none."""
    return int(getattr(value, "value", value))


def _plain(name: str) -> str:
    return name.removeprefix("_")
