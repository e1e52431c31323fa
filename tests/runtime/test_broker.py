"""The one door: what is recorded of a call, and when."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError
from affidavit.evidence import values
from affidavit.evidence.identity import check_values
from affidavit.evidence.record import Failure, Success, Unfinished
from affidavit.namespaces.functions import operation_from_function
from affidavit.namespaces.operation import Effect, Operation
from affidavit.policy import Budget, Grant
from affidavit.runtime.broker import Broker
from affidavit.runtime.ledger import Ledger
from affidavit.runtime.program import CallFailed, CallReturned, ScriptCall
from affidavit.store import Store
from tests.store.samples import sightings


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "workspace") as opened:
        yield opened


def operation(function: Callable[..., Any], effect: Effect = "read") -> Operation:
    return operation_from_function(function, contract="python.shop", effect=effect)


def broker(
    store: Store, *operations: Operation, grants: tuple[Grant, ...] = (), alias: str = "shop"
) -> Broker:
    by_path = {f"tool.{alias}.{item.name}": item for item in operations}
    return Broker(store, session="s1", operations=by_path, grants=grants)


def ledger(budget: Budget | None = None) -> Ledger:
    import time

    return Ledger(run="run_1", budget=budget or Budget(), started=time.time())


def call(name: str, *, alias: str = "shop", **arguments: Any) -> ScriptCall:
    return ScriptCall(path=f"tool.{alias}.{name}", arguments=arguments, line=3)


def price(item: str, count: int = 1) -> dict[str, int]:
    """What it costs."""
    return {"total": len(item) * count}


def broken(item: str) -> int:
    """Never works."""
    raise ValueError(f"no {item} today")


async def test_a_call_returns_its_value_and_is_recorded(store: Store) -> None:
    calls = ledger()
    result = await broker(store, operation(price)).call(call("price", item="tea", count=2), calls)
    assert isinstance(result, CallReturned)
    assert json.loads(result.json) == {"total": 6}
    (entry,) = calls.entries
    record = store.evidence.get(entry.evidence_id)
    assert record.operation == "python.shop.price/1"
    assert store.evidence.result(record) == {"total": 6}
    assert record.parameters == {"item": "tea", "count": 2}
    assert (entry.status, entry.line, entry.operation) == ("ok", 3, "tool.shop.price")


async def test_the_start_is_in_the_log_before_the_operation_runs(store: Store) -> None:
    seen: list[list[str]] = []

    def spy(item: str) -> str:
        """Looks at the log."""
        seen.append([event.kind for event in store.events.of_session("s1")])
        return item

    await broker(store, operation(spy)).call(call("spy", item="x"), ledger())
    assert seen == [["call-started"]]
    assert [event.kind for event in store.events.of_session("s1")] == ["call-started", "call-recorded"]


async def test_a_failed_call_is_recorded_with_code_and_details(store: Store) -> None:
    calls = ledger()
    result = await broker(store, operation(broken)).call(call("broken", item="tea"), calls)
    assert isinstance(result, CallFailed)
    assert (result.code, result.details["evidence_id"]) == ("tool-failed", calls.entries[0].evidence_id)
    outcome = store.evidence.get(calls.entries[0].evidence_id).outcome
    assert isinstance(outcome, Failure)
    assert outcome.details == {"type": "ValueError", "message": "no tea today"}


@pytest.mark.parametrize(
    "arguments", [{}, {"item": 5}, {"item": "x", "cuont": 2}, {"item": "x", "count": "2"}, {"item": None}]
)
async def test_wrong_arguments_never_reach_the_operation(store: Store, arguments: dict[str, Any]) -> None:
    ran: list[str] = []

    def spy(item: str, count: int = 1) -> None:
        """Notes that it ran."""
        ran.append(item * count)

    calls = ledger()
    result = await broker(store, operation(spy)).call(call("spy", **arguments), calls)
    assert isinstance(result, CallFailed)
    assert result.code == "arguments-invalid"
    assert ran == []
    assert calls.entries[0].status == "failed"
    assert "call-started" not in [event.kind for event in store.events.of_session("s1")]


async def test_an_effect_without_a_grant_is_refused_and_recorded(store: Store) -> None:
    bought: list[str] = []

    def buy(item: str) -> None:
        """Spends money."""
        bought.append(item)

    buying = operation(buy, effect="write")
    calls = ledger()
    refused = await broker(store, buying).call(call("buy", item="tea"), calls)
    assert isinstance(refused, CallFailed)
    assert refused.code == "call-refused"
    assert "--grant write:tool.shop.buy" in refused.hint
    granted = broker(store, buying, grants=(Grant(effect="write", pattern="tool.shop.*"),))
    assert isinstance(await granted.call(call("buy", item="milk"), calls), CallReturned)
    assert bought == ["milk"]
    assert [entry.status for entry in calls.entries] == ["failed", "ok"]


async def test_a_spent_budget_refuses(store: Store) -> None:
    calls = ledger(Budget(calls=2))
    door = broker(store, operation(price))
    results = [await door.call(call("price", item="tea"), calls) for _ in range(3)]
    assert [isinstance(result, CallReturned) for result in results] == [True, True, False]
    assert isinstance(results[2], CallFailed)
    assert results[2].code == "budget-exceeded"


async def test_an_unknown_operation_is_named_with_what_was_meant(store: Store) -> None:
    calls = ledger()
    result = await broker(store, operation(price)).call(call("prise", item="tea"), calls)
    assert isinstance(result, CallFailed)
    assert result.code == "operation-unknown"
    assert "tool.shop.price" in result.hint
    assert calls.entries == []


async def test_a_cancelled_call_is_recorded_as_unfinished(store: Store) -> None:
    entered = asyncio.Event()

    async def hang(item: str) -> str:
        """Waits for ever."""
        entered.set()
        await asyncio.Event().wait()
        return item

    calls = ledger()
    task = asyncio.create_task(broker(store, operation(hang)).call(call("hang", item="x"), calls))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (entry,) = calls.entries
    assert entry.status == "unfinished"
    assert isinstance(store.evidence.get(entry.evidence_id).outcome, Unfinished)


async def test_a_mounts_alias_never_enters_the_record(store: Store) -> None:
    first, second = ledger(), ledger()
    await broker(store, operation(price)).call(call("price", item="tea"), first)
    await broker(store, operation(price), alias="other").call(
        call("price", alias="other", item="tea"), second
    )
    assert first.entries[0].evidence_id == second.entries[0].evidence_id
    assert len(sightings(store, first.entries[0].evidence_id)) == 2


async def test_arguments_given_and_defaulted_are_one_question(store: Store) -> None:
    calls = ledger()
    door = broker(store, operation(price))
    await door.call(call("price", item="tea"), calls)
    await door.call(call("price", item="coffee"), calls)
    assert calls.entries[0].evidence_id != calls.entries[1].evidence_id


async def test_a_result_that_records_cannot_hold_is_a_failed_call(store: Store) -> None:
    def odd() -> Any:
        """Returns a set."""
        return {"tags": {1, 2}}

    calls = ledger()
    result = await broker(store, operation(odd)).call(call("odd"), calls)
    assert isinstance(result, CallFailed)
    assert result.code == "result-invalid"
    assert calls.entries[0].status == "failed"


async def test_a_failure_with_odd_details_is_recorded_all_the_same(store: Store) -> None:
    def odd(deep: bool) -> None:
        """Fails with details that JSON does not hold."""
        raise FailedError(
            "tool-failed", "no", details={"places": (1, 2)} if not deep else {"object": object()}
        )

    calls = ledger()
    door = broker(store, operation(odd))
    for deep in (False, True):
        assert isinstance(await door.call(call("odd", deep=deep), calls), CallFailed)
    outcomes = [store.evidence.get(entry.evidence_id).outcome for entry in calls.entries]
    assert [isinstance(outcome, Failure) for outcome in outcomes] == [True, True]
    assert isinstance(outcomes[0], Failure)
    assert outcomes[0].details == {"places": [1, 2]}


async def test_a_large_result_is_kept_as_a_blob_and_comes_back_whole(store: Store) -> None:
    def large() -> str:
        """Returns 200 KB."""
        return "x" * 200_000

    calls = ledger()
    result = await broker(store, operation(large)).call(call("large"), calls)
    assert isinstance(result, CallReturned)
    assert json.loads(result.json) == "x" * 200_000
    record = store.evidence.get(calls.entries[0].evidence_id)
    assert isinstance(record.outcome, Success)
    assert store.evidence.result(record) == "x" * 200_000


async def test_a_store_that_cannot_keep_the_record_stops_the_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise FailedError("store-full", "no room", hint="make room")

    monkeypatch.setattr(store, "append", full)
    with pytest.raises(FailedError, match="store-full"):
        await broker(store, operation(price)).call(call("price", item="tea"), ledger())


async def test_arguments_that_are_no_value_are_recorded_as_what_was_sent(store: Store) -> None:
    """A sandbox may send anything: the record must be one that verification accepts."""
    calls = ledger()
    sent = {"item": {"$date": "2026-02-30"}}
    failed = await broker(store, operation(price)).call(
        ScriptCall(path="tool.shop.price", arguments=sent, line=1), calls
    )
    assert isinstance(failed, CallFailed)
    kept = store.evidence.get(calls.entries[0].evidence_id)
    check_values(kept)
    assert values.decode(kept.parameters) == sent
