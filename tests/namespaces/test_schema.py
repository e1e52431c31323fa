import asyncio
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import FailedError, UsageError
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.schema import Pieces, pieces

from .oracle import annotated
from .samples import called, echo, tool
from .schemas import CASES, DEFINITIONS, NODE, SCHEMAS, TREE, VALUES, fitting


def argument(schema: JsonValue) -> Pieces:
    """Pieces of an operation with the one required argument `value`."""
    kept: dict[str, JsonValue] = {}
    if schema is not True:
        kept = {key: schema[key] for key in ("$defs", "definitions", "$id") if key in schema}
        schema = {key: schema[key] for key in schema if key not in kept}
    whole: JsonValue = {"type": "object", "properties": {"value": schema}, "required": ["value"], **kept}
    return pieces("take", whole, None)


@pytest.mark.parametrize("case", CASES)
def test_good_values_pass_unchanged_and_bad_ones_are_refused(case: str) -> None:
    schema, good, bad = CASES[case]
    made = argument(schema)
    for value in good:
        assert made.parse({"value": value}) == {"value": value}
    for value in bad:
        with pytest.raises(UsageError) as caught:
            made.parse({"value": value})
        assert caught.value.code == "arguments-invalid"
        assert caught.value.details["path"].startswith("$.value")


@pytest.mark.parametrize("case", CASES)
def test_results_are_held_to_their_schema(case: str) -> None:
    schema, good, bad = CASES[case]
    made = pieces("give", None, schema)
    for value in good:
        assert made.convert(value) == value
    for value in bad:
        with pytest.raises(FailedError) as caught:
            made.convert(value)
        assert caught.value.code == "result-invalid"


@pytest.mark.parametrize("case", CASES)
def test_the_stub_never_refuses_what_the_schema_allows(case: str) -> None:
    schema, good, _ = CASES[case]
    for made, annotation in (
        (argument(schema), argument(schema).parameters[0].annotation),
        (pieces("give", None, schema), pieces("give", None, schema).returns),
    ):
        adapter = annotated(made, annotation)
        for value in good:
            adapter.validate_python({"value": value}, strict=True)


@given(SCHEMAS, st.data())
def test_schema_validation_and_annotation_agree(schema: JsonValue, data: st.DataObject) -> None:
    whole: JsonValue = {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "$defs": DEFINITIONS,
    }
    value = data.draw(st.one_of(VALUES, fitting(schema)))
    made = pieces("take", whole, None)
    # the library itself, told nothing of ours, says what is valid
    valid = jsonschema.Draft202012Validator(whole).is_valid({"value": value})  # pyright: ignore[reportUnknownMemberType]
    if valid:
        assert made.parse({"value": value}) == {"value": value}
        annotated(made, made.parameters[0].annotation).validate_python({"value": value}, strict=True)
    else:
        with pytest.raises(UsageError):
            made.parse({"value": value})


@given(SCHEMAS, st.data())
def test_what_is_returned_is_what_was_declared(schema: JsonValue, data: st.DataObject) -> None:
    whole: JsonValue = {"anyOf": [schema], "$defs": DEFINITIONS}
    made = pieces("give", None, whole)
    value = data.draw(fitting(schema))
    if jsonschema.Draft202012Validator(whole).is_valid(value):  # pyright: ignore[reportUnknownMemberType]
        assert made.convert(value) == value
        annotated(made, made.returns).validate_python({"value": value}, strict=True)


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        ({"root": {"name": "a", "children": [{"name": "b"}]}}, True),
        ({"root": {"name": "a"}, "mode": "slow", "note": None}, True),
        ({"mode": "fast"}, False),
        ({"root": {"name": 1}}, False),
        ({"root": {"name": "a"}, "mode": "medium"}, False),
    ],
)
def test_a_tree_as_input_reaches_the_tool_or_is_refused_before_it(
    arguments: dict[str, Any], good: bool
) -> None:
    arrived: list[Any] = []
    operation = tool("render", TREE)
    if good:
        arrived.append(called(operation, arguments))
        assert arrived == [arguments]  # nothing added for the defaults
    else:
        with pytest.raises(UsageError):
            operation.parse(arguments)


