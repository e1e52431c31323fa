"""What a collection declares: its rows, its key and the fields that can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import ReadOnly, TypeAliasType

__all__ = ["CollectionSpec", "FieldType", "Scalar", "field_types"]

Scalar: TypeAlias = str | int | bool | None
"""What a `where` field may hold. None means unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSpec:
    """What a collection holds, declared once by its analyzer.

    Row and item types should be classes of `typing_extensions.TypedDict`, not `typing.TypedDict`: the same classes
    then also serve pydantic, which refuses the standard library's before Python 3.12. Both work here.

    Attributes:
        name: Python identifier: `modules`.
        contract: operation prefix without verb and version: `javascript.modules`.
        version: contract version of its operations.
        doc: what one row is, for `describe`.
        row: TypedDict class of a page row (the projection).
        item: TypedDict class of a full item (`get`); may equal `row`.
        key: the row field that identifies it; its values are text and unique in the collection.
        where: top-level row fields that `where` and `count(by=...)` accept; each becomes an indexed column. Their
            values are text, integers, booleans or None.
    """

    name: str
    contract: str
    version: int
    doc: str
    row: type
    item: type
    key: str
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """The type of one `where` field, read from the row's annotation.

    None is always askable ("unknown") and is not listed.

    Attributes:
        types: which of `str`, `int`, `bool` its values have.
        choices: the closed vocabulary of a `Literal` field, or None where any value of the types is possible.
    """

    types: tuple[type, ...]
    choices: tuple[str | int | bool, ...] | None = None


def field_types(spec: CollectionSpec) -> Mapping[str, FieldType]:
    """The types of a collection's `where` fields, in declared order.

    Raises:
        TypeError: the spec names a field that its row does not have, or one that cannot be indexed.
    """
    hints: dict[str, Any] = get_type_hints(spec.row, include_extras=True)
    for name in (spec.key, *spec.where):
        if name not in hints:
            raise TypeError(f"collection {spec.name}: {spec.row.__name__} has no field {name!r}")
    return {name: _field_type(spec, name, hints[name]) for name in spec.where}


def _field_type(spec: CollectionSpec, name: str, hint: Any) -> FieldType:
    types: list[Any] = []
    choices: list[Any] = []
    closed = True
    for leaf in _leaves(hint):
        if get_origin(leaf) is Literal:
            values: list[Any] = [value for value in get_args(leaf) if value is not None]
            choices += values
            found: list[Any] = [type(value) for value in values]
        elif leaf is NoneType:
            found = []
        else:
            closed = False
            found = [leaf]
        for one in found:
            if one not in (str, int, bool):
                raise TypeError(f"collection {spec.name}: field {name!r} of type {hint!r} cannot be indexed")
            if one not in types:
                types.append(one)
    return FieldType(types=tuple(types), choices=tuple(choices) if closed else None)


def _leaves(hint: Any) -> list[Any]:
    """The members of a union, through aliases and TypedDict qualifiers."""
    if isinstance(hint, TypeAliasType):
        return _leaves(hint.__value__)
    origin = get_origin(hint)
    if origin in (NotRequired, Required, ReadOnly, Annotated):
        return _leaves(get_args(hint)[0])
    if origin in (Union, UnionType):
        return [leaf for member in get_args(hint) for leaf in _leaves(member)]
    return [hint]
