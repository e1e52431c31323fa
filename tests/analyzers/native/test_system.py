"""The C library, with its hand-written assembly, overlapping functions and tables of every kind: what always holds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from tests.analyzers.native.binaries import Program, Row, analyse

pytestmark = pytest.mark.timeout(400)

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    if not LIBC.exists():
        pytest.skip("no such C library here")
    return analyse(LIBC, tmp_path_factory.mktemp("libc"), NativeAnalyzer(processes=2))


def test_graphs_hold_together(program: Program) -> None:
    blocks = {row["id"]: row for row in program.rows["blocks"]}
    leaving: dict[str, list[Row]] = defaultdict(list)
    for edge in program.rows["edges"]:
        assert edge["source"] in blocks
        assert edge["target"] in blocks
        assert blocks[edge["source"]]["function"] == blocks[edge["target"]]["function"] == edge["function"]
        leaving[edge["source"]].append(edge)
    for name, block in blocks.items():
        edges = leaving[name]
        assert [edge["ordinal"] for edge in edges] == list(range(len(edges)))
        assert edges or block["exit"], name
        kinds = [edge["kind"] for edge in edges]
        if "taken" in kinds and block["exit"] is None:
            assert {"fallthrough", "default"} & set(kinds)
    for call in program.rows["calls"]:
        assert call["block"] in blocks


def test_records_say_what_the_rows_say(program: Program) -> None:
    edges: dict[str, list[Row]] = defaultdict(list)
    for edge in program.rows["edges"]:
        edges[edge["function"]].append(edge)
    for row in program.rows["functions"]:
        item = program.items[row["id"]]
        assert {name: item[name] for name in row} == row
        assert item["edges"] == edges[row["id"]]
        assert len(item["blocks"]) == row["block_count"]
        assert sum(block["size"] for block in item["blocks"]) == row["size"]
        assert (row["status"] == "complete") == (not item["unknowns"])
        for block in item["blocks"]:
            assert len(block["text"]) == block["instructions"]
    assert program.analysis.coverage.state == "partial"
    assert program.analysis.coverage.unknown == sum(
        len(program.items[row["id"]]["unknowns"]) for row in program.rows["functions"]
    )


def test_known_functions(program: Program) -> None:
    assert program["abort"].item["returns"] is False
    assert program["qsort"].item["returns"] is True
    assert program["printf"].item["returns"] is True


def test_strings_are_named_by_code(program: Program) -> None:
    counted: dict[str, int] = defaultdict(int)
    for row in program.rows["references"]:
        if row["string"] is not None:
            counted[row["string"]] += 1
    assert sum(counted.values()) > 1000
    assert {row["id"]: row["references"] for row in program.rows["strings"] if row["references"]} == counted
