"""Whether what a workspace keeps still holds, and putting right what can be derived from the rest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from affidavit.errors import AffidavitError
from affidavit.evidence.identity import body_id, open_sealed
from affidavit.evidence.record import JsonValue
from affidavit.store.database import Database
from affidavit.store.store import Store

__all__ = ["Damage", "Health", "check_store"]

_PAGE: Final = 500
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

    What can be derived is put right when asked: the look-up column of an operation (from the record itself), the words
    beside a record when they are unreadable (they are dropped: no id covers them), indexes of the database. A record or
    blob with other bytes cannot be derived from the rest; the same content from a bundle, a journal or a new run of the
    same call repairs it under its id.

    Args:
        store: the store; others may use it meanwhile.
        repair: whether to put right what can be.
    """
    check = _Check(store, repair)
    damage = [*check.database(), *check.records(), *check.blobs(), *check.events()]
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
        shape: dict[str, Any] = orjson.loads(body)
        blob = shape["outcome"].get("blob")
        if blob is not None:
            self._referred[blob["digest"]] = evidence_id
        if shape.get("script") is not None:
            self._referred.setdefault(shape["script"], "")
        if shape["operation"] != operation:
            self._fix("UPDATE records SET operation = ? WHERE number = ?", (shape["operation"], number))
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
        sql = "SELECT seq, session, kind, data FROM events WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
        while rows := self._database.read(sql, (self._store.tenant_number, last, _PAGE)):
            for seq, session, kind, data in rows:
                last = seq
                self.counts["events"] += 1
                try:
                    json = orjson.loads(data)
                except orjson.JSONDecodeError:
                    yield Damage(
                        kind="event", name=str(seq), message=f"{kind} of session {session}: its data is not JSON",
                        repaired=False, remedy="restore the session from its journal into a new workspace",
                    )  # fmt: skip
                    continue
                yield from self._event_blob(seq, json)
        self.counts["unreferenced"] = len(self._present - set(self._referred))

    def _event_blob(self, seq: int, json: Any) -> Iterator[Damage]:
        fields = cast("dict[str, Any]", json) if isinstance(json, dict) else {}
        for blob in (fields[name] for name in _BLOBS if fields.get(name) is not None):
            address = str(blob["digest"])
            self._referred[address] = f"event {seq}"
            if address not in self._present:
                yield self._blob(address, f"it is not there, and event {seq} refers to it")


def _reindex(cursor: sqlite3.Cursor) -> None:
    cursor.execute("REINDEX")


def _notes_fit(body: bytes, notes: Any) -> bool:
    try:
        open_sealed(body, None if notes is None else orjson.loads(notes))
    except (AffidavitError, orjson.JSONDecodeError):
        return False
    return True
