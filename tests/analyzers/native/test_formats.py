"""PE and Mach-O files as published: what is read of them against the files' own tables, read by `struct` alone."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from affidavit.analyzers.native.loading.formats import load
from tests import real_inputs
from tests.analyzers.native.binaries import Program, Row, analyse
from tests.analyzers.native.tables import fat, macho_imports, macho_starts, pe_imports, pe_starts


def _library(key: str) -> Path:
    folder = real_inputs.wheel(key)
    (found,) = [*folder.rglob("*.pyd"), *folder.rglob("*.so")]
    return found


def _starts(path: Path) -> set[int]:
    data = path.read_bytes()
    return pe_starts(data) if path.suffix == ".pyd" else macho_starts(data)


@pytest.fixture(scope="module", params=["tree-sitter-windows", "tree-sitter-macos"])
def path(request: pytest.FixtureRequest) -> Path:
    return _library(request.param)


@pytest.fixture(scope="module")
def program(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return analyse(path, tmp_path_factory.mktemp("formats"))


def _told(row: Row) -> bool:
    return bool({"unwind-table", "function-starts"} & set(row["basis"]))


def test_functions_are_those_that_the_file_tells(path: Path, program: Program) -> None:
    expected = _starts(path)
    assert len(expected) > 200
    assert {int(row["id"], 16) for row in program.rows["functions"] if _told(row)} == expected


def test_the_callee_of_every_direct_call_is_found(program: Program) -> None:
    functions = {row["id"] for row in program.rows["functions"]}
    direct = [row for row in program.rows["calls"] if row["kind"] == "direct"]
    assert len(direct) > 500
    assert {row["callee"] for row in direct} <= functions


def test_imports_are_named(path: Path, program: Program) -> None:
    data = path.read_bytes()
    names = {row["name"] for row in program.rows["functions"] if row["kind"] == "import"}
    image = load(io.BytesIO(data))
    if path.suffix == ".pyd":
        assert dict(image.imports) == pe_imports(data)
        assert names <= set(pe_imports(data).values())
    else:
        assert set(image.imports.values()) == macho_imports(data)
        assert names <= macho_imports(data)
    assert {"_PyArg_ParseTuple_SizeT", "PyLong_AsSize_t"} <= {row["name"] for row in program.rows["calls"]}


@pytest.mark.parametrize("key", ["iced-windows", "iced-macos"])
def test_starts_and_imports_of_compiled_rust(key: str) -> None:
    path = _library(key)
    data = path.read_bytes()
    image = load(io.BytesIO(data))
    if path.suffix == ".pyd":
        assert {one.start for one in image.frames if not one.part} == pe_starts(data)
        assert dict(image.imports) == pe_imports(data)
    else:
        assert {at for at, basis in image.roots if basis == "function-starts"} == macho_starts(data)
        assert set(image.imports.values()) == macho_imports(data)


def test_of_several_slices_the_one_for_this_machine_is_read() -> None:
    thin = _library("tree-sitter-macos").read_bytes()
    alone, chosen = load(io.BytesIO(thin)), load(io.BytesIO(fat(thin)))
    assert chosen.areas == alone.areas
    assert (chosen.roots, chosen.imports, chosen.pointers) == (alone.roots, alone.imports, alone.pointers)
    assert chosen.symbols == alone.symbols
    assert {place for place, _ in chosen.limitations} == {*dict(alone.limitations), "slice ARM64"}
