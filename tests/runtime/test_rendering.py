"""What an agent reads of a settlement: bounded, with what was cut and what reaches the whole."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit import Workspace
from affidavit.evidence.record import JsonValue
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.rendering import preview, settlement
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
    assert "... (797 more items)" in text
    assert 'cut: 797 of 800 items of (await results[0].load())["rows"]' in text
    assert re.search(r"\.\.\. \([\d,]+ characters left out here\) \.\.\.", text)
    assert "row 0799" in text  # the end of what it printed
    recipe = re.search(r"of (\(await results.*\)\[\"rows\"\])", text)
    assert recipe is not None
    assert (await session.run(f"{recipe[1]}[799]['name']")).data == "row 0799"


async def test_a_short_result_is_whole(session: Session) -> None:
    text = settlement(await session.run("{'n': [1, 2], 'when': None}"))
    assert '"n": [\n    1,\n    2\n  ]' in text
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
    assert "error at line 2: [script-error] division by zero" in failed
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


def _plain(key: str) -> bool:
    return not key.startswith("$")


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=2000))
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=40), st.dictionaries(st.text(max_size=30).filter(_plain), inner, max_size=80)
    ),
    max_leaves=60,
)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_a_preview_is_bounded_and_says_every_cut(value: JsonValue) -> None:
    found = preview(value)
    assert len(found.text.encode()) <= 8_000
    if found.cuts:
        assert "more" in found.text or "(a " in found.text or "cut here" in found.text
    else:
        assert json.loads(found.text) == value


def test_wide_and_deep_values_stay_within_bounds() -> None:
    wide: JsonValue = {f"key{number}": "v" * 1000 for number in range(5000)}
    found = preview(wide)
    assert len(found.text.encode()) <= 8_000
    assert ("", "4,988 of 5,000 keys") in found.cuts or any("keys" in missing for _, missing in found.cuts)
    deep: JsonValue = 1
    for _ in range(50):
        deep = {"a": deep}
    assert preview(deep).cuts == (('["a"]' * 5, "1 keys"),)
