"""What a script is given and what it gives back."""

# ruff: noqa: E501 - scripts on one line each

from __future__ import annotations

import json
from typing import Any

import pytest

from .bench import Bench, Host


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", 2),
        ("x = 3", 3),
        ("x: int = 3", 3),
        ("x = y = 4", 4),
        ("x = 1\nx += 4", 5),
        ("(x := 6)", 6),
        ("a, *b = iter([1, 2, 3])", [1, 2, 3]),
        ("[a, b] = {'k': 1}, 2", [{"k": 1}, 2]),
        ("d = {}\nd['k'] = 7", 7),
        ("class A: pass\na = A()\na.b = 8", 8),
        ("class A: n = 1\na = A()\na.n += 8", 9),
        ("a, d = 0, {}\na, d['k'] = [1, 2]", [1, 2]),
        ("return 5", 5),
        ("for n in range(9):\n    if n == 4:\n        return {'n': n}", {"n": 4}),
        ("n: int = 1\nm: str\ndef up():\n    global n\n    n += 1\nup()\nif n == 2:\n    return n", 2),
        ("import math as m\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    text = str(e)\nreturn [text, m.floor(2.5)]", ["division by zero", 2]),
        ("rows = [await df.ok(i) for i in range(3) if i]\nreturn rows", [1, 2]),
        ("def main():\n    return 10", 10),
        ("async def run():\n    return await df.ok(11)", 11),
        ("def solve(n=12):\n    return n", 12),
        ("def main():\n    return 1\ndef solve():\n    return 2\nmain()", 1),
        ("def main():\n    return 13\nprint('shown')", 13),
        ("async def main():\n    return 14\nmain()", 14),
        ("import asyncio\nasync def main():\n    return await df.ok(15)\nasyncio.run(main())", 15),
        ("import asyncio\nasync def main():\n    return await df.ok(16)\nx = await df.ok(1)\nasyncio.run(main())", 16),
        ("import asyncio\nasync def main():\n    return await df.ok(17)\nif __name__ == '__main__':\n    asyncio.run(main())", 17),
        ("import asyncio\nasyncio.get_event_loop().run_until_complete(df.ok(18))", 18),
        ("import asyncio\nloop = asyncio.new_event_loop()\nloop.run_until_complete(df.ok(19))", 19),
        ("(1, {2}, frozenset({3}))", [1, [2], [3]]),
    ],
)  # fmt: skip
def test_the_value_of_a_script(bench: Bench, source: str, value: Any) -> None:
    assert bench.value(source) == value


@pytest.mark.parametrize(
    "source",
    ["", "x = 1\ndel x", "import json", "print('a')", "def main(need):\n    return need", "pass", "if True:\n    3", "df.answer(status='answered')"],
)  # fmt: skip
def test_scripts_without_a_value(bench: Bench, source: str) -> None:
    outcome = bench.run(source)
    assert (outcome.reason, outcome.has_value, outcome.value, outcome.error) == (
        "finished",
        False,
        None,
        None,
    )


def test_nothing_of_a_trailing_assignment_is_evaluated_twice(bench: Bench) -> None:
    source = (
        "seen = []\ndef at(x):\n    seen.append(x)\n    return x\nd = {1: [5]}\nd[at(1)][at(0)] += at(2)\n"
    )
    assert bench.value(source) == 7
    assert bench.value(source + "seen") == [1, 0, 2]


def test_conversions_of_the_value_are_noted(bench: Bench) -> None:
    assert bench.run("(1, 2)").notes == ("tuple at $ became a list",)


def test_hidden_names_do_not_show(bench: Bench) -> None:
    names = bench.value(
        "sorted(n for n in globals() if 'affidavit' in n.lower())\nreturn sorted(n for n in globals() if 'affidavit' in n.lower())"
    )
    assert [name for name in names if name != "_affidavit_value"] == []


