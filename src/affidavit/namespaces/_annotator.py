"""JSON Schema as Python annotations: the types that a script is checked against.

An annotation may be wider than the schema (validation says the rest at the call), never narrower: a correct script
is not to be refused because of its stub. Input places therefore take `Sequence` where `list` would be invariant, and
objects that allow further keys by word are plain `dict`s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast

from affidavit.evidence.record import JsonValue
from affidavit.namespaces._jsonschema import resolve
from affidavit.namespaces.annotations import MAX_ANNOTATION, Fields, literals, typed_dict, union
from affidavit.namespaces.names import class_name

__all__ = ["Annotator", "Direction"]

MAX_INLINE_DEPTH: Final = 12
MAX_DECLARATIONS: Final = 120
MAX_DECLARED_CHARACTERS: Final = 48_000
MAX_VISITS: Final = 20_000
MAX_NESTING: Final = 30

_SIMPLE: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_COMBINED: Final = frozenset({"anyOf", "oneOf", "allOf", "$ref"})
_OBJECT: Final = frozenset({"properties", "additionalProperties", "patternProperties", "required"})
_ARRAY: Final = frozenset({"items", "prefixItems", "contains"})

Direction: TypeAlias = Literal["input", "output"]
Place: TypeAlias = tuple[int, str, str]
"""Identity of a document, pointer into it, direction."""


@dataclass(slots=True)
class Annotator:
    """Annotations of the schemas of one operation, which share one set of declarations.

    Attributes:
        declared: name -> stub source, in the order in which they were needed.
    """

    declared: dict[str, str] = field(default_factory=dict[str, str])
    by_place: dict[Place, str] = field(default_factory=dict[Place, str])
    open: set[Place] = field(default_factory=set[Place])
    documents: list[JsonValue] = field(default_factory=list[JsonValue])
    shapes: dict[str, tuple[Fields, str]] = field(default_factory=dict[str, "tuple[Fields, str]"])
    visits: int = 0
    nesting: int = 0

    def annotation(self, schema: JsonValue, *, document: JsonValue, direction: Direction, hint: str) -> str:
        """Annotation of `schema`, a part of `document` (normalised). `hint` names what gets declared for it."""
        self.documents.append(document)  # keeps id(document) unique for as long as places are remembered
        text = _Walk(annotator=self, document=document, direction=direction).of(schema, hint, 0)
        return text if len(text) <= MAX_ANNOTATION else "Any"

    def fields(
        self, schema: Mapping[str, JsonValue], *, document: JsonValue, direction: Direction, hint: str
    ) -> dict[str, tuple[str, bool]]:
        """Annotation and required-ness of each property of an object schema."""
        self.documents.append(document)
        return _Walk(annotator=self, document=document, direction=direction).fields(schema, hint, 0)

    def full(self) -> bool:
        """Whether no further declarations are taken; what is nested deeper then becomes `dict[str, Any]`."""
        return (
            self.nesting >= MAX_NESTING
            or len(self.declared) >= MAX_DECLARATIONS
            or sum(map(len, self.declared.values())) >= MAX_DECLARED_CHARACTERS
        )

    def remember(self, place: Place, name: str) -> None:
        """A place was declared as `name`, whichever direction it is read in."""
        for direction in ("input", "output"):
            self.by_place[(place[0], place[1], direction)] = name

    def twin(self, name: str, fields: Fields, doc: str) -> str | None:
        """A finished declaration that says the same under another name, unless something refers to `name` already."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        if any(word.search(source) for source in self.declared.values()):
            return None
        mine = _as_self(fields, name)
        for other, (shape, words) in self.shapes.items():
            if words == doc and len(shape) == len(fields) and _as_self(shape, other) == mine:
                return other
        return None

    def take(self, wish: str) -> str:
        """A free class name, reserved at once so that a type may refer to itself."""
        name, number = wish, 2
        while name in self.declared:
            name, number = f"{wish}{number}", number + 1
        self.declared[name] = ""
        return name


