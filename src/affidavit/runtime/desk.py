"""Where the calls of one run arrive: the session's own calls are answered here, all others go through the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

import orjson

from affidavit.errors import AffidavitError, RejectedError
from affidavit.evidence.record import JsonValue
from affidavit.runtime.answer import Answer, read_answer
from affidavit.runtime.broker import Broker
from affidavit.runtime.ledger import Ledger, failed
from affidavit.runtime.program import RESULTS, CallResult, CallReturned, RunOutcome, ScriptCall
from affidavit.runtime.replay.asides import Asides
from affidavit.runtime.unknowns import Inquiry, is_refusal
from affidavit.store import Store

__all__ = ["Aside", "Desk"]

Aside: TypeAlias = Callable[[Mapping[str, JsonValue]], Awaitable[CallResult]]
"""Answers a call that is no operation and is not recorded, from its arguments."""


class Desk:
    """Serves the calls of one run: the session's own calls, everything else through the broker.

    `own` answers further calls of the session's own, by path: its earlier results and its preamble.

    A failure of the store ends the run: nothing may run on whose evidence cannot be kept.
    """

    def __init__(
        self,
        broker: Broker,
        ledger: Ledger,
        *,
        store: Store,
        script: str,
        inquiry: Inquiry,
        now: Callable[[], float],
        on_call: Callable[[ScriptCall], None] | None,
        own: Mapping[str, Aside] | None = None,
    ) -> None:
        self.ledger = ledger
        self.answer: Answer | None = None
        self.fatal: AffidavitError | None = None
        self.asides = Asides()
        self._broker = broker
        self._store = store
        self._script = script
        self._inquiry = inquiry
        self._now = now
        self._on_call = on_call
        self._own = own or {}
        self._running: asyncio.Task[RunOutcome] | None = None

    def begin(self, running: Coroutine[Any, Any, RunOutcome]) -> None:
        """Let the engine run."""
        self._running = asyncio.create_task(running)

    async def outcome(self) -> RunOutcome:
        """What the engine says at its end; it is stopped when a record could not be kept."""
        assert self._running is not None
        try:
            return await self._running
        except asyncio.CancelledError:
            if self.fatal is None:
                raise
            return RunOutcome(reason="error")

    async def close(self) -> None:
        """Stop the engine where it still runs, and wait until it has."""
        running = self._running
        if running is None:
            return
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # somebody else was told, or nobody wants to know

    async def handle(self, call: ScriptCall) -> CallResult:
        """Answer one call of the script."""
        if self._on_call is not None:
            self._on_call(call)
        try:
            if call.path == RESULTS:
                return await self._own[RESULTS](call.arguments)
            said = await self._said(call)
            if said is None:
                return await self._broker.call(call, self.ledger)
            return self.asides.keep(call, said, entries=len(self.ledger.entries))
        except AffidavitError as error:
            self.fatal = error
            if self._running is not None:
                self._running.cancel()
            raise

    async def _said(self, call: ScriptCall) -> CallResult | None:
        """What the session answers itself, or None where the call is an operation."""
        match call.path:
            case "answer":
                return self._answered(call)
            case "unknown":
                return self._asked(call)
            case "calls":
                return self._returned([entry.as_json() for entry in self.ledger.entries])
            case "budget":
                return self._returned(self._budget())
            case path if path in self._own:
                return await self._own[path](call.arguments)
            case _:
                return None

    def _answered(self, call: ScriptCall) -> CallResult:
        try:
            if self.answer is not None:
                raise RejectedError(
                    "answer-invalid",
                    "df.answer was called already",
                    hint="one answer a run: collect, then answer",
                )
            self.answer = read_answer(
                call.arguments, entries=self.ledger.entries, store=self._store, script=self._script
            )
        except AffidavitError as error:
            return failed(error, 0.0)
        return self._returned(None)

    def _asked(self, call: ScriptCall) -> CallResult:
        try:
            return self._returned(self._inquiry.ask(call.arguments))
        except AffidavitError as error:
            if not is_refusal(error):
                raise
            return failed(error, 0.0)

    def _returned(self, value: JsonValue) -> CallResult:
        return CallReturned(json=orjson.dumps(value), completed=0.0)

    def _budget(self) -> dict[str, JsonValue]:
        spent = self.ledger.spent(self._now())
        budget = self.ledger.budget
        return {
            "calls_left": budget.calls - spent.calls,
            "result_bytes_left": budget.result_bytes - spent.result_bytes,
            "seconds_left": round(budget.seconds - spent.seconds, 3),
        }
