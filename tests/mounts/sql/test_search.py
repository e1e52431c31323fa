"""Full-text search over a table: an index beside it, derived once and kept by content."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.errors import UsageError
from tests.mounts.sql.databases import make, mounted
from tests.mounts.sql.real_files import database

NOTES = """
CREATE TABLE note (code TEXT PRIMARY KEY NOT NULL, title TEXT, body TEXT, size INT) WITHOUT ROWID;
INSERT INTO note VALUES
    ('n1', 'parseHttpHeader splits raw header lines', NULL, 1),
    ('n2', 'use the read-only flag', 'for snapshots', 2),
    ('n3', NULL, 'parse a header of a wav file', 3),
    ('n4', 'MAX_RETRY_COUNT limits attempts', x'00', 4),
    ('n5', '', '', 5),
    ('n6', 'データベースの検索', 'naïve café', 6);
CREATE TABLE numbers (n INT);
CREATE VIEW titles AS SELECT title FROM note;
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return make(tmp_path / "notes.db", NOTES)


async def test_the_best_row_comes_first_and_what_shares_no_word_not_at_all(notes: Path) -> None:
    async with mounted(notes) as db:

        async def found(query: str) -> list[str]:
            reply = await db.call("note.search", query=query)
            assert [hit["rank"] for hit in reply["hits"]] == list(range(1, len(reply["hits"]) + 1))
            assert reply["matched"] == len(reply["hits"])
            return [hit["row"]["code"] for hit in reply["hits"]]

        assert await found("http header") == ["n1", "n3"]
        assert (await found("parseHttpHeader"))[0] == "n1"
        assert await found("read-only") == ["n2"]
        assert await found("retry count") == ["n4"]
        assert await found("検索") == await found("CAFE") == ["n6"]
        assert await found("zebra") == await found("") == await found("***") == []
        assert await found("-only OR") == ["n2"]
        assert set(db.namespace.children["note"].operations) >= {"search", "get"}
        for without in ("numbers", "titles"):
            assert "search" not in db.namespace.children[without].operations
        for wrong in ({"query": 5}, {"query": "x", "limit": 0}, {"query": "x", "limit": 101}):
            with pytest.raises(UsageError):
                await db.call("note.search", **wrong)


async def test_an_index_is_made_once_and_survives_the_process(notes: Path, tmp_path: Path) -> None:
    async with mounted(notes) as db:
        first = await db.reply("note.search", query="header")
    (index,) = (tmp_path / "cache" / "sql").iterdir()
    made = index.stat().st_mtime_ns
    async with mounted(notes) as db:
        assert await db.reply("note.search", query="header") == first
    assert [one.stat().st_mtime_ns for one in (tmp_path / "cache" / "sql").iterdir()] == [made]


async def test_a_large_real_table_is_searched_as_sqlite_itself_searches_it(tmp_path: Path) -> None:
    path = tmp_path / "cities.db"
    path.write_bytes(database("cities").read_bytes())
    with closing(sqlite3.connect(path)) as direct:
        oracle = sqlite3.connect(":memory:")
        oracle.execute(
            'CREATE VIRTUAL TABLE words USING fts5(text, tokenize="unicode61 remove_diacritics 2")'
        )
        rows = direct.execute(
            "SELECT id, coalesce(city, '') || char(10) || coalesce(country, '') FROM cities"
        )
        oracle.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
    async with mounted(path) as db:
        for question in ("são paulo", "bremen", "new york", "zzzz"):
            words = " OR ".join(f'"{word}"' for word in question.split())
            (matched,) = oracle.execute("SELECT count(*) FROM words WHERE words MATCH ?", (words,)).fetchone()
            reply = await db.call("cities.search", query=question, limit=5)
            assert reply["matched"] == matched
            for hit in reply["hits"]:
                assert question.split()[-1][:3] in str(hit["row"]).casefold().replace("ã", "a") or matched > 5
    oracle.close()
