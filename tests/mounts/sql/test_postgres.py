"""PostgreSQL, a real server: exact values, a role that only reads, nothing that writes or reaches out."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import json
import math
import uuid
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, RefusedError, UsageError
from affidavit.mounts.sql.adapter import SqlAdapter
from affidavit.namespaces.stubs import render
from tests.mounts.sources import Opened, opened
from tests.mounts.sql.server import PASSWORD, running

psycopg = pytest.importorskip("psycopg")

READER = "a reader's own secret"
SETUP = """
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0);
CREATE TABLE item (
    id BIGINT PRIMARY KEY, price NUMERIC(10, 2), big NUMERIC, made TIMESTAMP, seen TIMESTAMPTZ, day DATE, body BYTEA,
    key UUID, many INTEGER[], mood mood, doc JSONB, clock TIME, span INTERVAL, score DOUBLE PRECISION, small REAL,
    net INET, size positive, title VARCHAR(20), cash MONEY
);
INSERT INTO item VALUES (
    9007199254740993, 1.10, 'NaN', '2024-02-29 12:00:00.5', '2024-02-29 12:00:00+02', '2024-02-29', '\\x00ff',
    '00000000-0000-0000-0000-000000000005', '{1,NULL}', 'sad', '{"n": 1.10}', '10:00:00.25', '1 month 2 days', 'NaN',
    0.1, '10.0.0.0/8', 5, 'Çelik', 1.5
), (2, NULL, 123456789012345678901234567890.123456789, 'infinity', '-infinity', '0044-03-15 BC', NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, '-Infinity', NULL, NULL, NULL, NULL, NULL);
CREATE TABLE line (a INT, b INT, "class" TEXT, PRIMARY KEY (a, b));
INSERT INTO line SELECT i / 10, i % 10, 'c' || i % 3 FROM generate_series(0, 199) i;
CREATE TABLE loose (x TEXT);
INSERT INTO loose SELECT 'r' || i FROM generate_series(1, 150) i;
CREATE VIEW doubled AS SELECT a * 2 AS a FROM line WHERE b = 0 ORDER BY a;
CREATE SCHEMA other;
CREATE TABLE other.item (n INT NOT NULL UNIQUE);
CREATE SCHEMA hidden;
CREATE TABLE hidden.secret (x TEXT);
CREATE TABLE unreadable (x TEXT);
COMMENT ON TABLE item IS 'What is sold';
CREATE SEQUENCE counter;
CREATE TABLE lineorder (lo_revenue INT);
INSERT INTO lineorder VALUES (7);
CREATE EXTENSION dblink;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
CREATE FUNCTION writes() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN INSERT INTO loose VALUES ('x'); RETURN 1; END $$;
CREATE ROLE reader LOGIN PASSWORD 'a reader''s own secret';
GRANT SELECT ON item, line, loose, doubled, other.item TO reader;
GRANT USAGE ON SCHEMA other TO reader;
CREATE ROLE writer LOGIN PASSWORD 'a reader''s own secret' IN ROLE pg_write_server_files;
GRANT ALL ON item TO reader;
GRANT ALL ON SEQUENCE counter TO reader;
CREATE ROLE reads_all LOGIN PASSWORD 'a reader''s own secret' IN ROLE pg_read_all_data;
"""


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with running() as uri:
        with psycopg.connect(uri, password=PASSWORD, autocommit=True) as direct:
            direct.execute(SETUP)
        yield uri


@asynccontextmanager
async def mounted(
    server: str, folder: Path, *, role: str = "reader", **options: Any
) -> AsyncGenerator[Opened]:
    uri = server.replace("owner@", f"{role}@")
    secrets = {"PG_SECRET": PASSWORD if role == "owner" else READER}
    options = {"password": "env:PG_SECRET", **options}
    async with opened(SqlAdapter(), uri, folder, options, environment=secrets) as found:
        yield found


VALUES: dict[str, Any] = {
    "id": 9007199254740993,
    "price": decimal.Decimal("1.10"),
    "made": dt.datetime(2024, 2, 29, 12, 0, 0, 500000),
    "seen": dt.datetime(2024, 2, 29, 10, 0, tzinfo=dt.UTC),
    "day": dt.date(2024, 2, 29),
    "body": b"\x00\xff",
    "key": uuid.UUID(int=5),
    "many": [1, None],
    "mood": "sad",
    "doc": '{"n": 1.10}',
    "clock": "10:00:00.25",
    "span": "P1M2D",
    "small": 0.1,
    "net": "10.0.0.0/8",
    "size": 5,
    "title": "Çelik",
    "cash": "$1.50",
}


async def test_a_role_that_reads_everything_shows_no_passwords(server: str, tmp_path: Path) -> None:
    """`pg_read_all_data` may read the hashes of all passwords. Columns are called what their owner likes."""
    async with mounted(server, tmp_path, role="reads_all") as db:
        for sql in ("TABLE pg_authid", "SELECT * FROM PG_SHADOW", 'SELECT * FROM "pg_user_mapping"'):
            with pytest.raises(RefusedError, match="not for scripts"):
                await db.call("query", sql=sql)
        assert (await db.call("query", sql="SELECT lo_revenue FROM lineorder"))["rows"] == [{"lo_revenue": 7}]


async def test_values_keep_their_exact_types(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path) as db:
        row = await db.call("item.get", id=VALUES["id"])
        odd = await db.call("item.get", id=2)
        asked = await db.call("query", sql="SELECT * FROM item ORDER BY id DESC", params=None)
        stub = render(db.namespace)
    for found in (row, asked["rows"][0]):
        assert math.isnan(found["score"])
        assert found["big"].is_nan()
        assert {name: found[name] for name in VALUES} == VALUES
        assert {name: type(found[name]) for name in VALUES} == {
            name: type(one) for name, one in VALUES.items()
        }
    assert (odd["made"], odd["seen"], odd["day"]) == ("infinity", "-infinity", "0044-03-15 BC")
    assert odd["big"] == decimal.Decimal("123456789012345678901234567890.123456789")
    assert odd["score"] == -math.inf
    for line in (
        "id: int",
        "price: _decimal.Decimal | None",
        "made: _datetime.datetime | str | None",
        "doc: str | None",
    ):
        assert f"    {line}\n" in stub
    assert "What is sold." in stub


async def test_only_what_the_role_may_read_is_offered(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path) as db:
        assert set(db.namespace.children) == {"item", "line", "loose", "doubled", "other_item"}
        assert db.operation("item.page").contract == "sql.affidavit.public.item.page/1"
        assert db.operation("item.page").authority == "live-source"
        assert db.operation("item.page").producer.version.startswith("1 postgresql 1")
        for forbidden in ("unreadable", "hidden.secret"):
            with pytest.raises(RefusedError, match="permission denied"):
                await db.call("query", sql=f"SELECT * FROM {forbidden}")
    async with mounted(server, tmp_path, schemas=["other"]) as db:
        assert set(db.namespace.children) == {"other_item"}


async def test_pages_hold_every_row_once(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path) as db:

        async def every(table: str, **arguments: Any) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = []
            cursor = None
            while True:
                reply = await db.reply(f"{table}.page", cursor=cursor, limit=64, **arguments)
                rows += reply.value["rows"]
                cursor = reply.outside["page.next_cursor"]
                assert reply.subject is None
                if cursor is None:
                    assert reply.value["page"]["total"] == len(rows)
                    return rows

        assert [(row["a"], row["b"]) for row in await every("line")] == [
            (i // 10, i % 10) for i in range(200)
        ]
        assert len(await every("line", where={"class": ["c1", "c2"]})) == 133
        assert sorted(row["x"] for row in await every("loose")) == sorted(f"r{i}" for i in range(1, 151))
        assert [row["a"] for row in await every("doubled")] == [2 * i for i in range(20)]
        assert (await db.call("line.get", id={"a": 1, "b": 2}))["class"] == "c0"
        assert (await db.call("line.count", by="class"))["groups"][0] == {"value": "c0", "count": 67}
        for name, value in VALUES.items():
            if name != "many":
                page = await db.call("item.page", where={name: value if name != "small" else None})
                assert len(page["rows"]) == 1, name
        assert "search" not in db.namespace.children["item"].operations
        with pytest.raises(UsageError):
            await db.call("item.page", where={"mood": "angry"})


REFUSED = [
    "INSERT INTO item (id) VALUES (3)",
    "WITH x AS (INSERT INTO item (id) VALUES (3) RETURNING id) SELECT * FROM x",
    "UPDATE item SET size = 6",
    "DELETE FROM item",
    "TRUNCATE item",
    "CREATE TABLE made (x INT)",
    "CREATE TEMP TABLE made (x INT)",
    "SELECT * INTO made FROM item",
    "SELECT * FROM item FOR UPDATE",
    "COPY item TO '/tmp/made'",
    "COPY item TO PROGRAM 'touch /tmp/made'",
    "COPY (SELECT 1) TO STDOUT",
    "DO $$ BEGIN DELETE FROM item; END $$",
    "CALL writes()",
    "SELECT writes()",
    "SELECT nextval('nothing')",
    "VACUUM",
    "LISTEN a",
    "NOTIFY a",
    "SET TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "RESET ALL",
    "SET ROLE owner",
    "LOAD 'x'",
    "BEGIN",
    "COMMIT",
    "COMMIT; DELETE FROM item",
    "SELECT 1; DELETE FROM item",
    "SELECT 1; COMMIT; DELETE FROM item",
    "SELECT 1) ; DELETE FROM item --",
    "EXPLAIN ANALYZE DELETE FROM item",
    "PREPARE a AS DELETE FROM item",
    "DECLARE a CURSOR FOR SELECT 1",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SELECT \"set_config\"('statement_timeout', '0', false)",
    "SELECT pg_catalog.set_config('role', 'owner', false)",
    "SELECT U&\"set\\005fconfig\"('role', 'owner', false)",
    "SELECT query_to_xml('DELETE FROM item', true, true, '')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_export(1, '/tmp/made')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_create(0)",
    "SELECT dblink_connect('host=127.0.0.1')",
    "SELECT * FROM dblink('dbname=affidavit', 'DELETE FROM item') AS t(x INT)",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_reload_conf()",
    "SELECT passwd FROM pg_shadow",
    'SELECT rolpassword FROM pg_catalog."pg_authid"',
    "SELECT * FROM ts_stat('SELECT ' || $$'a'::tsvector$$)",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT pg_' || 'notify(1, 2)')",
    "SELECT nextval('counter')",
    "SELECT setval('counter', 5)",
    "SELECT 1\0; DELETE FROM item",
    "/* SELECT */ DELETE FROM item -- SELECT",
    "",
    "-- nothing",
]


async def test_nothing_but_reading_gets_through(server: str, tmp_path: Path) -> None:
    with psycopg.connect(server, password=PASSWORD, autocommit=True) as direct:
        before = direct.execute("SELECT md5(string_agg(i::text, '|' ORDER BY id)) FROM item i").fetchone()
        async with mounted(server, tmp_path) as db:
            for sql in REFUSED:
                with pytest.raises(AffidavitError) as caught:
                    await db.call("query", sql=sql)
                assert caught.value.code in {"call-refused", "arguments-invalid"}, sql
                assert (await db.call("query", sql="SELECT count(*) AS n FROM item"))["rows"] == [{"n": 2}], (
                    sql
                )
            for sql in (
                "SELECT 1 AS x",
                "VALUES (1), (2);",
                "WITH x AS (SELECT 1) SELECT * FROM x -- c",
                "TABLE loose",
            ):
                assert (await db.call("query", sql=sql))["rows"], sql
        after = direct.execute("SELECT md5(string_agg(i::text, '|' ORDER BY id)) FROM item i").fetchone()
        (tables,) = direct.execute("SELECT count(*) FROM pg_class WHERE relname = 'made'").fetchone() or (
            None,
        )
        (large,) = direct.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchone() or (None,)
    assert (after, tables, large, Path("/tmp/made").exists()) == (before, 0, 0, False)  # noqa: ASYNC240


async def test_a_role_that_can_do_more_than_read_is_refused(server: str, tmp_path: Path) -> None:
    for role, power in (("owner", "superuser"), ("writer", "pg_write_server_files")):
        with pytest.raises(FailedError, match=power) as caught:
            async with mounted(server, tmp_path, role=role):
                pass
        assert caught.value.code == "mount-failed"
        assert "CREATE ROLE reader" in caught.value.hint


async def test_own_sql_with_parameters(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path) as db:
        reply = await db.call(
            "query", sql="SELECT a, a + $1 AS a FROM line WHERE b = $2 LIMIT 1", params=[1, 0]
        )
        assert reply["rows"] == [{"a": 0, "a_2": 1}]
        assert [column["declared"] for column in reply["columns"]] == ["int4", "int4"]
        percent = await db.call("query", sql="SELECT count(*) AS n FROM item WHERE title LIKE 'Ç%'")
        assert percent["rows"] == [{"n": 1}]
        part = await db.call("query", sql="SELECT generate_series(1, 100000000)", limit=2)
        assert (part["returned"], part["exhausted"]) == (2, False)
        for sql, params in (("SELECT $1", []), ("SELECT nothing", []), ("SELEC", []), ("SELECT $1::int", ["x"]),
                            ("SELECT 1", {"a": 1}), ("SELECT 1 / 0", [])):  # fmt: skip
            with pytest.raises(UsageError, match="arguments-invalid"):
                await db.call("query", sql=sql, params=params)


async def test_time_outs_and_cancellation_reach_the_server(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path, timeout=0.3) as db:
        with pytest.raises(FailedError, match=r"longer than 0\.3 s"):
            await db.call("query", sql="SELECT pg_sleep(600)")
        assert (await db.call("item.count"))["count"] == 2
    async with mounted(server, tmp_path, timeout=600) as db:
        with psycopg.connect(server, password=PASSWORD, autocommit=True) as direct:

            async def sleeping(expected: int) -> None:
                found = None
                for _ in range(500):
                    found = direct.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                    ).fetchone()
                    if found == (expected,):
                        return
                    await asyncio.sleep(0.02)
                pytest.fail(f"{found} statements sleep, not {expected}")

            task = asyncio.create_task(db.call("query", sql="SELECT pg_sleep(600)"))
            await sleeping(1)
            assert (await db.call("item.count"))["count"] == 2  # beside it
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await sleeping(0)


async def test_the_password_is_nowhere(server: str, tmp_path: Path) -> None:
    async with mounted(server, tmp_path) as db:
        shown = json.dumps(db.description.contents) + db.description.summary + render(db.namespace)
        assert READER not in shown
        assert str(tmp_path) not in shown
        assert db.description.snapshot.identity == ""
        assert "moment of its call" in db.description.snapshot.basis
    with pytest.raises(UsageError, match="mount-invalid"):
        async with mounted(server, tmp_path, password=READER):
            pass
    with pytest.raises(FailedError) as caught:
        async with opened(
            SqlAdapter(),
            server,
            tmp_path,
            {"password": "env:PG_SECRET"},
            environment={"PG_SECRET": "wrong secret"},
        ):
            pass
    assert "wrong secret" not in str(caught.value)
    assert caught.value.code == "mount-failed"
