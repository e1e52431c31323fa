"""Cursors of tables: the place after a row, bound to one query over one source.

Beside what every cursor has (see `facts.cursor`) they hold the key of the last row, so that the next page is found by
an index and not by counting, and the number of matching rows as the first page counted it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Final, cast

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, freeze, parse
from affidavit.evidence.record import JsonValue

__all__ = ["Place", "bound_of", "issue", "read"]

_FORMAT: Final = b"\x02"
_BOUND: Final = 16
_CHECK: Final = 4
_LONGEST: Final = 1 << 20


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
    return hashlib.sha256(canonical(question)).digest()[:_BOUND]


def issue(bound: bytes, place: Place) -> str:
    """The cursor of a place."""
    body = _FORMAT + bound + freeze([place.offset, place.total, list(place.key)]).data
    return base64.urlsafe_b64encode(body + _check(body)).rstrip(b"=").decode("ascii")


def read(cursor: object, bound: bytes) -> Place:
    """The place of a cursor.

    Raises:
        UsageError: `cursor-invalid` where this product did not issue it, `cursor-mismatch` where it belongs to
            another source or query.
    """
    body = _body(cursor)
    if body is None:
        raise _invalid()
    if body[len(_FORMAT) : len(_FORMAT) + _BOUND] != bound:
        raise UsageError(
            "cursor-mismatch",
            "the cursor belongs to another state of the source, `where`, table or contract version",
            hint="repeat the query that returned it with the same `where`, or start again without a cursor",
        )
    try:
        offset, total, key = values.decode(parse(body[len(_FORMAT) + _BOUND :]))
    except (AffidavitError, TypeError, ValueError):
        raise _invalid() from None
    return Place(offset=offset, total=total, key=tuple(cast("list[Any]", key)))


def _body(cursor: object) -> bytes | None:
    if not isinstance(cursor, str) or not cursor.isascii() or len(cursor) > _LONGEST:
        return None
    text = cursor.encode("ascii")
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    body, check = data[:-_CHECK], data[-_CHECK:]
    issued = base64.urlsafe_b64encode(data).rstrip(b"=") == text
    return body if body[:1] == _FORMAT and check == _check(body) and issued else None


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"affidavit/cursor\n" + body).digest()[:_CHECK]


def _invalid() -> UsageError:
    return UsageError(
        "cursor-invalid",
        "the cursor is not one that a page returned",
        hint="pass page.next_cursor unchanged, or leave the cursor out to start at the first row",
    )
