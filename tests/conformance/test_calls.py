"""Calls of operations: sites, order, failures, pages, and calls that were never awaited."""

from __future__ import annotations

import asyncio

import pytest

from affidavit.runtime.program import RunOutcome, ScriptCall

from .world import Bench, World


def _failed(outcome: RunOutcome) -> tuple[str, str]:
    assert outcome.error is not None
    return outcome.error.code, outcome.error.type


def test_each_call_knows_its_site_and_iteration(bench: Bench) -> None:
    world = World()
    script = (
        "for n in range(2):\n"
        "    await df.tool.math.ten(n)\n"
        "total = await df.tool.math.ten(1) + await df.tool.math.ten(2)\n"
        "async def again(n):\n"
        "    return await df.tool.math.ten(x=n)\n"
        "await again(1)\n"
        "await again(2)\n"
        "[await df.tool.math.ten(n) for n in range(2)]\n"
    )
    bench.value(script, world)
    assert world.sites == [
        (2, 10, 0), (2, 10, 1), (3, 14, 0), (3, 42, 0), (5, 17, 0), (5, 17, 1), (8, 7, 0), (8, 7, 1),
    ]  # fmt: skip


def test_a_chain_over_several_lines_is_placed_at_its_name(bench: Bench) -> None:
    world = World()
    script = "(await df.tool\n    .math\n    .ten(\n        1\n    ))\nawait df.tool.math.ten(\n    2)"
    bench.value(script, world)
    assert [line for line, _, _ in world.sites] == [3, 6]


def test_a_place_after_wide_characters_is_counted_in_bytes(bench: Bench) -> None:
    world = World()
    bench.value('("é日", await df.tool.math.ten(1))', world)
    assert world.sites == [(1, 16, 0)]


@pytest.mark.parametrize(
    "script",
    [
        "modules = df.db.app.modules\nawait modules.get('a')",
        "get = df.db.app.modules.get\nawait get('a')",
        "async def fetch(collection):\n    return await collection.get('a')\nawait fetch(df.db.app.modules)",
        "await getattr(df.db, 'app').modules.get('a')",
        "await df.db.app.modules.get(id='a')",
        "await df.db.app.modules.get(**{'id': 'a'})",
        "await df.db.app.modules.get(*['a'])",
    ],
)
def test_operations_are_reached_in_every_ordinary_way(bench: Bench, script: str) -> None:
    world = World()
    assert bench.value(script, world) == {"id": "a", "page": {"deep": 1}}
    assert world.paths == ["db.app.modules.get"]
    assert dict(world.calls[0].arguments) == {"id": "a"}
    assert world.calls[0].line == 1 + script.count("\n") - script.count("\nawait fetch")


@pytest.mark.parametrize(
    "script",
    [
        "await df.tool.math.ten(1, 2)",
        "await df.tool.math.ten(y=1)",
        "await df.tool.math.ten(1, x=2)",
        "await df.db.app.modules.page({'path': 'a'})",
    ],
)
def test_wrong_arguments_are_type_errors_and_no_calls(bench: Bench, script: str) -> None:
    world = World()
    assert _failed(bench.run(script, world)) == ("script-error", "TypeError")
    assert world.calls == []


def test_an_unknown_name_is_an_attribute_error(bench: Bench) -> None:
    outcome = bench.run("x = 1\nawait df.tool.math.tenn(1)")
    assert _failed(outcome) == ("script-error", "AttributeError")
    assert outcome.error is not None
    assert outcome.error.line == 2
    assert "tenn" in outcome.error.message


# ---- order ----


def test_gathered_calls_start_in_order_and_overlap(bench: Bench) -> None:
    world = World()
    last_started = asyncio.Event()

    async def meet(call: ScriptCall) -> None:
        if call.arguments["x"] == 3:
            last_started.set()
        await last_started.wait()

    world.on_call = meet
    script = "import asyncio\nawait asyncio.gather(*[df.tool.math.ten(n) for n in range(4)])"
    assert bench.value(script, world) == [0, 10, 20, 30]
    assert [call.arguments["x"] for call in world.calls] == [0, 1, 2, 3]


