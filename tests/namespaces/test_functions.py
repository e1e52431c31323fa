import asyncio
import datetime as dt
import decimal
import threading
import uuid
from typing import Any

import jsonschema
import pytest

from affidavit.errors import FailedError, NotFoundError, UsageError
from affidavit.namespaces.functions import Marks, marks_of, operation_from_function, tool_failed
from affidavit.namespaces.operation import Operation

from . import functions
from .samples import called


def of(function: Any, **options: Any) -> Operation:
    return operation_from_function(function, contract="python.sample", **options)


TAKE = of(functions.take)


def test_signature_and_docstring_are_the_declaration() -> None:
    made = of(functions.forecast)
    assert (made.name, made.contract, made.effect) == ("forecast", "python.sample.forecast/1", "read")
    assert made.doc == "The weather to come.\n\nLonger words about it."
    assert [
        (one.name, one.annotation, one.required, one.default, one.positional, one.doc)
        for one in made.parameters
    ] == [
        ("city", "str", True, None, True, "Where, by its usual name."),
        ("days", "int", False, 3, True, "How many, from today."),
        ("exact", "bool", False, False, False, ""),
    ]
    assert made.returns == "str"
    assert made.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where, by its usual name."},
            "days": {
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "default": 3,
                "description": "How many, from today.",
            },
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert made.output_schema == {"type": "string"}
    assert (made.producer.name, made.producer.version, made.authority) == (
        "python.sample",
        "1",
        "live-source",
    )


def test_async_and_sync_functions_are_called_with_what_was_given_and_nothing_more() -> None:
    assert called(of(functions.forecast), {"city": "Rome"}) == "Rome 3 False"
    assert called(of(functions.forecast), {"city": "Rome", "exact": True, "days": 1}) == "Rome 1 True"
    seen = called(TAKE, {"text": "x", "number": 2})
    assert (seen["text"], seen["number"], seen["pair"]) == ("'x'", "2", "(0, '')")


# parameter -> (accepted arguments with what the function sees, refused arguments)
FACES: dict[str, tuple[list[tuple[Any, str]], list[Any]]] = {
    "anything": ([([1, {"a": None}], "[1, {'a': None}]")], []),
    "whatever": ([("x", "'x'")], []),
    "text": ([("x", "'x'")], [1, None, ["x"]]),
    "number": ([(7, "7"), (2**70, str(2**70)), (5.0, "5")], ["7", 1.5, True, None]),
    "real": ([(1.5, "1.5"), (2, "2.0")], ["1.5", True, None]),
    "flag": ([(True, "True")], [1, 0, "true", None]),
    "nothing": ([], [0, ""]),
    "maybe": ([(3, "3")], ["3", 1.5]),
    "either": ([(3, "3"), ("3", "'3'")], [1.5, None]),
    "some": ([([1, 2], "[1, 2]")], [[1, "2"], "12", {"a": 1}]),
    "pair": ([([1, "a"], "(1, 'a')")], [["a", 1], [1], [1, "a", 2]]),
    "bag": ([(["x"], "{'x'}")], [[1], ["x", "x"], "x"]),
    "table": ([({"a": 1}, "{'a': 1}")], [{"a": "1"}, [1]]),
    "choice": ([("b", "'b'"), (3, "3")], ["c", "3", 4, None]),
    "colour": ([("blue", "<Colour.BLUE: 'blue'>")], ["green", "BLUE", 1]),
    "tree": (
        [({"name": "a", "children": [{"name": "b"}]}, "{'name': 'a', 'children': [{'name': 'b'}]}")],
        [{"name": 1}, {}, {"name": "a", "kids": []}, {"name": "a", "children": [{}]}],
    ),
    "trees": ([([{"name": "a"}], "[{'name': 'a'}]")], [[{"name": 1}]]),
    "options": ([({"deep": True}, "{'deep': True}")], [{"deep": 1}, {"depth": True}]),
    "order": (
        [
            ({"id": 1, "total": "1.10"}, "Order(id=1, total=Decimal('1.10'), when=None)"),
            ({"id": 1, "total": 2}, "Order(id=1, total=Decimal('2'), when=None)"),
        ],
        [{"id": 1}, {"id": "1", "total": 1}, {"id": 1, "total": 1, "extra": 1}],
    ),
    "person": (
        [({"full-name": "Ada", "tags": ["x"]}, "Person(name='Ada', tags=['x'])")],
        [{"name": "Ada"}, {"full-name": "A"}, {"full-name": "Ada", "extra": 1}],
    ),
    "loose": ([({"a": 1, "more": [1]}, "Loose(a=1, more=[1])")], [{"a": "1"}]),
    "raw": ([(b"\x00\xff", "b'\\x00\\xff'")], ["text", [1]]),
    "day": (
        [
            ("2024-02-29", "datetime.date(2024, 2, 29)"),
            (dt.date(2024, 2, 29), "datetime.date(2024, 2, 29)"),
        ],
        [5, True],
    ),
    "moment": (
        [
            ("2024-02-29T12:00:00", "datetime.datetime(2024, 2, 29, 12, 0)"),
            (dt.datetime(2024, 2, 29), "datetime.datetime(2024, 2, 29, 0, 0)"),
        ],
        [1709208000],
    ),
    "span": ([("P1D", "datetime.timedelta(days=1)"), (dt.timedelta(days=1), "datetime.timedelta(days=1)")], [3]),
    "ident": (
        [
            (str(uuid.UUID(int=5)), repr(uuid.UUID(int=5))),
            (uuid.UUID(int=5), repr(uuid.UUID(int=5))),
        ],
        [5],
    ),
    "price": (
        [
            ("1.10", "Decimal('1.10')"),
            (2, "Decimal('2')"),
            (decimal.Decimal("1.10"), "Decimal('1.10')"),
        ],
        [True, None],
    ),
    "short": ([("abc", "'abc'")], ["abcd", 1]),
    "lookup": ([("abc", "'ABC'")], [1]),
}  # fmt: skip


