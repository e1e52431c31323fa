"""Disks that are full, broken or read-only: an append that is not recorded never looks as if it were."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from affidavit.errors import FailedError, VerificationError
from affidavit.store import Store
from affidavit.store.journal import Fsync, Journal, JournalSettings, verify
from tests.store.journal.samples import journalled, kept
from tests.store.samples import event, finish, record, start


class Broken:
    """Makes one function of `os` fail for a while, after it did a part of the work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
        self.real = getattr(os, name)
        self.code = code
        self.after: int | None = None
        monkeypatch.setattr(os, name, self.write if name == "write" else self.sync)

    def write(self, handle: int, data: bytes) -> int:
        if self.after is None:
            return self.real(handle, data)
        if self.after == 0:
            raise OSError(self.code, os.strerror(self.code))
        room, self.after = self.after, 0
        return self.real(handle, data[:room])

    def sync(self, handle: int) -> None:
        if self.after is not None:
            raise OSError(self.code, os.strerror(self.code))
        self.real(handle)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT])
@pytest.mark.parametrize("room", [0, 1, 200])
def test_a_write_that_fails_leaves_no_part_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, room: int
) -> None:
    broken = Broken(monkeypatch, "write", code)
    with journalled(tmp_path) as (store, journal):
        store.append(event(data={"n": 0}), record=record(0))
        size = journal.path.stat().st_size
        for number in (1, 2):
            broken.after = room
            with pytest.raises(FailedError, match="cannot write the journal") as caught:
                store.append(event(data={"n": number}), record=record(number))
            assert caught.value.code == "journal-failed"
            assert os.strerror(code) in caught.value.message
            assert caught.value.hint
            assert journal.path.stat().st_size == size
            assert verify(journal.path).status == "holds"
        # When there is room again, what was missed is caught up before anything else is acknowledged.
        broken.after = None
        store.append(event(data={"n": 3}), record=record(3))
        told = kept(store)
    found = verify(journal.path)
    assert (found.status, found.events, found.records, found.closed) == ("holds", 4, 4, True)
    assert [it[-1] for it in told] == [{"n": number} for number in range(4)]


def test_a_tear_that_cannot_be_cut_off_is_cut_off_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(monkeypatch, "write", errno.EIO)
    cut = os.ftruncate

    def refuse(handle: int, length: int) -> None:
        raise OSError(errno.EIO, "no")

    with journalled(tmp_path) as (store, journal):
        store.append(event(data={"n": 0}), record=record(0))
        broken.after = 30
        monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(FailedError):
            store.append(event(data={"n": 1}), record=record(1))
        assert verify(journal.path).status == "torn"
        broken.after = None
        with pytest.raises(FailedError):
            store.append(event(data={"n": 2}), record=record(2))
        monkeypatch.setattr(os, "ftruncate", cut)
        store.append(event(data={"n": 3}), record=record(3))
    found = verify(journal.path)
    assert (found.status, found.events, len(found.losses)) == ("holds", 4, 1)


def append_until_failed(store: Store, at_most: int) -> list[str | None]:
    """Append until the journal cannot be written; the ids that were acknowledged."""
    told: list[str | None] = []
    with pytest.raises(FailedError, match="cannot write the journal") as caught:
        told.extend(
            store.append(event(data={"n": number}), record=record(number, "x" * 900)).evidence_id
            for number in range(at_most)
        )
    assert caught.value.code == "journal-failed"
    return told


@pytest.mark.parametrize("fsync", ["always", "batch"])
def test_after_a_failed_sync_nothing_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: Fsync
) -> None:
    """The system drops pages that it could not write and reports success the next time."""
    broken = Broken(monkeypatch, "fdatasync", errno.EIO)
    store = Store.open(tmp_path / "w")
    settings = JournalSettings(folder=tmp_path / "j", fsync=fsync, batch_bytes=1)
    store.follow("s1", Journal.open(store, "s1", settings))
    broken.after = 0
    # Under `batch` the sync runs beside the writer: the error comes with one of the next lines.
    append_until_failed(store, 1000)
    broken.after = None
    for _ in range(3):
        append_until_failed(store, 1)
    with pytest.raises(FailedError, match="Input/output error"):
        store.close()
    # Opened anew it reads what is really there, and goes on.
    with journalled(tmp_path) as (store, journal):
        store.append(event())
        assert verify(journal.path).events == len(store.events.of_session("s1"))