# ---- df ----


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("await df.ok(1)", 1),
        ("await df.ok(n=2)", 2),
        ("f = df.ok\nawait f(3)", 3),
        ("import asyncio\nawait asyncio.gather(*[df.ok(i) for i in range(5)])", [0, 1, 2, 3, 4]),
        ("import asyncio\nt = asyncio.create_task(df.ok(4))\nawait t", 4),
        ("import asyncio\nawait asyncio.wait_for(df.ok(5), 5)", 5),
        ("import asyncio\nsorted([await f for f in asyncio.as_completed([df.ok(2), df.ok(1)])])", [1, 2]),
        ("import asyncio\nasync with asyncio.TaskGroup() as g:\n    t = g.create_task(df.ok(6))\nt.result()", 6),
        ("import asyncio\nasync with asyncio.timeout(5):\n    r = await df.ok(7)\nr", 7),
        ("import asyncio\nawait asyncio.shield(df.ok(8))", 8),
        ("list(dir(df.db)), list(dir(df.db.app.modules))", [["app"], ["page", "pages"]]),
        ("[hasattr(df, 'db'), hasattr(df, 'nope'), 'Error' in dir(df)]", [True, False, True]),
        ("[r['path'] for r in (await df.db.app.modules.page(limit=2)).rows]", ["0.js", "1.js"]),
        ("p = await df.db.app.modules.page()\n[p.page.next_cursor, p['page']['next_cursor'], p.source.artifact]", ["2", "2", "sha256:x"]),
        ("import json\njson.loads(json.dumps(await df.db.app.modules.page()))['evidence_id']", "ev1_x"),
        ("[r['path'] async for p in df.db.app.modules.pages() for r in p.rows]", [f"{n}.js" for n in range(5)]),
        ("async for p in df.db.app.modules.pages():\n    break\np.page.offset", 0),
        ("df.calls()", [{"operation": "calls"}]),
        ("await df.calls()", [{"operation": "calls"}]),
        ("df.answer(status='x') is not None and (await df.answer(status='x')) == None", True),
        ("await df.ok(1.0)", 1.0),
        ("import asyncio\nawait asyncio.to_thread(len, 'abc')", 3),
    ],
)  # fmt: skip
def test_df(bench: Bench, source: str, value: Any) -> None:
    assert json.dumps(bench.value(source)) == json.dumps(_tagged(value))


def _tagged(value: Any) -> Any:
    return {"$float": str(value)} if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("df.okk", "AttributeError", ["'okk'", "Did you mean 'ok'?", "answer, calls, db"]),
        ("df.db.app.modulez", "AttributeError", ["df.db.app", "Did you mean 'modules'?"]),
        ("df.x = 1", "AttributeError", ["read-only"]),
        ("df.db.app = 1", "AttributeError", ["read-only"]),
        ("del df.db", "AttributeError", ["read-only"]),
        ("await df.ok(1, 2)", "TypeError", ["at most 1 positional", "2 given"]),
        ("await df.ok(m=1)", "TypeError", ["unexpected keyword argument 'm'", "n"]),
        ("await df.ok(1, n=2)", "TypeError", ["multiple values"]),
        ("await df.db.app.modules.page({'path': 'x'})", "TypeError", ["no positional", "where="]),
        ("await df.db.app.modules.page(wher={})", "TypeError", ["Did you mean 'where'?"]),
        ("p = await df.db.app.modules.page()\np.rowz", "AttributeError", ["rowz", "rows"]),
        ("import threading\nout = []\ndef work():\n    try:\n        df.calls()\n    except RuntimeError as e:\n        out.append(e)\nt = threading.Thread(target=work)\nt.start()\nt.join()\nraise out[0]", "RuntimeError", ["own thread"]),
    ],
)  # fmt: skip
def test_wrong_use_of_df_says_what_is_right(bench: Bench, source: str, kind: str, words: list[str]) -> None:
    host = Host()
    error = bench.error(source, host)
    assert error.type == kind
    assert [word for word in words if word not in error.message] == []
    assert [call for call in host.calls if call.path == "ok"] == []


def test_a_failed_call_is_caught_with_its_fields(bench: Bench) -> None:
    source = (
        "try:\n    await df.fail('gone', code='item-not-found')\nexcept df.Error as e:\n"
        "    r = [e.code, e.message, e.hint, e.retryable, e.details, str(e)]\nr"
    )
    assert bench.value(source) == [
        "item-not-found",
        "gone",
        "try",
        True,
        {"n": 1},
        "item-not-found: gone (try)",
    ]


def test_a_failed_call_that_is_not_caught_is_the_error_of_the_run(bench: Bench) -> None:
    error = bench.error("x = 1\nawait df.fail('gone', code='item-not-found')")
    assert (error.code, error.type, error.message, error.hint) == (
        "item-not-found",
        "df.Error",
        "gone",
        "try",
    )
    assert (error.line, error.details) == (2, {"n": 1})


