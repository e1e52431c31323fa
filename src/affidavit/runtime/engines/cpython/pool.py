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


class Pool:
    """Keeps a few children parked: more after somebody had to wait, fewer after a calm while."""

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self._target = _LEAST
        self._calm = 0
        self._parked: deque[Child] = deque()
        self._refill = False

    def fill(self) -> None:
        """Ask for as many children as should be parked."""
        self._refill = False
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
            self._refill_soon()
            return child
        raise FailedError("engine-lost", "the sandbox's process is gone", hint="run it again", retryable=True)

    def _adapt(self, *, waited: bool) -> None:
        if waited:
            self._calm = 0
            self._target = min(self._target + 1, _MOST)
            return
        self._calm += 1
        if self._calm >= _CALM:
            self._calm = 0
            self._target = max(self._target - 1, _LEAST)

    def _refill_soon(self) -> None:
        if not self._refill:
            self._refill = True
            asyncio.get_running_loop().call_soon(self.fill)

    async def close(self) -> None:
        """End the zygote and everything parked."""
        while self._parked:
            self._parked.pop().release()
        self._target = 0
        await self.zygote.close()
