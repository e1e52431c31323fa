"""Whether what a workspace keeps still holds, and putting right what can be derived from the rest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from affidavit.errors import AffidavitError
from affidavit.evidence.canonical import MAX_DOCUMENT_DEPTH, canonical
from affidavit.evidence.identity import body_id, open_foreign, open_sealed
from affidavit.evidence.record import BlobRef, JsonValue, Success
from affidavit.store._schema import TRIGGERS
from affidavit.store.database import Database
from affidavit.store.event_kinds import Story, blobs_of, fault
from affidavit.store.events import StoredEvent, stored
from affidavit.store.store import Store
from affidavit.store.unknowns import REGISTER

__all__ = ["Damage", "Health", "check_store"]

_PAGE: Final = 500
_MOST: Final = 100  # gaps that are listed
_EVENTS: Final = (
    "SELECT e.seq, e.kind, e.session, e.data, e.at, e.run, r.id, e.key"
    " FROM events AS e LEFT JOIN records AS r ON r.number = e.record WHERE +e.tenant = ? AND e.seq > ?"
    " ORDER BY e.seq LIMIT ?"
)
_BLOBS: Final = ("value_blob", "tree")  # members of events that refer to a blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that does not hold.

    Attributes:
        kind: `record`, `blob`, `event` or `database`.
        name: id, address or number of it.
        message: what is wrong with it.
        repaired: whether it was put right.
        remedy: what can be done about it.
    """

    kind: str
    name: str
    message: str
    repaired: bool
    remedy: str

    def as_json(self) -> dict[str, JsonValue]:
        """The damage as documents show it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "message": self.message,
            "repaired": self.repaired,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a check of a store found.

    Attributes:
        records: records that were hashed again; `blobs` and `events` likewise.
        unreferenced: blobs that no record and no event refers to; they are harmless.
        damage: exactly what does not hold.
    """

    records: int
    blobs: int
    events: int
    unreferenced: int
    damage: tuple[Damage, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is damaged, or everything that was is repaired."""
        return all(one.repaired for one in self.damage)

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit doctor --store --json`."""
        return {
            "holds": self.holds,
            "records": self.records,
            "blobs": self.blobs,
            "events": self.events,
            "unreferenced_blobs": self.unreferenced,
            "damage": [one.as_json() for one in self.damage],
        }


def check_store(store: Store, *, repair: bool = False) -> Health:
    """Hash every record and blob of the tenant again, read every event, and check the database file.

    Events are held against `event_kinds` and against each other: what a run, a call or a record says was there before.
    Numbers are given out without gaps and nothing is ever deleted, so a missing number is a row that was taken out.
    What this cannot see: the last rows, and events that were exchanged for others as good. A journal shows both.

    What can be derived is put right when asked: the look-up column of an operation (from the record itself), the words
    beside a record when they are unreadable (they are dropped: no id covers them), indexes and rules of the database.
    A record or blob with other bytes cannot be derived from the rest; the same content from a bundle, a journal or a
    new run of the same call repairs it under its id.

    Args:
        store: the store; others may use it meanwhile.
        repair: whether to put right what can be.
    """
    check = _Check(store, repair)
    damage = [
        *check.database(), *check.rules(), *check.gaps(), *check.records(), *check.blobs(), *check.events(),
    ]  # fmt: skip
    return Health(
        records=check.counts["records"],
        blobs=check.counts["blobs"],
        events=check.counts["events"],
        unreferenced=check.counts["unreferenced"],
        damage=tuple(damage),
    )


class _Check:
    def __init__(self, store: Store, repair: bool) -> None:
        self._store = store
        self._repair = repair
        self._database: Database = store.database
        self._referred: dict[str, str] = {}
        self._present: set[str] = set()
        self.counts = {"records": 0, "blobs": 0, "events": 0, "unreferenced": 0}

    def database(self) -> Iterator[Damage]:
        """Ask SQLite about its pages and indexes."""
        found = [str(row[0]) for row in self._database.read("PRAGMA integrity_check(20)")]
        if found == ["ok"]:
            return
        if self._repair and all("index" in line for line in found):
            self._database.write(_reindex)
            left = [str(row[0]) for row in self._database.read("PRAGMA integrity_check(20)")]
            yield Damage(
                kind="database", name="indexes", message="; ".join(found[:3]), repaired=left == ["ok"],
                remedy="the indexes were made again from the tables",
            )  # fmt: skip
            return
        yield Damage(
            kind="database", name=self._database.path.name, message="; ".join(found[:3]), repaired=False,
            remedy="`--repair` makes indexes again; else restore a backup, a journal or a bundle into a new workspace",
        )  # fmt: skip

    def rules(self) -> Iterator[Damage]:
        """See that the database still refuses to change and delete events and records."""
        present = {
            name for (name,) in self._database.read("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        }
        for name, statement in TRIGGERS.items():
            if name in present:
                continue
            self._fix(statement, ())
            done = "put back" if self._repair else "`--repair` puts it back"
            yield Damage(
                kind="database", name=name, message="this rule was taken out: rows could be changed or deleted",
                repaired=self._repair, remedy=done,
            )  # fmt: skip

    def gaps(self) -> Iterator[Damage]:
        """Look for rows that are missing between others, and for records that events refer to and that are gone."""
        for kind, table, column in (("event", "events", "seq"), ("record", "records", "number")):
            # The numbers in which a stretch of rows begins, but for the first.
            sql = (
                f"SELECT {column}, {column} - 1 - coalesce((SELECT max(i.{column}) FROM {table} AS i"  # noqa: S608
                f" WHERE i.{column} < o.{column}), 0) AS gone FROM {table} AS o WHERE {column} > 1"
                f" AND NOT EXISTS (SELECT 1 FROM {table} AS i WHERE i.{column} = o.{column} - 1) LIMIT {_MOST}"
            )
            for number, gone in self._database.read(sql):
                yield _lost(kind, f"before {number}", f"{gone} {kind}s were taken out of the database here")
        sql = (
            "SELECT seq, session, kind FROM events AS e WHERE tenant = ? AND record IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM records WHERE number = e.record) LIMIT ?"
        )
        for seq, session, kind in self._database.read(sql, (self._store.tenant_number, _MOST)):
            yield _lost(
                "record", f"of event {seq}", f"{kind} of session {session} is about a record that is gone"
            )

    def records(self) -> Iterator[Damage]:
        """Compute every id again."""
        last = 0
        sql = (
            "SELECT number, id, operation, body, notes FROM records WHERE tenant = ? AND number > ?"
            " ORDER BY number LIMIT ?"
        )
        while rows := self._database.read(sql, (self._store.tenant_number, last, _PAGE)):
            for number, evidence_id, operation, body, notes in rows:
                last = number
                self.counts["records"] += 1
                yield from self._record(number, evidence_id, operation, body, notes)

    def _record(
        self, number: int, evidence_id: str, operation: Any, body: Any, notes: Any
    ) -> Iterator[Damage]:
        if type(body) is not bytes or body_id(body) != evidence_id:
            yield Damage(
                kind="record", name=evidence_id, message="its bytes are not those of this id", repaired=False,
                remedy="run the same call again, or import a bundle or journal that has it",
            )  # fmt: skip
            return
        try:
            record = open_foreign(body, None)
        except AffidavitError as error:
            yield Damage(
                kind="record", name=evidence_id, message=error.message, repaired=False,
                remedy="it has its id and is none that this product writes: nothing can be put right",
            )  # fmt: skip
            return
        if isinstance(record.outcome, Success) and isinstance(record.outcome.result, BlobRef):
            self._referred[record.outcome.result.digest] = evidence_id
        if record.script is not None:
            self._referred.setdefault(record.script, "")
        if record.operation != operation:
            self._fix("UPDATE records SET operation = ? WHERE number = ?", (record.operation, number))
            yield self._derivable(evidence_id, f"it is listed under the operation {operation!a}")
        if not _notes_fit(body, notes):
            self._fix("UPDATE records SET notes = NULL WHERE number = ?", (number,))
            yield self._derivable(evidence_id, "the words beside it are unreadable")

    def _derivable(self, evidence_id: str, message: str) -> Damage:
        done = "put right from the record itself" if self._repair else "`--repair` puts it right"
        return Damage(kind="record", name=evidence_id, message=message, repaired=self._repair, remedy=done)

    def _fix(self, sql: str, parameters: tuple[Any, ...]) -> None:
        if self._repair:
            self._database.write(lambda cursor: cursor.execute(sql, parameters))

    def blobs(self) -> Iterator[Damage]:
        """Hash every blob again, and look for those that are referred to."""
        present = self._present
        for address in self._store.blobs.addresses():
            present.add(address)
            self.counts["blobs"] += 1
            try:
                self._store.blobs.get(address)
            except AffidavitError as error:
                yield self._blob(address, error.message)
        for address, evidence_id in self._referred.items():
            if evidence_id and address not in present:
                yield self._blob(address, f"it is not there, and {evidence_id} refers to it")

    def _blob(self, address: str, message: str) -> Damage:
        remedy = (
            "nothing else has its bytes: run the same call again, or import a bundle or journal that has it"
        )
        return Damage(kind="blob", name=address, message=message, repaired=False, remedy=remedy)

    def events(self) -> Iterator[Damage]:
        """Read every event of the log."""
        last = 0
        stories: dict[str, Story] = {}
        while rows := self._database.read(_EVENTS, (self._store.tenant_number, last, _PAGE)):
            for row in rows:
                last = row[0]
                self.counts["events"] += 1
                try:
                    yield from self._event(stored(row), row[3], stories)
                except AffidavitError as error:
                    yield _lost("event", str(last), error.message)
        self.counts["unreferenced"] = len(self._present - set(self._referred))

    def _event(self, event: StoredEvent, data: Any, stories: dict[str, Story]) -> Iterator[Damage]:
        where = f"{event.kind} of session {event.session}"
        problem = fault(event) or (
            "" if _is_canonical(event, data) else "its data is not in the canonical form"
        )
        if problem:
            yield _lost("event", str(event.seq), f"{where}: {problem}")
            return
        story = stories.setdefault(event.session, Story())
        missing = "" if event.session == REGISTER else story.tell(event)[1]
        if missing:
            yield _lost("event", str(event.seq), f"{where}: {missing}")
        for ref in blobs_of(event):
            self._referred[ref.digest] = f"event {event.seq}"
            if ref.digest not in self._present:
                yield self._blob(ref.digest, f"it is not there, and event {event.seq} refers to it")


def _lost(kind: str, name: str, message: str) -> Damage:
    remedy = "restore the session from its journal into a new workspace"
    return Damage(kind=kind, name=name, message=message, repaired=False, remedy=remedy)


def _is_canonical(event: StoredEvent, data: Any) -> bool:
    return canonical(event.data, max_depth=MAX_DOCUMENT_DEPTH) == data


def _reindex(cursor: sqlite3.Cursor) -> None:
    cursor.execute("REINDEX")


def _notes_fit(body: bytes, notes: Any) -> bool:
    try:
        open_sealed(body, None if notes is None else orjson.loads(notes))
    except (AffidavitError, orjson.JSONDecodeError):
        return False
    return True
