"""`results`: what earlier scripts of a session returned, derived from its log and never stored as anything else.

Rows are the last twenty runs that succeeded or failed, newest first. Whatever ever settled can still be reached by its
number. Nothing here is mutable but the view that follows the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.record import JsonValue
from affidavit.runtime.ledger import failed
from affidavit.runtime.memory.mentions import Mentions
from affidavit.runtime.program import CallResult, CallReturned, Earlier
from affidavit.store import Store, StoredEvent
from affidavit.store.event_kinds import fault

__all__ = ["ERROR_BYTES", "INLINE_BYTES", "TAIL", "ResultKind", "ResultRow", "Results", "row_of", "tail_of"]

TAIL: Final = 20
"""How many rows `results` has at most."""

INLINE_BYTES: Final = 16 << 10
"""Values up to so many bytes of JSON are `data`; longer ones are `large` and must be loaded."""

SENT_BYTES: Final = 1 << 20
"""What the rows that a script names may hold together to be sent along with it; others are fetched when asked for."""

ERROR_BYTES: Final = 2 << 10
"""What an error row keeps of its error."""

_SETTLED: Final = "run-settled"
_PAGE: Final = TAIL + 4  # a few settlements make no row
_KEPT: Final = ("code", "type", "message", "hint", "line")

ResultKind: TypeAlias = Literal["data", "large", "omitted", "error", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What one earlier run left.

    Attributes:
        number: the run's number in its session; it never changes.
        run_id: the run's id.
        kind: `data` (its value is here), `large` (its value must be loaded), `omitted` (its value is gone), `error`,
            `done` (it returned nothing).
        size: bytes of the value as JSON.
        value: the value of a `data` row, encoded JSON.
        blob: where the value of a `large` row is.
        error: code, type, message, hint and line of a run that failed.
        type: annotation and declarations of a longer value, inferred when it was settled.
    """

    number: int
    run_id: str
    kind: ResultKind
    size: int = 0
    value: JsonValue = None
    blob: str = ""
    error: Mapping[str, JsonValue] | None = None
    type: Mapping[str, JsonValue] | None = None

    def earlier(self, content: bytes | None = None) -> Earlier:
        """The row as engines know it, with what it holds where that is sent along."""
        return Earlier(
            number=self.number, run_id=self.run_id, kind=self.kind, size=self.size, content=content
        )


def row_of(event: StoredEvent, store: Store, *, ours: bool = False) -> ResultRow | None:
    """The row of a settlement, or None for a run that makes none: rejected, cancelled, timed out, orphaned.

    One that is `ours`, written by this very object's session in this process, needs no look for faults.
    """
    if event.kind != _SETTLED or event.run is None or (not ours and fault(event)):
        return None
    data = cast("dict[str, Any]", event.data)
    status = data["status"]
    if status not in ("succeeded", "failed"):
        return None
    number, run_id = int(data["number"]), event.run
    if status == "failed":
        return ResultRow(number=number, run_id=run_id, kind="error", error=_capped(data.get("error") or {}))
    blob = data.get("value_blob")
    if blob is not None:
        kind: ResultKind = "large" if store.blobs.has(blob["digest"]) else "omitted"
        return ResultRow(
            number=number,
            run_id=run_id,
            kind=kind,
            size=blob["size"],
            blob=blob["digest"],
            type=data.get("type"),
        )
    if not data.get("has_value"):
        return ResultRow(number=number, run_id=run_id, kind="done")
    value = data.get("value")
    size = len(orjson.dumps(value))
    return ResultRow(number=number, run_id=run_id, kind="data", size=size, value=value, type=data.get("type"))


def tail_of(events: Iterable[StoredEvent], store: Store) -> tuple[ResultRow, ...]:
    """Reduce a session's events, in order, to the rows of `results`, newest first."""
    rows = [row for row in (row_of(event, store) for event in events) if row is not None]
    return tuple(rows[: -TAIL - 1 : -1])


