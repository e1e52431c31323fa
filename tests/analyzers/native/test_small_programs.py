"""Small programs of known control flow, by two compilers at three levels, at fixed addresses and movable."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from tests.analyzers.native.binaries import Program, Row, analyse, compiled, stripped
from tests.analyzers.native.programs import EXCEPTIONS, MARKED

LEVELS = ("-O0", "-O2", "-Os")
KINDS = {"fixed": ("-fno-pie", "-no-pie"), "movable": ("-fPIE", "-pie")}
MARKS = {f"m{n}" for n in range(7)}
TABLES = {
    "aarch64-gcc": ("--param", "case-values-threshold=4"),
    "aarch64-clang": ("-mllvm", "-min-jump-table-entries=4"),
}
"""By default these compilers test a few cases one by one."""
SWITCHES = ("dense", "shifted", "narrow", "masked", "sparse", "looped")


@cache
def _built(folder: Path, compiler: str, level: str, kind: str) -> tuple[Path, Program]:
    flags = (level, *KINDS[kind], *TABLES.get(compiler, ()), "-fno-inline", "-w")
    path = compiled(folder, "marked.c", MARKED, compiler, flags)
    return path, analyse(path, folder / "facts")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marked")


@pytest.fixture(params=["gcc", "clang", "aarch64-gcc", "aarch64-clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=list(KINDS))
def program(request: pytest.FixtureRequest, folder: Path, compiler: str, level: str) -> Program:
    return _built(folder, compiler, level, request.param)[1]


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_lead_to_every_case_and_between_none(program: Program, name: str) -> None:
    function = program[name]
    cases = {f"m{n}" for n in range({"masked": 8, "sparse": 4}.get(name, 7))}
    assert function.reached() == cases | ({"m9"} if name != "masked" else set())
    if name != "looped":
        assert not any(function.leads(one, other) for one in cases for other in cases if one != other), name
    assert "return" in function.exits
    assert function.item["status"] == "complete", function.item["unknowns"]


@pytest.mark.parametrize("name", ["dense", "shifted", "narrow", "looped"])
def test_jump_tables_are_proven_and_have_their_default(program: Program, name: str) -> None:
    function = program[name]
    for table in function.item["tables"]:
        assert table["proven"]
        jumps = [
            edge
            for edge in function.edges
            if edge["kind"] == "case" and edge["operation"].startswith(table["address"])
        ]
        assert [edge["case"] for edge in jumps] == list(
            range(table["first"], table["first"] + table["entries"])
        )
        assert [edge["ordinal"] for edge in jumps] == list(range(table["entries"]))
        (default,) = [edge for edge in function.edges if edge["kind"] == "default"]
        assert default["operation"].startswith(table["guard"])
        assert default["polarity"] in {True, False}
        if name != "looped":
            assert function.reached(default["target"]) == {"m9"}


def test_some_jump_tables_were_tested(folder: Path, compiler: str) -> None:
    tables = [
        len(_built(folder, compiler, level, kind)[1][name].item["tables"])
        for level in LEVELS
        for kind in KINDS
        for name in ("dense", "shifted", "narrow", "looped", "masked")
    ]
    assert sum(tables) >= 20


def test_computed_goto_with_a_mask(program: Program) -> None:
    function = program["threaded"]
    assert function.reached() == {"m0", "m1", "m2", "m3"}
    assert function.leads("m0", "m1")
    assert function.leads("m2", "m0")
    assert not function.leads("m3", "m0")
    assert function.item["tables"]
    assert {table["entries"] for table in function.item["tables"]} == {4}
    assert all(table["proven"] for table in function.item["tables"])


def test_computed_goto_without_a_bound_is_told(program: Program) -> None:
    function = program["unbounded"]
    assert function.item["status"] == "partial"
    assert {one["kind"] for one in function.item["unknowns"]} <= {"table-bound", "indirect-jump"}
    assert not any(table["proven"] for table in function.item["tables"])
    assert not any(edge["proven"] for edge in function.edges if edge["kind"] == "case")
    places = {one.place for one in program.analysis.limitations}
    assert {f"{function.item['id']} {one['address']}" for one in function.item["unknowns"]} <= places


def test_what_does_not_return_ends_its_block(program: Program) -> None:
    last = program["last"]
    assert last.exits == {"noreturn"}
    assert last.item["returns"] is False
    assert last.names() == {"m1", "exit"}
    assert program["after"].names() == {"m2"}
    assert program["after"].exits == {"return"}


def test_not_returning_is_handed_on_to_callers(program: Program) -> None:
    assert program["die"].item["returns"] is False
    assert program["dying"].item["returns"] is False
    checked = program["checked"]
    assert checked.reached() == {"m0", "dying", "m5"}
    assert not checked.leads("m0", "m5")
    assert {call["returns"] for call in checked.calls if call["name"] == "dying"} == {False}
    assert "return" in checked.exits


def test_tail_calls_are_calls(program: Program, level: str) -> None:
    tail = program["tail"]
    (call,) = tail.calls
    assert call["name"] == "m7"
    if level == "-O2":
        assert call["kind"] == "tail"
        assert tail.exits == {"tail-call"}
        assert not [edge for edge in tail.edges if edge["kind"] == "jump"]
    assert tail.item["returns"] is True
    start = int(tail.item["id"], 16)
    other = int(program["m7"].item["id"], 16)
    assert start != other
    assert not any(
        int(block["address"], 16) <= other < int(block["address"], 16) + block["size"]
        for block in tail.item["blocks"]
    )


def test_calls_through_pointers(program: Program, level: str) -> None:
    function = program["pointer"]
    (call,) = function.calls
    assert (call["target"], call["callee"], call["name"]) == (None, None, None)
    assert call["kind"] == ("tail" if level == "-O2" else call["kind"])
    assert "unresolved" not in function.exits


def test_a_diamond(program: Program) -> None:
    function = program["diamond"]
    assert function.reached() == {"m1", "m2"}
    assert not function.leads("m1", "m2")
    assert not function.leads("m2", "m1")
    (branch,) = [block for block in function.blocks if len(_out(function.edges, block)) == 2]
    taken, fallthrough = sorted(_out(function.edges, branch), key=lambda edge: edge["ordinal"])
    assert (taken["kind"], taken["polarity"]) == ("taken", True)
    assert (fallthrough["kind"], fallthrough["polarity"]) == ("fallthrough", False)
    assert taken["condition"] == fallthrough["condition"]
    assert re.search(" after (cmp|subs) ", taken["condition"])
    assert taken["operation"] == fallthrough["operation"]
    assert taken["operation"].split()[0] in {line.split()[0] for line in function.blocks[branch]["text"][-1:]}


def _out(edges: list[Row], block: str) -> list[Row]:
    return [edge for edge in edges if edge["source"] == block]


def test_recursion(program: Program, level: str) -> None:
    function = program["recursive"]
    if level == "-O0":
        assert {call["callee"] for call in function.calls} == {function.item["id"]}
    assert "return" in function.exits


def test_set_jump_returns_twice_and_long_jump_never(program: Program) -> None:
    function = program["jumping"]
    assert {"m0", "m1"} <= function.reached()
    assert not function.leads("m0", "m1")
    assert "noreturn" in function.exits


def test_inline_assembly(program: Program) -> None:
    counted = program["counted"]
    assert [edge for edge in counted.edges if edge["source"] == edge["target"] and edge["kind"] == "taken"]
    skipping = program["skipping"]
    assert skipping.reached() == {"m0", "m1"}
    assert skipping.item["status"] == "complete"
    faulting = program["faulting"]
    assert {"trap"} < faulting.exits
    assert faulting.leads("m0", "m1")


def test_a_part_that_was_moved_away_belongs_to_its_function(program: Program) -> None:
    function = program["parted"]
    assert function.reached() == {"m0", "m1", "m2"}
    assert len(function.item["ranges"]) == 2
    assert function.leads("m0", "m2")
    assert not function.leads("m0", "m1")
    assert not [row for row in program.rows["functions"] if row["name"] and ".cold" in row["name"]]


def test_nothing_but_the_unbounded_goto_is_unknown(program: Program) -> None:
    unknown = {
        row["name"]
        for row in program.rows["functions"]
        if row["status"] != "complete" and row["name"] is not None
    }
    # What the C library links in jumps to address 0 where a weak symbol is missing, and never gets there.
    assert unknown - {"register_tm_clones", "deregister_tm_clones"} == {"unbounded"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_without_symbols_the_same_graphs(folder: Path, compiler: str, kind: str) -> None:
    path, whole = _built(folder, compiler, "-O2", kind)
    bare = analyse(stripped(path), folder / "facts")
    named = {row["id"]: row["name"] for row in whole.rows["functions"]}
    assert {row["id"] for row in bare.rows["functions"]} >= {
        identity for identity, name in named.items() if name in {"main", "dense", "threaded", "last", "tail"}
    }
    compared = 0
    for function in bare.functions():
        identity = function.item["id"]
        if identity in whole.items and named[identity] in {
            *SWITCHES,
            "threaded",
            "last",
            "checked",
            "parted",
        }:
            other = whole.items[identity]
            assert (function.item["blocks"], function.edges) == (other["blocks"], other["edges"])
            compared += 1
    assert compared == len(SWITCHES) + 4


def test_any_number_of_processes_says_the_same(folder: Path) -> None:
    path, program = _built(folder, "gcc", "-O2", "movable")
    assert analyse(path, folder / "facts", NativeAnalyzer(processes=3)).digest == program.digest


@pytest.mark.parametrize("level", LEVELS)
def test_exceptions_lead_to_their_landing_pads(folder: Path, compiler: str, level: str) -> None:
    language = compiler.replace("gcc", "g++").replace("clang", "clang++")
    path = compiled(folder, "exceptions.cc", EXCEPTIONS, language, (level, "-w", "-fno-inline"))
    program = analyse(path, folder / "facts")
    catching = program["catching"]
    assert {"thrower", "m1", "m2", "m3"} <= catching.reached()
    assert not catching.leads("m1", "m2")
    pads = [edge for edge in catching.edges if edge["kind"] == "unwind"]
    assert pads
    (block,) = catching.calling("thrower")
    assert any(edge["source"] == block and "m2" in catching.reached(edge["target"]) for edge in pads)
    cleaning = program["cleaning"]
    assert any("_Unwind_Resume" in cleaning.reached(edge["target"]) for edge in cleaning.edges)
