"""A SQLite file as collections: types, pages, keys, counts, a script's own SQL; the `sqlite3` module is the oracle."""

from __future__ import annotations

import base64
import math
import sqlite3
import string
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import NotFoundError, UsageError
from affidavit.namespaces.stubs import render
from tests.mounts.sources import Opened
from tests.mounts.sql.databases import SHOP, make, mounted
from tests.mounts.sql.real_files import DATABASES, database

Rows = list[dict[str, Any]]


async def every_row(shop: Opened, table: str, limit: int, **arguments: Any) -> Rows:
    rows: Rows = []
    cursor = None
    while True:
        reply = await shop.reply(f"{table}.page", cursor=cursor, limit=limit, **arguments)
        assert reply.value["page"]["offset"] == len(rows)
        rows += reply.value["rows"]
        cursor = reply.outside["page.next_cursor"]
        assert (cursor is None) == reply.value["page"]["exhausted"]
        if cursor is None:
            assert reply.value["page"]["total"] == len(rows)
            return rows


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make(tmp_path / "shop.db")


async def test_rows_have_the_types_that_their_values_have(shop: Path) -> None:
    async with mounted(shop) as db:
        stub = render(db.namespace)
    for line in (
        "    name: str",
        "    city: str | None",
        '"class": str | None',
        '"amount": int | float | str | None',
        '"proof": bytes | None',
        "    anything: int | float | str | bytes | None",
        "    total: float | None",  # a view
        "    n: int | None",  # no value yet: what the declared type is meant to hold
        "    t: str",
        "    r: float | None",
    ):
        assert line in stub
    assert "async def get(self, id: int) -> CustomerRow:" in stub
    assert "id: OrderLinesKey" in stub


async def test_pages_hold_every_row_once_in_order(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as direct:
        direct.row_factory = sqlite3.Row
        expected = {
            "customer": "SELECT * FROM customer ORDER BY id",
            "order_lines": 'SELECT * FROM "order lines" ORDER BY customer, line',
            "loose": "SELECT * FROM loose ORDER BY rowid",
            "spending": "SELECT * FROM spending",
        }
        async with mounted(shop) as db:
            for table, statement in expected.items():
                rows = [dict(row) for row in direct.execute(statement)]
                for limit in (1, 2, 3, 1000):
                    assert repr(await every_row(db, table, limit)) == repr(rows), table


async def test_values_keep_their_exact_types(shop: Path) -> None:
    async with mounted(shop) as db:
        page = await db.call("order_lines.page")
        loose = await db.call("loose.page")
        customer = await db.call("customer.get", id=9007199254740993)
    assert [row["amount"] for row in page["rows"]] == [10, 2.5, "n/a"]
    assert [type(row["amount"]) for row in page["rows"]] == [int, float, str]
    assert page["rows"][2]["paid"] == math.inf
    assert [row["proof"] for row in page["rows"]] == [b"\x00\xff", None, b""]
    assert repr([row["anything"] for row in loose["rows"]]) == "[1, 1.0, '1', b'1', None]"
    assert customer["name"] == "Çelik"


async def test_where_means_equality_of_values_and_none_means_null(shop: Path) -> None:
    async with mounted(shop) as db:

        async def found(table: str, where: dict[str, Any]) -> list[Any]:
            page = await db.call(f"{table}.find_exact", where=where)
            assert page == await db.call(f"{table}.page", where=where)
            assert (await db.call(f"{table}.count", where=where))["count"] == len(page["rows"])
            return [row[{"customer": "id", "loose": "anything"}.get(table, "line")] for row in page["rows"]]

        assert await found("customer", {"city": "paris"}) == [2]  # the column's own collation says otherwise
        assert await found("customer", {"city": None}) == [9007199254740993]
        assert await found("customer", {"city": ["Paris", None]}) == [1, 9007199254740993]
        assert await found("customer", {"id": []}) == []
        assert await found("customer", {"name": "Ada", "id": 2}) == []
        assert repr(await found("loose", {"anything": "1"})) == "['1']"
        assert repr(await found("loose", {"anything": 1})) == "[1, 1.0]"
        assert await found("loose", {"anything": b"1"}) == [b"1"]
        assert await found("order_lines", {"class": "a", "customer": [2, 3]}) == [1]


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ({"nmae": "x"}, "'name'"),
        ({"id": "1"}, "int"),
        ({"id": True}, "int"),
        ({"name": 1.5}, "str"),
        ([], ""),
        ({"name": ["x"] * 1001}, "1000"),
        ({"name": [["x"]]}, "str"),
    ],
)
async def test_a_wrong_where_names_its_place(shop: Path, where: Any, hint: str) -> None:
    async with mounted(shop) as db:
        with pytest.raises(UsageError) as caught:
            await db.call("customer.page", where=where)
    assert caught.value.code == "selector-invalid"
    assert hint in caught.value.hint


