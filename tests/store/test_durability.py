"""Several processes and threads on one workspace, killed writers, full and read-only disks, other versions."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.identity import record_id
from affidavit.store import Store
from affidavit.store._faults import database_error

from .samples import event, finish, record, start, start_together

APPEND_500 = """
name = sys.argv[2]
with Store.open(root) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(500):
        store.append(event(session=name, data={"n": number}), record=record(number))
"""


def integrity(root: Path) -> str:
    connection = sqlite3.connect(root / "store.sqlite")
    [(answer,)] = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    return answer


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    finish(*start_together(APPEND_500, [(tmp_path, "a"), (tmp_path, "b")]))
    with Store.open(tmp_path) as store:
        for name in ("a", "b"):
            assert [it.data["n"] for it in store.events.of_session(name)] == list(range(500))
        # Both saw the same things: 500 records, 1000 events.
        assert store.evidence.has(record_id(record(number)) for number in range(500)) == {
            it for it, _ in store.evidence.list(1000)
        }
        assert len(store.evidence.list(1000)) == 500
        assert store.evidence.damaged() == []
    assert integrity(tmp_path) == "ok"


def test_the_log_is_folded_in_beside_the_writer(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        before = (tmp_path / "store.sqlite").stat().st_size
        for number in range(1100):
            store.append(event(data={"n": number}))
        store.close()
        assert (tmp_path / "store.sqlite").stat().st_size > before
        assert not (tmp_path / "store.sqlite-wal").exists()
    assert "affidavit-checkpoint" not in {it.name for it in threading.enumerate()}
    with Store.open(tmp_path) as store:
        assert [it.data["n"] for it in store.events.of_session("s1")] == list(range(1100))


def test_threads_share_one_store(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:

        def work(name: str) -> None:
            for number in range(100):
                stored = store.append(event(session=name, key=f"k{number}"), record=record(number))
                assert stored in store.events.of_session(name, after=stored.seq - 1)

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {name: len(store.events.of_session(name)) for name in store.events.sessions()} == {
            f"t{number}": 100 for number in range(4)
        }


APPEND_UNTIL_KILLED = """
with Store.open(root) as store:
    number = int(sys.argv[2])
    while True:
        large = ["x" * 1000] * 80 if number % 10 == 0 else None
        stored = store.append(event(session="s", data={"n": number}), record=record(number, large))
        sys.stdout.write(f"{number} {stored.seq} {stored.evidence_id}\\n")
        sys.stdout.flush()
        number += 1
"""


def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(5)
    acknowledged: dict[int, str] = {}
    number = 0
    for _ in range(20):
        process = start(APPEND_UNTIL_KILLED, tmp_path, number)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
        process.send_signal(signal.SIGKILL)
        with process:
            rest = process.stdout.read()  # `communicate` would leave out what is buffered here
        # A last line may be cut by the kill: then it was not acknowledged.
        lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        for line in lines:
            count, seq, evidence_id = line.split()
            acknowledged[int(seq)] = evidence_id
            number = int(count) + 1
        assert process.returncode == -signal.SIGKILL
        assert integrity(tmp_path) == "ok"
    with Store.open(tmp_path) as store:
        stored = {it.seq: it for it in store.events.of_session("s")}
        assert {seq: stored[seq].evidence_id for seq in acknowledged} == acknowledged
        for evidence_id in acknowledged.values():
            kept = store.evidence.get(evidence_id)
            assert store.evidence.result(kept)
        assert store.evidence.damaged() == []
        assert store.blobs.damaged() == []
        store.append(event())


OPEN_NEW = """
print("ready", flush=True)
sys.stdin.readline()
with Store.open(root / "new" / "workspace") as store:
    store.append(event(session=sys.argv[2]), record=record())
"""


def test_four_processes_make_one_new_workspace(tmp_path: Path) -> None:
    for attempt in range(4):
        root = tmp_path / str(attempt)
        finish(*start_together(OPEN_NEW, [(root, number) for number in range(4)]))
        with Store.open(root / "new" / "workspace", create=False) as store:
            assert sorted(store.events.sessions()) == ["0", "1", "2", "3"]
            assert len(store.evidence.list()) == 1


def test_files_are_private(tmp_path: Path) -> None:
    root = tmp_path / "w"
    with Store.open(root) as store:
        store.append(event())
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        files = sorted(it.name for it in root.iterdir())
        assert files == ["store.sqlite", "store.sqlite-shm", "store.sqlite-wal"]
        for name in files:
            assert stat.S_IMODE((root / name).stat().st_mode) == 0o600


def test_a_copied_workspace_is_a_workspace(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a") as store:
        stored = store.append(event(), record=record())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with Store.open(tmp_path / "b", create=False) as store:
        assert store.events.after() == [stored]


def test_an_absent_workspace_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        Store.open(tmp_path / "absent", create=False)
    assert caught.value.code == "store-missing"
    assert not (tmp_path / "absent").exists()


def in_database(root: Path, *statements: str) -> None:
    connection = sqlite3.connect(root / "store.sqlite", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        stored = store.append(event())
    in_database(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(FailedError) as caught:
        Store.open(tmp_path)
    assert caught.value.code == "store-version"
    assert caught.value.details["found"] == 99
    in_database(tmp_path, "PRAGMA user_version = 1")
    with Store.open(tmp_path) as store:
        assert store.events.after() == [stored]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    in_database(tmp_path, "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')")
    with pytest.raises(VerificationError, match="something else"):
        Store.open(tmp_path)
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    assert connection.execute("SELECT * FROM notes").fetchall() == [("mine",)]
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("notes",)]
    connection.close()


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a text " * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store.sqlite").write_bytes(content)
    with pytest.raises(VerificationError) as caught:
        Store.open(tmp_path)
    assert caught.value.code == "store-damaged"
    assert (tmp_path / "store.sqlite").read_bytes() == content


def test_an_empty_file_becomes_a_workspace(tmp_path: Path) -> None:
    """What a process leaves that was killed between making the file and its tables."""
    (tmp_path / "store.sqlite").touch()
    with Store.open(tmp_path) as store:
        store.append(event())


def test_overwritten_pages_are_store_damage(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.append_many((event(), record(number)) for number in range(200))
    path = tmp_path / "store.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)

    def read_all() -> None:
        with Store.open(tmp_path) as store:
            store.evidence.list(1000)
            store.events.after()

    with pytest.raises(VerificationError) as caught:
        read_all()
    assert caught.value.code == "store-damaged"


def test_a_root_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FailedError) as caught:
            Store.open(root)
        assert caught.value.code == "store-unwritable"
        assert str(root) in caught.value.message


READ_ONLY = """
import os
from affidavit.errors import AffidavitError
if os.geteuid() == 0:
    os.chown(root, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.chmod(root, 0o500)
try:
    Store.open(root / sys.argv[2])
except AffidavitError as error:
    print(error.code)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="folders have no rights here")