def test_recursion_and_optional_fields_keep_their_types() -> None:
    made = pieces("render", TREE, {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}})
    assert [(one.name, one.annotation, one.required, one.default) for one in made.parameters] == [
        ("root", "Node", True, None),
        ("mode", 'Literal["fast", "slow"]', False, "fast"),
        ("note", "str | None", False, None),
    ]
    # what is returned is of the same type as what is taken
    assert made.returns == "Node"
    assert made.declarations == (
        "class Node(TypedDict):\n    name: str\n    children: NotRequired[list[Node]]",
    )


def test_arguments_travel_under_their_own_names() -> None:
    made = pieces(
        "search",
        {
            "type": "object",
            "properties": {
                "per-page": {"type": "integer"},
                "from": {"type": "string"},
                "self": {},
                "per_page": {},
            },
            "required": ["from"],
        },
        None,
    )
    assert {one.name: one.original for one in made.parameters} == {
        "from_": "from",
        "per_page_2": "per-page",
        "self_": "self",
        "per_page": "per_page",
    }
    assert made.parse({"from": "x", "per-page": 2}) == {"from": "x", "per-page": 2}


def test_a_single_required_argument_may_be_given_by_place() -> None:
    properties: JsonValue = {"a": {"type": "string"}, "b": {"type": "string"}}
    one = pieces("f", {"type": "object", "properties": properties, "required": ["b"]}, None)
    assert [(two.name, two.positional) for two in one.parameters] == [("b", True), ("a", False)]
    both = pieces("f", {"type": "object", "properties": properties, "required": ["b", "a"]}, None)
    assert not any(two.positional for two in both.parameters)