async def test_single_rows_by_key(shop: Path) -> None:
    async with mounted(shop) as db:
        key = {"line": 2, "customer": 1}
        assert (await db.call("order_lines.get", id=key))["amount"] == 2.5
        many = await db.call("customer.get_many", ids=[2, 7, 2])
        assert [(one["status"], one["id"]) for one in many] == [("found", 2), ("failed", 7), ("found", 2)]
        assert many[0]["item"] == many[2]["item"] == await db.call("customer.get", id=2)
        with pytest.raises(NotFoundError, match="item-not-found"):
            await db.call("customer.get", id=7)
        for wrong in ("2", None, 2.0, True):
            with pytest.raises(UsageError, match="arguments-invalid"):
                await db.call("customer.get", id=wrong)
        with pytest.raises(UsageError, match="arguments-invalid"):
            await db.call("order_lines.get", id={"line": 2})
        assert "get" not in db.namespace.children["loose"].operations


async def test_a_key_that_sqlite_lets_be_null_is_none(tmp_path: Path) -> None:
    path = make(
        tmp_path / "x.db", "CREATE TABLE t (k TEXT PRIMARY KEY); INSERT INTO t VALUES ('a'), (NULL), (NULL);"
    )
    async with mounted(path) as db:
        assert "get" not in db.namespace.children["t"].operations
        assert len(await every_row(db, "t", 1)) == 3


async def test_counts_by_value(shop: Path) -> None:
    async with mounted(shop) as db:
        by_city = await db.call("customer.count", by="city")
        by_anything = await db.call("loose.count", by="anything", where={"anything": ["1", None]})
    assert by_city["groups"] == [
        {"value": None, "count": 1},
        {"value": "Paris", "count": 1},
        {"value": "paris", "count": 1},
    ]
    assert (by_city["count"], by_city["bound"]) == (3, "exact")
    assert by_anything["groups"] == [{"value": None, "count": 1}, {"value": "1", "count": 1}]


async def test_counts_beyond_the_bound_say_how_many_values_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("affidavit.mounts.sql.tables.MAX_GROUPS", 3)
    path = make(tmp_path / "x.db", "CREATE TABLE t (n); INSERT INTO t VALUES (1),(1),(2),(3),(4),(5),(NULL);")
    async with mounted(path) as db:
        counted = await db.call("t.count", by="n")
    assert counted["groups"][0] == {"value": 1, "count": 2}
    assert (len(counted["groups"]), counted["groups_omitted"]) == (3, 3)


