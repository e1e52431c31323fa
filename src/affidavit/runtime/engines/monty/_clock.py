"""The time that a script sees: the same on every replay, and the same as in the other engine.

The wall clock stands still at the run's start and moves on with each call's recorded completion and each sleep.
Monotonic clocks follow it and also advance one microsecond a reading, so that differences are never zero. A script that
reads the wall clock very often without anything happening is waiting for it to move, so then it does.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

__all__ = ["Clock", "nanoseconds"]

_SECOND: Final = 1_000_000_000
_TICK: Final = 1_000  # nanoseconds by which a monotonic reading moves on
_PATIENCE: Final = 1_000  # readings of the wall clock that stands still
_NUDGE: Final = 1_000_000  # nanoseconds by which each further one moves it
_STEADY: Final = ("time.monotonic", "time.perf_counter")


class Clock:
    """Nanoseconds since the epoch as the script sees them.

    Args:
        start: the run's frozen start, seconds since the epoch.
    """

    def __init__(self, start: float) -> None:
        self._start = self._now = nanoseconds(start)
        self._ticks = 0
        self._readings = 0

    @property
    def nanoseconds(self) -> int:
        """The moment, nanoseconds since the epoch, without counting as a reading."""
        return self._now

    def after(self, seconds: float) -> int:
        """The moment that comes some seconds from now, for `move`."""
        return self._now + nanoseconds(seconds)

    def move(self, moment: int) -> None:
        """Move on to a moment in nanoseconds since the epoch, never back."""
        if moment > self._now:
            self._now = moment
            self._readings = 0

    def seconds(self) -> float:
        """The moment, without counting as a reading."""
        return self._now / _SECOND

    def read(self, function: str) -> float:
        """What a function of `time` reads, seconds."""
        if function in _STEADY:
            self._ticks += _TICK
            return (_SECOND + self._now - self._start + self._ticks) / _SECOND
        return self._wall() / _SECOND

    def now(self, zone: tzinfo | None) -> datetime:
        """What `datetime.now` gives: naive UTC without a zone."""
        since = timedelta(microseconds=self._wall() // 1000)
        if zone is None:
            return datetime(1970, 1, 1) + since
        return (datetime(1970, 1, 1, tzinfo=UTC) + since).astimezone(zone)

    def today(self) -> date:
        """What `date.today` gives."""
        return self.now(UTC).date()

    def _wall(self) -> int:
        self._readings += 1
        if self._readings > _PATIENCE:
            self._now += _NUDGE
        return self._now


def nanoseconds(seconds: float) -> int:
    """Exact for whole seconds, where multiplying a moment of today by 1e9 would be off by hundreds."""
    whole = math.floor(seconds)
    return whole * _SECOND + round((seconds - whole) * _SECOND)
