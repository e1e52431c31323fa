"""Making the ordinary results of scripts fit the value domain, and saying so. Standard library only."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from affidavit.evidence._paths import Refused, path_of, too_deep, type_of

__all__ = ["soften"]

_MAX_DEPTH: Final = 100
_WIDE: Final = 1 << 20  # values on one level after which the quick look gives up
_KEYS: Final = frozenset({int, float, bool, type(None)})
_WORDS: Final = {None: "null", True: "true", False: "false"}
_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


def soften(value: Any) -> tuple[Any, list[str]]:
    """Convert what scripts commonly return and records do not hold; everything else is left unchanged.

    Tuples become lists, sets sorted lists, dataclass instances dicts, enum members their values, subclasses of dict,
    list, str, int, float and bytes (`Counter`, `defaultdict`) their base type, and keys that are numbers, booleans or
    None their JSON text.

    Returns:
        The value (itself, when nothing had to change) and one note per converted type, naming the first place:
        `tuple at $.a became a list`.

    Raises:
        UsageError: `value-unsupported` for a container that holds itself, `value-too-deep`.
    """
    if _is_exact(value):
        return value, []
    softener = _Softener()
    try:
        result = softener.soften(value, _MAX_DEPTH)
    except Refused as refused:
        raise refused.as_error(value) from None
    return result, softener.notes()


def _is_exact(value: Any) -> bool:
    """Whether only exact built-in types are in it, so that there is nothing to do. Level by level, bounded."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = type_of(item)
            if kind in _SCALARS:
                continue
            if kind is dict:
                if not all(type(key) is str for key in item):
                    return False
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            else:
                return False
        if not below:
            return True
        if len(below) > _WIDE:
            return False
        level = below
    return False


class _Softener:
    """One conversion: the place that is looked at, and what was converted so far."""

    def __init__(self) -> None:
        self.path: list[Any] = []
        self.made: dict[tuple[str, str], tuple[str, int]] = {}

    def notes(self) -> list[str]:
        return [
            f"{source} at {path} became a {target}" + (f" ({more} more places)" if more else "")
            for (source, target), (path, more) in self.made.items()
        ]

    def note(self, value: Any, target: str) -> None:
        kind = (type(value).__name__, target)
        first, more = self.made.get(kind, (path_of(self.path), -1))
        self.made[kind] = (first, more + 1)

    def soften(self, value: Any, room: int) -> Any:
        kind = type_of(value)
        if kind in _SCALARS:
            return value
        if isinstance(value, Enum):
            self.note(value, "plain value")
            return self.soften(value.value, room)
        fields: Any = getattr(kind, "__dataclass_fields__", None)
        if fields is not None:
            self.note(value, "dict")
            pairs = [(name, getattr(value, name)) for name, field in fields.items() if _is_field(field)]
            return self.mapping(pairs, room - 1)
        if isinstance(value, dict):
            if kind is not dict:
                self.note(value, "dict")
            return self.mapping(list(value.items()), room - 1)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return self.sequence(value, kind, room)

    def sequence(self, value: Any, kind: type[Any], room: int) -> Any:
        if isinstance(value, list | tuple):
            if kind is not list:
                self.note(value, "list")
            return self.items(list(value), room - 1)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, set | frozenset):
            self.note(value, "sorted list")
            return self.items(_ordered(value), room - 1)  # pyright: ignore[reportUnknownArgumentType]
        return self.scalar(value)

    def scalar(self, value: Any) -> Any:
        if isinstance(value, str):
            self.note(value, "str")
            return str.__str__(value)  # not str(value): a subclass may say something else there
        if isinstance(value, int):
            self.note(value, "int")
            return int.__int__(value)
        if isinstance(value, float):
            self.note(value, "float")
            return float.__float__(value)
        if isinstance(value, bytes):
            self.note(value, "bytes")
            return bytes(memoryview(value))
        return value

    def mapping(self, pairs: list[tuple[Any, Any]], room: int) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key, item in pairs:
            out[self.key(key)] = self.below(key, item, room)
        if len(out) < len(pairs):  # 1 and "1" are two keys: rather refused by `encode` than one of them lost
            return dict(pairs)
        return out

    def key(self, key: Any) -> Any:
        """A key as JSON writes it: text stays, numbers, booleans and None become their text."""
        if isinstance(key, str):
            return str.__str__(key)
        if type(key) not in _KEYS:
            return key
        self.note(key, "text key")
        return _WORDS[key] if key is None or isinstance(key, bool) else repr(key)

    def items(self, values: list[Any], room: int) -> list[Any]:
        return [self.below(index, item, room) for index, item in enumerate(values)]

    def below(self, step: Any, item: Any, room: int) -> Any:
        if room < 0:
            raise too_deep(_MAX_DEPTH)
        self.path.append(step)
        try:
            return self.soften(item, room)
        except Refused as refused:
            refused.steps.append(step)
            raise
        finally:
            self.path.pop()


def _is_field(field: Any) -> bool:
    """Pseudo-fields (`ClassVar`, `InitVar`) are in the same table and hold no value of the instance."""
    return getattr(getattr(field, "_field_type", None), "name", "") == "_FIELD"


def _ordered(values: set[Any] | frozenset[Any]) -> list[Any]:
    """A total order that does not depend on hashing: numbers, text, bytes, tuples, sets, then all else by type."""
    return sorted(values, key=_sort_key)


def _sort_key(item: Any) -> tuple[Any, ...]:
    if isinstance(item, int | float) and item == item:
        return (0, item)
    if isinstance(item, str):
        return (1, item)
    if isinstance(item, bytes):
        return (2, item)
    if isinstance(item, tuple):
        return (3, tuple(map(_sort_key, item)))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(item, frozenset):
        return (4, tuple(map(_sort_key, _ordered(item))))  # pyright: ignore[reportUnknownArgumentType]
    return (5, type(item).__name__, str(item))
