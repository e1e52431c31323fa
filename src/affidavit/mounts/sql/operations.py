"""The operations of a mounted database: each table as a collection, and `query` for a script's own SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from affidavit.evidence.record import Authority, Confidence, Coverage, Producer
from affidavit.facts.collection import MAX_IDS, Answer
from affidavit.facts.page import Count, Page
from affidavit.mounts.foreign import label
from affidavit.mounts.search.replies import Hits
from affidavit.mounts.sql.catalogue import Catalogue, Table
from affidavit.mounts.sql.engines.engine import Connection, Engine
from affidavit.mounts.sql.query import DEFAULT_ROWS, MAX_ROWS, run_query
from affidavit.mounts.sql.readers import Readers
from affidavit.mounts.sql.replies import QueryColumn, QueryResult, RowFound, RowMissed
from affidavit.mounts.sql.rows import TableTypes, table_types
from affidavit.mounts.sql.search import DEFAULT_HITS, MAX_HITS, TableSearch, text_columns
from affidavit.mounts.sql.similar import SimilarRows, vector_columns
from affidavit.mounts.sql.tables import Origin, TableQueries
from affidavit.namespaces.datasets.queries import PAGING, Argument, Query, operation
from affidavit.namespaces.names import identifiers
from affidavit.namespaces.operation import Handler, Namespace, Operation, Reply
from affidavit.namespaces.typeddicts import StubTypes

__all__ = ["Database"]

VERSION: Final = 1
"""Contract version of the operations."""

_DEFAULT_SCHEMAS: Final = frozenset({"main", "public"})
_PLACEHOLDERS: Final = {
    "sqlite": "`?`, `?1` or `:name`",
    "duckdb": "`?`, `$1` or `$name`",
    "postgresql": "`$1`",
}

_WORDS: Final = Argument(
    name="query", type=str, doc="Words; nothing in it is syntax.", required=True, positional=True
)
_HITS: Final = Argument(
    name="limit",
    type=int,
    doc=f"Hits at most, 1 to {MAX_HITS}.",
    default=DEFAULT_HITS,
    bounds={"minimum": 1, "maximum": MAX_HITS, "default": DEFAULT_HITS},
)

_Ask: TypeAlias = Callable[[Connection, dict[str, Any]], tuple[Answer, Coverage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table that is offered."""

    contract: str
    table: Table
    types: TableTypes
    queries: TableQueries
    search: TableSearch | None
    similar: SimilarRows | None