async def test_own_sql_has_typed_columns_under_unique_names(shop: Path) -> None:
    async with mounted(shop) as db:
        joined = await db.call(
            "query", sql="SELECT a.id, b.id, a.name AS id_2 FROM customer a JOIN customer b ON a.id < b.id"
        )
        assert [column["name"] for column in joined["columns"]] == ["id", "id_3", "id_2"]
        assert joined["rows"][0] == {"id": 1, "id_3": 2, "id_2": "Ada"}
        mixed = await db.call("query", sql="SELECT anything FROM loose")
        assert mixed["columns"][0]["types"] == ["bytes", "float", "int", "str", "None"]
        none = await db.call("query", sql="SELECT id FROM customer WHERE id = -1")
        assert (none["columns"][0]["name"], none["rows"]) == ("id", [])
        quoted = await db.call("query", sql="SELECT ';' AS semi, '-- x' AS dash -- a comment")
        assert quoted["rows"] == [{"semi": ";", "dash": "-- x"}]
        listed = await db.call("query", sql="SELECT name FROM customer WHERE id = ? OR id = ?", params=[1, 2])
        named = await db.call("query", sql="SELECT name FROM customer WHERE id = :id", params={"id": 1})
        assert (len(listed["rows"]), named["rows"]) == (2, [{"name": "Ada"}])


async def test_a_result_says_where_it_ends(shop: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT i FROM n"
    async with mounted(shop) as db:
        part = await db.reply("query", sql=numbers, limit=3)
        whole = await db.reply("query", sql=numbers, limit=5)
        endless = await db.call(
            "query",
            sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
            limit=2,
        )
        large = await db.call(
            "query",
            sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 99) "
            "SELECT zeroblob(1000000) FROM n",
        )
    assert (part.value["returned"], part.value["exhausted"]) == (3, False)
    assert part.coverage is not None
    assert part.coverage.state == "partial"
    assert (whole.value["returned"], whole.value["exhausted"]) == (5, True)
    assert [row["i"] for row in endless["rows"]] == [1, 2]
    assert (large["shortened"], large["exhausted"]) == (True, False)
    assert 1 <= large["returned"] < 10


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELEC 1", None),
        ("", None),
        ("-- nothing", None),
        ("SELECT * FROM nowhere", None),
        ("SELECT ?", None),
        ("SELECT ?", [1, 2]),
        ("SELECT :a", {"b": 1}),
        ("SELECT ?", [math.nan]),
        ("SELECT ?", [2**63]),
        ("SELECT ?", [[1]]),
        ("SELECT ?", "text"),
        ("SELECT ?", ["\ud800"]),
        ("SELECT \0 1", None),
        ("SELECT 'a", None),
        ("SELECT 1 FROM customer WHERE", None),
        (5, None),
    ],
)
async def test_wrong_sql_and_wrong_parameters_are_the_callers_fault(
    shop: Path, sql: Any, params: Any
) -> None:
    async with mounted(shop) as db:
        with pytest.raises(UsageError) as caught:
            await db.call("query", sql=sql, params=params)
    assert caught.value.code == "arguments-invalid"


async def test_text_that_is_no_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    script = "CREATE TABLE t (k TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID; INSERT INTO t VALUES ('a');"
    path = make(
        tmp_path / "x.db", script + "INSERT INTO t SELECT CAST(x'61ff' AS TEXT); INSERT INTO t VALUES ('b');"
    )
    async with mounted(path) as db:
        keys = [row["k"] for row in await every_row(db, "t", 1)]
        assert keys == ["a", "a\udcff", "b"]
        assert keys[1].encode("utf-8", "surrogateescape") == b"a\xff"
        assert await db.call("t.get", id=keys[1]) == {"k": keys[1]}
        assert (await db.call("t.count", where={"k": keys[1]}))["count"] == 1


async def test_a_page_is_bounded_in_bytes_and_shows_at_least_one_row(tmp_path: Path) -> None:
    script = "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB); INSERT INTO t VALUES (1, zeroblob(900000)), (2, x'00'),"
    path = make(
        tmp_path / "x.db", script + "(3, zeroblob(90000)), (4, zeroblob(90000)), (5, zeroblob(90000));"
    )
    async with mounted(path) as db:
        sizes: list[tuple[int, bool]] = []
        cursor = None
        while True:
            reply = await db.reply("t.page", cursor=cursor)
            sizes.append((reply.value["page"]["returned"], reply.value["page"]["shortened"]))
            cursor = reply.outside["page.next_cursor"]
            if cursor is None:
                break
        assert sizes == [(1, True), (3, True), (1, False)]


