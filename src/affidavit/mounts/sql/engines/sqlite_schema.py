"""The tables and views of a SQLite file, with the types that their values have.

A column's declared type says little in SQLite: `INTEGER` may hold text. So every value is looked at once, when the
file is mounted, and a column's kinds are those of its values; the file cannot change afterwards without being noticed.
A table that is too large for that, or a view that is too slow, has the kinds that its affinity allows.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from affidavit.evidence.record import Limitation
from affidavit.mounts.sql.catalogue import Column, Kind, Table
from affidavit.mounts.sql.engines.sqlite_lengths import bounded_lengths

__all__ = ["read_tables"]

_STEPS: Final = 100_000
_TABLE_LOOKS: Final = 5_000
_VIEW_LOOKS: Final = 200
"""Virtual machine steps that looking at all values of a table or view may take, in units of `_STEPS`."""

_ROW_NUMBERS: Final = ("rowid", "_rowid_", "oid")
_KINDS: Final[dict[str, Kind]] = {"integer": "int", "real": "float", "text": "str", "blob": "bytes"}
_ORDER: Final[tuple[Kind, ...]] = ("int", "float", "str", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    name: str
    type: str
    not_null: bool
    key_place: int


def read_tables(database: sqlite3.Connection, limitations: list[Limitation]) -> list[Table]:
    """Every table and view, by name; those that cannot be read become limitations."""
    listed = database.execute(
        "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow' "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    tables: list[Table] = []
    for name, kind, without_row_number, strict in listed:
        try:
            tables.append(_table(database, name, kind, bool(without_row_number), strict=bool(strict)))
        except sqlite3.DatabaseError as error:
            limitations.append(
                Limitation(code="table-unreadable", place=name, message=f"SQLite says: {error}")
            )
    return tables


def _table(
    database: sqlite3.Connection, name: str, kind: str, without_row_number: bool, *, strict: bool
) -> Table:
    declared = [
        _Declared(name=row[0], type=row[1] or "", not_null=bool(row[2]), key_place=row[3])
        for row in database.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid',
            (name,),
        )
    ]
    is_view = kind == "view"
    order: tuple[str, ...] = ()
    key = tuple(one.name for one in sorted(declared, key=lambda one: one.key_place) if one.key_place)
    if without_row_number:
        order = key
    elif not is_view:
        order = _row_number(database, name, declared, kind)
    alias = len(key) == 1 and _is_row_number(declared, key[0]) and not without_row_number
    seen, rows = _look(database, name, declared, _VIEW_LOOKS if is_view else _TABLE_LOOKS)
    columns = tuple(
        _column(one, alias and one.name == key[0], seen.get(one.name), strict=strict) for one in declared
    )
    holds_null = seen and any("null" in seen[one] for one in key)
    if holds_null or not (seen or alias or without_row_number):
        key = ()  # SQLite lets keys of ordinary tables be NULL
    return Table(
        path=(name,),
        kind="view" if is_view else "table",
        columns=columns,
        key=key,
        order=order,
        rows=rows,
    )


def _row_number(
    database: sqlite3.Connection, name: str, declared: list[_Declared], kind: str
) -> tuple[str, ...]:
    """A name of the row number that no column hides; virtual tables need not have one."""
    taken = {one.name.lower() for one in declared}
    free = next((one for one in _ROW_NUMBERS if one not in taken), None)
    if free is None:
        return ()
    if kind == "virtual":
        try:
            database.execute(f"SELECT {free} FROM {_quoted(name)} LIMIT 0").close()  # noqa: S608
        except sqlite3.DatabaseError:
            return ()
    return (free,)


def _is_row_number(declared: list[_Declared], name: str) -> bool:
    """Whether the single key column is the row number itself, which is never NULL."""
    return any(one.name == name and one.type.upper() == "INTEGER" for one in declared)


def _look(
    database: sqlite3.Connection, name: str, declared: list[_Declared], looks: int
) -> tuple[dict[str, set[str]], int | None]:
    """The storage classes of each column's values and how many rows there are; nothing where that takes too long."""
    left = looks

    def spent() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    expressions = ", ".join(f"typeof({_quoted(one.name)})" for one in declared)
    seen: dict[str, set[str]] = {one.name: set() for one in declared}
    rows = 0
    database.set_progress_handler(spent, _STEPS)
    try:
        statement = (
            f"SELECT count(*), {expressions} FROM {_quoted(name)} "  # noqa: S608 - identifiers are quoted
            f"GROUP BY {', '.join(str(place + 2) for place in range(len(declared)))}"
        )
        with bounded_lengths(database, statement):
            for number, *classes in database.execute(statement):
                rows += number
                for one, found in zip(declared, classes, strict=True):
                    seen[one.name].add(found)
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return {}, None
    finally:
        database.set_progress_handler(None, 0)
    return seen, rows


def _column(declared: _Declared, is_row_number: bool, seen: set[str] | None, *, strict: bool) -> Column:
    kinds: tuple[Kind, ...]
    found = {_KINDS[one] for one in seen or () if one != "null"}
    if found:
        kinds = tuple(kind for kind in _ORDER if kind in found)
    elif is_row_number:
        kinds = ("int",)
    elif seen is None:
        kinds = _allowed(declared.type, strict=strict)
    else:
        kinds = _usual(declared.type)  # there is no value yet
    nullable = not (declared.not_null or is_row_number)
    return Column(name=declared.name, declared=declared.type, kinds=kinds, nullable=nullable)


def _usual(declared: str) -> tuple[Kind, ...]:
    """What a column of this declared type is meant to hold (sqlite.org/datatype3.html, 3.1)."""
    text = declared.upper()
    if "INT" in text:
        return ("int",)
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return ("str",)
    if not text or "BLOB" in text:
        return ("bytes",) if text else _ORDER
    if any(word in text for word in ("REAL", "FLOA", "DOUB")):
        return ("float",)
    return _ORDER


def _allowed(declared: str, *, strict: bool) -> tuple[Kind, ...]:
    """What a column of this declared type may hold."""
    usual = _usual(declared)
    if strict and declared.upper() != "ANY":
        return usual
    if usual == ("str",):
        return ("str", "bytes")
    return ("float", "str", "bytes") if usual == ("float",) else _ORDER


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