COMPOSED: list[tuple[JsonValue, list[str], list[str]]] = [
    (None, [], []),
    ({}, [], []),
    (True, [], []),
    ({"type": "object"}, [], []),
    (
        {
            "$ref": "#/$defs/A",
            "$defs": {"A": {"type": "object", "properties": {"a": {}}, "required": ["a"]}},
        },
        ["a"],
        ["a"],
    ),
    (
        {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
        ["a", "b"],
        ["a"],
    ),
    (
        {
            "oneOf": [
                {"properties": {"a": {}, "c": {}}, "required": ["a", "c"]},
                {"properties": {"b": {}, "c": {}}, "required": ["b", "c"]},
            ]
        },
        ["c", "a", "b"],
        ["c"],
    ),
]


@pytest.mark.parametrize(("schema", "names", "required"), COMPOSED)
def test_arguments_of_composed_schemas(schema: JsonValue, names: list[str], required: list[str]) -> None:
    made = pieces("f", schema, None)
    assert sorted(one.name for one in made.parameters) == sorted(names)
    assert [one.name for one in made.parameters if one.required] == required


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        ({"properties": {"a": {"$ref": "https://schemas.example/x.json"}}}, "$.properties.a[\"$ref\"]", "https://schemas.example/x.json"),
        ({"properties": {"a": {"$ref": "other.json#/T"}}}, "$.properties.a[\"$ref\"]", "other.json#/T"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "$.properties.a[\"$ref\"]", "file:///etc/passwd"),
        ({"properties": {"a": {"$ref": "#/$defs/Gone"}}}, "$.properties.a[\"$ref\"]", "#/$defs/Gone"),
        ({"properties": {"a": {"$ref": "#gone"}}}, "$.properties.a[\"$ref\"]", "#gone"),
        ({"properties": {"a": {"$ref": 3}}}, "$.properties.a[\"$ref\"]", "not text"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "$.properties.a[\"$dynamicRef\"]", "$dynamicRef"),
        ({"properties": []}, "$.properties", "list"),
        ({"properties": {"a": 3}}, "$.properties.a", "int"),
        ({"properties": {"a": {"type": "strin"}}}, "$.properties.a.type", "strin"),
        ({"properties": {"a": {"type": []}}}, "$.properties.a.type", "list"),
        ({"properties": {"a": {"enum": "x"}}}, "$.properties.a.enum", "'x'"),
        ({"properties": {"a": {"minLength": -1}}}, "$.properties.a.minLength", "-1"),
        ({"properties": {"a": {"multipleOf": 0}}}, "$.properties.a.multipleOf", "0"),
        ({"properties": {"a": {"minimum": "1"}}}, "$.properties.a.minimum", "'1'"),
        ({"properties": {"a": {"pattern": 1}}}, "$.properties.a.pattern", "1"),
        ({"properties": {"a": {"anyOf": {}}}}, "$.properties.a.anyOf", "dict"),
        ({"dependentRequired": {"a": "b"}}, "$.dependentRequired", "dict"),
        ({"properties": {"a": {"required": "x"}}}, "$.properties.a.required", "'x'"),
        ({"type": "array"}, "$", "array"),
        ([], "$", "list"),
        (False, "$", "false"),
    ],
)  # fmt: skip
def test_schemas_that_cannot_be_contracts_are_refused_by_place(
    schema: JsonValue, place: str, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        pieces("f", schema, None)
    assert caught.value.code == "schema-unsupported"
    assert caught.value.details["path"] == place
    assert words in caught.value.message


def nested(depth: int) -> JsonValue:
    schema: JsonValue = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return {"type": "object", "properties": {"a": schema}}


def test_deep_schemas_are_bounded() -> None:
    assert pieces("f", nested(60), None).parameters[0].annotation.endswith("[Any" + "]" * 13)
    with pytest.raises(UsageError) as caught:
        pieces("f", nested(5_000), None)
    assert caught.value.code == "schema-unsupported"


def test_huge_schemas_are_bounded() -> None:
    wide: JsonValue = {
        "type": "object",
        "properties": {
            f"p{i}": {"type": "object", "properties": {f"q{j}": {"enum": [f"{i}-{j}"]} for j in range(20)}}
            for i in range(400)
        },
    }
    made = pieces("f", wide, None)
    assert len(made.parameters) == 400
    assert sum(map(len, made.declarations)) < 60_000
    empty: list[JsonValue] = [{}] * 1_000
    many: JsonValue = {"type": "object", "properties": {f"p{i}": {"anyOf": empty} for i in range(60)}}
    with pytest.raises(UsageError, match="more than 50,000 parts"):
        pieces("f", many, None)


def test_references_that_multiply_end() -> None:
    # each level refers ten times to the next: 10 ** 12 ways through, which no time limit would forgive
    definitions: dict[str, JsonValue] = {
        f"L{level}": {"anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/L{level + 1}"}}] * 10}
        for level in range(12)
    }
    definitions["L12"] = {"type": "string"}
    pieces("f", {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": definitions}, None)


def test_a_chain_of_references_longer_than_the_stack_ends() -> None:
    definitions: dict[str, JsonValue] = {
        f"L{level}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/L{level + 1}"}}}
        for level in range(2_000)
    }
    definitions["L2000"] = {"type": "string"}
    made = pieces(
        "f", {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": definitions}, None
    )
    assert made.parse({"a": {"next": {"next": {}}}}) == {"a": {"next": {"next": {}}}}


def test_many_literals_become_their_type() -> None:
    made = argument({"enum": [f"value-{i}" for i in range(500)]})
    assert made.parameters[0].annotation == "str"
    with pytest.raises(UsageError, match="expected one of 'value-0'"):
        made.parse({"value": "value-x"})


@pytest.mark.parametrize(
    ("arguments", "path", "words", "hint"),
    [
        ({"cty": "x"}, "$.cty", "no argument 'cty'", "Did you mean 'city'?"),
        ({}, "$.city", "missing", "describe"),
        ({"city": 3}, "$.city", "expected str, got int 3", "describe"),
        ({"city": "x", "days": "5"}, "$.days", "expected int, got str '5'", "describe"),
        ({"city": "x", "where": {"lat": "1"}}, "$.where.lat", "expected float, got str", "describe"),
        ({"city": "x", "where": {"lta": 1}}, "$.where.lta", "no such key. Did you mean 'lat'?", "describe"),
        ({"city": "x", "tags": ["a", None]}, "$.tags[1]", "expected str, got NoneType", "describe"),
    ],
)
def test_refusals_name_the_place_the_type_and_the_next_step(
    arguments: dict[str, Any], path: str, words: str, hint: str
) -> None:
    made = pieces(
        "forecast",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}},
                    "additionalProperties": False,
                },
            },
            "required": ["city"],
        },
        None,
    )
    with pytest.raises(UsageError) as caught:
        made.parse(arguments)
    assert caught.value.details == {"path": path}
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_arguments_that_a_schema_invites_by_word_are_let_through() -> None:
    made = pieces(
        "f", {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}, None
    )
    assert made.parse({"anything": 1}) == {"anything": 1}
    with pytest.raises(UsageError):
        made.parse({"anything": "x"})


