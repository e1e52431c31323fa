"""PostgreSQL's types: which values hold them exactly; everything else arrives as the text that the server writes."""

from __future__ import annotations

from typing import Any, Final

from affidavit.mounts.sql.catalogue import Kind

__all__ = ["kinds_of", "set_loaders"]

_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), ("int",)),
    **dict.fromkeys(("float4", "float8"), ("float",)),
    "numeric": ("decimal",),
    "bool": ("bool",),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char"), ("str",)),
    "bytea": ("bytes",),
    "uuid": ("uuid",),
    # infinity, and years that Python's types do not have, arrive as text
    "date": ("date", "str"),
    "timestamp": ("datetime", "str"),
    "timestamptz": ("datetime", "str"),
}


def kinds_of(name: str, *, is_enum: bool, is_array: bool) -> tuple[Kind, ...]:
    """The kinds of values of a type; none for what is shown as text."""
    if is_array:
        return ("list",)
    return ("str",) if is_enum else _KINDS.get(name, ())


def set_loaders(psycopg: Any, connection: Any) -> None:
    """Have a connection give exact values, and text for what has none."""
    from psycopg.types.string import TextLoader

    for one in psycopg.adapters.types:
        if one.name not in _KINDS:
            connection.adapters.register_loader(one.oid, TextLoader)
    for name, loader in _lenient().items():
        connection.adapters.register_loader(name, loader)


def _lenient() -> dict[str, Any]:
    """Loaders of dates and times that keep as text what Python's types do not hold."""
    from psycopg import DataError
    from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

    def lenient(base: Any) -> Any:
        def load(self: Any, data: Any) -> Any:
            try:
                return base.load(self, data)
            except DataError:
                return bytes(data).decode()

        return type(f"Lenient{base.__name__}", (base,), {"load": load})

    return {
        "date": lenient(DateLoader),
        "timestamp": lenient(TimestampLoader),
        "timestamptz": lenient(TimestamptzLoader),
    }