def test_every_parameter_is_looked_at() -> None:
    assert set(FACES) == {one.name for one in TAKE.parameters}


@pytest.mark.parametrize("name", FACES)
def test_accepted_arguments_become_what_the_annotation_says(name: str) -> None:
    for value, seen in FACES[name][0]:
        assert called(TAKE, {name: value})[name] == seen


@pytest.mark.parametrize("name", FACES)
def test_schema_and_parse_draw_the_same_line(name: str) -> None:
    accepted, refused = FACES[name]
    validator: Any = jsonschema.Draft202012Validator(dict(TAKE.input_schema))
    for value, _ in accepted:
        parsed = TAKE.parse({name: value})
        if isinstance(value, (str, int, float, list, dict)):
            assert validator.is_valid({name: value})
        if not isinstance(value, bytes):
            # what is recorded and sent is what the schema shows
            assert validator.is_valid(parsed)
    for value in refused:
        assert not validator.is_valid({name: value})
        with pytest.raises(UsageError) as caught:
            TAKE.parse({name: value})
        assert caught.value.code == "arguments-invalid"
        assert caught.value.details["path"].startswith(f"$.{name}")


def test_bytes_are_shown_as_their_tag_and_given_as_bytes() -> None:
    made = of(functions.binary)
    assert made.parameters[0].annotation == "bytes"
    assert made.returns == "bytes"
    assert made.input_schema["properties"]["raw"]["properties"] == {
        "$bytes": {"type": "string", "contentEncoding": "base64"}
    }
    assert called(made, {"raw": b"ab"}) == b"ba"