def test_patterns_that_could_take_for_ever_are_left_to_the_far_side() -> None:
    made = argument({"type": "string", "pattern": "^(a+)+$"})
    assert made.parse({"value": "a" * 60 + "b"}) == {"value": "a" * 60 + "b"}


def test_the_dialect_that_a_schema_names_is_used() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    made = pieces(
        "f",
        {
            "$schema": draft,
            "type": "object",
            "properties": {"a": {"type": "array", "items": [{"type": "integer"}]}},
        },
        None,
    )
    assert made.parse({"a": [1, "x"]}) == {"a": [1, "x"]}
    unknown = pieces("f", {"$schema": "https://schemas.example/mine", "type": "object"}, None)
    assert unknown.parse({}) == {}


def test_without_output_schema_the_result_is_left_alone() -> None:
    made = pieces("f", None, None)
    value = object()
    assert made.returns == "Any"
    assert made.output_schema is None
    assert made.convert(value) is value


def test_the_operation_says_what_it_was_told() -> None:
    operation = tool("forecast", TREE, TREE, doc="The weather.")
    assert (operation.name, operation.contract, operation.effect, operation.doc) == (
        "forecast",
        "sample.forecast/1",
        "read",
        "The weather.",
    )
    assert operation.input_schema == TREE
    assert operation.returns == "ForecastResult"
    assert asyncio.run(echo({"a": 1})) == {"a": 1}


def test_alternatives_that_multiply_along_the_value_end() -> None:
    # each level of the value asks both alternatives, which are the same: 2 ** 90 ways to be wrong
    either: JsonValue = {"anyOf": [{"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}]}
    made = argument({"$ref": "#/$defs/T", "$defs": {"T": {"type": "array", "items": either}}})
    value: Any = "no list"
    for _ in range(90):
        value = [value]
    with pytest.raises(UsageError, match=r"too long|too deeply") as caught:
        made.parse({"value": value})
    assert caught.value.code == "arguments-invalid"


def test_many_items_are_compared_once() -> None:
    made = argument({"type": "array", "uniqueItems": True})
    many: list[Any] = [{"n": n} for n in range(20_000)]
    assert made.parse({"value": many}) == {"value": many}
    for equal in ([1, 1.0], [[{"a": 1}], [{"a": 1.0}]], [None, None]):
        with pytest.raises(UsageError, match="two items are equal"):
            made.parse({"value": equal})
    distinct: list[Any] = [1, True, "1", [1], {"a": 1}, None, False, 0, {}, []]
    assert made.parse({"value": distinct}) == {"value": distinct}


def test_long_lists_of_referred_records_pass() -> None:
    made = pieces(
        "give", None, {"type": "array", "items": {"$ref": "#/$defs/R"}, "$defs": {"R": {"minProperties": 1}}}
    )
    rows: list[Any] = [{"n": n} for n in range(60_000)]
    assert made.convert(rows) == rows
