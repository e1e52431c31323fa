"""What a script's results hold comes with it where the script names them, and is fetched where it does not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from affidavit import Workspace
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.memory import results
from affidavit.runtime.memory.mentions import mentions
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.program import ScriptCall
from affidavit.runtime.session import Session

from .test_results import LARGE, boom, error_of, rejected, value


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        opened.use(functions_namespace("t", [boom]))
        yield opened


@pytest.fixture
async def session(workspace: Workspace) -> Session:
    return await workspace.session("s1")


async def fetched(session: Session, source: str) -> tuple[Any, int]:
    """What a script returns, and how often it had to ask for what a row holds."""
    asked: list[ScriptCall] = []
    run = await session.run(source, on_call=asked.append)
    assert run.status == "succeeded", (run.error, run.diagnostics)
    return run.data, sum(call.path == "results" for call in asked)


@pytest.mark.parametrize(
    ("source", "expected", "asked"),
    [
        ("[results[1].data['n'], results[-2].data['n']]", [2, 2], 0),
        ("results.last.data['n']", 2, 0),
        ("results[0].error['code']", "tool-failed", 0),
        ("results.by_run(number=2).data['n']", 2, 0),
        ("(await results[2].load())[3]['n']", 3, 0),
        ("sum(row.data['n'] for row in results if row.kind == 'data')", 2, 0),
        ("[row.data['n'] for row in results[1:2]]", [2], 0),
        ("i = 1\nresults[i].data['n']", 2, 0),
        ("n = 2\nresults.by_run(n).data['n']", 2, 1),
        (
            "def late(rows):\n    return [row.kind for row in rows]\nlate(results)",
            ["error", "data", "large"],
            0,
        ),
        ("getattr(results[1], 'da' + 'ta')['n']", 2, 0),
        ("f = [getattr(row, 'data') for row in results if row.kind == 'data']\nf[0]['n']", 2, 1),
    ],
)
async def test_what_a_script_names_comes_with_it(
    session: Session, source: str, expected: object, asked: int
) -> None:
    """Nothing of it depends on that: what does not come along is fetched when it is asked for."""
    await session.run(LARGE)
    await session.run("{'n': 2}")
    await session.run("await df.tool.t.boom(text='late')")
    assert await fetched(session, source) == (expected, asked)


async def test_every_run_gets_values_of_its_own(session: Session) -> None:
    await session.run("{'n': [1.0, {'$float': '2.0'}]}")
    edit = "v = results.by_run(1).data\nv['n'].append(3)\nresults.by_run(1).data['n']"
    for _ in range(2):
        assert await fetched(session, edit) == ([1.0, {"$float": "2.0"}, 3], 0)
    assert await value(session, "repr(results.by_run(1).data['n'])") == "[1.0, {'$float': '2.0'}]"


async def test_more_than_is_sent_along_is_fetched(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "SENT_BYTES", 50_000)
    await session.run(LARGE)
    await session.run("{'n': 1}")
    await session.run(LARGE)
    source = "[(await results[0].load())[5]['n'], results[1].data['n'], (await results[2].load())[6]['n']]"
    assert await fetched(session, source) == ([5, 1, 6], 1)


async def test_a_damaged_value_stops_only_the_script_that_reads_it(
    session: Session, workspace: Workspace
) -> None:
    await session.run(LARGE)
    workspace.store.blobs.path(session.results()[0].blob).write_bytes(b"[]")
    again = await workspace.session("s1")
    assert await value(again, "results[0].size if True else (await results[0].load())") > INLINE_BYTES
    run = await again.run("len(await results[1].load())")
    assert (run.status, error_of(run)["code"]) == ("failed", "blob-damaged")


async def test_types_of_longer_values_are_kept_with_them(session: Session, workspace: Workspace) -> None:
    await session.run("[{'n': i, 'note': 'n' * 20} for i in range(100)]")
    [settled] = workspace.store.events.of_kinds("s1", ("run-settled",))
    assert cast("dict[str, Any]", settled.data)["type"]["annotation"].startswith("list[")
    again = await workspace.session("s1")
    assert (await rejected(again, "results[0].data[0]['nott']"))["suggestion"] == "note"


@pytest.mark.parametrize(
    ("source", "every"),
    [
        ("for row in results:\n    print(row.data)", True),
        ("x = results\nx[0].data", True),
        ("results[i].data", True),
        ("[row.number for row in results]", False),
        ("len(results) and results[0].data", False),
        ("results.last.data", False),
    ],
)
def test_rows_that_a_script_reaches_otherwise(source: str, every: bool) -> None:
    found = mentions(source)
    assert found is not None
    assert found.every is every
