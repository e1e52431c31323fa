"""TypedDict classes as stub source and as JSON Schema, both from the same class.

Reads what rows, items and results are made of: `str int float bool bytes None Any Literal`, `datetime date Decimal
UUID`, unions, `list Sequence dict Mapping`, TypedDicts of `typing` or `typing_extensions` (generic, total or not,
`Required`, `NotRequired`, `ReadOnly`, recursive) and type aliases. Tagged unions are unions of TypedDicts with
`Literal` fields. What JSON cannot hold is in its schema the tag that stands for it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import ReadOnly, TypeAliasType, is_typeddict

from affidavit.evidence.record import JsonValue
from affidavit.facts.page import (
    Count,
    CoverageDict,
    Found,
    Group,
    LimitationDict,
    Missed,
    Page,
    PageInfo,
    Source,
)
from affidavit.namespaces._prelude import shape
from affidavit.namespaces.annotations import renamed, string_literal, typed_dict, union

__all__ = ["StubTypes", "arguments_schema", "declarations", "json_schema"]


def _tag(tag: str, name: str) -> dict[str, JsonValue]:
    """How a value that JSON cannot hold looks wherever JSON is shown."""
    content: JsonValue = {"type": "string"} | ({"contentEncoding": "base64"} if tag == "$bytes" else {})
    properties: dict[str, JsonValue] = {tag: content}
    schema: dict[str, JsonValue] = {"type": "object", "title": name, "properties": properties}
    return schema | {"required": [tag], "additionalProperties": False}


_SIMPLE: Mapping[Any, tuple[str, dict[str, JsonValue]]] = {
    str: ("str", {"type": "string"}),
    bool: ("bool", {"type": "boolean"}),
    int: ("int", {"type": "integer"}),
    float: ("float", {"type": "number"}),
    NoneType: ("None", {"type": "null"}),
    None: ("None", {"type": "null"}),
    Any: ("Any", {}),
    object: ("object", {}),
    bytes: ("bytes", _tag("$bytes", "bytes")),
    dt.datetime: ("_datetime.datetime", _tag("$datetime", "datetime")),
    dt.date: ("_datetime.date", _tag("$date", "date")),
    decimal.Decimal: ("_decimal.Decimal", _tag("$decimal", "Decimal")),
    uuid.UUID: ("_uuid.UUID", _tag("$uuid", "UUID")),
}
_LISTS = (list, Sequence)
_MAPPINGS = (dict, Mapping)
_QUALIFIERS = (NotRequired, Required, ReadOnly)
_IN_PRELUDE = frozenset[Any](
    {Count, CoverageDict, Found, Group, LimitationDict, Missed, Page, PageInfo, Source}
)
"""Classes that every stub has already."""


def declarations(tp: Any) -> tuple[str, tuple[str, ...]]:
    """The stub annotation of a type, and the source of the classes that it refers to.

    Raises:
        TypeError: a type that cannot stand in a row (see the module).
    """
    stub = StubTypes()
    annotation = stub.annotation(tp)
    return annotation, stub.declarations


def json_schema(tp: Any) -> dict[str, JsonValue]:
    """The JSON Schema of a type. TypedDicts stand under `$defs`, without further keys allowed.

    Raises:
        TypeError: a type that cannot stand in a row (see the module).
    """
    return _with_definitions(_Schema(), lambda walk: walk.of(tp))


def arguments_schema(types: Mapping[str, tuple[Any, bool]]) -> dict[str, JsonValue]:
    """The JSON Schema of an object with these fields and no others: name -> (type, whether it is required).

    Raises:
        TypeError: a type that cannot stand in a row (see the module).
    """
    return _with_definitions(_Schema(), lambda walk: walk.object(types, {}))


@dataclass(slots=True)
class StubTypes:
    """Annotations that share one set of class declarations.

    Two classes of one name get different names here. The shapes of `facts.page` stand in every stub and are not
    declared again.

    Attributes:
        closed: declare that there are no further keys (PEP 728), which holds for results; then `"key" in value`
            tells the members of a tagged union apart.
        structs: classes of results whose fields scripts read as attributes too: a reply, and what is directly in it.
    """

    closed: bool = True
    structs: frozenset[Any] = frozenset()
    _names: dict[Any, str] = field(default_factory=dict[Any, str])
    _texts: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def declarations(self) -> tuple[str, ...]:
        """Source of the classes that annotations so far refer to; what is used stands before what uses it."""
        return tuple(text for text in self._texts.values() if text)

    def annotation(self, tp: Any) -> str:
        """The stub annotation of a type."""
        tp, origin, arguments = _taken_apart(tp)
        if tp in _SIMPLE:
            return _SIMPLE[tp][0]
        if isinstance(tp, TypeVar):
            return tp.__name__
        if origin is Literal:
            return f"Literal[{', '.join(map(_literal, arguments))}]"
        if origin is Union:
            return union([self.annotation(one) for one in arguments])
        if origin in _LISTS or origin in _MAPPINGS:
            inner = ", ".join(self.annotation(one) for one in arguments)
            return f"{_container(origin)}[{inner}]"
        if is_typeddict(origin):
            return f"{self._declare(origin)}[{', '.join(self.annotation(one) for one in arguments)}]"
        if is_typeddict(tp):
            return self._declare(tp)
        raise _unsupported(tp)

    def _declare(self, cls: type) -> str:
        if cls in _IN_PRELUDE:
            return cls.__name__
        if cls in self._names:
            return self._names[cls]
        name = _free(cls.__name__, [*self._names.values(), *(one.__name__ for one in _IN_PRELUDE)])
        self._names[cls] = name
        fields = {key: (self.annotation(hint), required) for key, (hint, required) in _fields(cls).items()}
        if cls in self.structs:
            self._texts[name] = _struct(name, cls, fields)
            return name
        text = typed_dict(name, fields, doc=_doc(cls), closed=self.closed)
        parameters: tuple[TypeVar, ...] = getattr(cls, "__parameters__", ())
        for parameter in parameters:
            self._texts[f"TypeVar {parameter.__name__}"] = (
                f'{parameter.__name__} = TypeVar("{parameter.__name__}")'
            )
        if parameters:
            if not text.startswith(f"class {name}(TypedDict"):
                raise TypeError(f"{name}: a generic TypedDict has only keys that are plain identifiers")
            generic = f"Generic[{', '.join(one.__name__ for one in parameters)}]"
            text = text.replace("(TypedDict", f"(TypedDict, {generic}", 1)
        self._texts[name] = text
        return name


def _struct(name: str, cls: type, fields: Mapping[str, tuple[str, bool]]) -> str:
    """Source of a class like those of the prelude, whose one parameter is the type of its rows."""
    row = "".join(parameter.__name__ for parameter in getattr(cls, "__parameters__", ()))
    kinds = [(key, renamed(kind, {row: "_Row"})) for key, (kind, _) in fields.items()]
    return shape(name, _doc(cls), kinds).rstrip()


@dataclass(slots=True)
class _Schema:
    definitions: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    names: dict[Any, str] = field(default_factory=dict[Any, str])

    def of(self, tp: Any, bound: Mapping[Any, Any] | None = None) -> dict[str, JsonValue]:
        tp, origin, arguments = _taken_apart(tp)
        if isinstance(tp, TypeVar):
            return self.of((bound or {}).get(tp, Any))
        if tp in _SIMPLE:
            return dict(_SIMPLE[tp][1])
        arguments = tuple(
            (bound or {}).get(one, one) if isinstance(one, TypeVar) else one for one in arguments
        )
        if origin is Literal:
            return _choices(arguments)
        if origin is Union:
            return _any_of([self.of(one, bound) for one in arguments])
        if origin in _LISTS:
            return {"type": "array", "items": self.of(arguments[0], bound)}
        if origin in _MAPPINGS:
            if arguments[0] is not str:
                raise _unsupported(tp)
            return {"type": "object", "additionalProperties": self.of(arguments[1], bound)}
        if is_typeddict(origin):
            return self._refer(origin, arguments)
        if is_typeddict(tp):
            return self._refer(tp, ())
        raise _unsupported(tp)

    def _refer(self, cls: type, arguments: tuple[Any, ...]) -> dict[str, JsonValue]:
        if (cls, arguments) not in self.names:
            wish = cls.__name__ + "".join(f"_{getattr(one, '__name__', 'Value')}" for one in arguments)
            name = _free(wish, self.names.values())
            self.names[cls, arguments] = name
            self.definitions[name] = {}  # reserved: a type may refer to itself
            self.definitions[name] = self._object(cls, arguments)
        return {"$ref": f"#/$defs/{self.names[cls, arguments]}"}

    def _object(self, cls: type, arguments: tuple[Any, ...]) -> dict[str, JsonValue]:
        bound = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
        doc = _doc(cls)
        return ({"description": doc} if doc else {}) | self.object(_fields(cls), bound)

    def object(
        self, fields: Mapping[str, tuple[Any, bool]], bound: Mapping[Any, Any]
    ) -> dict[str, JsonValue]:
        properties = {key: self.of(hint, bound) for key, (hint, _) in fields.items()}
        required = [key for key, (_, needed) in fields.items() if needed]
        schema: dict[str, JsonValue] = {"type": "object", "properties": properties}
        return schema | ({"required": required} if required else {}) | {"additionalProperties": False}


def _with_definitions(
    walk: _Schema, schema_of: Callable[[_Schema], dict[str, JsonValue]]
) -> dict[str, JsonValue]:
    schema = schema_of(walk)
    return schema | ({"$defs": walk.definitions} if walk.definitions else {})


def _taken_apart(tp: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """The type without aliases and qualifiers, its origin (one for both spellings of a union) and arguments."""
    while True:
        origin = get_origin(tp)
        if isinstance(tp, TypeAliasType):
            tp = tp.__value__
        elif origin in _QUALIFIERS or origin is Annotated:
            tp = get_args(tp)[0]
        else:
            return tp, Union if origin is UnionType else origin, get_args(tp)


def _fields(cls: type) -> dict[str, tuple[Any, bool]]:
    """Type and required-ness of each key, in declared order."""
    hints: dict[str, Any] = get_type_hints(cls, include_extras=True)
    needed = cast(frozenset[str], getattr(cls, "__required_keys__", frozenset[str]()))
    # The class itself does not see qualifiers of annotations that were text when it was made.
    return {key: (hint, _is_required(hint, default=key in needed)) for key, hint in hints.items()}


def _is_required(hint: Any, *, default: bool) -> bool:
    origin = get_origin(hint)
    if origin in (NotRequired, Required):
        return origin is Required
    return _is_required(get_args(hint)[0], default=default) if origin is ReadOnly else default


def _choices(values: tuple[Any, ...]) -> dict[str, JsonValue]:
    for value in values:
        _check_literal(value)
    return {"const": values[0]} if len(values) == 1 else {"enum": list(values)}


def _any_of(schemas: Sequence[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    unique: list[dict[str, JsonValue]] = []
    for schema in schemas:
        if schema not in unique:
            unique.append(schema)
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _container(origin: Any) -> str:
    return cast(str, origin.__name__)


def _literal(value: object) -> str:
    _check_literal(value)
    return string_literal(value) if isinstance(value, str) else repr(value)


def _check_literal(value: object) -> None:
    if type(value) not in (str, int, bool, NoneType):
        raise TypeError(f"Literal[{value!r}] cannot stand in a row: use text, integers, booleans and None")


def _doc(cls: type) -> str:
    """The first paragraph of a class's documentation, on one line."""
    return " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())


def _free(wish: str, taken: Iterable[str]) -> str:
    used = set(taken)
    name, number = wish, 2
    while name in used:
        name, number = f"{wish}{number}", number + 1
    return name


def _unsupported(tp: Any) -> TypeError:
    return TypeError(
        f"{tp!r} cannot stand in a row: use text, numbers, booleans, None, lists, dicts and TypedDicts"
    )
