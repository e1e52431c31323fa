"""The canonical form of JSON: RFC 8785, byte for byte, and a strict reader.

`rfc8785` is the definition. `orjson` is about forty times as fast and writes the same bytes for most documents, so it
is used where one walk over the document proves that it must: exact built-in types, integers within +-(2**53 - 1),
floats that are not integers and have 1e-3 <= |x| < 1e15, and no key with a character above U+D7FF (beyond which the
order of UTF-16 units and of code points part). Property tests hold the two against each other.
"""

from __future__ import annotations

import json as stdlib_json
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from types import NoneType
from typing import Any, Final, NoReturn

import orjson
import rfc8785

from affidavit.errors import UsageError
from affidavit.evidence._paths import Refused, too_deep, type_of
from affidavit.evidence.record import JsonValue
from affidavit.evidence.values import MAX_DEPTH, SAFE_INTEGER, encode

__all__ = ["MAX_DOCUMENT_DEPTH", "CanonicalJson", "canonical", "digest", "freeze", "parse"]

MAX_DOCUMENT_DEPTH: Final = 200
"""Levels that `parse` reads: an encoded value inside the envelopes of records, events and bundles."""

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_WIDE: Final = (
    1 << 22
)  # values on one level after which the quick look gives up (shared containers can explode)
_LAST_COMMON_KEY: Final = "\ud7ff"
_TEXT: Final[frozenset[type[Any]]] = frozenset({str})
_PLAIN: Final[frozenset[type[Any]]] = frozenset({str, int, bool, NoneType})


@dataclass(frozen=True, slots=True)
class CanonicalJson:
    """JSON that is canonical bytes already. It stands for its value wherever `canonical` and records take JSON.

    Holding a value in this form means that it is walked once, however often it is hashed, measured, sent and stored.
    """

    data: bytes

    def value(self) -> JsonValue:
        """The JSON tree, fresh each time."""
        return orjson.loads(self.data)


def canonical(json: JsonValue, *, max_depth: int = MAX_DEPTH) -> bytes:
    """The RFC 8785 bytes of a JSON tree. Parts of it may be `CanonicalJson`.

    Args:
        json: dicts with text keys, lists, text, numbers, booleans and None. Of Python values use `encode` first, or
            `freeze`.
        max_depth: levels of containers allowed; parts that are canonical already are not looked into.

    Raises:
        UsageError: `value-unsupported` (an integer beyond +-(2**53 - 1), a float that is not finite, text with lone
            surrogates, anything that is not JSON) or `value-too-deep`; `details.path` names the place.
    """
    if type(json) is CanonicalJson:
        return json.data
    if _orjson_is_exact(json, max_depth):
        try:
            return orjson.dumps(json, default=_fragment, option=_OPTIONS)
        except TypeError:  # lone surrogates
            pass
    try:
        return rfc8785.dumps(_checked(json, max_depth, max_depth))
    except Refused as refused:
        raise refused.as_error(json) from None
    except RecursionError:
        raise too_deep(max_depth).as_error(None) from None


def freeze(value: Any, *, max_depth: int = MAX_DEPTH) -> CanonicalJson:
    """The canonical form of a Python value: `canonical(encode(value))`, in one pass for plain values.

    Raises:
        UsageError: as `encode` does.
    """
    if _orjson_is_exact(value, max_depth):
        try:
            data = orjson.dumps(value, option=_OPTIONS)
        except TypeError:  # lone surrogates, which encoding tags
            data = b'"$'
        # A `$` after a quote may begin a key, which encoding escapes. It rarely does: take the exact way then.
        if b'"$' not in data:
            return CanonicalJson(data)
    return CanonicalJson(canonical(encode(value, max_depth=max_depth), max_depth=max_depth))


def digest(data: bytes) -> str:
    """The address of bytes: `sha256:` and 64 lower-case hexadecimal digits."""
    return "sha256:" + sha256(data).hexdigest()


