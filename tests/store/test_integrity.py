"""Checking and copying a workspace: exactly the damaged things are listed, and what can be derived is put right."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, UsageError
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
        ("database", "events_are_not_changed"),
    }
    assert (health.holds, health.unreferenced) == (False, 1)
    assert all(one.remedy and one.message and not one.repaired for one in health.damage)
    # Of the data nothing can be derived from the rest, and nothing is made up; the rule is put back.
    repaired = check_store(store, repair=True).damage
    assert [one.repaired for one in repaired] == [one.kind == "database" for one in repaired]
    assert {one.kind for one in check_store(store).damage} == {"record", "blob", "event"}


def found(store: Store) -> set[tuple[str, str]]:
    """What a check finds, but for the rules that the test itself took out."""
    return {(one.kind, one.name) for one in check_store(store).damage if one.kind != "database"}


def without_rules(store: Store) -> None:
    for name in ("events_are_not_changed", "events_are_not_deleted", "records_are_not_deleted"):
        damage(store, f"DROP TRIGGER {name}")


def test_rows_that_were_deleted_are_missed(store: Store) -> None:
    store.append(event(), record=record(1))  # a record that two events are about
    without_rules(store)
    damage(store, "DELETE FROM records WHERE id = ?", record_id(record(1)))
    assert found(store) == {("record", "before 3"), ("record", "of event 2"), ("record", "of event 10")}
    damage(store, "DELETE FROM events WHERE seq IN (4, 5, 8)")
    assert found(store) >= {("event", "before 6"), ("event", "before 9")}
    assert "2 events were taken out" in next(
        it.message for it in check_store(store).damage if it.name == "before 6"
    )


def test_the_first_row_is_missed_too(store: Store) -> None:
    without_rules(store)
    damage(store, "DELETE FROM events WHERE seq = 1")
    assert found(store) == {("event", "before 2")}


def test_an_event_that_no_session_writes_is_found(store: Store) -> None:
    good = {"key": "a", "code": "x = 1"}
    store.append(event("preamble-set", data=good))
    assert found(store) == set()
    odd: list[tuple[str, Any, dict[str, Any]]] = [
        ("preamble-set", {"code": "x"}, {}),
        ("unknown-revised", {}, {}),
        ("run-settled", {"status": "fine", "has_value": False}, {"run": "r"}),
        ("call-recorded", {"call": 1}, {}),
        ("mount-added", [1], {}),
        ("session-opened", {"version": "1"}, {"at": 1e300}),
    ]
    numbers = {store.append(event(kind, data=data, **more)).seq for kind, data, more in odd}
    assert found(store) == {("event", str(number)) for number in numbers}


def test_what_must_come_before_an_event_is_looked_for(store: Store) -> None:
    ended = {
        "call": 3, "operation": "a", "line": 0, "column": 0, "iteration": 0, "contract": "a/1", "status": "ok",
        "code": "", "duration_ms": 0.5,
    }  # fmt: skip
    call = store.append(event("call-recorded", data=ended), record=record(1))
    started = {"engine": "cpython", "reason": "", "clock": 1.5, "seed": 1}
    run = store.append(event("run-started", data=started, run="r"))
    assert found(store) == {("event", str(call.seq)), ("event", str(run.seq))}


def test_data_that_was_spelt_anew_is_found(store: Store) -> None:
    without_rules(store)
    damage(store, "UPDATE events SET data = ? WHERE seq = 2", b'{"a": 1}')
    damage(store, "UPDATE events SET at = 'soon' WHERE seq = 3")
    damage(store, "UPDATE events SET run = x'00' WHERE seq = 4")
    assert found(store) == {("event", "2"), ("event", "3"), ("event", "4")}


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


def test_a_backup_onto_a_full_disk_says_which_one_is_full(store: Store, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        with pytest.raises(FailedError) as caught:
            back_up(store, disk / "copy")
        assert caught.value.code == "store-full"
        assert str(disk / "copy") in caught.value.message
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


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
