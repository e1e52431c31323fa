"""A quick yes to values that plainly are what a schema declares.

Most values are. Where a schema uses only what is understood here, it becomes a tree of closures, which take a value in
a microsecond and never wrongly: of exact built-in types alone, and only where making the value what is declared would
leave it as it is. Every other answer is "not known", and the validator decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from affidavit.evidence.record import JsonValue
from affidavit.namespaces._jsonschema import resolve

__all__ = ["NOT_KNOWN", "Take", "taker"]

Take: TypeAlias = Callable[[Any], Any]
"""Gives a copy of the value, down to where the schema leaves open what comes, or `NOT_KNOWN`."""

NOT_KNOWN: Final[Any] = object()

_SAYS_NOTHING: Final = frozenset(
    ("title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly", "$defs")
)
_UNDERSTOOD: Final = _SAYS_NOTHING | {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref")
}
_MAX_DEPTH: Final = 40
_MAX_REFERENCES: Final = 1_000_000


class _Unknown(Exception):  # noqa: N818 - an answer, not an error
    """The schema says something that is not understood here."""


def taker(schema: JsonValue) -> Take | None:
    """A function that takes only values that the schema accepts as they are; None for schemas not understood."""
    compiler = _Compiler(schema)
    try:
        take = compiler.of(schema, 0)
    except _Unknown:
        return None

    def whole(value: Any) -> Any:
        compiler.left = _MAX_REFERENCES
        return take(value)

    return whole if compiler.refers else take


class _Compiler:
    def __init__(self, document: JsonValue) -> None:
        self._document = document
        self._named: dict[str, Take] = {}
        self.left = _MAX_REFERENCES

    @property
    def refers(self) -> bool:
        """Whether the schema has references, which alternatives could follow without end."""
        return bool(self._named)

    def of(self, schema: JsonValue, depth: int) -> Take:
        if schema is True:
            return _anything
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            raise _Unknown
        node = {
            key: value for key, value in cast("dict[str, Any]", schema).items() if key not in _SAYS_NOTHING
        }
        if not node.keys() <= _UNDERSTOOD:
            raise _Unknown
        if not node:
            return _anything
        if "$ref" in node or "anyOf" in node:
            if len(node) > 1:
                raise _Unknown
            return self._reference(str(node["$ref"]), depth) if "$ref" in node else self._any(node, depth)
        return self._literal(node) if "enum" in node or "const" in node else self._typed(node, depth)

    def _reference(self, name: str, depth: int) -> Take:
        """A definition is compiled once; one that refers to itself finds itself by name when a value comes."""
        known = self._named

        def take(value: Any) -> Any:
            self.left -= 1
            return known[name](value) if self.left > 0 else NOT_KNOWN

        if name not in known:
            known[name] = take
            known[name] = self.of(resolve(self._document, name), depth + 1)
        return take

    def _any(self, node: Mapping[str, Any], depth: int) -> Take:
        return _first([self.of(branch, depth + 1) for branch in node["anyOf"]])

    def _literal(self, node: Mapping[str, Any]) -> Take:
        values: list[Any] = node["enum"] if "enum" in node else [node["const"]]
        more = node.keys() - {"enum", "const", "type"}
        both = "enum" in node and "const" in node
        if (
            more
            or both
            or node.get("type", "string") != "string"
            or any(type(one) is not str for one in values)
        ):
            raise _Unknown
        allowed = frozenset(values)
        return lambda value: value if type(value) is str and value in allowed else NOT_KNOWN

    def _typed(self, node: Mapping[str, Any], depth: int) -> Take:
        if "type" not in node:
            raise _Unknown  # `properties` and `items` alone say nothing of values of other types
        kind: Any = node["type"]
        kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
        return _first([self._kind(one, node, depth) for one in kinds])

    def _kind(self, kind: Any, node: Mapping[str, Any], depth: int) -> Take:
        if kind == "object":
            return self._object(node, depth)
        if kind == "array":
            return self._array(node, depth)
        if kind == "number":
            return _number
        exact = _EXACT.get(kind)
        if exact is None:
            raise _Unknown
        return lambda value: value if type(value) is exact else NOT_KNOWN

    def _array(self, node: Mapping[str, Any], depth: int) -> Take:
        item = self.of(node.get("items", True), depth + 1)

        def take(value: Any) -> Any:
            if type(value) is not list:
                return NOT_KNOWN
            made = [item(one) for one in cast("list[Any]", value)]
            return NOT_KNOWN if any(one is NOT_KNOWN for one in made) else made

        return take

    def _object(self, node: Mapping[str, Any], depth: int) -> Take:
        known = {key: self.of(value, depth + 1) for key, value in node.get("properties", {}).items()}
        required = frozenset[Any](node.get("required", ()))
        extra: Any = node.get("additionalProperties", True)
        other = _nothing if extra is False else self.of(extra, depth + 1)

        def take(value: Any) -> Any:
            if type(value) is not dict or not required <= cast("dict[Any, Any]", value).keys():
                return NOT_KNOWN
            made: dict[Any, Any] = {}
            for key, item in cast("dict[Any, Any]", value).items():
                one = known.get(key, other)(item)
                if one is NOT_KNOWN:
                    return NOT_KNOWN
                made[key] = one
            return made

        return take


def _first(branches: list[Take]) -> Take:
    if len(branches) == 1:
        return branches[0]

    def take(value: Any) -> Any:
        for branch in branches:
            made = branch(value)
            if made is not NOT_KNOWN:
                return made
        return NOT_KNOWN

    return take


def _anything(value: Any) -> Any:
    return value


def _nothing(value: Any) -> Any:
    del value
    return NOT_KNOWN


def _number(value: Any) -> Any:
    # 1.0 may be meant as the integer of another alternative: the validator decides
    fits = type(value) is int or (type(value) is float and not value.is_integer())
    return value if fits else NOT_KNOWN


_EXACT: Final[Mapping[Any, type]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "bytes": bytes,
}
