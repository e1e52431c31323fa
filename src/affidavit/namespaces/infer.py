"""Types from values: what an earlier result or an input looks like, for the check of the script that reads it.

The type covers every element, not the first one: None that comes first, a key that turns up later, an integer before
a float. Mappings whose keys are ids are `dict[str, T]`, since their keys are data and not a shape.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue
from affidavit.evidence.values import decode
from affidavit.namespaces.annotations import renamed, typed_dict, union
from affidavit.namespaces.names import BUILTIN_NAMES, class_name

__all__ = ["Inferred", "infer", "input_stub"]

MAX_CHARACTERS: Final = 3_072
"""Characters of the declarations and annotation of one value; beyond it the deepest levels become plain."""
MAX_DEPTH: Final = 12
MAX_FIELDS: Final = 48
"""Keys of one shape; a mapping with more of them is a table, not a record."""

_SCALARS: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    type(None): "None",
    dt.datetime: "_datetime.datetime",
    dt.date: "_datetime.date",
    decimal.Decimal: "_decimal.Decimal",
    uuid.UUID: "_uuid.UUID",
}
_MODULES: Final = ("builtins", "datetime", "decimal", "uuid")
_NUMBER: Final = {"int": "number", "float": "number"}
_ID: Final = re.compile(
    r"""
      -?\d+                                            # 101
    | (?=\D*\d)[0-9a-fA-F]{8,}                         # a digest
    | 0[xX][0-9a-fA-F]+                                # an address
    | [0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}
    | \d{4}-\d{2}(-\d{2}.*)?                           # a date
    | [A-Za-z]+\d?[_-](?=\D*\d)[0-9a-fA-F]+           # user_123, ev1_09af
    | [A-Za-z]+\d{3,}                                  # INC00042
    | .*[/.@:].*                                       # main.js, a/b, x@y, builtin:fs
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """A type: the annotation, and the source of the TypedDicts that it refers to."""

    annotation: str
    declarations: tuple[str, ...] = ()


def infer(value: Any, *, name: str = "Value", taken: Iterable[str] = ()) -> Inferred:
    """The type of a value.

    Args:
        value: Python values of the value domain.
        name: what its TypedDicts are called after.
        taken: class names that are in use.

    Returns:
        At most about 3 KB of source; what would be longer is simplified from the inside (`dict[str, Any]`), never cut.
    """
    shape = _Shape()
    shape.add([value], 0)
    reserved = frozenset(taken)
    for depth in range(MAX_DEPTH, -1, -1):
        writer = _Writer(reserved=reserved, depth=depth)
        annotation = writer.of(shape, class_name(name), 0)
        declarations = tuple(writer.declared.values())
        if len(annotation) + sum(map(len, declarations)) <= MAX_CHARACTERS:
            return Inferred(annotation=annotation, declarations=declarations)
    return Inferred(annotation="Any")


def input_stub(inputs: Mapping[str, JsonValue]) -> str:
    """Stub source that declares each input: its TypedDicts and a line `name: annotation`.

    Args:
        inputs: global names of a script and their encoded (tagged) values.

    Raises:
        UsageError: `arguments-invalid` for a name that is no Python identifier.
    """
    if not inputs:
        return ""
    # an input that is called like a builtin hides it from the annotations of the same module
    hidden = {name: f"_builtins.{name}" for name in BUILTIN_NAMES & set(inputs)}
    taken = set(inputs) | {"TypedDict", "NotRequired", "Any", "builtins"}
    declarations: list[str] = []
    lines: list[str] = []
    for name, value in inputs.items():
        if not name.isidentifier():
            raise UsageError(
                "arguments-invalid",
                f"the input {ascii(name)[:80]} has no Python name",
                hint="Name inputs like variables.",
                details={"path": "$"},
            )
        found = infer(decode(value), name=name, taken=taken)
        taken |= {_declared_name(source) for source in found.declarations}
        declarations += [renamed(source, hidden) for source in found.declarations]
        lines.append(f"{name}: {renamed(found.annotation, hidden)}")
    source = "\n".join([*declarations, *lines])
    return "\n".join([*_imports(source), source, ""])


def _imports(source: str) -> Iterator[str]:
    """Only what the source uses."""
    typing = [name for name in ("Any", "NotRequired", "TypedDict") if re.search(rf"\b{name}\b", source)]
    if typing:
        yield f"from typing import {', '.join(typing)}"
    for module in _MODULES:
        if f"_{module}." in source:
            yield f"import {module} as _{module}"


