"""Limits are kept from outside: whatever a script does, the host goes on and the next run works."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from affidavit.runtime.program import Limits, RunOutcome, ScriptCall

from .world import Bench, World

_MB = 1 << 20


@pytest.fixture(autouse=True)
def _next_run_works(bench: Bench) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    assert bench.value("1 + 1") == 2


def _code(outcome: RunOutcome) -> str:
    assert outcome.error is not None
    return outcome.error.code


@pytest.mark.parametrize(
    "script",
    [
        "while True:\n    pass",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "try:\n    while True:\n        pass\nfinally:\n    while True:\n        pass",
        "n = 0\nwhile True:\n    n += 1",
        "x = 7 ** 3_000_000\nwhile True:\n    y = x * x",
    ],
)
def test_cpu_is_limited_and_cannot_be_caught(bench: Bench, script: str) -> None:
    outcome = bench.run(script, limits=Limits(cpu_seconds=0.3, wall_seconds=30.0))
    assert (outcome.reason, _code(outcome)) == ("timed-out", "timed-out")


def test_wall_time_is_limited_and_keeps_output_and_calls(bench: Bench) -> None:
    world = World()
    script = "print('before')\nawait df.tool.math.ten(1)\nawait df.tool.math.hang()"
    outcome = bench.run(script, world, limits=Limits(wall_seconds=0.5))
    assert (outcome.reason, _code(outcome)) == ("timed-out", "timed-out")
    assert outcome.stdout == "before\n"
    assert world.paths == ["tool.math.ten", "tool.math.hang"]
    assert world.cancelled == 1


def test_a_time_out_keeps_output_and_calls(bench: Bench) -> None:
    world = World()
    outcome = bench.run(
        "print('before')\nawait df.tool.math.ten(1)\nwhile True: pass", world, limits=Limits(cpu_seconds=0.3)
    )
    assert outcome.reason == "timed-out"
    assert outcome.stdout == "before\n"
    assert world.paths == ["tool.math.ten"]


def test_sleeping_is_waiting(bench: Bench) -> None:
    outcome = bench.run("import time\ntime.sleep(1000)", limits=Limits(wall_seconds=0.4))
    assert outcome.reason == "timed-out"
    outcome = bench.run("import asyncio\nawait asyncio.sleep(1000)", limits=Limits(wall_seconds=0.4))
    assert outcome.reason == "timed-out"


@pytest.mark.parametrize(
    "script",
    [
        "'a' * 10 ** 10",
        "[0] * 10 ** 10",
        "x = []\nwhile True:\n    x.append('a' * 1_000_000 + str(len(x)))",
        "d = {}\nfor n in range(10 ** 9):\n    d[n] = str(n) * 100",
    ],
)
def test_memory_is_limited(bench: Bench, script: str) -> None:
    before = _resident()
    outcome = bench.run(script, limits=Limits(memory_bytes=64 * _MB, cpu_seconds=20.0))
    assert (outcome.reason, _code(outcome)) == ("memory", "memory-exceeded")
    gc.collect()
    assert _resident() - before < 64 * _MB + 100 * _MB


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "script", ["10 ** 10 ** 8", "9 ** 9 ** 9", "len(str(10 ** 4_000_000))", "f'{1:>{10 ** 10}}'"]
)
def test_huge_numbers_are_stopped_or_refused(bench: Bench, script: str) -> None:
    outcome = bench.run(script, limits=Limits(memory_bytes=64 * _MB, cpu_seconds=1.0, wall_seconds=10.0))
    assert outcome.error is not None
    assert outcome.reason in ("timed-out", "memory", "error")


def test_output_is_cut_and_counted(bench: Bench) -> None:
    limits = Limits(output_bytes=1000)
    outcome = bench.run("for n in range(100):\n    print('x' * 99)\n'done'", limits=limits)
    assert outcome.error is None
    assert outcome.stdout == ("x" * 99 + "\n") * 10
    assert outcome.stdout_cut == 9000
    outcome = bench.run("print('é' * 1000)", limits=limits)
    assert outcome.stdout == "é" * 500
    assert outcome.stdout_cut == 501


def test_calls_are_limited_and_the_script_is_told(bench: Bench) -> None:
    world = World()
    script = (
        "done = 0\ntry:\n    while True:\n        await df.tool.math.ten(1)\n        done += 1\n"
        "except df.Error as error:\n    said = error.code\n[done, said]"
    )
    assert bench.value(script, world, limits=Limits(calls=7)) == [7, "budget-exceeded"]
    assert len(world.calls) == 7


def test_gathered_calls_are_limited_as_well(bench: Bench) -> None:
    world = World()
    script = "import asyncio\nawait asyncio.gather(*[df.tool.math.ten(n) for n in range(50)])"
    assert _code(bench.run(script, world, limits=Limits(calls=20))) == "budget-exceeded"
    assert len(world.calls) == 20


def test_what_df_answers_at_once_costs_nothing(bench: Bench) -> None:
    world = World()
    assert (
        bench.value(
            "for n in range(5):\n    df.calls()\nawait df.tool.math.ten(1)", world, limits=Limits(calls=1)
        )
        == 10
    )


def test_a_script_that_keeps_calling_is_stopped(bench: Bench) -> None:
    world = World()
    script = "while True:\n    try:\n        await df.tool.math.ten(1)\n    except df.Error:\n        pass"
    outcome = bench.run(script, world, limits=Limits(calls=3, cpu_seconds=30.0, wall_seconds=100.0))
    assert _code(outcome) in ("budget-exceeded", "timed-out")
    assert len(world.calls) == 3


def test_arguments_are_limited(bench: Bench) -> None:
    world = World()
    script = (
        "try:\n    await df.tool.math.echo('x' * {size})\n    said = 'sent'\n"
        "except df.Error as error:\n    said = error.code\nsaid"
    )
    limits = Limits(argument_bytes=10_000)
    assert bench.value(script.format(size=9_900), world, limits=limits) == "sent"
    assert bench.value(script.format(size=10_100), world, limits=limits) == "budget-exceeded"
    assert bench.value(script.format(size=50_000_000), world, limits=limits) == "budget-exceeded"
    assert len(world.calls) == 1


@pytest.mark.parametrize("where", ["def f():\n    return f()\n", "def f():\n    return 1 + f()\n"])
def test_recursion_is_limited_and_can_be_caught(bench: Bench, where: str) -> None:
    outcome = bench.run(where + "f()")
    assert _code(outcome) == "recursion"
    assert bench.value(where + "try:\n    f()\nexcept RecursionError:\n    said = 'deep'\nsaid") == "deep"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit()", "the script called exit()"),
        ("exit(3)", "the script called exit(3)"),
        ("quit('bye')", "the script called exit('bye')"),
        ("import sys\nsys.exit(2)", "the script called exit(2)"),
        ("raise SystemExit", "the script called exit()"),
        ("raise SystemExit(4)", "the script called exit(4)"),
        ("try:\n    exit(1)\nexcept Exception:\n    pass", "the script called exit(1)"),
    ],
)
def test_exit_ends_the_script_and_never_the_host(bench: Bench, script: str, message: str) -> None:
    outcome = bench.run("print('before')\n" + script)
    assert outcome.error is not None
    assert (outcome.reason, outcome.error.code, outcome.error.message) == ("exit", "script-exit", message)
    assert outcome.stdout == "before\n"


# ---- cancellation, death, company ----


def test_cancelling_ends_the_sandbox_and_joins_the_calls(bench: Bench) -> None:
    world = World(expected=2)

    async def cancelled() -> None:
        task = asyncio.create_task(
            bench.start(
                "import asyncio\nawait asyncio.gather(df.tool.math.hang(), df.tool.math.hang())", world
            )
        )
        await world.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = [other for other in asyncio.all_tasks() if other is not asyncio.current_task()]
        assert [other for other in left if "handle" in repr(other)] == []

    bench.complete(cancelled())
    assert world.cancelled == 2


def test_cancelling_a_busy_script_ends_it(bench: Bench) -> None:
    async def cancelled() -> None:
        world = World()
        task = asyncio.create_task(bench.start("await df.tool.math.ten(1)\nwhile True: pass", world))
        await world.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench.complete(cancelled())


def test_calls_still_under_way_at_the_end_are_cancelled_and_joined(bench: Bench) -> None:
    world = World()
    script = (
        "import asyncio\ntry:\n    await asyncio.gather(df.tool.math.hang(), df.tool.math.fail('stop'))\n"
        "except df.Error:\n    said = 'gave up'\nsaid"
    )
    assert bench.value(script, world) == "gave up"
    assert world.cancelled == 1


def test_the_engine_goes_on_after_its_processes_died(bench: Bench) -> None:
    others = set(_families())  # the engine of the other tests may make children at any time: it keeps them
    own = Bench(type(bench.engine)())
    world = World()

    async def killed(_: ScriptCall) -> None:
        for parent, children in _families().items():
            for pid in [] if parent in others else [parent, *children]:
                os.kill(pid, signal.SIGKILL)

    world.on_call = killed
    try:
        outcome = own.run("print('said')\nawait df.tool.math.ten(1)\nwhile True: pass", world)
        assert outcome.error is not None
        assert outcome.error.code in (
            "engine-lost",
            "memory-exceeded",
        )  # the kernel kills no other way when memory ends
        assert outcome.stdout == "said\n"
        assert world.paths == ["tool.math.ten"]
        assert own.value("1 + 1") == 2
    finally:
        own.close()
    assert set(_families()) <= others


def test_several_runs_at_once_do_not_meet(bench: Bench) -> None:
    async def many() -> list[RunOutcome]:
        return await asyncio.gather(
            *[
                bench.start(
                    f"x = {n}\nfor _ in range(3):\n    x += await df.tool.math.ten(1)\nprint(x)\nx", World()
                )
                for n in range(6)
            ]
        )

    outcomes = bench.complete(many())
    assert [outcome.value for outcome in outcomes] == [str(n + 30).encode() for n in range(6)]
    assert [outcome.stdout for outcome in outcomes] == [f"{n + 30}\n" for n in range(6)]


def test_nothing_of_a_run_is_left_for_the_next(bench: Bench) -> None:
    assert (
        bench.value(
            "leftover = 1\nimport math\nmath.pi = 3\nleftover" if bench.name == "cpython" else "leftover = 1"
        )
        == 1
    )
    outcome = bench.run("leftover")
    assert outcome.error is not None
    assert outcome.error.type == "NameError"
    assert bench.value("import math\nmath.pi") > 3.14


def _families() -> dict[int, list[int]]:
    """The children of this process, and theirs."""
    found = [pid for task in Path("/proc/self/task").iterdir() for pid in _children(task / "children")]
    return {pid: _children(Path(f"/proc/{pid}/task/{pid}/children")) for pid in found}


def _children(listed: Path) -> list[int]:
    """The process ids in a file of the kernel; none where its thread has ended meanwhile."""
    try:
        return [int(pid) for pid in listed.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