@dataclass(slots=True)
class _Walk:
    annotator: Annotator
    document: JsonValue
    direction: Direction

    def of(self, schema: JsonValue, hint: str, depth: int) -> str:
        if schema is True or schema == {}:
            return "Any"
        if schema is False:
            return "Never"
        self.annotator.visits += 1
        if depth > MAX_INLINE_DEPTH or self.annotator.visits > MAX_VISITS or not isinstance(schema, dict):
            return "Any"
        node = cast(dict[str, JsonValue], schema)
        if "$bytes" in _mapping(node.get("properties")) and node.get("additionalProperties") is False:
            return "bytes"
        if _COMBINED & node.keys():
            return self._combined(node, hint, depth)
        if "const" in node:
            return literals([node["const"]])
        if isinstance(node.get("enum"), list):
            return literals(cast(list[JsonValue], node["enum"]))
        return self._typed(node, hint, depth)

    def _combined(self, node: dict[str, JsonValue], hint: str, depth: int) -> str:
        if "$ref" in node:
            rest = _rest(node, "$ref")
            if not rest:
                return self._reference(str(node["$ref"]), hint, depth)
            target = resolve(self.document, str(node["$ref"]))
            if not _constrains(rest):
                return self._reference(str(node["$ref"]), hint, depth)
            return self._merged([target, rest], hint, depth)
        if "allOf" in node:
            return self._merged([*_list(node["allOf"]), _rest(node, "allOf")], hint, depth)
        key = "anyOf" if "anyOf" in node else "oneOf"
        rest = _rest(node, key)
        branches = _list(node[key])
        if _constrains(rest):
            merged = [self._merged([branch, rest], f"{hint}Option", depth + 1) for branch in branches]
            return union(merged)
        return union(
            [self.of(branch, _branch_hint(hint, branch, branches), depth + 1) for branch in branches]
        )

    def _reference(self, pointer: str, hint: str, depth: int) -> str:
        place = (id(self.document), pointer, self.direction)
        known = self.annotator.by_place.get(place)
        if known is not None:
            return known
        if place in self.annotator.open:
            return "Any"  # recursion that passes through no object has no name to close on
        target = resolve(self.document, pointer)
        wish = class_name(pointer.rsplit("/", 1)[-1], fallback=hint)
        if isinstance(target, dict) and self._declares(cast(dict[str, JsonValue], target)):
            return self._declare(cast(dict[str, JsonValue], target), wish, 0, place)
        self.annotator.open.add(place)
        try:
            text = self.of(target, wish, depth + 1)
        finally:
            self.annotator.open.discard(place)
        if not self.annotator.open:
            self.annotator.by_place[place] = text
        return text

    def _merged(self, schemas: Sequence[JsonValue], hint: str, depth: int) -> str:
        """An intersection. Objects are merged; of other types the most telling one is taken."""
        flat = self._flatten(schemas, 0)
        objects = [part for part in flat if _OBJECT & part.keys() or part.get("type") == "object"]
        if objects and len(objects) == len([part for part in flat if _constrains(part)]):
            return self._typed(_merge_objects(objects), hint, depth)
        found = [self.of(part, hint, depth + 1) for part in flat if _constrains(part)]
        telling = [text for text in found if text != "Any"]
        if not telling:
            return "Any"
        return min(telling, key=lambda text: (not text.startswith("Literal["), telling.index(text)))

    def _flatten(self, schemas: Sequence[JsonValue], level: int) -> list[dict[str, JsonValue]]:
        flat: list[dict[str, JsonValue]] = []
        for schema in schemas:
            if not isinstance(schema, dict) or level > MAX_INLINE_DEPTH:
                continue
            node = cast(dict[str, JsonValue], schema)
            if "$ref" in node:
                flat += self._flatten(
                    [resolve(self.document, str(node["$ref"])), _rest(node, "$ref")], level + 1
                )
            elif "allOf" in node:
                flat += self._flatten([*_list(node["allOf"]), _rest(node, "allOf")], level + 1)
            elif node:
                flat.append(node)
        return flat

    def _typed(self, node: dict[str, JsonValue], hint: str, depth: int) -> str:
        kind = node.get("type")
        if isinstance(kind, list):
            kinds = cast(list[JsonValue], kind)
            return union([self._typed({**node, "type": one}, hint, depth) for one in kinds])
        if isinstance(kind, str) and kind in _SIMPLE:
            return _SIMPLE[kind]
        if kind == "array" or (kind is None and _ARRAY & node.keys()):
            return self._array(node, hint, depth)
        if kind == "object" or (kind is None and _OBJECT & node.keys()):
            return self._object(node, hint, depth)
        return "Any"

    def _array(self, node: dict[str, JsonValue], hint: str, depth: int) -> str:
        items = node.get("prefixItems")
        rest = node.get("items", True)
        if isinstance(items, list) and items:
            if node.get("maxItems") == len(cast(list[JsonValue], items)):
                rest = False
            places = [
                self.of(item, f"{hint}Item{index}", depth + 1)
                for index, item in enumerate(cast(list[JsonValue], items))
            ]
            if rest is not False:
                places.append(self.of(rest, f"{hint}Item", depth + 1))
            # JSON arrays arrive as lists, and which place an index means is beyond a list's type
            together = union(places)
            element = together if self.direction == "input" or " | " not in together else "Any"
        else:
            element = self.of(rest, f"{hint}Item", depth + 1)
        return self._list_of(element)

    def _list_of(self, element: str) -> str:
        if self.direction == "input" and element not in ("str", "int", "bool", "Any", "None"):
            return f"Sequence[{element}]"
        return f"list[{element}]"

    def _dict_of(self, element: str) -> str:
        if self.direction == "input" and element not in ("str", "int", "bool", "Any", "None"):
            return f"Mapping[str, {element}]"
        return f"dict[str, {element}]"

    def _declares(self, node: dict[str, JsonValue]) -> bool:
        """Whether an object schema has a shape of its own, rather than being a mapping with free keys."""
        if _COMBINED & node.keys() or "enum" in node or "const" in node:
            return False
        if node.get("type", "object") != "object" or not _mapping(node.get("properties")):
            return False
        if {"$bytes", ""} & _mapping(node.get("properties")).keys():
            return False  # an empty name cannot stand in a TypedDict
        return not (_free(node.get("additionalProperties", False)) or _mapping(node.get("patternProperties")))

    def _object(self, node: dict[str, JsonValue], hint: str, depth: int) -> str:
        if self._declares(node):
            return self._declare(node, hint, depth, None)
        extra = node.get("additionalProperties", True)
        patterns = [
            self.of(value, f"{hint}Value", depth + 1)
            for value in _mapping(node.get("patternProperties")).values()
        ]
        if _mapping(node.get("properties")):
            return "dict[str, Any]"
        values = [
            *patterns,
            *([self.of(extra, f"{hint}Value", depth + 1)] if _free(extra) and extra is not True else []),
        ]
        if not patterns and extra is True:
            values = ["Any"]
        return self._dict_of(union(values) if values else "Any")

    def _declare(self, node: dict[str, JsonValue], hint: str, depth: int, place: Place | None) -> str:
        annotator = self.annotator
        if annotator.full():
            return "dict[str, Any]"
        name = annotator.take(hint)
        if place is not None:
            annotator.remember(place, name)
        annotator.nesting += 1
        # Inside declarations there is no direction: what one operation returns can be given to another.
        fields = replace(self, direction="output").fields(node, name, depth + 1)
        annotator.nesting -= 1
        doc = _first_line(node.get("description"))
        twin = annotator.twin(name, fields, doc)
        if twin is None:
            annotator.declared[name] = typed_dict(name, fields, doc=doc)
            annotator.shapes[name] = (fields, doc)
            return name
        del annotator.declared[name]
        if place is not None:
            annotator.remember(place, twin)
        return twin

    def fields(self, node: Mapping[str, JsonValue], hint: str, depth: int) -> dict[str, tuple[str, bool]]:
        required = {str(key) for key in _list(node.get("required"))}
        properties = _mapping(node.get("properties"))
        fields = {
            key: (self.of(value, hint + class_name(key, fallback="Field"), depth), key in required)
            for key, value in properties.items()
        }
        for key in sorted(required - properties.keys()):
            fields[key] = ("Any", True)
        return fields


