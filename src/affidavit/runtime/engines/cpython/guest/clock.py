"""The time and chance that a script sees: the same on every replay.

The wall clock stands still at the run's start and moves on with each call's recorded completion and each sleep.
Monotonic clocks follow it and also advance one microsecond a reading, so that differences are never zero. A script that
reads the wall clock very often without anything happening is waiting for it to move, so then it does. `random`,
`os.urandom`, `secrets` and `uuid4` all come from the run's seed.

Timers of the event loop go by the same clock: one that is due moves it on. Which of a timer and an answer came first is
a matter of real time, so it is written down (`Timing`), and a replay goes by that and waits for nothing.
"""

from __future__ import annotations

import _thread
import asyncio
import asyncio.base_events
import asyncio.tasks
import concurrent.futures._base
import ctypes
import datetime as dt
import gc
import math
import os
import random
import sys
import time
import timeit
import types
import uuid
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Clock", "Timing"]

_SECOND: Final = 1_000_000_000  # an integer: dividing by it rounds once
_TICK: Final = 1_000  # nanoseconds by which a monotonic reading moves on
_PATIENCE: Final = 1_000  # readings of the wall clock that stands still
_NUDGE: Final = 1_000_000  # nanoseconds by which each further one moves it
_OF_REAL_TIME: Final = (time.CLOCK_REALTIME, time.CLOCK_TAI)
_MOST_TAKEN: Final = 50_000  # decisions; a run with more cannot be replayed


