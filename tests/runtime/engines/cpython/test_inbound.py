"""The host reads anything that a child may send without crashing, and believes only what has the right form."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.runtime.engines.cpython.inbound import Done, ViolationError, read_call, read_done
from affidavit.runtime.program import ScriptCall

_PATHS = frozenset({"ok"})
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
_HEADER: dict[str, Any] = {
    "reason": "finished",
    "error": None,
    "has_value": True,
    "notes": [],
    "unawaited": [],
    "timers": [],
}
_ERROR: dict[str, Any] = {
    "code": "script-error",
    "type": "E",
    "message": "m",
    "line": 1,
    "column": None,
    "traceback": "",
    "hint": "",
    "details": {},
}


def _end(header: Any, value: bytes = b"1") -> bytes:
    head = json.dumps(header).encode()
    return struct.pack("<I", len(head)) + head + value


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for read in (lambda: read_call(data), lambda: read_done(data, _PATHS)):
        try:
            read()
        except ViolationError:
            continue


@given(_JSON)
def test_any_json_as_a_call(value: Any) -> None:
    try:
        number, call = read_call(json.dumps(value).encode())
    except ViolationError:
        return
    assert isinstance(number, int)
    assert isinstance(call, ScriptCall)


@given(st.sampled_from([*_HEADER]), _JSON)
def test_any_json_in_an_end(key: str, value: Any) -> None:
    try:
        done = read_done(_end(_HEADER | {key: value}), _PATHS)
    except ViolationError:
        return
    assert isinstance(done, Done)


@given(st.sampled_from([*_ERROR]), _JSON)
def test_any_json_in_an_error(key: str, value: Any) -> None:
    try:
        done = read_done(_end(_HEADER | {"error": _ERROR | {key: value}}), _PATHS)
    except ViolationError:
        return
    assert done.error is not None
    assert not done.has_value


def test_a_good_call() -> None:
    assert read_call(b'[1,"ok",2,3,4,{"n":[1]}]') == (
        1,
        ScriptCall(path="ok", arguments={"n": [1]}, line=2, column=3, iteration=4),
    )


def test_a_good_end() -> None:
    done = read_done(_end(_HEADER | {"unawaited": [["ok", 3]], "notes": ["n"]}, b'{"a": 1.5}'), _PATHS)
    assert (done.value, done.notes, done.unawaited) == (b'{"a":1.5}', ("n",), (("ok", 3),))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'[1,"ok",2,3,4]',
        b'[true,"ok",2,3,4,{}]',
        b'[-1,"ok",2,3,4,{}]',
        b'[1,"ok",2,3,99999999999,{}]',
        b"[1,2,2,3,4,{}]",
        b'[1,"ok",2,3,4,[]]',
        b'[1,"ok",2,3,4,{}]x',
        b'[1,"ok",2,3,4,{"n":' + b"[" * 200 + b"]" * 200 + b"}]",
        b'[1,"ok",2,3,4,{"n":' + b"[" * 5000 + b"]" * 5000 + b"}]",
        b'[1,"ok",2,3,4,{"n":NaN}]',
    ],
)
def test_bad_calls(body: bytes) -> None:
    with pytest.raises(ViolationError):
        read_call(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x01\x00",
        struct.pack("<I", 1 << 30) + b"{}",
        _end({}),
        _end(_HEADER | {"more": 1}),
        _end(_HEADER | {"reason": "cancelled"}),
        _end(_HEADER | {"has_value": 1}),
        _end(_HEADER | {"notes": [1]}),
        _end(_HEADER | {"unawaited": [["secret", 1]]}),
        _end(_HEADER | {"unawaited": [["ok", -1]]}),
        _end(_HEADER | {"timers": [1, "1"]}),
        _end(_HEADER | {"timers": [1 << 60]}),
        _end(_HEADER | {"error": {}}),
        _end(_HEADER | {"error": _ERROR | {"line": True}}),
        _end(_HEADER | {"error": _ERROR | {"details": []}}),
        _end(_HEADER, b"{"),
        _end(_HEADER, b"[" * 150 + b"]" * 150),
        _end(_HEADER | {"notes": ["x" * (2 << 20)]}),
    ],
)
def test_bad_ends(body: bytes) -> None:
    with pytest.raises(ViolationError):
        read_done(body, _PATHS)


def test_an_undeclared_code_is_not_passed_on() -> None:
    for code in ("invented", 5, None, ["x"]):
        done = read_done(_end(_HEADER | {"error": _ERROR | {"code": code}}), _PATHS)
        assert done.error is not None
        assert done.error.code == "script-error"


def test_a_value_of_too_many_items_is_refused_before_it_is_read() -> None:
    done = read_done(_end(_HEADER, b"[" + b"[]," * 4_100_000 + b"[]]"), _PATHS)
    assert (done.reason, done.value, done.has_value) == ("output", None, False)
    assert done.error is not None
    assert done.error.code == "output-exceeded"
