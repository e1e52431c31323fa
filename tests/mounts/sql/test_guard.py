"""Nothing that writes, attaches, loads or reaches out gets through a SQLite mount, however it is spelt."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.errors import AffidavitError, FailedError, RefusedError
from tests.mounts.sql.databases import make, mounted

REFUSED = [
    "DELETE FROM customer",
    "WITH x AS (SELECT 1) DELETE FROM customer",
    "WITH x AS (SELECT 1) INSERT INTO customer SELECT 3, 'x', 'y'",
    "WITH RECURSIVE x(i) AS (SELECT 1) UPDATE customer SET name = 'x'",
    "INSERT INTO customer VALUES (3, 'x', 'y') RETURNING id",
    "REPLACE INTO customer VALUES (1, 'x', 'y')",
    "UPDATE customer SET name = 'x' RETURNING *",
    "/* SELECT */ DELETE FROM customer -- SELECT",
    "-- SELECT\nDROP TABLE customer",
    "CREATE TABLE made AS SELECT 1",
    "CREATE TEMP TABLE made (x)",
    "CREATE TEMP VIEW made AS SELECT 1",
    "CREATE VIRTUAL TABLE temp.made USING fts5(x)",
    "DROP TABLE customer",
    "ALTER TABLE customer ADD COLUMN x",
    "ATTACH 'PLACE' AS other",
    "ATTACH ':memory:' AS other",
    "attach/**/database/**/'PLACE'/**/as/**/other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'PLACE'",
    "/**/vacuum/**/main/**/into/**/'PLACE'",
    "PRAGMA journal_mode = WAL",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA table_info(customer)",
    "SELECT * FROM pragma_table_info('customer')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_journal_mode('wal')",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SAVEPOINT a",
    "ANALYZE",
    "REINDEX",
    "SELECT load_extension('PLACE')",
    "SELECT \"load_extension\"('PLACE')",
    "SELECT LOAD_extension('PLACE', 'entry')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('simple', x'0000000000000000')",
    "INSERT INTO words(words) VALUES ('optimize')",
    "SELECT 1; DELETE FROM customer",
    "SELECT 1;;DELETE FROM customer",
    "SELECT 1; SELECT 2",
    "SELECT 1 /* ; */ ; -- '\nDELETE FROM customer",
    "SELECT (DELETE FROM customer)",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('PLACE', 'x')",
    "SELECT edit('x')",
    "SELECT * FROM fsdir('/')",
    ".shell ls",
    "EXPLAIN DELETE FROM customer",
    "EXPLAIN VACUUM INTO 'PLACE'",
]
READ = [
    ("SELECT 1", [1]),
    ("  select 1 ;  ", [1]),
    ("VALUES (1), (2)", [1, 2]),
    ("WITH x(i) AS (SELECT 5) SELECT i FROM x", [5]),
    ("/* DELETE */ SELECT 'DROP TABLE customer; --'", ["DROP TABLE customer; --"]),
    ("SELECT value FROM json_each('[1,2]')", [1, 2]),
    ("SELECT count(*) FROM words WHERE words MATCH 'hello'", [1]),
    ("SELECT name FROM sqlite_schema WHERE name = 'customer'", ["customer"]),
    ("SELECT sum(id) OVER () FROM customer WHERE id < 3", [3, 3]),
    ("SELECT id FROM customer WHERE id < 3 UNION ALL SELECT 7", [1, 2, 7]),
]
WORDS = "CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('hello world');"
CUSTOMERS = (
    "CREATE TABLE customer (id INTEGER PRIMARY KEY, name, city); INSERT INTO customer VALUES (1,2,3),(2,3,4);"
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make(tmp_path / "shop.db", CUSTOMERS + WORDS)


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


async def test_nothing_but_reading_gets_through(shop: Path, tmp_path: Path) -> None:
    before = everything(tmp_path)
    async with mounted(shop) as db:
        for sql in REFUSED:
            with pytest.raises(AffidavitError) as caught:
                await db.call("query", sql=sql.replace("PLACE", str(tmp_path / "made")))
            assert caught.value.code in {"call-refused", "arguments-invalid"}, sql
            assert (await db.call("query", sql="SELECT count(*) AS n FROM customer"))["rows"] == [{"n": 2}], (
                sql
            )
        for sql, expected in READ:
            rows = (await db.call("query", sql=sql))["rows"]
            assert [next(iter(row.values())) for row in rows] == expected
    assert everything(tmp_path) == before


async def test_what_writes_is_refused_by_policy_and_not_as_a_mistake(shop: Path) -> None:
    async with mounted(shop) as db:
        for sql in ("DELETE FROM customer", "VACUUM INTO 'x'", "ATTACH 'x' AS y", "SELECT 1; SELECT 2"):
            with pytest.raises(RefusedError, match="only reads") as caught:
                await db.call("query", sql=sql)
            assert caught.value.details == {"reason": "read-only"}


async def test_a_schema_that_lies_in_wait_does_nothing(tmp_path: Path) -> None:
    """Views of a foreign file run with the reader's rights: none of them may reach out."""
    path = tmp_path / "trap.db"
    make(path, CUSTOMERS)
    with closing(sqlite3.connect(path)) as direct:
        direct.execute("CREATE VIEW trap AS SELECT load_extension('/tmp/x')")
        direct.execute("CREATE VIEW address AS SELECT fts3_tokenizer('simple') AS a")
        direct.execute(
            "CREATE VIEW forever AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )
        direct.commit()
    async with mounted(path, {"timeout": 0.5}) as db:
        listed = {limitation.place for limitation in db.description.limitations}
        assert listed == {"trap", "address"}
        for table in ("address", "forever"):
            with pytest.raises(AffidavitError):
                await db.call("query", sql=f"SELECT count(*) FROM {table}")
        assert (await db.call("customer.count"))["count"] == 2


async def test_a_statement_that_takes_too_long_is_ended(shop: Path) -> None:
    async with mounted(shop, {"timeout": 0.2}) as db:
        with pytest.raises(FailedError, match=r"longer than 0\.2 s") as caught:
            await db.call(
                "query",
                sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
            )
        assert caught.value.code == "tool-failed"
        assert (await db.call("customer.count"))["count"] == 2


async def test_a_cancelled_call_ends_its_statement_and_blocks_no_other(shop: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    async with mounted(shop, {"timeout": 600}) as db:
        running = [asyncio.create_task(db.call("query", sql=endless)) for _ in range(3)]
        await asyncio.sleep(0)
        assert (await db.call("customer.count"))["count"] == 2  # beside them
        for task in running:
            task.cancel()
        ended = await asyncio.gather(*running, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended)
        assert (await db.call("customer.get", id=2))["name"] == 3


async def test_values_beyond_the_bound_fail_and_nothing_else(shop: Path) -> None:
    async with mounted(shop) as db:
        with pytest.raises(AffidavitError, match="too big"):
            await db.call("query", sql="SELECT zeroblob(100000000)")
        assert (await db.call("customer.count"))["count"] == 2


LONG_STEPS = [
    "instr(zeroblob(30000000), zeroblob(15000000) || x'01')",
    "replace(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || 'b', '')",
    "trim(hex(zeroblob(1000000)), replace(hex(zeroblob(200000)), '0', 'b') || '0')",
    "hex(zeroblob(15000000)) LIKE ('%' || substr(hex(zeroblob(1000)), 1, 900) || 'b')",
    "hex(zeroblob(15000000)) GLOB ('*' || substr(hex(zeroblob(1000)), 1, 900) || 'b')",
]
"""Calls of one function that take from a minute to days, in which no clock is looked at."""


@pytest.mark.parametrize("call", LONG_STEPS)
async def test_a_function_that_never_looks_at_the_clock_gets_no_long_values(
    tmp_path: Path, call: str
) -> None:
    path = make(tmp_path / "trap.db", CUSTOMERS)
    with closing(sqlite3.connect(path)) as direct:
        direct.execute(f"CREATE VIEW waits AS SELECT {call} AS answer")
        direct.execute(f"ALTER TABLE customer ADD COLUMN answer AS ({call})")
        direct.execute("CREATE TABLE long (text)")
        direct.execute("INSERT INTO long VALUES (?)", ["a" * 3_000_000])
        direct.execute("CREATE VIEW shown AS SELECT text FROM long")
        direct.commit()
    async with mounted(path) as db:
        assert {one.place for one in db.description.limitations} == {"customer", "waits"}
        for sql in (f"SELECT {call}", "SELECT answer FROM waits", "SELECT answer FROM customer"):
            with pytest.raises(FailedError, match="too big"):
                await db.call("query", sql=sql)
        (row,) = (await db.call("query", sql="SELECT length(trim(text)) AS n FROM long"))["rows"]
        assert row == {"n": 3_000_000}
        assert len((await db.call("shown.page"))["rows"][0]["text"]) == 3_000_000
        (row,) = (await db.call("query", sql="SELECT instr('abc', ?) AS n", params=["c"]))["rows"]
        assert row == {"n": 3}


async def test_a_damaged_file_is_told_at_its_table(shop: Path) -> None:
    damage(shop)
    async with mounted(shop) as db:
        (limitation,) = db.description.limitations
        assert (limitation.code, limitation.place) == ("table-unreadable", "customer")
        assert "malformed" in limitation.message
        assert (await db.call("words.search", query="hello"))["matched"] == 1


@pytest.mark.parametrize("cut", [10, 100, 4096])
async def test_a_truncated_file_is_no_mount(shop: Path, cut: int) -> None:
    damage(shop, cut)
    with pytest.raises(AffidavitError) as caught:
        async with mounted(shop):
            pass
    assert caught.value.code in {"mount-failed", "mount-invalid"}


def damage(path: Path, cut: int = 0) -> None:
    """Cut a file off, or overwrite the page of its first table."""
    data = path.read_bytes()
    path.write_bytes(data[:cut] if cut else data[:4096] + b"\xff" * 4096 + data[8192:])
