"""How field values stand in SQLite columns without losing their type.

Columns have no declared type, so SQLite converts nothing. Text, 64-bit integers and NULL stand as they are; what
SQLite does not tell apart or cannot hold (booleans, larger integers, text with lone surrogates) is a tagged blob.
"""

from __future__ import annotations

from affidavit.facts.spec import Scalar

__all__ = ["Stored", "from_column", "to_column"]

Stored = str | int | bytes | None

_FALSE = b"f"
_TRUE = b"t"
_INT = b"i"
_TEXT = b"s"
_LOW = -(1 << 63)
_HIGH = (1 << 63) - 1


def to_column(value: Scalar) -> Stored:
    """The column value of a field value. Equal field values of one type have equal column values, no others do."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return _TEXT + value.encode("utf-8", "surrogatepass")
        return value
    if value is None:
        return None
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return value if _LOW <= value <= _HIGH else _INT + format(value, "x").encode("ascii")


def from_column(stored: Stored) -> Scalar:
    """The reverse of `to_column`."""
    if not isinstance(stored, bytes):
        return stored
    tag, body = stored[:1], stored[1:]
    if tag == _TEXT:
        return body.decode("utf-8", "surrogatepass")
    return int(body, 16) if tag == _INT else tag == _TRUE
