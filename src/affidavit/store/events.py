"""The event log: what happened, in order, and never changed.

An event says who did what and when; a record (`records`) says what was seen. One record that is seen twice is one
record and two events. The store keeps events and does not interpret their kinds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from affidavit.errors import VerificationError
from affidavit.evidence.canonical import MAX_DOCUMENT_DEPTH, canonical
from affidavit.evidence.record import JsonValue
from affidavit.store._names import check_name
from affidavit.store._schema import FEW
from affidavit.store.database import Database, Row

__all__ = ["Event", "Events", "Head", "Places", "StoredEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a session.

    Attributes:
        kind: what happened: `session-opened`, `call-recorded`, ...
        session: id of the session.
        data: JSON that belongs to this kind. Parts of it may be `CanonicalJson`.
        at: when, seconds since the epoch.
        run: id of the run, where it belongs to one.
        evidence_id: id of the record that it is about. Set by the store when the record is appended with it.
        key: idempotency key: a second event with the same session and key is not appended.
    """

    kind: str
    session: str
    data: JsonValue
    at: float
    run: str | None = None
    evidence_id: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent(Event):
    """An event in the log.

    Attributes:
        seq: its place: later events have larger numbers, not necessarily the next one.
        repeated: whether an append found it there by its key instead of adding it. Not compared.
    """

    seq: int
    repeated: bool = field(default=False, compare=False)


