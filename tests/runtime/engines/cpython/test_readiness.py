"""What makes a child ready before it is needed: when it is forked, and in what memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

import pytest

from affidavit.runtime.engines.cpython.pool import Pool
from affidavit.runtime.engines.cpython.process import Child, Zygote

from .bench import Bench, Host


def _wait(bench: Bench, work: Coroutine[Any, Any, None]) -> None:
    bench.wait(work)


class _Counted:
    """A pool, and the children that were asked for."""

    def __init__(self, zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Child] = []
        fork = zygote.fork

        def counted() -> Child:
            child = fork()
            self.asked.append(child)
            return child

        monkeypatch.setattr(zygote, "fork", counted)
        self.pool = Pool(zygote)

    async def close(self) -> None:
        """End all, also what the test took and kept."""
        await self.pool.close()
        for child in self.asked:
            child.release()


def test_no_child_is_made_while_a_run_goes_on_and_another_waits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        zygote = await Zygote.spawn()
        counted = _Counted(zygote, monkeypatch)
        pool = counted.pool
        try:
            first = await pool.take()
            assert len(counted.asked) >= 2
            parked = counted.asked[1]
            await parked.ready
            before = len(counted.asked)
            second = await pool.take()  # the last that waited: others are asked for at once
            assert second is parked
            fresh = await pool.take()
            assert fresh not in (first, second)
            assert len(counted.asked) > before
            for child in (first, second, fresh):
                pool.put_back(child)
                await child.ended
            assert (await pool.take()).pid not in {first.pid, second.pid, fresh.pid}
        finally:
            await counted.close()

    _wait(bench, work())


def test_a_run_that_ends_is_replaced(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        zygote = await Zygote.spawn()
        counted = _Counted(zygote, monkeypatch)
        try:
            child = await counted.pool.take()
            before = len(counted.asked)
            counted.pool.put_back(child)
            await child.ended
            taken = [await counted.pool.take() for _ in range(before)]
            assert len({one.pid for one in taken} | {child.pid}) == before + 1
            assert len(counted.asked) > before
        finally:
            await counted.close()

    _wait(bench, work())


def test_closing_leaves_nothing_that_forks_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        zygote = await Zygote.spawn()
        counted = _Counted(zygote, monkeypatch)
        child = await counted.pool.take()
        await counted.pool.close()
        asked = len(counted.asked)
        counted.pool.put_back(child)
        counted.pool.fill()
        assert len(counted.asked) == asked
        await counted.close()

    _wait(bench, work())


_GAPS = """
import itertools, json, sys
from affidavit.runtime.engines.cpython.guest.preload import fill_gaps

def beside(size):
    made = [bytes(size - sys.getsizeof(b"")) for _ in range(16)]
    places = [id(one) for one in made]
    return sum(abs(after - before) == size for before, after in itertools.pairwise(places))

sizes = (64, 112, 256, 400)
scattered = [[bytes(size - sys.getsizeof(b"")) for _ in range(1_000)] for size in sizes]
for objects in scattered:
    del objects[::3]
before = [beside(size) for size in sizes]
kept = fill_gaps()
print(json.dumps([before, [beside(size) for size in sizes], sum(map(len, kept))]))
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="its allocator is meant")
def test_objects_that_come_after_the_gaps_were_filled_lie_together() -> None:
    """Of sixteen new objects of a size, how many lie next to the one before; in an interpreter of its own."""
    said = subprocess.run([sys.executable, "-c", _GAPS], check=True, capture_output=True, text=True).stdout
    before, after, kept = json.loads(said)
    assert max(before) < 10, before
    assert min(after) >= 10, after
    assert kept > 1_000


def test_a_run_sees_nothing_of_the_rehearsal_and_of_other_runs(bench: Bench) -> None:
    """What a child does before its script leaves no trace, and what a script does to its modules goes with it."""
    look = (
        "import asyncio, gc, json, random, sys\n"
        "names = sorted(name for name in globals() if not name.startswith('__'))\n"
        "tasks = len(await asyncio.sleep(0, asyncio.all_tasks()))\n"
        "[names, tasks, hasattr(json, 'mark'), random.random(), sorted(m for m in sys.modules if 'affidavit' in m)]"
    )
    mark = (
        "import json, random, builtins\njson.mark = 1\nrandom.seed(5)\nbuiltins.left = 1\njson.loads = None"
    )
    first = bench.value(look)
    bench.value(mark)
    assert bench.value(look) == first
    names, tasks, marked, _, modules = first
    assert names == ["asyncio", "df", "gc", "json", "random", "sys"]
    assert (tasks, marked, modules) == (1, False, [])


def test_the_first_call_of_a_script_is_its_first_call(bench: Bench) -> None:
    """The rehearsal's call is not counted: numbers and iterations begin with the script's own."""
    host = Host()
    assert bench.value("[await df.ok(n) for n in range(3)]", host) == [0, 1, 2]
    assert [call.iteration for call in host.calls] == [0, 1, 2]
