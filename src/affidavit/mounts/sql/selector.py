"""`where` of a table: checked against its columns and brought into one normal form."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from affidavit.errors import UsageError
from affidavit.evidence.canonical import freeze
from affidavit.facts.selector import MAX_ALTERNATIVES
from affidavit.mounts.sql.catalogue import Column, Kind, Table
from affidavit.mounts.sql.rows import is_comparable
from affidavit.namespaces.names import suggestion

__all__ = ["Where", "column_asked", "read_key", "read_where"]

_TYPES: Final[Mapping[Kind, tuple[type, ...]]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "bytes": (bytes,),
    "decimal": (decimal.Decimal, int),
    "datetime": (dt.datetime,),
    "date": (dt.date,),
    "uuid": (uuid.UUID,),
}

Terms: TypeAlias = tuple[tuple[Column, tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A normalised `where`: columns in order of their names, each with the values that match.

    A column with no values matches nothing; no columns match everything.
    """

    terms: Terms = ()

    def as_json(self) -> dict[str, Any]:
        """The normal form as a `where` argument."""
        return {column.name: found[0] if len(found) == 1 else list(found) for column, found in self.terms}


def read_where(where: object, table: Table) -> Where:
    """Check and normalise a `where` argument.

    Raises:
        UsageError: `selector-invalid`; `details.path` names the place.
    """
    if where is None:
        return Where()
    if not isinstance(where, Mapping):
        raise _invalid(f"`where` of {table.name} is no mapping of columns to values", "$")
    terms = [
        (column_asked(name, table), value) for name, value in cast("Mapping[object, object]", where).items()
    ]
    return Where(
        terms=tuple(
            (column, _alternatives(column, value, table))
            for column, value in sorted(terms, key=lambda term: term[0].name)
        )
    )


def column_asked(name: object, table: Table) -> Column:
    """The column that a caller named. Raises `UsageError(selector-invalid)`."""
    known = {column.name: column for column in table.columns if is_comparable(column)}
    if isinstance(name, str) and name in known:
        return known[name]
    hint = suggestion(str(name)[:100], known, otherwise="There are")
    raise _invalid(f"{table.name} has no column {ascii(name)[:80]} to ask for", "$", hint)


def read_key(key: object, table: Table, place: str) -> tuple[Any, ...]:
    """The values of a key's columns, from the value of its one column or from a mapping of several.

    Raises:
        UsageError: `arguments-invalid`; `details.path` names the place.
    """
    if len(table.key) == 1:
        given: Sequence[object] = (key,)
    elif isinstance(key, Mapping) and set(cast("Mapping[object, object]", key)) == set(table.key):
        given = tuple(cast("Mapping[str, object]", key)[name] for name in table.key)
    else:
        raise UsageError(
            "arguments-invalid",
            f"`{place}` is no mapping of {', '.join(table.key)}",
            hint=f"rows of {table.name} are identified by these columns together",
            details={"path": f"$.{place}"},
        )
    for name, value in zip(table.key, given, strict=True):
        if value is None or not _fits(table.column(name), value):
            raise UsageError(
                "arguments-invalid",
                f"`{place}` is of type {type(value).__name__}, not {_expected(table.column(name))}",
                hint=f"it is a value of {table.name}.{name}",
                details={"path": f"$.{place}"},
            )
    return tuple(given)


def _alternatives(column: Column, wanted: object, table: Table) -> tuple[Any, ...]:
    if not isinstance(wanted, (list, tuple)):
        return (_value(column, wanted, table, f"$.{column.name}"),)
    listed = cast("Sequence[object]", wanted)
    if len(listed) > MAX_ALTERNATIVES:
        raise _invalid(
            f"{table.name}.{column.name} is asked for {len(listed)} values, more than {MAX_ALTERNATIVES}",
            f"$.{column.name}",
            f"ask in parts of {MAX_ALTERNATIVES}",
        )
    checked = [_value(column, value, table, f"$.{column.name}[{at}]") for at, value in enumerate(listed)]
    unique = {(type(value).__name__, freeze(value).data): value for value in checked}
    return tuple(unique[key] for key in sorted(unique))


def _value(column: Column, value: object, table: Table, path: str) -> object:
    if value is None or _fits(column, value):
        return value
    raise _invalid(
        f"{table.name}.{column.name} never holds a value of type {type(value).__name__}",
        path,
        f"it holds {_expected(column)}",
    )


def _fits(column: Column, value: object) -> bool:
    return any(type(value) in _TYPES.get(kind, ()) for kind in column.kinds)


def _expected(column: Column) -> str:
    names = [_TYPES[kind][0].__name__ for kind in column.kinds if kind in _TYPES]
    return " or ".join([*names, *(["None"] if column.nullable else [])])


def _invalid(message: str, path: str, hint: str = "") -> UsageError:
    return UsageError("selector-invalid", message, hint=hint, details={"path": path})
