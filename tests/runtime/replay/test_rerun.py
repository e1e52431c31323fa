"""`results[i].rerun(...)`: an earlier script with other values, inside the script that asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

SOURCE = """
factor = 4
print("run", factor)
async def ask(n):
    return await df.tool.t.ten(n=n)
{"factor": factor, "asked": await ask(factor), "twice": twice(1)}
"""


async def test_an_earlier_script_runs_inside_this_one(bench: Bench) -> None:
    session = await bench.session()
    await session.set_preamble(key="help", code="def twice(n):\n    return 2 * n")
    first = await session.run(SOURCE)
    assert first.status == "succeeded", first.error
    asking = """
factor = "mine"
again = await results[0].rerun(factor=5)
once_more = await results.by_run(1).rerun(other=6, was={"other": 4})
[again, once_more, factor, len(df.calls())]
"""
    run = await session.run(asking)
    assert run.status == "succeeded", run.error
    wanted = [{"factor": n, "asked": 10 * n, "twice": 2} for n in (5, 6)]
    assert (run.data, run.stdout) == ([*wanted, "mine", 2], "run 5\nrun 6\n")
    assert [(call.operation, call.line) for call in run.calls] == [("tool.t.ten", 3), ("tool.t.ten", 4)]
    assert bench.made == ["ten 4", "ten 5", "ten 6"]
    [settled] = [
        event for event in bench.workspace.store.events.of_run(run.run_id) if event.kind == "run-settled"
    ]
    data: Any = settled.data
    assert [(one["run"], one["parameters"][0]["name"]) for one in data["reruns"]] == [
        (first.run_id, "factor"),
        (first.run_id, "other"),
    ]
    for replay in (await bench.replays(run)).values():
        assert (replay.divergence, replay.same_output) == (None, True)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("n = 2\nn + 1", 8),
        ("n = 2\nreturn n + 1", 8),
        ("def main(n=2):\n    return n + 1", 8),
        ("async def run(n=2):\n    return (await df.tool.t.ten(n=n)) + 1", 71),
        ("n = 2\nprint(n)", None),
        ("n = 2\n(n, {n})", [7, [7]]),
    ],
)
async def test_it_has_the_value_that_a_run_has(bench: Bench, source: str, value: Any) -> None:
    session = await bench.session()
    first = await session.run(source)
    assert first.status == "succeeded", first.error
    run = await session.run("[await results[0].rerun(n=7)]")
    assert (run.status, run.data) == ("succeeded", [value]), run.error
    assert (await bench.replays(run))["cpython"].same


async def test_what_cannot_be_varied_is_an_error_in_the_script(bench: Bench) -> None:
    session = await bench.session()
    await session.run("n = 2\nn + 1")
    await session.run("1 / 0")
    run = await session.run(
        """
found = []
for row, values in ((results[1], {"z": "x"}), (results[1], {"n": "text"}), (results[0], {"n": 1})):
    try:
        await row.rerun(**values)
    except df.Error as error:
        found.append([error.code, error.details.get("places")])
found
"""
    )
    assert run.data == [
        [
            "reuse-invalid",
            [{"line": 1, "column": 5, "literal": "2"}, {"line": 2, "column": 5, "literal": "1"}],
        ],
        ["reuse-invalid", [{"line": 1, "column": 5, "literal": "2"}]],
        ["reuse-invalid", None],
    ]
    for replay in (await bench.replays(run)).values():
        assert replay.divergence is None


async def test_its_error_is_the_asking_scripts(bench: Bench) -> None:
    session = await bench.session()
    await session.run("n = 2\n10 / n")
    run = await session.run("x = 1\nawait results[0].rerun(n=0)")
    assert run.error is not None
    assert (run.status, run.error["type"], run.error["line"]) == ("failed", "ZeroDivisionError", 2)
    assert (await bench.replays(run))["cpython"].same


async def test_a_rerun_that_is_not_awaited_is_an_error(bench: Bench) -> None:
    session = await bench.session()
    await session.run("n = 2\nn")
    run = await session.run("row = results[0]\nrow.rerun(n=3)\n1")
    assert run.status in ("failed", "rejected")
    assert run.error is not None
    assert run.error["line"] == 2
