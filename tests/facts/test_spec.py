"""Field types are read from row annotations, however these are spelt."""

from __future__ import annotations

import typing
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, Optional, Required, TypeAlias

import pytest
from typing_extensions import ReadOnly, TypeAliasType, TypedDict

from affidavit.facts.spec import CollectionSpec, FieldType, field_types

from .samples import THINGS

Kind: TypeAlias = Literal["a", "b"]
State = TypeAliasType("State", Literal["on"] | None)


class WideRow(TypedDict, total=False):
    id: Required[str]
    text: str
    maybe: Optional[str]  # noqa: UP045 - the older spelling is read as well
    number: NotRequired[int]
    flag: ReadOnly[bool | None]
    kind: Kind
    state: State
    both: Literal["x"] | int
    noted: Annotated[str, "a note"]
    nothing: None
    body: Any
    many: list[str]
    real: float


WIDE = CollectionSpec(
    name="wide", contract="sample.wide", version=1, doc="", row=WideRow, item=WideRow, key="id", where=()
)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("text", FieldType(types=(str,))),
        ("maybe", FieldType(types=(str,))),
        ("number", FieldType(types=(int,))),
        ("flag", FieldType(types=(bool,))),
        ("kind", FieldType(types=(str,), choices=("a", "b"))),
        ("state", FieldType(types=(str,), choices=("on",))),
        ("both", FieldType(types=(str, int))),
        ("noted", FieldType(types=(str,))),
        ("nothing", FieldType(types=(), choices=())),
    ],
)
def test_reads(field: str, expected: FieldType) -> None:
    assert field_types(replace(WIDE, where=(field,))) == {field: expected}


@pytest.mark.parametrize("field", ["body", "many", "real"])
def test_what_cannot_be_indexed_is_a_fault_of_the_declaration(field: str) -> None:
    with pytest.raises(TypeError, match=f"wide: field '{field}'"):
        field_types(replace(WIDE, where=(field,)))


def test_a_missing_field_is_a_fault_of_the_declaration() -> None:
    with pytest.raises(TypeError, match="no field 'nope'"):
        field_types(replace(WIDE, where=("nope",)))
    with pytest.raises(TypeError, match="no field 'nope'"):
        field_types(replace(WIDE, key="nope"))


def test_classes_of_the_standard_library_serve_as_well() -> None:
    class PlainRow(typing.TypedDict):
        id: str
        path: str | None

    spec = replace(THINGS, row=PlainRow, item=PlainRow, where=("path",))
    assert field_types(spec) == {"path": FieldType(types=(str,))}