def test_calls_know_their_site(bench: Bench) -> None:
    host = Host()
    source = (
        "é = 'é'; a = await df.ok(0) + await df.ok(1)\nfor n in range(2):\n    await df.ok(n)\n"
        "async def again(n):\n    return await df.ok(n)\nawait again(1)\nlist(map(df.ok, []))\n"
        "cs = list(map(df.ok, [7, 8]))\n[await c for c in cs]"
    )
    bench.value(source, host)
    sites = [(call.line, call.column, call.iteration) for call in host.calls]
    first = "é = 'é'; a = await "
    column = len(first.encode())
    second = len((first + "df.ok(0) + await ").encode())
    assert sites[:2] == [(1, column, 0), (1, second, 0)]
    assert sites[2:4] == [(3, 10, 0), (3, 10, 1)]
    assert sites[4] == (5, 17, 0)
    assert [(line, iteration) for line, _, iteration in sites[5:]] == [(8, 0), (8, 1)]


def test_pages_number_their_calls_by_site(bench: Bench) -> None:
    host = Host()
    bench.value("for _ in range(2):\n    async for p in df.db.app.modules.pages():\n        pass", host)
    assert [call.iteration for call in host.calls] == [0, 1, 2, 3, 4, 5]
    assert [call.arguments.get("cursor") for call in host.calls] == [None, "2", "4"] * 2


@pytest.mark.parametrize(
    ("source", "unawaited"),
    [
        ("df.ok(1)\n2", (("ok", 1),)),
        ("x = df.ok(1)\n2", (("ok", 1),)),
        ("for i in range(3):\n    df.ok(i)\nawait df.ok(1)", (("ok", 2),)),
        ("df.db.app.modules.pages()\n1", (("db.app.modules.page", 1),)),
        ("await df.ok(1)\n[c for c in [df.ok(2), df.ok(3)]]\n1", (("ok", 2), ("ok", 2))),
        ("await df.ok(1)\nawait df.ok(2)", ()),
        ("async for p in df.db.app.modules.pages(): break", ()),
    ],
)
def test_calls_that_nobody_awaited_are_found_and_not_made(
    bench: Bench, source: str, unawaited: tuple[tuple[str, int], ...]
) -> None:
    host = Host()
    outcome = bench.run(source, host)
    assert outcome.error is None
    assert outcome.unawaited == unawaited
    assert len(host.calls) == source.count("await df") + source.count("async for")
    assert outcome.stdout == ""


def test_a_task_that_is_left_was_begun_and_is_cancelled(bench: Bench) -> None:
    host = Host()
    outcome = bench.run("import asyncio\nt = asyncio.create_task(df.hang())\nawait asyncio.sleep(0)\n2", host)
    assert (outcome.value, outcome.unawaited) == (b"2", ())
    assert len(host.calls) == host.cancelled <= 1


def test_a_returned_call_that_was_not_awaited_is_an_error(bench: Bench) -> None:
    outcome = bench.run("df.ok(1)")
    assert outcome.unawaited == (("ok", 1),)
    assert outcome.error is not None
    assert outcome.error.code == "value-unsupported"
    assert "coroutine" in outcome.error.message


@pytest.mark.parametrize(
    ("source", "kind", "hint"),
    [
        ("(n for n in range(3))", "generator", "make it a list"),
        ("def main():\n    yield 1", "generator", "make it a list"),
        ("range(3)", "range", "list(...)"),
        ("{'a': 1}.keys()", "dict_keys", "list(...)"),
        ("[map(str, [1])]", "map", "list(...)"),
        (
            "import asyncio\nawait asyncio.gather(df.ok(1), df.fail('no'), return_exceptions=True)",
            "Error",
            "str(error)",
        ),
        ("[ValueError('x')]", "ValueError", "repr(error)"),
    ],
)
def test_a_value_that_is_no_data_is_refused_with_the_way_to_make_it_data(
    bench: Bench, source: str, kind: str, hint: str
) -> None:
    error = bench.error(source)
    assert error.code == "value-unsupported"
    assert f"a value of type {kind} at $" in error.message
    assert hint in error.hint


def test_a_generator_is_summed_once(bench: Bench) -> None:
    assert bench.value("g = (n for n in range(5))\n[sum(g), sum(g)]") == [10, 0]


def test_tagged_values_cross_both_ways(bench: Bench) -> None:
    source = "import datetime as dt, decimal\nvs = [2**60, float('inf'), b'x', dt.date(2024, 1, 2), decimal.Decimal('1.10'), '\\ud800', {'$a': 1}]\n[await df.ok(v) == v for v in vs]"
    assert bench.value(source) == [True] * 7


