"""One workspace's store, as one tenant sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self, TypeAlias

from affidavit.errors import UsageError
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import Record
from affidavit.store import events as event_log
from affidavit.store import records
from affidavit.store._names import check_tenant
from affidavit.store._reading import may_be_written
from affidavit.store.blobs import Blobs
from affidavit.store.database import BUSY_SECONDS, Database
from affidavit.store.events import Event, Events, StoredEvent
from affidavit.store.records import Evidence

__all__ = ["Appended", "Follower", "Store"]

_FILE: Final = "store.sqlite"
_BLOBS: Final = "blobs"

_Entry: TypeAlias = tuple[Event, bytes, Sealed | None]


class Appended(NamedTuple):
    """An event that was just added, as a follower of its session is told. A tuple: one is made for every event.

    Attributes:
        stored: the event.
        data: its data as canonical bytes.
        sealed: the record that came with it, or None.
        previous: `seq` of the session's event before it, 0 for the first.
    """

    stored: StoredEvent
    data: bytes
    sealed: Sealed | None
    previous: int


class Follower(Protocol):
    """What keeps a copy of a session's events as they are added: its journal."""

    @property
    def waits(self) -> bool:
        """Whether `settle` waits for the disk, so that an event loop calls it in a thread."""
        ...

    def write(self, entries: Sequence[Appended]) -> None:
        """Keep these events, in order. An error of it is the error of the append, whose events are stored."""
        ...

    def settle(self) -> None:
        """Return when what was written is as durable as was promised."""
        ...

    def close(self) -> None:
        """Finish the copy."""
        ...


class _TakenError(Exception):
    """Ends a transaction whose events must all be new."""

    def __init__(self, stored: StoredEvent) -> None:
        super().__init__(stored.key)
        self.stored = stored