class Database:
    """The operations of one mount.

    Args:
        catalogue: what was mounted.
        engine: what answers.
        readers: its connections.
        cache: where indexes are kept.
        producer: who makes the observations.
        seconds: how long one statement may take.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        engine: Engine,
        readers: Readers,
        cache: Path,
        *,
        producer: Producer,
        seconds: float,
    ) -> None:
        self._catalogue = catalogue
        self._engine = engine
        self._readers = readers
        self._cache = cache
        self._producer = producer
        self._seconds = seconds
        self._origin = Origin(catalogue, live=engine.live)
        self._searches: list[TableSearch] = []
        self._authority: Authority = "live-source" if engine.live else "artifact-bytes"

    def namespace(self, name: str) -> Namespace:
        """The operations under the mount's name."""
        names = identifiers(
            map(_said, self._catalogue.tables), reserved=frozenset({"query"}), fallback="table"
        )
        children = {
            names[_said(table)]: self._table(table, names[_said(table)]) for table in self._catalogue.tables
        }
        what = f"{self._catalogue.database} " if self._catalogue.database else ""
        doc = f"The {self._catalogue.format} database {what}: {len(children)} tables and views."
        return Namespace(
            name=name, doc=" ".join(doc.split()), operations={"query": self._query()}, children=children
        )

    def close(self) -> None:
        """Let go of the indexes."""
        for search in self._searches:
            search.close()

    def _contract(self, *parts: str) -> str:
        database = (self._catalogue.database,) if self._catalogue.database else ()
        return ".".join(["sql", *(label(part) for part in (*database, *parts))])

    def _table(self, table: Table, name: str) -> Namespace:
        contract = self._contract(*table.path)
        queries = TableQueries(table, contract, self._engine, self._origin, seconds=self._seconds)
        search = None
        if not self._engine.live and table.order and text_columns(table):
            search = TableSearch(queries, self._origin, self._cache, self._engine.check)
            self._searches.append(search)
        similar = None
        if vector_columns(table):
            similar = SimilarRows(queries, self._engine, self._origin, search, seconds=self._seconds)
        offered = _Table(
            contract=contract,
            table=table,
            types=table_types(table, name),
            queries=queries,
            search=search,
            similar=similar,
        )
        stub = StubTypes(structs=frozenset({Hits}))
        operations: dict[str, Operation] = {}
        for query, ask, confidence in _queries(offered):
            operations[query.name] = operation(
                query,
                self._handler(ask),
                stub,
                producer=self._producer,
                authority=self._authority,
                confidence=confidence,
            )
        return Namespace(name=name, doc=_about(table), operations=operations)

    def _query(self) -> Operation:
        query = Query(
            name="query",
            contract=f"{self._contract('query')}/{VERSION}",
            doc=f"Rows of one SELECT in the SQL of {self._catalogue.engine}, read-only. Parameters are "
            f"{_PLACEHOLDERS[self._catalogue.engine]}.",
            arguments=(
                Argument(
                    name="sql", type=str, doc="One statement that reads.", required=True, positional=True
                ),
                Argument(
                    name="params",
                    type=list[Any] | dict[str, Any] | None,
                    doc="Values of the parameters: a list, or a mapping for named ones.",
                    positional=True,
                ),
                Argument(
                    name="limit",
                    type=int,
                    doc=f"Rows at most, 1 to {MAX_ROWS}. A result also ends at 8 MB and then says `shortened`.",
                    default=DEFAULT_ROWS,
                    bounds={"minimum": 1, "maximum": MAX_ROWS, "default": DEFAULT_ROWS},
                ),
            ),
            returns=QueryResult,
            carries_evidence=True,
        )

        def ask(connection: Connection, given: dict[str, Any]) -> tuple[Answer, Coverage]:
            return run_query(connection, self._origin, **given, seconds=self._seconds)

        return operation(
            query,
            self._handler(ask),
            StubTypes(structs=frozenset({QueryResult, QueryColumn})),
            producer=self._producer,
            authority=self._authority,
            confidence="derived",
        )

    def _handler(self, ask: _Ask) -> Handler:
        async def handler(arguments: dict[str, Any], /) -> Reply:
            answer, coverage = await self._readers.use(lambda connection: ask(connection, arguments))
            return Reply(
                value=answer.value,
                outside=answer.outside,
                normalised=answer.parameters,
                subject=self._origin.subject,
                coverage=coverage,
            )

        return handler


def _said(table: Table) -> str:
    """What scripts call a table: its name, with its schema where that is not the usual one."""
    return table.path[-1] if set(table.path[:-1]) <= _DEFAULT_SCHEMAS else table.name


def _about(table: Table) -> str:
    order = f"Rows come by {', '.join(table.order)}." if table.order else "Rows come in no stated order."
    size = f", {table.rows} rows" if table.rows is not None else ""
    return f"{table.doc or f'The {table.kind} {table.name}'}{size}. {order}"


def _queries(offered: _Table) -> list[tuple[Query, _Ask, Confidence]]:
    queries, search = offered.queries, offered.search
    found: list[tuple[Query, _Ask, Confidence]] = [
        (_page(offered), lambda connection, given: queries.page(connection, **given), "observed"),
        (_count(offered), lambda connection, given: queries.count(connection, **given), "observed"),
    ]
    if offered.types.where is not None:
        exact = _find_exact(offered)
        found.append((exact, lambda connection, given: queries.page(connection, **given), "observed"))
    if offered.types.key is not None:
        found.append((_get(offered), lambda connection, given: queries.get(connection, **given), "observed"))
        many = _get_many(offered)
        found.append((many, lambda connection, given: queries.get_many(connection, **given), "observed"))
    if search is not None:
        found.append(
            (_search(offered), lambda connection, given: search.search(connection, **given), "derived")
        )
    return found + _by_vectors(offered)


def _by_vectors(offered: _Table) -> list[tuple[Query, _Ask, Confidence]]:
    similar = offered.similar
    if similar is None:
        return []
    nearest, both = _find_similar(offered, similar), _hybrid(offered, similar)
    found: list[tuple[Query, _Ask, Confidence]] = [
        (nearest, lambda connection, given: similar.find_similar(connection, **given), "derived")
    ]
    if offered.search is not None:
        found.append((both, lambda connection, given: similar.hybrid(connection, **given), "derived"))
    return found


