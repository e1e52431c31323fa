"""Engines start, restart, end and leave nothing behind; runs are independent of each other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from affidavit.errors import FailedError
from affidavit.runtime.engines.cpython import CPythonEngine
from affidavit.runtime.engines.cpython.process import Zygote
from affidavit.runtime.engines.finding import Finding
from affidavit.runtime.program import CallFailed, CallResult, Limits, RunOutcome, ScriptCall

from .bench import Bench, Host, make, members


def _alone(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_many_runs_at_once(bench: Bench) -> None:
    async def work() -> list[RunOutcome]:
        hosts = [Host() for _ in range(12)]
        runs = [
            bench.engine.run(make(f"await df.ok({n})\nsum(range({n}))"), host.handle)
            for n, host in enumerate(hosts)
        ]
        outcomes = await asyncio.gather(*runs)
        assert [len(host.calls) for host in hosts] == [1] * 12
        return outcomes

    assert [outcome.value for outcome in bench.wait(work())] == [
        str(sum(range(n))).encode() for n in range(12)
    ]


def test_calls_run_at_the_same_time(bench: Bench) -> None:
    """Twenty calls that each wait for all twenty to have begun."""
    everyone = asyncio.Barrier(20)

    async def meet(_: ScriptCall) -> None:
        await everyone.wait()

    source = "import asyncio\nlen(await asyncio.gather(*[df.ok(i) for i in range(20)]))"
    assert bench.value(source, Host(meet)) == 20


def test_more_calls_at_once_than_are_served_at_once(bench: Bench) -> None:
    source = "import asyncio\nlen(await asyncio.gather(*[df.ok('x' * 500) for i in range(3000)]))"
    assert bench.value(source) == 3000


def test_a_large_argument_and_a_large_answer(bench: Bench) -> None:
    assert bench.value("len(await df.ok('é' * 400_000))") == 400_000


def test_a_large_value_and_a_large_source(bench: Bench) -> None:
    source = f"text = {'x' * 900_000!r}\n[text] * 4"
    assert len(bench.value(source)[3]) == 900_000


def test_cancelling_a_run_ends_its_process_and_its_calls(bench: Bench) -> None:
    host = Host()

    async def work() -> list[int]:
        running = asyncio.create_task(bench.engine.run(make("await df.hang()"), host.handle))
        await host.hanging.wait()
        assert bench.engine.pid is not None
        before = members(bench.engine.pid)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return [pid for pid in before if pid not in members(bench.engine.pid)]

    assert len(bench.wait(work())) == 1
    assert host.cancelled == 1
    assert bench.value("1") == 1


def test_a_time_out_cancels_the_calls_that_are_under_way(bench: Bench) -> None:
    host = Host()
    outcome = bench.run("print('kept')\nawait df.hang()", host, limits=Limits(wall_seconds=0.3))
    assert (outcome.reason, outcome.stdout, host.cancelled) == ("timed-out", "kept\n", 1)
    assert outcome.error is not None
    assert outcome.error.code == "timed-out"
    assert "0.3 s" in outcome.error.message


def test_what_the_handler_raises_is_the_callers(bench: Bench) -> None:
    async def broken(_: ScriptCall) -> None:
        raise LookupError("store")

    with pytest.raises(LookupError, match="store"):
        bench.run("try:\n    await df.ok(1)\nexcept BaseException:\n    pass\nwhile True: pass", Host(broken))
    assert bench.value("1") == 1


def test_cpu_time_is_told(bench: Bench) -> None:
    outcome = bench.run("n = 0\nfor i in range(2_000_000):\n    n += i")
    assert 0.01 < outcome.cpu_seconds < 20


def test_memory_that_a_script_may_use_is_there(bench: Bench) -> None:
    limits = Limits(memory_bytes=128 << 20)
    assert bench.value("len(bytearray(100 << 20))", limits=limits) == 100 << 20
    error = bench.error("len(bytearray(160 << 20))", limits=limits)
    assert (error.code, error.message) == ("memory-exceeded", "the script used up its 128 MB of memory")


def test_an_error_does_not_wait_for_threads(bench: Bench) -> None:
    source = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n1 / 0"
    assert bench.error(source).type == "ZeroDivisionError"


def test_a_zygote_that_dies_is_replaced() -> None:
    async def work() -> None:
        engine = CPythonEngine()
        await engine.start()
        host = Host()
        first = engine.pid
        assert first is not None
        running = asyncio.create_task(engine.run(make("await df.hang()"), host.handle))
        await host.hanging.wait()
        os.kill(first, signal.SIGKILL)
        outcome = await running
        assert (outcome.reason, outcome.error and outcome.error.code) == ("lost", "engine-lost")
        after = await engine.run(make("1 + 1"), host.handle)
        assert after.value == b"2"
        assert engine.pid not in (None, first)
        assert members(first) == []
        await engine.close()

    _alone(work())


def test_closing_ends_everything_and_is_final() -> None:
    async def work() -> None:
        engine = CPythonEngine()
        host = Host()
        running = asyncio.create_task(engine.run(make("await df.hang()"), host.handle))
        await host.hanging.wait()
        session = engine.pid
        assert session is not None
        assert len(members(session)) >= 2
        await engine.close()
        assert members(session) == []
        assert (await running).reason == "lost"
        with pytest.raises(FailedError) as refused:
            await engine.run(make("1"), host.handle)
        assert refused.value.code == "engine-unavailable"
        await engine.close()

    _alone(work())


def test_nothing_outlives_a_host_that_is_killed() -> None:
    """The zygote sees the host's socket close, and the kernel ends the script with the zygote."""
    code = (
        "import asyncio, sys\nfrom affidavit.runtime.engines.cpython import CPythonEngine\n"
        "from affidavit.runtime.program import Program\n"
        "async def handle(call):\n    print(engine.pid, flush=True)\n    await asyncio.Event().wait()\n"
        "engine = CPythonEngine()\n"
        "leaf = {'$call': 'hang', 'parameters': [], 'positional': 0, 'kind': 'operation'}\n"
        "source = 'import asyncio\\nt = asyncio.create_task(df.hang())\\nawait asyncio.sleep(0)\\nwhile True: pass'\n"
        "source = source.replace('sleep(0)', 'sleep(0.05)')\n"
        "asyncio.run(engine.run(Program(source=source, tree={'hang': leaf}), handle))\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    with host.stdout:
        session = int(host.stdout.readline())
        assert len(members(session)) >= 2
        host.kill()
        host.wait()
    give_up = time.monotonic() + 20
    while members(session):
        assert time.monotonic() < give_up
        os.sched_yield()


def test_starting_starts_once() -> None:
    async def work() -> None:
        engine = CPythonEngine()
        await asyncio.gather(engine.start(), engine.start(), engine.start())
        first = engine.pid
        await engine.start()
        assert engine.pid == first
        assert engine.unsupported("anything", {}) == []
        await engine.close()

    _alone(work())


def test_an_interpreter_that_does_not_start_makes_the_engine_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        with pytest.raises(FailedError) as refused:
            await CPythonEngine().start()
        assert refused.value.code == "engine-unavailable"

    for broken in ("/does/not/exist", "/bin/false"):
        monkeypatch.setattr("sys.executable", broken)
        _alone(work())


def test_isolation_that_does_not_hold_makes_the_engine_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaky(_: object) -> list[Finding]:
        return [
            Finding(name="fork", ok=False, detail="process 7"),
            Finding(name="Landlock", ok=False, decisive=False),
        ]

    async def work() -> None:
        engine = CPythonEngine()
        with pytest.raises(FailedError) as refused:
            await engine.start()
        assert refused.value.code == "engine-unavailable"
        assert "fork: process 7" in refused.value.message
        assert "Landlock" not in refused.value.message
        await engine.close()

    monkeypatch.setattr("affidavit.runtime.engines.cpython.engine.findings", leaky)
    _alone(work())


def test_the_probe_tries_and_tells() -> None:
    found = {finding.name: finding for finding in CPythonEngine.probe()}
    assert {
        "fork",
        "exec",
        "socket",
        "read a file",
        "stat",
        "limits of the parent",
        "signal to the parent",
    } <= set(found)
    assert {"threads work", "seccomp", "Landlock"} <= set(found)
    assert [finding for finding in found.values() if finding.decisive and not finding.ok] == []


def test_the_probe_also_works_inside_a_loop() -> None:
    async def work() -> None:
        assert CPythonEngine.probe() != []

    _alone(work())


def test_a_fork_that_fails_is_told(bench: Bench) -> None:
    """The zygote answers a request that it cannot meet; the message is the one a full process table gives."""

    async def work() -> None:
        zygote = await Zygote.spawn()
        child = zygote.fork()
        await child.ready
        child.failed("Resource temporarily unavailable")
        assert child.ended.done()
        child.release()
        await zygote.close()

    bench.wait(work())


def test_a_failure_may_say_anything(bench: Bench) -> None:
    """A far side's message with half a surrogate pair, and details that no JSON library likes."""

    async def handle(call: ScriptCall) -> CallResult:
        return CallFailed(
            code="tool-failed",
            message="\ud800x",
            hint="",
            retryable=False,
            details={"at": {1, 2}},
            completed=1.0,
        )

    source = "try:\n    await df.ok(1)\nexcept df.Error as e:\n    r = [len(e.message), e.details]\nr"
    outcome = bench.wait(bench.engine.run(make(source), handle))
    assert outcome.error is None
    assert json.loads(outcome.value or b"") == [2, {"at": "{1, 2}"}]
