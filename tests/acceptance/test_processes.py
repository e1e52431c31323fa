"""Several processes on one workspace, and processes that are killed at any moment."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.evidence.record import Success
from affidavit.runtime.run import runs_of
from affidavit.store import Store

# Runs scripts and says each value that a script received, with the id of the call's record, as soon as it is known.
WORKER = """
import asyncio, json, sys
from affidavit import Workspace
from affidavit.mounts.python import functions_namespace

root, session_id, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])

def ok(session: str, n: int) -> dict[str, str | int]:
    '''Returns what it was given.'''
    return {"session": session, "n": n, "text": "x" * 500}

def said(line: str) -> None:
    '''Tells the world that the script received a value.'''
    print(line, flush=True)

async def main():
    async with Workspace.open(root) as workspace:
        workspace.use(functions_namespace("t", [ok, said]))
        session = await workspace.session(session_id)
        for number in range(runs):
            run = await session.run(f'''
import json
for i in range(5):
    value = await df.tool.t.ok(session={session_id!r}, n={number} * 5 + i)
    await df.tool.t.said(line=json.dumps([value["n"], df.calls()[-1]["evidence_id"]]))
''')
            assert run.status == "succeeded", run.error

asyncio.run(main())
"""


def start(root: Path, session: str, runs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(root), session, str(runs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def received(process: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """What its scripts said that they received; a last line cut by the kill was never said."""
    out, _ = process.communicate()
    lines = [line for line in out.split("\n")[:-1] if line]
    return [(n, evidence_id) for n, evidence_id in map(json.loads, lines)]


def check(root: Path, session: str, said: list[tuple[int, str]]) -> None:
    """Every value that was received has its record, whole and under its id, and its event."""
    with Store.open(root) as store:
        recorded = {event.evidence_id for event in store.events.of_session(session)}
        for n, evidence_id in said:
            record = store.evidence.get(evidence_id)
            assert isinstance(record.outcome, Success)
            assert store.evidence.result(record)["n"] == n
            assert evidence_id in recorded


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    workers = {name: start(root, name, 8) for name in ("a", "b")}
    for name, process in workers.items():
        said = received(process)
        assert process.returncode == 0
        assert [n for n, _ in said] == list(range(40))
        check(root, name, said)
        with Store.open(root) as store:
            runs = runs_of(store.events.of_session(name))
            assert [(view.number, view.status, len(view.calls)) for view in runs] == [
                (number, "succeeded", 10) for number in range(1, 9)
            ]


@pytest.mark.parametrize("seed", range(8))
def test_a_process_killed_at_any_moment_loses_no_call(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "workspace"
    process = start(root, "k", 1000)
    assert process.stdout is not None
    head = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 60))]
    os.kill(process.pid, signal.SIGKILL)
    said = [(n, evidence_id) for n, evidence_id in map(json.loads, head)] + received(process)
    assert process.returncode == -signal.SIGKILL
    check(root, "k", said)
    with sqlite3.connect(root / "store.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    # The workspace opens, goes on, and settles what was lost without running it again.
    again = start(root, "k", 1)
    assert [n for n, _ in received(again)] == list(range(5))
    with Store.open(root) as store:
        runs = runs_of(store.events.of_session("k"))
    assert {view.status for view in runs[:-1]} <= {"succeeded", "orphaned"}
    assert runs[-1].status == "succeeded"
