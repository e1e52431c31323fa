"""`df.kit`: reading untidy replies, so that what is not there is an error and never a silent zero or empty text.

The one source of both engines: `cpython` imports it, `monty` runs its text (`monty/_kit.py`). So it is written in what
both have: functions, no classes, no generators. Nothing here calls, records or keeps anything.
"""

from __future__ import annotations

import decimal
import json
from typing import Any, Final, NoReturn

from affidavit.errors import FailedError

__all__ = ["NAMES", "get", "rows_of", "to_number", "unwrap"]

NAMES: Final = ("get", "rows_of", "to_number", "unwrap")
"""What scripts call, below `df.kit`."""

_NOTHING: Any = ["nothing"]
_WORD: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
_DIGITS: Final = "0123456789"
_SHOWN: Final = 10
_LONGEST: Final = 60
_MOST_COMPARED: Final = 200
_MOST_DIGITS: Final = 400
_MOST_POWER: Final = 6
_LEVELS: Final = 4
_ENVELOPES: Final = ("result", "data", "body", "response", "payload")
_BESIDES: Final = (
    "ok", "success", "status", "code", "message", "error", "errors", "meta", "metadata", "headers", "jsonrpc", "id",
)  # fmt: skip
_ROWS: Final = ("rows", "items", "results", "records", "entries", "data", "result", "values", "hits", "list")


def get(value: Any, path: Any, default: Any = _NOTHING) -> Any:
    """What stands at a path: `"main.temp"`, `"items[0].id"`, `["key.with.dots", 0]`.

    The default is for what is not there: a missing key, an index beyond the end, anything below null. A null that is
    there is None, and a path that leads into text or a number is an error either way.
    """
    return _found(value, _steps(path), default)


def rows_of(reply: Any, path: Any = None) -> list[dict[str, Any]]:
    """The rows of a reply: at a path, else the one list of objects in it, behind whatever envelope."""
    if path is not None:
        steps = _steps(path)
        return _checked(_found(reply, steps, _NOTHING), _place(steps))
    inner = unwrap(reply)
    if _is_list(inner):
        return _checked(inner, "$")
    if not _is_object(inner):
        _unfit("$", "rows", inner, "")
    if "rows" in inner and "evidence_id" in inner:  # a page of a collection
        return _checked(inner["rows"], "$.rows")
    return _searched(inner)


def unwrap(reply: Any) -> Any:
    """What a reply carries: text that is JSON is read, and envelopes such as `{"status": "ok", "data": ...}` come off.

    An envelope that says that it failed is an error. Everything else comes back as it is.
    """
    for _ in range(_LEVELS * 2):
        inner = _opened(reply)
        if inner is reply:
            break
        reply = inner
    return reply


def to_number(value: Any, path: Any = None, *, thousands: str = "", decimal_point: str = ".") -> int | float:
    """A number, or text that says one, at a path or itself; anything else is an error, null and "" included.

    Integers stay exact. Text is ASCII digits with a sign, a fraction and an exponent; what separates thousands is said.
    """
    steps = [] if path is None else _steps(path)
    found = _found(value, steps, _NOTHING)
    place = _place(steps)
    if isinstance(found, (bool, bytes)):
        _unfit(place, "number", found, "")
    if isinstance(found, str):
        return _said(found, place, thousands, decimal_point)
    if isinstance(found, int):
        return found
    if isinstance(found, float):
        if found - found != 0.0:  # infinite, or no number at all
            _unfit(place, "number", found, "")
        return found
    if isinstance(found, decimal.Decimal):
        return _said(str(found), place, "", ".")
    return _unfit(place, "number", found, "")


# ---- paths ----


