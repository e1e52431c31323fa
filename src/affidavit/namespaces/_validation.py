"""Values against JSON Schemas: the validator, its errors in our words, and values made what a schema declares."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import math
import pathlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, cast

import pydantic_core

from affidavit.evidence.record import JsonValue
from affidavit.namespaces._jsonschema import json_path, resolve
from affidavit.namespaces._quick import NOT_KNOWN, taker
from affidavit.namespaces.names import suggestion

__all__ = ["Contract", "Problem", "is_safe_pattern"]

MAX_PATTERN_TEXT: Final = 512
MAX_DEPTH: Final = 100
MIN_REFERENCES: Final = 20_000
REFERENCES_EACH: Final = 20
"""References that may be followed for one value: so many at least, and so many for each of its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The most telling disagreement of a value with its schema."""

    path: str
    message: str


class Contract:
    """One compiled schema: what is wrong with a value, and the value as what the schema declares.

    The schema is one that `normalise` gave. `format` says nothing here, as the standard has it. A `pattern` is
    asserted only where matching it is cheap on any text (no repeated groups, no back-references, at most two open
    repetitions) and on at most 512 characters; the far side asserts the others.
    """

    __slots__ = ("_compiled", "_quick", "_schema", "_what")

    def __init__(self, schema: dict[str, JsonValue] | bool, *, what: str) -> None:
        self._what = what
        self._schema: JsonValue = _with_bytes(schema)
        self._compiled: Any = None
        self._quick = taker(self._schema)

    @property
    def _validator(self) -> Any:
        if self._compiled is None:
            import referencing

            library: Any = referencing  # its registry is generic in what nothing here needs
            # an empty registry: nothing can be looked up elsewhere
            self._compiled = _dialect()(self._schema, registry=library.Registry())
        return self._compiled

    def quick(self, value: Any) -> Any:
        """A copy of `value` where it plainly is what the schema declares, else `NOT_KNOWN`, which says nothing."""
        try:
            return NOT_KNOWN if self._quick is None else self._quick(value)
        except RecursionError:
            return NOT_KNOWN

    def problem(self, value: Any) -> Problem | None:
        """The most telling disagreement of `value` with the schema, or None."""
        token = _BUDGET.set(_Budget(value))
        try:
            error = _best_match(self._validator.iter_errors(value))
        except RecursionError:
            return Problem(path="$", message=f"it is nested too deeply for the schema of {self._what}")
        except _Spent:
            return Problem(path="$", message=f"it takes too long to hold against the schema of {self._what}")
        except (ArithmeticError, TypeError, ValueError) as error:
            return Problem(path="$", message=f"it cannot be held against the schema of {self._what}: {error}")
        finally:
            _BUDGET.reset(token)
        if error is None:
            return None
        return _problem(error, value)

    def declared(self, value: Any) -> Any:
        """`value` as the JSON types that the schema declares (a Decimal for a declared string becomes its text).

        What the schema leaves open stays as it is. What cannot be made what is declared stays as it is too, so that
        `problem` names it.
        """
        token = _BUDGET.set(_Budget(value))
        try:
            return _Declare(document=self._schema, accepts=self._accepts).of(value, self._schema, 0)
        except _Spent:
            return value  # then `problem` says that it takes too long
        finally:
            _BUDGET.reset(token)

    def _accepts(self, value: Any, subschema: JsonValue) -> bool:
        try:
            return self._validator.evolve(schema=subschema).is_valid(value)
        except RecursionError:
            return False


def is_safe_pattern(pattern: str) -> bool:
    """Whether matching costs little on any text of 512 characters."""
    plain = re.sub(
        r"\\.",
        "x",
        re.sub(r"\[(?:\\.|\^?\]|[^\]\\])(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL),
        flags=re.DOTALL,
    )
    if len(pattern) > 1_000 or re.search(r"\\[1-9kgpPuU]", pattern) or re.search(r"\)\s*[*+{]", plain):
        return False
    if re.search(r"\(\?[^:]", plain):
        return False
    return len(re.findall(r"[*+]|\{\d*,\d*\}", plain)) <= 2 and not re.search(r"\{\d{3,}", plain)


@functools.lru_cache(maxsize=1)
def _dialect() -> Any:
    """The library's validator class with our `pattern`, and with a type for bytes, which JSON shows tagged."""
    from jsonschema import Draft202012Validator as Base
    from jsonschema import validators

    library: Any = validators  # its stubs leave `extend` untyped
    return library.extend(
        Base,
        {
            "$ref": _reference,
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "uniqueItems": _unique_items,
        },
        type_checker=Base.TYPE_CHECKER.redefine_many({"bytes": _is_bytes, "number": _is_number}),
    )


