"""The one door: every call of a script, a command line or a client passes here and becomes a record.

```
look up -> parse arguments -> policy -> log `call-started` -> operation -> record + log `call-recorded` -> value
```

The start of a call is durable before it is dispatched and its record before the value returns, so no
crash can lose a call that had an effect. A call whose end was never seen is recorded as unfinished.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from affidavit.errors import AffidavitError, FailedError, NotFoundError, RefusedError
from affidavit.evidence import values
from affidavit.evidence.canonical import CanonicalJson, freeze
from affidavit.evidence.identity import seal
from affidavit.evidence.record import Failure, JsonValue, Record, Unfinished
from affidavit.namespaces.names import suggest
from affidavit.namespaces.operation import Operation, Reply
from affidavit.policy import Decision, Grant, decide, within_budget
from affidavit.runtime.ledger import CallEntry, CallStatus, Ledger, delivery_of, failed, outcome_of, shown
from affidavit.runtime.program import CallResult, CallReturned, ScriptCall
from affidavit.runtime.recorder import Recorder
from affidavit.store import Store

__all__ = ["Broker"]


class Broker:
    """Dispatches the calls of one session.

    Args:
        store: where events and records go.
        session: id of the session whose log the calls belong to.
        operations: what may be called, by path below `df` (`db.app.modules.page`).
        grants: what a person permitted.
        now: the wall clock, seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        *,
        session: str,
        operations: Mapping[str, Operation],
        grants: Sequence[Grant] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._recorder = Recorder(store, session=session, now=now)
        self._operations = operations
        self._grants = tuple(grants)
        self._now = now

    async def call(self, call: ScriptCall, ledger: Ledger) -> CallResult:
        """Make one call and record it. A failure of the call is returned, not raised.

        Raises:
            VerificationError: the store cannot keep the record; the run must not go on.
            asyncio.CancelledError: the run ended; the call is recorded as unfinished first.
        """
        operation = self._operations.get(call.path)
        if operation is None:
            return failed(_unknown(call.path, self._operations), 0.0)
        started = self._now()
        number, parameters, end = await self._attempt(operation, call, ledger)
        result = CanonicalJson(b"null")
        if isinstance(end, Reply):
            try:
                result = freeze(end.value)
                if end.normalised is not None:
                    parameters = freeze(dict(end.normalised))
            except AffidavitError as error:
                end = FailedError("result-invalid", error.message, hint=error.hint, details=error.details)
        reply = end if isinstance(end, Reply) else Reply(value=None)
        record = Record(
            kind="observation",
            operation=operation.contract,
            parameters=parameters,
            outcome=outcome_of(end, result),
            producer=operation.producer,
            authority=operation.authority,
            confidence=operation.confidence,
            subject=reply.subject,
            parents=reply.parents,
            coverage=reply.coverage,
            limitations=reply.limitations,
        )
        delivery = delivery_of(end, operation)
        evidence_id, at = await self._keep(record, call, ledger, number, started, delivery)
        if end is None:
            raise asyncio.CancelledError
        if isinstance(end, AffidavitError):
            return failed(end, at, evidence_id)
        json = shown(result, delivery, evidence_id)
        ledger.result_bytes += len(json)
        return CallReturned(json=json, completed=at)

    async def _attempt(
        self, operation: Operation, call: ScriptCall, ledger: Ledger
    ) -> tuple[int, JsonValue, Reply | AffidavitError | None]:
        """Parse, decide and dispatch: the call's number, its parameters, and its end (None: cancelled)."""
        originals = {parameter.name: parameter.original for parameter in operation.parameters}
        parameters: JsonValue = {originals.get(name, name): value for name, value in call.arguments.items()}
        try:
            given = values.decode(parameters)
        except (
            AffidavitError
        ) as error:  # no value: the record keeps the JSON that was sent, as a value of its own
            return 0, values.encode(parameters), error
        try:
            arguments = operation.parse(given)
            parameters = freeze(arguments)
            _permit(within_budget(ledger.spent(self._now()), ledger.budget), "budget-exceeded")
            _permit(decide(call.path, operation.effect, self._grants), "call-refused")
        except AffidavitError as error:
            return 0, parameters, error
        ledger.dispatched += 1
        number = ledger.dispatched
        try:
            await self._recorder.started(
                call, operation, run=ledger.run, number=number, parameters=parameters
            )
        except asyncio.CancelledError:
            return number, parameters, None
        try:
            reply = await operation.handler(arguments)
            value = operation.convert(reply.value)
            return number, parameters, reply if value is reply.value else replace(reply, value=value)
        except AffidavitError as error:
            return number, parameters, error
        except asyncio.CancelledError:
            return number, parameters, None
        except Exception as error:  # a handler is foreign code: whatever it raises is the call's failure
            details = {"type": type(error).__name__, "message": str(error)}
            message = f"{call.path}: {type(error).__name__}: {error}"
            return number, parameters, FailedError("tool-failed", message, details=details)

    async def _keep(
        self,
        record: Record,
        call: ScriptCall,
        ledger: Ledger,
        number: int,
        started: float,
        delivery: Mapping[str, JsonValue],
    ) -> tuple[str, float]:
        sealed = seal(record)
        status: CallStatus = "ok"
        code = ""
        if isinstance(record.outcome, Failure):
            status, code = "failed", record.outcome.code
        elif isinstance(record.outcome, Unfinished):
            status = "unfinished"
        entry = CallEntry(
            operation=call.path,
            contract=record.operation,
            evidence_id=sealed.id,
            status=status,
            line=call.line,
            duration_ms=round((self._now() - started) * 1000, 3),
            code=code,
        )
        try:
            at = await self._recorder.recorded(
                call, entry, run=ledger.run, number=number, record=sealed, delivery=delivery
            )
        except asyncio.CancelledError:
            ledger.entries.append(entry)  # it was written before
            raise
        ledger.entries.append(entry)
        return sealed.id, at


def _permit(decision: Decision, code: str) -> None:
    if not decision.allowed:
        raise RefusedError(code, "; ".join(decision.reasons), hint=decision.hint)


def _unknown(path: str, operations: Mapping[str, Operation]) -> AffidavitError:
    near = suggest(path, operations)
    hint = f"did you mean {near}?" if near else "`affidavit describe` lists what there is"
    return NotFoundError("operation-unknown", f"there is no operation {path}", hint=hint)
