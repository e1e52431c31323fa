"""Reading a fact file. One connection serves every thread; what comes out is bytes and numbers, never shared."""

from __future__ import annotations

import heapq
import sqlite3
import threading
import weakref
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import Coverage, JsonValue, Limitation
from affidavit.facts import _seal
from affidavit.facts._layout import APPLICATION_ID, Table, tables_of
from affidavit.facts.columns import Stored, from_column, to_column
from affidavit.facts.selector import Selector, order
from affidavit.facts.spec import CollectionSpec, Scalar

__all__ = ["FactFile"]


class FactFile:
    """An immutable file of typed rows. Safe to use from several threads; close it, or use it as a context manager.

    Attributes:
        path: where the file is.
        digest: `sha256:` digest over the canonical rows of every collection, in order. Equal facts have equal
            digests on every machine, whatever wrote them.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, tables: Mapping[str, Table]) -> None:
        self.path = path
        self._connection = connection
        self._tables = tables
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, connection.close)
        documents = self._documents()
        self.digest: str = orjson.loads(documents["digest"])
        self._meta = documents["meta"]
        described: list[dict[str, Any]] = orjson.loads(documents["collections"])
        self._described = {one["name"]: one for one in described}
        for name, table in tables.items():
            found = self._described.get(name, {})
            if any(found.get(field) != value for field, value in table.as_json().items()):
                raise _seal.damaged(
                    path, f"it does not hold the collection {table.spec.contract} as declared"
                )

    @classmethod
    def open(cls, path: Path, collections: Sequence[CollectionSpec]) -> FactFile:
        """Open a finished file read-only, after one pass over its bytes.

        Args:
            path: the file.
            collections: what it must hold.

        Raises:
            FileNotFoundError: there is no such file.
            VerificationError: `facts-damaged`: cut, changed, of another kind, or written by a newer version.
        """
        _seal.check_seal(path)
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with _guarded(path):
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA query_only = 1").close()
                connection.execute("PRAGMA trusted_schema = 0").close()
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                if application != APPLICATION_ID:
                    raise _seal.damaged(path, "it is another kind of file")
                return cls(path, connection, tables_of(collections))
            except (KeyError, TypeError, ValueError) as error:
                connection.close()
                raise _seal.damaged(path, "its own description cannot be read") from error
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def meta(self) -> dict[str, JsonValue]:
        """What the writer was given at the end. A new copy each time."""
        return values.decode(orjson.loads(self._meta))

    @property
    def summary(self) -> dict[str, JsonValue]:
        """The analyzer's summary, `meta["summary"]`."""
        return self.meta.get("summary", {})

    @property
    def coverage(self) -> Coverage:
        """What of the artifact was examined; `unknown` where the writer did not say."""
        stated = self.meta.get("coverage")
        return Coverage(**stated) if stated else Coverage(state="unknown", selection="", examined=0)

    @property
    def limitations(self) -> tuple[Limitation, ...]:
        """The places that could not be examined, in the analyzer's order."""
        return tuple(Limitation(**one) for one in self.meta.get("limitations", ()))

    def table(self, collection: str) -> Table:
        """The layout of a collection, with its field types."""
        return self._tables[collection]

    def total(self, collection: str) -> int:
        """How many rows a collection has."""
        return self._described[collection]["rows"]

    def largest(self, collection: str) -> int:
        """Bytes of the largest row of a collection."""
        return self._described[collection]["largest_row"]

    def largest_item(self, collection: str) -> int:
        """Bytes of the largest full item of a collection."""
        return self._described[collection]["largest_item"]

    def ordinals(self, collection: str, selector: Selector) -> Sequence[int]:
        """Places of the matching rows, ascending: a range where everything matches, else a compact array."""
        if not selector.terms:
            return range(self.total(collection))
        table = self._tables[collection]
        clause, wanted = _clause(table, selector)
        query = f"SELECT ordinal FROM {table.name}{clause} ORDER BY ordinal"  # noqa: S608 - generated names only
        with self._reading():
            return array("I", [ordinal for (ordinal,) in self._connection.execute(query, wanted)])

    def count(self, collection: str, selector: Selector) -> int:
        """How many rows match."""
        if not selector.terms:
            return self.total(collection)
        table = self._tables[collection]
        clause, wanted = _clause(table, selector)
        with self._reading():
            query = f"SELECT count(*) FROM {table.name}{clause}"  # noqa: S608
            return self._connection.execute(query, wanted).fetchone()[0]

    def groups(
        self, collection: str, selector: Selector, field: str, limit: int
    ) -> tuple[list[tuple[Scalar, int]], int]:
        """Matching rows by value of a field: the `limit` largest groups, and how many groups there are."""
        table = self._tables[collection]
        clause, wanted = _clause(table, selector)
        column = table.columns[field]
        query = f"SELECT {column}, count(*) FROM {table.name}{clause} GROUP BY {column}"  # noqa: S608
        seen = 0

        def decoded() -> Iterator[tuple[Scalar, int]]:
            nonlocal seen
            for stored, number in self._connection.execute(query, wanted):
                seen += 1
                yield from_column(stored), number

        with self._reading():
            best = heapq.nsmallest(limit, decoded(), key=lambda group: (-group[1], order(group[0])))
        return best, seen

    def sizes(self, collection: str, ordinals: Sequence[int]) -> list[int]:
        """Bytes of the rows at these ascending places, without reading the rows."""
        return self._at(collection, "length(row)", ordinals)

    def rows(self, collection: str, ordinals: Sequence[int]) -> list[bytes]:
        """Canonical JSON of the rows at these ascending places."""
        return self._at(collection, "row", ordinals)

    def item_sizes(self, collection: str, keys: Sequence[str]) -> dict[str, int]:
        """Bytes of the full items that there are among these keys, without reading the items."""
        return self._by_key(collection, "length(coalesce(item, row))", keys)

    def items(self, collection: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Canonical JSON of the full items that there are among these keys."""
        return self._by_key(collection, "coalesce(item, row)", keys)

    def decode(self, bodies: Sequence[bytes]) -> list[Any]:
        """The Python values of rows or items, made anew."""
        joined = b"[%b]" % b",".join(bodies)
        try:
            found: list[Any] = orjson.loads(joined)
        except orjson.JSONDecodeError as error:
            raise _seal.damaged(self.path, "a row cannot be read") from error
        # Tags and escaped keys start with a dollar sign; most rows have none and are plain JSON.
        return values.decode(found) if b'"$' in joined else found

    def _by_key(self, collection: str, what: str, keys: Sequence[str]) -> dict[str, Any]:
        table = self._tables[collection].name
        marks = ", ".join("?" * len(keys))
        query = f"SELECT key, {what} FROM {table} WHERE key IN ({marks})"  # noqa: S608 - generated names only
        with self._reading():
            found = self._connection.execute(query, [to_column(key) for key in keys]).fetchall()
        return {str(from_column(key)): one for key, one in found}

    def _at(self, collection: str, what: str, ordinals: Sequence[int]) -> list[Any]:
        if not ordinals:
            return []
        table = self._tables[collection].name
        first, last = ordinals[0], ordinals[-1]
        if last - first == len(ordinals) - 1:
            clause, wanted = "BETWEEN ? AND ?", [first, last]
        else:
            clause, wanted = f"IN ({', '.join('?' * len(ordinals))})", list(ordinals)
        query = f"SELECT {what} FROM {table} WHERE ordinal {clause} ORDER BY ordinal"  # noqa: S608
        with self._reading():
            found = [one for (one,) in self._connection.execute(query, wanted)]
        if len(found) != len(ordinals):
            raise _seal.damaged(self.path, "rows are missing")
        return found

    def _documents(self) -> dict[str, bytes]:
        with self._reading():
            return dict(self._connection.execute("SELECT name, json FROM meta"))

    @contextmanager
    def _reading(self) -> Generator[None]:
        with _guarded(self.path), self._lock:
            yield


@contextmanager
def _guarded(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.ProgrammingError:  # a closed file: our own fault, not the file's
        raise
    except sqlite3.DatabaseError as error:
        raise _seal.damaged(path, str(error)) from error


def _clause(table: Table, selector: Selector) -> tuple[str, list[Stored]]:
    """The WHERE clause of a selector (empty where it selects everything) and its parameters."""
    parts: list[str] = []
    wanted: list[Stored] = []
    for field, alternatives in selector.terms:
        column = table.columns[field]
        known = [to_column(value) for value in alternatives if value is not None]
        tests: list[str] = []
        if len(known) == 1:
            tests.append(f"{column} = ?")
        elif known or not alternatives:
            tests.append(f"{column} IN ({', '.join('?' * len(known))})")
        if len(known) < len(alternatives):
            tests.append(f"{column} IS NULL")
        wanted += known
        parts.append(f"({' OR '.join(tests)})")
    return (" WHERE " + " AND ".join(parts) if parts else ""), wanted
