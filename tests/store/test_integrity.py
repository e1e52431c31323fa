"""Checking and copying a workspace: exactly the damaged things are listed, and what can be derived is put right."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.evidence.identity import record_id
from affidavit.store import Store
from affidavit.store.exporting.backup import back_up
from affidavit.store.integrity import check_store
from tests.evidence.records import observation
from tests.evidence.test_bundle import FAILURE

from .samples import event, record

LARGE = [observation(["x" * 66_000, n]) for n in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "a") as opened:
        for one in (*map(record, range(5)), FAILURE, *LARGE):
            opened.append(event(), record=one)
        yield opened


def damage(store: Store, sql: str, *parameters: Any) -> None:
    raw = sqlite3.connect(store.root / "store.sqlite")
    with raw:
        raw.execute(sql, parameters)
    raw.close()


def test_a_sound_store_holds(store: Store) -> None:
    health = check_store(store)
    assert health.as_json() == {
        "holds": True,
        "records": 9,
        "blobs": 3,
        "events": 9,
        "unreferenced_blobs": 0,
        "damage": [],
    }


def test_exactly_the_damaged_ones_are_listed(store: Store) -> None:
    cut, gone, _ = sorted(store.blobs.addresses())
    path = store.blobs.path(cut)
    path.write_bytes(path.read_bytes()[:30_000])
    store.blobs.path(gone).unlink()
    store.blobs.put(b"nobody refers to it")
    changed = record_id(record(2))
    damage(store, "UPDATE records SET body = replace(body, '2', '3') WHERE id = ?", changed)
    damage(store, "DROP TRIGGER events_are_not_changed")
    damage(store, "UPDATE events SET data = x'7b' WHERE seq = 4")
    health = check_store(store)
    assert {(one.kind, one.name) for one in health.damage} == {
        ("record", changed),
        ("blob", cut),
        ("blob", gone),
        ("event", "4"),
    }
    assert (health.holds, health.unreferenced) == (False, 1)
    assert all(one.remedy and one.message and not one.repaired for one in health.damage)
    # None of it can be derived from the rest, and nothing is made up.
    assert [one.repaired for one in check_store(store, repair=True).damage] == [False] * 4


def test_the_same_content_again_repairs_under_the_same_id(store: Store) -> None:
    [cut, *_] = store.blobs.addresses()
    store.blobs.path(cut).write_bytes(b"")
    damage(store, "UPDATE records SET body = '{}' WHERE id = ?", record_id(record(2)))
    for one in (record(2), *LARGE):
        store.append(event(), record=one)
    assert check_store(store).holds


def test_what_can_be_derived_is_put_right_when_asked(store: Store) -> None:
    name = record_id(record(1))
    damage(store, "UPDATE records SET operation = 'other/1' WHERE id = ?", name)
    damage(store, "UPDATE records SET notes = x'7b' WHERE id = ?", record_id(FAILURE))
    assert {one.name for one in check_store(store).damage} == {name, record_id(FAILURE)}
    assert not check_store(store).holds
    repaired = check_store(store, repair=True)
    assert repaired.holds
    assert [one.repaired for one in repaired.damage] == [True, True]
    assert check_store(store).damage == ()
    assert store.evidence.get(name) == record(1)


def test_damaged_indexes_are_made_again(store: Store) -> None:
    damage(store, "PRAGMA writable_schema = ON")
    raw = sqlite3.connect(store.root / "store.sqlite")
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_schema SET rootpage = rootpage WHERE name = 'events_by_run'")
    # An index that lacks a row: made empty beside the table, then put in the place of the real one.
    raw.execute("CREATE INDEX other ON events (tenant, session) WHERE seq < 3")
    raw.execute(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'other')"
        " WHERE name = 'events_by_session'"
    )
    raw.execute("DELETE FROM sqlite_schema WHERE name = 'other'")
    raw.commit()
    raw.close()
    with Store.open(store.root) as again:
        found = check_store(again)
        assert [one.kind for one in found.damage] == ["database"]
        assert "index" in found.damage[0].message


def test_a_backup_is_a_workspace_with_the_same_content(store: Store, tmp_path: Path) -> None:
    facts = store.root / "facts"
    facts.mkdir()
    (facts / "abc.facts").write_bytes(b"facts")
    (facts / "abc.tmp").write_bytes(b"unfinished")
    with Store.open(store.root, tenant="second") as second:
        second.append(event(), record=LARGE[0])
    done = back_up(store, tmp_path / "copy")
    assert (done.blobs, done.facts, done.damaged) == (4, 1, ())
    assert [it.name for it in (tmp_path / "copy" / "facts").iterdir()] == ["abc.facts"]
    for tenant in ("default", "second"):
        with (
            Store.open(store.root, tenant=tenant) as here,
            Store.open(tmp_path / "copy", tenant=tenant) as there,
        ):
            assert there.events.after(0) == here.events.after(0)
            assert list(there.evidence.walk()) == list(here.evidence.walk())
            assert check_store(there).holds
            there.append(event(), record=record(77))
    assert not store.evidence.has([record_id(record(77))])
    copied = [tmp_path / "copy", *(path for path in (tmp_path / "copy").rglob("*") if path.is_file())]
    assert {oct(path.stat().st_mode & 0o77) for path in copied} == {"0o0"}


def test_a_backup_while_others_write_is_one_moment(store: Store, tmp_path: Path) -> None:
    stop = threading.Event()
    written: list[int] = []

    def go_on() -> None:
        with Store.open(store.root) as writer:
            while not stop.is_set():
                writer.append(event(), record=observation(["y" * 66_000, len(written)]))
                written.append(1)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for number in range(3):
            back_up(store, tmp_path / f"copy{number}")
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        with Store.open(tmp_path / f"copy{number}") as there:
            health = check_store(there)
            assert health.damage == ()
            assert health.records == health.events >= 9
    assert written


def test_a_backup_never_overwrites_and_leaves_nothing_half_done(store: Store, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    with pytest.raises(UsageError) as caught:
        back_up(store, taken)
    assert caught.value.code == "file-exists"
    [cut, *_] = store.blobs.addresses()
    store.blobs.path(cut).write_bytes(b"")
    done = back_up(store, tmp_path / "copy")
    assert done.damaged == (cut,)
    assert done.blobs == 2
    assert sorted(it.name for it in tmp_path.iterdir()) == ["a", "copy", "taken"]
