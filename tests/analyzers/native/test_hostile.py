"""Files that are no binaries, broken ones, ones made to break readers: a clear error, or limitations with places."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from affidavit.analyzers.native.loading.elf import load_elf
from affidavit.analyzers.native.loading.image import DamagedError, UnsupportedError
from affidavit.analyzers.native.working.pool import Allowance
from affidavit.errors import AffidavitError, FailedError, NotFoundError, VerificationError
from tests.analyzers.native.binaries import analyse, compiled
from tests.analyzers.native.programs import MARKED

HEADERS = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")


def elf(
    code: bytes = b"\xc3",
    *,
    kind: int = 2,
    machine: int = 62,
    identity: bytes = b"\x7fELF\x02\x01\x01" + bytes(9),
    segments: list[tuple[int, ...]] | None = None,
    sections: tuple[int, int] = (0, 0),
    entry: int = 0x401000,
) -> bytes:
    """A minimal executable: one segment with code at 0x401000, unless told otherwise."""
    if segments is None:
        segments = [(1, 5, 0x1000, 0x401000, 0x401000, len(code), len(code), 0x1000)]
    offset, count = sections
    header = HEADERS.pack(
        identity, kind, machine, 1, entry, 64, offset, 0, 64, 56, len(segments), 64, count, 0
    )
    body = header + b"".join(PROGRAM.pack(*one) for one in segments)
    return body.ljust(0x1000, b"\0") + code


def segment(
    offset: int, address: int, size: int, memory: int | None = None, flags: int = 5
) -> tuple[int, ...]:
    return (1, flags, offset, address, address, size, size if memory is None else memory, 0x1000)


REFUSED: dict[str, tuple[bytes, str]] = {
    "only magic": (b"\x7fELF", "artifact-damaged"),
    "cut in the header": (elf()[:40], "artifact-damaged"),
    "cut in the program headers": (elf()[:80], "artifact-damaged"),
    "cut in the code": (elf(b"\x90" * 100)[:-50], "artifact-damaged"),
    "32 bits": (elf(identity=b"\x7fELF\x01\x01\x01" + bytes(9)), "artifact-unsupported"),
    "big-endian": (elf(identity=b"\x7fELF\x02\x02\x01" + bytes(9)), "artifact-unsupported"),
    "another machine": (elf(machine=243), "artifact-unsupported"),
    "an object file": (elf(kind=1), "artifact-unsupported"),
    "a core dump": (elf(kind=4), "artifact-unsupported"),
    "no segments": (elf(segments=[]), "artifact-unsupported"),
    "overlapping segments": (
        elf(b"\xc3" * 64, segments=[segment(0x1000, 0x401000, 64), segment(0x1000, 0x401020, 64)]),
        "artifact-damaged",
    ),
    "4 GB that are not there": (elf(segments=[segment(0x1000, 0x401000, 1 << 32)]), "artifact-damaged"),
    "a segment past the end of memory": (
        elf(segments=[segment(0x1000, (1 << 64) - 16, 1, 1 << 20)]),
        "artifact-damaged",
    ),
    "more bytes than memory": (
        elf(b"\xc3" * 64, segments=[segment(0x1000, 0x401000, 64, 8)]),
        "artifact-damaged",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    data, code = REFUSED[name]
    path = tmp_path / "binary"
    path.write_bytes(data)
    with pytest.raises(AffidavitError) as caught:
        analyse(path, tmp_path / "facts")
    assert caught.value.code == code
    assert "binary" in caught.value.message
    assert caught.value.hint


READ: dict[str, tuple[bytes, set[str]]] = {
    "one instruction": (elf(), {"return"}),
    "4 GB of memory that the file does not hold": (
        elf(segments=[segment(0x1000, 0x401000, 1, 1 << 32)]),
        {"return"},
    ),
    "section headers past the end": (elf(sections=(1 << 40, 10)), {"return"}),
    "65,000 sections that are not there": (elf(sections=(0x1000, 65_000)), {"return"}),
    "runs off the end": (elf(b"\x90\x90"), {"unresolved"}),
    "no instruction": (elf(b"\x90\x06\x06"), {"unresolved"}),
    "cut within an instruction": (elf(b"\x90\xe8\x00"), {"unresolved"}),
    "jumps to itself": (elf(b"\xeb\xfe"), set()),
    "jumps into itself": (elf(b"\xeb\xff\xc0\xc3"), {"return"}),
    "jumps out of memory": (elf(b"\xe9\x00\x00\x00\x70"), {"tail-call"}),
    "calls itself for ever": (elf(b"\xe8\xfb\xff\xff\xff\xc3"), {"noreturn", "return"}),
    "jumps through its own code": (elf(b"\xff\x24\xc5\x00\x10\x40\x00"), {"unresolved", "tail-call"}),
    "a jump table of itself": (
        elf(
            b"\x83\xf8\x03\x77\x07\xff\x24\xc5\x10\x10\x40\x00\xc3".ljust(16, b"\x90")
            + struct.pack("<Q", 0x401000) * 4
        ),
        {"return"},
    ),
}


@pytest.mark.parametrize("name", list(READ))
def test_odd_code_is_read_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    data, exits = READ[name]
    path = tmp_path / "binary"
    path.write_bytes(data)
    program = analyse(path, tmp_path / "facts")
    (function,) = [one for one in program.functions() if one.item["id"] == "0x401000"]
    assert function.exits <= exits
    assert "entry" in function.item["basis"]
    if "unresolved" in function.exits:
        assert function.item["unknowns"]
        assert program.analysis.coverage.state == "partial"


def test_an_entry_outside_of_the_code(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(elf(entry=0x99999999))
    assert analyse(path, tmp_path / "facts").rows["functions"] == []


def test_no_code_at_all(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(elf(b"", segments=[segment(0x1000, 0x401000, 0, 16)]))
    program = analyse(path, tmp_path / "facts")
    assert program.rows["functions"] == []
    assert program.analysis.coverage.examined == 0


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    analyzer = NativeAnalyzer()
    for name, data in {"a.js": b"let a", "b.exe": b"MZ\x90\x00", "empty": b"", "c": b"\x7fEL"}.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert not analyzer.detect(path, data)
    assert not analyzer.detect(tmp_path, b"")
    with pytest.raises(NotFoundError, match="artifact-not-found"):
        analyzer.identify(tmp_path / "missing")


def test_too_much_work_is_given_up(tmp_path: Path) -> None:
    path = compiled(tmp_path, "marked.c", MARKED, "gcc", ("-O2", "-w"))
    with pytest.raises(FailedError) as caught:
        analyse(path, tmp_path / "facts", NativeAnalyzer(allowance=Allowance(base=0.001, per_mebibyte=0)))
    assert caught.value.code == "analysis-failed"
    assert "time" in caught.value.message


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(elf())
    analyzer = NativeAnalyzer()
    artifact = analyzer.identify(path)
    path.write_bytes(elf(b"\x90\xc3"))
    with pytest.raises(FailedError, match="artifact-changed"):
        analyzer.analyze(artifact, None, lambda done, total, what: None)  # type: ignore[arg-type]


def _flipped(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 12)):
        data[chance.randrange(len(data))] = chance.randrange(256)


def _heads(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(64 + 56 * 8)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


@pytest.mark.parametrize("damage", [_flipped, _heads, _cut], ids=["flipped", "heads", "cut"])
def test_damaged_files_are_refused_or_read(
    tmp_path: Path, damage: Callable[[bytearray, random.Random], None]
) -> None:
    whole = compiled(tmp_path, "marked.c", MARKED, "gcc", ("-O2", "-w")).read_bytes()
    path = tmp_path / "damaged"
    ends: set[str] = set()
    for seed in range(int(os.environ.get("AFFIDAVIT_FUZZ", "60"))):
        data = bytearray(whole)
        damage(data, random.Random(seed))
        path.write_bytes(data)
        try:
            with path.open("rb") as file:
                image = load_elf(file)
        except (DamagedError, UnsupportedError):
            ends.add("refused")
        else:
            assert all(one.start < one.end or not one.data for one in image.areas)
            ends.add("read")
    assert "refused" in ends or damage is _flipped


def test_damaged_code_is_analysed(tmp_path: Path) -> None:
    whole = compiled(tmp_path, "marked.c", MARKED, "gcc", ("-O2", "-w")).read_bytes()
    path = tmp_path / "damaged"
    codes: set[str] = set()
    for seed in range(8):
        data = bytearray(whole)
        _flipped(data, random.Random(1000 + seed))
        path.write_bytes(data)
        try:
            program = analyse(path, tmp_path / "facts")
        except (FailedError, VerificationError) as error:
            codes.add(error.code)
        else:
            for name in ("blocks", "edges", "calls"):
                assert len({row["id"] for row in program.rows[name]}) == len(program.rows[name])
    assert codes <= {"artifact-damaged", "artifact-unsupported"}


def _pe(machine: int, at: int = 64) -> bytes:
    return b"MZ".ljust(60, b"\0") + struct.pack("<I", at) + b"PE\0\0" + struct.pack("<H", machine) + bytes(40)


FOREIGN: dict[str, tuple[bytes, str]] = {
    "a PE file for another machine": (_pe(0xAA64), "artifact-unsupported"),
    "a PE file that ends in its headers": (_pe(0x8664)[:80], "artifact-damaged"),
    "only the magic of Mach-O": (b"\xcf\xfa\xed\xfe", "artifact-damaged"),
    "slices that are not there": (b"\xca\xfe\xba\xbe\0\0\0\x02" + bytes(40), "artifact-damaged"),
}


@pytest.mark.parametrize("name", list(FOREIGN))
def test_other_formats_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    data, code = FOREIGN[name]
    path = tmp_path / "binary"
    path.write_bytes(data)
    assert NativeAnalyzer().detect(path, data)
    with pytest.raises(AffidavitError) as caught:
        analyse(path, tmp_path / "facts")
    assert caught.value.code == code
