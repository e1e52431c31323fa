"""Full-text search over a table of a file: an index of its text columns, derived once and kept by content."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, Final

from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, freeze, parse
from affidavit.evidence.record import Coverage
from affidavit.facts.arguments import text, whole
from affidavit.facts.collection import Answer
from affidavit.mounts.search.index import INDEX_VERSION, TextIndex, add_texts, build_index, create_tables
from affidavit.mounts.search.terms import read_question
from affidavit.mounts.sql.catalogue import Table
from affidavit.mounts.sql.engines.engine import Connection
from affidavit.mounts.sql.tables import Origin, TableQueries

__all__ = ["DEFAULT_HITS", "MAX_HITS", "TableSearch", "text_columns"]

DEFAULT_HITS: Final = 10
MAX_HITS: Final = 100
_ROWS_AT_ONCE: Final = 2_000


def text_columns(table: Table) -> list[str]:
    """The columns that are searched: those that hold text."""
    return [column.name for column in table.columns if "str" in column.kinds and not column.as_text]


class TableSearch:
    """Search over one table. The index is built by the first search, beside nothing else that waits for it.

    Args:
        queries: reads the rows.
        origin: what they rest on.
        cache: where indexes are kept.
        check: sees that the source is still what was mounted.
    """

    def __init__(self, queries: TableQueries, origin: Origin, cache: Path, check: Callable[[], None]) -> None:
        self._queries = queries
        self._origin = origin
        self._check = check
        self._columns = text_columns(queries.table)
        name = {
            "index": INDEX_VERSION,
            "source": origin.identity,
            "table": list(queries.table.path),
            "columns": self._columns,
        }
        self._path = cache / "sql" / f"{hashlib.sha256(canonical(name)).hexdigest()}.index"
        self._index: TextIndex | None = None
        self._lock = Lock()

    def search(self, connection: Connection, query: Any, limit: Any) -> tuple[Answer, Coverage]:
        """The best rows for a question.

        Raises:
            UsageError: `arguments-invalid`, `limit-invalid`.
        """
        limit = whole("limit", limit, 1, MAX_HITS)
        found, matched, terms = self.ranked(connection, query, limit)
        hits = [
            {"rank": rank, "score": score, "row": self._queries.row_at(connection, key)}
            for rank, (key, score) in enumerate(found, start=1)
        ]
        table = self._queries.table
        coverage = self._origin.coverage(
            f"text of {', '.join(self._columns)} in {table.name}", table.rows or 0
        )
        value: dict[str, Any] = {
            "hits": hits,
            "matched": matched,
            "terms": terms,
            "source": dict(self._origin.source),
            "source_coverage": coverage.as_json(),
        }
        answer = Answer(value=value, parameters={"query": query, "limit": limit}, outside={"limitations": []})
        return answer, coverage

    def ranked(
        self, connection: Connection, query: Any, limit: int
    ) -> tuple[list[tuple[list[Any], float]], int, list[str]]:
        """Keys and scores of the best rows, how many rows share a word, and the words."""
        question = read_question(text("query", query))
        with self._lock:  # one question at a time per table: they are short, and the first one builds
            index = self._opened(connection)
            found = index.search(question, limit)
            keys = [(self._key(index, number), score) for number, score in found.hits]
        return keys, found.matched, list(question.terms)

    def close(self) -> None:
        """Let go of the index."""
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None

    def _opened(self, connection: Connection) -> TextIndex:
        if self._index is None:
            if not self._path.exists():
                build_index(self._path, lambda database: self._fill(database, connection))
            self._index = TextIndex(self._path)
        return self._index

    def _fill(self, database: sqlite3.Connection, connection: Connection) -> None:
        create_tables(database)
        database.execute("CREATE TABLE keys (number INTEGER PRIMARY KEY, key BLOB NOT NULL)")
        number = 0
        for rows in self._rows(connection):
            database.executemany("INSERT INTO keys(key) VALUES (?)", ((freeze(key).data,) for _, key in rows))
            add_texts(
                database,
                (
                    (number + at, "\n".join(one for one in found if isinstance(one, str)))
                    for at, (found, _) in enumerate(rows, start=1)
                ),
            )
            number += len(rows)
        self._check()  # an index is kept under the name of the bytes that it was made of

    def _rows(self, connection: Connection) -> Iterator[list[tuple[list[Any], list[Any]]]]:
        key: list[Any] = []
        while rows := self._queries.texts_after(connection, self._columns, key, _ROWS_AT_ONCE):
            yield rows
            key = rows[-1][1]

    def _key(self, index: TextIndex, number: int) -> list[Any]:
        (key,) = index.connection.execute("SELECT key FROM keys WHERE number = ?", (number,)).fetchone()
        return values.decode(parse(key))
