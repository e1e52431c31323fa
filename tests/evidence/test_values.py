"""The value domain: what records hold, and what they refuse."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import math
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.evidence.values import MAX_DEPTH, decode, encode, plain, soften

from .strategies import VALUES, nested


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1, 1.0, True, 0.0 and -0.0 apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, Decimal):
        return str(one) == str(other)
    return bool(one == other)


def refused(value: Any, **options: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        encode(value, **options)
    return caught.value


@given(VALUES)
def test_decode_gives_back_value_and_types(value: Any) -> None:
    assert same(decode(encode(value)), value)


@given(VALUES)
def test_encoding_is_json_of_safe_numbers(value: Any) -> None:
    level: list[Any] = [encode(value)]
    while level:
        item = level.pop()
        if isinstance(item, dict):
            level += item  # pyright: ignore[reportUnknownArgumentType]
            level += item.values()  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(item, list):
            level += item  # pyright: ignore[reportUnknownArgumentType]
        elif type(item) is int:
            assert abs(item) < 2**53
        elif type(item) is float:
            assert math.isfinite(item)
            assert not item.is_integer()
        elif type(item) is str:
            assert not any("\ud800" <= it <= "\udfff" for it in item)
        else:
            assert item is None or type(item) is bool


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (9007199254740991, 9007199254740991),
        (9007199254740992, {"$int": "9007199254740992"}),
        (-9007199254740992, {"$int": "-9007199254740992"}),
        (1.5, 1.5),
        (1e-7, 1e-7),
        (1.0, {"$float": "1.0"}),
        (-0.0, {"$float": "-0.0"}),
        (1e21, {"$float": "1e+21"}),
        (math.inf, {"$float": "inf"}),
        (-math.inf, {"$float": "-inf"}),
        (math.nan, {"$float": "nan"}),
        (b"hi", {"$bytes": "aGk="}),
        (dt.datetime(2024, 2, 29, 12), {"$datetime": "2024-02-29T12:00:00"}),
        (dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), {"$datetime": "2024-02-29T12:00:00+00:00"}),
        (dt.date(2024, 2, 29), {"$date": "2024-02-29"}),
        (Decimal("1.10"), {"$decimal": "1.10"}),
        (uuid.UUID(int=5), {"$uuid": "00000000-0000-0000-0000-000000000005"}),
        ("\ud800", {"$text": "7aCA"}),
        ({"$int": "5"}, {"$$int": "5"}),
        ({"$$": 1}, {"$$$": 1}),
        ({"a\ud800": 1}, {"$text:Ye2ggA==": 1}),
        ({"$text:YQ==": 1}, {"$$text:YQ==": 1}),
        (True, True),
    ],
)
def test_known_encodings(value: Any, encoded: Any) -> None:
    assert same(encode(value), encoded)


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(decode({"$float": "nan"}))


@pytest.mark.parametrize(
    "value", [10**5000, -(10**5000), 2**200_000 + 1], ids=["positive", "negative", "large"]
)
def test_integers_beyond_the_interpreters_digit_limit(value: int) -> None:
    assert decode(encode({"n": value})) == {"n": value}


def test_an_integer_that_would_take_minutes_is_refused() -> None:
    error = refused({"n": 1 << 300_000})
    assert (error.code, error.details["path"]) == ("value-too-large", "$.n")
    with pytest.raises(UsageError, match=r"value-too-large"):
        decode([{"$int": "1" * 100_000}])


def test_a_zone_is_kept_as_its_offset() -> None:
    class Summer(dt.tzinfo):
        def utcoffset(self, moment: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(hours=2)

    back = decode(encode(dt.datetime(2024, 7, 1, 12, tzinfo=Summer())))
    assert back == dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)
    assert back.tzinfo == dt.timezone(dt.timedelta(hours=2))


class Colour(enum.StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"rows": [1, 2, 3, {"x": (1,)}]}, "$.rows[3].x"),
        ({"a": {1, 2}}, "$.a"),
        ({"a": {1: "x"}}, "$.a[1]"),
        ({"a": {None: "x"}}, "$.a[key of type NoneType]"),
        ({"two words": object()}, "$['two words']"),
        ({"\ud800": object()}, r"$['\ud800']"),
        ({"k" * 100: object()}, f"$['{'k' * 60}'...]"),
        ([0, dt.time(1)], "$[1]"),
        ([dt.timedelta(1)], "$[0]"),
        (bytearray(b"x"), "$"),
        ({"c": collections.Counter("a")}, "$.c"),
        ([Colour.RED], "$[0]"),
        ([Point(1, 2)], "$[0]"),
        ([1 + 2j], "$[0]"),
        ({Colour.RED: 1}, "$['red']"),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1)))], "$[0]"),
    ],
)
def test_everything_else_is_refused_with_its_path(value: Any, path: str) -> None:
    error = refused(value)
    assert error.code == "value-unsupported"
    assert error.details == {"path": path}
    assert path in error.message
    assert error.hint


def test_a_type_that_only_calls_itself_decimal_is_refused() -> None:
    fake = type("Decimal", (), {"__module__": "decimal"})
    assert refused([fake()]).details["path"] == "$[0]"


def test_depth_is_bounded_tags_included() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    assert refused(nested(MAX_DEPTH + 1)).code == "value-too-deep"
    assert encode(nested(MAX_DEPTH - 1, 1.0)) == nested(MAX_DEPTH - 1, {"$float": "1.0"})
    assert refused(nested(MAX_DEPTH, 1.0)).code == "value-too-deep"
    assert refused(nested(3), max_depth=2).message.startswith("more than 2 levels")
    with pytest.raises(UsageError, match="value-too-deep"):
        decode(nested(MAX_DEPTH + 1))


def test_a_bound_beyond_the_interpreters_stack_is_no_crash() -> None:
    assert refused(nested(50_000), max_depth=1_000_000).code == "value-too-deep"
    with pytest.raises(UsageError, match="value-too-deep"):
        decode(nested(50_000), max_depth=1_000_000)


def test_cycles_are_refused_where_they_close() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    wide: list[Any] = []
    wide += [wide, wide]
    for walk in (encode, soften):
        with pytest.raises(UsageError, match="holds itself") as caught:
            walk(loop)
        assert caught.value.code == "value-unsupported"
        assert caught.value.details["path"] == "$.a[1]"
        with pytest.raises(UsageError, match="holds itself"):
            walk(wide)


def test_the_encoding_shares_nothing_with_the_value() -> None:
    value = {"rows": [{"a": [1]}]}
    encoded = encode(value)
    value["rows"][0]["a"].append(2)
    assert encoded == {"rows": [{"a": [1]}]}
    back = decode(encoded)
    back["rows"].clear()
    assert encoded == {"rows": [{"a": [1]}]}


@pytest.mark.parametrize(
    "json",
    [
        {"$nope": "x"},
        {"$int": "5"},
        {"$int": "0x99999999999999999"},
        {"$int": "1" * 5000 + "x"},
        {"$int": "+99999999999999999999"},
        {"$int": 99999999999999999999},
        {"$int": "9_9_99999999999999999"},
        {"$float": "1.5"},
        {"$float": "1"},
        {"$float": "NaN"},
        {"$float": "infinity"},
        {"$float": 1.0},
        {"$float": None},
        {"$bytes": "aGk"},
        {"$bytes": "aGl="},
        {"$bytes": "a Gk="},
        {"$bytes": "\u00e9"},
        {"$text": "YQ=="},
        {"$text": "/w=="},
        {"$date": "20240229"},
        {"$date": "2024-02-30"},
        {"$datetime": "2024-02-29T12:00:00Z"},
        {"$datetime": "2024-02-29"},
        {"$decimal": "x"},
        {"$decimal": " 1"},
        {"$uuid": "{00000000-0000-0000-0000-000000000005}"},
        {"$int": "9007199254740992", "b": 1},
        {"a": 1, "$date": "2024-02-29"},
        {"$text:YQ==": 1, "a": 2},
        {"$text:???": 1},
        {"$text:/w==": 1},
    ],
)
def test_other_spellings_of_tags_are_refused(json: Any) -> None:
    with pytest.raises(UsageError) as caught:
        decode({"x": [json]})
    assert caught.value.code == "value-unsupported"
    assert caught.value.details["path"].startswith("$.x[0]")


def test_plain_shows_finite_floats_and_leaves_the_rest() -> None:
    value = {"f": 1.0, "n": math.nan, "i": 2**60, "b": b"x", "l": [-0.0, 1.5], "$float": "1.0"}
    assert same(
        plain(encode(value)),
        {
            "f": 1.0,
            "n": {"$float": "nan"},
            "i": {"$int": str(2**60)},
            "b": {"$bytes": "eA=="},
            "l": [-0.0, 1.5],
            "$$float": "1.0",
        },
    )


@dataclasses.dataclass
class Report:
    title: str
    points: list[Point]
    kind: dataclasses.InitVar[str] = "x"


class Words(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


def test_soften_makes_ordinary_results_fit_and_says_so() -> None:
    value = {
        "tuple": (1, (2,)),
        "set": {3, 1, 2},
        "frozen": frozenset({"b", "a"}),
        "report": Report("t", [Point(1, 2)]),
        "enum": Colour.RED,
        "counter": collections.Counter("aab"),
        Words("key"): Words("text"),
        "flag": True,
    }
    softened, notes = soften(value)
    assert same(
        softened,
        {
            "tuple": [1, [2]],
            "set": [1, 2, 3],
            "frozen": ["a", "b"],
            "report": {"title": "t", "points": [[1, 2]]},
            "enum": "red",
            "counter": {"a": 2, "b": 1},
            "key": "text",
            "flag": True,
        },
    )
    assert "tuple at $.tuple became a list (1 more places)" in notes
    assert "Report at $.report became a dict" in notes
    assert "Counter at $.counter became a dict" in notes
    assert "Colour at $.enum became a plain value" in notes
    assert encode(softened)


def test_soften_leaves_what_fits_and_what_never_will() -> None:
    value = {"a": [1, "x", None, 2.5, b"y", dt.date(2024, 1, 1)]}
    softened, notes = soften(value)
    assert softened == value
    assert notes == []
    plain_value = {"a": [1, {"b": "x"}]}
    assert soften(plain_value)[0] is plain_value
    odd = object()
    assert soften({"a": odd}) == ({"a": odd}, [])


@given(
    st.sets(st.integers() | st.text() | st.floats(allow_nan=False) | st.binary() | st.tuples(st.integers()))
)
def test_sets_soften_to_one_order(values: set[Any]) -> None:
    ordered = soften(values)[0]
    again = soften({*list(values)[::-1]})[0]
    assert ordered == again
    assert len(ordered) == len(values)


def test_sets_of_sets_have_an_order_although_they_do_not_compare() -> None:
    family = {frozenset({1, 2}), frozenset({3}), frozenset[int]()}
    assert soften(family)[0] == [[], [1, 2], [3]]


def test_numbers_of_a_set_sort_as_numbers() -> None:
    assert soften({10, 9.5, 2})[0] == [2, 9.5, 10]


def test_the_module_is_light() -> None:
    code = (
        "import sys, affidavit.evidence.values as v\n"
        "heavy = {'orjson', 'rfc8785', 'pydantic', 'decimal', 'uuid', 'datetime', 'json', 'dataclasses', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
