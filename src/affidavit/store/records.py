"""Evidence records: each once per tenant, checked against its id whenever it is read."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.identity import PREFIX, Sealed, body_id, open_sealed
from affidavit.evidence.record import BlobRef, JsonValue, Record, Success
from affidavit.store.blobs import Blobs
from affidavit.store.database import Database

__all__ = ["Evidence"]

_SHORTENED: Final = re.compile(r"(?:ev1_)?([0-9a-f]{4,64})")
_WHOLE: Final = re.compile(r"ev1_[0-9a-f]{64}")
_NO_NUMBER: Final = 2**63 - 1
_INSERT: Final = (
    "INSERT INTO records (tenant, id, operation, body, notes) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
# `+tenant` keeps SQLite from sorting by an index on it: numbers are in order already.
_LIST: Final = """
    SELECT id, operation, body, notes FROM records
    WHERE +tenant = :tenant AND number < :before AND (:operation IS NULL OR operation = :operation)
    AND (:session IS NULL
         OR number IN (SELECT record FROM events WHERE tenant = :tenant AND session = :session))
    ORDER BY number DESC LIMIT :limit
"""

_IDS: Final = """
    SELECT number, id FROM records
    WHERE +tenant = :tenant AND number > :last AND number <= :up_to
    AND (:operation IS NULL OR operation = :operation)
    ORDER BY number LIMIT :page
"""
_IDS_OF_SESSION: Final = """
    SELECT e.seq, r.id FROM events AS e JOIN records AS r ON r.number = e.record
    WHERE e.tenant = :tenant AND e.session = :session AND e.seq > :last AND r.number <= :up_to
    AND (:operation IS NULL OR r.operation = :operation)
    ORDER BY e.seq LIMIT :page
"""


class Evidence:
    """The records of one tenant. Reading only: `Store.append` writes."""

    def __init__(self, database: Database, tenant: int, blobs: Blobs) -> None:
        self._database = database
        self._tenant = tenant
        self._blobs = blobs

    def get(self, evidence_id: str) -> Record:
        """The record of an id or of a prefix that only one id has. Its id is computed again first.

        Raises:
            NotFoundError: `evidence-not-found`.
            UsageError: `evidence-ambiguous`.
            VerificationError: `store-damaged`: the stored bytes do not have this id.
        """
        whole = self.resolve(evidence_id)
        sql = "SELECT id, operation, body, notes FROM records WHERE tenant = ? AND id = ?"
        [row] = self._database.read(sql, (self._tenant, whole))
        return _open(*row)

    def resolve(self, prefix: str) -> str:
        """The whole id for a prefix of at least four digits, with or without `ev1_`.

        Raises:
            NotFoundError: `evidence-not-found`.
            UsageError: `evidence-ambiguous`, with some of the candidates in `details.candidates`.
        """
        match = _SHORTENED.fullmatch(prefix)
        if match is None:
            raise _not_found(
                prefix, "an id is `ev1_` and 64 lower-case hexadecimal digits; four or more will do"
            )
        low = PREFIX + match[1]
        # `g` follows every hexadecimal digit.
        sql = "SELECT id FROM records WHERE tenant = ? AND id >= ? AND id < ? ORDER BY id LIMIT 6"
        found = [row[0] for row in self._database.read(sql, (self._tenant, low, low + "g"))]
        if not found:
            raise _not_found(prefix, "`affidavit evidence list` shows the ids that are here")
        if len(found) > 1:
            raise UsageError(
                "evidence-ambiguous",
                f"several records begin with {prefix}",
                hint="give more digits: " + ", ".join(it[: len(low) + 6] for it in found[:3]) + ", ...",
                details={"candidates": found},
            )
        return found[0]

    def has(self, ids: Iterable[str]) -> set[str]:
        """Those of the whole ids that have a record here."""
        wanted = orjson.dumps([it for it in ids if _WHOLE.fullmatch(it)]).decode()
        sql = "SELECT id FROM records WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
        return {row[0] for row in self._database.read(sql, (self._tenant, wanted))}

    def list(
        self,
        limit: int = 50,
        after: str | None = None,
        operation: str | None = None,
        session: str | None = None,
    ) -> list[tuple[str, Record]]:
        """Ids and records, newest first.

        Args:
            limit: how many at most.
            after: whole id of the last one of the page before.
            operation: only records of this operation (`javascript.modules.page/1`).
            session: only records that an event of this session is about.

        Raises:
            NotFoundError: `evidence-not-found` for `after`.
            VerificationError: `store-damaged`, naming the record.
        """
        parameters = {
            "tenant": self._tenant,
            "before": _NO_NUMBER if after is None else self._number(after),
            "operation": operation,
            "session": session,
            "limit": max(0, limit),
        }
        return [(row[0], _open(*row)) for row in self._database.read(_LIST, parameters)]

    def result(self, record: Record) -> JsonValue:
        """The encoded result of a call that succeeded, read from its blob where it is kept apart.

        Raises:
            VerificationError: `blob-missing`, `blob-damaged`.
            NotFoundError: `item-not-found`: the call did not succeed.
        """
        if not isinstance(record.outcome, Success):
            raise NotFoundError(
                "item-not-found", f"this call of {record.operation} did not return, so it has no result"
            )
        ref = record.outcome.result
        if not isinstance(ref, BlobRef):
            return ref
        return orjson.loads(self._blobs.get(ref.digest))

    def newest(self) -> int:
        """The number of the newest record of the whole workspace, 0 where there is none: `walk` up to it."""
        return self._database.read("SELECT coalesce(max(number), 0) FROM records")[0][0]

    def walk(self, *, up_to: int = _NO_NUMBER, page: int = 500) -> Iterator[Sealed]:
        """Every record in the order of ids, each checked against its id, in memory for one page.

        Args:
            up_to: only records with at most this number; later ones may be written meanwhile.
            page: records that are read at once.

        Raises:
            VerificationError: `store-damaged`, naming the record.
        """
        last = ""
        sql = (
            "SELECT id, operation, body, notes FROM records"
            " WHERE tenant = ? AND id > ? AND +number <= ? ORDER BY id LIMIT ?"
        )
        while rows := self._database.read(sql, (self._tenant, last, up_to, page)):
            for row in rows:
                yield _sealed(*row)
            last = rows[-1][0]

    def sealed(self, ids: Iterable[str]) -> list[Sealed]:
        """Those of the whole ids that have a record here, in the order of ids, each checked against its id.

        Raises:
            VerificationError: `store-damaged`, naming the record.
        """
        wanted = orjson.dumps([it for it in ids if _WHOLE.fullmatch(it)]).decode()
        sql = (
            "SELECT id, operation, body, notes FROM records"
            " WHERE tenant = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY id"
        )
        return [_sealed(*row) for row in self._database.read(sql, (self._tenant, wanted))]

    def ids(
        self,
        *,
        operation: str | None = None,
        session: str | None = None,
        up_to: int = _NO_NUMBER,
        page: int = 2000,
    ) -> Iterator[str]:
        """The ids of all records, or of those of an operation and session, in memory for one page.

        Those of a session come in the order of its events, and as often as it saw them.

        Args:
            operation: only records of this operation.
            session: only records that an event of this session is about.
            up_to: only records with at most this number.
            page: ids that are read at once.
        """
        sql = _IDS if session is None else _IDS_OF_SESSION
        parameters = {"tenant": self._tenant, "operation": operation, "up_to": up_to, "page": page}
        if session is not None:
            parameters["session"] = session
        last = 0
        while rows := self._database.read(sql, parameters | {"last": last}):
            last = rows[-1][0]
            for _, evidence_id in rows:
                yield evidence_id

    def damaged(self) -> list[str]:
        """Read every record; the ids whose stored bytes do not hold."""
        bad: list[str] = []
        last = 0
        sql = (
            "SELECT number, id, operation, body, notes FROM records WHERE tenant = ? AND number > ?"
            " ORDER BY number LIMIT 1000"
        )
        while rows := self._database.read(sql, (self._tenant, last)):
            for number, evidence_id, *rest in rows:
                last = number
                try:
                    _open(evidence_id, *rest)
                except VerificationError:
                    bad.append(evidence_id)
        return bad

    def _number(self, evidence_id: str) -> int:
        rows = self._database.read(
            "SELECT number FROM records WHERE tenant = ? AND id = ?",
            (self._tenant, self.resolve(evidence_id)),
        )
        return rows[0][0]


def keep(cursor: sqlite3.Cursor, tenant: int, sealed: Sealed) -> int:
    """Store a record inside the caller's transaction, once; its number. A damaged copy of it is repaired."""
    notes = None if sealed.notes is None else orjson.dumps(sealed.notes)
    cursor.execute(_INSERT, (tenant, sealed.id, sealed.operation, sealed.body, notes))
    if cursor.rowcount == 1:
        number = cursor.lastrowid
        assert number is not None
        return number
    [(number, operation, body)] = cursor.execute(
        "SELECT number, operation, body FROM records WHERE tenant = ? AND id = ?", (tenant, sealed.id)
    ).fetchall()
    if body != sealed.body or operation != sealed.operation:
        cursor.execute(
            "UPDATE records SET operation = ?, body = ?, notes = ? WHERE number = ?",
            (sealed.operation, sealed.body, notes, number),
        )
    return number


