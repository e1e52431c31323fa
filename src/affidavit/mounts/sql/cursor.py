"""Cursors of tables: the place after a row, bound to one query over one source.

Beside what every cursor has (see `facts.cursor`) they hold the key of the last row, so that the next page is found by
an index and not by counting, and the number of matching rows as the first page counted it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, cast

from affidavit.errors import AffidavitError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, freeze, parse
from affidavit.evidence.record import JsonValue
from affidavit.facts.cursor import invalid_cursor, open_cursor, seal_cursor

__all__ = ["Place", "bound_of", "issue", "read"]

_FORMAT: Final = b"\x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page starts.

    Attributes:
        offset: number of its first row among the matching ones.
        key: values of the order columns in the row before it; empty where rows have no unique order, or at the start.
        total: how many rows match, as counted before; None where that is to be counted.
    """

    offset: int = 0
    key: tuple[Any, ...] = ()
    total: int | None = None


def bound_of(question: JsonValue) -> bytes:
    """What a cursor belongs to: the digest of the contract, the source's identity, the selector and the order."""
    return hashlib.sha256(canonical(question)).digest()


def issue(bound: bytes, place: Place) -> str:
    """The cursor of a place."""
    return seal_cursor(_FORMAT, bound, freeze([place.offset, place.total, list(place.key)]).data)


def read(cursor: object, bound: bytes) -> Place:
    """The place of a cursor.

    Raises:
        UsageError: `cursor-invalid` where this product did not issue it, `cursor-mismatch` where it belongs to
            another source or query.
    """
    place = open_cursor(_FORMAT, cursor, bound, belongs="another state of the source, `where`, table")
    try:
        offset, total, key = values.decode(parse(place))
    except (AffidavitError, TypeError, ValueError):
        raise invalid_cursor() from None
    return Place(offset=offset, total=total, key=tuple(cast("list[Any]", key)))
