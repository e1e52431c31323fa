"""Tasks that begin at once: most calls are answered without waiting, and a pass of the event loop each adds up."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

__all__ = ["start_eagerly"]


def start_eagerly(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task whose first step has run on return. To be called from a callback of the loop, not from a task.

    Python 3.12 has this. Before, a new task asks its loop to call its first step soon; here that one request is taken
    from it and the step called at once, in the task's own context. Loops that cannot be patched start it as usual.
    """
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    steps: list[tuple[Callable[[], object], Context | None]] = []

    def take(step: Callable[[], object], *, context: Context | None = None) -> None:
        steps.append((step, context))

    try:
        vars(loop)["call_soon"] = take
    except TypeError:  # a loop in C has no attributes of its own
        return loop.create_task(work)
    try:
        task = asyncio.Task(work, loop=loop)
    finally:
        del vars(loop)["call_soon"]
    for step, context in steps:
        if context is None:
            step()
        else:
            context.run(step)
    return task
