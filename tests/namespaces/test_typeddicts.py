"""TypedDict classes as stub source and as JSON Schema."""

from __future__ import annotations

import datetime as dt
import decimal
import sys
import typing
import uuid
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, Required, TypeVar

import pytest
from jsonschema import Draft202012Validator
from typing_extensions import ReadOnly, TypeAliasType, TypedDict, is_typeddict

from affidavit.evidence.values import encode
from affidavit.facts.page import Found, Page
from affidavit.namespaces.typeddicts import StubTypes, arguments_schema, declarations, json_schema

T = TypeVar("T")
Path = TypeAliasType("Path", str | None)

HEAD = """
from __future__ import annotations
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, NotRequired, TypeVar
from typing_extensions import TypedDict
"""


class Inner(TypedDict):
    """An inner value.

    Units are said here.
    """

    tag: Literal["inner"]
    number: int


class Outer(TypedDict, total=False):
    needed: Required[str]
    path: Path
    inner: Inner | None
    many: NotRequired[list[Inner]]
    table: dict[str, Inner | int]
    fixed: ReadOnly[float]
    noted: Annotated[bool, "a note"]
    old: Optional[str]  # noqa: UP045 - the older spelling is read as well
    read: Sequence[str]
    mapped: Mapping[str, Any]
    quoted: Literal['a"b', "c'd", "\ud800", True, 3] | None


class Tree(TypedDict):
    name: str
    children: list[Tree]


class Box(TypedDict, Generic[T]):
    content: T
    more: list[T]


HOSTILE_KEYS: Any = {
    "class": str,
    "per-page": int,
    "": bool,
    "self": str,
    "__x": int,
    'q"\\': None,
    "\u00e9\n": str,
    "\ud800": int,
}
functional: Any = TypedDict  # keys that a checker would refuse in a literal
Hostile = functional("Hostile", HOSTILE_KEYS)


class Old(typing.TypedDict, total=False):
    plain: str
    needed: typing.Required[int]


