"""Queries over one table: `page`, `find_exact`, `get`, `get_many`, `count`.

Like those over facts (`facts.collection`) each gives the value that is hashed, the question in normal form and what is
shown beside it. They block, and run over one connection in a thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final, cast

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.canonical import freeze
from affidavit.evidence.record import Coverage, JsonValue, Subject
from affidavit.facts.arguments import not_both, whole
from affidavit.facts.collection import (
    DEFAULT_LIMIT,
    MAX_BATCH_BYTES,
    MAX_GROUPS,
    MAX_IDS,
    MAX_LIMIT,
    MAX_PAGE_BYTES,
    Answer,
)
from affidavit.mounts.sql import statements
from affidavit.mounts.sql.catalogue import Catalogue, Table
from affidavit.mounts.sql.cursor import Place, bound_of, issue, read
from affidavit.mounts.sql.engines.engine import Bounds, Connection, Engine, Found
from affidavit.mounts.sql.selector import Where, column_asked, read_key, read_where
from affidavit.mounts.sql.statements import Statement

__all__ = ["Origin", "TableQueries"]

_KNOWN_COUNTS: Final = 256


class Origin:
    """What all rows of a mount rest on.

    Args:
        catalogue: what was mounted.
        live: whether each call stands for its own moment.
    """

    def __init__(self, catalogue: Catalogue, *, live: bool) -> None:
        self.live = live
        self.identity = catalogue.identity
        self.subject = None if live else Subject(digest=catalogue.identity, format=catalogue.format)
        # There is no record of an analysis: each reply is itself the observation.
        self.source = {"evidence_id": "", "artifact": catalogue.identity, "format": catalogue.format}

    def coverage(self, what: str, examined: int, *, complete: bool = True) -> Coverage:
        """What of the source was examined for a reply."""
        moment = ", as the server showed it at the moment of the call" if self.live else ""
        return Coverage(
            state="complete" if complete else "partial", selection=f"{what}{moment}", examined=examined
        )


class TableQueries:
    """Queries over one table of one mount. Safe to use from several threads.

    Args:
        table: the table.
        contract: first part of its operations' names, for cursors.
        engine: what writes statements.
        origin: what its rows rest on.
        seconds: how long one statement may take.
    """

    def __init__(
        self, table: Table, contract: str, engine: Engine, origin: Origin, *, seconds: float
    ) -> None:
        self.table = table
        self._contract = contract
        self._dialect = engine.dialect
        self._origin = origin
        self._seconds = seconds
        self._names = [column.name for column in table.columns]
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()

    def page(
        self,
        connection: Connection,
        where: Any = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> tuple[Answer, Coverage]:
        """One page of the matching rows. Raises `UsageError` for arguments, `FailedError` for what fails."""
        limit = whole("limit", limit, 1, MAX_LIMIT)
        asked = read_where(where, self.table)
        bound = self._bound(asked)
        place = self._place(cursor, offset, bound)
        made = statements.page(self._dialect, self.table, asked, place, limit + 1)
        found = self._select(connection, made, limit, MAX_PAGE_BYTES)
        total = self._total(connection, asked, place)
        if self._origin.live:
            # Rows may come and go between the page and the count of a live source.
            total = max(total, place.offset + len(found.rows) + (not found.exhausted))
        coverage = self._coverage(total if not asked.terms else None)
        value = {
            "rows": [dict(zip(self._names, row, strict=False)) for row in found.rows],
            "source": dict(self._origin.source),
            "source_coverage": coverage.as_json(),
            "page": {
                "offset": place.offset,
                "returned": len(found.rows),
                "total": total,
                "exhausted": found.exhausted,
                "shortened": found.shortened,
            },
        }
        outside: dict[str, JsonValue] = {
            "page.next_cursor": None if found.exhausted else issue(bound, self._next(place, found, total)),
            "limitations": [],
            "limitations_omitted": 0,
        }
        parameters: dict[str, Any] = {"where": asked.as_json(), "offset": place.offset, "limit": limit}
        if self._origin.live and place.key:
            parameters["after"] = list(place.key)
        return Answer(value=value, parameters=parameters, outside=outside), coverage

    def get(self, connection: Connection, id: Any) -> tuple[Answer, Coverage]:  # noqa: A002
        """The row with this key. Raises `NotFoundError(item-not-found)`."""
        key = read_key(id, self.table, "id")
        row = self._row(connection, self.table.key, key)
        if row is None:
            raise NotFoundError(
                "item-not-found",
                f"{self.table.name} has no row with {', '.join(self.table.key)} = {ascii(id)[:200]}",
                hint="keys are those of rows that page() returns",
                details={"table": self.table.name, "source": self._origin.identity},
            )
        return Answer(value=row, parameters={"id": id}), self._coverage(None)

    def get_many(self, connection: Connection, ids: Any) -> tuple[Answer, Coverage]:
        """Many rows, in the order asked, repeated where asked repeatedly; each `found` or `failed`."""
        if not isinstance(ids, (list, tuple)) or len(cast("Sequence[Any]", ids)) > MAX_IDS:
            raise UsageError(
                "arguments-invalid",
                f"`ids` is no list of at most {MAX_IDS} keys",
                hint=f"give a list of keys, {MAX_IDS} at a time",
                details={"path": "$.ids"},
            )
        asked = list(cast("Sequence[Any]", ids))
        keys = [read_key(one, self.table, f"ids[{at}]") for at, one in enumerate(asked)]
        batch: list[dict[str, Any]] = []
        known: dict[bytes, dict[str, Any] | None] = {}
        room = MAX_BATCH_BYTES
        for one, key in zip(asked, keys, strict=True):
            name = freeze(list(key)).data
            if name not in known:
                known[name] = self._row(connection, self.table.key, key)
            row = known[name]
            size = 0 if row is None else len(freeze(row).data)
            batch.append(_entry(one, row, fits=size <= room or room == MAX_BATCH_BYTES))
            room -= size
        return Answer(value=batch, parameters={"ids": asked}), self._coverage(None)

    def count(
        self, connection: Connection, where: Any = None, by: str | None = None
    ) -> tuple[Answer, Coverage]:
        """How many rows match, in all and by value of one column."""
        asked = read_where(where, self.table)
        column = None if by is None else column_asked(by, self.table)
        groups: list[dict[str, Any]] = []
        omitted = 0
        if column is not None:
            made = statements.groups(self._dialect, self.table, asked, column, MAX_GROUPS + 1)
            found = self._select(connection, made, MAX_GROUPS, MAX_BATCH_BYTES)
            groups = [{"value": value, "count": number} for value, number in found.rows]
            if not found.exhausted:
                beyond = statements.groups_beyond(self._dialect, self.table, asked, column)
                ((values, nulls),) = self._select(connection, beyond, 1, MAX_PAGE_BYTES).rows
                omitted = values + bool(nulls) - len(groups)
        number = self._total(connection, asked, Place())
        coverage = self._coverage(number if not asked.terms else None)
        value = {
            "count": number,
            "bound": "exact",
            "by": by,
            "groups": groups,
            "groups_omitted": omitted,
            "source": dict(self._origin.source),
            "source_coverage": coverage.as_json(),
        }
        return Answer(value=value, parameters={"where": asked.as_json(), "by": by}), coverage

    def row_at(self, connection: Connection, key: Sequence[Any]) -> dict[str, Any] | None:
        """The row with these values of the order columns."""
        return self._row(connection, self.table.order, key)

    def texts_after(
        self, connection: Connection, columns: Sequence[str], key: Sequence[Any], limit: int
    ) -> list[tuple[list[Any], list[Any]]]:
        """The next rows in order: the values of these columns, and those of the order columns."""
        asked = [self.table.column(name) for name in columns]
        made = statements.texts(self._dialect, self.table, asked, key, limit)
        found = self._select(connection, made, limit, MAX_BATCH_BYTES)
        return [(list(row[: len(asked)]), list(row[len(asked) :])) for row in found.rows]

    def _row(self, connection: Connection, names: Sequence[str], key: Sequence[Any]) -> dict[str, Any] | None:
        made = statements.one_row(self._dialect, self.table, names, key)
        rows = self._select(connection, made, 1, MAX_BATCH_BYTES).rows
        return dict(zip(self._names, rows[0], strict=True)) if rows else None

    def _total(self, connection: Connection, where: Where, place: Place) -> int:
        """How many rows match: counted once for a file, and once for all pages of one query of a live source."""
        if place.total is not None:
            return place.total
        if self._origin.live:
            return self._counted(connection, where)
        if not where.terms and self.table.rows is not None:
            return self.table.rows
        name = freeze(where.as_json()).data
        with self._lock:
            if name in self._counts:
                return self._counts[name]
        number = self._counted(connection, where)
        with self._lock:
            self._counts[name] = number
            while len(self._counts) > _KNOWN_COUNTS:
                self._counts.popitem(last=False)
        return number

    def _counted(self, connection: Connection, where: Where) -> int:
        made = statements.count(self._dialect, self.table, where)
        ((number,),) = self._select(connection, made, 1, MAX_PAGE_BYTES).rows
        return int(number)

    def _select(self, connection: Connection, made: Statement, rows: int, size: int) -> Found:
        return connection.select(
            made.text, made.parameters, Bounds(seconds=self._seconds, rows=rows, size=size)
        )

    def _place(self, cursor: str | None, offset: int | None, bound: bytes) -> Place:
        not_both(cursor, offset)
        if cursor is not None:
            return read(cursor, bound)
        return Place(offset=whole("offset", 0 if offset is None else offset, 0, 2**53))

    def _next(self, place: Place, found: Found, total: int) -> Place:
        order = len(self.table.order)
        key = found.rows[-1][len(self._names) :] if order else ()
        return Place(
            offset=place.offset + len(found.rows), key=tuple(key), total=total if self._origin.live else None
        )

    def _bound(self, where: Where) -> bytes:
        return bound_of(
            {
                "contract": self._contract,
                "source": self._origin.identity,
                "order": list(self.table.order),
                "where": freeze(where.as_json()),
            }
        )

    def _coverage(self, total: int | None) -> Coverage:
        examined = self.table.rows if self.table.rows is not None else total
        return self._origin.coverage(f"all rows of {self.table.name}{_order(self.table)}", examined or 0)


def _order(table: Table) -> str:
    return f", by {', '.join(table.order)}" if table.order else ""


def _entry(key: Any, row: dict[str, Any] | None, *, fits: bool) -> dict[str, Any]:
    if row is None:
        return {"status": "failed", "id": key, "code": "item-not-found", "message": "no row has this key"}
    if not fits:
        message = "the batch is full; ask for the rest in a second one"
        return {"status": "failed", "id": key, "code": "value-too-large", "message": message}
    return {"status": "found", "id": key, "item": dict(row)}
