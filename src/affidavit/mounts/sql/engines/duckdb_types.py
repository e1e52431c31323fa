"""DuckDB's types: which values hold them exactly, and what is shown as text since none does."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Any, Final, cast

from affidavit.mounts.sql.catalogue import Kind

__all__ = ["Shown", "exact", "kind_of", "shown_as"]

_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "int"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "int"),
    "BOOLEAN": "bool",
    "FLOAT": "float",
    "DOUBLE": "float",
    "VARCHAR": "str",
    "JSON": "str",
    "BLOB": "bytes",
    "UUID": "uuid",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "datetime"),
    "TIMESTAMP WITH TIME ZONE": "datetime",
}  # fmt: skip


class Shown(Enum):
    """How a column of a result is fetched."""

    AS_IT_IS = 0
    AS_TEXT = 1
    AS_DATE = 2
    AS_TIMESTAMP = 3


def kind_of(declared: str) -> Kind | None:
    """The kind of value that holds a type; None for what is shown as text."""
    if declared.endswith("]"):
        return "list"
    head = declared.partition("(")[0]
    if head == "DECIMAL":
        return "decimal"
    if head == "STRUCT":
        return "dict"
    if head in ("MAP", "UNION"):
        return "any"
    return "str" if head == "ENUM" else _KINDS.get(declared)


def shown_as(declared: str) -> Shown:
    """How a column of a script's own statement is fetched: what its values are is known only afterwards."""
    kind = kind_of(declared)
    if kind is None:
        return Shown.AS_TEXT
    if kind == "date":
        return Shown.AS_DATE
    return Shown.AS_TIMESTAMP if kind == "datetime" else Shown.AS_IT_IS


def exact(value: Any, way: Shown) -> Any:
    """The value of the value domain that a fetched one stands for.

    Dates and times beyond what Python's types hold (infinity, years before Christ, nanoseconds) stay as text.
    """
    if value is None or way is Shown.AS_TEXT:
        return value
    if way is Shown.AS_IT_IS:
        return _plain(value) if type(value) in _ODD else value
    try:
        if way is Shown.AS_DATE:
            return dt.date.fromisoformat(value)
        found = dt.datetime.fromisoformat(value)
    except ValueError:
        return value
    fraction = value.partition(".")[2].partition("+")[0]
    return value if fraction[6:].strip("0") else found


def _plain(value: Any) -> Any:
    """Nested values without tuples, times and keys that are no text."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) if type(one) in _ODD else one for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        if all(isinstance(key, str) for key, _ in items):
            return {key: _plain(one) if type(one) in _ODD else one for key, one in items}
        return [{"key": _plain(key), "value": _plain(one)} for key, one in items]
    if isinstance(value, dt.time):
        return value.isoformat()
    return str(value) if isinstance(value, dt.timedelta) else value


_ODD: Final = frozenset({list, tuple, dict, dt.time, dt.timedelta})
"""Types that are not handed on as they are."""
