"""What an engine does with decisions that are given: it follows them and waits for nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
import pytest_asyncio

from affidavit.runtime.engines.cpython import CPythonEngine
from affidavit.runtime.engines.engine import Engine
from affidavit.runtime.engines.monty import MontyEngine
from affidavit.runtime.program import CallResult, CallReturned, Limits, Program, ScriptCall

TREE: Any = {"f": {"$call": "f", "parameters": ["n"], "positional": 1, "kind": "operation", "struct": False}}
RACE = """
import asyncio
seen = []
async def slept(n):
    await asyncio.sleep(n)
    seen.append(f"slept {n}")
async def called(n):
    seen.append(await df.f(n))
await asyncio.gather(slept(1000), called(0), slept(2000), called(1))
seen
"""


pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package", params=[CPythonEngine, MontyEngine])
async def engine(request: pytest.FixtureRequest) -> Any:
    made: Engine = request.param()
    await made.start()
    yield made
    await made.close()


async def answer(call: ScriptCall) -> CallResult:
    return CallReturned(json=b'"call %d"' % call.arguments["n"], completed=0.0)


@pytest.mark.parametrize(
    ("timers", "seen"),
    [
        ((1, 1), ["call 0", "call 1", "slept 1000", "slept 2000"]),
        ((-1, 1, 1), ["slept 1000", "call 0", "call 1", "slept 2000"]),
        ((1, -1, 1), ["call 0", "slept 1000", "call 1", "slept 2000"]),
        ((-1, -1), ["slept 1000", "slept 2000", "call 0", "call 1"]),
        ((), ["slept 1000", "slept 2000", "call 0", "call 1"]),
    ],
)
async def test_decisions_are_followed(engine: Engine, timers: tuple[int, ...], seen: list[str]) -> None:
    program = Program(source=RACE, tree=TREE, timers=timers, limits=Limits(wall_seconds=100))
    outcome = await engine.run(program, answer)
    assert orjson.loads(outcome.value or b"null") == seen
    assert outcome.timers[: len(timers)] in (timers, ())


async def test_sleeping_moves_the_clock_and_takes_no_time(engine: Engine) -> None:
    source = "import asyncio, time\nawait asyncio.sleep(3600)\ntime.sleep(1800)\ntime.time()"
    program = Program(source=source, tree={}, clock=1e9, timers=(), limits=Limits(wall_seconds=100))
    outcome = await engine.run(program, answer)
    assert outcome.value == b"1000005400.0" or orjson.loads(outcome.value or b"null") == {
        "$float": "1000005400.0"
    }


async def test_a_run_writes_down_what_it_decided(engine: Engine) -> None:
    gate = asyncio.Event()

    async def late(call: ScriptCall) -> CallResult:
        if call.arguments["n"] == 1:
            await gate.wait()
        else:
            gate.set()
        return await answer(call)

    source = """
import asyncio
seen = []
async def slept():
    await asyncio.sleep(0.001)
    seen.append("slept")
    seen.append(await df.f(0))
async def called():
    seen.append(await df.f(1))
await asyncio.gather(slept(), called())
seen
"""
    program = Program(source=source, tree=TREE, clock=1e9)
    outcome = await engine.run(program, late)
    assert orjson.loads(outcome.value or b"null")[0] == "slept"
    assert outcome.timers == (-1,)
