"""The adapter `sql`: `db=sqlite:///x.db`, `db=./x.sqlite`, `duck=./x.parquet`, `pg=postgresql://user@host/name`."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from affidavit.evidence.record import JsonValue, Producer
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.mounts.sql.catalogue import Catalogue, read_catalogue
from affidavit.mounts.sql.claims import is_ours
from affidavit.mounts.sql.engines.engine import Engine
from affidavit.mounts.sql.operations import Database
from affidavit.mounts.sql.readers import Readers
from affidavit.mounts.sql.sources import FileTarget, SqlOptions, read_target
from affidavit.namespaces.operation import Namespace

__all__ = ["SqlAdapter"]

_FILE: Final = "SHA-256 of the file"
_LIVE: Final = "a live server: each reply stands for the moment of its call"


class SqlAdapter:
    """Databases and table files, read-only."""

    name = "sql"
    version = "1"
    place: Literal["db", "tool"] = "db"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has one of the schemes, or is a file of one of the formats."""
        return is_ours(uri, head)

    async def describe(self, source: Source) -> Description:
        """Read the catalogue, with the types of all columns."""
        engine, _ = _engine(source, "")
        catalogue = await asyncio.to_thread(engine.describe)
        tables = len(catalogue.tables)
        return Description(
            contents=catalogue.as_json(),
            summary=f"{catalogue.format} {catalogue.version}".strip() + f": {tables} tables and views",
            snapshot=_snapshot(catalogue.identity),
            limitations=catalogue.limitations,
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the mount; nothing is opened before the first call."""
        catalogue = read_catalogue(contents)
        engine, options = _engine(source, catalogue.identity)
        version = f"{self.version} {catalogue.engine} {catalogue.version}".strip()
        return _SqlMount(source, engine, catalogue, options, Producer(name=self.name, version=version))


class _SqlMount:
    def __init__(
        self, source: Source, engine: Engine, catalogue: Catalogue, options: SqlOptions, producer: Producer
    ) -> None:
        self._engine = engine
        self._readers = Readers(engine)
        self._database = Database(
            catalogue, engine, self._readers, source.cache, producer=producer, seconds=options.timeout
        )
        self._namespace = self._database.namespace(source.name)

    @property
    def namespace(self) -> Namespace:
        """The tables, and `query`."""
        return self._namespace

    async def snapshot(self) -> Snapshot:
        """The digest of the file as it is now."""
        return _snapshot(await asyncio.to_thread(self._engine.identity))

    async def close(self) -> None:
        """End what runs and let go of every connection."""
        await self._readers.close()
        self._database.close()
        await asyncio.to_thread(self._engine.close)


def _snapshot(identity: str) -> Snapshot:
    return Snapshot(identity=identity, basis=_FILE if identity else _LIVE)


def _engine(source: Source, identity: str) -> tuple[Engine, SqlOptions]:
    target, options = read_target(source)
    if isinstance(target, FileTarget) and target.engine == "sqlite":
        from affidavit.mounts.sql.engines.sqlite import SqliteEngine

        return SqliteEngine(target.path, source.cache, expected=identity), options
    if isinstance(target, FileTarget):
        from affidavit.mounts.sql.engines.duckdb import DuckEngine

        return DuckEngine(target, source.cache, expected=identity), options
    from affidavit.mounts.sql.engines.postgres import PostgresEngine

    return PostgresEngine(target.uri, source, options), options
