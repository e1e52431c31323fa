"""Runs whose worker is gone: settled as orphaned with what is known of them, and never run again by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from affidavit.evidence.record import JsonValue, Producer, Record, Unfinished
from affidavit.runtime.run import RunView, runs_of, settlement
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.event_kinds import sound

__all__ = ["open_runs", "orphan"]

_FIRST: Final = 4


def open_runs(store: Store, session: str) -> list[RunView]:
    """The runs of a session that were requested and are not settled, in the order of their requests.

    Turns are had in that order, and whoever has one has settled those that were lost before it. So none is open before
    one that had its turn and is settled, and only the end of the log is read.
    """
    many = _FIRST
    while True:
        requests = store.events.of_kinds(session, ("run-requested",), newest=many)
        found: list[RunView] = []
        for requested in reversed([*sound(requests)]):
            view = _view(store, requested)
            if view.status == "running":
                found.append(view)
            elif view.engine or view.status == "rejected":
                return found[::-1]
        if len(requests) < many:
            return found[::-1]
        many *= 4


def orphan(store: Store, session: str, view: RunView, now: Callable[[], float]) -> None:
    """Settle a run whose process is gone. Its calls without an end are recorded as unfinished."""
    for started in view.started:
        _unfinished(store, session, view, started, now)
    data: dict[str, JsonValue] = {
        "number": view.number,
        "status": "orphaned",
        "engine": view.engine,
        "has_value": False,
        "error": _error(view),
    }
    store.append(settlement(session, view.run_id, data, now()))


def _view(store: Store, requested: StoredEvent) -> RunView:
    run = requested.run or ""
    settled = store.events.last(requested.session, run=run, kind="run-settled")
    if settled is None:
        return runs_of(store.events.of_run(run))[0]
    started = store.events.last(requested.session, run=run, kind="run-started")
    return runs_of([requested, *([started] if started is not None else []), settled])[0]


def _unfinished(
    store: Store, session: str, view: RunView, started: StoredEvent, now: Callable[[], float]
) -> None:
    data = cast("dict[str, Any]", started.data)
    name, version = data["producer"]
    record = Record(
        kind="observation",
        operation=data["contract"],
        parameters=data["parameters"],
        outcome=Unfinished(),
        producer=Producer(name=name, version=version),
        authority=data["authority"],
        confidence=data["confidence"],
    )
    kept = {key: data[key] for key in ("operation", "line", "column", "iteration", "call", "contract")}
    kept |= {"status": "unfinished", "code": "", "duration_ms": None}
    event = Event(kind="call-recorded", session=session, run=view.run_id, at=now(), data=kept)
    store.append(event, record=record)


def _error(view: RunView) -> dict[str, JsonValue]:
    """Why the run has no value, and whether something outside may have happened."""
    lost = [cast("dict[str, Any]", event.data) for event in view.started]
    effective = [data for data in lost if data.get("effect") != "read"]
    if not view.engine:
        message, hint = "its client went away before the script started; no call was made", "run it again"
    elif effective:
        places = ", ".join(f"df.{data['operation']} on line {data['line']}" for data in effective)
        message = f"its process ended during {places}, which may have had an effect outside"
        hint = "find out whether it had before you run the script again"
    else:
        made = len(view.calls) + len(lost)
        message = f"its process ended before the script did; {made} calls were made and are recorded"
        hint = (
            "calls that write may have been made: read them before you run it again"
            if made
            else "run it again"
        )
    return {
        "code": "run-orphaned",
        "message": message,
        "hint": hint,
        "retryable": False,
        "details": {
            "calls": len(view.calls),
            "unfinished": [f"{data['operation']}:{data['line']}" for data in lost],
            "effects_possible": bool(effective),
        },
    }
