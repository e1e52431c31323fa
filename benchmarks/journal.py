"""Part 5: what recording costs, with and without a journal, beside SQLite, a plain file and the disk itself."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import count
from pathlib import Path

from affidavit.evidence.canonical import canonical, freeze
from affidavit.evidence.identity import seal
from affidavit.evidence.record import Coverage, Producer, Record, Subject, Success
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.journal import Fsync, Journal, JournalSettings
from affidavit.store.store import Appended
from benchmarks.measure import rounds
from benchmarks.report import Comparison, Section

ROUNDS = 25
RECORDS = 400  # in one turn
SYNCED = 40  # in one turn where each waits for the disk
AT_ONCE = 4
TOGETHER = 200  # in one turn of so many: starting the threads must not be what is measured
GOAL = 1.25  # 80 % of the speed

SUBJECT = Subject(digest="sha256:" + sha256(b"application").hexdigest(), format="asar")
PRODUCER = Producer(name="affidavit.javascript", version="1")


def measure() -> list[Section]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        forced = {"always": list[float](), "sessions": list[float]()}
        turns = _turns(Path(folder), stack)
        for name, records in (("always", SYNCED), ("sessions", TOGETHER)):
            turns[name] = _watched(turns[name], records, forced[name])
        rounds(turns, 1)
        for kept in forced.values():
            kept.clear()
        taken = rounds(turns, ROUNDS)
    size = len(seal(_record("size")).body)
    section = Section(f"Recording a call whose record has {size:,} bytes: records per second")

    def compare(what: str, ours: str, against: str, theirs: str, goal: float | None = None) -> None:
        section.comparisons.append(
            Comparison(
                what=what, ours=taken[ours], against=against, theirs=taken[theirs], unit="/s", goal=goal
            )
        )

    compare("journal off", "off", "plain SQLite", "sqlite")
    for policy in ("never", "batch"):
        goal = GOAL if policy == "batch" else None
        compare(policy, policy, "plain SQLite", "sqlite")
        compare(policy, policy, "the same append, journal off", "off", goal)
        compare(policy, policy, "raw appends to a file", "raw", goal)
    compare("the journal alone, batch", "alone", "raw appends to a file", "raw")
    for name, what in (("always", "always, 1 session"), ("sessions", f"always, {AT_ONCE} sessions")):
        waiting = "the part of it with an fsync under way"
        section.comparisons.append(
            Comparison(what=what, ours=taken[name], against=waiting, theirs=forced[name], goal=GOAL)
        )
    one, several = "a write and an fsync each", f"the same from {AT_ONCE} threads to {AT_ONCE} files"
    compare("always, 1 session", "always", one, "fsync", GOAL)
    compare("always, 1 session", "always", "plain SQLite", "sqlite")
    compare(f"always, {AT_ONCE} sessions", "sessions", several, "fsyncs", GOAL)
    compare(f"always, {AT_ONCE} sessions", "sessions", "1 session", "always")
    compare(f"always, {AT_ONCE} calls of 1 session", "calls", one, "fsync")
    section.notes += [
        "Ratios are of the time for a record: 1.25 is 80 % of the speed. Plain SQLite and the file get the bytes that",
        "the journal's lines have; SQLite with WAL, synchronous=NORMAL, one transaction each; the file with one write",
        "each and no fsync. The product's append also hashes the record, indexes it, and writes the event.",
        "The part with an fsync under way: 1.25 says that `always` waits for the disk for 80 % of its time. With",
        "several sessions one of them can wait while another one works; then the disk is waited for all the same.",
        "The journal alone gets events that are stored and records that are hashed, and writes chained lines.",
    ]
    return [section]


class _Session:
    """A session of a store, and the records that it appends: each is a new one."""

    def __init__(self, store: Store, name: str, policy: Fsync | None, journals: Path) -> None:
        self.name = name
        self.store = store
        self._numbers = count()
        if policy is not None:
            store.follow(name, Journal.open(store, name, JournalSettings(folder=journals, fsync=policy)))

    def prepare(self, records: int) -> Callable[[], None]:
        """What appends so many."""
        entries = [self.entry(next(self._numbers)) for _ in range(records)]

        def append() -> None:
            for event, record in entries:
                self.store.append(event, record=record)

        return append

    def entry(self, number: int) -> tuple[Event, Record]:
        data = {"call": number, "path": "db.app.modules.get", "seconds": 0.25}
        event = Event(
            kind="call-recorded",
            session=self.name,
            run=f"run-{number // 100}",
            data=data,
            at=1.7e9 + number / 7,
        )
        return event, _record(f"{self.name}-{number}")


def _turns(folder: Path, stack: ExitStack) -> dict[str, Callable[[], float]]:
    """Each returns the seconds that one record took."""
    journals = folder / "journals"

    def sessions(name: str, policy: Fsync | None, number: int = 1) -> list[_Session]:
        store = stack.enter_context(Store.open(folder / name))
        return [_Session(store, f"{name}-{one}", policy, journals) for one in range(number)]

    def appending(found: list[_Session], records: int) -> Callable[[], float]:
        share = records // len(found)
        return lambda: _timed([one.prepare(share) for one in found], records)

    [shared] = sessions("calls", "always")
    lines = _lines(sessions("lines", "never")[0], journals)
    files = [_opened(folder / f"raw-{number}", stack) for number in range(AT_ONCE)]
    share = TOGETHER // AT_ONCE
    return {
        "sqlite": _sqlite(folder / "plain.sqlite", lines, stack),
        "off": appending(sessions("off", None), RECORDS),
        "never": appending(sessions("never", "never"), RECORDS),
        "batch": appending(sessions("batch", "batch"), RECORDS),
        "alone": _alone(sessions("alone", None)[0], journals),
        "raw": lambda: _timed([_writing(files[0], lines)], RECORDS),
        "always": appending(sessions("always", "always"), SYNCED),
        "fsync": lambda: _timed([_writing(files[0], lines[:SYNCED], sync=True)], SYNCED),
        "sessions": appending(sessions("several", "always", AT_ONCE), TOGETHER),
        "calls": appending([shared] * AT_ONCE, TOGETHER),
        "fsyncs": lambda: _timed([_writing(it, lines[:share], sync=True) for it in files], TOGETHER),
    }


def _lines(session: _Session, journals: Path) -> list[bytes]:
    """Lines as a journal has them."""
    session.prepare(RECORDS)()
    [path] = journals.glob(f"{session.name}.*")
    return path.read_bytes().splitlines(keepends=True)[1:]


def _alone(session: _Session, journals: Path) -> Callable[[], float]:
    """The journal's own work: events get numbers as if they had been stored, records are hashed before."""
    journal = Journal.open(session.store, session.name, JournalSettings(folder=journals, fsync="batch"))
    session.store.follow(session.name, journal)
    numbers = count(1)

    def told() -> Appended:
        seq = next(numbers)
        event, record = session.entry(seq)
        sealed = seal(record)
        stored = StoredEvent(
            seq=seq,
            kind=event.kind,
            session=event.session,
            data=event.data,
            at=event.at,
            run=event.run,
            evidence_id=sealed.id,
        )
        return Appended(stored=stored, data=canonical(event.data), sealed=sealed, previous=seq - 1)

    def turn() -> float:
        entries = [[told()] for _ in range(RECORDS)]

        def write() -> None:
            for entry in entries:
                journal.write(entry)

        return _timed([write], RECORDS)

    return turn