def _found(value: Any, steps: list[Any], default: Any) -> Any:
    for at, step in enumerate(steps):
        here = steps[:at]
        if _is_object(value):
            if step not in value:
                return _missing(value, here, step, default)
            value = value[step]
        elif _is_list(value):
            if isinstance(step, str) and (step == "" or not _all_in(step, _DIGITS)):
                _unfit(_place(here), "object", value, "a list has numbers: [0] is the first, [-1] the last")
            index = int(step)
            if not -len(value) <= index < len(value):
                return _beyond(value, here, index, default)
            value = value[index]
        elif value is None and default is not _NOTHING:
            return default
        else:
            _unfit(_place(here), "object or list", value, "the path goes on to " + _place(steps))
    return value


def _missing(value: Any, here: list[Any], step: Any, default: Any) -> Any:
    if default is not _NOTHING:
        return default
    keys = [str(key) for key in value]
    near = _nearest(str(step), keys)
    place = _place([*here, step])
    message = "there is nothing at " + place + ": " + _place(here) + " has " + _listed(keys)
    hint = (
        "did you mean " + json.dumps(near) + "?"
        if near
        else "df.kit.get(value, path, default) allows for that"
    )
    raise FailedError("path-missing", message, hint=hint, details={"path": place, "nearest": near or None})


def _beyond(value: Any, here: list[Any], index: int, default: Any) -> Any:
    if default is not _NOTHING:
        return default
    place = _place([*here, index])
    message = "there is nothing at " + place + ": " + _place(here) + " has " + str(len(value)) + " items"
    hint = "df.kit.get(value, path, default) allows for that"
    raise FailedError("path-missing", message, hint=hint, details={"path": place, "nearest": None})


def _steps(path: Any) -> list[Any]:
    if isinstance(path, bool):
        _no_path(path)
    if isinstance(path, int):
        return [path]
    if isinstance(path, str):
        return _parsed(path)
    if not _is_sequence(path):
        _no_path(path)
    steps: list[Any] = []
    for step in path:
        if isinstance(step, bool) or not isinstance(step, (str, int)):
            _no_path(path)
        steps.append(step)
    return steps


def _parsed(path: str) -> list[Any]:
    """`a.b[0]["odd key"]`, with or without the `$` of the places in messages."""
    steps: list[Any] = []
    rest = path[1:] if path == "$" or path[:2] in ("$.", "$[") else "." + path if path[:1] != "[" else path
    while rest:
        if rest[0] == "[":
            inner, rest = _bracketed(rest, path)
            steps.append(inner)
        elif rest[0] == ".":
            length = 1
            while length < len(rest) and rest[length] not in ".[":
                length += 1
            if length == 1:
                _no_path(path)
            steps.append(rest[1:length])
            rest = rest[length:]
        else:
            _no_path(path)
    return steps


def _bracketed(rest: str, path: str) -> tuple[Any, str]:
    if rest[:2] == '["':
        end = 2
        while end < len(rest) and rest[end] != '"':
            end += 2 if rest[end] == "\\" else 1
        if rest[end : end + 2] != '"]':
            _no_path(path)
        try:
            return json.loads(rest[1 : end + 1]), rest[end + 2 :]
        except ValueError:
            _no_path(path)
    end = rest.find("]")
    digits = rest[1:end] if end > 0 else ""
    bare = digits[1:] if digits[:1] == "-" else digits
    if bare == "" or not _all_in(bare, _DIGITS):
        _no_path(path)
    return int(digits), rest[end + 1 :]


def _no_path(path: Any) -> NoReturn:
    message = _cut(repr(path)) + " is no path"
    hint = 'write "a.b[0]", or a list of keys and numbers: ["a", "b", 0]'
    raise FailedError("path-missing", message, hint=hint, details={"path": _cut(repr(path)), "nearest": None})


def _place(steps: list[Any]) -> str:
    text = "$"
    for step in steps:
        if isinstance(step, int):
            text += "[" + str(step) + "]"
        elif step != "" and _all_in(step, _WORD) and step[0] not in _DIGITS:
            text += "." + step
        else:
            text += "[" + json.dumps(step) + "]"
    return text


