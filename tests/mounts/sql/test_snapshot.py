"""A SQLite file is one snapshot: its log belongs to it, nothing beside it is touched, changes are noticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.errors import AffidavitError, FailedError, UsageError, VerificationError
from affidavit.mounts.sql.adapter import SqlAdapter
from tests.mounts.sources import opened
from tests.mounts.sql.databases import make, mounted

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); INSERT INTO t VALUES (1, 'one');"


async def test_a_file_that_changed_is_refused_until_it_is_mounted_again(tmp_path: Path) -> None:
    path = make(tmp_path / "x.db", TABLE)
    async with mounted(path) as db:
        assert (await db.call("t.count"))["count"] == 1
        before = await db.mount.snapshot()
        assert before == db.description.snapshot
        with closing(sqlite3.connect(path, isolation_level=None)) as direct:
            direct.execute("INSERT INTO t VALUES (2, 'two')")
        for path_, arguments in (
            ("t.page", {}),
            ("t.search", {"query": "one"}),
            ("query", {"sql": "SELECT 1"}),
        ):
            with pytest.raises(VerificationError, match="artifact-changed"):
                await db.call(path_, **arguments)
        assert (await db.mount.snapshot()).identity != before.identity
    async with mounted(path) as db:
        assert (await db.call("t.count"))["count"] == 2


async def test_a_file_that_was_only_touched_is_the_same(tmp_path: Path) -> None:
    path = make(tmp_path / "x.db", TABLE)
    async with mounted(path) as db:
        assert (await db.call("t.count"))["count"] == 1
        path.touch()
        assert (await db.call("t.count"))["count"] == 1
        path.unlink()
        with pytest.raises(AffidavitError, match="artifact-not-found"):
            await db.call("t.count")


async def test_what_is_in_the_write_ahead_log_is_read_and_nothing_beside_the_file_is_touched(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.executescript(TABLE)
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute("INSERT INTO t VALUES (2, 'in the log')")
        kept = {entry.name: entry.read_bytes() for entry in folder.iterdir()}
        assert kept["x.db-wal"]
        async with opened(SqlAdapter(), f"sqlite:///{path}", tmp_path) as db:
            assert [row["x"] for row in (await db.call("t.page"))["rows"]] == ["one", "in the log"]
            assert {entry.name: entry.read_bytes() for entry in folder.iterdir()} == kept
            writer.execute("INSERT INTO t VALUES (3, 'later')")
            with pytest.raises(VerificationError, match="artifact-changed"):
                await db.call("t.page")


async def test_a_file_with_an_empty_log_is_read_without_making_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.executescript(TABLE)
    assert [entry.name for entry in folder.iterdir()] == ["x.db"]
    async with opened(SqlAdapter(), f"sqlite:///{path}", tmp_path) as db:
        assert (await db.call("t.count"))["count"] == 1
        assert (await db.call("query", sql="SELECT x FROM t"))["rows"] == [{"x": "one"}]
    assert [entry.name for entry in folder.iterdir()] == ["x.db"]


async def test_a_hot_journal_is_for_its_own_program_to_repair(tmp_path: Path) -> None:
    path = make(tmp_path / "x.db", TABLE)
    journal = tmp_path / "x.db-journal"
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    with pytest.raises(FailedError, match="not closed properly") as caught:
        async with mounted(path):
            pass
    assert caught.value.code == "mount-failed"
    journal.write_bytes(bytes(512))  # what PERSIST leaves behind when all is well
    async with mounted(path) as db:
        assert (await db.call("t.count"))["count"] == 1


async def test_the_same_bytes_answer_alike_under_another_name(tmp_path: Path) -> None:
    one = make(tmp_path / "one.db", TABLE)
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "other.db"
    other.write_bytes(one.read_bytes())
    async with mounted(one) as first, mounted(other) as second:
        assert first.description.contents == second.description.contents
        for path, arguments in (("t.page", {}), ("t.search", {"query": "one"}), ("t.get", {"id": 1})):
            assert await first.reply(path, **arguments) == await second.reply(path, **arguments)
        assert first.operation("t.page").contract == second.operation("t.page").contract == "sql.t.page/1"


async def test_any_file_name_will_do(tmp_path: Path) -> None:
    path = make(tmp_path / "a ?mode=rwc&x#y%20é.db", TABLE)
    async with mounted(path) as db:
        assert (await db.call("t.search", query="one"))["matched"] == 1
        assert (await db.call("query", sql="SELECT x FROM t"))["rows"] == [{"x": "one"}]


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("sqlite:///nowhere.db", "artifact-not-found"),
        ("sqlite://host/x.db", "mount-invalid"),
        ("sqlite:", "mount-invalid"),
        ("sqlite:.", "mount-invalid"),
        ("sqlite:text.txt", "mount-invalid"),
        ("postgresql://user:secret@localhost/x", "mount-invalid"),
        ("postgresql://localhost/x?password=secret", "mount-invalid"),
    ],
)
async def test_uris_that_cannot_be(tmp_path: Path, uri: str, code: str) -> None:
    (tmp_path / "text.txt").write_text("no database")
    with pytest.raises(AffidavitError) as caught:
        async with opened(SqlAdapter(), uri, tmp_path):
            pass
    assert caught.value.code == code
    assert "secret" not in str(caught.value)


async def test_options_that_cannot_be(tmp_path: Path) -> None:
    path = make(tmp_path / "x.db", TABLE)
    for options in ({"timeout": 0}, {"timeuot": 1}, {"password": "plain"}):
        with pytest.raises(UsageError, match="mount-invalid"):
            async with mounted(path, options):
                pass


def test_files_are_known_by_their_bytes_or_ending(tmp_path: Path) -> None:
    adapter = SqlAdapter()
    sqlite_head = make(tmp_path / "x.bin", TABLE).read_bytes()[:4096]
    assert adapter.probe("x.bin", sqlite_head)
    assert adapter.probe("x.whatever", bytes(8) + b"DUCK" + bytes(9))
    assert adapter.probe("x.parquet", b"PAR1")
    assert adapter.probe("data.csv", b"a,b\n")
    assert adapter.probe("rows.json", b' [{"a": 1}]')
    assert not adapter.probe("other.json", b'{"a": 1}')
    assert not adapter.probe("app.asar", b"\x04\0\0\0")
    assert not adapter.probe("mcp+stdio:sqlite", b"")
