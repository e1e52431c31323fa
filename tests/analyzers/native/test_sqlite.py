"""The whole SQLite library without symbols, against what objdump and the relocations of the same build prove."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from tests.analyzers.native.binaries import Program, analyse, sqlite_library, stripped
from tests.analyzers.native.disassembly import Proven, proven_flow

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

COMPILERS = ["gcc", "clang", "aarch64-gcc", "aarch64-clang"]
BRANCHES = {"taken", "jump", "default", "fallthrough"}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sqlite")


@cache
def _library(work: Path, compiler: str) -> tuple[Program, dict[int, Proven]]:
    whole = sqlite_library(compiler)
    copy = work / f"{compiler}.so"
    copy.write_bytes(whole.read_bytes())
    program = analyse(stripped(copy), work / "facts", NativeAnalyzer(processes=2))
    return program, proven_flow(whole)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_function_is_found(work: Path, compiler: str) -> None:
    program, proven = _library(work, compiler)
    found = {int(row["id"], 16) for row in program.rows["functions"] if row["kind"] == "function"}
    assert len(proven) > 1500
    assert proven.keys() <= found


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_branch_is_found_and_none_invented(work: Path, compiler: str) -> None:
    program, proven = _library(work, compiler)
    expected = {edge for one in proven.values() for edge in one.branches}
    jumps = {at for at, _ in expected}
    found: set[tuple[int, int]] = set()
    for edge in program.rows["edges"]:
        at = int(edge["operation"].split()[0], 16)
        # A block that ends because the next one is branched to has an edge that is no branch.
        is_branch = edge["kind"] in BRANCHES and (edge["kind"] != "fallthrough" or at in jumps)
        if is_branch and int(edge["function"], 16) in proven:
            found.add((at, _address(edge["target"])))
    assert len(expected) > 50_000
    assert expected - found == set()
    assert found - expected == set()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_jump_table_is_read_to_its_end(work: Path, compiler: str) -> None:
    program, proven = _library(work, compiler)
    expected = {(start, target) for start, one in proven.items() for target in one.cases}
    found: dict[tuple[int, int], bool] = {}
    for edge in program.rows["edges"]:
        if edge["kind"] == "case" and int(edge["function"], 16) in proven:
            key = int(edge["function"], 16), _address(edge["target"])
            found[key] = found.get(key, False) or edge["proven"]
    assert len(expected) > 700
    assert expected - found.keys() == set()
    invented = found.keys() - expected
    assert not [key for key in invented if found[key]]
    if compiler.endswith("gcc"):
        assert invented == set()
    else:
        assert len(invented) <= len(expected) / 1000


@pytest.mark.parametrize("compiler", ["gcc", "aarch64-gcc"])
def test_nothing_in_the_gcc_builds_is_unknown(work: Path, compiler: str) -> None:
    program, _ = _library(work, compiler)
    assert program.analysis.coverage.state == "complete", program.analysis.limitations
    assert Counter(row["status"] for row in program.rows["functions"]).keys() == {"complete"}


@pytest.mark.parametrize("compiler", ["clang", "aarch64-clang"])
def test_what_is_unknown_in_the_clang_builds_is_listed(work: Path, compiler: str) -> None:
    program, _ = _library(work, compiler)
    partial = {row["id"] for row in program.rows["functions"] if row["status"] == "partial"}
    assert partial == {one.place.split()[0] for one in program.analysis.limitations}
    assert {one.code for one in program.analysis.limitations} <= {"table-unproven"}
    assert program.analysis.coverage.unknown == len(program.analysis.limitations) < 10


def _address(place: str) -> int:
    """The address of a place that is given as function and offset."""
    function, sign, offset = (*place.partition("+"),) if "+" in place else (*place.partition("-"),)
    return int(function, 16) + (1 if sign == "+" else -1) * int(offset, 16)
