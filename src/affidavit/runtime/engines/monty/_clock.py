"""The time that a script sees: the same on every replay, and the same as in the other engine.

The wall clock stands still at the run's start and moves on with each call's recorded completion and each sleep.
Monotonic clocks follow it and also advance one microsecond a reading, so that differences are never zero. A script that
reads the wall clock very often without anything happening is waiting for it to move, so then it does.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

__all__ = ["Clock"]

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
        self._start = self._now = round(start * 1e9)
        self._ticks = 0
        self._readings = 0

    def advance_to(self, seconds: float) -> None:
        """Move on to a moment, never back."""
        moment = round(seconds * 1e9)
        if moment > self._now:
            self._now = moment
            self._readings = 0

    def seconds(self) -> float:
        """The moment, without counting as a reading."""
        return self._now / 1e9

    def read(self, function: str) -> float:
        """What a function of `time` reads, seconds."""
        if function in _STEADY:
            self._ticks += _TICK
            return (1_000_000_000 + self._now - self._start + self._ticks) / 1e9
        return self._wall() / 1e9

    def now(self, zone: tzinfo | None) -> datetime:
        """What `datetime.now` gives: naive UTC without a zone."""
        since = timedelta(microseconds=self._wall() // 1000)
        if zone is None:
            return datetime(1970, 1, 1) + since  # noqa: DTZ001 - a script that asks for naive time gets it
        return (datetime(1970, 1, 1, tzinfo=UTC) + since).astimezone(zone)

    def today(self) -> date:
        """What `date.today` gives."""
        return self.now(UTC).date()

    def _wall(self) -> int:
        self._readings += 1
        if self._readings > _PATIENCE:
            self._now += _NUDGE
        return self._now