@pytest.mark.parametrize(
    ("name", "value"),
    [("day", "2024-13-01"), ("moment", "soon"), ("ident", "x"), ("price", "cheap"), ("span", "long")],
)
def test_what_the_schema_cannot_say_is_still_validated_with_its_place(name: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        TAKE.parse({name: value})
    assert caught.value.details == {"path": f"$.{name}"}


def test_places_inside_arguments_are_named() -> None:
    with pytest.raises(UsageError) as caught:
        TAKE.parse({"order": {"id": 1, "total": "cheap"}})
    assert caught.value.details == {"path": "$.order.total"}


def test_unknown_arguments_get_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no argument 'cty'") as caught:
        of(functions.forecast).parse({"cty": "Rome"})
    assert caught.value.hint == "Did you mean 'city'?"


def test_arguments_parsed_twice_are_the_same() -> None:
    given = {"day": dt.date(2024, 2, 29), "price": decimal.Decimal("1.10"), "order": {"id": 1, "total": 2}}
    once = TAKE.parse(given)
    assert once == {"day": "2024-02-29", "price": "1.10", "order": {"id": 1, "total": 2}}
    assert TAKE.parse(once) == once


def test_results_cross_as_the_schema_shows_them() -> None:
    assert called(of(functions.order), {"id": 1}) == {"id": 1, "total": "1.10", "when": "2024-02-29T12:00:00"}
    assert called(of(functions.person), {}) == {"full-name": "Ada", "tags": []}
    assert called(of(functions.as_text), {}) == "1.10"
    for function in (functions.order, functions.person):
        made = of(function)
        result = called(made, {"id": 1} if function is functions.order else {})
        jsonschema.Draft202012Validator(dict(made.output_schema or {})).validate(result)  # pyright: ignore[reportUnknownMemberType]


def test_fields_with_defaults_are_always_there_in_results() -> None:
    made = of(functions.order)
    assert made.returns == "Order"
    assert made.declarations == (
        "class Order(TypedDict):\n    id: int\n    total: str\n    when: str | None",
    )


def test_undeclared_results_stay_python_values() -> None:
    made = of(functions.answer)
    assert made.returns == "Any"
    assert made.output_schema is None
    assert called(made, {"what": "decimal"}) == decimal.Decimal("1.5")
    assert called(made, {"what": "bytes"}) == b"\xff"
    assert called(made, {"what": "model"}) == {"full-name": "Ada", "tags": []}
    assert called(of(functions.untyped), {"value": [1]}) == [1]


def test_results_that_are_not_what_was_declared_are_refused() -> None:
    with pytest.raises(FailedError) as caught:
        called(of(functions.wrong_type), {})
    assert caught.value.code == "result-invalid"


def test_places_and_names_of_arguments() -> None:
    made = of(functions.positional)
    assert [(one.name, one.positional) for one in made.parameters] == [
        ("first", True),
        ("second", True),
        ("third", True),
        ("fourth", False),
    ]
    assert called(made, {"first": 1, "third": 2}) == ["1", "'x'", "2.0", "True"]
    assert called(made, {"first": 1, "second": "y"}) == ["1", "'y'", "1.0", "True"]


def test_callables_of_every_kind() -> None:
    adder = functions.Adder(5)
    assert called(of(adder.add), {"n": 1}) == 6
    assert of(adder.add).doc == "Add to the start."
    assert called(of(adder, name="plus"), {"n": 2}) == 7
    assert called(of(functions.half, name="half"), {"third": 2.0}) == ["1", "'x'", "2.0", "True"]


def test_errors_of_the_function_are_failures_of_the_call() -> None:
    with pytest.raises(FailedError) as caught:
        called(of(functions.boom), {"text": "no /home/someone/secret/file.txt at 0x7fbbcc001122"})
    assert caught.value.code == "tool-failed"
    assert caught.value.message == "ValueError: no /home/someone/secret/file.txt at 0x7fbbcc001122"
    # what is hashed does not depend on the machine
    assert caught.value.details == {"type": "ValueError", "message": "no .../file.txt at 0x..."}
    with pytest.raises(FailedError) as caught:
        called(of(functions.silent), {})
    assert (caught.value.message, caught.value.details) == ("KeyError", {"type": "KeyError", "message": ""})


def test_our_own_errors_pass_through() -> None:
    with pytest.raises(NotFoundError) as caught:
        called(of(functions.refuses), {})
    assert (caught.value.code, caught.value.details) == ("item-not-found", {"id": "x"})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("a/b/c is relative", "a/b/c is relative"),
        ("'/etc/x/y.conf'", "'.../y.conf'"),
        ("C:\\Users\\me\\f.txt is gone", ".../f.txt is gone"),
        ("<T object at 0x7f00aa11bb22>", "<T object at 0x...>"),
        ("0xff stays", "0xff stays"),
        ("1/2 and 3/4", "1/2 and 3/4"),
    ],
)
def test_details_do_not_depend_on_the_machine(text: str, kept: str) -> None:
    assert tool_failed(ValueError(text)).details["message"] == kept


def test_marks_and_threads() -> None:
    marks = marks_of(functions.thread)
    assert marks == Marks(name="who-runs", effect="external", version=4, blocking=True)
    assert marks_of(functions.here) is None
    assert functions.thread() == threading.current_thread().name
    made = of(functions.thread, name="who-runs", effect="external", version=4, blocking=True)
    assert (made.name, made.contract, made.effect) == ("who_runs", "python.sample.who-runs/4", "external")
    assert called(made, {}) != threading.current_thread().name
    assert called(of(functions.here), {}) == threading.current_thread().name


def test_a_function_may_give_a_whole_reply() -> None:
    made = of(functions.own_reply)
    reply = asyncio.run(_reply(made))
    assert reply.value == {"n": 1}
    assert reply.normalised == {"seen": True}


async def _reply(made: Operation) -> Any:
    return await made.handler({})


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (functions.star, r"\*values"),
        (functions.options, r"\*\*values"),
        (functions.unreadable, "Missing"),
        (functions.no_json, "without a JSON form"),
    ],
)
def test_signatures_that_cannot_be_contracts_are_refused(function: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        of(function)
    assert caught.value.code == "schema-unsupported"


def test_functions_without_a_name_need_one() -> None:
    with pytest.raises(UsageError, match="without a name"):
        of(lambda: 1)
    assert called(of(lambda: 1, name="one"), {}) == 1
