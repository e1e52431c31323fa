"""Calls that run together share transactions, and none goes on before its own event is durable."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import Record
from affidavit.namespaces.functions import operation_from_function
from affidavit.policy import Budget
from affidavit.runtime.broker import Broker
from affidavit.runtime.ledger import Ledger
from affidavit.runtime.program import CallReturned, ScriptCall
from affidavit.store import Event, Store, StoredEvent


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "workspace") as opened:
        yield opened


def door(store: Store, function: Callable[..., Any]) -> Broker:
    operation = operation_from_function(function, contract="python.t", effect="read")
    return Broker(store, session="s1", operations={"f": operation})


def ledger() -> Ledger:
    return Ledger(run="run_1", budget=Budget(), started=time.time())


def call(n: int) -> ScriptCall:
    return ScriptCall(path="f", arguments={"n": n}, line=1)


def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each transaction of the store takes from here on."""
    sizes: list[int] = []
    one, many = store.append, store.append_many

    def append(event: Event, *, record: Record | Sealed | None = None, settle: bool = True) -> StoredEvent:
        sizes.append(1)
        return one(event, record=record, settle=settle)

    def append_many(
        events: Iterable[Event | tuple[Event, Record | Sealed | None]], *, settle: bool = True
    ) -> list[StoredEvent]:
        given = list(events)
        sizes.append(len(given))
        return many(given, settle=settle)

    monkeypatch.setattr(store, "append", append)
    monkeypatch.setattr(store, "append_many", append_many)
    return sizes


async def test_gathered_calls_share_transactions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(store, monkeypatch)
    calls = ledger()
    broker = door(store, same)
    results = await asyncio.gather(*[broker.call(call(n), calls) for n in range(50)])
    assert [result.json for result in results if isinstance(result, CallReturned)] == [
        b"%d" % n for n in range(50)
    ]
    assert sum(sizes) == 100
    assert len(sizes) < 10
    assert sorted(entry.evidence_id for entry in calls.entries) == sorted(
        event.evidence_id or "" for event in store.events.of_run("run_1") if event.kind == "call-recorded"
    )


async def test_calls_one_by_one_are_written_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(store, monkeypatch)
    calls = ledger()
    broker = door(store, same)
    for n in range(5):
        await broker.call(call(n), calls)
    assert sizes == [1] * 10


async def test_no_gathered_call_runs_before_its_start_is_in_the_log(store: Store) -> None:
    missing: list[int] = []

    def spy(n: int) -> int:
        """Looks for its own start."""
        events: list[Any] = [
            event.data for event in store.events.of_session("s1") if event.kind == "call-started"
        ]
        if n not in [data["parameters"]["n"] for data in events]:
            missing.append(n)
        return n

    calls = ledger()
    broker = door(store, spy)
    await asyncio.gather(*[broker.call(call(n), calls) for n in range(30)])
    assert missing == []
    assert calls.dispatched == 30


async def test_no_gathered_value_returns_before_its_record_is_kept(store: Store) -> None:
    calls = ledger()
    broker = door(store, same)

    async def checked(n: int) -> bool:
        await broker.call(call(n), calls)
        events: list[Any] = [event.data for event in store.events.of_session("s1")]
        numbers = [data["call"] for data in events if "evidence_id" in data]
        return len(numbers) >= len(calls.entries) > 0

    assert all(await asyncio.gather(*[checked(n) for n in range(30)]))


async def test_a_store_that_is_full_stops_every_gathered_call(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise FailedError("store-full", "no room", hint="make room")

    ran: list[int] = []

    def spy(n: int) -> int:
        """Notes that it ran."""
        ran.append(n)
        return n

    monkeypatch.setattr(store, "append", full)
    monkeypatch.setattr(store, "append_many", full)
    broker, calls = door(store, spy), ledger()
    results = await asyncio.gather(*[broker.call(call(n), calls) for n in range(20)], return_exceptions=True)
    assert [getattr(result, "code", None) for result in results] == ["store-full"] * 20
    assert ran == []
    assert calls.entries == []


async def test_calls_cancelled_while_they_wait_are_recorded_as_unfinished(store: Store) -> None:
    ran: list[int] = []

    def spy(n: int) -> int:
        """Notes that it ran."""
        ran.append(n)
        return n

    broker, calls = door(store, spy), ledger()
    tasks = [asyncio.create_task(broker.call(call(n), calls)) for n in range(10)]
    await asyncio.sleep(0)  # the first is done, the others have written nothing yet
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert ran == [0]
    assert isinstance(results[0], CallReturned)
    assert all(isinstance(result, asyncio.CancelledError) for result in results[1:])
    assert sorted(entry.status for entry in calls.entries) == ["ok"] + ["unfinished"] * 9
    kinds = [event.kind for event in store.events.of_run("run_1")]
    assert (kinds.count("call-started"), kinds.count("call-recorded")) == (10, 10)


def same(n: int) -> int:
    """Returns n."""
    return n