def _sqlite(path: Path, lines: Sequence[bytes], stack: ExitStack) -> Callable[[], float]:
    connection = sqlite3.connect(path, isolation_level=None)
    stack.callback(connection.close)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, line BLOB NOT NULL)")

    def insert() -> None:
        for line in lines:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO lines (line) VALUES (?)", (line,))
            connection.execute("COMMIT")

    return lambda: _timed([insert], len(lines))


def _opened(path: Path, stack: ExitStack) -> int:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    stack.callback(os.close, handle)
    return handle


def _writing(handle: int, lines: Sequence[bytes], *, sync: bool = False) -> Callable[[], None]:
    def write() -> None:
        for line in lines:
            os.write(handle, line)
            if sync:
                os.fdatasync(handle)

    return write


def _timed(jobs: Sequence[Callable[[], None]], records: int) -> float:
    """Seconds for each record that all jobs together handle, each job in a thread when there are several."""
    threads = [threading.Thread(target=job) for job in jobs[1:]]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    jobs[0]()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - started) / records


def _watched(turn: Callable[[], float], records: int, kept: list[float]) -> Callable[[], float]:
    """The same turn; the seconds for each record in which at least one fsync was under way go into the list."""
    force = os.fdatasync

    def watched() -> float:
        spans: list[tuple[float, float]] = []

        def timed(handle: int) -> None:
            started = time.perf_counter()
            force(handle)
            spans.append((started, time.perf_counter()))

        os.fdatasync = timed
        try:
            seconds = turn()
        finally:
            os.fdatasync = force
        kept.append(_covered(spans) / records)
        return seconds

    return watched


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """How long at least one of the spans went on."""
    total = reached = 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _record(name: str) -> Record:
    """A record of about a kilobyte that no other name has; its values are frozen, as those of a call are."""
    row = {
        "node_id": f"module:{sha256(name.encode()).hexdigest()[:16]}",
        "identity": {"key": f"src/components/{name}/index.js", "kind": "file"},
        "digest": "sha256:" + sha256(name.encode()).hexdigest(),
        "bytes": 4711,
        "status": "resolved",
        "sites": [{"start": start, "end": start + 24, "form": "import"} for start in range(0, 400, 50)],
    }
    return Record(
        kind="observation",
        operation="javascript.modules.get/1",
        parameters=freeze({"id": row["node_id"]}),
        outcome=Success(result=freeze(row)),
        producer=PRODUCER,
        authority="static-analysis",
        confidence="observed",
        subject=SUBJECT,
        coverage=Coverage(
            state="complete",
            selection="all files",
            examined=1,
            bounds={"files": 100_000, "file_bytes": 1 << 26},
        ),
    )
