"""Files whose tables say what no table may say: each is refused or read, and what is read can be used.

Values go where the formats keep offsets, sizes, counts and addresses, so that damage gets past the first check.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from affidavit.analyzers.native.loading.formats import load
from affidavit.analyzers.native.loading.image import DamagedError, Image, UnsupportedError
from tests import real_inputs
from tests.analyzers.native.binaries import compiled
from tests.analyzers.native.programs import MARKED
from tests.analyzers.native.tables import fat

pytestmark = pytest.mark.timeout(120)

Fields = list[tuple[int, int]]
"""Places in a file, each with its size in bytes."""

TRIALS = 250
ODD = (
    0,
    1,
    7,
    0x7F,
    0x80,
    0xFFF,
    0x1000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
)


def _words(start: int, end: int, size: int = 4) -> Iterator[tuple[int, int]]:
    return ((at, size) for at in range(start, end - size + 1, size))


def _elf_fields(data: bytes) -> Fields:
    programs, sections = struct.unpack_from("<QQ", data, 32)
    entries = struct.unpack_from("<6H", data, 52)
    found = [(18, 2), (24, 8), (32, 8), (40, 8), *_words(52, 64, 2)]
    found += _words(programs, programs + 56 * entries[2], 8)
    found += _words(sections, sections + 64 * entries[4], 8)
    for number in range(entries[4]):  # and what the sections hold, but for code
        kind, flags, _, at, size = struct.unpack_from("<IQQQQ", data, sections + 64 * number + 4)
        if kind != 8 and not flags & 4:
            found += _words(at, at + min(size, 512))
    return found


def _pe_fields(data: bytes) -> Fields:
    (header,) = struct.unpack_from("<I", data, 60)
    sections, optional = struct.unpack_from("<H12xH", data, header + 6)
    table = header + 24 + optional
    found = [(60, 4), (header + 6, 2), (header + 20, 2), *_words(header + 24, table + 40 * sections)]
    for number in range(sections):
        _, _, size, at, *_, flags = struct.unpack_from("<7I", data, table + 40 * number + 8 + 4)
        found += [] if flags & 0x20 else _words(at, at + min(size, 2048))
    return found


def _macho_fields(data: bytes) -> Fields:
    commands, size = struct.unpack_from("<II", data, 16)
    found = [*_words(4, 32 + size)]
    at = 32
    for _ in range(commands):
        kind, length = struct.unpack_from("<II", data, at)
        tables = {0x2: (8, 16), 0xB: (56,), 0x22: (8, 16, 24, 32, 40), 0x26: (8,), 0x33: (8,), 0x34: (8,)}
        for place in tables.get(kind & 0xFF, ()):
            (offset,) = struct.unpack_from("<I", data, at + place)
            found += _words(offset, min(offset + 256, len(data))) if offset else []
        at += length
    return found


def _elf(folder: Path) -> bytes:
    return compiled(folder, "marked.c", MARKED, "gcc", ("-O2", "-w")).read_bytes()


def _pe(folder: Path) -> bytes:
    (found,) = real_inputs.wheel("tree-sitter-windows").rglob("*.pyd")
    return found.read_bytes()


def _macho(folder: Path) -> bytes:
    (found,) = real_inputs.wheel("tree-sitter-macos").rglob("*.so")
    return found.read_bytes()


def _damaged(whole: bytes, fields: Fields, chance: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at, size = chance.choice(fields)
        old = int.from_bytes(data[at : at + size], "little")
        new = chance.choice((chance.choice(ODD), old + chance.choice((-8, -1, 1, 8, 4096)), len(whole) - old))
        if chance.random() < 0.2:
            other, length = chance.choice(fields)
            new = int.from_bytes(data[other : other + length], "little")
        data[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    if chance.random() < 0.1:
        del data[chance.randrange(len(data)) :]
    return bytes(data)


def _loaded(path: Path, data: bytes) -> Image:
    path.write_bytes(data)
    with path.open("rb") as file:
        return load(file)


def _used(image: Image, chance: random.Random) -> None:
    """Ask what the decoding asks of an image."""
    ends = 0
    for area in image.areas:
        assert ends <= area.start < 1 << 64
        ends = area.end
    for address in (0, (1 << 64) - 1, *(chance.choice(image.areas).start for _ in range(4) if image.areas)):
        image.code(address)
        image.pointer(address)
        image.constant(address, 8)
        image.data_behind(address)
    for symbol in image.symbols:
        symbol.name.encode()
    for place, reason in image.limitations:
        assert place.encode()
        assert reason.encode()
    for name in image.imports.values():
        name.encode()


@pytest.mark.parametrize(
    ("make", "places"),
    [(_elf, _elf_fields), (_pe, _pe_fields), (_macho, _macho_fields)],
    ids=["elf", "pe", "mach-o"],
)
def test_odd_tables_are_refused_or_read(
    tmp_path: Path, make: Callable[[Path], bytes], places: Callable[[bytes], Fields]
) -> None:
    whole = make(tmp_path)
    fields = places(whole)
    assert len(fields) > 200
    ends = {"read": 0, "refused": 0}
    for seed in range(TRIALS):
        chance = random.Random(seed)
        data = _damaged(whole, fields, chance)
        try:
            image = _loaded(tmp_path / "damaged", data)
        except (DamagedError, UnsupportedError):
            ends["refused"] += 1
        else:
            _used(image, chance)
            ends["read"] += 1
    assert min(ends.values()) > TRIALS // 50, ends


def test_odd_slices_are_refused_or_read(tmp_path: Path) -> None:
    whole = fat(_macho(tmp_path))
    fields = [*_words(0, 48), *_words(0x1000, 0x1020), *_words(0x2000, 0x2400)]
    for seed in range(TRIALS // 4):
        chance = random.Random(seed)
        try:
            image = _loaded(tmp_path / "damaged", _damaged(whole, fields, chance))
        except (DamagedError, UnsupportedError):
            continue
        _used(image, chance)
