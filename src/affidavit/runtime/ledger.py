"""The calls of one run and what they have spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import orjson

from affidavit.errors import AffidavitError
from affidavit.evidence import values
from affidavit.evidence.canonical import CanonicalJson, canonical, digest
from affidavit.evidence.record import Failure, JsonValue, Outcome, Success, Unfinished
from affidavit.namespaces.operation import Operation, Reply
from affidavit.policy import Budget, Spent
from affidavit.runtime.program import CallFailed

__all__ = [
    "CallEntry",
    "CallStatus",
    "Ledger",
    "delivery_of",
    "failed",
    "given",
    "outcome_of",
    "shown",
]

CallStatus: TypeAlias = Literal["ok", "failed", "unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEntry:
    """One call as a run reports it. `code` is the error code of a failed call; `line` is 0 outside scripts."""

    operation: str
    contract: str
    evidence_id: str
    status: CallStatus
    line: int
    duration_ms: float
    code: str = ""

    def as_json(self) -> dict[str, JsonValue]:
        """The entry as doors and `df.calls()` show it."""
        return {
            "operation": self.operation,
            "contract": self.contract,
            "evidence_id": self.evidence_id,
            "status": self.status,
            "line": self.line,
            "duration_ms": self.duration_ms,
            "code": self.code,
        }


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The calls of one run so far. The only mutable part of a call; one run owns it.

    Attributes:
        run: the run's id, or None for a call that a person or client makes directly.
        budget: what the run may spend.
        started: when it started, seconds since the epoch.
        entries: the recorded calls in the order of their ends.
        dispatched: how many calls were let through to an operation.
        result_bytes: bytes of results handed over.
    """

    run: str | None
    budget: Budget
    started: float
    entries: list[CallEntry] = field(default_factory=list[CallEntry])
    dispatched: int = 0
    result_bytes: int = 0

    def spent(self, now: float) -> Spent:
        """What is spent at `now`, seconds since the epoch."""
        return Spent(calls=self.dispatched, result_bytes=self.result_bytes, seconds=now - self.started)


def outcome_of(end: Reply | AffidavitError | None, result: CanonicalJson) -> Outcome:
    """How a call ended, for its record: with `result`, with an error, or (None) without an end that was seen."""
    if end is None:
        return Unfinished()
    if isinstance(end, AffidavitError):
        return Failure(code=end.code, details=_details(end), message=end.message, hint=end.hint)
    return Success(result=result)


def _details(error: AffidavitError) -> dict[str, JsonValue]:
    try:
        return values.encode(values.soften(dict(error.details))[0])
    except (
        AffidavitError
    ) as unsupported:  # foreign code may put anything there; the failure is recorded all the same
        return {"unsupported": unsupported.message}


def given(arguments: Mapping[str, JsonValue]) -> str:
    """Digest of the arguments of a call as the script gave them, encoded, by Python name."""
    return digest(canonical(dict(arguments)))


def delivery_of(end: Reply | AffidavitError | None, operation: Operation) -> dict[str, JsonValue]:
    """What a caller is told beside what the record holds, for its event: enough to tell it again.

    Of a result: `evidence`, whether it shows its own evidence id, and `outside`, the members that the hash leaves out,
    by path. Of a failure: `message`, `hint` and `retryable`. Absent members are false or empty.
    """
    if isinstance(end, AffidavitError):
        told = values.encode([end.message, end.hint])  # text of foreign code may hold what JSON cannot
        return {"message": told[0], "hint": told[1], "retryable": end.retryable}
    found: dict[str, JsonValue] = {}
    if end is not None and operation.carries_evidence:
        found["evidence"] = True
    if end is not None and end.outside:
        found["outside"] = dict(end.outside)
    return found


def shown(result: CanonicalJson, delivery: Mapping[str, Any], evidence_id: str) -> bytes:
    """The result as the caller sees it: the hashed value plus what may not enter the hash."""
    if not delivery:
        return result.data
    whole: Any = result.value()
    if delivery.get("evidence"):
        whole["evidence_id"] = evidence_id
    for path, value in sorted(delivery.get("outside", {}).items()):
        *parents, last = path.split(".")
        at = whole
        for name in parents:
            at = at[name]
        at[last] = value
    return orjson.dumps(whole)


def failed(error: AffidavitError, completed: float, evidence_id: str = "") -> CallFailed:
    """A failure as a script receives it; `evidence_id` names the record that keeps it.

    Its details are in the order in which a log has them, so that they are the same when it is told again.
    """
    details: dict[str, JsonValue] = orjson.loads(canonical(_details(error)))
    return CallFailed(
        code=error.code,
        message=error.message,
        hint=error.hint,
        retryable=error.retryable,
        details=details | ({"evidence_id": evidence_id} if evidence_id else {}),
        completed=completed,
    )