def _declared_name(source: str) -> str:
    found = re.match(r"class (\w+)|(\w+) =", source)
    assert found is not None
    return found[1] or found[2]


@dataclass(slots=True)
class _Shape:
    """Everything that was seen at one place of a value."""

    scalars: dict[str, None] = field(default_factory=dict[str, None])
    items: _Shape | None = None
    mappings: int = 0
    fields: dict[str, _Shape] = field(default_factory=dict[str, "_Shape"])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    other: bool = False

    def add(self, values: Sequence[Any], depth: int) -> None:
        """Take in all values of this place at once: columns are looked through much faster than rows."""
        for kind in cast("dict[type, None]", dict.fromkeys(map(type, values))):
            scalar = _SCALARS.get(kind)
            if scalar is not None:
                self.scalars[scalar] = None
                continue
            here: list[Any] = [one for one in values if type(one) is kind]
            if depth > MAX_DEPTH or not issubclass(kind, list | dict):
                self.other = True
            elif issubclass(kind, list):
                self.items = self.items or _Shape()
                self.items.add([*chain.from_iterable(here)], depth + 1)
            else:
                self._add_mappings(here, depth)

    def _add_mappings(self, mappings: Sequence[Mapping[str, Any]], depth: int) -> None:
        self.mappings += len(mappings)
        columns: dict[str, list[Any]] = {}
        for mapping in mappings:
            for key, value in mapping.items():
                if key in columns:
                    columns[key].append(value)
                else:
                    columns[key] = [value]
        for key, column in columns.items():
            if key not in self.fields:
                self.fields[key] = _Shape()
                self.counts[key] = 0
            self.counts[key] += len(column)
            self.fields[key].add(column, depth + 1)

    def merged(self, other: _Shape) -> None:
        """Take in what was seen at another place."""
        self.scalars |= other.scalars
        self.other = self.other or other.other
        if other.items is not None:
            self.items = self.items or _Shape()
            self.items.merged(other.items)
        self.mappings += other.mappings
        for key, shape in other.fields.items():
            if key not in self.fields:
                self.fields[key] = _Shape()
                self.counts[key] = 0
            self.counts[key] += other.counts[key]
            self.fields[key].merged(shape)

    def is_table(self) -> bool:
        """Whether the keys are data: ids, or too many for a shape."""
        if len(self.fields) > MAX_FIELDS or "" in self.fields:
            return True  # an empty name cannot stand in a TypedDict
        return bool(self.fields) and all(_ID.fullmatch(key) for key in self.fields) and self._alike()

    def _alike(self) -> bool:
        """Whether values under different keys are of one kind."""
        kinds = {
            (
                frozenset(_NUMBER.get(one, one) for one in shape.scalars),
                shape.items is not None,
                shape.mappings > 0,
            )
            for shape in self.fields.values()
        }
        return (
            len({(scalars - {"None"}, *rest) for scalars, *rest in kinds} - {(frozenset(), False, False)})
            <= 1
        )


@dataclass(slots=True)
class _Writer:
    reserved: frozenset[str]
    depth: int
    declared: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, shape: _Shape, name: str, depth: int) -> str:
        if shape.other:
            return "Any"
        parts = list(shape.scalars)
        if "float" in parts and "int" in parts:
            parts.remove("int")  # `float` takes both, and no method that only one of them has
        if shape.items is not None:
            parts.append(f"list[{self._inside(shape.items, name + 'Item', depth)}]")
        if shape.mappings:
            parts.append(self._mapping(shape, name, depth))
        return union(parts)

    def _inside(self, shape: _Shape, name: str, depth: int) -> str:
        return self.of(shape, name, depth + 1) if depth < self.depth else "Any"

    def _mapping(self, shape: _Shape, name: str, depth: int) -> str:
        if not shape.fields or depth >= self.depth:
            return "dict[str, Any]"
        if shape.is_table():
            values = _Shape()
            for one in shape.fields.values():
                values.merged(one)
            return f"dict[str, {self._inside(values, name + 'Value', depth)}]"
        fields = {
            key: (
                self._inside(one, name + class_name(key, fallback="Field"), depth),
                shape.counts[key] == shape.mappings,
            )
            for key, one in shape.fields.items()
        }
        body = typed_dict("_", fields)
        if body in self.names:
            return self.names[body]
        free, number = name, 2
        while free in self.reserved or free in self.declared:
            free, number = f"{name}{number}", number + 1
        self.declared[free] = typed_dict(free, fields)
        self.names[body] = free
        return free
