"""A part of a value: consecutive items, entries or characters of it, as many as a reply may hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from affidavit.evidence.record import JsonValue
from affidavit.runtime.rendering.preview import Cut, Preview, preview, size_of, token

__all__ = ["Page", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a value: consecutive items, entries or characters of it, or all of a plain one.

    Attributes:
        value: the part, of the same type as the whole.
        unit: `items`, `entries`, `characters`, or empty for what has no parts.
        total: how many units there are; 1 for what has no parts.
        offset: the first unit shown.
        returned: how many are shown.
        next_offset: where to go on, or None at the end.
        cuts: what is cut *inside* the units shown; only a unit that is too large by itself is cut.
        more_cuts: how many cuts are not listed.
    """

    value: JsonValue
    unit: str
    total: int
    offset: int
    returned: int
    next_offset: int | None
    cuts: tuple[Cut, ...] = ()
    more_cuts: int = 0


def page(value: JsonValue, *, pointer: str, offset: int, limit: int, max_bytes: int) -> Page:
    """The units of a value from `offset` on, as many as fit.

    Args:
        value: JSON as doors show it.
        pointer: where it stands, for the pointers of cuts.
        offset: the first unit wanted.
        limit: at most so many units; 0 for as many as fit.
        max_bytes: bytes of JSON that the part may have.
    """
    if isinstance(value, str):
        return _characters(value, offset, limit, max_bytes)
    if isinstance(value, list):
        items = cast("list[JsonValue]", value)
        sizes = (size_of(item) + 1 for item in items[offset:])
        taken = _fitting(sizes, limit, max_bytes)
        return _units(items[offset : offset + taken], "items", len(items), offset, pointer, max_bytes)
    if isinstance(value, dict):
        entries = list(cast("dict[str, JsonValue]", value).items())
        sizes = (size_of(key) + size_of(item) + 2 for key, item in entries[offset:])
        taken = _fitting(sizes, limit, max_bytes)
        return _units(
            dict(entries[offset : offset + taken]), "entries", len(entries), offset, pointer, max_bytes
        )
    return Page(value=value, unit="", total=1, offset=0, returned=1, next_offset=None)


def _characters(text: str, offset: int, limit: int, max_bytes: int) -> Page:
    part = text[offset : offset + min(limit or max_bytes, max_bytes)]
    while size_of(part) > max_bytes + 2:  # the quotes are not counted; long characters and escapes are
        part = part[: len(part) * max_bytes // size_of(part) or 1]
    return Page(
        value=part,
        unit="characters",
        total=len(text),
        offset=offset,
        returned=len(part),
        next_offset=_next(offset + len(part), len(text)),
    )


def _units(
    part: list[JsonValue] | dict[str, JsonValue],
    unit: str,
    total: int,
    offset: int,
    pointer: str,
    max_bytes: int,
) -> Page:
    seen = Preview(value=None)
    shown: JsonValue = part
    if len(part) == 1 and size_of(part) > max_bytes:
        if isinstance(part, list):
            seen = preview(part[0], pointer=f"{pointer}/{offset}")
            shown = [seen.value]
        else:
            [(key, item)] = part.items()
            seen = preview(item, pointer=f"{pointer}/{token(key)}")
            shown = {key: seen.value}
    return Page(
        value=shown,
        unit=unit,
        total=total,
        offset=offset,
        returned=len(part),
        next_offset=_next(offset + len(part), total),
        cuts=seen.cuts,
        more_cuts=seen.more_cuts,
    )


def _fitting(sizes: Iterator[int], limit: int, max_bytes: int) -> int:
    """How many units fit; always one, so that reading gets on."""
    taken = used = 0
    for size in sizes:
        used += size
        if (taken and used > max_bytes) or (limit and taken >= limit):
            break
        taken += 1
    return taken


def _next(after: int, total: int) -> int | None:
    return after if after < total else None
