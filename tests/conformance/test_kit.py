"""`df.kit` in both engines: what is there comes back, what is not is an error that names its place."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from affidavit.errors import AffidavitError
from affidavit.runtime.engines import kit

from .world import Bench, World

_REPLY: dict[str, Any] = {
    "main": {"temp": "21.5", "humidity": None},
    "items": [{"id": 7, "tags": ["a"]}, {"id": 8, "tags": []}],
    "odd.key": {'with "quotes"': 1},
}

_READ: list[tuple[str, Any]] = [
    ('df.kit.get(reply, "main.temp")', "21.5"),
    ('df.kit.get(reply, "$.main.temp")', "21.5"),
    ('df.kit.get(reply, "items[1].id")', 8),
    ('df.kit.get(reply, "items[-1].id")', 8),
    ('df.kit.get(reply, "items.0.id")', 7),
    ('df.kit.get(reply, ["items", 0, "tags", 0])', "a"),
    ('df.kit.get(reply, \'["odd.key"]["with \\\\"quotes\\\\""]\')', 1),
    ("df.kit.get([5, 6], 1)", 6),
    ('df.kit.get(reply, "$") == reply', True),
    ('df.kit.get(reply, "main.rain", 0)', 0),
    ('df.kit.get(reply, "items[9].id", default="none")', "none"),
    ('df.kit.get(reply, "main.humidity.unit", "none")', "none"),
    ('df.kit.get(reply, "main.humidity", 50)', None),
    ('df.kit.to_number(reply, "main.temp") + 1', 22.5),
    ('df.kit.to_number(" 12 ")', 12),
    ('df.kit.to_number("9007199254740993")', 9007199254740993),
    ('df.kit.to_number("+1.5e3") == 1500.0', True),
    ('df.kit.to_number(".5")', 0.5),
    ('df.kit.to_number("1.234.567,25", thousands=".", decimal_point=",")', 1234567.25),
    ('df.kit.to_number("1,234,567", thousands=",")', 1234567),
    ('df.kit.to_number("3,5", decimal_point=",")', 3.5),
    ('df.kit.rows_of([{"a": 1}])', [{"a": 1}]),
    ("df.kit.rows_of([])", []),
    ('df.kit.rows_of({"items": [], "total": 0})', []),
    ('df.kit.rows_of({"city": "Oslo", "forecasts": [{"day": 1}], "notes": ["x"]})', [{"day": 1}]),
    ('df.kit.rows_of(\'{"status": "ok", "data": {"list": [{"a": 1}], "total": 1}}\')', [{"a": 1}]),
    ('df.kit.rows_of(reply, "items")[1]["id"]', 8),
    ('df.kit.unwrap(\'{"result": {"a": [1]}}\')', {"a": [1]}),
    ('df.kit.unwrap([{"type": "text", "text": "[1, 2]"}])', [1, 2]),
    ('df.kit.unwrap({"status": 200, "headers": {}, "body": {"n": 1}})', {"n": 1}),
    ('df.kit.unwrap({"jsonrpc": "2.0", "id": 4, "result": 5})', 5),
    ('df.kit.unwrap({"id": 4, "data": 5})', {"id": 4, "data": 5}),
    ('df.kit.unwrap({"data": 1, "result": 2})', {"data": 1, "result": 2}),
    ('df.kit.unwrap({"data": 1, "error": None})', 1),
    ('df.kit.unwrap("[draft] no JSON")', "[draft] no JSON"),
    ('df.kit.unwrap("7")', "7"),
    ("df.kit.unwrap(None)", None),
    ('k = df.kit\nlist(map(k.to_number, ["1", "2"]))', [1, 2]),
]

_REFUSED: list[tuple[str, str, str, str]] = [
    ('df.kit.get(reply, "main.tmep")', "path-missing", "$.main.tmep", 'did you mean "temp"?'),
    ('df.kit.get(reply, "items[2].id")', "path-missing", "$.items[2]", "default"),
    ('df.kit.get(reply, "main.temp.unit")', "value-unfit", "$.main.temp", "$.main.temp.unit"),
    ('df.kit.get(reply, "main.temp.unit", 0)', "value-unfit", "$.main.temp", "$.main.temp.unit"),
    ('df.kit.get(reply, "items.id")', "value-unfit", "$.items", "[0]"),
    ('df.kit.get(reply, "main..temp")', "path-missing", "'main..temp'", "a.b[0]"),
    ('df.kit.get(reply, "items[x]")', "path-missing", "'items[x]'", "a.b[0]"),
    ("df.kit.get(reply, 1.5)", "path-missing", "1.5", "a.b[0]"),
    ("df.kit.to_number(None)", "value-unfit", "$", ""),
    ('df.kit.to_number("")', "value-unfit", "$", "empty"),
    ('df.kit.to_number(reply, "main.humidity")', "value-unfit", "$.main.humidity", ""),
    ("df.kit.to_number(True)", "value-unfit", "$", ""),
    ('df.kit.to_number("1,234")', "value-unfit", "$", "thousands"),
    ('df.kit.to_number("1,23", thousands=",")', "value-unfit", "$", ""),
    ('df.kit.to_number("12 ms")', "value-unfit", "$", "no digit"),
    ('df.kit.to_number("nan")', "value-unfit", "$", ""),
    ('df.kit.to_number("1_000")', "value-unfit", "$", ""),
    ('df.kit.to_number("0x10")', "value-unfit", "$", ""),
    ('df.kit.to_number("1e400")', "value-unfit", "$", "Decimal"),
    ('df.kit.to_number("1e-400")', "value-unfit", "$", "Decimal"),
    ('df.kit.to_number("9007199254740993.0")', "value-unfit", "$", "Decimal"),
    ("df.kit.to_number([])", "value-unfit", "$", ""),
    ('df.kit.to_number("1" * 500)', "value-unfit", "$", ""),
    ('df.kit.rows_of({"a": [{"x": 1}], "b": [{"y": 1}]})', "value-unfit", "$", "rows_of(reply, path)"),
    ('df.kit.rows_of({"id": 1, "tags": []})', "value-unfit", "$", "rows_of(reply, path)"),
    ('df.kit.rows_of([{"a": 1}, None])', "value-unfit", "$[1]", "object"),
    ('df.kit.rows_of("no rows here")', "value-unfit", "$", ""),
    ('df.kit.rows_of(reply, "main")', "value-unfit", "$.main", ""),
    ('df.kit.unwrap({"ok": False, "message": "quota used up"})', "tool-failed", "$", ""),
    ('df.kit.unwrap({"data": None, "error": {"code": 7}})', "tool-failed", "$", ""),
    ("df.kit.unwrap('{\"n\": [1, 1e400]}')", "value-unfit", "$.n[1]", "text"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "value"), _READ, ids=[source for source, _ in _READ])
def test_what_is_there_comes_back(bench: Bench, source: str, value: Any) -> None:
    assert bench.value(source, inputs={"reply": _REPLY}) == value


@pytest.mark.parametrize(("source", "code", "path", "hint"), _REFUSED, ids=[one[0] for one in _REFUSED])
def test_what_is_not_there_is_an_error_that_names_its_place(
    bench: Bench, source: str, code: str, path: str, hint: str
) -> None:
    caught = "found = [error.code, error.details, error.hint]"
    script = f"try:\n    {source}\nexcept df.Error as error:\n    {caught}\nfound"
    found_code, details, found_hint = bench.value(script, inputs={"reply": _REPLY})
    assert (found_code, details["path"]) == (code, path)
    assert hint in found_hint


def test_an_error_that_nobody_catches_names_line_place_and_nearest_key(bench: Bench) -> None:
    outcome = bench.run('x = 1\ndf.kit.get({"main": {"temp": 1}}, "main.tmep")')
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.line) == ("path-missing", 2)
    assert outcome.error.message == "there is nothing at $.main.tmep: $.main has the keys temp"
    assert outcome.error.hint == 'did you mean "temp"?'


def test_it_makes_no_call(bench: Bench) -> None:
    world = World()
    bench.value('df.kit.rows_of({"rows": [{"n": 1}]})', world)
    assert world.calls == []


def test_a_page_is_its_rows(bench: Bench) -> None:
    page = "page = await df.db.app.modules.page()\ndf.kit.rows_of(page) == page.rows"
    assert bench.value(page) is True


def test_builtins_that_a_script_rebinds_change_nothing(bench: Bench) -> None:
    source = 'isinstance = len = str = int = None\ndf.kit.to_number({"a": ["1.5"]}, "a[0]")'
    assert bench.value(source) == 1.5


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(_JSON)
@example({"]": None, "\\": [1], '"]': {'\\"': 2}})
def test_every_place_reads_back_what_stands_there(value: Any) -> None:
    pending: list[tuple[Any, list[Any]]] = [(value, [])]
    while pending:
        inner, steps = pending.pop()
        assert kit.get(value, steps) is inner
        assert kit.get(value, _text(steps)) is inner
        if isinstance(inner, dict):
            pending += [(one, [*steps, key]) for key, one in cast("dict[str, Any]", inner).items()]
        if isinstance(inner, list):
            pending += [(one, [*steps, at]) for at, one in enumerate(cast("list[Any]", inner))]


def _text(steps: list[Any]) -> str:
    return "$" + "".join(f"[{json.dumps(step)}]" for step in steps)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_from_their_text(number: float) -> None:
    found = kit.to_number(repr(number))
    assert (found, type(found)) == (number, type(number))


@given(st.text(max_size=12))
def test_text_is_a_number_of_that_value_or_an_error(text: str) -> None:
    try:
        found = kit.to_number(text)
    except AffidavitError:
        return
    assert found == float(text)