def _all_in(text: str, allowed: str) -> bool:
    for char in text:  # noqa: SIM110 - `all` over a generator is not there in every engine
        if char not in allowed:
            return False
    return True


# ---- envelopes and rows ----


def _opened(reply: Any) -> Any:
    if isinstance(reply, str):
        return _read(reply)
    if _is_list(reply) and len(reply) == 1:
        block: Any = reply[0]
        if _is_object(block) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return block["text"]
    if not _is_object(reply):
        return reply
    carriers: list[str] = [key for key in _ENVELOPES if key in reply]
    others: list[Any] = [key for key in reply if key not in carriers]
    if [key for key in others if key not in _BESIDES]:
        return reply
    if "id" in others and "jsonrpc" not in others:
        return reply
    _succeeded(reply)
    return reply[carriers[0]] if len(carriers) == 1 else reply


def _succeeded(reply: Any) -> None:
    """Refuse an envelope whose own words are that it failed."""
    said: Any = None
    for key in ("error", "errors"):
        if reply.get(key) not in (None, False, "", [], {}):
            said = reply[key]
    if said is None and (reply.get("ok") is False or reply.get("success") is False):
        said = reply.get("message") or "it says so"
    if said is None:
        return
    words = said if isinstance(said, str) else repr(said)
    message = "the reply says that it failed: " + words[:500]
    raise FailedError("tool-failed", message, details={"path": "$", "text": words[:2000]})