class Store:
    """Events, evidence and blobs of one tenant in one workspace folder.

    Several processes and threads may use one workspace at once. A store belongs to the process that opened it.

    Attributes:
        root: the workspace folder.
        tenant: whose part of it this is.
        events: the log.
        evidence: the records.
        blobs: values that are kept beside records.
        writable: whether anything can be added.
    """

    def __init__(self, root: Path, tenant: str, database: Database, number: int, *, writable: bool) -> None:
        self.root = root
        self.tenant = tenant
        self._database = database
        self._tenant = number
        self.writable = writable
        self.blobs = Blobs(root / _BLOBS / tenant)
        self.events = Events(database, self._tenant)
        self.evidence = Evidence(database, self._tenant, self.blobs)
        self._followers: dict[str, Follower] = {}
        self._places = event_log.Places()

    @property
    def database(self) -> Database:
        """The database, for other parts of this room."""
        return self._database

    @property
    def tenant_number(self) -> int:
        """The number of the tenant in the database's tables, for other parts of this room."""
        return self._tenant

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        tenant: str = "default",
        create: bool = True,
        busy_seconds: float = BUSY_SECONDS,
        to_read: bool = False,
    ) -> Store:
        """Open the store of a workspace folder, making both where they are absent.

        Args:
            root: the workspace folder.
            tenant: lower-case letters, digits, dashes and underscores.
            create: whether an absent workspace is made.
            busy_seconds: how long a write waits for other processes.
            to_read: whether nothing will be written, so that a workspace that cannot be written opens all the same.

        Raises:
            NotFoundError: `store-missing`.
            FailedError: `store-version`, `store-busy`, `store-full`, `store-unwritable`.
            VerificationError: `store-damaged`.
            UsageError: `name-invalid`: not a tenant's name.
        """
        check_tenant(tenant)
        path = root / _FILE
        writable = not to_read or may_be_written(path)
        if writable:
            database = Database.open(path, create=create, busy_seconds=busy_seconds)
        else:
            database = Database.open_to_read(path)
        try:
            number = _tenant_number(database, tenant, make=writable)
            store = cls(root, tenant, database, number, writable=writable)
            if writable:
                store.blobs.clean()
        except BaseException:
            database.close()
            raise
        return store

    def append(
        self, event: Event, *, record: Record | Sealed | None = None, settle: bool = True
    ) -> StoredEvent:
        """Add one event, with the record that it is about, in one transaction.

        A record that is there already is not stored twice. A result above 64 KiB is kept as a blob first. When the
        event has a key and its session has an event with that key, nothing is stored and that event is returned
        (`repeated`). When this returns, the event survives the death of this process.

        Args:
            event: what happened.
            record: the record, or the same sealed (`identity.seal`), which is not hashed again.
            settle: whether to wait until the session's follower, if it has one, has it as durably as it promises;
                without it `settle` must follow before anything goes on.

        Raises:
            FailedError: `store-busy`, `store-full`, `store-unwritable`; then nothing was stored.
            UsageError: `name-invalid`, `value-unsupported`.
            NotFoundError: `evidence-not-found`: the event names a record that is neither given nor here.
            VerificationError: `store-damaged`.
        """
        entry = self._prepare(event, record)
        follower = self._followers.get(event.session)
        if follower is None:
            return self._database.write(lambda cursor: self._insert(cursor, entry))
        # The frequent case of `_append_followed`, without its lists.
        stored, previous = self._database.write(lambda cursor: self._insert_placed(cursor, entry))
        follower.write((Appended(stored, entry[1], entry[2], previous),))
        if settle:
            follower.settle()
        return stored

    def append_many(
        self, events: Iterable[Event | tuple[Event, Record | Sealed | None]], *, settle: bool = True
    ) -> list[StoredEvent]:
        """Add several events, some with their records, in one transaction: all of them or none.

        Args:
            events: what happened.
            settle: as for `append`.

        Raises:
            AffidavitError: as `append`.
        """
        pairs = (it if isinstance(it, tuple) else (it, None) for it in events)
        entries = [self._prepare(event, record) for event, record in pairs]
        if self._followers:
            return self._append_followed(entries, settle=settle)
        return self._database.write(lambda cursor: [self._insert(cursor, entry) for entry in entries])

    def append_new(self, events: Iterable[Event]) -> StoredEvent | None:
        """Add several events in one transaction, unless a key of one of them is taken.

        Returns:
            None when all were added; else the event that has the key, and nothing was added.

        Raises:
            AffidavitError: as `append`.
        """
        try:
            self._append_followed([self._prepare(event, None) for event in events], new=True)
        except _TakenError as taken:
            return taken.stored
        return None

    def load(self, items: Iterable[Event | Sealed]) -> tuple[int, int]:
        """Add records and events from elsewhere in one transaction: all of them, or none when the iteration raises.

        Followers are not told. Items are taken one by one, so that any number fits into memory; no other writer comes
        between, and what the iteration reads of this store is what it adds to. A record that is there already is not
        stored twice. Results that are kept apart must have their blobs already.

        Returns:
            How many events and how many records were new.

        Raises:
            AffidavitError: as `append`; whatever the iteration raises.
        """

        def work(cursor: sqlite3.Cursor) -> tuple[int, int]:
            events = new = 0
            for item in items:
                if isinstance(item, Sealed):
                    new += records.is_new(cursor, self._tenant, item.id)
                    records.keep(cursor, self._tenant, item)
                else:
                    events += not self._insert(cursor, self._prepare(item, None)).repeated
            return events, new

        return self._database.write(work)

    def follow(self, session: str, follower: Follower) -> None:
        """Tell a follower of every event of a session from now on, before `append` returns.

        The follower is closed with the store. An event that it cannot keep is stored, and `append` raises all the
        same: whoever appended must not go on.
        """
        self._followers[session] = follower

    def waits(self, session: str) -> bool:
        """Whether `settle` would wait for the disk."""
        follower = self._followers.get(session)
        return follower is not None and follower.waits

    def settle(self, session: str) -> None:
        """Wait until what was appended without settling is as durable as the session's follower promises.

        Several threads that settle at once share the wait.

        Raises:
            FailedError: `journal-failed`: it cannot be known to be durable.
        """
        follower = self._followers.get(session)
        if follower is not None:
            follower.settle()

    def close(self) -> None:
        """Close the files. Nothing is lost without it; repeating it is harmless."""
        try:
            while self._followers:
                self._followers.popitem()[1].close()
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, event: Event, record: Record | Sealed | None) -> _Entry:
        """All that needs no transaction: hashing, writing JSON, and the blob that the record will refer to."""
        data = event_log.prepare(event)
        if record is None:
            return event, data, None
        sealed = record if isinstance(record, Sealed) else seal(record)
        if event.evidence_id not in (None, sealed.id):
            raise UsageError(
                "value-unsupported",
                f"the event names {event.evidence_id} and comes with the record {sealed.id}",
                details={"path": "$.evidence_id"},
            )
        if sealed.spilled is not None:
            self.blobs.put(sealed.spilled)
        return event, data, sealed

    def _append_followed(
        self, entries: Sequence[_Entry], *, new: bool = False, settle: bool = True
    ) -> list[StoredEvent]:
        """Add events in one transaction, then tell the followers: they copy only what is surely stored."""
        told: dict[str, list[Appended]] = {}

        def work(cursor: sqlite3.Cursor) -> list[StoredEvent]:
            told.clear()  # a transaction may be tried again
            added: list[StoredEvent] = []
            for entry in entries:
                stored = self._insert(cursor, entry)
                if new and stored.repeated:
                    raise _TakenError(stored)
                added.append(stored)
                if stored.session in self._followers:
                    previous = self._places.before(cursor, self._tenant, stored)
                    told.setdefault(stored.session, []).append(Appended(stored, entry[1], entry[2], previous))
            return added

        added = self._database.write(work)
        for session, appended in told.items():
            self._followers[session].write(appended)
            if settle:
                self._followers[session].settle()
        return added

    def _insert_placed(self, cursor: sqlite3.Cursor, entry: _Entry) -> tuple[StoredEvent, int]:
        stored = self._insert(cursor, entry)
        return stored, self._places.before(cursor, self._tenant, stored)

    def _insert(self, cursor: sqlite3.Cursor, entry: _Entry) -> StoredEvent:
        event, data, sealed = entry
        if event.key is not None:
            known = event_log.find_by_key(cursor, self._tenant, event)
            if known is not None:
                return known
        evidence_id, number = event.evidence_id, None
        if sealed is not None:
            evidence_id, number = sealed.id, records.keep(cursor, self._tenant, sealed)
        elif evidence_id is not None:
            number = records.number_of(cursor, self._tenant, evidence_id)
        seq = event_log.insert(cursor, self._tenant, event, data, number)
        return StoredEvent(
            seq=seq,
            kind=event.kind,
            session=event.session,
            data=event.data,
            at=event.at,
            run=event.run,
            evidence_id=evidence_id,
            key=event.key,
        )


def _tenant_number(database: Database, tenant: str, *, make: bool) -> int:
    """The number of a tenant; 0, which no row has, for one that is not there and must not be made."""
    sql = "SELECT number FROM tenants WHERE name = ?"
    rows = database.read(sql, (tenant,))
    if not rows:
        if not make:
            return 0
        database.write(
            lambda cursor: cursor.execute("INSERT OR IGNORE INTO tenants (name) VALUES (?)", (tenant,))
        )
        rows = database.read(sql, (tenant,))
    return rows[0][0]
