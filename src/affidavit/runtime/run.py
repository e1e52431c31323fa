"""One run of a script: its report, and what the session's log says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from affidavit.errors import NotFoundError, RejectedError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.engine import Choice, Refusal
from affidavit.runtime.ledger import CallEntry
from affidavit.runtime.program import RunOutcome
from affidavit.store import StoredEvent

__all__ = [
    "Run",
    "RunStatus",
    "RunView",
    "refused",
    "rejection",
    "resolve_run",
    "runs_of",
    "script_error",
    "unsupported",
]

RunStatus: TypeAlias = Literal["succeeded", "failed", "rejected", "timed-out", "cancelled", "orphaned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a script.

    Attributes:
        run_id: unique id of the run.
        number: its number in the session, from 1.
        session_id: the session.
        status: how it ended; a `rejected` script never started.
        engine: the engine that ran it, with `engine_reason` saying why that one.
        has_value: whether the script returned anything.
        value: its value, encoded JSON; `data` decodes it.
        answer: the envelope of `df.answer`, or None.
        stdout: what it printed; `stdout_cut` characters were dropped at the limit.
        error: code, type, message, line, column, traceback, hint, details; or None.
        check: `clean`, `advised`, `rejected` or `unchecked` (with its reason in `check_reason`).
        diagnostics: findings of the check, each line, column, rule, message, blocking, suggestion.
        calls: every call that was made, with its evidence id, also where the run failed.
        notes: repairs and conversions that were made.
    """

    run_id: str
    number: int
    session_id: str
    status: RunStatus
    engine: str = ""
    engine_reason: str = ""
    has_value: bool = False
    value: JsonValue = None
    answer: Mapping[str, JsonValue] | None = None
    stdout: str = ""
    stdout_cut: int = 0
    error: Mapping[str, JsonValue] | None = None
    check: str = ""
    check_reason: str = ""
    diagnostics: tuple[Mapping[str, JsonValue], ...] = ()
    calls: tuple[CallEntry, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The value as Python sees it."""
        return values.decode(self.value)

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit run --json`."""
        return {
            "run_id": self.run_id,
            "number": self.number,
            "session_id": self.session_id,
            "status": self.status,
            "engine": self.engine,
            "engine_reason": self.engine_reason,
            "has_value": self.has_value,
            "value": values.plain(self.value),
            "answer": values.plain(self.answer),
            "stdout": self.stdout,
            "stdout_cut": self.stdout_cut,
            "error": self.error,
            "check": self.check,
            "check_reason": self.check_reason,
            "diagnostics": list(self.diagnostics),
            "calls": [entry.as_json() for entry in self.calls],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as the log tells it: a pure reduction of its events.

    `started` holds the calls whose start was logged and whose end was not.
    """

    run_id: str
    number: int
    requested: float
    status: RunStatus | Literal["running"] = "running"
    engine: str = ""
    settled: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    started: tuple[StoredEvent, ...] = ()
    calls: tuple[StoredEvent, ...] = ()


def runs_of(events: Iterable[StoredEvent]) -> list[RunView]:
    """Reduce a session's events to its runs, in order of request. Pure: the same events give the same runs."""
    parts: dict[str, _Parts] = {}
    for event in events:
        if event.run is None:
            continue
        if event.kind == "run-requested":
            number = cast("dict[str, Any]", event.data)["number"]
            parts[event.run] = _Parts(requested=event, number=number)
        elif event.run in parts:
            parts[event.run].add(event)
    return [part.view(run_id) for run_id, part in parts.items()]


@dataclass(slots=True, kw_only=True)
class _Parts:
    """What the reduction has seen of one run; mutable, so that ten thousand calls reduce in linear time."""

    requested: StoredEvent
    number: int
    engine: str = ""
    settled: Mapping[str, Any] = field(default_factory=dict[str, Any])
    open: dict[int, StoredEvent] = field(default_factory=dict[int, StoredEvent])
    calls: list[StoredEvent] = field(default_factory=list[StoredEvent])

    def add(self, event: StoredEvent) -> None:
        data = cast("dict[str, Any]", event.data)
        match event.kind:
            case "run-started":
                self.engine = data["engine"]
            case "call-started":
                self.open[data["call"]] = event
            case "call-recorded":
                self.open.pop(data["call"], None)
                self.calls.append(event)
            case "run-settled":
                self.settled = data
            case _:
                pass

    def view(self, run_id: str) -> RunView:
        return RunView(
            run_id=run_id,
            number=self.number,
            requested=self.requested.at,
            status=self.settled.get("status", "running"),
            engine=self.engine,
            settled=self.settled,
            started=tuple(self.open.values()),
            calls=tuple(self.calls),
        )


def rejection(run: Run) -> dict[str, JsonValue]:
    """The error of a run that the check refused: its first blocking finding."""
    blocking = [diagnostic for diagnostic in run.diagnostics if diagnostic["blocking"]]
    first = blocking[0]
    code = "script-syntax" if first["rule"] == "syntax" else "script-rejected"
    error = RejectedError(
        code,
        f"line {first['line']}: {first['message']}",
        hint=f"did you mean {first['suggestion']}?" if first.get("suggestion") else "correct it; nothing ran",
        details={"findings": len(blocking)},
    )
    return error.as_json() | {"line": first["line"], "column": first["column"]}


def refused(choice: Choice, refusal: Refusal) -> dict[str, JsonValue]:
    """A construct that the engine cannot run, as a finding."""
    return {
        "line": refusal.line,
        "column": refusal.column,
        "rule": f"{choice.engine.name}:{refusal.construct}",
        "message": refusal.message,
        "blocking": True,
        "suggestion": "use --engine cpython",
    }


def unsupported(choice: Choice, first: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The error of a run that the engine refused."""
    error = RejectedError(
        "engine-unsupported",
        f"line {first['line']}: {choice.engine.name} cannot run this as Python means it: {first['message']}",
        hint="use --engine cpython, or write it without that construct; nothing ran",
    )
    return error.as_json() | {"line": first["line"], "column": first["column"]}


def script_error(outcome: RunOutcome) -> dict[str, JsonValue] | None:
    """The error that a script ended with, or None."""
    if outcome.error is None:
        return None
    error = outcome.error
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": False,
        "details": dict(error.details),
        "type": error.type,
        "line": error.line,
        "column": error.column,
        "traceback": error.traceback,
    }


def resolve_run(views: Sequence[RunView], name: str) -> RunView:
    """Find a run by id, unique prefix of it, or number.

    Raises:
        NotFoundError: `run-not-found`.
    """
    found = [view for view in views if view.run_id.startswith(name) or name == str(view.number)]
    if len(found) != 1:
        problem = "is ambiguous" if found else "is not in this session"
        raise NotFoundError(
            "run-not-found", f"run {name!r} {problem}", hint="`affidavit session show` lists its runs"
        )
    return found[0]
