"""The quick yes: never to a value that the schema refuses, or that would be changed into what it declares."""

from enum import StrEnum
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.evidence.record import JsonValue
from affidavit.namespaces._jsonschema import normalise
from affidavit.namespaces._quick import NOT_KNOWN, taker

from .schemas import CASES, DEFINITIONS, SCHEMAS, VALUES, fitting


class Colour(StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


@given(SCHEMAS, st.data())
def test_what_is_taken_is_valid_and_unchanged(schema: JsonValue, data: st.DataObject) -> None:
    whole: JsonValue = {"anyOf": [schema], "$defs": DEFINITIONS}
    take = taker(whole)
    value = data.draw(st.one_of(VALUES, fitting(schema)))
    if take is None or take(value) is NOT_KNOWN:
        return
    assert take(value) == value
    assert jsonschema.Draft202012Validator(whole).is_valid(value)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize("case", CASES)
def test_no_bad_value_is_taken(case: str) -> None:
    schema, _, bad = CASES[case]
    take = taker(normalise(schema, what="it"))
    assert take is None or all(take(value) is NOT_KNOWN for value in bad)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "number"}, 0.5),
        ({"type": ["string", "null"], "description": "d"}, None),
        ({"enum": ["a", "b"]}, "b"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, ["a", None]),
        (
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
            {"a": True, "b": 1},
        ),
    ],
)
def test_plain_values_are_taken_as_copies(schema: JsonValue, value: Any) -> None:
    take = taker(schema)
    assert take is not None
    assert take(value) == value
    assert not isinstance(value, (list, dict)) or take(value) is not value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, Text("a")),
        ({"type": "string"}, Colour.RED),
        ({"enum": ["red"]}, Colour.RED),
        ({"type": "integer"}, True),
        ({"type": "integer"}, 1.0),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 1.0),
        ({"type": "array"}, (1,)),
        ({"type": "object", "additionalProperties": False}, {"a": 1}),
        ({"type": "object", "required": ["a"]}, {}),
    ],
)
def test_what_is_not_plain_is_left_to_the_validator(schema: JsonValue, value: Any) -> None:
    take = taker(schema)
    assert take is not None
    assert take(value) is NOT_KNOWN


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "pattern": "a"},
        {"type": "integer", "minimum": 0},
        {"properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"not": {}}}},
        {"allOf": [{"type": "string"}]},
        {"enum": [1]},
    ],
)
def test_schemas_that_say_more_are_not_understood(schema: JsonValue) -> None:
    assert taker(schema) is None


def test_a_schema_that_holds_itself_takes_trees_and_leaves_cycles() -> None:
    take = taker({"$ref": "#/$defs/T", "$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}}})
    assert take is not None
    assert take([[], [[]]]) == [[], [[]]]
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(RecursionError):
        take(cycle)