def test_an_unwritable_folder_is_a_clear_error() -> None:
    # Not below `tmp_path`, which other users cannot enter.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        for name in ("", "below"):
            root = Path(folder, f"closed{name}")
            root.mkdir()
            assert finish(start(READ_ONLY, root, name)) == ["store-unwritable\n"]


def fill(store: Store, limit: int) -> None:
    """Let the database grow no further than `limit` pages, as a full disk would."""

    def work(cursor: sqlite3.Cursor) -> None:
        cursor.execute(f"PRAGMA max_page_count = {limit}")

    store._database.write(work)  # pyright: ignore[reportPrivateUsage]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        kept = [store.append(event(data={"n": 0}), record=record(0))]
        fill(store, 60)
        numbers = iter(range(1, 1000))
        with pytest.raises(FailedError) as caught:
            kept.extend(store.append(event(data={"n": it}), record=record(it, "x" * 3000)) for it in numbers)
        assert caught.value.code == "store-full"
        assert caught.value.retryable
        assert store.events.after() == kept
        failed = len(kept)
        assert store.evidence.has([record_id(record(failed, "x" * 3000))]) == set()
        fill(store, 10_000)
        kept.append(store.append(event(data={"n": failed}), record=record(failed, "x" * 3000)))
        assert store.events.after() == kept
    assert integrity(tmp_path) == "ok"


def test_a_workspace_that_stays_locked_is_busy_and_can_be_tried_again(tmp_path: Path) -> None:
    with Store.open(tmp_path, busy_seconds=0.01) as store:
        store.append(event())
        other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(FailedError) as caught:
            store.append(event())
        assert caught.value.code == "store-busy"
        assert caught.value.retryable
        assert len(store.events.after()) == 1
        other.execute("ROLLBACK")
        other.close()
        store.append(event())
        assert len(store.events.after()) == 2


def test_reads_do_not_hold_the_log_back(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.append_many((event(), record(number)) for number in range(100))
        store.events.after()
        store.evidence.list(10)
        other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
        [(busy, pages, moved)] = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        other.close()
        assert (busy, pages, moved) == (0, 0, 0)
        assert (tmp_path / "store.sqlite-wal").stat().st_size == 0


def test_an_error_inside_a_transaction_stores_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.append(event())

        def work(cursor: sqlite3.Cursor) -> None:
            cursor.execute("INSERT INTO tenants (name) VALUES ('x')")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store._database.write(work)  # pyright: ignore[reportPrivateUsage]
        store.append(event())
        assert store._database.read("SELECT name FROM tenants") == [("default",)]  # pyright: ignore[reportPrivateUsage]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.close()
    store.close()
    uses: list[Callable[[], Any]] = [lambda: store.append(event()), store.events.after, store.evidence.list]
    for use in uses:
        with pytest.raises(FailedError, match="is closed"):
            use()


FORKED = """
import os
from affidavit.errors import AffidavitError
store = Store.open(root)
store.append(event())
child = os.fork()
if child == 0:
    try:
        store.append(event())
    except AffidavitError as error:
        store.close()
        os._exit(7 if "forked" in error.message else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
store.append(event())
print(len(store.events.after()))
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_may_not_use_the_store_of_its_parent(tmp_path: Path) -> None:
    assert finish(start(FORKED, tmp_path)) == ["2\n"]


def test_a_record_that_cannot_be_hashed_stores_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(UsageError):
            store.append(event(), record=record(0, {"n": float("nan")}))
        assert store.events.after() == []


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR_SHMSIZE]
)
def test_side_files_that_cannot_be_made_on_a_full_disk_are_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    path = tmp_path / "store.sqlite"
    assert database_error(error, path).code == "store-unwritable"
    usage = shutil.disk_usage(tmp_path)._replace(free=4096)

    def full(_: Path) -> Any:
        return usage

    monkeypatch.setattr(shutil, "disk_usage", full)
    assert database_error(error, path).code == "store-full"
