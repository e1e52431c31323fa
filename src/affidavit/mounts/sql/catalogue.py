"""What a database holds: tables and views with typed columns, as its mount's description keeps it."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from affidavit.errors import FailedError
from affidavit.evidence.record import JsonValue, Limitation

__all__ = ["KINDS", "Catalogue", "Column", "Kind", "Table", "read_catalogue"]

_FORMAT: Final = 1

Kind: TypeAlias = Literal[
    "int", "float", "str", "bool", "bytes", "decimal", "datetime", "date", "uuid", "list", "dict", "any"
]

KINDS: Final[Mapping[Kind, Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "bytes": bytes,
    "decimal": decimal.Decimal,
    "datetime": dt.datetime,
    "date": dt.date,
    "uuid": uuid.UUID,
    "list": list[Any],
    "dict": dict[str, Any],
    "any": Any,
}
"""The Python type of each kind of value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        name: as the engine has it.
        declared: its type in the engine's words, or empty.
        kinds: which values it may hold beside NULL.
        nullable: whether it may hold NULL.
        as_text: whether rows show it as the engine writes it, since no value holds it exactly (a time of day, an
            interval, a timestamp with nanoseconds).
        doc: the comment that the database has for it.
    """

    name: str
    declared: str
    kinds: tuple[Kind, ...]
    nullable: bool
    as_text: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view.

    Attributes:
        path: schema names before it, and its own: `("public", "orders")`; for most engines its name alone.
        kind: `table` or `view`.
        columns: its columns, in order.
        key: columns whose values identify a row and are never NULL; empty where there are none.
        order: what rows are ordered by, uniquely: columns, or the engine's own row number; empty where nothing is.
        rows: how many there are, where the source cannot change.
        doc: the comment that the database has for it.
    """

    path: tuple[str, ...]
    kind: Literal["table", "view"]
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    rows: int | None = None
    doc: str = ""

    @property
    def name(self) -> str:
        """Its full name, for people and contracts."""
        return ".".join(self.path)

    def column(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everything that a mount offers.

    Attributes:
        engine: `sqlite`, `duckdb` or `postgresql`.
        version: the engine's, where results depend on it.
        format: of the file: `sqlite`, `parquet`; the engine's name for a live source.
        identity: digest of the file, or empty for a live source.
        database: the name of a live source's database.
        tables: in order of their names.
        limitations: tables that cannot be offered.
    """

    engine: Literal["sqlite", "duckdb", "postgresql"]
    version: str
    format: str
    identity: str
    tables: tuple[Table, ...]
    database: str = ""
    limitations: tuple[Limitation, ...] = ()

    def as_json(self) -> JsonValue:
        """What the mount's description keeps."""
        tables = [_plain(asdict(table)) for table in self.tables]
        return {
            "catalogue": _FORMAT,
            "engine": self.engine,
            "version": self.version,
            "format": self.format,
            "identity": self.identity,
            "database": self.database,
            "tables": tables,
        }


def read_catalogue(contents: JsonValue) -> Catalogue:
    """The catalogue that a description kept. Raises `FailedError(mount-failed)` for that of another version."""
    if not isinstance(contents, dict) or cast("dict[str, Any]", contents).get("catalogue") != _FORMAT:
        hint = "mount it again: `affidavit mount add NAME` with its name alone"
        raise FailedError("mount-failed", "the kept catalogue is of another version", hint=hint)
    kept = cast("dict[str, Any]", contents)
    return Catalogue(
        engine=kept["engine"],
        version=kept["version"],
        format=kept["format"],
        identity=kept["identity"],
        database=kept["database"],
        tables=tuple(_table(table) for table in kept["tables"]),
    )


def _table(kept: Mapping[str, Any]) -> Table:
    columns: list[Column] = []
    for column in kept["columns"]:
        said: dict[str, Any] = column | {"kinds": tuple(column["kinds"])}
        columns.append(Column(**said))
    lists: dict[str, Any] = {name: tuple(kept[name]) for name in ("path", "key", "order")}
    whole: dict[str, Any] = {**kept, **lists, "columns": tuple(columns)}
    return Table(**whole)


def _plain(value: Any) -> JsonValue:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value
