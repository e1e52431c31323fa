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

__all__ = [
    "Function",
    "Program",
    "Row",
    "analyse",
    "command",
    "compiled",
    "is_aarch64",
    "sqlite_library",
    "stripped",
    "tool",
]

Row = Mapping[str, Any]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "aarch64-gcc": ("aarch64-linux-gnu-gcc",),
    "aarch64-g++": ("aarch64-linux-gnu-g++",),
    "aarch64-clang": ("clang", "--target=aarch64-linux-gnu"),
    "aarch64-clang++": ("clang++", "--target=aarch64-linux-gnu"),
}
"""Compilers that are not called by their own names; clang uses the headers and libraries of the GNU cross compiler."""
SQLITE_FLAGS = (
    "-O2",
    "-fPIC",
    "-w",
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


def command(compiler: str) -> list[str]:
    """How a compiler is called."""
    if compiler.startswith("aarch64"):
        tool("aarch64-linux-gnu-gcc")
    name, *options = COMMANDS.get(compiler, (compiler,))
    return [tool(name), *options]


def compiled(folder: Path, name: str, source: str, compiler: str, flags: Sequence[str]) -> Path:
    """Compile and link a source text; its suffix says the language."""
    file = folder / name
    file.write_text(source)
    target = folder / f"{file.stem}-{compiler}{''.join(flags).replace('/', '_')}"
    done = subprocess.run(
        [*command(compiler), *flags, "-o", str(target), str(file)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def stripped(path: Path) -> Path:
    """A copy without symbols and debugging information."""
    target = path.with_name(path.name + ".stripped")
    strip = "aarch64-linux-gnu-strip" if is_aarch64(path) else "strip"
    subprocess.run([tool(strip), "-o", str(target), str(path)], check=True, timeout=100)
    return target


def is_aarch64(path: Path) -> bool:
    """Whether an ELF file is for that machine."""
    with path.open("rb") as file:
        return file.read(20)[18] == 183


def sqlite_library(compiler: str) -> Path:
    """The SQLite library with its relocations and the labels of its assembly kept, which stands beside it.

    Built once for each version of the compiler.
    """
    source = real_inputs.unpacked("better-sqlite3") / "deps/sqlite3/sqlite3.c"
    called = command(compiler)
    version = subprocess.run([*called, "--version"], capture_output=True, check=True).stdout
    mark = hashlib.sha256(version + repr(SQLITE_FLAGS).encode()).hexdigest()[:16]
    marks = ["-fno-addrsig"] if "clang" in compiler else []  # which the GNU assembler does not know
    linker = tool("aarch64-linux-gnu-gcc" if compiler.startswith("aarch64") else "gcc")

    def fill(folder: Path) -> None:
        assembly, target = folder / "sqlite3.s", folder / "libsqlite3.so"
        compiling = [*called, *SQLITE_FLAGS, *marks, "-S", "-o", str(assembly), str(source)]
        linking = [
            linker,
            "-shared",
            "-Wl,-q",
            "-Wa,-L",
            "-Wl,--discard-none",
            "-o",
            str(target),
            str(assembly),
        ]
        for step in (compiling, linking):
            subprocess.run(step, check=True, capture_output=True, timeout=500)

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
