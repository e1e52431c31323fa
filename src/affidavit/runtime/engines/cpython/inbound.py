"""What a child says, checked as hostile input: a frame is what it should be, or the run ends.

Nothing here trusts a length, a type or a number that came over the socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from affidavit.errors import CODES
from affidavit.runtime.engines.cpython.wire import LENGTH
from affidavit.runtime.program import Reason, ScriptCall, ScriptError

__all__ = ["MOST_ITEMS", "Done", "ViolationError", "read_call", "read_done"]

MOST_ITEMS: Final = 4_000_000
"""Values in a script's value; each takes the host many times its bytes."""

_DEPTH: Final = 110  # values are bounded to 100 levels; a call or a header puts a few around them
_TEXT: Final = 32_000
_HEADER_BYTES: Final = 1 << 20
_LINES: Final = 1 << 31
_PASSES: Final = 1 << 53
_REASONS: Final[frozenset[str]] = frozenset({"finished", "error", "exit", "memory", "output"})
_HEADER: Final = frozenset({"reason", "error", "has_value", "notes", "unawaited", "timers"})
_ERROR: Final = frozenset({"code", "type", "message", "line", "column", "traceback", "hint", "details"})


class ViolationError(Exception):
    """A frame that no honest child sends."""


@dataclass(frozen=True, slots=True)
class Done:
    """The script's own account of its end."""

    reason: Reason
    error: ScriptError | None
    has_value: bool
    value: bytes | None
    notes: tuple[str, ...]
    unawaited: tuple[tuple[str, int], ...]
    timers: tuple[int, ...]


def read_call(body: bytes | bytearray) -> tuple[int, ScriptCall]:
    """Check a call frame; returns the call's number and the call."""
    parts = _json(body)
    if not isinstance(parts, list) or len(cast("list[Any]", parts)) != 6:
        raise ViolationError("a call of another form")
    number, path, line, column, iteration, arguments = cast("list[Any]", parts)
    numbers = type(number) is type(line) is type(column) is type(iteration) is int
    if not (numbers and type(path) is str and isinstance(arguments, dict)):
        raise ViolationError("a call of another form")
    if not (0 <= number < _LINES and 0 <= line < _LINES and 0 <= column < _LINES and 0 <= iteration < _LINES):
        raise ViolationError("a number out of range")
    return number, ScriptCall(
        path=path, arguments=cast("dict[str, Any]", arguments), line=line, column=column, iteration=iteration
    )


def read_done(body: bytes | bytearray, paths: frozenset[str]) -> Done:
    """Check the last frame. The value is written anew, so that what is kept is JSON that was read."""
    _require(len(body) >= LENGTH.size, "a cut end")
    split = LENGTH.size + LENGTH.unpack_from(body)[0]
    _require(split <= min(len(body), _HEADER_BYTES), "a cut end")
    header = _object(_json(body[LENGTH.size : split]), _HEADER)
    _require(_text(header["reason"]) in _REASONS, "an unknown reason")
    _require(type(header["has_value"]) is bool, "has_value")
    error = None if header["error"] is None else _error(header["error"])
    reason: Reason = header["reason"]
    if body.count(b",", split) + body.count(b"[", split) + body.count(b"{", split) > MOST_ITEMS:
        error, reason = _too_many(), "output"
    has_value = header["has_value"] and error is None
    return Done(
        reason=reason,
        error=error,
        has_value=has_value,
        value=orjson.dumps(_json(body[split:])) if has_value else None,
        notes=tuple(_text(note) for note in _list(header["notes"])),
        unawaited=tuple(_unawaited(item, paths) for item in _list(header["unawaited"])),
        timers=tuple(_pass(item) for item in _list(header["timers"])),
    )


def _json(data: bytes | bytearray) -> Any:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ViolationError("a frame that is not JSON") from error
    if data.count(b"[") + data.count(b"{") > _DEPTH:
        _bound_depth(value)
    return value


def _bound_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                below.extend(cast("dict[str, Any]", item).values())
            elif type(item) is list:
                below.extend(cast("list[Any]", item))
        if not below:
            return
        level = below
    raise ViolationError("a frame nested too deeply")


def _error(value: Any) -> ScriptError:
    error = _object(value, _ERROR)
    _require(type(error["details"]) is dict, "error details")
    code = error["code"] if isinstance(error["code"], str) and error["code"] in CODES else "script-error"
    return ScriptError(
        code=code,
        type=_text(error["type"]),
        message=_text(error["message"]),
        line=_place(error["line"]),
        column=_place(error["column"]),
        traceback=_text(error["traceback"]),
        hint=_text(error["hint"]),
        details=error["details"],
    )


def _too_many() -> ScriptError:
    return ScriptError(
        code="output-exceeded",
        type="ValueError",
        message=f"the script's value holds more than {MOST_ITEMS} items",
        hint="return less: filter, aggregate, or page",
    )


def _unawaited(value: Any, paths: frozenset[str]) -> tuple[str, int]:
    match value:
        case [str(path), int(line)] if path in paths and 0 <= line < _LINES:
            return path, int(line)
        case _:
            raise ViolationError("an un-awaited call of another form")


def _object(value: Any, keys: frozenset[str]) -> dict[str, Any]:
    _require(type(value) is dict and value.keys() == keys, "an object with other keys")
    return value


def _list(value: Any) -> list[Any]:
    _require(type(value) is list, "something else than a list")
    return value


def _text(value: Any) -> str:
    _require(type(value) is str, "something else than text")
    return value[:_TEXT]


def _place(value: Any) -> int | None:
    _require(value is None or (type(value) is int and 0 <= value < _LINES), "a line out of range")
    return value


def _pass(value: Any) -> int:
    _require(type(value) is int and abs(value) < _PASSES, "a pass out of range")
    return value


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ViolationError(what)
