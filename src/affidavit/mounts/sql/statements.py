"""The statements that this product writes: pages, counts, rows. Identifiers are quoted, values are parameters."""

# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from affidavit.mounts.sql.catalogue import Column, Table
from affidavit.mounts.sql.cursor import Place
from affidavit.mounts.sql.engines.engine import Dialect
from affidavit.mounts.sql.selector import Where

__all__ = ["Statement", "count", "groups", "groups_beyond", "one_row", "page", "texts"]


@dataclass(slots=True)
class Statement:
    """A statement and its parameters."""

    dialect: Dialect
    text: str = ""
    parameters: list[Any] = field(default_factory=list[Any])

    def where(self, terms: Where, more: Sequence[str] = ()) -> str:
        """` WHERE ...` of a selector and further conditions, or nothing."""
        conditions = [self._matches(column, wanted) for column, wanted in terms.terms] + list(more)
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def equals(self, column: Column, value: Any) -> str:
        """The condition that a column has a value."""
        if value is None:
            return f"{self.dialect.shown(column)} IS NULL"
        condition, parameter = self.dialect.equals(column, value, len(self.parameters) + 1)
        self.parameters.append(parameter)
        return condition

    def bound(self, value: Any) -> str:
        """The expression of a value."""
        expression, parameter = self.dialect.bound(value, len(self.parameters) + 1)
        self.parameters.append(parameter)
        return expression

    def after(self, order: Sequence[str], key: Sequence[Any]) -> str:
        """The condition that a row comes after the one with this key."""
        names = ", ".join(self.dialect.key(name) for name in order)
        asked = ", ".join(self.bound(value) for value in key)
        return f"{names} > {asked}" if len(order) == 1 else f"({names}) > ({asked})"

    def _matches(self, column: Column, wanted: Sequence[Any]) -> str:
        if not wanted:
            return "1 = 0"
        each = [self.equals(column, value) for value in wanted]
        return each[0] if len(each) == 1 else f"({' OR '.join(each)})"


def page(dialect: Dialect, table: Table, where: Where, place: Place, limit: int) -> Statement:
    """Up to `limit` rows from a place on: the columns, then the order columns."""
    made = Statement(dialect)
    shown = ", ".join(
        [*(dialect.shown(one) for one in table.columns), *(dialect.key(one) for one in table.order)]
    )
    after = [made.after(table.order, place.key)] if place.key else []
    made.text = f"SELECT {shown} FROM {dialect.table(table)}{made.where(where, after)}"
    if table.order:
        made.text += f" ORDER BY {', '.join(dialect.key(name) for name in table.order)}"
    made.text += f" LIMIT {limit}"
    if place.offset and not place.key:
        made.text += f" OFFSET {place.offset}"
    return made


def one_row(dialect: Dialect, table: Table, names: Sequence[str], key: Sequence[Any]) -> Statement:
    """The row whose key or order columns have these values."""
    made = Statement(dialect)
    shown = ", ".join(dialect.shown(one) for one in table.columns)
    known = {column.name: column for column in table.columns}
    conditions = [
        made.equals(known[name], value) if name in known else f"{dialect.key(name)} = {made.bound(value)}"
        for name, value in zip(names, key, strict=True)
    ]
    made.text = f"SELECT {shown} FROM {dialect.table(table)} WHERE {' AND '.join(conditions)} LIMIT 1"
    return made


def count(dialect: Dialect, table: Table, where: Where) -> Statement:
    """How many rows match."""
    made = Statement(dialect)
    made.text = f"SELECT count(*) FROM {dialect.table(table)}{made.where(where)}"
    return made


def groups(dialect: Dialect, table: Table, where: Where, by: Column, limit: int) -> Statement:
    """The most frequent values of a column among the matching rows."""
    made = Statement(dialect)
    made.text = (
        f"SELECT value, count(*) AS number FROM (SELECT {dialect.distinct(by)} AS value "
        f"FROM {dialect.table(table)}{made.where(where)}) AS asked "
        f"GROUP BY value ORDER BY number DESC, value LIMIT {limit}"
    )
    return made


def groups_beyond(dialect: Dialect, table: Table, where: Where, by: Column) -> Statement:
    """How many values of a column there are among the matching rows, NULL not counted, and whether NULL is there."""
    made = Statement(dialect)
    made.text = (
        f"SELECT count(DISTINCT value), count(*) - count(value) FROM (SELECT {dialect.distinct(by)} AS value "
        f"FROM {dialect.table(table)}{made.where(where)}) AS asked"
    )
    return made


def texts(
    dialect: Dialect, table: Table, columns: Sequence[Column], key: Sequence[Any], limit: int
) -> Statement:
    """Text columns and order columns of the next rows, for an index."""
    made = Statement(dialect)
    names = [dialect.key(name) for name in table.order]
    shown = ", ".join([*(dialect.shown(one) for one in columns), *names])
    after = [made.after(table.order, key)] if key else []
    made.text = (
        f"SELECT {shown} FROM {dialect.table(table)}{made.where(Where(), after)} "
        f"ORDER BY {', '.join(names)} LIMIT {limit}"
    )
    return made