def is_new(cursor: sqlite3.Cursor, tenant: int, evidence_id: str) -> bool:
    """Whether no record has this id yet, inside the caller's transaction."""
    sql = "SELECT 1 FROM records WHERE tenant = ? AND id = ?"
    return not cursor.execute(sql, (tenant, evidence_id)).fetchall()


def number_of(cursor: sqlite3.Cursor, tenant: int, evidence_id: str) -> int:
    """The number of a record that must be there, inside the caller's transaction.

    Raises:
        NotFoundError: `evidence-not-found`.
    """
    rows = cursor.execute(
        "SELECT number FROM records WHERE tenant = ? AND id = ?", (tenant, evidence_id)
    ).fetchall()
    if not rows:
        raise _not_found(evidence_id, "append the record with its event")
    return rows[0][0]


def _open(evidence_id: str, operation: Any, body: Any, notes: Any) -> Record:
    """The record of a row, after its id was computed from its bytes again."""
    try:
        if type(body) is bytes and body_id(body) == evidence_id:
            record = open_sealed(body, None if notes is None else orjson.loads(notes))
            if record.operation == operation:
                return record
    except (AffidavitError, orjson.JSONDecodeError):
        pass
    raise VerificationError(
        "store-damaged",
        f"the record kept as {evidence_id} is not the one with this id",
        hint="record it again, or restore it from a journal or a bundle",
        details={"evidence_id": evidence_id},
    )


def _sealed(evidence_id: str, operation: Any, body: Any, notes: Any) -> Sealed:
    """The record of a row as it is kept. Its id proves its body, so only words beside it need a closer look."""
    if type(body) is not bytes or body_id(body) != evidence_id or notes is not None:
        _open(evidence_id, operation, body, notes)
    words = None if notes is None else orjson.loads(notes)
    return Sealed(id=evidence_id, body=body, notes=words, operation=operation, spilled=None)


def _not_found(evidence_id: str, hint: str) -> NotFoundError:
    return NotFoundError("evidence-not-found", f"no record has the id {evidence_id[:80]!a} here", hint=hint)
