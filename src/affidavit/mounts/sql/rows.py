"""The types of a table for stubs and schemas: its rows, what `where` takes, what identifies a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Union

from typing_extensions import TypedDict

from affidavit.mounts.sql.catalogue import KINDS, Column, Kind, Table
from affidavit.namespaces.names import class_name

__all__ = ["TableTypes", "is_comparable", "table_types"]

_CONTAINERS: Final[frozenset[Kind]] = frozenset({"list", "dict", "any"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTypes:
    """Types of one table.

    Attributes:
        row: TypedDict of its rows; keys are the columns' own names.
        where: TypedDict of `where`, or None when no column can be asked for.
        by: Literal of the columns that can be counted by, or None.
        key: type of what identifies a row: the type of its one key column, or a TypedDict of several; None without.
    """

    row: Any
    where: Any
    by: Any
    key: Any


def table_types(table: Table, name: str) -> TableTypes:
    """The types of a table that scripts call `name`."""
    stem = class_name(name, fallback="Table")
    typed_dict: Any = TypedDict  # made at run time from the catalogue
    row: Any = typed_dict(f"{stem}Row", {column.name: _type(column) for column in table.columns})
    row.__doc__ = table.doc or f"A row of {table.name}."
    asked = {column.name: column for column in table.columns if is_comparable(column)}
    where: Any = None
    if asked:
        fields = {each: _asked(column) for each, column in asked.items()}
        where = typed_dict(f"{stem}Where", fields, total=False)
        where.__doc__ = "Equality by column; a list means any of; None means NULL."
    literal: Any = Literal
    key: Any = None
    if len(table.key) == 1:
        key = _values(table.column(table.key[0]))
    elif table.key:
        key = typed_dict(f"{stem}Key", {each: _values(table.column(each)) for each in table.key})
        key.__doc__ = f"What identifies a row of {table.name}."
    return TableTypes(row=row, where=where, by=literal[tuple(asked)] if asked else None, key=key)


def is_comparable(column: Column) -> bool:
    """Whether `where` can ask for a column."""
    return not _CONTAINERS.intersection(column.kinds)


def _values(column: Column) -> Any:
    union: Any = Union
    return union[tuple(KINDS[kind] for kind in column.kinds)]


def _type(column: Column) -> Any:
    return _values(column) | None if column.nullable else _values(column)


def _asked(column: Column) -> Any:
    """A value, any of a list, or None. Both list types are there because `list` is invariant."""
    one = _values(column)
    return one | list[one] | list[one | None] | None
