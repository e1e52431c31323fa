"""An earlier script with other values: what varies is found at exactly one place, or refused with the places."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.runtime.replay.literals import literals
from affidavit.runtime.replay.reuse import derive

from .bench import Bench


def made(source: str, vary: dict[str, Any], was: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """The derived script and its inputs."""
    derived = derive(source, {}, vary=vary, was=was or {}, known={})
    return derived.source, {name: values.decode(value) for name, value in derived.inputs.items()}


def value_of(source: str, inputs: dict[str, Any]) -> Any:
    """What a script leaves in `value`, by plain Python."""
    names = dict(inputs)
    exec(source, names)
    return names["value"]


FOUND = [
    ('value = {"place": "London"}', "place", "Rome", {"place": "Rome"}),
    ('value = dict(place="London")', "place", "Rome", {"place": "Rome"}),
    ('place = "London"\nvalue = place + "!"', "place", "Rome", "Rome!"),
    ('place: str = "London"\nvalue = place + "!"', "place", "Rome", "Rome!"),
    ('def f(place="London"):\n    return place\nvalue = f()', "place", "Rome", "Rome"),
    ('def f(*, place="London"):\n    return place\nvalue = f()', "place", "Rome", "Rome"),
    ('value = (place := "London") + "!"', "place", "Rome", "Rome!"),
    ("a, place = 1, 'London'\nvalue = [a, place]", "place", "Rome", [1, "Rome"]),
    ("low = -5\nvalue = low + 1", "low", -7, -6),
    ("low = +5\nvalue = low + 1", "low", 7, 8),
    ("rate = 1.5\nvalue = rate * 2", "rate", 2, 4),
    ("flag = True\nvalue = not flag", "flag", False, True),
    ("end = None\nvalue = end", "end", "now", "now"),
    ("rows = [1, 2, 3]\nvalue = sum(rows)", "rows", [4, 5], 9),
    ("where = {'a': {'b': 1}}\nvalue = where['a']", "where", {"a": 2}, 2),
    ("place = 'Lon' 'don'\nvalue = place", "place", "Rome", "Rome"),
    ("place = ('Lon'\n    'don')\nvalue = place", "place", "Rome", "Rome"),
    ('place = """Lon\ndon"""\nvalue = place', "place", "Rome", "Rome"),
    ("def f():\n    place = 'London'\n    return place\nvalue = f()", "place", "Rome", "Rome"),
    ("é = 'ü'; place = 'ö'\nvalue = é + place", "place", "ä", "üä"),
    ("place = 'a'\r\nvalue = place + 'b'\r\n", "place", "c", "cb"),
]


@pytest.mark.parametrize(("source", "name", "new", "wanted"), FOUND)
def test_a_value_is_found_by_the_name_it_stands_under(source: str, name: str, new: Any, wanted: Any) -> None:
    assert value_of(*made(source, {name: new})) == wanted


@pytest.mark.parametrize(
    ("source", "was", "new", "wanted"),
    [
        ('value = "London".upper()', "London", "Rome", "ROME"),
        ("value = [1, 2, 3]", 2, 5, [1, 5, 3]),
        ("value = [1, 2, 3]", [1, 2, 3], [5], [5]),
        ("value = [1, True, 1.0, '1']", True, False, [1, False, 1.0, "1"]),
        ("value = [1, True, 1.0, '1']", 1, 7, [7, True, 1.0, "1"]),
        ("value = [1, True, 1.0, '1']", 1.0, 7.5, [1, True, 7.5, "1"]),
        ("value = [5, -5]", -5, 6, [5, 6]),
        ("value = [5, -5]", 5, 6, [6, -5]),
        ("value = 1 if 'a'in'abc'else 2", "abc", "xyz", 2),
        ("value = 'x'if[]else'y'", "x", "z", "y"),
        ("value = 'x'if[]else'y'", "y", "z", "z"),
        ("value = 1_000 + 1", 1000, 5, 6),
        ("value = 0x10 + 1", 16, 5, 6),
        ("value = 'it\\'s' + \"\"", "it's", "a", "a"),
        ("value = {'k': 'a', 'l': 'b'}['k']", "a", "c", "c"),
    ],
)
def test_a_value_is_found_by_what_it_was(source: str, was: Any, new: Any, wanted: Any) -> None:
    assert value_of(*made(source, {"it": new}, {"it": was})) == wanted


def test_a_value_that_the_script_has_becomes_a_parameter_and_stays() -> None:
    source, inputs = made('value = "London".upper()', {"place": "London"})
    assert (source, inputs) == ("value = place.upper()", {"place": "London"})


@pytest.mark.parametrize(
    ("source", "vary", "was", "places", "said"),
    [
        ('f("a"); g("a")', {"it": "b"}, {"it": "a"}, ['1:3 "a"', '1:11 "a"'], "is found 2 times: 1:3"),
        ("f(x=1); g(x=2)", {"x": 5}, {}, ["1:5 1", "1:13 2"], "is found 2 times"),
        ('f("a")\ng(2)', {"it": "b"}, {"it": "z"}, ['1:3 "a"', "2:3 2"], "is not found"),
        ("f(1)", {"it": 5}, {}, ["1:3 1"], "stands under the name 'it' is not found"),
        ("f('ü', 2)\n", {"it": 5}, {"it": 3}, ["1:3 'ü'", "1:8 2"], "is not found"),
        ('"""doc"""\nx = f"a{y}"', {"it": "b"}, {"it": "doc"}, [], "is not found"),
        ('x = f"a{y}"', {"it": "b"}, {"it": "a"}, [], "is not found"),
        ("match x:\n    case 'a':\n        pass", {"it": "b"}, {"it": "a"}, [], "is not found"),
        ("x: 'a' = y", {"it": "b"}, {"it": "a"}, [], "is not found"),
        ("def f(x: 'a') -> 'a': ...", {"it": "b"}, {"it": "a"}, [], "is not found"),
        ("x = (1, 2)", {"x": [3]}, {}, ["1:6 1", "1:9 2"], "is not found"),
        ("x = b'a'", {"x": "b"}, {}, [], "has no literal that can vary"),
        ("x = [1, 2]", {"x": [3], "y": 5}, {"y": 2}, ["1:5 [1, 2]", "1:9 2"], "in one literal"),
        ("x = 1", {"x": "text"}, {}, ["1:5 1"], "x was a number, 'text' is text"),
        ("x = True", {"x": 1}, {}, ["1:5 True"], "x was a truth value, 1 is a number"),
        ("x = 1", {"x": None}, {}, ["1:5 1"], "None"),
        ("x = 1", {}, {"x": 1}, [], "none that it becomes"),
        ("x = 1", {"a b": 2}, {"a b": 1}, [], "cannot be the name"),
        ("x = 1", {"class": 2}, {"class": 1}, [], "cannot be the name"),
    ],
)
def test_what_is_not_found_once_is_refused_with_the_places(
    source: str, vary: dict[str, Any], was: dict[str, Any], places: list[str], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        made(source, vary, was)
    assert refused.value.code == "reuse-invalid"
    assert said in f"{refused.value.message} ({refused.value.hint})"
    listed: list[Any] = refused.value.details["places"]
    assert [f"{place['line']}:{place['column']} {place['literal']}" for place in listed] == places


def test_many_places_are_cut() -> None:
    with pytest.raises(UsageError, match="is not found") as refused:
        made("\n".join(f"f({n})" for n in range(50)), {"it": "x"})
    assert len(refused.value.details["places"]) == 20
    assert "and 30 more" in refused.value.hint


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("city = 'London'\nvalue = city", "city"),
        ("def city(): return 1\nvalue = f(city='London')", "city"),
        ("import os as city\nvalue = g(city='London')", "city"),
        ("value = g(len='London')", "len"),
        ("value = g(df='London')", "df"),
        ("value = g(results='London')", "results"),
    ],
)
def test_a_parameter_takes_no_name_from_the_script(source: str, name: str) -> None:
    derived = derive(source, {}, vary={name: "Rome"}, was={}, known={})
    assert list(derived.inputs) == [f"{name}_"]
    assert f"{name}_" in derived.source
    ast.parse(derived.source)


def test_names_of_the_preamble_and_of_inputs_are_taken_too() -> None:
    derived = derive("f(a='x')", {"a_": 1}, vary={"a": "y"}, was={}, known={}, around=["def a(): ..."])
    assert (derived.source, dict(derived.inputs)) == ("f(a=a__)", {"a_": 1, "a__": "y"})


def test_an_input_is_varied_as_it_is() -> None:
    derived = derive("n + 1", {"n": 4}, vary={"n": 5}, was={}, known={})
    assert (derived.source, derived.inputs) == ("n + 1", {"n": 5})
    assert derived.parameters == ({"name": "n", "input": "n", "was": 4, "line": None, "column": None},)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text("ab'\"\\\né", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(held=st.lists(_values, min_size=1, max_size=5), at=st.integers(0, 4), new=_values)
def test_whatever_is_replaced_the_rest_stays(held: list[Any], at: int, new: Any) -> None:
    at %= len(held)
    names = [f"v{n}" for n in range(len(held))]
    source = "".join(f"{name} = {value!r}\n" for name, value in zip(names, held, strict=True))
    source += f"value = [{', '.join(names)}]\n"
    try:
        derived, inputs = made(source, {f"v{at}": new})
    except UsageError as refused:
        assert "was" in refused.message  # noqa: PT017 - another kind of value
        return
    wanted = [new if n == at else value for n, value in enumerate(held)]
    assert repr(value_of(derived, inputs)) == repr(wanted)


@given(value=_values)
def test_every_literal_is_found_as_it_is(value: Any) -> None:
    source = f"é = 1; x = {value!r}"
    found = [literal for literal in literals(source) if "x" in literal.names]
    assert repr(found[0].value) == repr(value)
    assert repr(ast.literal_eval(found[0].text)) == repr(value)


# ---- runs ----

asynchronous = pytest.mark.asyncio(loop_scope="package")
SCRIPT = 'n = 4\nr = await df.tool.t.ten(n=n)\n{"n": "n", "r": r}'


@asynchronous
async def test_a_run_is_derived_from_an_earlier_one(bench: Bench) -> None:
    session = await bench.session()
    first = await session.run(SCRIPT)
    again = await session.reuse(first.number, vary={"n": 7}, was={"n": 4})
    assert (again.status, again.data, bench.made) == ("succeeded", {"n": "n", "r": 70}, ["ten 4", "ten 7"])
    [requested] = [
        event for event in bench.workspace.store.events.of_run(again.run_id) if event.kind == "run-requested"
    ]
    data: Any = requested.data
    assert data["source"] == 'n = n_\nr = await df.tool.t.ten(n=n)\n{"n": "n", "r": r}'
    assert data["inputs"] == {"n_": 7}
    assert data["derived_from"] == {
        "run": first.run_id,
        "parameters": [{"name": "n", "input": "n_", "was": 4, "line": 1, "column": 5}],
        "names": {"n": "n_"},
    }
    third = await session.reuse(again.run_id, vary={"n": 8})  # the name that the author gave goes on
    assert third.data == {"n": "n", "r": 80}
    for run in (first, again, third):
        assert all(replay.same for replay in (await bench.replays(run)).values())


@asynchronous
async def test_another_session_may_reuse_a_run_by_its_id(bench: Bench) -> None:
    first = await (await bench.session()).run("await df.tool.t.ten(n=1)")
    other = await bench.session(f"{bench.name}-b")
    assert (await other.reuse(first.run_id, vary={"n": 2})).data == 20
    with pytest.raises(NotFoundError):
        await other.reuse(7, vary={"n": 2})


@asynchronous
@pytest.mark.parametrize(
    ("source", "why"), [("1 / 0", "failed"), ("def f(:", "was rejected"), ("exit()", "failed")]
)
async def test_a_run_that_did_not_succeed_is_no_source(bench: Bench, source: str, why: str) -> None:
    session = await bench.session()
    run = await session.run(source)
    with pytest.raises(UsageError, match=why) as refused:
        await session.reuse(run.number, vary={"n": 1}, was={"n": 0})
    assert refused.value.code == "reuse-invalid"
    assert len(session.runs()) == 1


@asynchronous
async def test_a_derived_script_is_checked_with_the_types_of_its_values(bench: Bench) -> None:
    session = await bench.session()
    first = await session.run('unit = None\nawait df.tool.t.ten(n=len(unit or "abc"))')
    bad = await session.reuse(first.number, vary={"unit": 5})
    assert bad.status in ("rejected", "failed")
    assert (await session.reuse(first.number, vary={"unit": "ab"})).data == 20


@asynchronous
async def test_a_repaired_script_is_reused_as_it_ran(bench: Bench) -> None:
    session = await bench.session()
    first = await session.run("```python\nn = 3\nn + 1\n```")
    assert (first.status, first.data) == ("succeeded", 4)
    assert (await session.reuse(first.number, vary={"n": 9})).data == 10


@asynchronous
async def test_a_repeated_request_is_run_once(bench: Bench) -> None:
    session = await bench.session()
    first = await session.run("await df.tool.t.ten(n=1)")
    runs = [await session.reuse(first.number, vary={"n": 2}, idempotency_key="k") for _ in range(2)]
    assert runs[0].run_id == runs[1].run_id
    assert bench.made == ["ten 1", "ten 2"]
