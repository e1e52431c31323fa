"""The value domain of records: Python values as JSON, reversibly.

JSON holds null, booleans, text, lists, mappings with text keys, integers within +-(2**53 - 1) and floats that are not
integers. What it cannot hold is *tagged*, an object with one key:

| tag                                     | holds                                                                |
|-----------------------------------------|----------------------------------------------------------------------|
| `{"$int": "9223372036854775807"}`       | an integer beyond +-(2**53 - 1), decimal                             |
| `{"$float": "1.0"}`                     | a float that JSON would make an integer, or `nan`, `inf`, `-inf`     |
| `{"$bytes": "aGk="}`                    | bytes, base64                                                        |
| `{"$datetime": ...}`, `{"$date": ...}`  | ISO 8601; a zone is kept as its offset from UTC at that time         |
| `{"$decimal": "1.10"}`                  | a `decimal.Decimal`, digit for digit                                 |
| `{"$uuid": ...}`                        | a `uuid.UUID`                                                        |
| `{"$text": "7aCA"}`                     | text with lone surrogates, base64 of its UTF-8 with surrogates       |

A key that starts with `$` gains one more `$`; a key with lone surrogates becomes `$text:` and the base64. One value has
exactly one encoding, and `decode` refuses every other spelling, so that identity over encoded values is sound.

Everything else is refused with the path of the offending value: tuples, sets, keys that are not text, subclasses of
the types above (their type would be lost), and any other object. `soften` makes ordinary Python results fit, and says
what it did.

This module is also imported inside the sandbox: standard library only, and nothing that is not needed at once.
"""

from __future__ import annotations

import sys
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from affidavit.evidence._paths import Refused, too_deep, type_of
from affidavit.evidence._soften import soften

__all__ = [
    "MAX_DEPTH",
    "SAFE_INTEGER",
    "JsonValue",
    "check_encoded",
    "decode",
    "encode",
    "is_utf8",
    "plain",
    "soften",
]

JsonValue: TypeAlias = Any

MAX_DEPTH: Final = 100
"""Levels of containers that an encoded value may have, its tags included."""

SAFE_INTEGER: Final = 2**53 - 1
"""The largest magnitude of integer that JSON carries exactly everywhere."""

_MAX_BITS: Final = 2**18  # converting digits is quadratic: 0.1 s at this size
_INT_DIGITS: Final = 4000  # below the interpreter's own bound for int <-> str

_HINTS: Final = {
    "tuple": "make it a list",
    "set": "make it a sorted list",
    "frozenset": "make it a sorted list",
    "bytearray": "make it bytes",
    "memoryview": "make it bytes",
    "time": "use text, or a datetime",
    "timedelta": "use a number of seconds",
    "complex": "use a list of two numbers",
    "generator": "make it a list",
    "coroutine": "await it",
}


