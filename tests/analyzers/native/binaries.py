"""Making binaries for tests, and looking at all that the analyzer says of them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from affidavit.extensions import Analysis
from affidavit.facts.factfile import FactFileWriter
from tests import real_inputs

__all__ = ["Function", "Program", "Row", "analyse", "compiled", "sqlite_library", "stripped", "tool"]

Row = Mapping[str, Any]

SQLITE_FLAGS = (
    "-O2",
    "-fPIC",
    "-shared",
    "-Wl,-q",
    "-DSQLITE_THREADSAFE=1",
    "-DSQLITE_ENABLE_FTS5",
    "-DSQLITE_ENABLE_RTREE",
)


def tool(name: str) -> str:
    """A program that the tests need; without it they are skipped, in CI they fail."""
    found = shutil.which(name)
    if found is None:
        real_inputs.require_or_skip(f"{name} is not installed")
    return found


def compiled(folder: Path, name: str, source: str, compiler: str, flags: Sequence[str]) -> Path:
    """Compile and link a source text; its suffix says the language."""
    file = folder / name
    file.write_text(source)
    target = folder / f"{file.stem}-{compiler}{''.join(flags).replace('/', '_')}"
    done = subprocess.run(
        [tool(compiler), *flags, "-o", str(target), str(file)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def stripped(path: Path) -> Path:
    """A copy without symbols and debugging information."""
    target = path.with_name(path.name + ".stripped")
    subprocess.run([tool("strip"), "-o", str(target), str(path)], check=True, timeout=100)
    return target


def sqlite_library(compiler: str) -> Path:
    """The SQLite library with its relocations kept, built once for each version of the compiler."""
    source = real_inputs.unpacked("better-sqlite3") / "deps/sqlite3/sqlite3.c"
    version = subprocess.run([tool(compiler), "--version"], capture_output=True, check=True).stdout
    mark = hashlib.sha256(version + repr(SQLITE_FLAGS).encode()).hexdigest()[:16]

    def fill(folder: Path) -> None:
        target = folder / "libsqlite3.so"
        command = [tool(compiler), *SQLITE_FLAGS, "-o", str(target), str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=500)

    name = f"sqlite-{compiler}-{real_inputs.PACKAGES['better-sqlite3'].sha256[:16]}-{mark}"
    return real_inputs.kept(name, fill) / "libsqlite3.so"


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function's native record, and the questions that tests ask of it."""

    item: Row

    @cached_property
    def entry(self) -> str:
        (found,) = [one["id"] for one in self.item["blocks"] if one["entry"]]
        return found

    @cached_property
    def blocks(self) -> dict[str, Row]:
        return {one["id"]: one for one in self.item["blocks"]}

    @property
    def edges(self) -> list[Row]:
        return self.item["edges"]

    @property
    def calls(self) -> list[Row]:
        return self.item["calls"]

    @property
    def exits(self) -> set[str]:
        return {one["exit"] for one in self.item["blocks"]} - {None}

    def calling(self, name: str) -> set[str]:
        """The blocks that call, or jump to, a function."""
        return {call["block"] for call in self.calls if call["name"] == name}

    def names(self) -> set[str]:
        """What is called anywhere."""
        return {call["name"] for call in self.calls}

    def reach(self, start: str, kinds: frozenset[str] | None = None) -> set[str]:
        """The blocks to which a way leads from a block, itself included."""
        seen: set[str] = set()
        work = [start]
        while work:
            one = work.pop()
            if one not in seen:
                seen.add(one)
                work += [
                    edge["target"]
                    for edge in self.edges
                    if edge["source"] == one and (kinds is None or edge["kind"] in kinds)
                ]
        return seen

    def leads(self, first: str, second: str) -> bool:
        """Whether a way leads from a block that calls one function to another block that calls a second."""
        return any(self.calling(second) & self.reach(block) - {block} for block in self.calling(first))

    def reached(self, start: str | None = None) -> set[str]:
        """What is called on some way from a block, by default from the entry."""
        blocks = self.reach(start or self.entry)
        return {call["name"] for call in self.calls if call["block"] in blocks}


@dataclass(frozen=True, kw_only=True)
class Program:
    """Everything that an analysis says."""

    analysis: Analysis
    digest: str
    rows: Mapping[str, list[Row]]
    items: Mapping[str, Row]

    def __getitem__(self, name: str) -> Function:
        (found,) = [
            row for row in self.rows["functions"] if row["name"] == name and row["kind"] == "function"
        ]
        return Function(item=self.items[found["id"]])

    def functions(self) -> Iterator[Function]:
        for row in self.rows["functions"]:
            if row["kind"] == "function":
                yield Function(item=self.items[row["id"]])


def analyse(path: Path, work: Path, analyzer: NativeAnalyzer | None = None) -> Program:
    """Identify and analyse a file; the fact file goes into `work`."""
    analyzer = analyzer or NativeAnalyzer(processes=1)
    artifact = analyzer.identify(path)
    work.mkdir(exist_ok=True)
    writer = FactFileWriter(work / f"{len(list(work.iterdir()))}.facts", analyzer.collections)
    try:
        analysis = analyzer.analyze(artifact, writer, lambda done, total, what: None)
        with writer.finish({}) as facts:
            rows = {
                spec.name: facts.decode(facts.rows(spec.name, range(facts.total(spec.name))))
                for spec in analyzer.collections
            }
            items: dict[str, Row] = {}
            keys = [row["id"] for row in rows["functions"]]
            for at in range(0, len(keys), 500):
                found = facts.items("functions", keys[at : at + 500])
                items.update(zip(found, facts.decode(list(found.values())), strict=True))
            return Program(analysis=analysis, digest=facts.digest, rows=rows, items=items)
    finally:
        writer.abort()