def built(tp: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the annotation stands for when the stub is run as Python."""
    annotation, sources = declarations(tp)
    module = ModuleType("made_from_a_stub")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(HEAD + "\n".join(sources), "stub", "exec"), vars(module))
    return eval(annotation, vars(module))


def valid(schema: Any, instance: Any) -> bool:
    validator: Any = Draft202012Validator(schema)
    return validator.is_valid(instance)


@pytest.mark.parametrize("cls", [Inner, Outer, Tree, Hostile, Old])
def test_declared_classes_have_the_same_fields(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = built(cls, monkeypatch)
    assert is_typeddict(made)
    original = typing.get_type_hints(cls)
    assert list(typing.get_type_hints(made)) == list(original)
    needed = {key for key in original if key in json_schema(cls)["$defs"][cls.__name__].get("required", ())}
    qualified = typing.get_type_hints(made, include_extras=True)
    assert {key for key, hint in qualified.items() if typing.get_origin(hint) is not NotRequired} == needed


def test_annotations_of_every_kind() -> None:
    annotation, sources = declarations(Outer)
    assert annotation == "Outer"
    (outer,) = [source for source in sources if source.startswith("class Outer")]
    for line in [
        "needed: str",
        "path: NotRequired[str | None]",
        "inner: NotRequired[Inner | None]",
        "many: NotRequired[list[Inner]]",
        "table: NotRequired[dict[str, Inner | int]]",
        "fixed: NotRequired[float]",
        "noted: NotRequired[bool]",
        "old: NotRequired[str | None]",
        "read: NotRequired[Sequence[str]]",
        "mapped: NotRequired[Mapping[str, Any]]",
    ]:
        assert f"    {line}\n" in outer + "\n"
    assert "An inner value." in "".join(sources)


def test_generic_classes_keep_their_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    annotation, sources = declarations(Box[Inner])
    assert annotation == "Box[Inner]"
    assert 'T = TypeVar("T")' in sources
    assert typing.get_origin(built(Box[Inner], monkeypatch)).__name__ == "Box"


def test_shapes_of_the_prelude_are_not_declared_again() -> None:
    annotation, sources = declarations(Page[Inner])
    assert annotation == "Page[Inner]"
    assert [source.split("(")[0] for source in sources] == ["class Inner"]
    assert declarations(list[Found[int]]) == ("list[Found[int]]", ())


def test_two_classes_of_one_name_stay_two() -> None:
    def another() -> Any:
        return functional("Inner", {"other": str})

    stub = StubTypes()
    assert [stub.annotation(one) for one in (Inner, another(), Inner)] == ["Inner", "Inner2", "Inner"]
    schema = arguments_schema({"a": (Inner, True), "b": (another(), True)})
    assert set(schema["$defs"]) == {"Inner", "Inner2"}


def test_plain_types_need_no_declarations() -> None:
    assert declarations(str | None) == ("str | None", ())
    assert declarations(dict[str, list[int | bool]]) == ("dict[str, list[int | bool]]", ())
    assert declarations(Any) == ("Any", ())
    assert declarations(None) == ("None", ())


def test_what_json_cannot_hold_is_its_tag() -> None:
    kinds = bytes | dt.datetime | dt.date | decimal.Decimal | uuid.UUID
    annotation = "bytes | _datetime.datetime | _datetime.date | _decimal.Decimal | _uuid.UUID"
    assert declarations(kinds) == (annotation, ())
    check: Any = Draft202012Validator(json_schema(kinds))
    held = [
        b"x",
        dt.datetime(2024, 2, 29),
        dt.date(2024, 2, 29),
        decimal.Decimal("1.10"),
        uuid.UUID(int=5),
    ]
    assert all(check.is_valid(encode(value)) for value in held)
    assert not check.is_valid("x")
    assert not check.is_valid({"$int": "9007199254740993"})


@pytest.mark.parametrize(
    "tp",
    [bytearray, set[str], tuple[int, ...], complex, list, dict, type, Literal[b"x"], dict[int, set[str]]],
)
def test_what_cannot_stand_in_a_row_is_refused(tp: Any) -> None:
    with pytest.raises(TypeError):
        declarations(tp)
    with pytest.raises(TypeError):
        json_schema(tp)


CASES: list[tuple[Any, Any, Any]] = [
    (Inner, {"tag": "inner", "number": 1}, {"tag": "outer", "number": 1}),
    (Inner, {"tag": "inner", "number": 1}, {"tag": "inner"}),
    (Inner, {"tag": "inner", "number": 1}, {"tag": "inner", "number": 1, "more": 1}),
    (Outer, {"needed": "x"}, {}),
    (Outer, {"needed": "x", "path": None}, {"needed": "x", "path": 3}),
    (Outer, {"needed": "x", "inner": None}, {"needed": "x", "inner": {}}),
    (Outer, {"needed": "x", "table": {"a": 1}}, {"needed": "x", "table": {"a": "1"}}),
    (Outer, {"needed": "x", "fixed": 1.5}, {"needed": "x", "fixed": "1.5"}),
    (Outer, {"needed": "x", "quoted": 3}, {"needed": "x", "quoted": 4}),
    (
        Tree,
        {"name": "a", "children": [{"name": "b", "children": []}]},
        {"name": "a", "children": [{}]},
    ),
    (Box[int], {"content": 1, "more": [2]}, {"content": 1, "more": ["2"]}),
    (Box[Any], {"content": [], "more": [2, "3"]}, {"content": 1}),
    (list[str | None], ["a", None], ["a", 3]),
    (Literal["a"], "a", "b"),
    (None, None, 0),
    (dict[str, int], {"a": 1}, {"a": "1"}),
]


class TestJsonSchema:
    @pytest.mark.parametrize(
        "tp", [Inner, Outer, Tree, Hostile, Old, Box[Inner], Page[Inner], list[Found[Inner]]]
    )
    def test_is_valid(self, tp: Any) -> None:
        Draft202012Validator.check_schema(json_schema(tp))

    @pytest.mark.parametrize(("tp", "good", "bad"), CASES)
    def test_tells_good_from_bad(self, tp: Any, good: Any, bad: Any) -> None:
        assert valid(json_schema(tp), good)
        assert not valid(json_schema(tp), bad)

    def test_of_arguments(self) -> None:
        schema = arguments_schema({"id": (str, True), "inner": (Inner, False)})
        assert valid(schema, {"id": "a"})
        assert not valid(schema, {})
        assert not valid(schema, {"id": "a", "other": 1})

    def test_keys_of_mappings_are_text(self) -> None:
        with pytest.raises(TypeError):
            json_schema(dict[int, str])
