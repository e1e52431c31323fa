from __future__ import annotations

import pytest

from tests.runtime.typecheck.conftest import Check
from tests.runtime.typecheck.good_scripts import GOOD


def test_there_are_many() -> None:
    assert len(set(GOOD)) == len(GOOD) >= 120


@pytest.mark.parametrize("source", GOOD, ids=range(len(GOOD)))
def test_a_correct_script_is_never_rejected(check: Check, source: str) -> None:
    verdict = check(source)
    assert verdict.status in {"clean", "advised"}, verdict
    assert verdict.blocking == ()