class Clock:
    """Nanoseconds since the epoch as the script sees them."""

    def __init__(self) -> None:
        self._now = 0
        self._start = 0
        self._ticks = 0
        self._readings = 0
        self._entropy = random.Random(0)  # noqa: S311 - replayable on purpose
        self.stands_in = False  # whether sleeping takes no time, since this is a replay

    def advance_to(self, seconds: float) -> None:
        """Move on to a moment, never back."""
        self._move(_nanoseconds(seconds))

    def elapsed(self) -> float:
        """Seconds since the start, from 1: what the loops of the script's own thread take for the time."""
        return (_SECOND + self._now - self._start) / _SECOND

    def advance_timer(self, when: float) -> None:
        """Move on to the moment of a timer, which is given in `elapsed` seconds."""
        self._move(self._start + round((when - 1.0) * _SECOND))

    def _move(self, moment: int) -> None:
        if moment > self._now:
            self._now = moment
            self._readings = 0

    def patch(self) -> None:
        """Put this clock and its entropy in place of the real ones, in this process and those forked from it."""
        self._patch_readings()
        self._patch_conversions()
        self._patch_datetime()
        self._patch_sleep()
        self._patch_chance()

    def start(self, seconds: float, seed: int) -> None:
        """Freeze the clocks at a moment and seed the sources of chance."""
        self._start = self._now = _nanoseconds(seconds)
        self._ticks = self._readings = 0
        self._entropy.seed(f"affidavit entropy {seed}")
        random.seed(seed)

    # ---- readings ----

    def _wall(self) -> int:
        self._readings += 1
        if self._readings > _PATIENCE:
            self._now += _NUDGE
        return self._now

    def _steady(self) -> int:
        self._ticks += _TICK
        return _SECOND + self._now - self._start + self._ticks

    # ---- patches ----

    def _patch_readings(self) -> None:
        wall, steady = self._wall, self._steady

        def function(reading: Callable[[], int], *, whole: bool) -> Callable[[], float]:
            return (lambda: reading() + 0) if whole else (lambda: reading() / _SECOND)

        real = types.ModuleType("time")
        vars(real).update(vars(time))
        for module in (asyncio.base_events, concurrent.futures._base):
            module.time = real  # pyright: ignore[reportAttributeAccessIssue]  # waiting is real: these measure it
        names = {"time": wall} | dict.fromkeys(
            ("monotonic", "perf_counter", "process_time", "thread_time"), steady
        )
        for name, reading in names.items():
            _replace(time, name, function(reading, whole=False))
            _replace(time, f"{name}_ns", function(reading, whole=True))
        self._patch_kinds_of_clocks()
        for taker in (
            timeit.timeit,
            timeit.repeat,
            timeit.Timer.__init__,
        ):  # they took the clock when they were made
            taker.__defaults__ = tuple(
                time.perf_counter if value is real.perf_counter else value
                for value in taker.__defaults__ or ()
            )
        timeit.default_timer = time.perf_counter

    def _patch_kinds_of_clocks(self) -> None:
        """The clocks that are asked for by number: those of real time are the wall clock, others are steady."""
        wall, steady = self._wall, self._steady
        real_reading = time.clock_gettime_ns

        def clock_gettime_ns(kind: int, /) -> int:
            real_reading(kind)  # refuses what is no clock
            return wall() if kind in _OF_REAL_TIME else steady()

        def clock_gettime(kind: int, /) -> float:
            return clock_gettime_ns(kind) / _SECOND

        _replace(time, "clock_gettime_ns", clock_gettime_ns)
        _replace(time, "clock_gettime", clock_gettime)

    def _patch_conversions(self) -> None:
        """What converts the current moment when it is given none."""
        wall = self._wall

        def at_moment(name: str) -> None:
            real: Callable[[float], Any] = getattr(time, name)

            def convert(seconds: float | None = None, /) -> Any:
                return real(wall() / _SECOND if seconds is None else seconds)

            _replace(time, name, convert)

        for name in ("localtime", "gmtime", "ctime"):
            at_moment(name)
        real_asctime, real_strftime = time.asctime, time.strftime

        def asctime(moment: Any = None, /) -> str:
            return real_asctime(time.localtime() if moment is None else moment)

        def strftime(form: str, moment: Any = None, /) -> str:
            return real_strftime(form, time.localtime() if moment is None else moment)

        _replace(time, "asctime", asctime)
        _replace(time, "strftime", strftime)

    def _patch_datetime(self) -> None:
        kind, wall = dt.datetime, self._wall
        epoch, aware = kind(1970, 1, 1), kind(1970, 1, 1, tzinfo=dt.UTC)

        def moment(cls: type[dt.datetime], start: dt.datetime, tz: dt.tzinfo | None = None) -> dt.datetime:
            made = start + dt.timedelta(microseconds=wall() // 1000)
            made = made if tz is None else made.astimezone(tz)
            return made if cls is kind else _as_class(cls, made)

        def now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
            return moment(cls, epoch if tz is None else aware, tz)

        def utcnow(cls: type[dt.datetime]) -> dt.datetime:
            if sys.version_info >= (3, 12):
                warnings.warn(_UTCNOW, DeprecationWarning, stacklevel=2)
            return moment(cls, epoch)

        def datetime_today(cls: type[dt.datetime]) -> dt.datetime:
            return moment(cls, epoch)

        def date_today(cls: type[dt.date]) -> dt.date:
            today = moment(kind, epoch)
            return cls(today.year, today.month, today.day)

        methods = {"now": now, "utcnow": utcnow, "today": datetime_today}
        _set_on_type(kind, {name: classmethod(method) for name, method in methods.items()})
        _set_on_type(dt.date, {"today": classmethod(date_today)})

    def _patch_sleep(self) -> None:
        real_sleep, real_async_sleep = time.sleep, asyncio.sleep
        clock = self

        main = _thread.get_ident()

        def sleep(seconds: float, /) -> None:
            end = clock._now + _nanoseconds(seconds)
            if clock.stands_in and _thread.get_ident() == main and seconds > 0:
                real_sleep(0)
            else:
                real_sleep(seconds)
            clock._move(end)

        async def async_sleep(delay: float, result: Any = None) -> Any:
            start = clock._now
            value = await real_async_sleep(delay, result)
            clock._move(start + _nanoseconds(delay))
            return value

        async_sleep.__module__ = "asyncio.tasks"
        _replace(time, "sleep", sleep)
        for module in (asyncio, asyncio.tasks):
            _replace(module, "sleep", async_sleep)

    def _patch_chance(self) -> None:
        entropy = self._entropy

        def urandom(size: int, /) -> bytes:
            return entropy.randbytes(size)

        def getrandom(size: int, flags: int = 0) -> bytes:
            del flags
            return entropy.randbytes(size)

        real_seed = random.Random.seed

        def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
            real_seed(self, int.from_bytes(urandom(32), "big") if a is None else a, version)

        _replace(os, "urandom", urandom)
        _replace(os, "getrandom", getrandom)
        random._urandom = urandom  # pyright: ignore[reportAttributeAccessIssue]
        random.Random.seed = seed
        random.seed = vars(random)["_inst"].seed  # was bound to the method that it had before
        uuid._generate_time_safe = None  # pyright: ignore[reportAttributeAccessIssue] - in C, on the real clock


class Timing:
    """Which of timers and answers a script goes on with, where both could be next.

    What was decided is `taken`, in order: 1 for an answer and -1 for a timer while the script waited; in a script that
    never waits, plus or minus the number of the loop's pass at which it was handed in, which is never below 32.

    Args:
        clock: the script's clock.
        real: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Clock, real: Callable[[], float]) -> None:
        self.clock = clock
        self.taken: list[int] = []
        self.passes = 0
        self._real = real
        self._plan: deque[int] | None = None
        self._next: tuple[float, float] = (0.0, 0.0)
        self._since = 0.0

    @property
    def replays(self) -> bool:
        """Whether decisions are given."""
        return self._plan is not None

    def follow(self, plan: list[int]) -> None:
        """Decide as it was decided before, without waiting."""
        self._plan = deque(plan)
        self.clock.stands_in = True

    def take(self, *, timer: bool, busy: bool = False) -> None:
        """Write down a decision."""
        if len(self.taken) <= _MOST_TAKEN:
            mark = self.passes if busy else 1
            self.taken.append(-mark if timer else mark)

    def planned(self, *, busy: bool) -> bool | None:
        """The next decision of the plan, if it is for now: whether it is the timer. None where there is none."""
        if not self._plan or (busy and not 1 < abs(self._plan[0]) <= self.passes):
            return None
        return self._plan.popleft() < 0

    def left(self, when: float) -> float:
        """Real seconds until the next timer, at `when` by the script's clock, is due.

        They count from the moment at which it became the next one, or the script's clock last moved.
        """
        after = self.clock.elapsed()
        if self._next != (when, after):
            self._next, self._since = (when, after), self._real()
        return when - after - (self._real() - self._since)


_UTCNOW: Final = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. "
    "Use timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)


def _nanoseconds(seconds: float) -> int:
    """Exact for whole seconds, where multiplying a moment of today by 1e9 would be off by hundreds."""
    whole = math.floor(seconds)
    return whole * _SECOND + round((seconds - whole) * _SECOND)


def _replace(module: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a function in a module under a name, and give it that name."""
    function.__name__ = function.__qualname__ = name
    if function.__module__ == __name__:
        function.__module__ = module.__name__
    setattr(module, name, function)


def _as_class(cls: Any, moment: dt.datetime) -> Any:
    """A moment as an instance of a script's own subclass."""
    made = cls(*moment.timetuple()[:6], moment.microsecond, tzinfo=moment.tzinfo)
    return made.replace(fold=moment.fold)


def _set_on_type(kind: type, attributes: dict[str, Any]) -> None:
    """Replace methods of a built-in type in place, so that every reference to the type sees them.

    A subclass would do for `datetime.datetime.now()` and would show in `type()`, `repr` and pickles.
    """
    table = gc.get_referents(vars(kind))[0]
    table.update(attributes)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
