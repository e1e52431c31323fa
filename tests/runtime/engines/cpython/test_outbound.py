"""What a child is told is what was meant: values come out of the shorter spelling as they went in."""

from __future__ import annotations

import json
import marshal
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from affidavit.evidence import values
from affidavit.runtime.engines.cpython.outbound import packed, program_body, untagged
from affidavit.runtime.engines.cpython.wire import SECTIONS
from affidavit.runtime.program import Earlier, Program

_LOOK_ALIKE = '{"$float":"1.0"}'
_TEXT = st.text(max_size=8) | st.sampled_from([_LOOK_ALIKE, f'x{_LOOK_ALIKE}"', "\\" + _LOOK_ALIKE, "$float"])
_FLOATS = st.floats(allow_nan=False) | st.integers(-(10**18), 10**18).map(float)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _FLOATS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
@example({"$float": "1.0"})
@example([_LOOK_ALIKE, {_LOOK_ALIKE: 1.0}, 1e15, 1e16, 999999999999999.0, 9999999999999999.0, -0.0])
def test_values_are_told_unchanged(value: Any) -> None:
    told = values.decode(json.loads(untagged(orjson.dumps(values.encode(value)))))
    assert repr(told) == repr(value)


@given(_VALUES)
@example({"a": [1.0, "b", None, True, -7, {"c": {}}]})
@example({"$float": "1.0"})
@example(["$int", 2**53])
def test_values_are_packed_unchanged_or_not_at_all(value: Any) -> None:
    body = orjson.dumps(values.encode(value))
    short = packed(body)
    assert short is None or repr(marshal.loads(short)) == repr(value)
    assert (short is None) == (b'"$' in untagged(body))


def test_what_is_nested_too_deeply_is_not_packed() -> None:
    assert packed(b"[" * 3_000 + b"]" * 3_000) is None


def test_rows_are_sent_packed() -> None:
    content = b'{"n":[1,2]}'
    short = packed(content)
    assert short is not None
    row = Earlier(number=1, run_id="r1", kind="data", size=11, content=content)
    body = program_body(Program(source="1", tree={}, results=(row,)))
    assert body.endswith(short)
    lengths = SECTIONS.unpack_from(body)
    header = json.loads(body[SECTIONS.size :][: lengths[0]])
    assert header["results"] == [[1, "r1", "data", 11, len(short), True]]


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -12.0, 999999999999999.0])
def test_whole_floats_need_no_tag(number: float) -> None:
    assert untagged(orjson.dumps(values.encode({"n": number}))) == f'{{"n":{number!r}}}'.encode()


@pytest.mark.parametrize("text", ["1", "01.0", "1.5", "+1.0", "1.00", " 1.0", "1e5", "nan", "1.0e5", ".0"])
def test_a_tag_that_no_encoder_writes_stays_one(text: str) -> None:
    body = orjson.dumps({"$float": text})
    assert untagged(body) == body


def test_what_rows_hold_follows_the_program() -> None:
    tagged, long = b'{"b":{"$bytes":"eA=="},"n":{"$float":"2.0"}}', b'"' + b"x" * (64 << 10) + b'"'
    told = b'{"b":{"$bytes":"eA=="},"n":2.0}'
    rows = (
        Earlier(number=3, run_id="r3", kind="data", size=9, content=tagged),
        Earlier(number=2, run_id="r2", kind="large", size=20_000),
        Earlier(number=1, run_id="r1", kind="large", size=len(long), content=long),
    )
    body = program_body(Program(source="1", tree={}, inputs={"x": {"$float": "1.0"}}, results=rows))
    lengths = SECTIONS.unpack_from(body)
    assert len(body) == SECTIONS.size + sum(lengths)
    assert json.loads(body[SECTIONS.size :][: lengths[0]])["results"] == [
        [3, "r3", "data", 9, len(told), False],
        [2, "r2", "large", 20_000, 0, False],
        [1, "r1", "large", len(long), len(long), False],
    ]
    assert body.endswith(b'{"x":1.0}' + told + long)
