"""Files of one table, loaded into a database.

CSV says nothing of types, so a column has one only where the text of every value says the same thing back: whole
numbers without leading zeros, decimal fractions of at most 15 digits, ISO dates and times, `true` and `false`.
Everything else stays text: a postal code keeps its zeros, a long id its digits, and `01/02/2024` is not guessed at.
"""

# ruff: noqa: S608

from __future__ import annotations

from typing import Any, Final

from affidavit.mounts.sql.sources import FileTarget
from affidavit.namespaces.names import identifier

__all__ = ["load"]

_MAX_OBJECT: Final = 64 << 20
_TYPES: Final = (
    ("BIGINT", r"-?(0|[1-9][0-9]{0,17})"),
    ("DOUBLE", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"),
    ("DATE", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    (
        "TIMESTAMP",
        r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?",
    ),
    ("BOOLEAN", r"true|false"),
)
_DIGITS_OF_A_DOUBLE: Final = 15


def load(database: Any, target: FileTarget) -> None:
    """Load a file as the one table of a database, called after the file."""
    name = _quoted(identifier(target.path.stem, fallback="data"))
    place = str(target.path)
    if target.format == "parquet":
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?)", [place])
    elif target.format == "json":
        database.execute(
            f"CREATE TABLE {name} AS SELECT * FROM read_json(?, sample_size = -1, maximum_object_size = ?)",
            [place, _MAX_OBJECT],
        )
    else:
        _load_csv(database, name, place)


def _load_csv(database: Any, name: str, place: str) -> None:
    database.execute(
        "CREATE TEMP TABLE loaded AS SELECT * FROM "
        "read_csv(?, header = true, all_varchar = true, allow_quoted_nulls = false, sample_size = -1)",
        [place],
    )
    columns = [row[0] for row in database.execute("DESCRIBE loaded").fetchall()]
    shown = ", ".join(f"{_typed(database, column)} AS {_quoted(column)}" for column in columns)
    database.execute(f"CREATE TABLE {name} AS SELECT {shown} FROM loaded ORDER BY rowid")
    database.execute("DROP TABLE loaded")


def _typed(database: Any, column: str) -> str:
    """The expression of a column as the first type that the text of all its values says."""
    name = _quoted(column)
    for kind, pattern in _TYPES:
        says = f"regexp_full_match({name}, '{pattern}') AND TRY_CAST({name} AS {kind}) IS NOT NULL"
        if kind == "DOUBLE":
            says += f" AND length(regexp_replace({name}, '[^0-9]', '', 'g')) <= {_DIGITS_OF_A_DOUBLE}"
        some, other = database.execute(
            f"SELECT count({name}), count(*) FILTER ({name} IS NOT NULL AND NOT ({says})) FROM loaded"
        ).fetchone()
        if some and not other:
            return f"CAST({name} AS {kind})"
    return name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
