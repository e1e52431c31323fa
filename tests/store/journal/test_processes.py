"""Several processes on one journal, and writers that are killed at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from affidavit.evidence.identity import seal
from affidavit.store import Store
from affidavit.store.journal import restore, verify
from tests.store.journal.samples import journalled, kept, lines
from tests.store.samples import finish, record, start_together

KILLS = int(os.environ.get("AFFIDAVIT_JOURNAL_KILLS", "40"))
"""How many writers are killed; more by hand: each costs about a twentieth of a second."""

APPEND_200 = """
from affidavit.store.journal import Journal, JournalSettings
name = int(sys.argv[2])
with Store.open(root / "w", busy_seconds=60) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    with Journal.open(store, "s1", JournalSettings(folder=root / "j", fsync="never")) as journal:
        store.follow("s1", journal)
        for number in range(200):
            store.append(event(data={"n": name * 200 + number}), record=record(name * 200 + number, "x" * 16384))
"""


def test_eight_processes_write_sixteen_kilobytes_each_into_one_journal(tmp_path: Path) -> None:
    finish(*start_together(APPEND_200, [(tmp_path, it) for it in range(8)]))
    [path] = (tmp_path / "j").iterdir()
    found = verify(path)
    assert (found.status, found.events, found.records, found.losses) == ("holds", 1600, 1600, ())
    told = [json.loads(it) for it in lines(path)]
    assert sorted(it["event"]["data"]["n"] for it in told if "event" in it) == list(range(1600))
    with Store.open(tmp_path / "w") as store:
        assert [it["event"]["data"] for it in told if "event" in it] == [it[-1] for it in kept(store)]


# Imports once and forks a writer for each line that it reads: `root session first-number file-for-acknowledgements`.
NURSERY = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from pathlib import Path
from affidavit.store import Store
from affidavit.store.journal import Journal, JournalSettings
sys.path.insert(0, sys.argv[1])
from samples import event, record

def write(root, session, number, said):
    store = Store.open(root / "w", busy_seconds=60)
    journal = Journal.open(store, session, JournalSettings(folder=root / "j", fsync=sys.argv[2], part_bytes=1 << 18))
    store.follow(session, journal)
    while True:
        large = ["x" * 1000] * 80 if number % 10 == 0 else None
        stored = store.append(event(session=session, data={"n": number}), record=record(number, large))
        os.write(said, b"%d %b\\n" % (number, stored.evidence_id.encode()))
        number += 1

for line in sys.stdin:
    root, session, number, file = line.split()
    said = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.fork()
    if child == 0:
        write(Path(root), session, int(number), said)
    os.close(said)
    print(child, flush=True)
"""


class Nursery:
    """Starts writers quickly. They are its children: it reaps them, this process kills them."""

    def __init__(self, fsync: str) -> None:
        samples = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, samples, fsync],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self, root: Path, session: str, number: int, said: Path) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{root} {session} {number} {said}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    for _ in range(int(seconds / 0.001)):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("it did not happen in time")


def wait_until_said(said: Path, count: int) -> None:
    wait_for(lambda: len(acknowledged(said)) >= count)


def wait_until_gone(children: list[int]) -> None:
    wait_for(lambda: all(map(gone, children)))


def acknowledged(said: Path) -> list[tuple[int, str]]:
    """What a writer was told to be recorded; a line that the kill cut was never said."""
    whole = said.read_text().split("\n")[:-1] if said.exists() else []
    return [(int(number), evidence_id) for number, evidence_id in map(str.split, whole)]


@pytest.mark.timeout(60 + KILLS * 4)
@pytest.mark.parametrize("fsync", ["always", "never"])
def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path, fsync: str) -> None:
    """One to four sessions at once, killed at a random moment, again and again on the same journals."""
    chance = random.Random(7)
    nursery = Nursery(fsync)
    done: dict[str, dict[int, str]] = {f"s{it}": {} for it in range(4)}
    killed = torn = 0
    try:
        while killed < KILLS // 2:
            sessions = chance.sample(sorted(done), chance.randrange(1, 5))
            said = {name: tmp_path / f"said{killed}-{name}" for name in sessions}
            first = {name: max(done[name], default=-1) + 1 for name in sessions}
            children = [nursery.start(tmp_path, name, first[name], said[name]) for name in sessions]
            # Some are killed while they open, most somewhere between two acknowledgements.
            if chance.random() < 0.8:
                wanted, watched = chance.randrange(0, 25), said[sessions[0]]
                wait_until_said(watched, wanted)
            for child in children:
                time.sleep(chance.random() * 0.002)  # a moment of its own for each
                os.kill(child, signal.SIGKILL)
            wait_until_gone(children)
            killed += len(children)
            for name in sessions:
                done[name].update(acknowledged(said[name]))
                torn += check(tmp_path, name, done[name])
    finally:
        nursery.close()
    assert sum(map(len, done.values())) > KILLS
    for name, told in done.items():
        if not told:
            continue
        with journalled(tmp_path, name) as (store, journal):
            expected = kept(store, name)
        found = verify(journal.path)
        assert (found.status, found.events) == ("holds", len(expected))
        with Store.open(tmp_path / "back") as back:
            restore(journal.path, back)
            assert kept(back, name) == expected
            assert back.evidence.has(told.values()) == set(told.values())


def check(root: Path, session: str, told: dict[int, str]) -> bool:
    """A journal as the kill left it: what was acknowledged is in it, the chain holds. Whether its end is torn."""
    found = list((root / "j").glob(f"{session}.none*.jsonl")) if (root / "j").exists() else []
    if not found:
        assert told == {}
        return False
    report = verify(min(found))
    assert report.status in ("holds", "torn"), report.problems
    added = {
        it[it.index(b'"adds":"') + 8 :][:68] for part in found for it in lines(part) if b'"adds":"' in it
    }
    assert {it.encode() for it in told.values()} <= added
    return report.status == "torn"


def test_records_are_the_same_ones(tmp_path: Path) -> None:
    """The ids that the writers said are those that are computed here."""
    nursery = Nursery("batch")
    said = tmp_path / "said"
    child = nursery.start(tmp_path, "s9", 3, said)
    wait_until_said(said, 3)
    os.kill(child, signal.SIGKILL)
    wait_until_gone([child])
    nursery.close()
    assert acknowledged(said)[:3] == [(number, seal(record(number)).id) for number in (3, 4, 5)]