def test_a_script_goes_on_in_the_order_in_which_calls_end(bench: Bench) -> None:
    world = World()
    ended = {n: asyncio.Event() for n in range(4)}

    async def backwards(call: ScriptCall) -> None:
        n = call.arguments["x"]
        if n in ended and n < 3 and call.line == 3:
            await ended[n + 1].wait()
        if call.line == 3:
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, ended[n].set)

    world.on_call = backwards
    script = (
        "import asyncio\nasync def step(n):\n    await df.tool.math.ten(n)\n"
        "    return await df.tool.math.ten(n + 100)\n"
        "await asyncio.gather(*[step(n) for n in range(4)])"
    )
    assert bench.value(script, world) == [1000, 1010, 1020, 1030]
    assert [call.arguments["x"] for call in world.calls] == [0, 1, 2, 3, 103, 102, 101, 100]


def test_calls_run_when_they_are_awaited_not_when_they_are_made(bench: Bench) -> None:
    world = World()
    script = "one = df.tool.math.ten(1)\ntwo = df.tool.math.ten(2)\nb = await two\na = await one\n[a, b]"
    assert bench.value(script, world) == [10, 20]
    assert [call.arguments["x"] for call in world.calls] == [2, 1]
    assert [line for line, _, _ in world.sites] == [2, 1]


# ---- never awaited ----


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("df.tool.math.ten(1)\n5", [1]),
        ("x = df.tool.math.ten(1)\n5", [1]),
        ("for n in range(3):\n    df.tool.math.ten(n)\n5", [2]),
        ("kept = [df.tool.math.ten(n) for n in range(2)]\nawait kept[0]\n5", [1]),
        ("df.db.app.modules.pages()\n5", [1]),
        ("def forget():\n    df.tool.math.ten(1)\nforget()\n5", [2]),
    ],
)
def test_a_call_that_is_never_awaited_never_runs_and_is_told(
    bench: Bench, script: str, lines: list[int]
) -> None:
    world = World()
    outcome = bench.run(script, world)
    assert outcome.error is None
    assert [line for _, line in outcome.unawaited] == lines
    assert len(world.calls) == script.count("await ")


def test_a_call_as_the_value_is_told_as_well(bench: Bench) -> None:
    world = World()
    outcome = bench.run("df.tool.math.ten(1)", world)
    assert outcome.error is not None
    assert outcome.error.code == "value-unsupported"
    assert outcome.unawaited == (("tool.math.ten", 1),)
    assert world.calls == []


def test_calls_left_behind_by_an_error_are_told(bench: Bench) -> None:
    outcome = bench.run("x = df.tool.math.ten(1)\n1 / 0")
    assert _failed(outcome) == ("script-error", "ZeroDivisionError")
    assert outcome.unawaited == (("tool.math.ten", 1),)


# ---- failures ----


def test_a_failed_call_is_caught_as_df_error_with_its_fields(bench: Bench) -> None:
    script = (
        "try:\n    await df.tool.math.fail('no such row', code='item-not-found')\n"
        "except df.Error as error:\n"
        "    seen = [error.code, error.message, error.hint, error.retryable, error.details, str(error)]\nseen"
    )
    assert bench.value(script) == [
        "item-not-found", "no such row", "try again", True, {"place": 7}, "item-not-found: no such row (try again)",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["df.Error", "Exception", "BaseException", "(ValueError, df.Error)"])
def test_what_catches_a_failed_call(bench: Bench, kind: str) -> None:
    script = (
        f"try:\n    await df.tool.math.fail('row 1')\nexcept {kind} as error:\n"
        "    seen = [isinstance(error, df.Error), isinstance(error, ValueError), type(error).__name__, f'{error}']\n"
        "seen"
    )
    assert bench.value(script) == [True, False, "Error", "tool-failed: row 1 (try again)"]


@pytest.mark.parametrize("kind", ["ValueError", "(KeyError, RuntimeError)", "LookupError", "OSError"])
def test_what_does_not_catch_a_failed_call(bench: Bench, kind: str) -> None:
    outcome = bench.run(f"try:\n    await df.tool.math.fail('x')\nexcept {kind}:\n    pass")
    assert _failed(outcome) == ("tool-failed", "df.Error")


def test_the_error_of_the_script_is_told_with_place_and_fields(bench: Bench) -> None:
    outcome = bench.run(
        "async def ask():\n    await df.tool.math.fail('broken', code='item-not-found')\n\nawait ask()"
    )
    error = outcome.error
    assert error is not None
    assert outcome.reason == "error"
    assert (error.code, error.type, error.message, error.hint) == (
        "item-not-found",
        "df.Error",
        "broken",
        "try again",
    )
    assert (error.line, dict(error.details)) == (2, {"place": 7})
    assert "line 4, in <module>" in error.traceback
    assert "line 2, in ask" in error.traceback