def parse(data: bytes | str, *, max_depth: int = MAX_DOCUMENT_DEPTH) -> JsonValue:
    r"""Read JSON strictly: one document, no repeated keys, no NaN or Infinity, integers exact at any size.

    Numbers with a fraction or an exponent become floats. Lone surrogates (`"\ud800"`) are read; `encode` tags them.

    Raises:
        UsageError: `json-invalid`, with the repeated key in `details.key`, or `value-too-deep`.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise _invalid("a byte order mark before the document", "save the text without one")
    try:
        json = stdlib_json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except stdlib_json.JSONDecodeError as error:
        raise _invalid(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise too_deep(max_depth).as_error(None) from None
    except ValueError as error:  # more digits than the interpreter converts
        raise _invalid(str(error)) from None
    _bound(json, max_depth)
    return json


# ---- canonical form ----


def _orjson_is_exact(json: Any, max_depth: int) -> bool:
    """Whether orjson provably writes the canonical bytes, or refuses to (large integers, lone surrogates).

    Goes level by level, which bounds depth and cycles. Most containers hold plain values only, which the interpreter's
    own loops see through.
    """
    if type_of(json) is not dict and type_of(json) is not list:
        return _is_exact_scalar(json)
    level: list[Any] = [json]
    for _ in range(max_depth):
        below: list[Any] = []
        for item in level:
            if type_of(item) is dict and not _keys_sort_alike(item):
                return False
            inside: Collection[Any] = item.values() if type_of(item) is dict else item
            if not _PLAIN.issuperset(map(type_of, inside)) and not _collect(inside, below):
                return False
        if not below:
            return True
        if len(below) > _WIDE:
            return False
        level = below
    return False


def _collect(inside: Collection[Any], containers: list[Any]) -> bool:
    """Note the containers among values; False where another value is not exact."""
    for value in inside:
        kind = type_of(value)
        if kind is dict or kind is list:
            containers.append(value)
        elif kind not in _PLAIN and not _is_exact_scalar(value):
            return False
    return True


def _is_exact_scalar(item: Any) -> bool:
    kind = type_of(item)
    if kind is float:
        return 1e-3 <= abs(item) < 1e15 and not item.is_integer()
    return kind in _PLAIN or kind is CanonicalJson


def _keys_sort_alike(mapping: dict[Any, Any]) -> bool:
    if not _TEXT.issuperset(map(type_of, mapping)):
        return False
    together = "".join(mapping)
    return together.isascii() or max(together) <= _LAST_COMMON_KEY


def _fragment(item: Any) -> orjson.Fragment:
    if type(item) is CanonicalJson:
        return orjson.Fragment(item.data)
    raise TypeError


def _checked(json: Any, room: int, max_depth: int) -> Any:
    """A copy that `rfc8785` writes without fail, or the place of what is not JSON."""
    kind = type_of(json)
    if kind is CanonicalJson:
        return json.value()
    if room < 1 and (kind is list or kind is dict):
        raise too_deep(max_depth)
    if kind is list:
        return [_checked_below(index, item, room - 1, max_depth) for index, item in enumerate(json)]
    if kind is dict:
        for key in json:
            if type(key) is not str or _problem(key) is not None:
                refused = Refused("a key that JSON cannot hold", "encode the value first")
                refused.steps.append(key)
                raise refused
        return {key: _checked_below(key, item, room - 1, max_depth) for key, item in json.items()}
    problem = _problem(json)
    if problem is not None:
        raise Refused(*problem)
    return json


def _checked_below(step: Any, item: Any, room: int, max_depth: int) -> Any:
    try:
        return _checked(item, room, max_depth)
    except Refused as refused:
        refused.steps.append(step)
        raise


def _problem(scalar: Any) -> tuple[str, str] | None:
    kind = type_of(scalar)
    if kind is bool or scalar is None:
        return None
    if kind is int:
        fits = -SAFE_INTEGER <= scalar <= SAFE_INTEGER
        return (
            None
            if fits
            else ("an integer beyond +-(2**53 - 1)", "encode the value first, or send it as text")
        )
    if kind is float:
        return None if scalar - scalar == 0.0 else ("a float that is not finite", "encode the value first")
    if kind is str:
        try:
            scalar.encode()
        except UnicodeEncodeError:
            return ("text with a lone surrogate", "encode the value first")
        return None
    return (f"a value of type {kind.__name__}, which is not JSON", "encode the value first")


# ---- reading ----


def _invalid(problem: str, hint: str = "") -> UsageError:
    return UsageError("json-invalid", f"not valid JSON: {problem}", hint=hint)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) == len(pairs):
        return out
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise UsageError(
                "json-invalid",
                f"not valid JSON: the key {key!a} stands twice in one object",
                hint="keep one of the two",
                details={"key": key},
            )
        seen.add(key)
    raise AssertionError("unreachable: a repeat was counted")


def _no_constant(name: str) -> NoReturn:
    raise _invalid(f"{name} is not a JSON number", "write numbers that are not finite as text or null")


def _bound(json: Any, max_depth: int) -> None:
    """Refuse what the standard reader lets through: deep nesting, and numbers that overflow to infinity."""
    level: list[Any] = [json]
    depth = 0
    while level:
        below: list[Any] = []
        for item in level:
            kind = type_of(item)
            if kind is dict or kind is list:
                if depth == max_depth:
                    raise too_deep(max_depth).as_error(None)
                below += item.values() if kind is dict else item
            elif kind is float and item - item != 0.0:
                raise _invalid("a number beyond the range of a double", "write it as text")
        level = below
        depth += 1
