"""A task that begins at once is a task like any other."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from affidavit.runtime.engines.cpython.eager import start_eagerly

_WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def _in_callback(make: Callable[[], Coroutine[Any, Any, None]]) -> tuple[asyncio.Task[None], bool]:
    """Start the work from a loop callback and run the loop until it is done; also says whether it was done at once."""

    async def main() -> tuple[asyncio.Task[None], bool]:
        loop = asyncio.get_running_loop()
        started: asyncio.Future[tuple[asyncio.Task[None], bool]] = loop.create_future()

        def begin() -> None:
            task = start_eagerly(loop, make())
            started.set_result((task, task.done()))

        loop.call_soon(begin)
        task, at_once = await started
        await asyncio.wait({task})
        return task, at_once

    return asyncio.run(main())


def test_work_that_does_not_wait_is_done_at_once() -> None:
    seen: list[int] = []

    async def work() -> None:
        seen.append(1)

    task, at_once = _in_callback(work)
    assert (seen, at_once, task.exception()) == ([1], True, None)


def test_work_that_waits_goes_on_later_in_the_same_task_and_context() -> None:
    seen: list[object] = []

    async def work() -> None:
        first = asyncio.current_task()
        _WHO.set("work")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            await asyncio.sleep(0.001)
        seen.extend([asyncio.current_task() is first, _WHO.get()])

    task, at_once = _in_callback(work)
    assert (seen, at_once, task.exception()) == ([True, "work"], False, None)
    assert _WHO.get() == "nobody"


def test_exceptions_and_cancellation_are_the_tasks() -> None:
    async def fail() -> None:
        raise LookupError("x")

    task, at_once = _in_callback(fail)
    assert at_once
    with pytest.raises(LookupError):
        task.result()

    async def stop() -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(5)

    assert _in_callback(stop)[0].cancelled()
