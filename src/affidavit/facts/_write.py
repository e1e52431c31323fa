"""Writing a fact file: rows are streamed, indexes are built at the end, the seal comes last."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from affidavit.errors import FailedError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, freeze
from affidavit.evidence.record import JsonValue
from affidavit.facts import _seal
from affidavit.facts._layout import APPLICATION_ID, META, Table, tables_of
from affidavit.facts._read import FactFile
from affidavit.facts.columns import Stored, to_column
from affidavit.facts.spec import CollectionSpec, Scalar

__all__ = ["FactFileWriter"]

_BATCH_ROWS = 1000
_BATCH_BYTES = 1 << 20
_MAX_DEPTH = 90
"""Levels of containers in a row: a page and its record add some, and must stay within the bound of values."""


class _Sink:
    """The rows of one collection on their way to the file."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.count = 0
        self.largest_row = 0
        self.largest_item = 0
        self.hasher = hashlib.sha256()
        self.rows: list[tuple[Stored, ...]] = []
        self.bytes = 0
        self.fields = tuple(
            (name, None if kind.choices is None else frozenset(kind.choices), kind.types)
            for name, kind in table.fields.items()
        )

    def add(self, row: dict[str, Any], item: dict[str, Any] | None) -> None:
        spec = self.table.spec
        key = row.get(spec.key)
        if not isinstance(key, str):
            raise self._wrong(spec.key, f"is of type {type(key).__name__}; a key is text")
        columns = [
            to_column(self._field(name, row.get(name), types, choices))
            for name, choices, types in self.fields
            if name != spec.key
        ]
        body = freeze(row, max_depth=_MAX_DEPTH).data
        full = None if item is None or item is row else freeze(item, max_depth=_MAX_DEPTH).data
        if full == body:
            full = None
        self.hasher.update(b"%b\n%b\n" % (body, full or b""))
        self.rows.append((self.count, to_column(key), *columns, body, full))
        self.count += 1
        self.largest_row = max(self.largest_row, len(body))
        self.largest_item = max(self.largest_item, len(full or body))
        self.bytes += len(body) + len(full or b"")

    def describe(self) -> dict[str, JsonValue]:
        digest = "sha256:" + self.hasher.hexdigest()
        return self.table.as_json() | {
            "rows": self.count,
            "digest": digest,
            "largest_row": self.largest_row,
            "largest_item": self.largest_item,
        }

    def _field(
        self, name: str, value: Any, types: tuple[type, ...], choices: frozenset[str | int | bool] | None
    ) -> Scalar:
        if value is None:
            return None
        if type(value) not in types:
            raise self._wrong(name, f"is of type {type(value).__name__}, which the row type does not declare")
        if choices is not None and value not in choices:
            raise self._wrong(name, f"is {ascii(value)[:80]}, which the row type does not declare")
        return value

    def _wrong(self, field: str, what: str) -> FailedError:
        place = f"{self.table.spec.contract} row {self.count} field {field!r}"
        return FailedError(
            "analysis-failed", f"{place} {what}", hint="a fault of the analyzer", details={"field": field}
        )


