"""What an engine gives the rest of this room: a catalogue, and connections that only read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import orjson

from affidavit.errors import FailedError, RefusedError
from affidavit.mounts.sql.catalogue import Catalogue, Column, Table

__all__ = [
    "MAX_VALUE_BYTES",
    "Bounds",
    "Clock",
    "Connection",
    "Dialect",
    "Engine",
    "Found",
    "Parameters",
    "ResultColumn",
    "overdue",
    "refused",
    "taken",
]

MAX_VALUE_BYTES: Final = 32 << 20
"""Bytes of one row; longer ones cannot be read."""

_FIRST_ROWS: Final = 4
_MOST_ROWS: Final = 128

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one statement may use: seconds in all, rows and bytes (about those of its JSON) of its result."""

    seconds: float
    rows: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn:
    """A column of a result: its name as the engine gives it, its type in the engine's words where it has one."""

    name: str
    declared: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a statement gave.

    Attributes:
        exhausted: no further row follows.
        shortened: the bound of bytes, not that of rows, ended it.
    """

    columns: tuple[ResultColumn, ...]
    rows: list[tuple[Any, ...]]
    exhausted: bool
    shortened: bool = False


class Dialect(Protocol):
    """How one engine writes what all of them can say."""

    def table(self, table: Table) -> str:
        """The table's name in a statement."""
        ...

    def shown(self, column: Column) -> str:
        """The expression of a column as rows show it."""
        ...

    def key(self, name: str) -> str:
        """The expression of an order column, which may be one that is no column of the rows."""
        ...

    def equals(self, column: Column, value: Any, place: int) -> tuple[str, Any]:
        """The condition that a column has a value that is not NULL, and the parameter number `place` for it."""
        ...

    def distinct(self, column: Column) -> str:
        """The expression by whose values rows are counted: texts that differ in anything are different."""
        ...

    def bound(self, value: Any, place: int) -> tuple[str, Any]:
        """The expression that stands for a value, and the parameter number `place`, from 1, for it."""
        ...


class Connection(Protocol):
    """One connection, used by one thread at a time."""

    def select(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that this product wrote."""
        ...

    def query(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that a script wrote.

        Raises:
            RefusedError: `call-refused` for anything but one statement that reads.
            UsageError: `arguments-invalid` for what is no SQL of this engine, or parameters that do not fit.
            FailedError: `tool-failed` for what fails while it runs, also for too long.
        """
        ...

    def interrupt(self) -> None:
        """End the statement that runs or is about to, from any thread; the connection is only closed after that."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Engine(Protocol):
    """A source that is mounted.

    Attributes:
        live: whether each call stands for its own moment. Else the source is the file with one digest.
    """

    live: bool

    @property
    def dialect(self) -> Dialect:
        """How statements are written."""
        ...

    def describe(self) -> Catalogue:
        """Read the catalogue. Blocking; called when a person mounts."""
        ...

    def identity(self) -> str:
        """Which state is there now, as a digest; empty for a live source."""
        ...

    def check(self) -> None:
        """See that the source is what was mounted. Raises `FailedError(artifact-changed)`."""
        ...

    def connect(self) -> Connection:
        """Open a connection that only reads. Raises `FailedError(mount-failed)`."""
        ...

    def close(self) -> None:
        """Let go of what connections share; called when none is open any more."""
        ...


class Clock:
    """When a statement has to end, and why it did.

    Args:
        seconds: how long it may take.
    """

    __slots__ = ("_end", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() > self._end

    def error(self) -> FailedError:
        """The error of a statement that was ended."""
        return overdue(self._seconds)


def overdue(seconds: float) -> FailedError:
    """A statement that took too long."""
    return FailedError(
        "tool-failed",
        f"the statement took longer than {seconds:g} s and was ended",
        hint="ask for less, or mount with a larger `timeout`",
        details={"reason": "timeout"},
    )


def refused(why: str) -> RefusedError:
    """A statement that does more than read."""
    return RefusedError(
        "call-refused",
        f"the mount only reads: {why}",
        hint="one SELECT (or WITH ... SELECT, VALUES) is what `query` takes",
        details={"reason": "read-only"},
    )


def taken(fetch: Callable[[int], list[Any]], bounds: Bounds) -> tuple[list[tuple[Any, ...]], bool, bool]:
    """Rows from a cursor within bounds: the rows, whether no further one follows, whether bytes ended it.

    One row is always taken, however large. Few are fetched at a time while they are large, so that memory stays small.
    """
    rows: list[tuple[Any, ...]] = []
    room, step = bounds.size, _FIRST_ROWS
    while True:
        wanted = min(step, bounds.rows + 1 - len(rows))
        more = fetch(wanted)
        size = _size(more)
        if size > room:
            for row in more:
                large = _size([row])
                room -= large
                if room < 0 and rows:
                    return rows[: bounds.rows], False, len(rows) < bounds.rows
                if large > MAX_VALUE_BYTES:
                    raise _too_large(large)
                rows.append(row)
        else:
            room -= size
            rows += more
        if len(more) < wanted:
            return rows, True, False
        if len(rows) > bounds.rows:
            return rows[: bounds.rows], False, False
        step = min(step * 4, _MOST_ROWS) if size < _FIRST_ROWS * step * 1024 else _FIRST_ROWS


def _too_large(size: int) -> FailedError:
    return FailedError(
        "value-too-large",
        f"one row has about {size:,} bytes, and {MAX_VALUE_BYTES:,} are the bound",
        hint="ask for its smaller columns, or for a part of a value, with `query`",
    )


def _size(rows: list[Any]) -> int:
    """About how many bytes rows have as JSON."""
    try:
        return len(orjson.dumps(rows, default=_stand_in))
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, integers beyond 64 bits
        return len(repr(rows))


def _stand_in(value: object) -> str:
    return " " * (len(value) * 4 // 3) if isinstance(value, bytes) else str(value)
