"""Functions chosen at random, each instruction of theirs against objdump's line for the same address."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from affidavit.facts.factfile import FactFile, FactFileWriter
from tests.analyzers.native.binaries import Row, sqlite_library, stripped, tool

pytestmark = pytest.mark.timeout(300)

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
CHOSEN = 200

_LINE = re.compile(
    r"^\s+([0-9a-f]+):\t((?:(?:bnd|notrack|data16|addr32|cs|ds|es|ss|fs|gs|rex|repz?|repnz|lock) )*)"
    r"(\S+)(.*)$",
    re.MULTILINE,
)
_TARGET = re.compile(r"\s([0-9a-f]+)(?: <|$)")
_APART = {"case", "unwind"}
_STOPS = ("hlt", "ud2", "ud1", "ud0", "int3")


@pytest.fixture(scope="module", params=["sqlite", "libc"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "libc":
        if not LIBC.exists():
            pytest.skip("no such C library here")
        return LIBC
    copy = tmp_path_factory.mktemp("second") / "libsqlite3.so"
    copy.write_bytes(sqlite_library("gcc").read_bytes())
    return stripped(copy)


def _chosen(path: Path, folder: Path) -> Iterator[Row]:
    """The records of functions chosen at random."""
    analyzer = NativeAnalyzer(processes=1)
    artifact = analyzer.identify(path)
    outline = FactFileWriter(folder / "outline.facts", analyzer.collections)
    kept = analyzer.outline(artifact, outline, lambda done, total, what: None).kept
    with outline.finish({}) as facts:
        rows = facts.decode(facts.rows("functions", range(facts.total("functions"))))
    ids = [row["id"] for row in rows if row["kind"] == "function"]
    asked = random.Random(7).sample(ids, CHOSEN)
    part = FactFileWriter(folder / "part.facts", analyzer.collections)
    analyzer.detail(artifact, kept, asked, part, lambda done, total, what: None)
    with part.finish({}) as facts:
        yield from _decoded(facts, asked)


def _decoded(facts: FactFile, asked: list[str]) -> list[Row]:
    return facts.decode(list(facts.items("functions", asked).values()))


class _Function:
    """What a record says of each of its instructions."""

    def __init__(self, item: Row) -> None:
        self.item = item
        addresses = {one["id"]: int(one["address"], 16) for one in item["blocks"]}
        self.edges: dict[int, set[tuple[str, int]]] = {}
        for edge in item["edges"]:
            at = int(edge["operation"].split()[0], 16)
            self.edges.setdefault(at, set()).add((edge["kind"], addresses[edge["target"]]))
        self.calls: dict[int, Row] = {int(one["address"], 16): one for one in item["calls"]}
        self.unknown = {int(one["address"], 16) for one in item["unknowns"]}
        self.ends: dict[int, Any] = {}
        self.following: dict[int, int] = {}
        for block in item["blocks"]:
            texts = [int(line.split()[0], 16) for line in block["text"]]
            self.following |= dict(itertools.pairwise(texts))
            if texts:
                self.ends[texts[-1]] = block["exit"]

    def instructions(self) -> list[int]:
        return [*self.following, *self.ends]

    def leads(self, at: int) -> set[int]:
        """Where an instruction leads but over jump tables and to landing pads."""
        found = {to for kind, to in self.edges.get(at, ()) if kind not in _APART}
        if at in self.following:
            found.add(self.following[at])
        call = self.calls.get(at)
        if call is not None and call["kind"] == "tail" and call["target"] is not None:
            found.add(int(call["target"], 16))
        return found

    def difference(self, at: int, mnemonic: str, operands: str, behind: int) -> str | None:
        """How this differs from objdump's line; None where it does not."""
        target = _TARGET.search(operands) if "*" not in operands else None
        to = None if target is None else int(target[1], 16)
        if mnemonic == "call":
            return self._call(at, to, behind)
        if mnemonic == "jmp" and to is None:
            return None if self._resolved(at) else "an indirect jump"
        for wanted, what in (("return", "ret"), ("trap", _STOPS)):
            if mnemonic.startswith(what):
                return None if self.ends.get(at) == wanted else f"a {wanted}"
        return self._step(at, mnemonic, to, behind)

    def _resolved(self, at: int) -> bool:
        """Whether an indirect jump has a table, is a tail call, or is listed as unknown."""
        cases = any(kind == "case" for kind, _ in self.edges.get(at, ()))
        return cases or at in self.calls or at in self.unknown

    def _step(self, at: int, mnemonic: str, to: int | None, behind: int) -> str | None:
        expected = {behind}
        if to is not None and mnemonic == "jmp":
            expected = {to}
        elif to is not None and mnemonic.startswith(("j", "xbegin", "loop")):
            expected.add(to)
        found, end = self.leads(at), self.ends.get(at)
        if found == expected or (end == "unresolved" and at in self.unknown):
            return None
        return f"{mnemonic} leads to {found}, not {expected}, exit {end}"

    def _call(self, at: int, to: int | None, behind: int) -> str | None:
        call = self.calls.get(at)
        if call is None:
            return "a call"
        if to is not None and call["target"] != hex(to):
            return f"a call of {to:#x}"
        expected = {behind} if call["returns"] is not False else set[int]()
        return None if self.leads(at) == expected or self.ends.get(at) == "noreturn" else "behind a call"


Lines = dict[int, tuple[str, str]]


def _disassembled(path: Path) -> tuple[Lines, Lines]:
    """Lines by address, and those that begin with the prefix `lock` by the address behind it: libc jumps there."""
    command = [tool("objdump"), "-d", "-w", "--no-show-raw-insn", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    found = list(_LINE.finditer(text))
    inner = {int(line[1], 16) + 1: (line[3], line[4]) for line in found if line[2].startswith("lock")}
    return {int(line[1], 16): (line[3], line[4]) for line in found}, inner


def test_each_instruction_leads_where_objdump_says(path: Path, tmp_path: Path) -> None:
    lines, inner = _disassembled(path)
    order = sorted(lines)
    checked: Counter[str] = Counter()
    differences: list[str] = []
    for item in _chosen(path, tmp_path):
        function = _Function(item)
        for at in function.instructions():
            line = lines.get(at) or inner.get(at)
            if line is None:
                differences.append(f"{at:#x} in {item['id']}: no instruction there")
                continue
            found = function.difference(at, *line, order[bisect_right(order, at)])
            checked["branch" if line[0].startswith("j") else line[0]] += 1
            if found is not None:
                differences.append(f"{at:#x} in {item['id']}: {found}")
    assert not differences, (len(differences), differences[:20])
    assert checked["branch"] > 1000
    assert checked["call"] > 500
