"""Time and chance are part of the program: the same program sees the same, on either engine."""

from __future__ import annotations

import pytest

from .world import CLOCK, Bench, World

_REPEATABLE = (
    "import random, time\nfrom datetime import date, datetime\n"
    "start = time.time()\nfirst = datetime.now().isoformat()\nawait df.tool.math.ten(1)\ntime.sleep(0.25)\n"
    "[start, first, time.time(), str(date.today()), random.random(), random.randint(1, 10 ** 6),"
    " random.sample(range(50), 5),"
    " time.perf_counter() < time.perf_counter(), time.monotonic()]"
)


def test_two_runs_see_the_same_time_and_chance(bench: Bench) -> None:
    one, two, other = (bench.value(_REPEATABLE, World(), seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one[4:7] != other[4:7]
    assert one[0] == CLOCK
    assert one[1] == "2023-11-14T22:13:20"
    assert one[2] == pytest.approx(CLOCK + 1.25, abs=1e-6)


def test_both_engines_see_the_same_time_and_chance(both: tuple[Bench, Bench]) -> None:
    one, other = (bench.value(_REPEATABLE, World(), seed=5) for bench in both)
    assert one == other
