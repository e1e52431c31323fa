"""Faults that tools of this kind were reported for, as scripts."""

from __future__ import annotations

import pytest

from affidavit.runtime.program import Limits

from .world import Bench, World

_MEANING = """\
import asyncio
collected = []
for i in range(3):
    try:
        collected.append(await df.tool.math.echo(i))
        if i == 1:
            await df.tool.math.fail("row 1")
    except Exception as problem:
        collected.append("caught " + ("row 1" if "row 1" in str(problem) else "?"))
numbers, asked = [1, 2], [0]
def following():
    asked[0] += 1
    return asked[0] - 1
numbers[following()] += 10
first, *others = "abc"
[p, q] = [7, 8]
merged = {**{"a": 1}, "a": 2}
{"collected": collected, "numbers": numbers, "asked": asked[0], "others": others, "pq": [p, q], "merged": merged}
"""


def test_python_means_what_it_means(bench: Bench) -> None:
    world = World()
    assert bench.value(_MEANING, world) == {
        "collected": [0, 1, "caught row 1", 2],
        "numbers": [11, 2],
        "asked": 1,
        "others": ["b", "c"],
        "pq": [7, 8],
        "merged": {"a": 2},
    }
    assert world.paths == ["tool.math.echo", "tool.math.echo", "tool.math.fail", "tool.math.echo"]


_LIMITS = Limits(wall_seconds=2.0, cpu_seconds=2.0, memory_bytes=64 << 20)


@pytest.mark.parametrize("script", ["10 ** 10 ** 8", "'a' * 10 ** 10"])
def test_one_big_operation_is_stopped(bench: Bench, script: str) -> None:
    outcome = bench.run(script, limits=_LIMITS)
    assert outcome.reason in ("timed-out", "memory")
    assert bench.value("1 + 1", limits=_LIMITS) == 2


def test_a_time_limit_keeps_what_was_printed_and_called(bench: Bench) -> None:
    world = World()
    outcome = bench.run("print('before')\nawait df.tool.math.ten(1)\nwhile True: pass", world, limits=_LIMITS)
    assert (outcome.reason, outcome.stdout, world.paths) == ("timed-out", "before\n", ["tool.math.ten"])
    assert bench.value("1 + 1", limits=_LIMITS) == 2


def test_format_strings_reach_no_class_of_the_host(bench: Bench) -> None:
    outcome = bench.run("'{0.__class__.__mro__}'.format(1)", limits=_LIMITS)
    assert outcome.error is not None or b"affidavit" not in (outcome.value or b"")


def test_endless_recursion_is_an_error_that_can_be_caught(bench: Bench) -> None:
    outcome = bench.run("def f(): return f()\nf()", limits=_LIMITS)
    assert outcome.error is not None
    assert outcome.error.code == "recursion"
    caught = "def f(): return f()\ntry:\n    f()\nexcept RecursionError:\n    caught = True\ncaught"
    assert bench.value(caught, limits=_LIMITS) is True
