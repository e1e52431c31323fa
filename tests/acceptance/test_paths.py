"""Four witnesses through SQLite's interpreter, two around a block, from four calls of one script; no record is lost."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import affidavit
from tests.analyzers.native.binaries import Row, sqlite_library, stripped

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]

SCRIPT = """
function, entry, middle, first, second = QUESTION
entering = await df.db.bin.path(function, entry, {"kind": "block", "id": middle})
entering_around = await df.db.bin.path(function, entry, {"kind": "block", "id": middle}, avoid=[first])
leaving = await df.db.bin.path(function, middle, {"kind": "exit"})
leaving_around = await df.db.bin.path(function, middle, {"kind": "exit"}, avoid=[second])
[entering, entering_around, leaving, leaving_around]
"""


async def test_four_witnesses_from_four_calls(tmp_path: Path) -> None:
    library = tmp_path / "libsqlite3.so"
    library.write_bytes(sqlite_library("gcc").read_bytes())
    function = _address_of(library, "sqlite3VdbeExec")
    bare = stripped(library)
    async with affidavit.Workspace.open(tmp_path / "workspace") as workspace:
        workspace.mount(f"bin={bare}")
        session = await workspace.session()
        record = (await session.run(f'await df.db.bin.functions.get("{function}")')).data
        record = cast("dict[str, Any]", record)
        question = [function, *_question(record)]
        run = await session.run(SCRIPT.replace("QUESTION", repr(question)))
        assert run.error is None, run.error
        assert run.error is None, run.error
        _check(record, question, cast("list[Any]", run.data))


def _check(record: Row, question: list[str], replies: list[Any]) -> None:
    _, _, middle, first, second = question
    assert [reply["status"] for reply in replies] == ["found"] * 4
    assert sum(len(json.dumps(reply, separators=(",", ":"))) for reply in replies) <= 10_000
    assert len(json.dumps(record)) > 1_000_000
    retained = {edge["id"]: edge for edge in record["edges"]}
    for reply in replies:
        assert [row["step_index"] for row in reply["rows"]] == list(range(len(reply["rows"])))
        for row in reply["rows"]:
            assert {name: value for name, value in row.items() if name != "step_index"} == retained[row["id"]]
    entering, entering_around, leaving, leaving_around = replies
    assert entering["rows"][-1]["target"] == middle == leaving["rows"][0]["source"]
    assert first in _passed(entering) - _passed(entering_around)
    assert second in _passed(leaving) - _passed(leaving_around)
    exits = {block["id"]: block["exit"] for block in record["blocks"]}
    ends = {exits[reply["rows"][-1]["target"]] for reply in (leaving, leaving_around)}
    assert ends <= {"return", "noreturn", "trap", "tail-call"}


def _passed(reply: Row) -> set[str]:
    return {row[end] for row in reply["rows"] for end in ("source", "target")}


def _question(record: Row) -> tuple[str, str, str, str]:
    """The entry, a block that many edges lead to, and blocks on the ways to and from it that others lead around."""
    (entry,) = [block["id"] for block in record["blocks"] if block["entry"]]
    exits = {block["id"] for block in record["blocks"] if block["exit"]}
    ways: dict[str, list[str]] = defaultdict(list)
    targets: Counter[str] = Counter()
    for edge in record["edges"]:
        ways[edge["source"]].append(edge["target"])
        targets[edge["target"]] += 1
    found: list[tuple[int, tuple[str, str, str, str]]] = []
    for middle, _ in targets.most_common(50):
        first, some = _passable(ways, entry, {middle})
        second, more = _passable(ways, middle, exits)
        if first is not None and second is not None:
            found.append((some + more, (entry, middle, first, second)))
    return min(found)[1]


def _passable(ways: Mapping[str, list[str]], start: str, ends: set[str]) -> tuple[str | None, int]:
    """A block on a shortest way that another leads around, and how long both are."""
    way = _way(ways, start, ends, None)
    for one in way[1:-1]:
        around = _way(ways, start, ends, one)
        if around:
            return one, len(way) + len(around)
    return None, 0


def _way(ways: Mapping[str, list[str]], start: str, ends: set[str], without: str | None) -> list[str]:
    came: dict[str, str] = {start: start}
    level = [start]
    while level:
        for one in level:
            if one in ends and one != start:
                way = [one]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
        following: list[str] = []
        for one in level:
            for target in ways[one]:
                if target not in came and target != without:
                    came[target] = one
                    following.append(target)
        level = following
    return []


def _address_of(path: Path, name: str) -> str:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name(name)
        return hex(symbol["st_value"])
