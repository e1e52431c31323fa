"""A run as its log tells it: what it was given, what it was told, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, cast

import orjson

from affidavit.errors import FailedError, NotFoundError, VerificationError
from affidavit.evidence import values
from affidavit.evidence.canonical import CanonicalJson, canonical
from affidavit.evidence.record import BlobRef, Failure, JsonValue, Record, Success
from affidavit.runtime.ledger import shown
from affidavit.runtime.memory.mentions import mentions
from affidavit.runtime.memory.preamble import KINDS, digest_of, entries_of
from affidavit.runtime.memory.results import Results
from affidavit.runtime.program import (
    MAX_TIMERS,
    RESULTS,
    CallFailed,
    CallResult,
    CallReturned,
    Limits,
    PreambleEntry,
    Program,
    ScriptCall,
)
from affidavit.runtime.replay.asides import Said, asides_of
from affidavit.runtime.run import RunView, runs_of
from affidavit.store import Store, StoredEvent
from affidavit.store.event_kinds import sound

__all__ = ["Recording", "Site", "Taken", "find_run", "read_recording", "site_of", "source_of"]

Site: TypeAlias = tuple[str, int, int, int]
"""Of a call: its path, line, column and iteration."""

_ENDED: Final = ("succeeded", "failed")
_WHY: Final[Mapping[str, str]] = {
    "running": "is not settled",
    "rejected": "was rejected, so it never ran",
    "timed-out": "was stopped at its time limit: how far it came was a matter of time",
    "cancelled": "was cancelled: how far it came was a matter of time",
    "orphaned": "lost its process, so how it ended is not known",
}
_ENTRY: Final = ("operation", "contract", "status", "line", "duration_ms", "code")
_HOST: Final = ("store-", "journal-", "engine-unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A call that the run made, as its `call-recorded` event tells it.

    Attributes:
        site: where it was made.
        given: digest of its arguments as the script gave them.
        number: its place among the dispatched calls, from 1; 0 for one that was refused before.
        finished: whether its end was seen.
        evidence_id: its record.
        started: the moment of its start, seconds since the epoch.
        at: that of its end.
        entry: how `df.calls()` lists it.
        delivery: what the script was told beside what the record holds (see `ledger.delivery_of`).
    """

    site: Site
    given: str
    number: int
    finished: bool
    evidence_id: str
    started: float
    at: float
    entry: Mapping[str, JsonValue]
    delivery: Mapping[str, JsonValue]

    def result(self, store: Store) -> CallResult:
        """What the script was told.

        Raises:
            VerificationError: `store-damaged`, `blob-damaged`, `blob-missing`: the record does not hold any more.
        """
        record = store.evidence.get(self.evidence_id)
        delivery = cast("dict[str, Any]", self.delivery)
        if isinstance(record.outcome, Failure):
            return CallFailed(
                code=record.outcome.code,
                message=values.decode(delivery["message"]),
                hint=values.decode(delivery["hint"]),
                retryable=delivery["retryable"],
                details={**record.outcome.details, "evidence_id": self.evidence_id},
                completed=self.at,
            )
        json = shown(CanonicalJson(_content(record, store)), delivery, self.evidence_id)
        return CallReturned(json=json, completed=self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything that a replay of a run needs.

    Attributes:
        view: the run and its settlement.
        session: its session.
        program: what was run.
        engine: the engine that ran it.
        python: version of Python that ran it.
        calls: its calls in the order in which the script was told of their ends.
        asides: what the session answered itself, in order.
        results: the rows that it found.
    """

    view: RunView
    session: str
    program: Program
    engine: str
    python: str
    calls: tuple[Taken, ...]
    asides: tuple[Said, ...]
    results: Results


def site_of(call: ScriptCall) -> Site:
    """Where a call stands."""
    return call.path, call.line, call.column, call.iteration


def find_run(store: Store, name: str, *, session: str | None = None) -> str:
    """The id of a run by its id, by a prefix that only one has, or by its number in a session.

    Raises:
        NotFoundError: `run-not-found`.
    """
    if session is None and store.events.last(run=name) is not None:
        return name
    found: set[str] = set()
    for event in sound(store.events.walk(("run-requested",))):
        if event.run is None or (session is not None and event.session != session):
            continue
        number = cast("dict[str, Any]", event.data)["number"]
        if event.run.startswith(name) or (session is not None and str(number) == name):
            found.add(event.run)
    if len(found) != 1:
        problem = "is ambiguous" if found else "is not here"
        hint = "`affidavit session show SESSION` lists its runs; a number needs its session"
        raise NotFoundError("run-not-found", f"run {name!r} {problem}", hint=hint)
    return found.pop()


def source_of(events: Sequence[StoredEvent]) -> str:
    """The script of a run as it was run: after its repair, if it was repaired."""
    requested, started = _of_kind(events, "run-requested"), _of_kind(events, "run-started")
    source = started.get("source", requested["source"])
    assert isinstance(source, str)
    return source


def read_recording(store: Store, run_id: str) -> Recording:
    """Read a run from the log.

    Raises:
        FailedError: `replay-impossible`, when it did not end by itself or the log lacks something.
        NotFoundError: `run-not-found`.
        VerificationError: what the log refers to is damaged.
    """
    events = store.events.of_run(run_id)
    views = runs_of(events)
    if not views:
        raise NotFoundError("run-not-found", f"run {run_id!r} is not here", hint="`affidavit session list`")
    [view] = views
    _require_end(view)
    requested, started = _of_kind(events, "run-requested"), _of_kind(events, "run-started")
    begun = next(event for event in events if event.kind == "run-started")
    session, until = begun.session, begun.seq
    asides = cast("list[dict[str, Any]] | None", view.settled.get("asides", []))
    recorded = [event for event in events if event.kind == "call-recorded"]
    if "tree" not in started or any("given" not in cast("dict[str, Any]", it.data) for it in recorded):
        _impossible(view, "was recorded by a version that did not keep what a replay needs")
    if asides is None:
        _impossible(view, "asked the session too often for every reply to be kept")
    timers = cast("list[int]", view.settled.get("timers", []))
    if len(timers) > MAX_TIMERS:
        _impossible(view, "used more timers than were written down")
    starts = {_number(event): event.at for event in events if event.kind == "call-started"}
    source, inputs = source_of(events), cast("dict[str, JsonValue]", requested["inputs"])
    preamble = _preamble(store, session, until, cast("str | None", started.get("preamble")))
    results = Results(store, session, until=until)
    named = None if RESULTS in inputs else mentions(source, *(entry.code for entry in preamble))
    program = Program(
        source=source,
        tree=orjson.loads(store.blobs.get(cast("dict[str, str]", started["tree"])["digest"])),
        inputs=inputs,
        clock=cast("float", started["clock"]),
        seed=cast("int", started["seed"]),
        limits=Limits(**cast("dict[str, Any]", requested.get("limits", {}))),
        preamble=preamble,
        results=results.earlier(named) if named is not None else None,
        timers=tuple(timers),
    )
    return Recording(
        view=view,
        session=session,
        program=program,
        engine=view.engine,
        python=str(started.get("python", "")),
        calls=tuple(_taken(event, starts) for event in recorded),
        asides=tuple(asides_of(asides)),
        results=results,
    )


def _require_end(view: RunView) -> None:
    if view.status not in _ENDED:
        _impossible(view, _WHY[view.status])
    code = str(cast("Mapping[str, JsonValue]", view.settled.get("error") or {}).get("code", ""))
    if not view.engine:
        _impossible(view, "never started")
    if code.startswith(_HOST):
        _impossible(view, f"was ended by its host ({code}), not by its script")


def _impossible(view: RunView, why: str) -> NoReturn:
    raise FailedError(
        "replay-impossible",
        f"run {view.number} ({view.run_id}) {why}",
        hint="a run that succeeded or failed by itself can be replayed",
        details={"status": view.status},
    )


def _of_kind(events: Sequence[StoredEvent], kind: str) -> Mapping[str, JsonValue]:
    """The data of the first event of a kind; empty where there is none."""
    for event in events:
        if event.kind == kind:
            return cast("dict[str, JsonValue]", event.data)
    return {}


def _preamble(store: Store, session: str, until: int, digest: str | None) -> tuple[PreambleEntry, ...]:
    """The entries that the run found: as of its start, or shortly before, when another client changed them then."""
    if digest is None:
        return ()
    events = store.events.of_kinds(session, KINDS, until=until)
    for many in range(len(events), 0, -1):
        entries = entries_of(events[:many])
        if digest_of(entries) == digest:
            return entries
    raise VerificationError(
        "store-damaged",
        f"the log of session {session} does not hold the preamble of the run",
        hint="restore the session from its journal into a new workspace",
    )


def _site(data: JsonValue) -> Site:
    of = cast("dict[str, Any]", data)
    return of["operation"], of["line"], of["column"], of["iteration"]


def _number(event: StoredEvent) -> int:
    return cast("dict[str, Any]", event.data)["call"]


def _taken(event: StoredEvent, starts: Mapping[int, float]) -> Taken:
    data = cast("dict[str, Any]", event.data)
    evidence_id = event.evidence_id or ""
    return Taken(
        site=_site(data),
        given=data["given"],
        number=data["call"],
        finished=data["status"] != "unfinished",
        evidence_id=evidence_id,
        started=starts.get(data["call"], event.at),
        at=event.at,
        entry={name: data[name] for name in _ENTRY} | {"evidence_id": evidence_id},
        delivery=data.get("delivery", {}),
    )


def _content(record: Record, store: Store) -> bytes:
    """The result of a record as canonical JSON."""
    assert isinstance(record.outcome, Success)
    result = record.outcome.result
    return store.blobs.get(result.digest) if isinstance(result, BlobRef) else canonical(result)
