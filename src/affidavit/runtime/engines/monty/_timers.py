"""The timers of a script: they go by its clock, and which of a timer and a call it goes on with is written down."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from affidavit.runtime.engines.monty._clock import Clock

__all__ = ["Timer", "Timers"]

_SECOND: Final = 1_000_000_000
_MOST_TAKEN: Final = 50_000  # decisions; a run with more cannot be replayed


@dataclass(frozen=True, slots=True, order=True)
class Timer:
    """One `asyncio.sleep` under way: the moment of its end, its place among the sleeps, and what it returns."""

    moment: int
    place: int
    call_id: int = field(compare=False)
    result: Any = field(compare=False)


class Timers:
    """Decides between the next timer and the calls under way.

    Args:
        clock: the script's clock.
        plan: in a replay, what was decided before; then nothing waits.

    Attributes:
        taken: what was decided where both could be next, in order: -1 for a timer, 1 for a call.
    """

    def __init__(self, clock: Clock, plan: Sequence[int] | None) -> None:
        self.taken: list[int] = []
        self._clock = clock
        self._plan = None if plan is None else deque(plan)
        self._ready: deque[Timer] = deque()
        self._sleeping: list[Timer] = []
        self._made = 0
        self._next: tuple[int, int] = (0, 0)
        self._since = 0.0

    @property
    def replays(self) -> bool:
        """Whether decisions are given."""
        return self._plan is not None

    def add(self, call_id: int, seconds: float, result: Any = None) -> None:
        """Begin a sleep; one of no length only lets others go first."""
        self._made += 1
        timer = Timer(self._clock.after(max(0.0, seconds)), self._made, call_id, result)
        if seconds > 0:
            heapq.heappush(self._sleeping, timer)
        else:
            self._ready.append(timer)

    async def next(self, calls: Collection[asyncio.Task[Any]], has_ended: Callable[[], bool]) -> list[Timer]:
        """Wait for what the script goes on with: timers that are due, or none: then a call that ends is next.

        Args:
            calls: those under way, and those that have ended and were not handed over.
            has_ended: whether there are some of the latter.
        """
        if self._ready:
            return [self._ready.popleft()]
        if not self._sleeping:
            return []
        if self._sleeping[0].moment > self._clock.nanoseconds and not await self._comes_first(
            calls, has_ended
        ):
            return []
        self._clock.move(self._sleeping[0].moment)
        due: list[Timer] = []
        while self._sleeping and self._sleeping[0].moment <= self._clock.nanoseconds:
            due.append(heapq.heappop(self._sleeping))
        return due

    async def _comes_first(self, calls: Collection[asyncio.Task[Any]], has_ended: Callable[[], bool]) -> bool:
        """Whether the next timer comes before the next call that ends, once one of them did."""
        if not calls:
            if not self.replays:
                await asyncio.sleep(self._left())
            return True
        timer = await self._decided(calls, has_ended)
        if len(self.taken) <= _MOST_TAKEN:
            self.taken.append(-1 if timer else 1)
        return timer

    async def _decided(self, calls: Collection[asyncio.Task[Any]], has_ended: Callable[[], bool]) -> bool:
        """Whether the timer comes first."""
        if self._plan is not None:
            return not self._plan or self._plan.popleft() < 0
        while not has_ended() and (left := self._left()) > 0:
            await asyncio.wait(calls, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return not has_ended()

    def _left(self) -> float:
        """Real seconds until the next timer is due, from when it became the next or the script's clock last moved."""
        moment, now = self._sleeping[0].moment, self._clock.nanoseconds
        real = asyncio.get_running_loop().time()
        if self._next != (moment, now):
            self._next, self._since = (moment, now), real
        return (moment - now) / _SECOND - (real - self._since)
