"""A run comes out the same when it is run again from its log: calls, clock, chance, what the session answered."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from affidavit import Limits
from affidavit.errors import FailedError, NotFoundError

from .bench import ENGINES, Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

CLOCK = """
import time, datetime
before = time.time()
await df.tool.t.ten(n=1)
after = time.time()
try:
    await df.tool.t.boom(text="no")
except df.Error:
    pass
[before, after, time.time(), time.monotonic(), str(datetime.datetime.now())]
"""
CHANCE = "import random\n[random.random(), random.randint(1, 10**9), random.sample(range(1000), 5)]"
MORE_CHANCE = """
import os, secrets, uuid, random
[str(uuid.uuid4()), os.urandom(8).hex(), secrets.token_hex(4), random.SystemRandom().random(), str(uuid.uuid1())]
"""
SEEDED_ANEW = """
import random, time, timeit
random.seed()
mine = random.Random(3)
mine.seed()
clocks = [time.clock_gettime(time.CLOCK_REALTIME), timeit.timeit("1", number=3), time.process_time()]
[random.random(), mine.random(), clocks]
"""
ORDERS = """
words = ["one", "two", "three", "four", "five"]
print(list(set(words)), {word: len(word) for word in set(words)})
[list(set(words)), list({word: 1 for word in words}), [hash(word) for word in words]]
"""
FAILURE = """
found = []
for text in ("first", "second"):
    try:
        await df.tool.t.boom(text=text)
    except df.Error as error:
        found.append([error.code, error.message, error.hint, error.retryable, list(error.details.items())])
try:
    await df.tool.t.ten(n=None or "many")
except df.Error as error:
    found.append([error.code, error.message, list(error.details)])
found
"""
SCRIPTS = {
    "value": "x = await df.tool.t.ten(n=4)\nx + 2",
    "nothing": "print('said')",
    "clock": CLOCK,
    "chance": CHANCE,
    "more-chance": MORE_CHANCE,
    "seeded-anew": SEEDED_ANEW,
    "orders": ORDERS,
    "failures": FAILURE,
    "large": "text = await df.tool.t.long(size=100_000)\ntext + 'end'",
    "loop": "[await df.tool.t.ten(n=n) for n in range(20)]",
    "finally": "out = []\nfor n in (1, 0):\n    try:\n        try:\n            out.append(1 // n)\n        finally:\n"
    "            out.append(await df.tool.t.ten(n=n))\n    except ZeroDivisionError:\n        out.append('zero')\nout",
    "sleep": "import asyncio, time\nawait asyncio.sleep(0.002)\ntime.sleep(0.001)\ntime.time()",
    "error": "await df.tool.t.ten(n=1)\n{}['missing']",
    "tool-error": "1\nawait df.tool.t.boom(text='nobody catches it')",
    "exit": "await df.tool.t.ten(n=1)\nexit(3)",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_run_comes_out_the_same(bench: Bench, name: str, engine: str) -> None:
    session = await bench.session()
    run = await session.run(SCRIPTS[name], engine=engine)
    if run.status == "rejected":
        assert engine == "monty"
        return
    replays = await bench.replays(run)
    assert engine in replays
    for replay in replays.values():
        assert replay.divergence is None
        assert (replay.same, replay.value, replay.calls) == (True, replay.replayed_value, len(run.calls))
        assert replay.same_output or replay.engine != engine
    assert replays[engine].same_output


async def test_inputs_results_and_preamble_are_those_of_then(bench: Bench) -> None:
    session = await bench.session()
    first = await session.run("{'rows': [1, 2, 3]}")
    long = await session.run("'y' * 20_000")
    failed = await session.run("1 / 0")
    await session.set_preamble(key="help", code="def twice(x):\n    return 2 * x")
    asking = await session.run(
        "[twice(n), len(await results[1].load()), results[0].error['message'], results.by_run(1).data, len(results)]",
        inputs={"n": 21},
    )
    assert asking.data == [42, 20_000, "division by zero", {"rows": [1, 2, 3]}, 3]
    await session.set_preamble(key="help", code="def twice(x):\n    return 'something else'")
    await session.run("'later'")
    for run in (first, long, failed, asking):
        for replay in (await bench.replays(run)).values():
            assert replay.same, replay.divergence


async def test_what_the_session_answered_is_told_again(bench: Bench) -> None:
    session = await bench.session()
    run = await session.run(
        """