def encode(value: Any, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """The tagged JSON tree of a Python value. The tree shares no container with `value`.

    Args:
        value: exact built-in types of the value domain, in any nesting.
        max_depth: levels of containers allowed, tags included.

    Raises:
        UsageError: `value-unsupported` or `value-too-deep`; `details.path` names the place, like `$.rows[3].x`.
    """
    try:
        return _encode(value, max_depth)
    except Refused as refused:
        raise _bounded(refused, max_depth).as_error(value) from None
    except RecursionError:
        raise too_deep(max_depth).as_error(None) from None


def decode(json: JsonValue, *, max_depth: int = MAX_DEPTH) -> Any:
    """The Python value of a tagged JSON tree. The value shares no container with `json`.

    Raises:
        UsageError: `value-unsupported` for an unknown or malformed tag, or one that `encode` would not have written;
            `value-too-deep`. `details.path` names the place.
    """
    try:
        return _decode(json, max_depth)
    except Refused as refused:
        raise _bounded(refused, max_depth).as_error(json) from None
    except RecursionError:
        raise too_deep(max_depth).as_error(None) from None


def check_encoded(json: JsonValue, *steps: str | int, max_depth: int = MAX_DEPTH) -> None:
    """See that a JSON tree is the one encoding of a value: what `encode` writes, tag by tag.

    Unlike `decode` it makes no value, and refuses plain numbers that must be tagged, too.

    Args:
        json: the tree.
        steps: the way to it in the document that holds it, for `details.path`.
        max_depth: levels of containers allowed, tags included.

    Raises:
        UsageError: as `decode`.
    """
    try:
        _check(json, max_depth)
    except Refused as refused:
        refused.steps += reversed(steps)
        raise _bounded(refused, max_depth).as_error(None) from None
    except RecursionError:
        raise too_deep(max_depth).as_error(None) from None


def plain(json: JsonValue) -> JsonValue:
    """How people and MCP clients see a tagged tree: finite `$float` tags as plain numbers, other tags as they are."""
    kind = type_of(json)
    if kind is dict:
        if len(json) == 1:
            text = json.get("$float")
            if type(text) is str and text not in ("nan", "inf", "-inf"):
                return float(text)
        return {key: plain(item) for key, item in json.items()}
    if kind is list:
        return [plain(item) for item in json]
    return json


def _bounded(refused: Refused, max_depth: int) -> Refused:
    """Fill in the bound, which the walk itself only counts down."""
    if refused.code == "value-too-deep":
        filled = too_deep(max_depth)
        filled.steps = refused.steps
        return filled
    return refused


# ---- encoding ----


def _encode(value: Any, room: int) -> JsonValue:
    kind = type_of(value)
    if kind is str:
        return value if value.isascii() or is_utf8(value) else _tagged(value, kind, room)
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else _tagged(value, kind, room)
    if kind is bool or value is None:
        return value
    if kind is dict:
        return _encode_dict(value, room - 1)
    if kind is list:
        return _encode_list(value, room - 1)
    if kind is float and not value.is_integer() and value - value == 0.0:
        return value
    return _tagged(value, kind, room)


def _encode_dict(value: dict[Any, Any], room: int) -> JsonValue:
    if room < 0:
        raise too_deep(0)
    out: dict[str, JsonValue] = {}
    key = None
    try:
        for key, item in value.items():
            if type(key) is not str:
                raise Refused(f"a key of type {type(key).__name__}", "keys must be text: use str(key)")
            name = key if key.isascii() and key[:1] != "$" else _encode_key(key)
            kind = type_of(item)
            if (kind is str and item.isascii()) or kind is bool or item is None:
                out[name] = item  # the most frequent cases, without a call
            else:
                out[name] = _encode(item, room)
    except Refused as refused:
        refused.steps.append(key)
        raise
    return out


def _encode_list(value: list[Any], room: int) -> JsonValue:
    if room < 0:
        raise too_deep(0)
    out: list[JsonValue] = []
    append = out.append
    try:
        for item in value:
            append(item if type(item) is str and item.isascii() else _encode(item, room))
    except Refused as refused:
        refused.steps.append(len(out))
        raise
    return out


def _encode_key(key: str) -> str:
    if not is_utf8(key):
        return "$text:" + _base64(key.encode("utf-8", "surrogatepass"))
    return "$" + key if key[:1] == "$" else key


def _tagged(value: Any, kind: type[Any], room: int) -> JsonValue:
    found = _tag_of(kind)
    if found is None:
        raise Refused(f"a value of type {kind.__name__}", _hint(kind))
    if room < 1:
        raise too_deep(0)
    tag, to_text = found
    return {tag: to_text(value)}


def _tag_of(kind: type[Any]) -> tuple[str, Callable[[Any], str]] | None:
    """The tag and writer of an exact type. Types of lazily imported modules count only if they are the real ones."""
    module = kind.__module__
    found = _TAGS.get((module, kind.__qualname__))
    if found is None or getattr(sys.modules.get(module), kind.__qualname__, None) is not kind:
        return None
    return found


def _hint(kind: type[Any]) -> str:
    for base in kind.__mro__[1:]:
        if base in (dict, list, str, int, float, bytes) or _tag_of(base) is not None:
            return f"convert it with {base.__name__}(...)"
    known = _HINTS.get(kind.__name__)
    if known is not None:
        return known
    if issubclass(kind, BaseException):
        return "make it text: str(error), or repr(error) to keep its type"
    if issubclass(kind, Iterable):
        return "make it a list: list(...)"
    return "convert it to text, numbers, lists and mappings"


def is_utf8(text: str) -> bool:
    """Whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _from_base64(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except Base64Error as error:
        raise ValueError(str(error)) from None


def _int_text(value: int) -> str:
    if value.bit_length() <= 3 * _INT_DIGITS:
        return str(value)
    if value.bit_length() > _MAX_BITS:
        raise Refused(
            f"an integer of {value.bit_length()} bits", f"at most {_MAX_BITS} bits", code="value-too-large"
        )
    from decimal import Decimal

    return str(Decimal(value))  # the interpreter refuses to write more than 4,300 digits itself


def _text_int(text: str) -> int:
    if len(text) <= _INT_DIGITS:
        return int(text)
    if len(text) > _MAX_BITS // 3:
        raise Refused(
            f"an integer of {len(text)} digits", f"at most {_MAX_BITS} bits", code="value-too-large"
        )
    from decimal import Decimal

    return int(Decimal(text)) if text.lstrip("-").isdigit() else 0  # 0 is not spelt so: refused as malformed


def _datetime_text(value: Any) -> str:
    offset = value.utcoffset()
    if offset and offset.microseconds:
        raise Refused("a datetime whose offset from UTC has a fraction of a second", "use whole seconds")
    return value.isoformat()


def _text_datetime(text: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(text)


def _text_date(text: str) -> Any:
    from datetime import date

    return date.fromisoformat(text)


def _text_decimal(text: str) -> Any:
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def _text_uuid(text: str) -> Any:
    from uuid import UUID

    return UUID(text)


_TAGS: Final[dict[tuple[str, str], tuple[str, Callable[[Any], str]]]] = {
    ("builtins", "int"): ("$int", _int_text),
    ("builtins", "float"): ("$float", repr),
    ("builtins", "bytes"): ("$bytes", _base64),
    ("builtins", "str"): ("$text", lambda value: _base64(value.encode("utf-8", "surrogatepass"))),
    ("datetime", "datetime"): ("$datetime", _datetime_text),
    ("datetime", "date"): ("$date", lambda value: value.isoformat()),
    ("decimal", "Decimal"): ("$decimal", str),
    ("uuid", "UUID"): ("$uuid", str),
}

_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "$int": _text_int,
    "$float": float,
    "$bytes": _from_base64,
    "$text": lambda text: _from_base64(text).decode("utf-8", "surrogatepass"),
    "$datetime": _text_datetime,
    "$date": _text_date,
    "$decimal": _text_decimal,
    "$uuid": _text_uuid,
}


_LEAVES: Final = frozenset({str, bool, type(None)})


# ---- decoding ----


def _decode(json: JsonValue, room: int) -> Any:
    kind = type_of(json)
    if kind is dict:
        return _decode_dict(json, room - 1)
    if kind is list:
        return _decode_list(json, room - 1)
    return json


def _decode_dict(json: dict[str, JsonValue], room: int) -> Any:
    if room < 0:
        raise too_deep(0)
    out: dict[str, Any] = {}
    key = None
    try:
        for key, item in json.items():
            name = key
            if key[:1] == "$":
                if len(json) == 1 and key in _READERS:
                    return _untag(key, item)
                name = _decode_key(key)
            kind = type_of(item)
            out[name] = _decode(item, room) if kind is dict or kind is list else item
    except Refused as refused:
        refused.steps.append(key)
        raise
    return out


def _decode_list(json: list[JsonValue], room: int) -> Any:
    if room < 0:
        raise too_deep(0)
    out: list[Any] = []
    try:
        for item in json:
            kind = type_of(item)
            out.append(_decode(item, room) if kind is dict or kind is list else item)
    except Refused as refused:
        refused.steps.append(len(out))
        raise
    return out


def _decode_key(key: str) -> str:
    if key[:2] == "$$":
        return key[1:]
    if key[:6] == "$text:":
        try:
            text = _from_base64(key[6:]).decode("utf-8", "surrogatepass")
        except ValueError:
            text = ""
        if _encode_key(text) == key:
            return text
    raise Refused("an unknown or misplaced tag", "write a key that starts with $ with one more $")


def _untag(tag: str, text: JsonValue) -> Any:
    value = None
    if type(text) is str:
        try:
            value = _READERS[tag](text)
        except (ValueError, OverflowError):
            value = None
    # One value, one spelling: what `encode` would not have written is refused.
    if value is None or _encode(value, 1) != {tag: text}:
        raise Refused(f"a malformed {tag} tag", "write the tag as `encode` does")
    return value


# ---- checking ----


def _check(json: JsonValue, room: int) -> None:
    kind = type_of(json)
    if kind is dict or kind is list:
        if room < 1:
            raise too_deep(0)
        if kind is dict and len(json) == 1 and (tag := next(iter(json))) in _READERS:
            _untag(tag, json[tag])
            return
        _check_items(json.items() if kind is dict else _enumerated(json), room - 1)
    elif kind is float and json.is_integer():
        raise Refused("a float that must be tagged", "write the value as `encode` does")
    elif kind is int and not -SAFE_INTEGER <= json <= SAFE_INTEGER:
        raise Refused("an integer that must be tagged", "write the value as `encode` does")


def _enumerated(items: list[JsonValue]) -> Iterable[tuple[Any, JsonValue]]:
    return enumerate(items)


def _check_items(items: Iterable[tuple[Any, JsonValue]], room: int) -> None:
    step = None
    try:
        for step, item in items:
            if type(step) is str and step[:1] == "$":
                _decode_key(step)
            if type_of(item) not in _LEAVES:
                _check(item, room)
    except Refused as refused:
        refused.steps.append(step)
        raise
