"""Search by vectors that a table of a DuckDB database holds in columns of arrays (`FLOAT[384]`)."""

# ruff: noqa: S608

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import Coverage
from affidavit.facts.arguments import whole
from affidavit.facts.collection import MAX_PAGE_BYTES, Answer
from affidavit.mounts.search.fusion import fused
from affidavit.mounts.sql.catalogue import Table
from affidavit.mounts.sql.engines.engine import Bounds, Connection, Engine
from affidavit.mounts.sql.search import MAX_HITS, TableSearch
from affidavit.mounts.sql.tables import Origin, TableQueries

__all__ = ["SimilarRows", "VectorColumn", "vector_columns"]

_DECLARED: Final = re.compile(r"(FLOAT|DOUBLE)\[([1-9][0-9]{0,4})\]\Z")
_DIGITS: Final = 6
_FUSED: Final = 100
"""How far down each ranking is looked for `hybrid`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorColumn:
    """A column of vectors of one length."""

    name: str
    element: str
    length: int


def vector_columns(table: Table) -> list[VectorColumn]:
    """The columns of a table that hold vectors, where its rows have numbers."""
    found: list[VectorColumn] = []
    for column in table.columns:
        declared = _DECLARED.match(column.declared)
        if declared and table.order:
            found.append(VectorColumn(name=column.name, element=declared[1], length=int(declared[2])))
    return found


class SimilarRows:
    """Search by vectors over one table.

    Args:
        queries: reads the rows.
        engine: writes names.
        origin: what the rows rest on.
        search: search by words over the same table, for `hybrid`, or None.
        seconds: how long one statement may take.
    """

    def __init__(
        self,
        queries: TableQueries,
        engine: Engine,
        origin: Origin,
        search: TableSearch | None,
        *,
        seconds: float,
    ) -> None:
        self._queries = queries
        self._dialect = engine.dialect
        self._origin = origin
        self._search = search
        self._seconds = seconds
        self.columns = {column.name: column for column in vector_columns(queries.table)}

    def find_similar(
        self, connection: Connection, vector: Any, column: Any, limit: Any
    ) -> tuple[Answer, Coverage]:
        """The rows whose vector points most nearly where `vector` does, by cosine similarity."""
        limit = whole("limit", limit, 1, MAX_HITS)
        asked, values = self._asked(vector, column)
        found, compared = self._nearest(connection, asked, values, limit)
        parameters = {"vector": values, "column": asked.name, "limit": limit}
        return self._answer(connection, found, compared, [], parameters)

    def hybrid(
        self, connection: Connection, query: Any, vector: Any, column: Any, limit: Any
    ) -> tuple[Answer, Coverage]:
        """The rows that are best by words and by vectors together, by reciprocal rank fusion."""
        assert self._search is not None
        limit = whole("limit", limit, 1, MAX_HITS)
        asked, values = self._asked(vector, column)
        by_words, matched, terms = self._search.ranked(connection, query, _FUSED)
        by_vector, compared = self._nearest(connection, asked, values, _FUSED)
        rankings = [[tuple(key) for key, _ in by_words], [tuple(key) for key, _ in by_vector]]
        parameters = {"query": query, "vector": values, "column": asked.name, "limit": limit}
        best = [(list(key), score) for key, score in fused(rankings, limit)]
        return self._answer(connection, best, max(matched, compared), terms, parameters)

    def _nearest(
        self, connection: Connection, column: VectorColumn, vector: list[float], limit: int
    ) -> tuple[list[tuple[list[Any], float]], int]:
        table = self._dialect.table(self._queries.table)
        name = self._dialect.key(column.name)
        order = ", ".join(self._dialect.key(one) for one in self._queries.table.order)
        given, parameter = self._dialect.bound(vector, 1)
        score = f"array_cosine_similarity({name}, CAST({given} AS {column.element}[{column.length}]))"
        bounds = Bounds(seconds=self._seconds, rows=limit, size=MAX_PAGE_BYTES)
        found = connection.select(
            f"SELECT {order}, {score} AS score, count(*) OVER () FROM {table} WHERE {name} IS NOT NULL "
            f"ORDER BY score DESC NULLS LAST, {order} LIMIT {limit}",
            [parameter],
            bounds,
        )
        rows = [row for row in found.rows if row[-2] is not None and not math.isnan(row[-2])]
        compared = int(found.rows[0][-1]) if found.rows else 0
        return [(list(row[:-2]), round(row[-2], _DIGITS)) for row in rows], compared

    def _asked(self, vector: object, column: object) -> tuple[VectorColumn, list[float]]:
        name = next(iter(self.columns)) if column is None else column
        if not isinstance(name, str) or name not in self.columns:
            hint = f"there are {', '.join(self.columns)}"
            raise UsageError(
                "arguments-invalid", f"there is no column of vectors {ascii(name)[:80]}", hint=hint
            )
        asked = self.columns[name]
        given = cast("Sequence[object]", vector) if isinstance(vector, (list, tuple)) else ()
        values = [float(one) for one in given if isinstance(one, (int, float)) and math.isfinite(one)]
        if len(values) != asked.length or len(given) != asked.length:
            raise UsageError(
                "arguments-invalid",
                f"`vector` is no list of {asked.length} finite numbers",
                hint=f"{asked.name} holds vectors of this length",
                details={"path": "$.vector"},
            )
        return asked, values

    def _answer(
        self,
        connection: Connection,
        found: list[tuple[list[Any], float]],
        matched: int,
        terms: list[str],
        parameters: dict[str, Any],
    ) -> tuple[Answer, Coverage]:
        table = self._queries.table
        coverage = self._origin.coverage(
            f"vectors of {', '.join(self.columns)} in {table.name}", table.rows or 0
        )
        value: dict[str, Any] = {
            "hits": [
                {"rank": rank, "score": score, "row": self._queries.row_at(connection, key)}
                for rank, (key, score) in enumerate(found, start=1)
            ],
            "matched": matched,
            "terms": terms,
            "source": dict(self._origin.source),
            "source_coverage": coverage.as_json(),
        }
        return Answer(value=value, parameters=parameters, outside={"limitations": []}), coverage
