"""What radare2 prints, in the documented form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.graph.form import Function, read_function
from affidavit.analyzers.graph.reading import read_export
from tests.analyzers.graph.exports import radare2_function

BASE = 0xFFFFFFFF81000000


def only(value: Any) -> Function:
    [function] = read_export(json.dumps(value).encode(), "export.json").functions
    read = read_function(function)
    assert isinstance(read, Function), read
    return read


@pytest.mark.parametrize("key", ["addr", "offset"])
def test_blocks_edges_and_calls(key: str) -> None:
    function = only([radare2_function(key)])
    assert function.id == function.entry == "0xffffffff81000000"
    assert [(block.id[-2:], block.exit) for block in function.blocks] == [
        ("00", None),
        ("04", None),
        ("10", "return"),
        ("20", "tail-call"),
        ("30", "trap"),
    ]
    assert function.blocks[2].text == ["0xffffffff81000010 call sym.one", "0xffffffff81000012 ret"]
    assert [
        (it.source[-2:], it.ordinal, it.kind, (it.target or "")[-2:], it.polarity, it.case)
        for it in function.edges
    ] == [
        ("00", 0, "taken", "30", True, None),
        ("00", 1, "fallthrough", "04", False, None),
        ("04", 0, "case", "10", None, 0),
        ("04", 1, "case", "20", None, 1),
        ("04", 2, "case", "10", None, 2),
    ]
    assert [(call.kind, call.target) for call in function.calls] == [
        ("direct", "0xffffffff81000100"),
        ("tail", "0xffffffff81000200"),
        ("indirect", None),
    ]


def test_one_document_a_line_as_run_for_each_function() -> None:
    lines = [json.dumps([radare2_function(base=base)]) for base in (0x1000, 0x2000)]
    read = read_export("\n".join(lines).encode(), "export.json")
    assert [function["id"] for function in read.functions] == ["0x1000", "0x2000"]


def test_the_call_graph_adds_what_blocks_do_not_tell() -> None:
    calls: list[Any] = [
        {"name": "sym.pick", "size": 9, "imports": ["sym.one", "sym.new"]},
        {"name": "sym.new", "size": 1, "imports": []},
    ]
    whole: dict[str, Any] = {
        "tool": {"name": "radare2", "version": "6.0.2"},
        "agfj": [radare2_function()],
        "agCj": calls,
    }
    read = read_export(json.dumps(whole).encode(), "export.json")
    functions = [read_function(function) for function in read.functions]
    assert read.tool.version == "6.0.2"
    assert [one.id for one in functions if isinstance(one, Function)] == ["0xffffffff81000000", "sym.new"]
    added = [call for call in read.functions[0]["calls"] if "block" not in call]
    assert [(call["name"], call["callee"]) for call in added] == [("sym.one", None), ("sym.new", "sym.new")]


def test_a_branch_to_a_block_that_is_not_there_is_told() -> None:
    function = radare2_function()
    del function["blocks"][1]
    [converted] = read_export(json.dumps([function]).encode(), "export.json").functions
    assert "names '0xffffffff81000004', which is no block" in str(read_function(converted))


@pytest.mark.parametrize("value", [-1, 1.8446744071578845e19, "x", None, 1 << 64])
def test_an_address_that_is_none_is_told(value: Any) -> None:
    function = radare2_function()
    function["blocks"][2]["addr"] = value
    [converted] = read_export(json.dumps([function]).encode(), "export.json").functions
    assert "blocks[2]." in str(read_function(converted))


def test_a_computed_jump_without_a_table_is_unresolved(tmp_path: Path) -> None:
    function = radare2_function()
    del function["blocks"][1]["switchop"]
    read = only([function])
    assert read.blocks[1].exit == "unresolved"