class FactFileWriter:
    """Writes one fact file. Memory stays bounded however many rows come. For one thread at a time.

    Args:
        path: where to write, a temporary place; an empty file there is fine, any other is refused.
        collections: what the file will hold.
        page_size: bytes of a page of the file; a smaller one suits a file of few rows.
    """

    def __init__(
        self, path: Path, collections: Sequence[CollectionSpec], *, page_size: int | None = None
    ) -> None:
        self._path = path
        self._tables = tables_of(collections)
        self._sinks = {name: _Sink(table) for name, table in self._tables.items()}
        # The file is nobody else's until it is sealed, so neither locks nor a journal protect it: a crash leaves a
        # file without a seal, which is never opened.
        uri = f"{path.absolute().as_uri()}?nolock=1"
        with self._writing():
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            for pragma in (
                # Rows and items of a kilobyte or two fill such pages better, and fewer spill into pages of their own.
                f"page_size = {page_size or 16384}",
                "journal_mode = OFF",
                "synchronous = OFF",
                "cache_size = -16000",
                "temp_store = FILE",
            ):
                self._connection.execute(f"PRAGMA {pragma}").close()
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {_seal.VERSION}")
            self._connection.execute("BEGIN EXCLUSIVE")
            self._connection.execute(META)
            for table in self._tables.values():
                self._connection.execute(table.create)

    def add(self, collection: str, row: dict[str, Any], item: dict[str, Any] | None = None) -> None:
        """Append one row to a collection; it is taken as it is now.

        Args:
            collection: name of a declared collection.
            row: the projection that pages show.
            item: the full item, where it says more than the row.

        Raises:
            FailedError: `analysis-failed` for an undeclared collection, a key that is not text or a `where` field
                whose value the row type does not declare; `store-full` when the disk is.
            UsageError: `value-unsupported` for a value that records cannot hold.
        """
        sink = self._sinks.get(collection)
        if sink is None:
            raise FailedError("analysis-failed", f"the analyzer declares no collection {collection!r}")
        sink.add(row, item)
        if len(sink.rows) >= _BATCH_ROWS or sink.bytes >= _BATCH_BYTES:
            self._flush(sink)

    def finish(self, meta: Mapping[str, JsonValue]) -> FactFile:
        """Build the indexes, seal the file and open it. See `seal`."""
        self.seal(meta)
        return FactFile.open(self._path, [table.spec for table in self._tables.values()])

    def seal(self, meta: Mapping[str, JsonValue]) -> None:
        """Build the indexes and seal the file: on disk, read-only, complete.

        Args:
            meta: what the analyzer says of the whole (see `FactFile.meta`).

        Raises:
            FailedError: `analysis-failed` when two rows of a collection have one key; `store-full`.
        """
        for sink in self._sinks.values():
            self._flush(sink)
            self._index(sink.table)
        described = [sink.describe() for sink in self._sinks.values()]
        digest = "sha256:" + hashlib.sha256(canonical(described)).hexdigest()
        documents = {"meta": values.encode(dict(meta)), "collections": described, "digest": digest}
        with self._writing():
            self._connection.executemany(
                "INSERT INTO meta VALUES (?, ?)",
                [(name, canonical(document)) for name, document in documents.items()],
            )
            # Statistics let SQLite start from the most selective of several asked fields.
            self._connection.execute("PRAGMA analysis_limit = 1000").close()
            self._connection.execute("ANALYZE")
            self._connection.execute("COMMIT")
        self._connection.close()
        with self._writing(), self._path.open("r+b") as file:
            _seal.seal(file)
        self._path.chmod(0o400)

    def abort(self) -> None:
        """Let go of the unfinished file, which stays where it is."""
        self._connection.close()

    def _flush(self, sink: _Sink) -> None:
        with self._writing():
            self._connection.executemany(sink.table.insert, sink.rows)
        sink.rows.clear()
        sink.bytes = 0

    def _index(self, table: Table) -> None:
        unique, *others = table.indexes
        with self._writing():
            try:
                self._connection.execute(unique)
            except sqlite3.IntegrityError:
                raise self._repeated(table) from None
            for statement in others:
                self._connection.execute(statement)

    def _repeated(self, table: Table) -> FailedError:
        query = f"SELECT key FROM {table.name} GROUP BY key HAVING count(*) > 1 ORDER BY min(ordinal) LIMIT 1"  # noqa: S608
        (key,) = self._connection.execute(query).fetchone()
        return FailedError(
            "analysis-failed",
            f"{table.spec.contract}: two rows have the {table.spec.key} {ascii(key)[:200]}",
            hint="a fault of the analyzer",
            details={"field": table.spec.key},
        )

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise FailedError(
                "store-full",
                f"the fact file {self._path} cannot be written: {error}",
                hint="free some disk space, or check that the folder can be written, and analyze again",
                retryable=True,
            ) from error
