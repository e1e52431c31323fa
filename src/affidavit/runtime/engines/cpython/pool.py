"""Children that wait, locked and ready, before they are needed."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from affidavit.errors import FailedError
from affidavit.runtime.engines.cpython.process import Child, Zygote

__all__ = ["Pool"]

_LEAST: Final = 2
_MOST: Final = 8
_CALM: Final = 50  # hand-outs without waiting after which one child fewer is kept
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.005  # for the settlement of the run that just ended


class Pool:
    """Keeps a few children parked: more after somebody had to wait, fewer after a calm while.

    Making a child ready takes a processor for some milliseconds, which the run that took the last one needs more. So it
    is done after a run, or at once where nobody is parked.
    """

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self._target = _LEAST
        self._calm = 0
        self._parked: deque[Child] = deque()
        self._filling: asyncio.TimerHandle | None = None

    def fill(self) -> None:
        """Ask for as many children as should be parked."""
        if self._filling is not None:
            self._filling.cancel()
            self._filling = None
        while not self.zygote.dead and len(self._parked) < self._target:
            try:
                self._parked.append(self.zygote.fork())
            except OSError:
                return  # gone, or its socket is full: the next hand-out sees which

    async def take(self) -> Child:
        """A ready child, which the caller owns.

        Raises:
            FailedError: `engine-lost`, when the zygote is gone or its children do not come up.
        """
        for _ in range(_ATTEMPTS):
            if not self._parked:
                self.fill()
            if not self._parked:
                break
            child = self._parked.popleft()
            self._adapt(waited=not child.ready.done())
            if child.ended.done():
                child.release()
                continue
            try:
                await child.ready
            except FailedError:
                child.release()
                continue
            except asyncio.CancelledError:
                child.release()
                raise
            if not self._parked:
                self._fill_in(0.0)
            return child
        raise FailedError("engine-lost", "the sandbox's process is gone", hint="run it again", retryable=True)

    def put_back(self, child: Child) -> None:
        """The run of this child is over."""
        child.release()
        self._fill_in(_PAUSE_SECONDS)

    def _adapt(self, *, waited: bool) -> None:
        if waited:
            self._calm = 0
            self._target = min(self._target + 1, _MOST)
            return
        self._calm += 1
        if self._calm >= _CALM:
            self._calm = 0
            self._target = max(self._target - 1, _LEAST)

    def _fill_in(self, seconds: float) -> None:
        if self._filling is not None and seconds == 0.0:
            self._filling.cancel()
            self._filling = None
        if self._filling is None:
            self._filling = asyncio.get_running_loop().call_later(seconds, self.fill)

    async def close(self) -> None:
        """End the zygote and everything parked."""
        if self._filling is not None:
            self._filling.cancel()
        while self._parked:
            self._parked.pop().release()
        self._target = 0
        await self.zygote.close()