def test_inputs_are_globals(bench: Bench) -> None:
    inputs = {"rows": [1, 2], "big": {"$int": str(2**70)}}
    assert bench.value("[sum(rows), big == 2 ** 70]", inputs=inputs) == [3, True]


def test_edits_of_a_received_value_stay_in_the_script(bench: Bench) -> None:
    assert (
        bench.value(
            "p = await df.db.app.modules.page()\np.rows.clear()\np.rows = 1\n(await df.db.app.modules.page()).rows[0]['path']"
        )
        == "0.js"
    )


# ---- errors ----


@pytest.mark.parametrize(
    ("source", "kind", "code", "line", "column", "words"),
    [
        ("1\n  2", "IndentationError", "script-syntax", 2, 1, "unexpected indent"),
        ("é = (", "SyntaxError", "script-syntax", 1, 5, "never closed"),
        ("x = 1\nyield x\nreturn 2", "SyntaxError", "script-syntax", 2, 0, "'yield' outside function"),
        ("\x00", "SyntaxError", "script-syntax", None, None, "null byte"),
        ("'\ud800'", "SyntaxError", "script-syntax", None, None, "surrogates"),
        ("import json\n\njson.loads('{')", "JSONDecodeError", "script-error", 3, 0, "line 1 column 2"),
        ("value = 1\nvaleu", "NameError", "script-error", 2, 0, "Did you mean: 'value'?"),
        ("class A:\n    name = 1\nA().nam", "AttributeError", "script-error", 3, 0, "Did you mean: 'name'?"),
        ("import math\nmath.sqroot", "AttributeError", "script-error", 2, 0, "Did you mean: 'sqrt'?"),
        ("é = 'é'; int('é')", "ValueError", "script-error", 1, 11, "invalid literal"),
        ("def f(d):\n    return d['k']\nf({})", "KeyError", "script-error", 2, 11, "'k'"),
        ("class Odd(BaseException): pass\nraise Odd('x')", "Odd", "script-error", 2, 0, "x"),
        ("import ast\nast.literal_eval('(')", "SyntaxError", "script-error", 2, 0, "never closed"),
        ("import numpy", "ModuleNotFoundError", "script-error", 1, 0, "numpy"),
        ("raise ValueError('\\udfff\\n')", "ValueError", "script-error", 1, 0, "\\udfff\n"),
        ("input()", "EOFError", "script-error", 1, 0, "no standard input"),
        ("open('x')", "PermissionError", "script-error", 1, 0, "not permitted"),
        ("raise ExceptionGroup('g', [ValueError('a')])", "ExceptionGroup", "script-error", 1, 0, "1 sub-exception"),
        ("def f():\n    return f()\nf()", "RecursionError", "recursion", 2, 11, "recursion"),
    ],
)  # fmt: skip
def test_errors_have_a_type_a_place_and_words(
    bench: Bench, source: str, kind: str, code: str, line: int | None, column: int | None, words: str
) -> None:
    error = bench.error(source)
    assert (error.type, error.code, error.line, error.column) == (kind, code, line, column)
    assert words in error.message


def test_tracebacks_show_the_script_and_nothing_else(bench: Bench) -> None:
    error = bench.error(
        "import json\ndef load(t):\n    return json.loads(t)\ntry:\n    load('{')\nexcept ValueError as e:\n    raise KeyError('k') from e"
    )
    assert error.traceback.count('File "') == error.traceback.count('File "<script>"') == 3
    assert "return json.loads(t)" in error.traceback
    assert "direct cause" in error.traceback


def test_groups_show_their_parts(bench: Bench) -> None:
    error = bench.error(
        "import asyncio\nasync def bad(n):\n    raise ValueError(n)\nasync with asyncio.TaskGroup() as g:\n    g.create_task(bad(1))\n    g.create_task(bad(2))"
    )
    assert "ValueError: 1" in error.traceback
    assert "ValueError: 2" in error.traceback


def test_each_run_starts_fresh(bench: Bench) -> None:
    bench.value("kept = 1\nimport json\njson.kept = 1")
    assert bench.value("import json\n[hasattr(json, 'kept'), 'kept' in globals()]") == [False, False]


def test_the_script_is_the_main_module(bench: Bench) -> None:
    source = "import sys, pickle, inspect\nclass A: pass\ndef f():\n    return 1\n[sys.modules['__main__'].A is A, type(pickle.loads(pickle.dumps(A()))) is A, inspect.getsource(f)]"
    assert bench.value(source) == [True, True, "def f():\n    return 1\n"]
