"""The tables of a workspace database, and its version."""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "FEW", "SCHEMA", "VERSION"]

APPLICATION_ID: Final = 0x41464456  # "AFDV"
VERSION: Final = 1

FEW: Final = "kind NOT IN ('call-started', 'call-recorded')"
"""Of what `events_by_kind` holds: everything but the calls, of which a run makes any number. SQLite uses the index only
where this very term stands in the query."""

TRIGGERS: Final = {
    name: f"CREATE TRIGGER {name} BEFORE {what} BEGIN SELECT RAISE (ABORT, '{refusal}'); END"
    for name, what, refusal in (
        ("events_are_not_changed", "UPDATE ON events", "events are append-only"),
        ("events_are_not_deleted", "DELETE ON events", "events are append-only"),
        ("records_are_not_deleted", "DELETE ON records", "records are never deleted"),
    )
}
"""What keeps rows from being changed and deleted, by name."""

# Text ids are kept once, in `records`; events refer to a record by its number, which keeps their rows and indexes
# small. `seq` is a plain rowid: nothing is ever deleted, so it only grows, and AUTOINCREMENT would cost a page more.
SCHEMA: Final = (
    """
    CREATE TABLE tenants (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TABLE records (
        number INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (number),
        id TEXT NOT NULL,
        operation TEXT NOT NULL,
        body BLOB NOT NULL,   -- canonical bytes of the projection: their hash is the id
        notes BLOB,           -- messages and hints, which are not hashed
        UNIQUE (tenant, id)
    )
    """,
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (number),
        session TEXT NOT NULL,
        run TEXT,
        kind TEXT NOT NULL,
        at REAL NOT NULL,     -- seconds since the epoch
        record INTEGER REFERENCES records (number),
        key TEXT,             -- idempotency key, unique in its session
        data BLOB NOT NULL    -- canonical JSON
    )
    """,
    "CREATE INDEX events_by_session ON events (tenant, session)",
    "CREATE INDEX events_by_run ON events (tenant, run) WHERE run IS NOT NULL",
    "CREATE UNIQUE INDEX events_by_key ON events (tenant, session, key) WHERE key IS NOT NULL",
    f"CREATE INDEX events_by_kind ON events (tenant, session, kind) WHERE {FEW}",
    *TRIGGERS.values(),
)
