"""What an agent reads of a settlement: bounded, with what was cut and what reaches the whole."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from affidavit import Workspace
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.rendering.settlement import settlement
from affidavit.runtime.session import Session


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        yield await opened.session("s1")


async def test_a_long_result_shows_its_ends_and_how_to_reach_the_rest(session: Session) -> None:
    run = await session.run(
        'rows = [{"id": i, "name": "row %04d" % i, "note": "n" * 40} for i in range(800)]\n'
        'print(rows)\n{"total": len(rows), "rows": rows, "last": "END-MARK"}'
    )
    text = settlement(run)
    assert len(text) < 16_000
    assert text.startswith("run 1 succeeded in ")
    assert '"total": 800' in text
    assert "END-MARK" in text
    assert "class Run1RowsItem(TypedDict)" in text
    assert 'cut: 797 of 800 items of (await results[0].load())["rows"]' in text
    assert re.search(r"\.\.\. \([\d,]+ characters left out here\) \.\.\.", text)
    assert "row 0799" in text  # the end of what it printed
    recipe = re.search(r"of (\(await results.*\)\[\"rows\"\])", text)
    assert recipe is not None
    assert (await session.run(f"{recipe[1]}[799]['name']")).data == "row 0799"


async def test_a_short_result_is_whole(session: Session) -> None:
    text = settlement(await session.run("{'n': [1, 2], 'when': None}"))
    assert '{"n": [1, 2], "when": null}' in text
    assert "cut:" not in text
    assert "whole: results[0].data in the next script, results.by_run(1) in any later one" in text


async def test_the_recipe_goes_by_what_the_row_is(session: Session) -> None:
    """At the bound itself: what the text says is what the next script can do."""
    for size, kind in ((INLINE_BYTES, "data"), (INLINE_BYTES + 1, "large")):
        run = await session.run(f"'x' * {size - 2}")
        assert session.results()[0].kind == kind
        whole = re.search(r"whole: (.*) in the next script", settlement(run))
        assert whole is not None
        assert (await session.run(f"len({whole[1]})")).data == size - 2


async def test_failures_rejections_and_nothing(session: Session) -> None:
    failed = settlement(await session.run("x = 1\n1/0"))
    assert "error at line 2: [script-error] ZeroDivisionError: division by zero" in failed
    assert "results[0].error" in failed
    assert (await session.run("results[0].error['line']")).data == 2
    rejected = settlement(await session.run("x = nme"))
    assert "run 3 rejected" in rejected
    assert "error at 1:5" in rejected
    assert "nothing ran" in rejected
    assert "returned nothing" in settlement(await session.run("for i in []:\n    pass"))


async def test_an_unchecked_run_says_so(session: Session) -> None:
    await session.set_preamble(key="a", code="A = 1")
    source = "df.session.set_preamble(key='b', code='import random\\nB = 1')\nA"
    assert (await session.run(source)).check == "clean"
    assert "not type-checked" not in settlement(await session.run("A + B"))
