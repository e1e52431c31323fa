"""A sandbox may take a program in before it may start: nothing of it runs before, and it runs as it would have."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest

from affidavit.runtime.program import Earlier, Limits, PreambleEntry, Program

from .bench import Bench, Host, make, members

_RESULTS = (
    Earlier(number=3, run_id="r3", kind="large", size=30, content=b'{"n":{"$float":"3.0"},"rows":[1,2]}'),
    Earlier(number=2, run_id="r2", kind="data", size=9, content=b'{"$int":"no number"}'),
    Earlier(number=1, run_id="r1", kind="data", size=7, content=b'{"n":[]}'),
)
_PROGRAMS: dict[str, Program] = {
    "a value": make("print('out')\n[await df.ok(n=1), 2.0]"),
    "not Python": make("x = (1,\n"),
    "a null byte": make("x = 1\0"),
    "an exception": make("x = 1\nx / 0"),
    "a preamble": make("f(2)", preamble=(PreambleEntry(key="f", code="def f(n):\n    return n + 1\n"),)),
    "a preamble and a syntax error": make(
        "(", preamble=(PreambleEntry(key="f", code="print('loaded')\nraise ValueError('no')\n"),)
    ),
    "chance and time": make("import random, time\n[random.random(), time.time()]", seed=7),
    "results": make(
        "r = results[2].data['n']\nr.append((await results[0].load())['n'])\nr", results=_RESULTS
    ),
    "a large result": make("results[0].data", results=_RESULTS[:1]),
    "a result that cannot be read": make("results[1].data", results=_RESULTS),
    "too little memory": make("len([0] * (1 << 28))", limits=Limits(memory_bytes=64 << 20)),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_it_runs_as_it_would_have(bench: Bench, name: str) -> None:
    program = _PROGRAMS[name]

    async def held() -> Any:
        starts = asyncio.Event()
        running = asyncio.create_task(bench.engine.run(program, Host().handle, starts=starts))
        await bench.engine.run(make("1"), Host().handle)
        starts.set()
        return await running

    at_once = bench.wait(bench.engine.run(program, Host().handle))
    assert replace(bench.wait(held()), cpu_seconds=0.0) == replace(at_once, cpu_seconds=0.0)


def test_nothing_runs_before_the_start(bench: Bench) -> None:
    """While it is held, all its sandbox does is waiting: a later program comes to its end meanwhile."""
    host = Host()

    async def work() -> list[int]:
        starts = asyncio.Event()
        running = asyncio.create_task(bench.engine.run(make("await df.ok(n=1)"), host.handle, starts=starts))
        for _ in range(3):
            await bench.engine.run(make("await df.ok(n=2)"), Host().handle)
        made = [len(host.calls)]
        starts.set()
        assert (await running).value == b"1"
        return [*made, len(host.calls)]

    assert bench.wait(work()) == [0, 1]


def test_the_time_before_the_start_is_not_its_own(bench: Bench) -> None:
    async def work() -> Any:
        starts = asyncio.Event()
        limits = Limits(wall_seconds=1.0)
        running = asyncio.create_task(
            bench.engine.run(make("5", limits=limits), Host().handle, starts=starts)
        )
        await bench.engine.run(make("import time\ntime.sleep(1.2)"), Host().handle)
        starts.set()
        return await running

    assert bench.wait(work()).value == b"5"


def test_what_never_starts_is_ended(bench: Bench) -> None:
    async def work() -> None:
        await bench.engine.start()
        assert bench.engine.pid is not None
        host = Host()
        running = asyncio.create_task(
            bench.engine.run(make("await df.ok(n=1)"), host.handle, starts=asyncio.Event())
        )
        await bench.engine.run(make("1"), Host().handle)
        before = members(bench.engine.pid)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert [pid for pid in before if pid not in members(bench.engine.pid)] != []
        assert host.calls == []
        assert (await bench.engine.run(make("1 + 1"), Host().handle)).value == b"2"

    bench.wait(work())