def test_a_failure_of_one_gathered_call_reaches_the_script(bench: Bench) -> None:
    script = (
        "import asyncio\ntry:\n    await asyncio.gather(df.tool.math.ten(1), df.tool.math.fail('second'))\n"
        "except df.Error as error:\n    seen = error.message\nseen"
    )
    assert bench.value(script) == "second"


def test_several_failures_keep_their_own_fields(bench: Bench) -> None:
    script = (
        "seen = []\nfor code in ['item-not-found', 'tool-failed']:\n    try:\n"
        "        await df.tool.math.fail('same words', code=code)\n    except df.Error as error:\n"
        "        seen.append([error.code, error.message])\nseen"
    )
    assert bench.value(script) == [["item-not-found", "same words"], ["tool-failed", "same words"]]


def test_an_exception_of_the_host_ends_the_run_and_is_not_the_scripts(bench: Bench) -> None:
    async def broken(_: ScriptCall) -> None:
        raise LookupError("the store is gone")

    world = World(on_call=broken)
    script = "try:\n    await df.tool.math.ten(1)\nexcept BaseException:\n    pass\nawait df.tool.math.ten(2)"
    with pytest.raises(LookupError, match="the store is gone"):
        bench.run(script, world)
    assert len(world.calls) == 1
    assert bench.value("1 + 1") == 2


# ---- errors of the script ----


@pytest.mark.parametrize(
    ("script", "kind", "line", "column"),
    [
        ("1 / 0", "ZeroDivisionError", 1, 0),
        ("x = 1\n\nif x:\n    y = [1][5]", "IndexError", 4, 8),
        ("def f(d):\n    return d['k']\n\n\nf({})", "KeyError", 2, 11),
        ("unknown_name + 1", "NameError", 1, 0),
        ("'a' + 1", "TypeError", 1, 0),
        ("(1 + 'a') < 2", "TypeError", 1, 1),
        ("[1, (2)[0]]", "TypeError", 1, 4),
        ("raise ValueError('chosen')", "ValueError", 1, 0),
        ("é = 'é'; int('é')", "ValueError", 1, 11),
        ("x = (\n    1\n    + int('no')\n)", "ValueError", 3, 6),
        ("assert 1 == 2, 'unequal'", "AssertionError", 1, None),
    ],
)
def test_errors_have_type_and_place(
    bench: Bench, script: str, kind: str, line: int, column: int | None
) -> None:
    outcome = bench.run(script)
    error = outcome.error
    assert error is not None
    assert (outcome.reason, error.code, error.type, error.line) == ("error", "script-error", kind, line)
    if column is not None:
        assert error.column == column
    assert kind in error.traceback


@pytest.mark.parametrize(
    ("script", "line"),
    [("x = = 1", 1), ("x = 1\nbreak", 2), ("def f(:\n    pass", 1), ("x = 'open", 1), ("\x00", None)],
)
def test_what_is_not_python_is_a_syntax_error_and_nothing_runs(
    bench: Bench, script: str, line: int | None
) -> None:
    world = World()
    outcome = bench.run("await df.tool.math.ten(1)\n" + script, world)
    assert outcome.error is not None
    assert outcome.error.code == "script-syntax"
    if line is not None:
        assert outcome.error.line == line + 1
    assert world.calls == []


def test_prints_are_kept_in_order_with_an_error(bench: Bench) -> None:
    outcome = bench.run(
        "import sys\nprint('one', 1)\nprint('two', file=sys.stderr)\nprint('three', end='')\n1 / 0"
    )
    assert outcome.stdout == "one 1\ntwo\nthree"
    assert outcome.stdout_cut == 0


def test_frames_of_the_host_are_never_shown(bench: Bench) -> None:
    outcome = bench.run("await df.tool.math.fail('x')")
    assert outcome.error is not None
    for hidden in ("affidavit", "bridge", "prelude", "python-input", ".py"):
        assert hidden not in outcome.error.traceback


# ---- what df answers at once ----


def test_answers_at_once_work_with_and_without_await(bench: Bench) -> None:
    world = World()
    script = (
        "await df.tool.math.ten(1)\nnow = df.calls()\nawaited = await df.calls()\n"
        "[now, awaited, [call['operation'] for call in df.calls()]]"
    )
    first, second, third = bench.value(script, world)
    assert first == [{"operation": "tool.math.ten"}]
    assert second == [*first, {"operation": "calls"}]
    assert third == ["tool.math.ten", "calls", "calls"]
