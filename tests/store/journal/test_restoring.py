"""From a journal back to a workspace: the old ids, the same events, once, all or nothing."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import FailedError, NotFoundError, VerificationError
from affidavit.evidence import values
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import Failure, Limitation, Success
from affidavit.store import Event, Store
from affidavit.store.journal import Journal, JournalSettings, restore, verify
from affidavit.store.journal.verify import Contents
from tests.evidence.records import full
from tests.evidence.strategies import VALUES
from tests.store.journal.samples import ids, journalled, kept, lines, written
from tests.store.samples import event, record

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda it: "\0" not in it
)


def everything(store: Store) -> dict[str, tuple[Any, Any]]:
    return {
        name: (found, store.evidence.result(found) if isinstance(found.outcome, Success) else None)
        for name, found in store.evidence.list(1000)
    }


def test_every_record_comes_back_under_its_id(tmp_path: Path) -> None:
    path = written(tmp_path, 6)
    with Store.open(tmp_path / "w") as store, Store.open(tmp_path / "back") as back:
        done = restore(path, back)
        assert (done.events, done.records) == (6, 6)
        assert kept(back) == kept(store)
        assert everything(back) == everything(store)
        assert set(everything(back)) == ids(6)
        assert back.evidence.damaged() == []


def test_restoring_again_adds_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, 6)
    with Store.open(tmp_path / "w") as store, Store.open(tmp_path / "back") as back:
        for place in (store, back, back):
            done = restore(path, place)
            assert (done.events, done.records) == ((0, 0) if place is store or done.events == 0 else (6, 6))
        assert len(back.events.of_session("s1")) == len(store.events.of_session("s1")) == 6


def test_equal_events_are_kept_apart(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        for _ in range(3):
            store.append(event(), record=record(1))
    with Store.open(tmp_path / "back") as back:
        assert restore(journal.path, back).events == 3
        assert restore(journal.path, back).events == 0


def test_a_workspace_that_is_behind_is_brought_up(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    early = path.read_bytes()
    written(tmp_path, 4)
    copy = tmp_path / "early.jsonl"
    copy.write_bytes(early)
    with Store.open(tmp_path / "back") as back:
        assert restore(copy, back).events == 3
        assert restore(path, back).events == 4
        assert restore(copy, back).events == 0


def test_a_restored_session_goes_on_in_the_same_journal(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    with Store.open(tmp_path / "back") as back:
        back.append(event(session="another"))  # numbers differ from those of the lost workspace
        restore(path, back)
        with Journal.open(back, "s1", JournalSettings(folder=path.parent)) as journal:
            back.follow("s1", journal)
            back.append(event(data={"n": "after"}))
    found = verify(path)
    assert (found.status, found.events, found.records) == ("holds", 4, 3)


def test_mounts_without_their_paths_are_the_same_mounts(tmp_path: Path) -> None:
    data: dict[str, Any] = {
        "name": "a",
        "kind": "javascript",
        "format": "asar",
        "limitations": [],
        "path": "/x/app.asar",
        "uri": "/x/app.asar",
        "artifact": "sha256:" + "1" * 64,
        "signature": "7",
    }
    with journalled(tmp_path) as (store, journal):
        store.append(event("mount-added", data=data))
    with Store.open(tmp_path / "w") as store, Store.open(tmp_path / "back") as back:
        assert restore(journal.path, store).events == 0
        assert restore(journal.path, back).events == 1
        assert restore(journal.path, back).events == 0
        assert back.events.of_session("s1")[0].data["path"] is None


def test_another_session_of_that_name_is_not_mixed_in(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    with Store.open(tmp_path / "other") as other:
        other.append(event(data={"n": "mine"}), record=record(50))
        with pytest.raises(FailedError) as caught:
            restore(path, other)
        assert caught.value.code == "journal-mismatch"
        assert len(everything(other)) == len(kept(other)) == 1


def test_a_torn_journal_is_restored_without_its_torn_line(tmp_path: Path) -> None:
    path = written(tmp_path, 6)
    data = b"".join(lines(path)[:-1])
    path.write_bytes(data[:-7])
    with Store.open(tmp_path / "back") as back:
        done = restore(path, back)
        assert (done.events, done.records, done.report.status) == (5, 5, "torn")
        assert set(everything(back)) == ids(5)


def test_a_damaged_journal_is_restored_only_when_asked(tmp_path: Path) -> None:
    path = written(tmp_path, 6)
    whole = lines(path)
    path.write_bytes(b"".join([*whole[:3], whole[3].replace(b"true", b"null"), *whole[4:]]))
    with Store.open(tmp_path / "back") as back:
        with pytest.raises(VerificationError) as caught:
            restore(path, back)
        assert caught.value.code == "journal-damaged"
        assert caught.value.details["problems"][0]["kind"] == "edited-line"
        assert (everything(back), kept(back)) == ({}, [])
        done = restore(path, back, partial=True)
        assert (done.events, done.records) == (5, 5)
        assert restore(path, back, partial=True).events == 0


def test_an_event_whose_record_is_lost_is_left_out(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        for number in (1, 2, 1):
            store.append(event(data={"n": number}), record=record(number))
    whole = lines(journal.path)
    journal.path.write_bytes(b"".join([whole[0], b"lost\n", *whole[2:]]))
    with Store.open(tmp_path / "back") as back:
        done = restore(journal.path, back, partial=True)
        assert (done.events, done.records) == (1, 1)
        assert [it[-1]["n"] for it in kept(back)] == [2]


def test_nothing_is_added_when_it_fails_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 6)
    reads = 0
    real = Contents.items

    def breaks_off(self: Contents) -> Generator[Event | Sealed]:
        nonlocal reads
        reads += 1
        for number, item in enumerate(real(self)):
            if reads == 2 and number == 7:
                raise FailedError("journal-failed", "the disk is gone")
            yield item

    monkeypatch.setattr(Contents, "items", breaks_off)
    with Store.open(tmp_path / "back") as back:
        with pytest.raises(FailedError, match="disk is gone"):
            restore(path, back)
        assert (everything(back), kept(back)) == ({}, [])
        assert restore(path, back).events == 6


def test_a_newer_or_absent_journal_makes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "back") as back, pytest.raises(NotFoundError):
        restore(tmp_path / "absent.jsonl", back)


@settings(max_examples=60, deadline=None)
@given(
    told=st.lists(
        st.tuples(TEXT, VALUES, VALUES, st.none() | TEXT, st.none() | TEXT, st.floats(0, 4e9), st.booleans()),
        max_size=6,
    )
)
def test_any_events_and_records_come_back_equal(
    told: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    with journalled(root, fsync="never") as (store, journal):
        for kind, data, result, run, key, at, fails in told:
            seen = replace(full(), parameters=values.encode(data), parents=())
            if fails:
                outcome = Failure(
                    code="tool-failed", details={"x": values.encode(result)}, message="no", hint="\ud800"
                )
                seen = replace(
                    seen, outcome=outcome, limitations=(Limitation(code="encoding", place="a", message="ü"),)
                )
            else:
                seen = replace(seen, outcome=Success(result=values.encode(result)))
            store.append(
                event(kind, data={"value": values.encode(data)}, run=run, key=key, at=at), record=seen
            )
        expected, records = kept(store), everything(store)
    found = verify(journal.path)
    assert (found.status, found.problems) == ("holds", ())
    with Store.open(root / "back") as back:
        restore(journal.path, back)
        assert kept(back) == expected
        assert everything(back) == records
        assert all(seal(it).id == name for name, (it, _) in everything(back).items())
        assert restore(journal.path, back).events == 0
