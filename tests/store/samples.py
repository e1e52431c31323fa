"""Events and records for tests of the store, and processes that use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from affidavit.evidence.record import Producer, Record, Success
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.unknowns import Unknowns

PYTHON = [sys.executable, "-c"]


def event(kind: str = "noted", session: str = "s1", **changes: Any) -> Event:
    """An event at time 1.5, of a kind that no version knows: its data may be anything."""
    return replace(Event(kind=kind, session=session, data={}, at=1.5), **changes)


def record(number: int = 0, result: Any = None) -> Record:
    """A record of its own for each number."""
    return Record(
        kind="observation",
        operation="weather.forecast/1",
        parameters={"number": number},
        outcome=Success(result={"sunny": True} if result is None else result),
        producer=Producer(name="weather", version="1"),
        authority="live-source",
        confidence="observed",
    )


def sightings(store: Store, evidence_id: str) -> list[StoredEvent]:
    """Each time a record was seen, in order."""
    return [it for it in store.events.after(limit=10_000) if it.evidence_id == evidence_id]


def adopt(store: Store, revisions: Iterable[UnknownRevision], *, whole: bool = True) -> int:
    """Bring revisions from elsewhere into the register; how many were new."""
    return store.load(Unknowns(store).adopting(revisions, whole=whole))[0]


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python code in another process; `root` is the first argument as a path, `store` the module's classes."""
    head = (
        "import sys\nfrom pathlib import Path\nfrom affidavit.store import Event, Store\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom samples import event, record\n"
        "root = Path(sys.argv[1])\n"
    )
    return subprocess.Popen(
        [*PYTHON, head + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*processes: subprocess.Popen[str]) -> list[str]:
    """What the processes printed; all of them must have ended well."""
    ends = [process.communicate(timeout=60) for process in processes]
    for process, (_, errors) in zip(processes, ends, strict=True):
        assert process.returncode == 0, errors
    return [out for out, _ in ends]


def start_together(code: str, arguments: list[tuple[object, ...]]) -> list[subprocess.Popen[str]]:
    """Start processes that print a line when they are ready, and let them go on when all of them are."""
    processes = [start(code, *it) for it in arguments]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes
