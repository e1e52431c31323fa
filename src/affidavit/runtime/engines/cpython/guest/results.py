"""`results` as a script sees it: rows that read or fetch what they hold when it is asked for, and keep it then."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from marshal import loads
from typing import Any, Final, NoReturn, overload

from affidavit.runtime.engines.cpython.guest.bridge import Bridge, Error, value_of

__all__ = ["PATH", "Results"]

PATH: Final = "results"
"""Where rows fetch their content; the host answers it from its store."""

_MISSING: Final = object()
_SHOWN: Final = 20
_AHEAD_BYTES: Final = 64 << 10


class Row:
    """One earlier run. Read-only.

    Attributes:
        number: the run's number in its session.
        run_id: the run's id.
        kind: `data`, `large`, `omitted`, `error` or `done`.
        size: bytes of its value as JSON.
    """

    __slots__ = (
        "_ahead",
        "_bridge",
        "_error",
        "_packed",
        "_sent",
        "_value",
        "kind",
        "number",
        "run_id",
        "size",
    )

    def __init__(
        self,
        bridge: Bridge,
        number: int,
        run_id: str,
        kind: str,
        size: int,
        sent: bytes = b"",
        *,
        packed: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "_bridge", bridge)
        put(self, "number", number)
        put(self, "run_id", run_id)
        put(self, "kind", kind)
        put(self, "size", size)
        put(self, "_sent", sent)  # what it holds, where it came along with the program
        put(self, "_packed", packed)  # as `marshal` writes it, else as JSON
        put(self, "_ahead", _MISSING)
        put(self, "_value", None if kind == "done" else _MISSING)
        put(self, "_error", _MISSING if kind == "error" else None)

    @property
    def data(self) -> Any:
        """The value of the run. Raises `df.Error` where it is too large, failed or gone, with what to use instead."""
        value: Any = getattr(self, "_value")  # noqa: B009 - the slot is written past `__setattr__`
        if value is _MISSING:
            value = self._content("data", "data")
            object.__setattr__(self, "_value", value)
        return value

    @property
    def error(self) -> Any:
        """Code, type, message, hint and line of a run that failed; None for others."""
        error: Any = getattr(self, "_error")  # noqa: B009
        if error is _MISSING:
            error = self._content("error", "error")
            object.__setattr__(self, "_error", error)
        return error

    def load(self) -> Coroutine[Any, Any, Any]:
        """The value of the run, however large: `await row.load()`."""
        bridge: Bridge = getattr(self, "_bridge")  # noqa: B009
        site = bridge.site(PATH, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        site.created += 1

        async def load() -> Any:
            value: Any = getattr(self, "_value")  # noqa: B009
            if value is not _MISSING:
                site.started += 1
                return value
            if self._came("data", "large"):
                site.started += 1
                value = self._held()
            else:  # Blocking: the host has it at hand, and so the script goes on here before it does anything else.
                value = bridge.call_now(site, site.number(), {"number": self.number, "want": "load"}, False)
            object.__setattr__(self, "_value", value)
            return value

        return load()

    def rerun(self, *, was: Mapping[str, Any] | None = None, **vary: Any) -> Coroutine[Any, Any, Any]:
        """Run the script of the run with other values, here and now: `await row.rerun(city="Rome")`.

        Args:
            was: for names that stand nowhere in that script, or at several places: the value that is meant.
            vary: new values by the name of what they stand under.
        """
        bridge: Bridge = getattr(self, "_bridge")  # noqa: B009
        site = bridge.site(PATH, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        site.created += 1

        async def rerun() -> Any:
            asked = {"number": self.number, "want": "rerun", "vary": vary, "was": dict(was or {})}
            found = bridge.call_now(site, site.number(), asked, False)
            return await bridge.run_again(self.number, found["source"], found["inputs"])

        return rerun()

    def read_ahead(self) -> None:
        """Read what came along, unless that takes long: the script may never ask for it."""
        if getattr(self, "_sent") and self.size <= _AHEAD_BYTES:  # noqa: B009
            object.__setattr__(self, "_ahead", self._held())

    def _held(self) -> Any:
        """What came along."""
        ahead: Any = getattr(self, "_ahead")  # noqa: B009
        if ahead is not _MISSING:
            return ahead
        read = loads if getattr(self, "_packed") else value_of  # noqa: B009
        return read(getattr(self, "_sent"))  # noqa: B009

    def _came(self, *kinds: str) -> bool:
        """Whether what a row of these kinds holds came along with the program."""
        return bool(getattr(self, "_sent")) and self.kind in kinds  # noqa: B009

    def _content(self, want: str, *kinds: str) -> Any:
        """What it holds: as it came along where the row is of these kinds, else as the host says."""
        if self._came(*kinds):
            return self._held()
        bridge: Bridge = getattr(self, "_bridge")  # noqa: B009
        return _ask(bridge, self.number, want)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"results are read-only: {name} cannot be assigned")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a row of results has no {name!r}; it has: data, error, kind, load(), number, rerun(), run_id, size",
            name=name,
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(f"a row of results is not its value: use .data[{key!r}]")

    def __repr__(self) -> str:
        return f"<run {self.number}: {self.kind}{f', {self.size} bytes' if self.size else ''}>"


class Results(Sequence[Row]):
    """The last runs of the session, newest first. Read-only."""

    __slots__ = ("_bridge", "_rows")

    def __init__(
        self, bridge: Bridge, rows: Iterable[tuple[int, str, str, int, int, bool]], sent: bytes
    ) -> None:
        self._bridge = bridge
        made: list[Row] = []
        at = 0
        for number, run_id, kind, size, length, packed in rows:
            made.append(Row(bridge, number, run_id, kind, size, sent[at : at + length], packed=packed))
            at += length
        self._rows = tuple(made)

    def read_ahead(self) -> None:
        """Read what came along, before the script starts."""
        for row in self._rows:
            row.read_ahead()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return list(self._rows[index])
        if isinstance(index, str):
            raise TypeError(f"results is a sequence of rows, newest first: results[0].data[{index!r}]")
        try:
            return self._rows[index]
        except IndexError:
            raise IndexError(
                f"results[{index}] is not there: results has {self._shown()};"
                " results.by_run(n) reaches older runs by number, and await .load() their values"
            ) from None

    def by_run(self, number: int) -> Row:
        """The row of a run by its number, which never changes; also of runs that are no longer among the last."""
        for row in self._rows:
            if row.number == number:
                return row
        try:
            found = _ask(self._bridge, number, "row")
        except Error as error:
            raise IndexError(f"{error.message} ({error.hint})") from None
        return Row(self._bridge, *found)

    @property
    def last(self) -> Row:
        """The newest run that succeeded."""
        for row in self._rows:
            if row.kind != "error":
                return row
        raise IndexError(f"no run among the last succeeded: results has {self._shown()}")

    def __repr__(self) -> str:
        return f"<results: {self._shown()}>"

    def _shown(self) -> str:
        if not self._rows:
            return "no rows yet"
        listed = ", ".join(f"run {row.number} {row.kind}" for row in self._rows[:_SHOWN])
        return f"{len(self._rows)} row{'s' * (len(self._rows) != 1)} ({listed})"


def _ask(bridge: Bridge, number: object, want: str) -> Any:
    site = bridge.site(PATH, sys._getframe(2))  # pyright: ignore[reportPrivateUsage]
    site.created += 1
    return bridge.call_now(site, site.number(), {"number": number, "want": want}, False)