import time
await df.tool.t.ten(n=1)
opened = df.unknown(question="Who calls it?", domain="app")
revised = df.unknown(id=opened["id"], expect=1, status="investigating")
try:
    df.unknown(id=opened["id"], expect=1, status="blocked")
except df.Error as error:
    conflict = [error.code, error.message]
df.session.set_preamble(key="k", code="K = 1")
entries = df.session.get_preamble()
try:
    df.answer(status="answered", value=1, evidence=["ev1_" + "0" * 64], derivation="nothing")
except df.Error as error:
    refused = error.code
df.answer(status="answered", value=1, derivation="it says so")
[df.budget(), df.calls(), opened, revised, conflict, entries, refused, time.time(), print(df.budget())]
"""
    )
    assert run.status == "succeeded", run.error
    await session.run("df.session.remove_preamble(key='k')")
    for replay in (await bench.replays(run)).values():
        assert (replay.divergence, replay.same_output) == (None, True)
    assert [entry.key for entry in session.get_preamble()] == []


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
async def test_calls_end_in_the_order_in_which_they_did(bench: Bench, order: tuple[int, ...]) -> None:
    source = """
import asyncio, time
seen = []
async def one(n):
    value = await df.tool.t.late(n=n)
    seen.append([value, time.time()])
    await asyncio.sleep(0)
    seen.append([value, time.time(), await df.tool.t.ten(n=n)])
    await asyncio.sleep(0)
    seen.append([value, time.time()])
await asyncio.gather(*[one(n) for n in range(4)])
seen
"""
    bench.gates = {n: asyncio.Event() for n in order}

    def next_gate() -> None:
        """Each end is waited for: the next call ends when the script has gone on."""
        if left := [n for n in order if not bench.gates[n].is_set()]:
            bench.gates[left[0]].set()

    bench.on_late = lambda: next_gate() if len(bench.made) == len(order) else None
    bench.on_ten = next_gate
    run, replays = await bench.replayed(source)
    data: Any = run.data
    assert list(dict.fromkeys(entry[0] for entry in data)) == list(order)
    assert [replay.divergence for replay in replays.values()] == [None, None]


async def test_many_calls_under_way_share_transactions_and_come_out_the_same(bench: Bench) -> None:
    source = """
import asyncio, time
seen = []
async def one(n):
    for step in range(3):
        seen.append([n, step, await df.tool.t.ten(n=n + step), time.time(), len(df.calls())])
await asyncio.gather(*[one(n) for n in range(30)])
seen
"""
    _, replays = await bench.replayed(source)
    assert [replay.divergence for replay in replays.values()] == [None, None]


TIMER_FIRST = """
import asyncio, time
seen = []
async def slept():
    await asyncio.sleep(0.001)
    seen.append(["slept", time.time()])
    await df.tool.t.ten(n=1)
async def called():
    await df.tool.t.late(n=1)
    seen.append(["called", time.time()])
await asyncio.gather(slept(), called())
[entry[0] for entry in seen], seen
"""
CALL_FIRST = """
import asyncio, time
seen = []
async def slept():
    await asyncio.sleep(300)
    seen.append(["slept", time.time()])
async def called():
    await df.tool.t.late(n=1)
    seen.append(["called", time.time()])
    task.cancel()
task = asyncio.create_task(slept())
await called()
[entry[0] for entry in seen], seen
"""


async def test_a_timer_that_came_before_a_call_does_so_again(bench: Bench) -> None:
    gate = bench.gates[1] = asyncio.Event()
    bench.on_ten = gate.set
    run, replays = await bench.replayed(TIMER_FIRST)
    assert run.data[0] == ["slept", "called"]
    assert [replay.divergence for replay in replays.values()] == [None, None]


async def test_a_call_that_came_before_a_timer_does_so_again(bench: Bench) -> None:
    bench.gates[1] = asyncio.Event()
    bench.gates[1].set()
    run, replays = await bench.replayed(CALL_FIRST)
    assert run.data[0] == ["called"]
    assert replays["cpython"].divergence is None


GIVEN_UP = """
import asyncio
seen = []
for n in range(2):
    try:
        seen.append(await asyncio.wait_for(df.tool.t.late(n=n), timeout=0.01))
    except asyncio.TimeoutError:
        seen.append("given up")