def _where(offered: _Table, *, required: bool = False) -> tuple[Argument, ...]:
    if offered.types.where is None:
        return ()
    return (
        Argument(
            name="where",
            type=offered.types.where if required else offered.types.where | None,
            doc="Equality by column; a list means any of; None means NULL."
            + ("" if required else " Omitted selects every row."),
            required=required,
            positional=True,
        ),
    )


def _page(offered: _Table) -> Query:
    row: Any = offered.types.row
    return Query(
        name="page",
        contract=f"{offered.contract}.page/{VERSION}",
        doc=f"One page of the rows of {offered.table.name}. {_about(offered.table)}",
        arguments=(*_where(offered), *PAGING),
        returns=Page[row],
        carries_evidence=True,
        streams="pages",
    )


def _find_exact(offered: _Table) -> Query:
    row: Any = offered.types.row
    return Query(
        name="find_exact",
        contract=f"{offered.contract}.find_exact/{VERSION}",
        doc=f"One page of the rows of {offered.table.name} that have exactly these values.",
        arguments=(*_where(offered, required=True), *PAGING),
        returns=Page[row],
        carries_evidence=True,
    )


def _count(offered: _Table) -> Query:
    arguments = _where(offered)
    if offered.types.by is not None:
        arguments += (Argument(name="by", type=offered.types.by | None, doc="The column to group by."),)
    return Query(
        name="count",
        contract=f"{offered.contract}.count/{VERSION}",
        doc=f"How many rows of {offered.table.name} match, also by value of one column.",
        arguments=arguments,
        returns=Count,
        carries_evidence=True,
    )


def _get(offered: _Table) -> Query:
    return Query(
        name="get",
        contract=f"{offered.contract}.get/{VERSION}",
        doc=f"The row of {offered.table.name} with this key ({_key(offered)}). Raises `item-not-found`.",
        arguments=(
            Argument(
                name="id", type=offered.types.key, doc=f"{_key(offered)}.", required=True, positional=True
            ),
        ),
        returns=offered.types.row,
    )


def _get_many(offered: _Table) -> Query:
    row: Any = offered.types.row
    key: Any = offered.types.key
    return Query(
        name="get_many",
        contract=f"{offered.contract}.get_many/{VERSION}",
        doc=f"Many rows of {offered.table.name}: in the order asked, with repeats, each `found` or `failed`.",
        arguments=(
            Argument(
                name="ids",
                type=list[key],
                doc=f"Up to {MAX_IDS} values of {_key(offered)}.",
                required=True,
                positional=True,
                bounds={"maxItems": MAX_IDS},
            ),
        ),
        returns=list[RowFound[row] | RowMissed],
    )


def _search(offered: _Table) -> Query:
    row: Any = offered.types.row
    columns = ", ".join(text_columns(offered.table))
    return Query(
        name="search",
        contract=f"{offered.contract}.search/{VERSION}",
        doc=f"The rows of {offered.table.name} whose text ({columns}) fits best, by BM25.",
        arguments=(
            _WORDS,
            _HITS,
        ),
        returns=Hits[row],
        carries_evidence=True,
    )


def _find_similar(offered: _Table, similar: SimilarRows) -> Query:
    row: Any = offered.types.row
    return Query(
        name="find_similar",
        contract=f"{offered.contract}.find_similar/{VERSION}",
        doc=f"The rows of {offered.table.name} whose vector is nearest to one, by cosine similarity.",
        arguments=(*_vector(similar), _HITS),
        returns=Hits[row],
        carries_evidence=True,
    )


def _hybrid(offered: _Table, similar: SimilarRows) -> Query:
    row: Any = offered.types.row
    return Query(
        name="hybrid",
        contract=f"{offered.contract}.hybrid/{VERSION}",
        doc=f"The rows of {offered.table.name} best by words and by vectors, by reciprocal rank fusion.",
        arguments=(_WORDS, *_vector(similar), _HITS),
        returns=Hits[row],
        carries_evidence=True,
    )


def _vector(similar: SimilarRows) -> tuple[Argument, ...]:
    literal: Any = Literal
    lengths = ", ".join(f"{column.name}: {column.length}" for column in similar.columns.values())
    column: Any = literal[tuple(similar.columns)] | None
    return (
        Argument(
            name="vector",
            type=list[float],
            doc=f"As many numbers as the column's vectors have ({lengths}).",
            required=True,
            positional=True,
        ),
        Argument(name="column", type=column, doc="The column of vectors; the first one by default."),
    )


def _key(offered: _Table) -> str:
    return ", ".join(offered.table.key)
