"""How long values may be beside functions that one step of SQLite's machine can spend hours in.

The clock is looked at between steps, and one call of a function is one step. `instr(x, y)` compares `y` at every place
of `x`: values of 30 MB keep it busy for days. So a statement that calls such a function, itself or through a view,
runs with a smaller bound on the length of every value, which ends one call within seconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

__all__ = ["bounded_lengths"]

_LONGEST: Final[Mapping[str, int]] = {
    "instr(2)": 1 << 19,
    "replace(3)": 1 << 19,
    "like(2)": 1 << 21,
    "like(3)": 1 << 21,
    "glob(2)": 1 << 21,
    "trim(2)": 1 << 14,
    "ltrim(2)": 1 << 14,
    "rtrim(2)": 1 << 14,
}
"""Bytes of a value, by function and number of arguments as `EXPLAIN` writes them (column `p4`)."""

_P4: Final = 5


@contextmanager
def bounded_lengths(database: sqlite3.Connection, statement: str, parameters: Any = ()) -> Generator[None]:
    """While a statement runs: the bound on lengths that the functions in it ask for. Prepares it, runs nothing."""
    with closing(database.execute(f"EXPLAIN {statement}", parameters)) as listing:
        asked = [_LONGEST[row[_P4]] for row in listing if row[_P4] in _LONGEST]
    if not asked:
        yield
        return
    usual = database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(usual, *asked))
    try:
        yield
    finally:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