_SELECT: Final = (
    "SELECT e.seq, e.kind, e.session, e.data, e.at, e.run, r.id, e.key"
    " FROM events AS e LEFT JOIN records AS r ON r.number = e.record WHERE e.tenant = ?"
)
# `+` keeps SQLite from reading a whole tenant by an index and sorting it: `seq` is in order already.
_SELECT_IN_ORDER: Final = _SELECT.replace("e.tenant", "+e.tenant")
_HEAD: Final = "SELECT e.seq, e.kind, e.run FROM events AS e WHERE e.tenant = ? AND e.session = ?"
_INSERT: Final = (
    "INSERT INTO events (tenant, session, run, kind, at, record, key, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class Head(NamedTuple):
    """The newest event of a session: as long as it is the same, nothing else happened."""

    seq: int
    kind: str
    run: str | None


class Events:
    """The log of one tenant. Reading only: `Store.append` writes."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def of_session(
        self, session: str, after: int = 0, *, skip: int = 0, limit: int | None = None
    ) -> list[StoredEvent]:
        """The events of a session in order, those with `seq` above `after`.

        Args:
            session: its id.
            after: only events with a larger `seq`.
            skip: how many of these to leave out first.
            limit: how many at most; all by default.
        """
        order = "AND e.session = ? AND e.seq > ? ORDER BY e.seq"
        if skip or limit is not None:
            bound = -1 if limit is None else limit
            return self._select(f"{order} LIMIT ? OFFSET ?", session, after, bound, skip)
        return self._select(order, session, after)

    def of_run(self, run: str) -> list[StoredEvent]:
        """The events of a run in order."""
        return self._select("AND e.run = ? ORDER BY e.seq", run)

    def after(self, seq: int = 0, *, limit: int = 1000) -> list[StoredEvent]:
        """At most `limit` events of the whole tenant that follow `seq`, in order."""
        sql = f"{_SELECT_IN_ORDER} AND e.seq > ? ORDER BY e.seq LIMIT ?"
        return [stored(row) for row in self._database.read(sql, (self._tenant, seq, limit))]

    def last(
        self, session: str | None = None, *, kind: str | None = None, run: str | None = None
    ) -> StoredEvent | None:
        """The newest event that is of this session, kind and run, where given; None when there is none."""
        wanted = {"e.session": session, "e.kind": kind, "e.run": run}
        given = {column: value for column, value in wanted.items() if value is not None}
        conditions = "".join(f" AND {column} = ?" for column in given) + _few((kind,) if kind else ())
        found = self._select(f"{conditions} ORDER BY e.seq DESC LIMIT 1", *given.values())
        return found[0] if found else None

    def of_kinds(
        self,
        session: str,
        kinds: Sequence[str],
        *,
        after: int = 0,
        until: int | None = None,
        newest: int | None = None,
    ) -> list[StoredEvent]:
        """The events of a session that are of these kinds, in order.

        Args:
            session: its id.
            kinds: one or more kinds.
            after: only events with a larger `seq`.
            until: only events whose `seq` is not larger; all by default.
            newest: only so many of them, the last ones; all by default.
        """
        marks = ", ".join("?" * len(kinds))
        rest = f"AND e.session = ?{_few(kinds)} AND e.kind IN ({marks}) AND e.seq > ?"
        parameters: list[Any] = [session, *kinds, after]
        if until is not None:
            rest, parameters = f"{rest} AND e.seq <= ?", [*parameters, until]
        if newest is None:
            return self._select(f"{rest} ORDER BY e.seq", *parameters)
        found = self._select(f"{rest} ORDER BY e.seq DESC LIMIT ?", *parameters, newest)
        return found[::-1]

    def head(self, session: str, *, kind: str | None = None) -> Head | None:
        """What the newest event of a session (of this kind, where given) is, without what it says; None for none."""
        rest, parameters = "", [self._tenant, session]
        if kind is not None:
            rest, parameters = f"{_few((kind,))} AND e.kind = ?", [self._tenant, session, kind]
        rows = self._database.read(f"{_HEAD}{rest} ORDER BY e.seq DESC LIMIT 1", parameters)
        return Head(*rows[0]) if rows else None

    def by_key(self, session: str, key: str) -> StoredEvent | None:
        """The event that was appended with this idempotency key, or None."""
        found = self._select("AND e.session = ? AND e.key = ?", session, key)
        return found[0] if found else None

    def walk(self, kinds: Sequence[str], *, page: int = 500) -> Iterator[StoredEvent]:
        """Every event of the whole tenant that is of these kinds, in order, in memory for one page."""
        marks = ", ".join("?" * len(kinds))
        last = 0
        sql = f"{_SELECT_IN_ORDER} AND e.kind IN ({marks}) AND e.seq > ? ORDER BY e.seq LIMIT ?"
        while rows := self._database.read(sql, (self._tenant, *kinds, last, page)):
            for row in rows:
                yield stored(row)
            last = rows[-1][0]

    def sessions(self) -> list[str]:
        """The ids of all sessions, in the order of their first events."""
        sql = "SELECT session FROM events WHERE tenant = ? GROUP BY session ORDER BY min(seq)"
        return [session for (session,) in self._database.read(sql, (self._tenant,))]

    def _select(self, rest: str, *parameters: Any) -> list[StoredEvent]:
        rows = self._database.read(f"{_SELECT} {rest}", (self._tenant, *parameters))
        return [stored(row) for row in rows]


def _few(kinds: Sequence[str]) -> str:
    """The term that lets SQLite find events of these kinds without reading the calls between them."""
    return f" AND e.{FEW}" if kinds and not {"call-started", "call-recorded"} & set(kinds) else ""


def stored(row: Row, *, repeated: bool = False) -> StoredEvent:
    """The event of a row of `_SELECT`.

    Raises:
        VerificationError: `store-damaged`, naming the event.
    """
    seq, kind, session, data, at, run, evidence_id, key = row
    try:
        json = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise VerificationError(
            "store-damaged",
            f"the data of event {seq} (session {session}) is not JSON",
            hint="restore the workspace from a journal or a copy",
            details={"seq": seq},
        ) from None
    return StoredEvent(
        seq=seq, kind=kind, session=session, data=json, at=at, run=run, evidence_id=evidence_id, key=key,
        repeated=repeated,
    )  # fmt: skip


def prepare(event: Event) -> bytes:
    """Check the names of an event and write its data.

    Raises:
        UsageError: `name-invalid`, or `value-unsupported` for data that is not JSON.
    """
    check_name("kind", event.kind)
    check_name("session", event.session)
    if event.run is not None:
        check_name("run", event.run)
    if event.key is not None:
        check_name("key", event.key)
    return canonical(event.data, max_depth=MAX_DOCUMENT_DEPTH)


def insert(cursor: sqlite3.Cursor, tenant: int, event: Event, data: bytes, record: int | None) -> int:
    """Add the event to the log inside the caller's transaction; its `seq`."""
    cursor.execute(_INSERT, (tenant, event.session, event.run, event.kind, event.at, record, event.key, data))
    seq = cursor.lastrowid
    assert seq is not None
    return seq


class Places:
    """Tells which event of its session precedes one that was just added, mostly without asking the database.

    Numbers are given out to all sessions in one row. As long as each number that is seen here follows the one that was
    seen before, nobody else added anything in between, and what is remembered holds.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._upto = -1

    def before(self, cursor: sqlite3.Cursor, tenant: int, event: StoredEvent) -> int:
        """The `seq` of the session's event before this one, 0 for the first, inside the caller's transaction."""
        if event.seq != self._upto + 1:
            self._last.clear()
        previous = self._last.get(event.session)
        if previous is None:
            sql = "SELECT seq FROM events WHERE tenant = ? AND session = ? AND seq < ? ORDER BY seq DESC LIMIT 1"
            rows = cursor.execute(sql, (tenant, event.session, event.seq)).fetchall()
            previous = rows[0][0] if rows else 0
        self._upto = self._last[event.session] = event.seq
        return previous


def find_by_key(cursor: sqlite3.Cursor, tenant: int, event: Event) -> StoredEvent | None:
    """The event that has this one's session and key, inside the caller's transaction."""
    rows = cursor.execute(f"{_SELECT} AND e.session = ? AND e.key = ?", (tenant, event.session, event.key))
    row = rows.fetchone()
    rows.fetchall()
    return None if row is None else stored(row, repeated=True)
