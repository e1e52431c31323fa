"""Small databases for tests."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from affidavit.mounts.sql.adapter import SqlAdapter
from tests.mounts.sources import Opened, opened

__all__ = ["SHOP", "make", "mounted"]

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT COLLATE NOCASE);
INSERT INTO customer VALUES (1, 'Ada', 'Paris'), (2, 'Bo', 'paris'), (9007199254740993, 'Çelik', NULL);
CREATE TABLE "order lines" (
    customer INTEGER NOT NULL, line INTEGER NOT NULL, "class" TEXT, amount NUMERIC, paid REAL, proof BLOB,
    PRIMARY KEY (customer, line)
) WITHOUT ROWID;
INSERT INTO "order lines" VALUES (1, 1, 'a', 10, 0.5, x'00ff'), (1, 2, 'b', 2.5, NULL, NULL),
    (2, 1, 'a', 'n/a', 9e999, x'');
CREATE TABLE loose (anything);
INSERT INTO loose VALUES (1), (1.0), ('1'), (x'31'), (NULL);
CREATE VIEW spending AS SELECT customer, sum(amount) AS total FROM "order lines" GROUP BY customer;
CREATE TABLE empty (id INTEGER PRIMARY KEY, n INT, t VARCHAR(9) NOT NULL, r DOUBLE, b BLOB, x);
"""


def make(path: Path, script: str = SHOP) -> Path:
    """A database that a script makes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


@asynccontextmanager
async def mounted(path: Path, options: Mapping[str, Any] | None = None) -> AsyncGenerator[Opened]:
    """A mounted SQLite file."""
    async with opened(SqlAdapter(), f"sqlite:///{path}", path.parent, options) as found:
        yield found
