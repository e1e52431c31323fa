"""One run of a script: its report, and what the session's log says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from affidavit.errors import AffidavitError, FailedError, NotFoundError, RejectedError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.engine import Choice, Refusal
from affidavit.runtime.ledger import CallEntry
from affidavit.runtime.program import RESULTS, Limits, RunOutcome
from affidavit.runtime.typecheck.verdict import SourceText
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.event_kinds import fault

__all__ = [
    "Ending",
    "Request",
    "Run",
    "RunStatus",
    "RunView",
    "ending",
    "refused",
    "rejection",
    "resolve_run",
    "runs_of",
    "script_digest",
    "script_error",
    "settlement",
    "unsupported",
]

RunStatus: TypeAlias = Literal["succeeded", "failed", "rejected", "timed-out", "cancelled", "orphaned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A script that a client wants run, as `run-requested` keeps it.

    Attributes:
        source: the script as it was given.
        inputs: its inputs by name, encoded.
        engine: `auto` or an engine's name.
        limits: bounds of the run.
        derived_from: the run whose script it varies, and how (see `replay.reuse`); or None.
    """

    source: str
    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    engine: str = "auto"
    limits: Limits = field(default_factory=Limits)
    derived_from: Mapping[str, JsonValue] | None = None

    def as_event(self, number: int) -> dict[str, JsonValue]:
        """The data of the event, for the run of this number."""
        data: dict[str, JsonValue] = {
            "source": self.source,
            "script": script_digest(self.source),
            "inputs": dict(self.inputs),
            "engine": self.engine,
            "limits": asdict(self.limits),
            "number": number,
        }
        return data if self.derived_from is None else data | {"derived_from": dict(self.derived_from)}


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
        diagnostics: findings of the check, each line, column, rule, message, blocking, suggestion. Lines and columns
            count from 1, columns in characters; those of `error` too.
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

    @classmethod
    def of(cls, view: RunView, *, session: str, store: Store) -> Run:
        """The report of a run that is settled, as it was given then.

        Raises:
            VerificationError: `store-damaged`, when the bytes of a large value are.
        """
        settled: Mapping[str, Any] = view.settled
        given = {name: settled[name] for name in _REPORTED if name in settled}
        given |= {name: tuple(settled[name]) for name in ("diagnostics", "notes") if name in settled}
        return cls(
            run_id=view.run_id,
            number=view.number,
            session_id=session,
            status=settled["status"],
            value=view.value(store),
            calls=tuple(_entry(event) for event in view.calls),
            **given,
        )


_REPORTED: Final = (
    "engine",
    "engine_reason",
    "has_value",
    "answer",
    "stdout",
    "stdout_cut",
    "error",
    "check",
    "check_reason",
)


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

    def value(self, store: Store) -> JsonValue:
        """What the run returned, encoded; a large value is read from its blob.

        Raises:
            VerificationError: `store-damaged`.
        """
        blob: Mapping[str, Any] | None = cast("Mapping[str, Any] | None", self.settled.get("value_blob"))
        return self.settled.get("value") if blob is None else orjson.loads(store.blobs.get(blob["digest"]))


def settlement(session: str, run: str, data: Mapping[str, JsonValue], at: float) -> Event:
    """The one event that settles a run: its key keeps a second from being appended."""
    return Event(kind="run-settled", session=session, run=run, at=at, data=dict(data), key=f"settled:{run}")


def script_digest(source: str) -> str:
    """Digest of a script's text, as requests and answers name it."""
    return "sha256:" + hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


def _entry(event: StoredEvent) -> CallEntry:
    data = cast("dict[str, Any]", event.data)
    return CallEntry(
        operation=data["operation"],
        contract=data["contract"],
        evidence_id=event.evidence_id or "",
        status=data["status"],
        line=data["line"],
        duration_ms=data["duration_ms"] or 0.0,
        code=data["code"],
    )


def runs_of(events: Iterable[StoredEvent]) -> list[RunView]:
    """Reduce a session's events to its runs, in order of request. Pure: the same events give the same runs."""
    parts: dict[str, _Parts] = {}
    for event in events:
        if event.run is None or fault(event):
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


def refused(choice: Choice, refusal: Refusal, source: str) -> dict[str, JsonValue]:
    """A construct that the engine cannot run, as a finding."""
    return {
        "line": refusal.line,
        "column": SourceText(source).column(refusal.line, refusal.column),
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


def script_error(outcome: RunOutcome, source: str) -> dict[str, JsonValue] | None:
    """The error that a script ended with, or None; its column counts as those of findings do."""
    if outcome.error is None:
        return None
    error = outcome.error
    placed = error.line is not None and error.column is not None
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": False,
        "details": dict(error.details),
        "type": error.type,
        "line": error.line,
        "column": SourceText(source).column(error.line or 1, error.column or 0) if placed else None,
        "traceback": error.traceback,
    }


_ENDS: Final[Mapping[str, RunStatus]] = {
    "finished": "succeeded",
    "timed-out": "timed-out",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a script ended: a value or an error, or neither."""

    status: RunStatus
    value: JsonValue
    error: Mapping[str, JsonValue] | None


def ending(outcome: RunOutcome, source: str, *, fatal: AffidavitError | None = None) -> Ending:
    """What an engine's outcome means for the run of this script. `fatal` is why the host stopped it, if it did."""
    status: RunStatus = _ENDS.get(outcome.reason, "failed")
    error = fatal.as_json() if fatal is not None else script_error(outcome, source)
    if error is None and outcome.unawaited:
        error = _not_awaited(*outcome.unawaited[0])
    if error is not None and status == "succeeded":
        status = "failed"
    # A last expression that is None, such as that of a call for its effect, is no value.
    value = orjson.loads(outcome.value) if outcome.value and status == "succeeded" else None
    return Ending(status=status, value=value, error=error)


def _not_awaited(path: str, line: int) -> dict[str, JsonValue]:
    called = "a method of results[...]" if path == RESULTS else f"df.{path}"
    error = FailedError(
        "call-not-awaited",
        f"{called} on line {line} was called and never awaited, so it did not run",
        hint="await results[0].load()" if path == RESULTS else f"await {called}(...)",
    )
    return error.as_json() | {"line": line}


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