def _merge_objects(parts: Sequence[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {"type": "object"}
    properties: dict[str, JsonValue] = {}
    required: dict[str, None] = {}
    for part in parts:
        for key, value in _mapping(part.get("properties")).items():
            properties[key] = {"allOf": [properties[key], value]} if key in properties else value
        required.update({str(key): None for key in _list(part.get("required"))})
        for key in ("additionalProperties", "patternProperties", "description"):
            if key in part:
                result.setdefault(key, part[key])
    if properties:
        result["properties"] = properties
    if required:
        result["required"] = list(required)
    return result


def _branch_hint(hint: str, branch: JsonValue, branches: Sequence[JsonValue]) -> str:
    shapes = sum(bool({"properties", "items"} & _mapping(one).keys()) for one in branches)
    if shapes < 2 or not isinstance(branch, dict):
        return hint
    title = cast(dict[str, JsonValue], branch).get("title")
    if isinstance(title, str):
        return class_name(title, fallback=hint)
    return f"{hint}Option{branches.index(branch) + 1}"


def _as_self(fields: Fields, name: str) -> list[tuple[str, str, bool]]:
    """Fields with the type's own name blanked, to compare types that refer to themselves."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return [
        (key, annotation if '"' in annotation else word.sub("\0", annotation), required)
        for key, (annotation, required) in fields.items()
    ]


def _first_line(value: JsonValue) -> str:
    return value.strip().splitlines()[0] if isinstance(value, str) and value.strip() else ""


def _rest(node: dict[str, JsonValue], key: str) -> dict[str, JsonValue]:
    return {name: value for name, value in node.items() if name != key}


def _constrains(node: Mapping[str, JsonValue]) -> bool:
    """Whether a schema says anything about the type, rather than only about words and bounds."""
    return bool((_COMBINED | _OBJECT | _ARRAY | {"type", "enum", "const"}) & node.keys())


def _free(extra: JsonValue) -> bool:
    """Whether `additionalProperties` invites further keys by word."""
    return extra is True or isinstance(extra, dict)


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return cast(dict[str, JsonValue], value) if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []
