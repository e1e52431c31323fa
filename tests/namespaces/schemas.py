"""Schemas with values that they accept and refuse, and generated ones."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import strategies as st

from affidavit.evidence.record import JsonValue

NODE: JsonValue = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name"],
}

TREE: JsonValue = {
    "type": "object",
    "properties": {
        "root": {"$ref": "#/$defs/Node"},
        "mode": {"enum": ["fast", "slow"], "default": "fast"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["root"],
    "$defs": {"Node": NODE},
}

# what it is -> (schema of one value, accepted values, refused values)
CASES: dict[str, tuple[JsonValue, list[Any], list[Any]]] = {
    "anything": ({}, [1, "a", None, [1], {"a": 1}], []),
    "true": (True, [1, None], []),
    "only words": ({"description": "whatever"}, [1, None, "x"], []),
    "text": ({"type": "string"}, ["", "a"], [1, None, [], {}]),
    "a format is text": ({"type": "string", "format": "date-time"}, ["2024-02-29T12:00:00Z"], [1]),
    "integer": ({"type": "integer"}, [0, -3, 2**60], ["1", 1.5, True, None]),
    "number": ({"type": "number"}, [0, 1.5, -2], ["1", True, None]),
    "boolean": ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
    "null": ({"type": "null"}, [None], [0, "", False]),
    "enum": ({"enum": ["fast", "slow"]}, ["fast"], ["medium", 1, None]),
    "mixed enum": ({"enum": ["a", 1, None, True]}, ["a", 1, None, True], ["b", 2, False]),
    "enum of numbers with a part": ({"enum": [1.5, "x"]}, [1.5, "x"], [2.5, "y"]),
    "enum of objects": ({"enum": [{"a": 1}, [2]]}, [{"a": 1}, [2]], [{"a": 2}, 3]),
    "const": ({"const": "v1"}, ["v1"], ["v2", None]),
    "optional by anyOf": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1]),
    "optional by type list": ({"type": ["integer", "null"]}, [1, None], ["a", 1.5]),
    "nullable": ({"type": "string", "nullable": True}, ["a", None], [1]),
    "nullable enum": ({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b"]),
    "nullable reference": (
        {"$ref": "#/$defs/T", "nullable": True, "$defs": {"T": {"type": "integer"}}},
        [1, None],
        ["a"],
    ),
    "oneOf": ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [None, 1.5]),
    "list": ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]], [[1, "a"], 1, {}]),
    "list of anything": ({"type": "array"}, [[], [1, "a", None]], [1]),
    "tuple": (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        [[1, "a"], [1]],
        [["a", 1], [1, "a", 2]],
    ),
    "draft-07 tuple": (
        {"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False},
        [[1, "a"]],
        [["a", 1], [1, "a", 2]],
    ),
    "mapping": ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}], [{"a": "x"}, 1]),
    "free object": ({"type": "object"}, [{}, {"a": [1]}], [1, []]),
    "pattern keys": (
        {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False},
        [{"x-a": 1}],
        [{"x-a": "1"}, {"y": 1}],
    ),
    "record": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
        [{"a": 1}, {"a": 1, "b": "x"}],
        [{}, {"a": "1"}, {"a": 1, "b": None}],
    ),
    "closed record": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        [{}, {"a": 1}],
        [{"b": 1}],
    ),
    "open record": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"a": 1, "z": "x"}],
        [{"z": 1}],
    ),
    "required but undescribed": ({"type": "object", "required": ["z"]}, [{"z": 1}], [{}]),
    "keys that are no names": (
        {
            "type": "object",
            "properties": {"class": {"type": "integer"}, "a-b": {"type": "string"}, "": {"type": "null"}},
            "required": ["class"],
        },
        [{"class": 1, "a-b": "x", "": None}],
        [{"class": "1"}, {"a-b": "x"}],
    ),
    "keys that hide types": (
        {
            "type": "object",
            "properties": {"list": {"type": "array", "items": {"type": "string"}}, "str": {"type": "string"}},
        },
        [{"list": ["a"], "str": "b"}],
        [{"list": [1]}],
    ),
    "allOf of objects": (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "string"}}},
            ]
        },
        [{"a": 1, "b": "x"}, {"a": 1}],
        [{"b": "x"}, {"a": "1"}],
    ),
    "allOf narrowing": ({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}, ["a"], ["c", 1]),
    "allOf of one": ({"allOf": [{"type": "string"}], "description": "d"}, ["a"], [1]),
    "reference with words": (
        {"$ref": "#/$defs/T", "description": "d", "$defs": {"T": {"type": "integer"}}},
        [1],
        ["a"],
    ),
    "definitions of draft-07": (
        {"$ref": "#/definitions/T", "definitions": {"T": {"type": "integer"}}},
        [1],
        ["a"],
    ),
    "a node that holds itself": (
        {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
        [{"name": "a", "children": [{"name": "b", "children": []}]}],
        [{"name": "a", "children": [{"name": 1}]}, {"children": []}],
    ),
    "two that hold each other": (
        {
            "$ref": "#/$defs/A",
            "$defs": {
                "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
                "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
            },
        },
        [{}, {"b": {"a": {"b": {}}}}],
        [{"b": {"a": 1}}],
    ),
    "recursion without an object": (
        {
            "$ref": "#/$defs/J",
            "$defs": {"J": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]}},
        },
        ["a", ["a", ["b"]]],
        [1, ["a", [1]]],
    ),
    "anyOf beside properties": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}],
        [{}, {"a": "x"}],
    ),
    "union of records": (
        {
            "oneOf": [
                {"type": "object", "properties": {"t": {"const": "x"}, "v": {"type": "integer"}}, "required": ["t"]},
                {"type": "object", "properties": {"t": {"const": "y"}, "w": {"type": "string"}}, "required": ["t"]},
            ]
        },
        [{"t": "x", "v": 1}, {"t": "y", "w": "a"}],
        [{"t": "z"}, {"t": "x", "v": "1"}],
    ),
    "an anchor": (
        {"$ref": "#thing", "$defs": {"T": {"$anchor": "thing", "type": "integer"}}},
        [1],
        ["a"],
    ),
    "its own id": (
        {
            "$id": "https://schemas.example/a.json",
            "$ref": "https://schemas.example/a.json#/$defs/T",
            "$defs": {"T": {"type": "integer"}},
        },
        [1],
        ["a"],
    ),
    "a bundled document": (
        {
            "$id": "https://schemas.example/a.json",
            "$ref": "b.json#/$defs/T",
            "$defs": {"B": {"$id": "b.json", "$defs": {"T": {"type": "integer"}}}},
        },
        [1],
        ["a"],
    ),
    "names with slashes": (
        {"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}}},
        [1],
        ["a"],
    ),
    "bounds": ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
    "draft-04 bound": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
    "pattern": ({"type": "string", "pattern": "^a+$"}, ["aa"], ["b"]),
    "deep inline": (
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {
            "type": "object", "properties": {"c": {"type": "boolean"}}}}}}}},
        [{"a": {"b": [{"c": True}]}}],
        [{"a": {"b": [{"c": 1}]}}],
    ),
}  # fmt: skip

_KEYS = st.sampled_from(["a", "b", "class", "x-y", "list", "None", "self"])
_LEAVES: st.SearchStrategy[JsonValue] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", "b"]},
        {"enum": [1, "1", None]},
        {"const": 3},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/Node"},
        {"$ref": "#/$defs/Text"},
        {},
        True,
    ]
)
DEFINITIONS: JsonValue = {"Node": NODE, "Text": {"type": "string"}}


def _record(fields: dict[str, JsonValue], needed: set[str], closed: bool) -> JsonValue:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": fields,
        "required": sorted(set(fields) & needed),
    }
    return {**schema, "additionalProperties": False} if closed else schema


def _grow(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    properties = st.dictionaries(_KEYS, inner, max_size=3)
    return st.one_of(
        inner.map(lambda one: {"type": "array", "items": one}),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"type": "array", "prefixItems": some}),
        inner.map(lambda one: {"type": "object", "additionalProperties": one}),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"allOf": some}),
        st.builds(_record, properties, st.sets(_KEYS, max_size=3), st.booleans()),
    )


SCHEMAS: st.SearchStrategy[JsonValue] = st.recursive(_LEAVES, _grow, max_leaves=6)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 3),
        st.sampled_from([0.5, -1.5]),
        st.sampled_from(["a", "b", "", "1", "name"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(_KEYS, st.sampled_from(["name", "children", "z"])), inner, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def fitting(draw: st.DrawFn, schema: JsonValue, depth: int = 0) -> Any:
    """A value that is likely to fit a generated schema."""
    if schema in (True, {}) or depth > 4:
        return draw(VALUES)
    if "$ref" in schema:
        inner = NODE if schema["$ref"].endswith("Node") else {"type": "string"}
        return draw(fitting(inner, depth + 1))
    if "anyOf" in schema:
        return draw(fitting(draw(st.sampled_from(schema["anyOf"])), depth + 1))
    if "allOf" in schema:
        return draw(fitting(schema["allOf"][0], depth + 1))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    return draw(_typed(schema, depth))


@st.composite
def _typed(draw: st.DrawFn, schema: dict[str, Any], depth: int) -> Any:
    named: Any = schema["type"]
    kind: str = draw(st.sampled_from(cast("list[str]", named))) if isinstance(named, list) else named
    if kind == "array":
        if "prefixItems" in schema:
            return [draw(fitting(one, depth + 1)) for one in schema["prefixItems"]]
        return draw(st.lists(fitting(schema["items"], depth + 1), max_size=2))
    if kind == "object":
        if "properties" not in schema:
            return draw(
                st.dictionaries(_KEYS, fitting(schema["additionalProperties"], depth + 1), max_size=2)
            )
        return {
            key: draw(fitting(one, depth + 1))
            for key, one in schema["properties"].items()
            if key in schema["required"] or draw(st.booleans())
        }
    simple = {
        "string": st.sampled_from(["a", "b", "1"]),
        "integer": st.integers(-3, 3),
        "number": st.sampled_from([0.5, 2]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(simple[kind])
