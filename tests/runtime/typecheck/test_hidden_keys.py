"""Row types that no annotation tells: a misspelt key is found all the same, and nothing else is.

In `corpus/hidden/`: scripts between lines of three dashes. Those of `behind.txt` read `"pth"` of a row where `"path"`
is meant, at the mark `§`; those of `harmless.txt` look much like them and are right.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.typecheck.conftest import Check


def scripts(name: str) -> list[str]:
    text = (Path(__file__).parent / "corpus" / f"{name}.txt").read_text("utf-8")
    return text.strip("\n").split("\n---\n")


BEHIND = scripts("hidden/behind")
HARMLESS = scripts("hidden/harmless")


@pytest.mark.parametrize("marked", BEHIND, ids=range(len(BEHIND)))
def test_a_misspelt_key_is_refused_wherever_the_row_comes_from(check: Check, marked: str) -> None:
    before, _, after = marked.partition("§")
    verdict = check(before + after)
    assert verdict.status == "rejected", verdict
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"), "path")
    assert [(one.line, one.column, one.suggestion) for one in verdict.blocking] == [place]


@pytest.mark.parametrize("marked", BEHIND, ids=range(len(BEHIND)))
def test_the_same_with_the_right_key_passes(check: Check, marked: str) -> None:
    verdict = check(marked.replace("§", "").replace('"pth"', '"path"').replace("'pth'", "'path'"))
    assert verdict.blocking == ()


@pytest.mark.parametrize("source", HARMLESS, ids=range(len(HARMLESS)))
def test_what_may_be_right_passes(check: Check, source: str) -> None:
    assert check(source).blocking == ()