LIMITED = """
import resource
from affidavit.errors import FailedError
from affidavit.store.journal import Journal, JournalSettings
settings = JournalSettings(folder=root / "j", fsync="always")
with Store.open(root / "w") as store:  # the database's own log is empty again after this: the journal meets the limit
    store.follow("s1", Journal.open(store, "s1", settings))
    store.append(event(data={"n": 0, "text": "x" * 412_000}))
resource.setrlimit(resource.RLIMIT_FSIZE, (450_000, 450_000))
with Store.open(root / "w") as store:
    store.follow("s1", Journal.open(store, "s1", settings))
    for number in range(1000):
        try:
            stored = store.append(event(data={"n": number}), record=record(number, "x" * 900))
        except FailedError as error:
            print("failed", error.code)
            break
        print(stored.evidence_id, flush=True)
"""


def test_a_limit_on_file_sizes_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    [out] = finish(start(LIMITED, tmp_path))
    *acknowledged, last = out.splitlines()
    assert last == "failed journal-failed"
    assert len(acknowledged) > 20
    [path] = (tmp_path / "j").iterdir()
    found = verify(path)
    assert (found.status, found.closed) == ("holds", False)
    assert path.read_bytes().count(b'"adds"') == found.records == len(acknowledged)
    assert all(it.encode() in path.read_bytes() for it in acknowledged)
    with journalled(tmp_path) as (store, _):
        assert len(store.events.of_session("s1")) == verify(path).events


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount: {mounted.stderr.decode().strip()}")
    return place


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, small_disk: Path) -> None:
    try:
        with Store.open(tmp_path / "w") as store:
            settings = JournalSettings(folder=small_disk / "j", fsync="always")
            journal = Journal.open(store, "s1", settings)
            store.follow("s1", journal)
            acknowledged = append_until_failed(store, 1000)
        found = verify(journal.path)
        assert found.status == "holds"
        assert len(acknowledged) > 50
        assert (found.records, found.closed) == (len(acknowledged), False)
        # What was missed is there as soon as there is room: here by moving the journal.
        (small_disk / "j").rename(small_disk / "k")
        (tmp_path / "j").mkdir()
        (tmp_path / "j" / journal.path.name).write_bytes((small_disk / "k" / journal.path.name).read_bytes())
        with journalled(tmp_path) as (_, journal):
            assert verify(journal.path).events == len(acknowledged) + 1
    finally:
        subprocess.run(["umount", str(small_disk)], check=True)


def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Store.open(tmp_path / "w") as store, pytest.raises(FailedError) as caught:
        Journal.open(store, "s1", JournalSettings(folder=tmp_path / "file" / "j"))
    assert caught.value.code == "journal-failed"
    assert "file" in caught.value.message


def test_a_read_only_folder(tmp_path: Path) -> None:
    (tmp_path / "j").mkdir(mode=0o500)
    if os.access(tmp_path / "j", os.W_OK):
        pytest.skip("this user may write anywhere")
    with Store.open(tmp_path / "w") as store, pytest.raises(FailedError) as caught:
        Journal.open(store, "s1", JournalSettings(folder=tmp_path / "j"))
    assert caught.value.code == "journal-failed"


def test_a_read_only_disk(tmp_path: Path, small_disk: Path) -> None:
    try:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with Store.open(tmp_path / "w") as store, pytest.raises(FailedError, match="Read-only") as caught:
            Journal.open(store, "s1", JournalSettings(folder=small_disk / "j"))
        assert caught.value.code == "journal-failed"
    finally:
        subprocess.run(["umount", str(small_disk)], check=True)


def test_a_journal_that_is_deleted_is_missed(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        store.append(event())
        journal.path.unlink()
        with pytest.raises(FailedError, match="was deleted"):
            store.append(event())
    with journalled(tmp_path) as (store, journal):
        assert verify(journal.path).events == 2


def test_a_journal_that_becomes_shorter_is_missed(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        store.append(event())
        os.truncate(journal.path, 10)
        with pytest.raises(VerificationError, match="became shorter") as caught:
            store.append(event())
        assert caught.value.code == "journal-damaged"
