"""What is written, when, once, and how far it goes."""

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from affidavit.errors import FailedError, UsageError, VerificationError
from affidavit.evidence.identity import seal
from affidavit.evidence.record import BlobRef, Success
from affidavit.store import Store
from affidavit.store.journal import Journal, JournalSettings, verify
from affidavit.store.journal.names import parts_of, stem
from tests.store.journal.samples import journalled, lines, written
from tests.store.samples import event, record

SUBJECT = {"name": "app", "digest": "sha256:" + "ab" * 32, "format": "asar"}


def documents(path: Path) -> list[dict[str, Any]]:
    return [json.loads(it) for it in lines(path)]


def test_a_line_is_there_before_append_returns(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        for number in range(3):
            stored = store.append(event(data={"n": number}), record=record(number))
            last = documents(journal.path)[-1]
            assert last["event"]["data"] == {"n": number}
            assert last["adds"] == last["event"]["evidence"] == stored.evidence_id
            assert last["count"] == number + 1


def test_the_head_says_what_the_journal_is(tmp_path: Path) -> None:
    with Store.open(tmp_path / "w") as store:
        settings = JournalSettings(folder=tmp_path / "j", fsync="always")
        with Journal.open(store, "s1", settings, product="9.9", subjects=[SUBJECT]) as journal:
            assert journal.path.name == "s1.abababababab.jsonl"
            assert documents(journal.path)[0]["journal"] == {
                "format": "affidavit-journal", "version": 1, "product": "9.9", "session": "s1",
                "subjects": [SUBJECT], "fsync": "always", "part": 1,
            }  # fmt: skip
    assert documents(journal.path)[-1]["closed"] == {"count": 0}


def test_files_are_private(tmp_path: Path) -> None:
    path = written(tmp_path, part_bytes=64 << 10)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_nothing_of_the_host_is_in_it(tmp_path: Path) -> None:
    mount: dict[str, Any] = {
        "name": "app", "kind": "javascript", "uri": "/home/somebody/app.asar", "path": "/home/somebody/app.asar",
        "artifact": SUBJECT["digest"], "format": "asar", "limitations": [], "signature": "17:1796067391:884",
    }  # fmt: skip
    module = {
        "name": "t",
        "kind": "python",
        "uri": "python:/home/somebody/tools.py",
        "path": None,
        "artifact": None,
    }
    with journalled(tmp_path) as (store, journal):
        store.append(event("mount-added", data=mount))
        store.append(event("mount-added", data=module | {"signature": "", "limitations": []}))
        # The workspace keeps what the journal leaves out.
        assert [it.data["uri"] for it in store.events.of_session("s1")] == [mount["uri"], module["uri"]]
    text = journal.path.read_text("utf-8")
    assert "somebody" not in text
    assert "1796067391" not in text
    assert str(tmp_path) not in text
    assert [it["event"]["data"]["uri"] for it in documents(journal.path)[1:3]] == [
        SUBJECT["digest"],
        "python:tools.py",
    ]


def test_a_record_is_written_once(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        for _ in range(3):
            store.append(event(), record=record(7))
    found = documents(journal.path)[1:-1]
    assert ["adds" in it for it in found] == [True, False, False]
    assert {it["event"]["evidence"] for it in found} == {found[0]["adds"]}
    assert verify(journal.path).records == 1


def test_what_a_record_rests_on_is_there_before_it(tmp_path: Path) -> None:
    first, large = record(1), record(2, ["x" * 1000] * 300)
    parents = tuple(sorted(seal(it).id for it in (first, large)))
    child = replace(record(3), parents=parents)
    child_id = seal(child).id
    grandchild = replace(record(4), parents=(child_id,))
    with journalled(tmp_path) as (store, journal):
        for it in (first, large, child):
            store.append(event(session="another"), record=it)
        store.append(event(), record=grandchild)
        # An id in an event's data is a reference, too; one that the workspace does not have is only text.
        store.append(event(data={"cites": [parents[0], "ev1_" + "00" * 32]}))
    assert verify(journal.path).status == "holds"
    assert verify(journal.path).outside == ()
    added = [it["adds"] for it in documents(journal.path) if "adds" in it]
    assert set(added) == {*parents, child_id, seal(grandchild).id}
    assert added[2:] == [child_id, seal(grandchild).id]
    assert verify(journal.path).blobs == 1


def test_blobs_are_in_it_in_bounded_pieces(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        stored = store.append(event(), record=record(1, ["0123456789"] * 100_000))
        value = store.blobs.put(orjson.dumps(["y" * 20_000]))
        settled = {"value_blob": {"digest": value.digest, "size": value.size}}
        store.append(event("run-settled", data=settled))
        store.append(event("run-settled", data=settled))
        kept = store.evidence.get(stored.evidence_id or "")
        assert isinstance(kept.outcome, Success)
        assert isinstance(kept.outcome.result, BlobRef)
    assert max(map(len, lines(journal.path))) < 300_000
    digests = [it["blob"]["digest"] for it in documents(journal.path) if "blob" in it]
    assert set(digests) == {kept.outcome.result.digest, value.digest}
    assert digests.count(value.digest) == 1
    assert verify(journal.path).blobs == 2


def test_text_that_looks_like_a_blob_is_only_text(tmp_path: Path) -> None:
    looks = {"digest": "sha256:" + "12" * 32, "size": 5}
    with journalled(tmp_path) as (store, journal):
        store.append(event(data={"ref": looks}))
    assert verify(journal.path).status == "holds"
    assert verify(journal.path).blobs == 0


def test_turned_on_late_it_holds_the_whole_session(tmp_path: Path) -> None:
    with Store.open(tmp_path / "w") as store:
        for number in range(700):
            store.append(event(data={"n": number}), record=record(number % 5))
            store.append(event(session="another"))
    path = written(tmp_path, 1)
    assert [it["event"]["data"]["n"] for it in documents(path)[1:-1]] == [*range(700), 0]
    assert verify(path).records == 5


def test_what_was_added_without_it_is_caught_up(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal), Store.open(tmp_path / "w") as other:
        store.append(event(data={"n": 0}))
        other.append(event(data={"n": 1}), record=record(1))
        other.append(event(data={"n": 2}, key="k"))
        store.append(event(data={"n": 3}), record=record(1))
        other.append(event(data={"n": 4}, key="l"))
        assert store.append(event(data={"n": 9}, key="l")).repeated
    assert [it["event"]["data"]["n"] for it in documents(journal.path)[1:-1]] == [0, 1, 2, 3, 4]
    assert verify(journal.path).status == "holds"


def test_many_events_in_one_transaction(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        store.append_many(
            [(event(data={"n": number}), record(number)) for number in range(5)] + [event(session="other")]
        )
    assert [it["event"]["data"]["n"] for it in documents(journal.path)[1:-1]] == [0, 1, 2, 3, 4]


def test_resuming_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path, *others = [written(tmp_path, 2) for _ in range(3)]
    assert others == [path, path]
    with Store.open(tmp_path / "w") as store:
        # What names the file is what was known first.
        settings = JournalSettings(folder=tmp_path / "j", fsync="never")
        with Journal.open(store, "s1", settings, subjects=[SUBJECT]) as journal:
            assert journal.path == path
    found = verify(path)
    assert (found.status, found.events, found.records, found.closed) == ("holds", 6, 2, True)
    # A writer with another policy says so.
    assert [it["opened"] for it in documents(path) if "opened" in it] == [{"fsync": "never", "product": ""}]


def test_several_sessions_share_a_folder(tmp_path: Path) -> None:
    paths = [written(tmp_path, 2, session=name) for name in ("s1", "s1.none", "s2", "s")]
    assert len(set(paths)) == 4
    assert [verify(path).session for path in paths] == ["s1", "s1.none", "s2", "s"]
    assert {len(parts_of(path)) for path in paths} == {1}


@pytest.mark.parametrize("session", ["a/b", "..", "x" * 200, "é", " "])
def test_sessions_that_cannot_name_a_file_are_named_by_digest(tmp_path: Path, session: str) -> None:
    name = stem(session, None)
    assert len(name) < 60
    with journalled(tmp_path, session) as (store, journal):
        store.append(event(session=session))
    assert journal.path == tmp_path / "j" / f"{name}.jsonl"
    assert verify(journal.path).session == session


def test_parts_are_chained(tmp_path: Path) -> None:
    written(tmp_path, 150, part_bytes=64 << 10)
    parts = parts_of(written(tmp_path, 150, part_bytes=64 << 10))
    assert list(parts) == list(range(1, len(parts) + 1))
    assert len(parts) > 2
    assert {it.stat().st_size < (64 << 10) + 2000 for it in parts.values()} == {True}
    for part in parts.values():
        found = verify(part)
        assert (found.status, found.events, found.records) == ("holds", 300, 150)
        assert found.parts == tuple(it.name for it in parts.values())
    numbers = [document["n"] for it in parts.values() for document in documents(it)]
    assert numbers == list(range(len(numbers)))


def test_resuming_in_a_later_part(tmp_path: Path) -> None:
    policies = ("never", "batch", "never")
    path, *_ = [written(tmp_path, 150, part_bytes=64 << 10, fsync=policy) for policy in policies]
    found = verify(path)
    assert (found.status, found.events, len(found.parts) > 2) == ("holds", 450, True)
    told = [document for it in parts_of(path).values() for document in documents(it)]
    # A head says the policy of who began the part; where the next writer has another one, a line says so.
    assert [it["opened"]["fsync"] for it in told if "opened" in it] == ["batch", "never"]


def test_two_writers_follow_each_other_into_the_next_part(tmp_path: Path) -> None:
    with (
        journalled(tmp_path, part_bytes=64 << 10) as (one, first),
        journalled(tmp_path, part_bytes=64 << 10) as (two, second),
    ):
        for number in range(200):
            (one if number % 3 else two).append(event(data={"n": number}), record=record(number))
        assert first.path != tmp_path / "j" / "s1.none.jsonl"
        one.append(event(data={"n": 200}))
        two.append(event(data={"n": 201}))
        assert first.path == second.path
    found = verify(first.path)
    assert (found.status, found.events, found.records) == ("holds", 202, 200)


def test_at_its_bound_a_line_says_so_and_the_session_goes_on(tmp_path: Path) -> None:
    with journalled(tmp_path, max_bytes=64 << 10) as (store, journal):
        for number in range(200):
            store.append(event(data={"n": number}), record=record(number))
        assert journal.truncated
        size = journal.path.stat().st_size
        assert size <= 64 << 10
        assert len(store.events.of_session("s1")) == 200
    assert journal.path.stat().st_size == size
    found = verify(journal.path)
    last = documents(journal.path)[-1]
    assert last["truncated"] == {"bound": 64 << 10, "count": found.events}
    assert (found.status, found.bound, found.closed) == ("holds", 64 << 10, False)
    assert 0 < found.events < 200
    # Going on with it later adds nothing either.
    with journalled(tmp_path) as (store, journal):
        assert journal.truncated
        store.append(event())
    assert journal.path.stat().st_size == size


def test_a_blob_beyond_the_bound_truncates_before_it(tmp_path: Path) -> None:
    with journalled(tmp_path, max_bytes=256 << 10) as (store, journal):
        store.append(event(data={"n": 1}), record=record(1))
        store.append(event(data={"n": 2}), record=record(2, ["x" * 1000] * 1000))
        store.append(event(data={"n": 3}), record=record(3))
    found = verify(journal.path)
    assert (found.status, found.bound > 0, found.events, found.blobs) == ("holds", True, 1, 0)


class Disk:
    """Counts the syncs; the disk is slow, so that writers meet in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meeting: threading.Barrier | None = None) -> None:
        self.syncs = 0
        self.meeting = meeting
        monkeypatch.setattr(os, "fdatasync", self.sync)

    def sync(self, handle: int) -> None:
        os.fstat(handle)
        self.syncs += 1
        if self.meeting is not None and self.syncs == 1:
            self.meeting.wait(30)


def test_always_syncs_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with journalled(tmp_path, fsync="always") as (store, _):
        before = disk.syncs
        for _ in range(5):
            store.append(event())
        assert disk.syncs == before + 5
        store.append_many([event() for _ in range(50)])
        assert disk.syncs == before + 6


def test_never_leaves_it_to_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    written(tmp_path, 5, fsync="never")
    assert disk.syncs == 0


def test_batch_syncs_by_bytes_by_time_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()

    def sync(handle: int) -> None:
        os.fstat(handle)
        synced.set()

    monkeypatch.setattr(os, "fdatasync", sync)
    with journalled(tmp_path, batch_seconds=3600.0, batch_bytes=2000) as (store, _):
        store.append(event(), record=record(1, "x" * 4000))
        assert synced.wait(30)
    synced.clear()
    with journalled(tmp_path, batch_seconds=0.001) as (store, _):
        store.append(event())
        assert synced.wait(30)
    synced.clear()
    with journalled(tmp_path, batch_seconds=3600.0) as (store, _):
        store.append(event())
        assert not synced.is_set()
    assert synced.is_set()


def test_one_sync_serves_all_who_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with journalled(tmp_path, fsync="always") as (store, journal):
        meeting = threading.Barrier(2)
        disk = Disk(monkeypatch, meeting)
        writers = [threading.Thread(target=store.append, args=(event(data={"n": it}),)) for it in range(8)]
        for writer in writers:
            writer.start()
        # The first sync is under way until all lines are written: the second one serves the seven that came later.
        while len(lines(journal.path)) < 9:
            threading.Event().wait(0.001)
        meeting.wait(30)
        for writer in writers:
            writer.join()
        assert disk.syncs == 2
    assert verify(journal.path).events == 8


def test_threads_share_one_journal(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):

        def work(start: int) -> None:
            for number in range(start, start + 50):
                store.append(event(data={"n": number}), record=record(number))

        threads = [threading.Thread(target=work, args=(it * 50,)) for it in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = [it.data["n"] for it in store.events.of_session("s1")]
    found = documents(journal.path)[1:-1]
    assert [it["event"]["data"]["n"] for it in found] == order
    assert verify(journal.path).status == "holds"


def test_the_journal_of_another_session_of_that_name_is_refused(tmp_path: Path) -> None:
    written(tmp_path, 3)
    for at, count in ((2.5, 3), (1.5, 2)):
        with Store.open(tmp_path / str(at)) as store:
            for number in range(count):
                store.append(event(at=at, data={"n": number}), record=record(number))
            with pytest.raises(FailedError) as caught:
                Journal.open(store, "s1", JournalSettings(folder=tmp_path / "j"))
        assert caught.value.code == "journal-mismatch"
        assert "restore" in caught.value.hint or "another folder" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["notes of my own\nmore of them\n", "one line without end", '{"n": 1}', "\0note"]
)
def test_what_is_at_its_place_is_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "j").mkdir()
    path = tmp_path / "j" / "s1.none.jsonl"
    path.write_text(text)
    with (
        Store.open(tmp_path / "w") as store,
        pytest.raises(VerificationError, match="no readable line") as caught,
    ):
        Journal.open(store, "s1", JournalSettings(folder=tmp_path / "j"))
    assert caught.value.code == "journal-damaged"
    assert path.read_text() == text


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "j").mkdir()
    (tmp_path / "mine").write_text("")
    (tmp_path / "j" / "s1.none.jsonl").symlink_to(tmp_path / "mine")
    with Store.open(tmp_path / "w") as store, pytest.raises(FailedError) as caught:
        Journal.open(store, "s1", JournalSettings(folder=tmp_path / "j"))
    assert caught.value.code == "journal-failed"
    assert (tmp_path / "mine").read_text() == ""


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        for at in (1e9, 5.0, 0.0, -3.5, 1e-7, 1.7e9 + 1 / 3):
            store.append(event(at=at))
    assert verify(journal.path).status == "holds"
    assert [it["event"]["at"] for it in documents(journal.path)[1:-1]] == [
        1e9,
        5,
        0,
        -3.5,
        1e-7,
        1.7e9 + 1 / 3,
    ]


@pytest.mark.parametrize(
    "changes", [{"fsync": "often"}, {"max_bytes": 1000}, {"part_bytes": 0}, {"batch_seconds": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        JournalSettings(folder=tmp_path, **changes)
    assert caught.value.code == "usage"
