"""DuckDB databases and files of one table: exact values, types of CSV, nothing but reading."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, UsageError, VerificationError
from affidavit.mounts.sql.adapter import SqlAdapter
from affidavit.namespaces.stubs import render
from tests.mounts.sources import Opened, opened

duckdb = pytest.importorskip("duckdb")

SHOP = """
CREATE TABLE item (
    id BIGINT PRIMARY KEY, price DECIMAL(10, 2), made TIMESTAMP, seen TIMESTAMPTZ, day DATE, body BLOB, key UUID,
    many INTEGER[], fixed FLOAT[2], part STRUCT(x INTEGER, y TIME), kind ENUM('a', 'b'), doc JSON, large HUGEINT,
    clock TIME, span INTERVAL, score DOUBLE, names MAP(INTEGER, VARCHAR), nano TIMESTAMP_NS, odd DATE
);
INSERT INTO item VALUES (
    9007199254740993, 1.10, '2024-02-29 12:00:00.5', '2024-02-29 12:00:00+02', '2024-02-29', '\\x00\\xFF'::BLOB,
    '00000000-0000-0000-0000-000000000005', [1, NULL], [0.5, 1.5], {'x': 1, 'y': TIME '10:00'}, 'a', '{"n": 1e400}',
    170141183460469231731687303715884105727, '10:00:00.25', INTERVAL '1 month 2 days', 'nan', MAP {1: 'one'},
    '2024-01-01 00:00:00.123456789', 'infinity'
), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'b', NULL, NULL, NULL, NULL, '-inf', NULL, NULL, NULL);
CREATE SCHEMA other;
CREATE TABLE other.item (n INTEGER);
INSERT INTO other.item SELECT range FROM range(1000);
CREATE VIEW doubled AS SELECT n * 2 AS n FROM other.item;
COMMENT ON TABLE item IS 'What is sold';
"""
VALUES: dict[str, Any] = {
    "id": 9007199254740993,
    "price": decimal.Decimal("1.10"),
    "made": dt.datetime(2024, 2, 29, 12, 0, 0, 500000),
    "seen": dt.datetime(2024, 2, 29, 10, 0, tzinfo=dt.UTC),
    "day": dt.date(2024, 2, 29),
    "body": b"\x00\xff",
    "key": uuid.UUID(int=5),
    "many": [1, None],
    "fixed": [0.5, 1.5],
    "part": {"x": 1, "y": "10:00:00"},
    "kind": "a",
    "doc": '{"n": 1e400}',
    "large": 2**127 - 1,
    "clock": "10:00:00.25",
    "span": "1 month 2 days",
    "names": [{"key": 1, "value": "one"}],
    "nano": "2024-01-01 00:00:00.123456789",
    "odd": "infinity",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with closing(duckdb.connect(str(path))) as direct:
        direct.execute(SHOP)
    return path


@asynccontextmanager
async def mounted(path: Path, **options: Any) -> AsyncGenerator[Opened]:
    async with opened(SqlAdapter(), f"duckdb:///{path}", path.parent, options) as found:
        yield found


async def test_values_keep_their_exact_types(shop: Path) -> None:
    async with mounted(shop) as db:
        row = await db.call("item.get", id=VALUES["id"])
        assert repr(row.pop("score")) == "nan"
        assert row == dict(sorted(VALUES.items()))
        assert {name: type(value) for name, value in row.items()} == {
            name: type(value) for name, value in VALUES.items()
        }
        asked = await db.call("query", sql="SELECT * FROM item WHERE id > 5")
        assert repr(asked["rows"][0].pop("score")) == "nan"
        assert asked["rows"][0] == row
        stub = render(db.namespace)
    for line in (
        "price: _decimal.Decimal | None",
        "seen: _datetime.datetime | None",
        "id: int",
        "odd: str | None",
    ):
        assert f"    {line}\n" in stub
    assert "What is sold, 2 rows" in stub


async def test_every_comparable_value_finds_its_row(shop: Path) -> None:
    async with mounted(shop) as db:
        for name, value in VALUES.items():
            if name in ("many", "fixed", "part", "names"):
                with pytest.raises(UsageError, match="selector-invalid"):
                    await db.call("item.page", where={name: value})
                continue
            page = await db.call("item.find_exact", where={name: value})
            assert [row["id"] for row in page["rows"]] == [VALUES["id"]], name
        assert (await db.call("item.count", where={"price": None}))["count"] == 1
        assert (await db.call("item.count", by="kind"))["groups"] == [
            {"value": "a", "count": 1},
            {"value": "b", "count": 1},
        ]


async def test_pages_and_views(shop: Path) -> None:
    async with mounted(shop) as db:
        assert set(db.namespace.children) == {"item", "other_item", "doubled"}
        for table, factor in (("other_item", 1), ("doubled", 2)):
            found: list[int] = []
            cursor = None
            while True:
                reply = await db.reply(f"{table}.page", cursor=cursor, limit=300)
                found += [row["n"] for row in reply.value["rows"]]
                assert reply.value["page"]["total"] == 1000
                cursor = reply.outside["page.next_cursor"]
                if cursor is None:
                    break
            assert found == [n * factor for n in range(1000)]


async def test_own_sql(shop: Path) -> None:
    async with mounted(shop) as db:
        both = await db.call(
            "query", sql="SELECT a.n, b.n FROM other.item a JOIN other.item b ON a.n = b.n + 1 LIMIT 2;"
        )
        assert [column["name"] for column in both["columns"]] == ["n", "n_2"]
        assert both["columns"][0]["declared"] == "INTEGER"
        given = await db.call(
            "query", sql="SELECT $1 AS a, $2 AS b -- c", params=["x", decimal.Decimal("1.50")]
        )
        assert given["rows"] == [{"a": "x", "b": decimal.Decimal("1.50")}]
        named = await db.call("query", sql="SELECT $n::INT AS n", params={"n": 5})
        assert named["rows"] == [{"n": 5}]
        ordered = await db.call(
            "query", sql="SELECT n FROM other.item ORDER BY (n * 7919) % 1000 DESC", limit=1000
        )
        assert [row["n"] for row in ordered["rows"]] == sorted(
            range(1000), key=lambda n: -((n * 7919) % 1000)
        )
        part = await db.call("query", sql="SELECT * FROM range(100000000000)", limit=3)
        assert (part["returned"], part["exhausted"]) == (3, False)
        for sql, params in (
            ("SELEC", None),
            ("SELECT nothing", None),
            ("", None),
            ("SELECT $1", None),
            ("SELECT 1", [object]),
        ):
            with pytest.raises(UsageError, match="arguments-invalid"):
                await db.call("query", sql=sql, params=params)


REFUSED = [
    "INSERT INTO item (id) VALUES (3)",
    "WITH x AS (SELECT 3) INSERT INTO item (id) SELECT * FROM x",
    "UPDATE item SET id = 3",
    "DELETE FROM item",
    "CREATE TABLE made (x INT)",
    "CREATE TEMP TABLE made (x INT)",
    "CREATE MACRO made(a) AS a",
    "COPY item TO 'PLACE'",
    "COPY (SELECT 1) TO 'PLACE'",
    "COPY item FROM 'PLACE'",
    "EXPORT DATABASE 'PLACE'",
    "ATTACH 'PLACE' AS made",
    "ATTACH ':memory:' AS made",
    "DETACH shop",
    "USE other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD 'PLACE'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "PREPARE a AS SELECT 1",
    "EXECUTE a",
    "EXPLAIN ANALYZE DELETE FROM item",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM item",
    "SELECT 1) AS x; DELETE FROM item; SELECT (1",
    "SELECT 1) TO 'PLACE' --",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('http://127.0.0.1:1/x')",
    "SELECT * FROM sqlite_scan('PLACE', 'x')",
    "SELECT * FROM secret_rows",
    "SELECT getenv('HOME')",
    "/* SELECT */ DROP TABLE item",
]


async def test_nothing_but_reading_gets_through(shop: Path, tmp_path: Path) -> None:
    secret_rows = [("a variable of this process", 1)]  # which DuckDB can look for
    before = files(tmp_path)
    async with mounted(shop) as db:
        for sql in REFUSED:
            with pytest.raises(AffidavitError) as caught:
                await db.call("query", sql=sql.replace("PLACE", str(tmp_path / "made")))
            assert caught.value.code in {"call-refused", "arguments-invalid", "tool-failed"}, sql
            assert (await db.call("query", sql="SELECT count(*) AS n FROM item"))["rows"] == [{"n": 2}], sql
    assert (files(tmp_path), len(secret_rows)) == (before, 1)


def files(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file()
    }


async def test_a_statement_that_takes_too_long_or_too_much_is_ended(shop: Path) -> None:
    async with mounted(shop, timeout=0.5) as db:
        with pytest.raises(FailedError, match=r"longer than 0\.5 s"):
            await db.call(
                "query", sql="SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
            )
        assert (await db.call("item.count"))["count"] == 2
    async with mounted(shop, timeout=20) as db:
        with pytest.raises(FailedError, match="value-too-large"):
            await db.call("query", sql="SELECT repeat('x', 50000000)")
        assert (await db.call("item.count"))["count"] == 2


async def test_a_file_that_changed_is_refused(shop: Path) -> None:
    async with mounted(shop) as db:
        assert (await db.call("item.count"))["count"] == 2
        assert await db.mount.snapshot() == db.description.snapshot
    async with mounted(shop) as db:
        with closing(duckdb.connect(str(shop))) as direct:
            direct.execute("INSERT INTO other.item VALUES (5)")
        with pytest.raises(VerificationError, match="artifact-changed"):
            await db.call("item.count")


CSV = """zip,n,f,day,at,flag,long,mixed,guess,text
00123,1,1.10,2024-02-29,2024-02-29 12:00:00,true,123456789012345678901,1,01/02/2024,"a, ""b""\nc"
94110,-20,3,2024-03-01,2024-02-29T12:00:00.5,false,2,x,03/04/2024,
"""


async def test_a_csv_column_has_a_type_only_where_its_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "my data.csv"
    path.write_text(CSV)
    async with mounted(path) as db:
        page = await db.call("my_data.page")
        again = await db.call("my_data.search", query="b")
        assert "day: _datetime.date\n" in render(db.namespace)
    first, second = page["rows"]
    assert first == {
        "zip": "00123", "n": 1, "f": 1.1, "day": dt.date(2024, 2, 29), "at": dt.datetime(2024, 2, 29, 12), "flag": True,
        "long": "123456789012345678901", "mixed": "1", "guess": "01/02/2024", "text": 'a, "b"\nc',
    }  # fmt: skip
    assert (second["n"], second["f"], second["text"]) == (-20, 3.0, None)
    assert [hit["row"]["zip"] for hit in again["hits"]] == ["00123"]


async def test_parquet_and_json_files(tmp_path: Path) -> None:
    parquet, json = tmp_path / "rows.parquet", tmp_path / "rows.jsonl"
    with closing(duckdb.connect()) as direct:
        direct.execute(f"COPY (SELECT range AS n, range::DECIMAL(9, 3) AS d FROM range(5000)) TO '{parquet}'")
    json.write_text('{"a": 1, "b": {"c": [1, 2]}}\n{"a": 9007199254740993, "b": null}\n')
    async with mounted(parquet) as db:
        assert (await db.call("rows.count"))["count"] == 5000
        found = await db.call("rows.page", where={"d": decimal.Decimal(7)})
        assert found["rows"] == [{"n": 7, "d": decimal.Decimal("7.000")}]
        assert db.description.summary.startswith("parquet 2.")
    async with mounted(json) as db:
        page = await db.call("rows.page")
        assert page["rows"] == [{"a": 1, "b": {"c": [1, 2]}}, {"a": 9007199254740993, "b": None}]
    assert set(files(tmp_path)) == {"rows.jsonl", "rows.parquet"}


@pytest.mark.parametrize(
    ("name", "data"), [("x.parquet", b"PAR1 nothing"), ("x.csv", b"a,b\n\xff\xfe,1\n"), ("x.json", b"[{]")]
)
async def test_files_that_are_not_what_they_are_called(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FailedError, match="mount-failed"):
        async with mounted(tmp_path / name):
            pass


async def test_vectors_of_a_table_are_compared_and_joined_with_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.duckdb"
    with closing(duckdb.connect(str(path))) as direct:
        direct.execute(
            "CREATE TABLE text (id INTEGER PRIMARY KEY, body VARCHAR, meaning FLOAT[2], other DOUBLE[3])"
        )
        rows = [
            (1, "red apple", [1, 0], None),
            (2, "green apple", [0.6, 0.8], [1, 0, 0]),
            (3, "sky", [0, 1], None),
            (4, "apple", None, None),
        ]
        direct.executemany("INSERT INTO text VALUES (?, ?, ?, ?)", rows)
    async with mounted(path) as db:
        found = await db.call("text.find_similar", vector=[2, 0], limit=2)
        assert [(hit["row"]["id"], hit["score"]) for hit in found["hits"]] == [(1, 1.0), (2, 0.6)]
        assert found["matched"] == 3
        other = await db.call("text.find_similar", vector=[1, 0, 0], column="other")
        assert [hit["row"]["id"] for hit in other["hits"]] == [2]
        both = await db.call("text.hybrid", query="green sky", vector=[0, 1])
        assert [hit["row"]["id"] for hit in both["hits"]] == [3, 2, 1]
        assert (await db.call("text.find_similar", vector=[0, 0]))["hits"] == []
        for wrong in ([1], [1, float("nan")], "x", [1, "2"]):
            with pytest.raises(UsageError, match="arguments-invalid"):
                await db.call("text.find_similar", vector=wrong)
        with pytest.raises(UsageError, match="arguments-invalid"):
            await db.call("text.find_similar", vector=[1, 0], column="body")
        assert 'Literal["meaning", "other"] | None' in render(db.namespace)
