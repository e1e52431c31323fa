"""The two events of a call, written before the call goes on: alone at once, many together in one transaction.

A script that gathers a hundred calls makes a hundred starts in one turn of the event loop. The first is written at
once; the others wait for the end of the turn and share a transaction, which costs them a fraction of one each. None
goes on before its own event is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.operation import Operation
from affidavit.runtime.ledger import CallEntry, given
from affidavit.runtime.program import ScriptCall
from affidavit.store import Event, Store

__all__ = ["Recorder"]


@dataclass(slots=True)
class _Batch:
    """Events that one transaction will keep; afterwards `problem` is why it could not."""

    entries: list[tuple[Event, Sealed | None]] = field(default_factory=list[tuple[Event, Sealed | None]])
    written: bool = False
    problem: BaseException | None = None


class Recorder:
    """Writes the calls of one session to its log, in one event loop.

    Both methods return when the event is durable, and raise what `Store.append` raises. A task that is cancelled while
    it waits is told so after its event was written.
    """

    def __init__(self, store: Store, *, session: str, now: Callable[[], float]) -> None:
        self._store = store
        self._session = session
        self._now = now
        self._first: asyncio.Task[object] | None = None
        self._batch: _Batch | None = None
        self._waiting = 0
        self._settling: asyncio.Future[None] | None = None

    async def started(
        self, call: ScriptCall, operation: Operation, *, run: str | None, number: int, parameters: JsonValue
    ) -> None:
        """Log that a call is about to be dispatched, with all that its record would need should its end be lost."""
        data: dict[str, JsonValue] = {
            "call": number,
            "operation": call.path,
            "line": call.line,
            "column": call.column,
            "iteration": call.iteration,
            "parameters": parameters,
            "contract": operation.contract,
            "producer": [operation.producer.name, operation.producer.version],
            "authority": operation.authority,
            "effect": operation.effect,
            "confidence": operation.confidence,
        }
        await self._append(
            Event(kind="call-started", session=self._session, run=run, at=self._now(), data=data), None
        )

    async def recorded(
        self,
        call: ScriptCall,
        entry: CallEntry,
        *,
        run: str | None,
        number: int,
        record: Sealed,
        delivery: Mapping[str, JsonValue],
    ) -> float:
        """Log the end of a call, with its record; the moment that the log has for it, seconds since the epoch.

        `delivery` is what the caller is told beside what the record holds (see `ledger.Delivery`).
        """
        data = entry.as_json() | {"given": given(call.arguments)}
        data["column"], data["iteration"], data["call"] = call.column, call.iteration, number
        if delivery:
            data["delivery"] = dict(delivery)
        event = Event(kind="call-recorded", session=self._session, run=run, at=self._now(), data=data)
        await self._append(event, record)
        return event.at

    async def _append(self, event: Event, record: Sealed | None) -> None:
        task = asyncio.current_task()
        if self._first is None and not self._waiting:
            self._first = task
            asyncio.get_running_loop().call_soon(self._end_turn)
        if self._first is task:
            self._store.append(event, record=record, settle=False)
            await self._settle()
            return
        batch = self._batch
        if batch is None:
            batch = self._batch = _Batch()
        batch.entries.append((event, record))
        self._waiting += 1
        try:
            await asyncio.sleep(0)
        finally:
            self._waiting -= 1
            self._write(batch)
        if batch.problem is not None:
            raise batch.problem
        await self._settle()

    async def _settle(self) -> None:
        """Where a journal promises the disk, wait for it beside the loop: others share the wait, in their order."""
        if not self._store.waits(self._session):
            return
        before, own = self._settling, asyncio.get_running_loop().create_future()
        self._settling = own
        try:
            await asyncio.to_thread(self._store.settle, self._session)
            if before is not None and not before.done():
                await asyncio.wait({before})
        finally:
            own.set_result(None)

    def _end_turn(self) -> None:
        self._first = None

    def _write(self, batch: _Batch) -> None:
        """Write a batch; whoever of those that wait comes first does it for all."""
        if batch.written:
            return
        batch.written = True
        self._batch = None
        try:
            if len(batch.entries) == 1:
                event, record = batch.entries[0]
                self._store.append(event, record=record, settle=False)
            else:
                self._store.append_many(batch.entries, settle=False)
        except BaseException as problem:
            batch.problem = problem
