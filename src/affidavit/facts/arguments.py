"""Arguments that every query takes, checked: whole numbers, texts, and where a page starts."""

from __future__ import annotations

from affidavit.errors import UsageError
from affidavit.facts.cursor import read_cursor

__all__ = ["not_both", "page_start", "text", "whole"]


def whole(name: str, value: object, low: int, high: int | None) -> int:
    """The value of an argument that is a whole number from `low` to `high` (None: without end).

    Raises:
        UsageError: `limit-invalid`.
    """
    if type(value) is int and value >= low and (high is None or value <= high):
        return value
    bounds = f"{low} or more" if high is None else f"from {low} to {high}"
    raise UsageError(
        "limit-invalid",
        f"`{name}` is {repr(value)[:80]}; it is a whole number {bounds}",
        hint=f"give a `{name}` {bounds}",
        details={"path": f"$.{name}"},
    )


def text(place: str, value: object) -> str:
    """The value of an argument, or of a place in one, that is an id.

    Raises:
        UsageError: `arguments-invalid`.
    """
    if isinstance(value, str):
        return value
    raise UsageError(
        "arguments-invalid",
        f"`{place}` is of type {type(value).__name__}, not text",
        hint="ids are text",
        details={"path": f"$.{place}"},
    )


def not_both(cursor: str | None, offset: int | None) -> None:
    """See that a page's start is said in one way at most.

    Raises:
        UsageError: `limit-invalid`.
    """
    if cursor is not None and offset is not None:
        raise UsageError(
            "limit-invalid",
            "`cursor` and `offset` are two ways to say where a page starts",
            hint="give one of them",
            details={"path": "$.offset"},
        )


def page_start(cursor: str | None, offset: int | None, bound: bytes) -> int:
    """The number of a page's first row, from the cursor or the offset.

    Args:
        cursor: where an earlier page of the same query ended.
        offset: the number itself; not together with a cursor.
        bound: digest of the query, which the cursor must belong to (see `cursor.binding`).

    Raises:
        UsageError: `limit-invalid`, `cursor-invalid` or `cursor-mismatch`.
    """
    not_both(cursor, offset)
    if cursor is None:
        return whole("offset", 0 if offset is None else offset, 0, None)
    return read_cursor(cursor, bound)
