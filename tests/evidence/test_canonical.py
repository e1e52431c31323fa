"""The canonical form against its definition, and the strict reader."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.evidence.canonical import CanonicalJson, canonical, digest, freeze, parse
from affidavit.evidence.values import MAX_DEPTH, encode

from .strategies import VALUES, nested

# Keys and text around the places where code-point order, UTF-16 order and escaping part.
TEXT = st.text(
    st.sampled_from('aZé€\ud7ff\ue000\uffff😀\u2028"\\/\x00\x01\x1f\x7f\b\n$') | st.characters(codec="utf-8"),
    max_size=5,
)
NUMBERS = (
    st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(1e-4, 1e-2)
    | st.floats(1e14, 1e22)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@given(JSON)
@example({"\ue000": 1, "😀": 2})
@example([1e15, 1e-3, 999999999999999.9, 0.0009999999999999999, 5e-324, 1.7976931348623157e308])
def test_canonical_is_rfc_8785(json: Any) -> None:
    assert canonical(json) == rfc8785.dumps(json)


@given(NUMBERS)
def test_numbers_alone_are_rfc_8785(number: float) -> None:
    assert canonical(number) == rfc8785.dumps(number)


@given(VALUES)
def test_freeze_is_the_canonical_encoding(value: Any) -> None:
    frozen = freeze(value)
    assert frozen.data == canonical(encode(value))
    assert frozen.value() == encode(value)


@given(VALUES, VALUES)
def test_canonical_parts_stand_for_their_values(one: Any, two: Any) -> None:
    parts = {"b": [freeze(one), 1], "a": freeze(two)}
    assert canonical(parts) == canonical({"a": encode(two), "b": [encode(one), 1]})
    # The slow way as well: a float that is an integer is beyond orjson.
    assert canonical([freeze(one), 1.0]) == canonical([encode(one), 1.0])
    assert canonical(freeze(one)) == freeze(one).data


@given(VALUES)
def test_the_form_of_an_encoded_value_reads_as_itself(value: Any) -> None:
    frozen = freeze(value)
    assert parse(frozen.data) == frozen.value()
    assert canonical(parse(frozen.data)) == frozen.data


def test_numbers_are_written_as_ecmascript_does() -> None:
    text = (
        '{"neg0": -0.0, "e21": 1e21, "e20": 1e20, "micro": 0.000001, "hundred": 100.0, "sci": 1.5E+3,'
        ' "third": 0.3333333333333333, "edge": 9007199254740991, "flag": true, "one": 1}'
    )
    assert canonical(parse(text)) == (
        b'{"e20":100000000000000000000,"e21":1e+21,"edge":9007199254740991,"flag":true,"hundred":100,'
        b'"micro":0.000001,"neg0":0,"one":1,"sci":1500,"third":0.3333333333333333}'
    )


def test_keys_are_ordered_by_utf_16_units() -> None:
    text = r'{"\ufb33": 1, "\ud83d\ude00": 2, "b": 3, "B": 4, "\u2028": "a\u2028b", "\u00e9": "\/"}'
    expected = '{"B":4,"b":3,"é":"/","\u2028":"a\u2028b","😀":2,"\ufb33":1}'
    assert canonical(parse(text)) == expected.encode()


def address(text: str) -> str:
    return digest(freeze(parse(text)).data)


def test_values_that_differ_have_different_addresses() -> None:
    assert address('{"n": 9007199254740992}') != address('{"n": 9007199254740993}')
    assert address('{"n": 1}') != address('{"n": true}')
    assert address('{"n": 1}') != address('{"n": "1"}')
    assert canonical(parse('{"n": 100}')) == canonical(parse('{"n": 1e2}'))
    # As values of records they differ: one is an integer, the other a float.
    assert address('{"n": 100}') != address('{"n": 1e2}')


def test_integers_that_doubles_cannot_hold_are_not_canonical_json() -> None:
    with pytest.raises(UsageError) as caught:
        canonical(parse('{"a": [9007199254740993]}'))
    assert caught.value.code == "value-unsupported"
    assert caught.value.details["path"] == "$.a[0]"


@pytest.mark.parametrize(
    ("json", "path"),
    [
        ([math.nan], "$[0]"),
        ({"a": -math.inf}, "$.a"),
        ({"a": [1, "\ud800"]}, "$.a[1]"),
        ({"\ud800": 1}, r"$['\ud800']"),
        ({1: 2}, "$[1]"),
        ({"a": (1,)}, "$.a"),
        ({"a": b"x"}, "$.a"),
        ({"a": {1}}, "$.a"),
        (2**53, "$"),
    ],
)
def test_what_is_not_json_is_refused_with_its_path(json: Any, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        canonical(json)
    assert caught.value.code == "value-unsupported"
    assert caught.value.details["path"] == path


def test_depth_is_bounded_on_both_ways() -> None:
    for leaf in (0, 1.0):  # the fast and the exact way
        assert canonical(nested(MAX_DEPTH, leaf)) == rfc8785.dumps(nested(MAX_DEPTH, leaf))
        with pytest.raises(UsageError, match="value-too-deep"):
            canonical(nested(MAX_DEPTH + 1, leaf))
    with pytest.raises(UsageError, match="value-too-deep"):
        canonical(nested(50_000), max_depth=10**6)


def test_cycles_are_refused() -> None:
    loop: list[Any] = []
    loop += [loop, loop, loop]
    for write in (canonical, freeze):
        with pytest.raises(UsageError, match="holds itself"):
            write(loop)


def test_a_repeated_key_is_refused_by_name() -> None:
    for text in ('{"amount": 1, "note": "x", "amount": 2}', '{"a": [{"amount": 1, "\\u0061mount": 2}]}'):
        with pytest.raises(UsageError, match="amount") as caught:
            parse(text)
        assert caught.value.code == "json-invalid"
        assert caught.value.details == {"key": "amount"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "[1,]",
        "{'a': 1}",
        "[1] [2]",
        "NaN",
        "[-Infinity]",
        "[1e999]",
        '{"a": {"b": -1e400}}',
        '"\x01"',
        "\ufeff[]",
        "[01]",
        "[" + "1" * 5000 + "]",
        b"\xff",
        b"[\xed\xa0\x80]",
        b"\xef\xbb\xbf[]",
    ],
)
def test_what_is_not_strict_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.code == "json-invalid"


def test_reading_is_exact() -> None:
    assert parse('{"n": 123456789012345678901234567890, "s": "\\ud800"}') == {
        "n": 123456789012345678901234567890,
        "s": "\ud800",
    }
    assert parse("[1, 1.0]") == [1, 1.0]
    assert [type(it) for it in parse("[1, 1.0, true]")] == [int, float, bool]


@pytest.mark.parametrize("levels", [201, 100_000])
def test_reading_is_bounded_in_depth(levels: int) -> None:
    with pytest.raises(UsageError, match="value-too-deep"):
        parse("[" * levels + "]" * levels)
    assert parse("[" * 200 + "]" * 200)


def test_digest_is_an_address() -> None:
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_canonical_json_gives_fresh_trees() -> None:
    frozen = CanonicalJson(b'{"a":[1]}')
    frozen.value()["a"].append(2)
    assert frozen.value() == {"a": [1]}
