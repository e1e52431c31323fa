"""A value as much of it as a reader can afford, with every cut named and a way to what was cut.

Values here are JSON as doors show it (`values.plain`). Whatever is cut is named by its RFC 6901 pointer, which a
reader turns into an expression of the next script or into a call of `read`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, cast

import orjson

from affidavit.evidence.record import JsonValue

__all__ = [
    "PREVIEW_BYTES",
    "WHOLE_BYTES",
    "Cut",
    "Preview",
    "kind_of",
    "preview",
    "size_of",
    "subscripts",
    "token",
]

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
        if inside and depth >= bounds.depth:
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
        return {key: self.of(item, f"{pointer}/{token(key)}", depth + 1) for key, item in kept}

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


def token(key: str) -> str:
    """A key as a part of a pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def subscripts(value: JsonValue, pointer: str) -> str:
    """The Python subscripts that lead to a place of a value: `["rows"][3]` for `/rows/3`."""
    path = ""
    for part in pointer.split("/")[1:]:
        if isinstance(value, list):
            path += f"[{part}]"
            value = cast("list[JsonValue]", value)[int(part)]
        else:
            key = part.replace("~1", "/").replace("~0", "~")
            quoted = json.dumps(key, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
            path += f"[{quoted}]"
            value = cast("dict[str, JsonValue]", value)[key]
    return path
