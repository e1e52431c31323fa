"""Turns: requests of one session are served in log order, one at a time, once each, whoever makes them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import FailedError, UsageError
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.memory.preamble import entries_of
from affidavit.runtime.memory.results import tail_of
from affidavit.runtime.run import Request, RunView, runs_of
from affidavit.runtime.session import Session
from affidavit.runtime.turns import Turns
from affidavit.store import Event, Store
from affidavit.workspace import Workspace


class Gate:
    """An operation that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.calls = 0

    async def wait(self) -> int:
        """Waits until it may go on."""
        self.calls += 1
        self.entered.set()
        await self.opened.wait()
        return self.calls


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncGenerator[Workspace]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        yield opened


@pytest.fixture
def gate(workspace: Workspace) -> Gate:
    made = Gate()
    workspace.use(functions_namespace("t", [made.wait]))
    return made


async def requested(session: Session, many: int) -> list[RunView]:
    """The runs of the session, once it has so many."""
    while len(found := session.runs()) < many:  # noqa: ASYNC110 - another process appends
        await asyncio.sleep(0.005)
    return found


async def test_clients_are_served_in_the_order_of_the_log(workspace: Workspace, gate: Gate) -> None:
    clients = [await workspace.session("shared") for _ in range(5)]
    running = [asyncio.create_task(clients[0].run("await df.tool.t.wait()\n[0]"))]
    await gate.entered.wait()
    for number, client in enumerate(clients[1:], 1):
        running.append(asyncio.create_task(client.run(f"results[0].data + [{number}]")))
        await requested(clients[0], number + 1)
    assert [view.status for view in clients[0].runs()] == ["running"] * 5
    gate.opened.set()
    done = await asyncio.gather(*running)
    assert [run.number for run in done] == [1, 2, 3, 4, 5]
    assert [run.data for run in done] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    kinds = [event.kind for event in workspace.store.events.of_session("shared")]
    assert kinds.count("run-settled") == kinds.count("run-started") == 5


async def test_many_at_once_lose_nothing(workspace: Workspace) -> None:
    clients = [await workspace.session("shared") for _ in range(8)]
    done = await asyncio.gather(*(client.run("len(results)") for client in clients))
    assert sorted(run.number for run in done) == list(range(1, 9))
    assert all(run.data == run.number - 1 for run in done)


async def test_waiting_has_a_bound_that_can_be_set(workspace: Workspace, gate: Gate) -> None:
    one, two = await workspace.session("shared"), await workspace.session("shared")
    first = asyncio.create_task(one.run("await df.tool.t.wait()"))
    await gate.entered.wait()
    with pytest.raises(FailedError) as busy:
        await two.run("1", wait_seconds=0.02)
    assert (busy.value.code, busy.value.retryable) == ("session-busy", True)
    gate.opened.set()
    assert (await first).data == 1
    assert [view.status for view in two.runs()] == ["succeeded", "cancelled"]
    third = await two.run("results[0].data")
    assert (third.number, third.data) == (3, 1)


async def test_a_waiting_request_that_is_cancelled_leaves_the_line(workspace: Workspace, gate: Gate) -> None:
    clients = [await workspace.session("shared") for _ in range(3)]
    first = asyncio.create_task(clients[0].run("await df.tool.t.wait()"))
    await gate.entered.wait()
    second = asyncio.create_task(clients[1].run("2"))
    await requested(clients[0], 2)
    third = asyncio.create_task(clients[2].run("3"))
    await requested(clients[0], 3)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.opened.set()
    assert [(await first).data, (await third).data] == [1, 3]
    assert [view.status for view in clients[0].runs()] == ["succeeded", "cancelled", "succeeded"]
    assert not [file for file in (workspace.root / "locks").iterdir() if file.name.startswith("run_")]