async def test_cursors_belong_to_one_query_over_one_file(shop: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other.db", SHOP + "DELETE FROM customer WHERE id = 2;")
    async with mounted(shop) as db, mounted(other) as second:
        reply = await db.reply("customer.page", limit=1)
        cursor = reply.outside["page.next_cursor"]
        again = await db.reply("customer.page", limit=1, cursor=cursor)
        by_offset = await db.reply("customer.page", limit=1, offset=1)
        assert (again.value, again.normalised) == (by_offset.value, by_offset.normalised)
        for place, path, arguments in (
            (second, "customer.page", {}),
            (db, "customer.page", {"where": {"id": 1}}),
            (db, "loose.page", {}),
        ):
            with pytest.raises(UsageError, match="cursor-mismatch"):
                await place.call(path, cursor=cursor, **arguments)
        forged = base64.urlsafe_b64encode(b"\x02" + bytes(40)).decode().rstrip("=")
        for broken in (forged, cursor[:-1], cursor + "A", "", "ä", 7):
            with pytest.raises(UsageError, match="cursor-invalid"):
                await db.call("customer.page", cursor=broken)
        with pytest.raises(UsageError, match="limit-invalid"):
            await db.call("customer.page", cursor=cursor, offset=1)


@pytest.mark.parametrize("name", DATABASES)
async def test_real_files_give_what_sqlite_gives(name: str) -> None:
    path = database(name)
    before = path.read_bytes()
    async with mounted(path) as db:
        with closing(sqlite3.connect(path)) as direct:
            direct.row_factory = sqlite3.Row
            for child in db.namespace.children:
                rows = await every_row(db, child, 1000)
                tables = direct.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
                original = next(table for (table,) in tables if table.lower() == child.lower())
                expected = [dict(row) for row in direct.execute(f'SELECT * FROM "{original}" ORDER BY rowid')]
                assert rows == expected
                assert rows
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir() if entry.name != "cache"] == [path.name]


NAMES = st.text(st.sampled_from(string.ascii_letters + "_ 0é\"'-;."), min_size=1, max_size=12)
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
)


@settings(max_examples=30, deadline=None)
@given(
    table=NAMES.filter(lambda name: not name.lower().startswith("sqlite_")),
    columns=st.lists(NAMES, min_size=1, max_size=4, unique_by=lambda name: name.lower()),
    declared=st.lists(
        st.sampled_from(["", "INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "DATE"]), min_size=4, max_size=4
    ),
    rows=st.lists(st.lists(VALUES, min_size=4, max_size=4), max_size=8),
    limit=st.integers(1, 4),
)
async def test_any_table_of_any_names_and_values(
    tmp_path_factory: pytest.TempPathFactory,
    table: str,
    columns: list[str],
    declared: list[str],
    rows: list[list[Any]],
    limit: int,
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.db"

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    with closing(sqlite3.connect(path, isolation_level=None)) as direct:
        fields = ", ".join(f"{quoted(one)} {kind}" for one, kind in zip(columns, declared, strict=False))
        direct.execute(f"CREATE TABLE {quoted(table)} ({fields})")
        direct.executemany(
            f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * len(columns))})",
            [row[: len(columns)] for row in rows],
        )
        stored = [
            dict(zip(columns, row, strict=True)) for row in direct.execute(f"SELECT * FROM {quoted(table)}")
        ]
    async with mounted(path) as db:
        (child,) = db.namespace.children
        found = await every_row(db, child, limit)
        assert repr(found) == repr(stored)
        compile(render(db.namespace), "stub", "exec")
        for row in stored:
            asked = dict(row)
            page = await db.call(f"{child}.page", where=asked)
            assert repr(sorted(row.items())) in [repr(sorted(one.items())) for one in page["rows"]]
