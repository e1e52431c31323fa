"""The time and chance that a script sees: the same on every replay.

The wall clock stands still at the run's start and moves on with each call's recorded completion and each sleep.
Monotonic clocks follow it and also advance one microsecond a reading, so that differences are never zero. A script that
reads the wall clock very often without anything happening is waiting for it to move, so then it does. `random`,
`os.urandom`, `secrets` and `uuid4` all come from the run's seed.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.tasks
import concurrent.futures._base
import ctypes
import datetime
import gc
import os
import random
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Clock"]

_TICK: Final = 1_000  # nanoseconds by which a monotonic reading moves on
_PATIENCE: Final = 1_000  # readings of the wall clock that stands still
_NUDGE: Final = 1_000_000  # nanoseconds by which each further one moves it


class Clock:
    """Nanoseconds since the epoch as the script sees them."""

    def __init__(self) -> None:
        self._now = 0
        self._start = 0
        self._ticks = 0
        self._readings = 0
        self._entropy = random.Random(0)

    def advance_to(self, seconds: float) -> None:
        """Move on to a moment, never back."""
        moment = round(seconds * 1e9)
        if moment > self._now:
            self._now = moment
            self._readings = 0

    def seconds(self) -> float:
        """The moment, without counting as a reading."""
        return self._now / 1e9

    def install(self, start: float, seed: int) -> None:
        """Freeze the clocks of this process at `start` and seed its sources of chance."""
        self._start = self._now = round(start * 1e9)
        self._patch_time()
        self._patch_datetime()
        self._patch_sleep()
        self._seed(seed)

    # ---- readings ----

    def _wall(self) -> int:
        self._readings += 1
        if self._readings > _PATIENCE:
            self._now += _NUDGE
        return self._now

    def _steady(self) -> int:
        self._ticks += _TICK
        return 1_000_000_000 + self._now - self._start + self._ticks

    # ---- patches ----

    def _patch_time(self) -> None:
        wall, steady = self._wall, self._steady
        real = {name: getattr(time, name) for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")}

        def time_() -> float:
            return wall() / 1e9

        def time_ns() -> int:
            return wall()

        def localtime(seconds: float | None = None, /) -> time.struct_time:
            return real["localtime"](wall() / 1e9 if seconds is None else seconds)

        def gmtime(seconds: float | None = None, /) -> time.struct_time:
            return real["gmtime"](wall() / 1e9 if seconds is None else seconds)

        def ctime(seconds: float | None = None, /) -> str:
            return real["ctime"](wall() / 1e9 if seconds is None else seconds)

        def asctime(moment: Any = None, /) -> str:
            return real["asctime"](localtime() if moment is None else moment)

        def strftime(form: str, moment: Any = None, /) -> str:
            return real["strftime"](form, localtime() if moment is None else moment)

        real_time = types.ModuleType("time")
        vars(real_time).update(vars(time))
        # Waiting is real: these modules measure it with the real clocks.
        for module in (asyncio.base_events, concurrent.futures._base):
            vars(module)["time"] = real_time
        patched: dict[str, Callable[..., Any]] = {
            "time": time_, "time_ns": time_ns, "localtime": localtime, "gmtime": gmtime, "ctime": ctime,
            "asctime": asctime, "strftime": strftime,
        }  # fmt: skip
        for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
            patched[name] = lambda: steady() / 1e9
            patched[f"{name}_ns"] = lambda: steady()
        for name, function in patched.items():
            function.__name__ = function.__qualname__ = name
            function.__module__ = "time"
            setattr(time, name, function)

    def _patch_datetime(self) -> None:
        kind, wall = datetime.datetime, self._wall
        epoch = kind(1970, 1, 1)
        aware = kind(1970, 1, 1, tzinfo=datetime.UTC)

        def since() -> datetime.timedelta:
            return datetime.timedelta(microseconds=wall() // 1000)

        def now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
            moment = epoch + since() if tz is None else (aware + since()).astimezone(tz)
            return moment if cls is kind else _as_class(cls, moment)

        def utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
            if _UTCNOW_WARNS:
                message = (
                    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. "
                    "Use timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
                )
                warnings.warn(message, DeprecationWarning, stacklevel=2)
            moment = epoch + since()
            return moment if cls is kind else _as_class(cls, moment)

        def today(cls: type[datetime.date]) -> datetime.date:
            moment = epoch + since()
            return cls(moment.year, moment.month, moment.day)

        _set_on_type(
            kind, {"now": classmethod(now), "utcnow": classmethod(utcnow), "today": classmethod(now)}
        )
        _set_on_type(datetime.date, {"today": classmethod(today)})

    def _patch_sleep(self) -> None:
        real_sleep, real_async_sleep = time.sleep, asyncio.sleep
        clock = self

        def sleep(seconds: float, /) -> None:
            end = clock.seconds() + seconds
            real_sleep(seconds)
            clock.advance_to(end)

        async def async_sleep(delay: float, result: Any = None) -> Any:
            end = clock.seconds() + delay
            value = await real_async_sleep(delay, result)
            if delay > 0:
                clock.advance_to(end)
            return value

        async_sleep.__name__ = async_sleep.__qualname__ = "sleep"
        async_sleep.__module__ = "asyncio.tasks"
        time.sleep = sleep
        vars(asyncio)["sleep"] = vars(asyncio.tasks)["sleep"] = async_sleep

    def _seed(self, seed: int) -> None:
        self._entropy.seed(f"affidavit entropy {seed}")
        random_bytes = self._entropy.randbytes

        def urandom(size: int, /) -> bytes:
            return random_bytes(size)

        def getrandom(size: int, flags: int = 0) -> bytes:
            del flags
            return random_bytes(size)

        os.urandom = urandom
        vars(os)["getrandom"] = getrandom
        vars(random)["_urandom"] = urandom
        real_seed = random.Random.seed

        def seed_(self: random.Random, a: Any = None, version: int = 2) -> None:
            real_seed(self, int.from_bytes(urandom(32), "big") if a is None else a, version)

        random.Random.seed = seed_
        random.seed(seed)


_UTCNOW_WARNS: Final = sys.version_info >= (3, 12)


def _as_class(cls: Any, moment: datetime.datetime) -> Any:
    """A moment as an instance of a script's own subclass."""
    made = cls(
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond,
        tzinfo=moment.tzinfo,
    )  # fmt: skip
    return made.replace(fold=moment.fold)


def _set_on_type(kind: type, attributes: dict[str, Any]) -> None:
    """Replace methods of a built-in type in place, so that every reference to the type sees them.

    A subclass would do for `datetime.datetime.now()` and would show in `type()`, `repr` and pickles.
    """
    table = gc.get_referents(vars(kind))[0]
    table.update(attributes)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
