import datetime as dt
import decimal
import enum
import pathlib
import uuid
from typing import Any

import pytest

from affidavit.errors import FailedError
from affidavit.evidence.record import JsonValue
from affidavit.namespaces._validation import is_safe_pattern
from affidavit.namespaces.schema import pieces


class Colour(enum.Enum):
    RED = "red"


S: JsonValue = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (S, decimal.Decimal("1.10"), "1.10"),
        (S, dt.datetime(2024, 2, 29, 12, 0), "2024-02-29T12:00:00"),
        (S, dt.date(2024, 1, 2), "2024-01-02"),
        (S, dt.time(1, 2), "01:02:00"),
        (S, dt.timedelta(days=1), "P1D"),
        (S, uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (S, Colour.RED, "red"),
        (S, pathlib.PurePosixPath("a/b"), "a/b"),
        ({"enum": ["red", "blue"]}, Colour.RED, "red"),
        ({"type": "object", "properties": {"at": S}}, {"at": dt.date(2024, 1, 2)}, {"at": "2024-01-02"}),
        ({"type": "object", "additionalProperties": S}, {"at": dt.date(2024, 1, 2)}, {"at": "2024-01-02"}),
        ({"type": "array", "items": S}, (decimal.Decimal("1.0"),), ["1.0"]),
        ({"type": "array", "items": S}, {"b", "a"}, ["a", "b"]),
        ({"type": "array", "prefixItems": [S, {"type": "integer"}]}, (dt.date(2024, 1, 2), 2.0), ["2024-01-02", 2]),
        ({"anyOf": [{"type": "null"}, S]}, dt.date(2024, 1, 2), "2024-01-02"),
        ({"anyOf": [{"type": "null"}, S]}, None, None),
        ({"anyOf": [S, {"type": "number"}]}, 1.5, 1.5),
        ({"type": ["null", "string"]}, decimal.Decimal(1), "1"),
        ({"$ref": "#/$defs/T", "$defs": {"T": S}}, decimal.Decimal(1), "1"),
        ({"allOf": [S]}, decimal.Decimal(1), "1"),
        ({"type": "number"}, 3, 3),
        ({"type": "number"}, decimal.Decimal("1.25"), 1.25),
        ({"type": "number"}, decimal.Decimal(7), 7),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "integer"}, decimal.Decimal("5.0"), 5),
        ({"type": "integer"}, decimal.Decimal("1e30"), 10**30),
        ({}, decimal.Decimal("1.10"), decimal.Decimal("1.10")),
    ],
)  # fmt: skip
def test_values_cross_as_the_declared_json_type(schema: JsonValue, value: Any, expected: Any) -> None:
    result = pieces("give", None, schema).convert(value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 5.5),
        ({"type": "integer"}, decimal.Decimal("5.5")),
        ({"type": "integer"}, float("nan")),
        ({"type": "integer"}, True),
        (S, 5),
        (S, b"bytes"),
        ({"type": "number"}, decimal.Decimal("1e99999")),
        ({"type": "number"}, "1"),
        ({"type": "object"}, [1]),
        (False, 1),
    ],
)
def test_what_cannot_be_the_declared_type_is_refused(schema: JsonValue, value: Any) -> None:
    with pytest.raises(FailedError) as caught:
        pieces("give", None, schema).convert(value)
    assert caught.value.code == "result-invalid"


def test_what_was_given_is_not_edited() -> None:
    value: dict[str, Any] = {"at": [dt.date(2024, 1, 2)], "rest": [1]}
    made = pieces("give", None, {"properties": {"at": {"type": "array", "items": S}}, "type": "object"})
    assert made.convert(value) == {"at": ["2024-01-02"], "rest": [1]}
    assert value == {"at": [dt.date(2024, 1, 2)], "rest": [1]}


@pytest.mark.parametrize(
    ("pattern", "safe"),
    [
        ("^a+$", True),
        ("^[a-z]+-[0-9]+$", True),
        ("^(?:a|b)$", True),
        ("[+*?]", True),
        (r"\(a\)*", True),
        ("^(a+)+$", False),
        ("(a|a)*b", False),
        ("(a|b){2,}", False),
        (r"(a)\1", False),
        ("^(?=.*a)b", False),
        (".*.*.*=", False),
        ("a{1000}", False),
        (r"\p{L}", False),
        ("x" * 1_001, False),
    ],
)
def test_which_patterns_are_matched_here(pattern: str, safe: bool) -> None:
    assert is_safe_pattern(pattern) is safe
