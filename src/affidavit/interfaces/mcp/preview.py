"""A value as much of it as a reader can afford, with every cut named and a way to what was cut.

Values here are JSON as doors show it (`values.plain`). Whatever is cut is named by its RFC 6901 pointer, so that one
call of `read` reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, cast

import orjson

from affidavit.evidence.record import JsonValue

__all__ = ["PREVIEW_BYTES", "WHOLE_BYTES", "Cut", "Page", "Preview", "kind_of", "page", "preview", "size_of"]

PREVIEW_BYTES: Final = 8 << 10
"""Bytes of JSON that a preview never exceeds."""

WHOLE_BYTES: Final = 4 << 10
"""Values up to so many bytes of JSON are shown whole."""

_MAX_CUTS: Final = 12
_PATH_CHARACTERS: Final = 300
_FIRST_PATH_CHARACTERS: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One place of which less is shown than there is.

    Attributes:
        pointer: where, as an RFC 6901 pointer from the value's root.
        shown: how many units of it are shown.
        total: how many there are.
        unit: `items`, `entries`, `characters` or `levels` (a container that is not shown at all).
    """

    pointer: str
    shown: int
    total: int
    unit: str

    def as_json(self) -> dict[str, JsonValue]:
        """The cut as results show it."""
        return {"pointer": self.pointer, "shown": self.shown, "total": self.total, "unit": self.unit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A bounded view of a value. `cuts` is empty where it is the whole value; `more_cuts` counts those not listed."""

    value: JsonValue
    cuts: tuple[Cut, ...] = ()
    more_cuts: int = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    items: int
    entries: int
    characters: int
    depth: int


_STEPS: Final = (
    _Bounds(items=3, entries=24, characters=500, depth=5),
    _Bounds(items=3, entries=12, characters=160, depth=4),
    _Bounds(items=2, entries=8, characters=80, depth=3),
    _Bounds(items=1, entries=5, characters=40, depth=2),
)


@dataclass(slots=True)
class _Cutting:
    bounds: _Bounds
    cuts: list[Cut] = field(default_factory=list[Cut])

    def of(self, value: JsonValue, pointer: str, depth: int) -> JsonValue:
        bounds = self.bounds
        if isinstance(value, str):
            if len(value) <= bounds.characters:
                return value
            self._note(pointer, bounds.characters, len(value), "characters")
            return value[: bounds.characters] + "…"
        if not isinstance(value, list | dict):
            return value
        inside = cast("list[Any] | dict[str, Any]", value)
        if depth >= bounds.depth:
            self._note(pointer, 0, len(inside), "levels")
            return f"… {kind_of(inside)} of {len(inside)}"
        if isinstance(inside, list):
            if len(inside) > bounds.items:
                self._note(pointer, bounds.items, len(inside), "items")
            return [
                self.of(item, f"{pointer}/{place}", depth + 1)
                for place, item in enumerate(inside[: bounds.items])
            ]
        # A key too long to show ends the view, so that `offset` goes on exactly where it ended.
        kept = list(takewhile(lambda one: len(one[0]) <= bounds.characters, inside.items()))[: bounds.entries]
        if len(kept) < len(inside):
            self._note(pointer, len(kept), len(inside), "entries")
        return {key: self.of(item, f"{pointer}/{_token(key)}", depth + 1) for key, item in kept}

    def _note(self, pointer: str, shown: int, total: int, unit: str) -> None:
        self.cuts.append(Cut(pointer=pointer, shown=shown, total=total, unit=unit))


def preview(value: JsonValue, *, pointer: str = "", whole_bytes: int = WHOLE_BYTES) -> Preview:
    """A view of at most `PREVIEW_BYTES`: the whole value where it is small.

    Args:
        value: JSON as doors show it.
        pointer: where the value stands; the pointers of cuts begin with it.
        whole_bytes: up to this size nothing is cut.
    """
    if size_of(value) <= whole_bytes:
        return Preview(value=value)
    for bounds in _STEPS:
        cutting = _Cutting(bounds)
        shown = cutting.of(value, pointer, 0)
        if size_of(shown) <= PREVIEW_BYTES:
            bound = _FIRST_PATH_CHARACTERS
            listed: list[Cut] = []
            for cut in cutting.cuts:
                if len(cut.pointer) <= bound and len(listed) < _MAX_CUTS:
                    listed.append(cut)
                    bound = _PATH_CHARACTERS
            return Preview(value=shown, cuts=tuple(listed), more_cuts=len(cutting.cuts) - len(listed))
    units = len(cast("Any", value)) if isinstance(value, list | dict | str) else 1
    cut = Cut(pointer=pointer, shown=0, total=units, unit="levels")
    return Preview(value=f"… {kind_of(value)} of {units}", cuts=(cut,))


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
            seen = preview(item, pointer=f"{pointer}/{_token(key)}")
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


def size_of(value: JsonValue) -> int:
    """Bytes of a value as compact JSON."""
    return len(orjson.dumps(value))


_KINDS: Final[Sequence[tuple[type, str]]] = (
    (bool, "boolean"),
    (int, "number"),
    (float, "number"),
    (str, "text"),
    (list, "list"),
    (dict, "object"),
)


def kind_of(value: JsonValue) -> str:
    """What a JSON value is, in a word."""
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "null")


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