seen
"""


async def test_a_call_that_was_given_up_is_given_up_again(bench: Bench) -> None:
    bench.gates = {0: asyncio.Event(), 1: asyncio.Event()}
    run, replays = await bench.replayed(GIVEN_UP)
    assert (run.data, [call.status for call in run.calls]) == (["given up", "given up"], ["unfinished"] * 2)
    assert replays["cpython"].divergence is None


SPINNING = """
import asyncio
task = asyncio.create_task(df.tool.t.late(n=1))
spins = 0
while not task.done():
    await asyncio.sleep(0)
    spins += 1
[spins, await task]
"""
SPINNING_BY_A_TIMER = """
import asyncio
seen = []
async def tick():
    await asyncio.sleep(0.01)
    seen.append("tick")
tasks = [asyncio.create_task(df.tool.t.late(n=1)), asyncio.create_task(tick())]
spins = 0
while not all(task.done() for task in tasks):
    await asyncio.sleep(0)
    spins += 1
    if tasks[0].done() and "call" not in seen:
        seen.append("call")
[spins, seen]
"""


@pytest.mark.parametrize("source", [SPINNING, SPINNING_BY_A_TIMER])
async def test_a_script_that_never_waits_spins_as_often(bench: Bench, source: str) -> None:
    bench.gates[1] = asyncio.Event()
    asyncio.get_running_loop().call_later(0.005 + 0.01 * random.random(), bench.gates[1].set)
    run, replays = await bench.replayed(source)
    assert run.status == "succeeded", run.error
    assert replays["cpython"].divergence is None


@pytest.mark.parametrize(
    ("source", "limits", "status"),
    [
        ("while True: pass", Limits(cpu_seconds=0.1), "timed-out"),
        ("def f(:", Limits(), "rejected"),
    ],
)
async def test_a_run_that_did_not_end_by_itself_is_not_replayed(
    bench: Bench, source: str, limits: Limits, status: str
) -> None:
    run = await (await bench.session()).run(source, limits=limits)
    assert run.status == status
    with pytest.raises(FailedError) as refused:
        await bench.workspace.replay(run.run_id)
    assert (refused.value.code, refused.value.details) == ("replay-impossible", {"status": status})


async def test_a_cancelled_run_is_not_replayed(bench: Bench) -> None:
    bench.gates[1] = asyncio.Event()
    called = asyncio.Event()
    bench.on_late = called.set
    task = asyncio.create_task((await bench.session()).run("await df.tool.t.late(n=1)"))
    await called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(FailedError, match="was cancelled"):
        await bench.workspace.replay("1", session=bench.name)


async def test_a_run_is_named_by_id_prefix_or_number(bench: Bench) -> None:
    run = await (await bench.session()).run("1")
    await (await bench.session(f"{bench.name}-b")).run("2")
    for name, session in (
        (run.run_id, None),
        (run.run_id[:16], None),
        ("1", bench.name),
        (run.run_id, bench.name),
    ):
        assert (await bench.workspace.replay(name, session=session)).run_id == run.run_id
    for name, session in (
        ("1", None),
        ("2", bench.name),
        ("run_", None),
        (run.run_id, f"{bench.name}-b"),
        ("", None),
    ):
        with pytest.raises(NotFoundError) as missing:
            await bench.workspace.replay(name, session=session)
        assert missing.value.code == "run-not-found"


async def test_an_engine_that_cannot_run_the_script_says_so(bench: Bench) -> None:
    run = await (await bench.session()).run("import uuid\nstr(uuid.uuid4())")
    assert list(await bench.replays(run)) == ["cpython"]