class Results:
    """The rows of one session, following its log: what was read once is not read again.

    Args:
        store: where the log is.
        session: whose rows.
        until: the `seq` of the last event that is looked at; all by default.
    """

    def __init__(self, store: Store, session: str, *, until: int | None = None) -> None:
        self._store = store
        self._session = session
        self._until = until
        self._rows: tuple[ResultRow, ...] = ()
        self._sent: dict[int, Earlier] = {}  # the present rows that were sent along, by run number
        self._seq: int | None = None
        self._ours: deque[int] = deque(maxlen=TAIL)

    def wrote(self, event: StoredEvent) -> None:
        """This session just appended this settlement."""
        self._ours.append(event.seq)

    def rows(self) -> tuple[ResultRow, ...]:
        """The last rows as of now, newest first."""
        if self._seq is None:
            self._first()
            return self._rows
        found = self._store.events.of_kinds(self._session, (_SETTLED,), after=self._seq, until=self._until)
        if found:
            self._seq = found[-1].seq
            new = [row for event in found[: -TAIL - 1 : -1] if (row := self._row(event)) is not None]
            self._rows = (*new, *self._rows)[:TAIL]
        return self._rows

    def by_run(self, number: int) -> ResultRow | None:
        """The row of any run that ever settled, by its number; None where there is none."""
        row = _numbered(self._rows, number) or _numbered(self.rows(), number)
        if row is not None:
            return row
        if not self._rows or not 0 < number < self._rows[-1].number:
            return None
        requested = self._store.events.by_key(self._session, f"run:{number}")
        if requested is None:
            return None
        settled = self._store.events.last(self._session, kind=_SETTLED, run=requested.run)
        if settled is None or (self._until is not None and settled.seq > self._until):
            return None
        return row_of(settled, self._store)

    def earlier(self, named: Mentions) -> tuple[Earlier, ...]:
        """The rows as engines know them, with what those hold that a script names."""
        rows = self.rows()
        self._sent = {row.number: self._sent[row.number] for row in rows if row.number in self._sent}
        room, made = SENT_BYTES, list[Earlier]()
        chosen = _chosen(rows, named)
        for row in rows:
            made.append(self._whole(row) if row.number in chosen and row.size <= room else row.earlier())
            room -= len(made[-1].content or b"")
        return tuple(made)

    def numbers(self) -> list[int]:
        """The numbers of the runs that have rows now, newest first."""
        return [row.number for row in self.rows()]

    def content(self, row: ResultRow) -> bytes:
        """The value of a row, as encoded JSON bytes.

        Raises:
            UsageError: `result-unavailable`, when the row has none, with what to use instead.
            VerificationError: when its bytes are damaged.
        """
        if row.kind == "data":
            return orjson.dumps(row.value)
        if row.kind == "large":
            return self._store.blobs.get(row.blob)
        if row.kind == "done":
            return b"null"
        raise _unavailable(row)

    def _whole(self, row: ResultRow) -> Earlier:
        """A row with what it holds. Where that cannot be had, the script is told when it asks."""
        if row.number not in self._sent:
            try:
                content = orjson.dumps(row.error) if row.kind == "error" else self.content(row)
            except AffidavitError:
                return row.earlier()
            self._sent[row.number] = row.earlier(content)
        return self._sent[row.number]

    async def serve(self, arguments: Mapping[str, JsonValue]) -> CallResult:
        """Answer what a script asks of a row: `want` is `row`, `data`, `load` or `error`, `number` the run's.

        The clock of the script stands still: nothing outside was asked.
        """
        try:
            return CallReturned(json=self._asked(arguments), completed=0.0)
        except AffidavitError as error:
            if isinstance(error, VerificationError) and error.code == "store-damaged":
                raise
            return failed(error, 0.0)

    def _asked(self, arguments: Mapping[str, JsonValue]) -> bytes:
        want, number = arguments.get("want"), arguments.get("number")
        row = self.by_run(number) if isinstance(number, int) else None
        if row is None:
            raise NotFoundError(
                "run-not-found",
                f"no result of run {number}; there are those of {_listed(self.numbers())}",
                hint="results[0] is the newest; failed scripts have a row, rejected ones have none",
            )
        if want == "row":
            return orjson.dumps([row.number, row.run_id, row.kind, row.size])
        if want == "error":
            return orjson.dumps(row.error)
        if want == "data" and row.kind == "large":
            raise UsageError(
                "value-too-large",
                f"run {row.number} returned {row.size} bytes, which is too large for .data",
                hint=f"await results.by_run({row.number}).load()",
            )
        return self.content(row)

    def _first(self) -> None:
        """Read the log backwards until there are enough rows, when nothing is known yet."""
        rows: list[ResultRow] = []
        until = self._until
        while True:
            found = self._store.events.of_kinds(self._session, (_SETTLED,), until=until, newest=_PAGE)
            for event in reversed(found):
                self._seq = self._seq or event.seq
                row = self._row(event)
                rows += [row] if row is not None else []
                if len(rows) == TAIL:
                    break
            if len(rows) == TAIL or len(found) < _PAGE:
                self._rows = tuple(rows)
                return
            until = found[0].seq - 1

    def _row(self, event: StoredEvent) -> ResultRow | None:
        return row_of(event, self._store, ours=event.seq in self._ours)


def _chosen(rows: Sequence[ResultRow], named: Mentions) -> set[int]:
    """The numbers of the rows that a script names."""
    if named.bound:
        return set()
    if named.every:
        return {row.number for row in rows}
    at = {rows[place].number for place in named.positions if -len(rows) <= place < len(rows)}
    last = next((row.number for row in rows if row.kind != "error"), None) if named.last else None
    return at | named.numbers | ({last} if last is not None else set())


def _numbered(rows: Iterable[ResultRow], number: int) -> ResultRow | None:
    return next((row for row in rows if row.number == number), None)


def _unavailable(row: ResultRow) -> UsageError:
    if row.kind == "error":
        error = row.error or {}
        return UsageError(
            "result-unavailable",
            f"run {row.number} failed, so it has no value: {error.get('message', '')}",
            hint=f"results.by_run({row.number}).error says why; results.last is the newest success",
        )
    return UsageError(
        "result-unavailable",
        f"the value of run {row.number} ({row.size} bytes) is no longer kept",
        hint="run its script again",
    )


def _capped(error: Mapping[str, Any]) -> dict[str, JsonValue]:
    """An error within its bound; what was cut is said in its message."""
    kept: dict[str, JsonValue] = {name: error.get(name) for name in _KEPT}
    kept["type"] = kept["type"] or ""
    for name in ("hint", "message"):
        text = str(kept[name] or "")
        over = len(orjson.dumps(kept)) - ERROR_BYTES
        if over > 0 and text:
            shown = text.encode("utf-8", "replace")[
                : max(200, len(text.encode("utf-8", "replace")) - over - 60)
            ]
            cut = shown.decode("utf-8", "ignore")
            kept[name] = f"{cut}... ({len(text) - len(cut)} more characters)"
    return kept


def _listed(numbers: list[int]) -> str:
    if not numbers:
        return "no run yet"
    return (
        "run " + ", ".join(map(str, numbers)) if len(numbers) == 1 else f"runs {', '.join(map(str, numbers))}"
    )
