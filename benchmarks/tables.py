"""Part: pages of a SQLite table as operations, against the bare driver doing the same statements."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from affidavit.extensions import Mount, Source
from affidavit.mounts.sql.adapter import SqlAdapter
from benchmarks.report import Comparison, Section

ROWS = 200_000
ROUNDS = 9
PAGES = 40
GOAL = 1.5
SIZES = (1000, 64)


def measure() -> list[Section]:
    return asyncio.run(_measure())


async def _measure() -> list[Section]:
    section = Section(f"{PAGES} pages of a SQLite table of {ROWS:,} rows, by keyset cursors")
    with tempfile.TemporaryDirectory() as name:
        path = _made(Path(name) / "table.db")
        source = Source(
            name="db", uri=f"sqlite:///{path}", folder=Path(name), options={}, secret=str, tell=print, cache=Path(name)
        )  # fmt: skip
        adapter = SqlAdapter()
        mount = adapter.open(source, (await adapter.describe(source)).contents)
        direct = sqlite3.connect(path, isolation_level=None)
        try:
            for size in SIZES:
                section.comparisons.append(await _compared(mount, direct, size))
        finally:
            direct.close()
            await mount.close()
    section.notes.append(
        "Ours: checked arguments, a thread, a look at the file, typed rows with coverage and cursor."
    )
    section.notes.append("Theirs: the same SELECT, rows as dicts, in the same thread.")
    return [section]


async def _compared(mount: Mount, direct: sqlite3.Connection, size: int) -> Comparison:
    ours: list[float] = []
    theirs: list[float] = []
    assert await _pages(mount, size) == _driver(direct, size)
    for _ in range(ROUNDS):
        ours.append(await _timed(lambda: _pages(mount, size)))
        started = time.perf_counter()
        _driver(direct, size)
        theirs.append(time.perf_counter() - started)
    return Comparison(
        what=f"{PAGES} pages of {size} rows", ours=ours, against="sqlite3", theirs=theirs, goal=GOAL
    )


async def _timed(turn: Callable[[], Any]) -> float:
    started = time.perf_counter()
    await turn()
    return time.perf_counter() - started


async def _pages(mount: Mount, size: int) -> list[dict[str, Any]]:
    page = mount.namespace.children["item"].operations["page"]
    cursor = None
    last: list[dict[str, Any]] = []
    for _ in range(PAGES):
        reply = await page.handler(page.parse({"limit": size, "cursor": cursor}))
        last, cursor = reply.value["rows"], reply.outside["page.next_cursor"]
    return last


def _driver(direct: sqlite3.Connection, size: int) -> list[dict[str, Any]]:
    key = 0
    last: list[dict[str, Any]] = []
    for _ in range(PAGES):
        cursor = direct.execute("SELECT * FROM item WHERE id > ? ORDER BY id LIMIT ?", (key, size))
        names = [column[0] for column in cursor.description]
        last = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        key = last[-1]["id"]
    return last


def _made(path: Path) -> Path:
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT, price REAL, size INTEGER, note TEXT)"
    )
    rows = (
        (n, f"item {n}", f"kind {n % 7}", n / 3, n % 1000, None if n % 5 else "a note " * 5)
        for n in range(1, ROWS)
    )
    database.executemany("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?)", rows)
    database.commit()
    database.close()
    return path
