"""Values cross in both directions unchanged, tags included."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.evidence import values

from .world import Bench, World

_VALUES: list[Any] = [
    None, True, False, 0, -1, 2**53, -(2**63), 2**200, 0.5, 1.0, -0.0, 1e300, float("inf"), float("-inf"),
    "", "text", "é 日本 👍🏽", "\x00\x1f", "$int", b"", b"\x00\xff", datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    date(2024, 2, 29), Decimal("1.10"), Decimal("NaN"), [], {}, [[]], {"a": {}}, {"$a": 1, "$$": 2, "b c": [None]},
    {"z": 1, "a": 2}, [1, 1.0, True, "1", b"1", Decimal(1)],
]  # fmt: skip


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and values.encode(one) == values.encode(other)


@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_a_result_comes_in_and_a_value_goes_out_unchanged(bench: Bench, value: Any) -> None:
    world = World(given=values.encode(value))
    assert _same(bench.value("await df.tool.math.give()", world), value)


@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_an_input_comes_in_and_an_argument_goes_out_unchanged(bench: Bench, value: Any) -> None:
    world = World()
    assert _same(bench.value("await df.tool.math.echo(given)", world, inputs={"given": value}), value)
    assert world.calls[0].arguments == {"value": values.encode(value)}


def test_nan_stays_nan(bench: Bench) -> None:
    value = bench.value("[await df.tool.math.give(), float('nan')]", World(given={"$float": "nan"}))
    assert all(math.isnan(item) for item in value)


def test_python_types_are_what_they_are_inside(bench: Bench) -> None:
    world = World(given=values.encode([2**70, 1.0, b"x", date(2024, 1, 1), Decimal("1.5"), None, True]))
    script = "[type(value).__name__ for value in await df.tool.math.give()]"
    assert bench.value(script, world) == ["int", "float", "bytes", "date", "Decimal", "NoneType", "bool"]


@pytest.mark.parametrize("value", [UUID(int=7), "\ud800", {"\udfff": 1}], ids=repr)
def test_what_an_engine_cannot_take_is_refused_and_never_altered(bench: Bench, value: Any) -> None:
    outcome = bench.run("await df.tool.math.give()", World(given=values.encode(value)))
    if outcome.error is None:
        assert outcome.value is not None
        assert bench.value("await df.tool.math.give()", World(given=values.encode(value))) == value
    else:
        assert outcome.error.code == "value-unsupported"


@pytest.mark.parametrize("value", [UUID(int=7), "\ud800"], ids=repr)
def test_an_input_that_an_engine_cannot_take_is_refused_before_any_call(bench: Bench, value: Any) -> None:
    world = World()
    outcome = bench.run("await df.tool.math.ten(1)", world, inputs={"given": value})
    if outcome.error is not None:
        assert outcome.error.code == "value-unsupported"
        assert world.calls == []


@pytest.mark.parametrize(
    ("script", "path"),
    [("(1,)", "$"), ("{'a': {1}}", "$.a"), ("[lambda: 1]", "$[0]"), ("{1: 2}", "$")],
)
def test_an_argument_that_records_cannot_hold_is_a_df_error(bench: Bench, script: str, path: str) -> None:
    world = World()
    source = (
        f"try:\n    await df.tool.math.echo({script})\n"
        "except df.Error as error:\n    seen = [error.code, error.message]\nseen"
    )
    code, message = bench.value(source, world)
    assert code == "value-unsupported"
    assert "df.tool.math.echo" in message
    assert path.removeprefix("$") in message
    assert world.calls == []


def test_what_a_script_changes_stays_its_own(bench: Bench) -> None:
    world = World(given={"rows": [1]})
    script = "got = await df.tool.math.give()\ngot['rows'].append(2)\n[got, await df.tool.math.give()]"
    assert bench.value(script, world) == [{"rows": [1, 2]}, {"rows": [1]}]


def test_pages_have_attributes_and_keys(bench: Bench) -> None:
    script = (
        "page = await df.db.app.modules.page(limit=3)\n"
        "[page.rows, page['rows'], page.page.next_cursor, page['page']['returned'], page.evidence_id,"
        " page.rows[0]['name']]"
    )
    rows = [{"n": n, "name": f"row {n}"} for n in range(3)]
    assert bench.value(script) == [rows, rows, "3", 3, "ev1_0", "row 0"]


@pytest.mark.parametrize(
    "script",
    [
        "page = await df.db.app.modules.page()\npage.nothing",
        "page = await df.db.app.modules.page()\npage.rows[0].name",
        "found = await df.db.app.modules.get('a')\nfound.id",
        "plain = {'rows': 1}\nplain.rows",
        "page = await df.db.app.modules.page()\ndict(page).rows",
    ],
)
def test_nothing_else_has_attributes(bench: Bench, script: str) -> None:
    outcome = bench.run(script)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.type) == ("script-error", "AttributeError")
    assert outcome.error.line == 2


def test_getattr_and_hasattr_see_what_a_page_has(bench: Bench) -> None:
    script = (
        "page = await df.db.app.modules.page(limit=1)\n"
        "[getattr(page, 'evidence_id'), getattr(page, 'nothing', 5), hasattr(page, 'rows'), hasattr(page, 'row')]"
    )
    assert bench.value(script) == ["ev1_0", 5, True, False]


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=_JSON)
def test_any_value_survives_the_way_through(bench: Bench, value: Any) -> None:
    try:
        encoded = values.encode(value)
        str(value).encode()
    except UnicodeEncodeError:
        return
    script = "copy = await df.tool.math.give()\nawait df.tool.math.echo(copy)"
    world = World(given=encoded)
    assert values.encode(bench.value(script, world)) == encoded