async def test_a_cancelled_check_is_settled(workspace: Workspace) -> None:
    session = await workspace.session("s")
    task = asyncio.create_task(session.run("1"))
    await requested(session, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [view.status for view in session.runs()] == ["cancelled"]
    assert (await session.run("2")).data == 2


async def test_the_same_request_again_returns_the_first_settlement(workspace: Workspace, gate: Gate) -> None:
    session = await workspace.session("s")
    gate.opened.set()
    source = (
        "print('once')\n{'n': await df.tool.t.wait(), 'x': x, 'day': __import__('datetime').date(2026, 1, 2)}"
    )
    first = await session.run(source, inputs={"x": 2**60}, idempotency_key="k")
    again = await session.run(source, inputs={"x": 2**60}, idempotency_key="k")
    assert again.as_json() == first.as_json()
    assert again == first
    other = await workspace.session("s")
    assert (await other.run(source, inputs={"x": 2**60}, idempotency_key="k")) == first
    assert gate.calls == 1
    assert len(session.runs()) == 1


async def test_a_large_value_and_an_answer_come_back_too(workspace: Workspace, gate: Gate) -> None:
    session = await workspace.session("s")
    gate.opened.set()
    source = "n = await df.tool.t.wait()\ndf.answer(status='answered', value=[n, 1.5], derivation='d')\n'x' * 100000"
    first = await session.run(source, idempotency_key="k")
    assert first.status == "succeeded"
    again = await session.run(source, idempotency_key="k")
    assert len(again.data) == 100_000
    assert again.as_json() == first.as_json()


@pytest.mark.parametrize("source", ["nonsense(", "1/0", "exit(3)"])
async def test_a_request_that_failed_is_not_run_again_either(workspace: Workspace, source: str) -> None:
    session = await workspace.session("s")
    first = await session.run(source, idempotency_key="k")
    assert first.status in ("rejected", "failed")
    assert (await session.run(source, idempotency_key="k")).as_json() == first.as_json()
    assert len(session.runs()) == 1


async def test_a_key_belongs_to_one_request(workspace: Workspace) -> None:
    session = await workspace.session("s")
    await session.run("x", inputs={"x": 1}, idempotency_key="k")
    for source, inputs in (("x", {"x": 2}), ("x", {"x": True}), ("x ", {"x": 1}), ("x", {})):
        with pytest.raises(UsageError) as refused:
            await session.run(source, inputs=inputs, idempotency_key="k")
        assert refused.value.code == "key-reused"
    assert (await session.run("x", inputs={"x": 2}, idempotency_key="other")).data == 2
    elsewhere = await workspace.session("s2")
    assert (await elsewhere.run("x", inputs={"x": 3}, idempotency_key="k")).data == 3


async def test_the_same_request_twice_at_once_runs_once(workspace: Workspace, gate: Gate) -> None:
    one, two = await workspace.session("s"), await workspace.session("s")
    tasks = [
        asyncio.create_task(client.run("await df.tool.t.wait()", idempotency_key="k"))
        for client in (one, two)
    ]
    await gate.entered.wait()
    gate.opened.set()
    first, second = await asyncio.gather(*tasks)
    assert first.as_json() == second.as_json()
    assert gate.calls == 1


CLIENT = """
import asyncio, json, os, sys
from affidavit.mounts.python import functions_namespace
from affidavit.workspace import Workspace

async def main(root, sources):
    async def hang() -> None:
        "Waits for ever."
        print("hangs", flush=True)
        await asyncio.Event().wait()
    def ok(n: int) -> int:
        "Returns n."
        return n
    async with Workspace.open(root) as workspace:
        workspace.use(functions_namespace("t", [hang, ok]))
        session = await workspace.session("shared")
        print("open", flush=True)
        for source in sources:
            run = await session.run(source, idempotency_key=os.environ.get("KEY"))
            print(json.dumps([run.number, run.status, run.value]), flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


def client(root: Path, *sources: str, key: str | None = None) -> subprocess.Popen[str]:
    """Another process that runs scripts in the session `shared`, once it says `open`."""
    environment = dict(os.environ) | ({} if key is None else {"KEY": key})
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(root), *sources],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert said(process) == "open"
    return process


def said(process: subprocess.Popen[str]) -> Any:
    """The next line of another process."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    return json.loads(line) if line.startswith("[") else line


def ended(process: subprocess.Popen[str], *, kill: bool = False) -> None:
    """Wait for its end, or make it."""
    if kill:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_processes_take_turns_and_see_what_was_settled_before(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    clients = [client(root, *["results[0].data + 1 if results else 1"] * 6) for _ in range(3)]
    lines = [said(one) for _ in range(6) for one in clients]
    for one in clients:
        ended(one)
    assert sorted(lines) == [[number, "succeeded", number] for number in range(1, 19)]


async def test_a_process_killed_while_it_waits_loses_its_place(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    running = client(root, "await df.tool.t.hang()")
    assert said(running) == "hangs"
    waiting = client(root, "'never'")
    with Store.open(root) as store:
        while len(store.events.of_kinds("shared", ("run-requested",))) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    ended(waiting, kill=True)
    ended(running, kill=True)
    async with Workspace.open(root) as workspace:
        session = await workspace.session("shared")
        first, second = session.runs()
        after = await session.run("[row.kind for row in results]")
        assert (after.number, after.data) == (3, [])
    assert (first.status, second.status) == ("orphaned", "orphaned")
    error = cast("dict[str, Any]", first.settled["error"])
    assert error["code"] == "run-orphaned"
    assert error["details"] == {"calls": 0, "unfinished": ["tool.t.hang:1"], "effects_possible": False}
    unserved = cast("dict[str, Any]", second.settled["error"])
    assert "before the script started" in unserved["message"]


async def test_a_lost_request_is_not_run_again_under_its_key(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    source = "await df.tool.t.ok(n=1)\nawait df.tool.t.hang()"
    running = client(root, source, key="k")
    assert said(running) == "hangs"
    ended(running, kill=True)
    again = client(root, source, key="k")
    assert said(again) == [1, "orphaned", None]
    ended(again)


async def test_a_repeated_request_waits_for_the_first_in_another_process(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    source = "await df.tool.t.hang()"
    running = client(root, source, key="k")
    assert said(running) == "hangs"
    again = client(root, source, key="k")
    ended(running, kill=True)
    assert said(again) == [1, "orphaned", None]
    ended(again)


async def test_what_may_have_had_an_effect_is_said(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    with Store.open(root) as store:
        started: dict[str, Any] = {
            "call": 1, "operation": "tool.t.send", "line": 4, "column": 0, "iteration": 0, "parameters": {},
            "contract": "t.send/1", "producer": ["t", "1"], "authority": "live-source", "confidence": "observed",
            "effect": "write",
        }  # fmt: skip
        events: list[tuple[str, dict[str, Any]]] = [
            (
                "run-requested",
                {"number": 1, "source": "", "script": f"sha256:{0:064}", "inputs": {}, "engine": "auto"},
            ),
            ("run-started", {"engine": "cpython", "reason": "", "clock": 0.0, "seed": 1}),
            ("call-started", started),
        ]
        for kind, data in events:
            store.append(Event(kind=kind, session="s", run="run_1", at=1.0, data=data))
    async with Workspace.open(root) as workspace:
        [view] = (await workspace.session("s")).runs()
    error = cast("dict[str, Any]", view.settled["error"])
    assert error["details"]["effects_possible"] is True
    assert "df.tool.t.send on line 4" in error["message"]


KINDS = st.sampled_from(
    [
        "requested",
        "started",
        "call",
        "recorded",
        "settled",
        "orphaned",
        "rejected",
        "set",
        "removed",
        "answer",
    ]
)


def event(kind: str, run: int, at: float) -> Event:
    """An event of a run, whether or not it makes sense there."""
    data: dict[str, Any] = {"number": run, "engine": "cpython", "key": f"k{run}", "code": f"a{run} = 1"}
    call: dict[str, Any] = {
        "call": run, "operation": "tool.t.f", "line": 1, "column": 0, "iteration": 0, "parameters": {},
        "contract": "t.f/1", "producer": ["t", "1"], "authority": "live-source", "confidence": "observed",
        "effect": "read", "status": "ok", "code": "", "duration_ms": 1.0,
    }  # fmt: skip
    names = {"requested": "run-requested", "started": "run-started", "call": "call-started"}
    names |= {"recorded": "call-recorded", "set": "preamble-set", "removed": "preamble-removed"}
    names |= {"answer": "answer-given"}
    statuses = {"settled": "succeeded", "orphaned": "orphaned", "rejected": "rejected"}
    data |= call | {"status": statuses.get(kind, "ok"), "has_value": True, "value": run}
    within = None if kind in ("set", "removed") else f"run_{run}"
    return Event(kind=names.get(kind, "run-settled"), session="s", run=within, at=at, data=data)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(KINDS, st.integers(1, 4)), max_size=40))
def test_reducing_and_recovering_twice_appends_nothing(
    tmp_path_factory: pytest.TempPathFactory, happened: list[tuple[str, int]]
) -> None:
    """Whatever the log holds: state is a pure reduction of it, and what was recovered once is recovered."""
    folder = tmp_path_factory.mktemp("store")
    with Store.open(folder) as store:
        for at, (kind, run) in enumerate(happened):
            store.append(event(kind, run, float(at)))
        turns = Turns(store, "s", folder=folder, now=lambda: 99.0)
        turns.recover()
        once = store.events.of_session("s")
        assert turns.recover() == []
        assert store.events.of_session("s") == once
        assert runs_of(once) == runs_of(list(once))
        assert entries_of(once) == entries_of(list(once))
        assert tail_of(once, store) == tail_of(list(once), store)
        assert store.events.of_session("s") == once


async def test_a_session_has_each_number_once(tmp_path: Path) -> None:
    """Two that ask at the same moment get two numbers: the log itself decides."""
    with Store.open(tmp_path) as store:
        one = Turns(store, "s", folder=tmp_path, now=lambda: 1.0)
        two = Turns(store, "s", folder=tmp_path, now=lambda: 1.0)
        async with one.take("run_a", Request(source="1")) as first:
            waiting = two.take("run_b", Request(source="2"), wait_seconds=0)
            with pytest.raises(FailedError, match="session-busy"):
                await waiting.__aenter__()
        assert first.number == 1
        assert [
            cast("dict[str, Any]", it.data)["number"] for it in store.events.of_kinds("s", ("run-requested",))
        ] == [1, 2]