class _Spent(Exception):  # noqa: N818 - a bound, told as a problem of the value
    """More references were followed than a value of this size can need."""


class _Budget:
    """How many references may still be followed for one value.

    Alternatives that refer to alternatives can multiply without end: a schema of a kilobyte can ask for 10**12 steps.
    """

    __slots__ = ("_grown", "_left", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        self._left = MIN_REFERENCES
        self._grown = False

    def spend(self) -> None:
        """Follow one more. Raises `_Spent`."""
        self._left -= 1
        if self._left >= 0:
            return
        if self._grown:
            raise _Spent
        self._grown = True
        self._left = REFERENCES_EACH * _parts(self._value)


_BUDGET: ContextVar[_Budget] = ContextVar("_BUDGET")


def _parts(value: Any) -> int:
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting.extend(cast("dict[Any, Any]", one).values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(cast("list[Any]", one))
    return count


def _reference(validator: Any, ref: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator as Base

    _BUDGET.get().spend()
    library: Any = Base.VALIDATORS["$ref"]
    yield from library(validator, ref, instance, schema) or ()


def _unique_items(validator: Any, asked: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
    # the library compares every item with every other
    from jsonschema.exceptions import ValidationError

    if asked is True and isinstance(instance, list):
        items = cast("list[Any]", instance)
        if len({_identity(one) for one in items}) < len(items):
            yield ValidationError("two items are equal")


def _identity(value: Any) -> Any:
    """What is equal exactly for equal JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return (
            "object",
            frozenset((key, _identity(one)) for key, one in cast("dict[Any, Any]", value).items()),
        )
    if isinstance(value, list):
        return ("array", tuple(_identity(one) for one in cast("list[Any]", value)))
    return (isinstance(value, bool), value)


def _is_bytes(checker: Any, value: Any) -> bool:  # noqa: ARG001
    return isinstance(value, bytes)


def _is_number(checker: Any, value: Any) -> bool:  # noqa: ARG001
    # the library would take any of `numbers`, such as a Decimal that no float can hold
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _with_bytes(schema: Any) -> Any:
    """The schema with `{"$bytes": ...}` objects as a type of their own: inside, bytes are Python's."""
    if isinstance(schema, list):
        return [_with_bytes(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    properties = node.get("properties")
    if isinstance(properties, dict) and "$bytes" in properties:
        return {"type": "bytes"}
    return {key: _with_bytes(value) for key, value in node.items()}


def _best_match(errors: Iterator[Any]) -> Any:
    from jsonschema import exceptions

    library: Any = exceptions  # its stubs leave the result untyped
    return library.best_match(errors)


def _compiled(pattern: Any) -> re.Pattern[str] | None:
    if not isinstance(pattern, str) or not is_safe_pattern(pattern):
        return None
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None  # ECMAScript syntax that Python does not know: the far side asserts it


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str) or len(instance) > MAX_PATTERN_TEXT:
        return
    compiled = _compiled(pattern)
    if compiled is not None and not compiled.search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
    if not isinstance(instance, dict):
        return
    for pattern, subschema in cast(dict[str, Any], patterns).items():
        compiled = _compiled(pattern)
        if compiled is None:
            continue
        for key, value in cast(dict[Any, Any], instance).items():
            if isinstance(key, str) and len(key) <= MAX_PATTERN_TEXT and compiled.search(key):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


_EXPECTED: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def _problem(error: Any, value: Any) -> Problem:
    path = cast("list[str | int]", list(error.absolute_path))
    given = error.instance
    instance = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if error.validator == "required":
        for name in cast("list[str]", error.validator_value):
            if name not in instance:
                return Problem(path=json_path([*path, name]), message="it is missing")
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = cast("dict[str, Any]", error.schema.get("properties", {}))
        patterns = cast("dict[str, Any]", error.schema.get("patternProperties", {}))
        for name in instance:
            if name not in known and f"{name!r}" in str(error.message):
                fix = "" if patterns else " " + suggestion(name, known, otherwise="Known are")
                return Problem(path=json_path([*path, name]), message=f"there is no such key.{fix}")
    return Problem(path=json_path(path), message=_message(error, value))


def _message(error: Any, value: Any) -> str:
    kind = error.validator
    if kind == "type":
        wanted = error.validator_value
        names = cast("list[str]", wanted if isinstance(wanted, list) else [wanted])
        expected = " or ".join(_EXPECTED.get(name, name) for name in names)
        return f"expected {expected}, got {_named(error.instance)}"
    if kind in ("enum", "const"):
        allowed = cast("list[Any]", error.validator_value if kind == "enum" else [error.validator_value])
        shown = ", ".join(repr(one) for one in allowed[:12]) + (", ..." if len(allowed) > 12 else "")
        return f"expected one of {shown}, got {_short(repr(error.instance))}"
    if value is None:
        return "expected a value, got None"
    return _short(str(error.message))


def _named(value: Any) -> str:
    name = type(value).__name__
    return f"{name} {_short(repr(value), 60)}" if isinstance(value, (str, int, float, bool)) else name


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass(slots=True)
class _Declare:
    document: JsonValue
    accepts: Callable[[Any, JsonValue], bool]

    def of(self, value: Any, schema: JsonValue, depth: int) -> Any:
        if not isinstance(schema, dict) or not schema or depth > MAX_DEPTH:
            return value
        node = cast(dict[str, JsonValue], schema)
        if "$ref" in node:
            _BUDGET.get().spend()
            value = self.of(value, resolve(self.document, str(node["$ref"])), depth + 1)
        for part in cast("list[JsonValue]", node.get("allOf", [])):
            value = self.of(value, part, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in node:
                value = self._alternative(value, cast("list[JsonValue]", node[key]), depth)
        return self._typed(value, node, depth)

    def _alternative(self, value: Any, branches: list[JsonValue], depth: int) -> Any:
        # A value that is JSON already is not converted into what another alternative declares.
        for branch in branches:
            if self.accepts(value, branch):
                return self.of(value, branch, depth + 1)
        # text first: it holds a Decimal digit for digit, which a number does not
        for branch in sorted(branches, key=lambda one: "string" not in _kinds(one)):
            made = self.of(value, branch, depth + 1)
            if self.accepts(made, branch):
                return made
        return value

    def _typed(self, value: Any, node: dict[str, JsonValue], depth: int) -> Any:
        kinds = _kinds(node)
        if isinstance(value, enum.Enum):
            value = value.value if kinds or "enum" in node or "const" in node else value
        if "string" in kinds:
            value = _as_text(value)
        if "integer" in kinds or "number" in kinds:
            value = _as_number(value, integer="number" not in kinds)
        if "array" in kinds:
            value = self._array(value, node, depth)
        if "object" in kinds:
            value = self._object(value, node, depth)
        return value

    def _array(self, value: Any, node: dict[str, JsonValue], depth: int) -> Any:
        if isinstance(value, AbstractSet):
            value = sorted(cast("AbstractSet[Any]", value), key=lambda one: (type(one).__name__, repr(one)))
        if not isinstance(value, (list, tuple)):
            return value
        rest = node.get("items", True)
        first = cast("list[JsonValue]", node.get("prefixItems", []))
        values = cast("list[Any]", value)
        return [
            self.of(one, first[index] if index < len(first) else rest, depth + 1)
            for index, one in enumerate(values)
        ]

    def _object(self, value: Any, node: dict[str, JsonValue], depth: int) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        if not isinstance(value, Mapping):
            return value
        properties = node.get("properties")
        known = cast("dict[str, JsonValue]", properties) if isinstance(properties, dict) else {}
        extra = node.get("additionalProperties", True)
        return {
            key: self.of(one, known.get(key, extra), depth + 1)
            for key, one in cast("Mapping[Any, Any]", value).items()
        }


def _kinds(node: JsonValue) -> tuple[str, ...]:
    if isinstance(node, bool):
        return ()
    kind = node.get("type")
    if isinstance(kind, list):
        return tuple(cast("list[str]", kind))
    if isinstance(kind, str):
        return (kind,)
    if "properties" in node:
        return ("object",)
    if "enum" in node or "const" in node:
        values = cast("list[Any]", node.get("enum", [node.get("const")]))
        return ("string",) if all(isinstance(one, str) for one in values) else ()
    return ("array",) if "items" in node or "prefixItems" in node else ()


def _as_text(value: Any) -> Any:
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return pydantic_core.to_jsonable_python(value)
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, str) and type(value) is not str:
        return str.__str__(value)
    return value


def _as_number(value: Any, *, integer: bool) -> Any:
    if isinstance(value, decimal.Decimal) and value.is_finite() and abs(value.adjusted()) < 400:
        whole = value == value.to_integral_value()
        if whole and (integer or int(value.as_tuple().exponent) >= 0):
            return int(value)
        return value if integer else _finite(float(value), value)
    if integer and isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


def _finite(number: float, original: Any) -> Any:
    return number if math.isfinite(number) else original
