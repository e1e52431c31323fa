"""The tables and views of a DuckDB database."""

from __future__ import annotations

from typing import Any, Final

from affidavit.mounts.sql.catalogue import Column, Kind, Table
from affidavit.mounts.sql.engines.duckdb_types import kind_of

__all__ = ["read_tables"]

_TABLES: Final = (
    "SELECT schema_name, table_name, comment, false FROM duckdb_tables() "
    "WHERE NOT internal AND database_name = current_database() UNION ALL "
    "SELECT schema_name, view_name, comment, true FROM duckdb_views() "
    "WHERE NOT internal AND database_name = current_database() ORDER BY 1, 2"
)
_COLUMNS: Final = (
    "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
    "WHERE schema_name = ? AND table_name = ? AND database_name = current_database() ORDER BY column_index"
)
_KEYS: Final = (
    "SELECT constraint_column_names FROM duckdb_constraints() WHERE schema_name = ? AND table_name = ? "
    "AND constraint_type = 'PRIMARY KEY' AND database_name = current_database()"
)


def read_tables(database: Any, *, from_data: bool) -> list[Table]:
    """Every table and view, by schema and name.

    Args:
        database: an open connection.
        from_data: whether columns are nullable where they hold NULL; else where the catalogue says so.
    """
    listed = database.execute(_TABLES).fetchall()
    return [
        _table(database, schema, name, comment, is_view=is_view, from_data=from_data)
        for schema, name, comment, is_view in listed
    ]


def _table(
    database: Any, schema: str, name: str, comment: str | None, *, is_view: bool, from_data: bool
) -> Table:
    declared = database.execute(_COLUMNS, [schema, name]).fetchall()
    keys = database.execute(_KEYS, [schema, name]).fetchall()
    key = tuple(keys[0][0]) if keys else ()
    rows: int | None = None
    odd: set[str] = set()
    nulls: set[str] | None = None
    if not is_view:
        rows, nulls, odd = _look(database, f"{_quoted(schema)}.{_quoted(name)}", declared)
    columns = tuple(
        _column(
            column,
            kind,
            nullable=column in nulls if from_data and nulls is not None else bool(nullable),
            odd=column in odd or (is_view and kind_of(kind) in ("date", "datetime")),
            doc=doc or "",
        )
        for column, kind, nullable, doc in declared
    )
    has_row_number = not is_view and all(column.name.lower() != "rowid" for column in columns)
    return Table(
        path=(name,) if schema == "main" else (schema, name),
        kind="view" if is_view else "table",
        columns=columns,
        key=key,
        order=("rowid",) if has_row_number else key,
        rows=rows,
        doc=comment or "",
    )


def _look(database: Any, table: str, declared: list[Any]) -> tuple[int, set[str], set[str]]:
    """How many rows there are, which columns hold NULL, and which hold times that no Python value holds."""
    asked = ["count(*)"]
    for column, kind, *_ in declared:
        name = _quoted(column)
        asked.append(f"count({name})")
        if kind_of(kind) in ("date", "datetime"):
            fits = f"isfinite({name}) AND year({name}) BETWEEN 1 AND 9999"
            if kind == "TIMESTAMP_NS":
                fits += f" AND epoch_ns({name}) % 1000 = 0"
            asked.append(f"count(*) FILTER (NOT ({fits}))")
        else:
            asked.append("0")
    rows, *found = database.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()  # noqa: S608
    names = [column for column, *_ in declared]
    nulls = {name for name, number in zip(names, found[::2], strict=True) if number < rows}
    odd = {name for name, number in zip(names, found[1::2], strict=True) if number}
    return rows, nulls, odd


def _column(name: str, declared: str, *, nullable: bool, odd: bool, doc: str) -> Column:
    kind: Kind | None = None if odd else kind_of(declared)
    return Column(
        name=name,
        declared=declared,
        kinds=("str",) if kind is None else (kind,),
        nullable=nullable,
        as_text=kind is None,
        doc=doc,
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
