"""A workspace with many records: `ledger.py build WORKSPACE RECORDS SECONDS` or `ledger.py ask WORKSPACE ID ...`.

`build` adds records in bulk until there are enough or the seconds are over, and prints how many there are, how long it
took, the bytes of the database and some ids. `ask` prints how long it took to open the store and to get each record.

Of ten records one is an answer that rests on the nine before it, with a script of its own in its run's events.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import Coverage, Producer, Record, Subject, Success
from affidavit.store import Event, Store

BATCH = 1000
GROUP = 10
SAMPLES = 1000
SUBJECT = Subject(digest="sha256:" + sha256(b"application").hexdigest(), format="asar")
PRODUCER = Producer(name="affidavit.javascript", version="1")
RUNTIME = Producer(name="affidavit.runtime", version="1")


def observation(number: int) -> Sealed:
    path = f"src/components/part{number // 100:05d}/module{number:07d}.js"
    row = {
        "node_id": f"module:{number:016x}",
        "identity": {"key": path, "kind": "file"},
        "bytes": number * 37 % 65536,
        "status": "resolved",
    }
    coverage = Coverage(state="complete", selection="all files", examined=1, bounds={"files": 100_000})
    return seal(
        Record(
            kind="observation",
            operation="javascript.modules.get/1",
            parameters={"id": row["node_id"]},
            outcome=Success(result=row),
            producer=PRODUCER,
            authority="static-analysis",
            confidence="observed",
            subject=SUBJECT,
            coverage=coverage,
        )
    )


def answer(number: int, parents: tuple[str, ...], script: str) -> Sealed:
    return seal(
        Record(
            kind="derivation",
            operation=ANSWER,
            parameters={"evidence": list(parents)},
            outcome=Success(result={"status": "answered", "value": number}),
            producer=RUNTIME,
            authority="inference",
            confidence="derived",
            parents=parents,
            script="sha256:" + sha256(script.encode()).hexdigest(),
        )
    )


def entries() -> Iterator[tuple[Event, Sealed | None]]:
    for group in range(1 << 40):
        session, run, at = f"session-{group // 1000}", f"run-{group}", 1.7e9 + group
        script = f"# run {group}\n" + "row = await df.db.app.modules.get(id=some)\n" * 10
        yield Event(kind="run-requested", session=session, run=run, data={"source": script}, at=at), None
        parents: list[str] = []
        for number in range(group * GROUP, group * GROUP + GROUP - 1):
            sealed = observation(number)
            parents.append(sealed.id)
            yield Event(kind="call-recorded", session=session, run=run, data={"call": number}, at=at), sealed
        sealed = answer(group, tuple(parents), script)
        yield Event(kind="answer-given", session=session, run=run, data={"run": run}, at=at), sealed


def build(root: Path, wanted: int, seconds: float) -> dict[str, object]:
    started = time.monotonic()
    chance = random.Random(7)
    samples: list[str] = []
    made = 0
    source = entries()
    with Store.open(root) as store:
        while made < wanted and time.monotonic() - started < seconds:
            batch: list[tuple[Event, Sealed | None]] = []
            fresh: list[str] = []
            while len(fresh) < min(BATCH, wanted - made):
                entry = next(source)
                batch.append(entry)
                if entry[1] is not None:
                    fresh.append(entry[1].id)
            store.append_many(batch)
            made += len(fresh)
            samples += chance.sample(fresh, min(len(fresh), SAMPLES * BATCH // wanted + 1))
    seconds = time.monotonic() - started
    size = sum(path.stat().st_size for path in root.iterdir() if path.is_file())
    return {
        "records": made,
        "seconds": seconds,
        "bytes": size,
        "ids": chance.sample(samples, min(SAMPLES, made)),
    }


def ask(root: Path, names: list[str]) -> dict[str, object]:
    clock = time.perf_counter
    started = clock()
    store = Store.open(root, create=False)
    opened = clock() - started
    gets: list[float] = []
    with store:
        for name in names:
            started = clock()
            store.evidence.get(name)
            gets.append(clock() - started)
    return {"open": opened, "gets": gets}


mode, folder, *rest = sys.argv[1:]
made = build(Path(folder), int(rest[0]), float(rest[1])) if mode == "build" else ask(Path(folder), rest)
sys.stdout.write(json.dumps(made) + "\n")
