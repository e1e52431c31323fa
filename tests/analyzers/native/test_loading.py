"""The tables of an ELF file against what pyelftools reads of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from affidavit.analyzers.native.loading.elf import load_elf
from affidavit.analyzers.native.loading.frames import at_entry_height
from affidavit.analyzers.native.loading.image import Image
from tests.analyzers.native.binaries import compiled, stripped
from tests.analyzers.native.programs import EXCEPTIONS, MARKED

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")


@pytest.fixture(scope="module", params=["marked-gcc", "marked-clang", "exceptions-gcc", "libc", "stripped"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loading")
    match request.param.partition("-"):
        case ("marked", _, compiler):
            return compiled(folder, "marked.c", MARKED, compiler, ("-O2", "-w"))
        case ("exceptions", _, _):
            return compiled(folder, "exceptions.cc", EXCEPTIONS, "g++", ("-O2",))
        case ("stripped", _, _):
            return stripped(compiled(folder, "marked.c", MARKED, "gcc", ("-O2", "-w")))
        case _:
            if not LIBC.exists():
                pytest.skip("no such C library here")
            return LIBC


@pytest.fixture
def image(path: Path) -> Image:
    with path.open("rb") as file:
        return load_elf(file)


@pytest.fixture
def elf(path: Path) -> Any:
    with path.open("rb") as file:
        yield ELFFile(file)


def test_frames(image: Image, elf: Any) -> None:
    entries = elf.get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries()
    expected = sorted(
        (one.header["initial_location"], one.header["initial_location"] + one.header["address_range"])
        for one in entries
        if isinstance(one, FDE)
    )
    assert [(one.start, one.end) for one in image.frames] == expected
    assert not image.limitations


def test_the_height_of_the_stack(image: Image, elf: Any) -> None:
    checked = 0
    by_start = {one.start: one for one in image.frames}
    for entry in elf.get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries():
        if not isinstance(entry, FDE) or entry.header["initial_location"] not in by_start:
            continue
        frame = by_start[entry.header["initial_location"]]
        try:
            table = entry.get_decoded().table
        except ValueError:  # one of GNU's own operations, which pyelftools does not know
            continue
        for line in table[:8]:
            rule: Any = line["cfa"]
            expected = None if rule.expr is not None else (rule.reg, rule.offset) == (7, 8)
            assert (at_entry_height(frame, line["pc"]) or None) == (expected or None)
            checked += 1
    assert checked > 20


def test_symbols(image: Image, elf: Any) -> None:
    expected = {
        (one["st_value"], one["st_size"])
        for section in (elf.get_section_by_name(".symtab"), elf.get_section_by_name(".dynsym"))
        if section is not None
        for one in section.iter_symbols()
        if one["st_info"]["type"] in {"STT_FUNC", "STT_LOOS"} and one["st_shndx"] != "SHN_UNDEF"
    }
    assert {(one.address, one.size) for one in image.symbols} == expected


def test_imports_and_pointers(image: Image, elf: Any) -> None:
    names: dict[int, str] = {}
    pointers: dict[int, int] = {}
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RELA" and section["sh_flags"] & 2:
            symbols = elf.get_section(section["sh_link"]) if section["sh_link"] else None
            for one in section.iter_relocations():
                if one["r_info_type"] in {6, 7, 1} and symbols is not None:
                    names[one["r_offset"]] = symbols.get_symbol(one["r_info_sym"]).name
                elif one["r_info_type"] in {8, 37}:
                    pointers[one["r_offset"]] = one["r_addend"]
    assert dict(image.imports) == names
    assert pointers.items() <= image.pointers.items()


def test_memory(image: Image, elf: Any) -> None:
    for section in elf.iter_sections():
        if section["sh_flags"] & 2 and section["sh_type"] != "SHT_NOBITS" and section["sh_size"]:
            area = image.area(section["sh_addr"])
            assert area is not None
            assert area.data == section.data()
            assert area.executable == bool(section["sh_flags"] & 4)
    assert image.area(0) is None
    assert image.constant(image.areas[-1].end, 8) is None