def _read(text: str) -> Any:
    """The object or list that a text says in JSON; any other text is itself."""
    if text.strip()[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    left: list[Any] = [[value, []]]
    while left:
        item, steps = left.pop()
        if _is_object(item):
            left += [[item[key], [*steps, key]] for key in item]
        elif _is_list(item):
            left += [[one, [*steps, at]] for at, one in enumerate(item)]
        elif isinstance(item, float) and item - item != 0.0:
            _unfit(_place(steps), "number", item, "the far side should send it as text")
        elif isinstance(item, str) and _is_torn(item):
            return text
    return value


def _is_torn(text: str) -> bool:
    """Whether it holds half a surrogate pair, which not every engine can hold."""
    try:
        text.encode("utf-8")
    except ValueError:
        return True
    return False


def _searched(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The one list of objects in an object, on the least deep level that has any."""
    level: list[Any] = [[value, []]]
    for _ in range(_LEVELS):
        found: list[Any] = []
        below: list[Any] = []
        for inner, steps in level:
            for key in inner:
                item = inner[key]
                if _is_list(item) and _may_be_rows(item, key):
                    found.append([item, [*steps, key]])
                if _is_object(item):
                    below.append([item, [*steps, key]])
        if len(found) == 1:
            return _checked(found[0][0], _place(found[0][1]))
        if found:
            places = [_place(one[1]) for one in found]
            message = "several lists could be the rows: " + ", ".join(places[:_SHOWN])
            raise FailedError(
                "value-unfit", message, hint="name one: df.kit.rows_of(reply, path)", details={"path": "$"}
            )
        level = below
    keys = [str(key) for key in value]
    message = "no list of rows is in it: $ has " + _listed(keys)
    hint = "name its place: df.kit.rows_of(reply, path); one object is one row: [reply]"
    raise FailedError("value-unfit", message, hint=hint, details={"path": "$"})


def _may_be_rows(items: list[Any], key: str) -> bool:
    """An empty list says nothing of what it would hold: there the name must."""
    if not items:
        return key in _ROWS
    for item in items:  # noqa: SIM110 - as above
        if not _is_object(item):
            return False
    return True


def _checked(value: Any, place: str) -> list[dict[str, Any]]:
    if not _is_list(value):
        _unfit(place, "list of rows", value, "")
    rows: list[Any] = list(value)
    for at, row in enumerate(rows):
        if not _is_object(row):
            _unfit(place + "[" + str(at) + "]", "row", row, "a row is an object")
    return rows


# ---- numbers ----


def _said(text: str, place: str, thousands: str, decimal_point: str) -> int | float:
    plain = text.strip()
    sign = "-" if plain[:1] == "-" else ""
    digits = plain[1:] if plain[:1] in ("-", "+") else plain
    mantissa, mark, exponent = digits.lower().partition("e")
    whole, point, fraction = mantissa.partition(decimal_point)
    whole = _ungrouped(whole, thousands)
    power = exponent[1:] if exponent[:1] in ("-", "+") else exponent
    fits = whole + fraction != "" and len(plain) <= _MOST_DIGITS and len(power) <= _MOST_POWER
    if not fits or (mark and power == "") or not _all_in(whole + fraction + power, _DIGITS):
        _unfit(place, "number", text, _number_hint(text, thousands))
    if not mark and not point:
        return int(sign + whole)
    written = sign + (whole or "0") + "." + (fraction or "0") + "e" + (exponent or "0")
    number, exact = float(written), decimal.Decimal(written)
    if number - number != 0.0 or (number == 0.0 and exact != 0):
        _unfit(place, "number", text, "no float holds it: use decimal.Decimal")
    if abs(number) >= 2.0**53 and decimal.Decimal(repr(number)) != exact:
        _unfit(place, "number", text, "no float holds it exactly: use decimal.Decimal")
    return number


def _ungrouped(whole: str, thousands: str) -> str:
    """Without its separators where they part groups of three, else as it is, which is no number."""
    groups = whole.split(thousands) if thousands else [whole]
    if len(groups) == 1 or not 1 <= len(groups[0]) <= 3 or [one for one in groups[1:] if len(one) != 3]:
        return whole
    return "".join(groups)


def _number_hint(text: str, thousands: str) -> str:
    if text.strip() == "":
        return "it is empty"
    if "," in text and not thousands:
        return 'say what its comma is: thousands="," or decimal_point=","'
    return "take off what is no digit first"


# ---- words ----


def _unfit(place: str, wanted: str, value: Any, hint: str) -> NoReturn:
    message = place + " is " + _kind(value) + ", and no " + wanted
    raise FailedError("value-unfit", message, hint=hint, details={"path": place})


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "the text " + _cut(json.dumps(value)) if not _is_torn(value) else "text"
    if isinstance(value, (bool, int, float)):
        return _cut(str(value)).lower()
    if _is_list(value):
        return "a list of " + str(len(value))
    if _is_object(value):
        return "an object with " + _listed([str(key) for key in value])
    return "a value of type " + type(value).__name__


def _listed(keys: list[str]) -> str:
    if not keys:
        return "no keys"
    more = ", ..." if len(keys) > _SHOWN else ""
    return "the keys " + ", ".join([_cut(key) for key in keys[:_SHOWN]]) + more


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _nearest(wanted: str, keys: list[str]) -> str:
    """The key that is least far away, or none where all differ in more than a third."""
    best = ""
    least = len(wanted) // 3 + 1
    for key in keys[:_MOST_COMPARED]:
        if abs(len(key) - len(wanted)) <= least and len(key) <= _LONGEST:
            far = _distance(wanted.lower(), key.lower())
            if far < least or (far == least and best == ""):
                best, least = key, far
    return best


def _distance(one: str, other: str) -> int:
    """How many letters are put in, left out, changed or swapped (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at in range(len(one)):
        above, row = row, [at + 1]
        for to in range(len(other)):
            same = one[at] == other[to]
            cost = min(above[to + 1] + 1, row[to] + 1, above[to] + (0 if same else 1))
            if at > 0 and to > 0 and one[at] == other[to - 1] and one[at - 1] == other[to]:
                cost = min(cost, before[to - 1] + 1)
            row.append(cost)
        before = above
    return row[-1]
