from __future__ import annotations

import pytest

from tests.runtime.typecheck.bad_scripts import BAD
from tests.runtime.typecheck.conftest import Check


def _place(marked: str) -> tuple[str, int, int]:
    before, _, after = marked.partition("§")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def test_there_are_many() -> None:
    assert len({source for source, _, _ in BAD}) == len(BAD) >= 40


@pytest.mark.parametrize(("marked", "rule", "suggestion"), BAD, ids=range(len(BAD)))
def test_a_wrong_script_is_rejected_with_place_and_suggestion(
    check: Check, marked: str, rule: str, suggestion: str | None
) -> None:
    source, line, column = _place(marked)
    verdict = check(source)
    assert verdict.status == "rejected", verdict
    first = verdict.blocking[0]
    assert (first.line, first.column, first.rule, first.suggestion) == (line, column, rule, suggestion), first
    assert first.message
    assert "\n" not in first.message
