"""Answers in a journal are checked against the records that they cite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import VerificationError
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Record
from affidavit.store import Store
from affidavit.store.journal import Report, restore, verify
from tests.evidence.bundles import answer, page
from tests.evidence.records import observation
from tests.store.journal.samples import journalled
from tests.store.samples import event
from tests.vectors.check_vectors import CHECKS, refuses

PAGE = page()
HERE = record_id(PAGE)
LARGE = observation(["x" * 1000] * 70)  # its result stands apart
TRUE: list[Any] = [
    [f"{HERE}#/rows/2"],
    [{"evidence": f"{HERE}#/rows", "count": 3}, {"evidence": HERE, "quote": "electron"}],
    [{"evidence": f"{record_id(LARGE)}#/69", "quote": "xxx"}, {"evidence": record_id(LARGE), "count": 70}],
]
FALSE: list[Any] = [
    [f"{HERE}#/rows/3"],
    [{"evidence": f"{HERE}#/rows", "count": 4}],
    [{"evidence": HERE, "quote": "Electron"}],
    [{"evidence": f"{HERE}#/rows/0/sites", "equals": 3}],
    [{"evidence": record_id(LARGE), "count": 71}],
]


def journal(root: Path, *records: Record) -> Path:
    with journalled(root) as (store, _):
        for record in records:
            store.append(event(), record=record)
    return root / "j" / "s1.none.jsonl"


def independent(path: Path) -> bool:
    return not refuses(CHECKS["check_journal"], [path.read_bytes()])


def verified(path: Path) -> Report:
    """The report, which says what the verifier that shares nothing with it says."""
    report = verify(path)
    assert (report.status == "holds") == independent(path), report.problems
    return report


@pytest.mark.parametrize("cited", TRUE)
def test_a_true_one_holds(tmp_path: Path, cited: Any) -> None:
    report = verified(journal(tmp_path, PAGE, LARGE, answer(cited, [PAGE, LARGE])))
    assert (report.status, report.unchecked) == ("holds", ())


@pytest.mark.parametrize("cited", FALSE)
def test_a_false_one_is_named_with_its_line(tmp_path: Path, cited: Any) -> None:
    lie = answer(cited, [PAGE, LARGE])
    report = verified(journal(tmp_path, PAGE, LARGE, lie, observation("later")))
    [problem] = report.problems
    assert (report.status, problem.kind, report.records) == ("damaged", "false-answer", 4)
    assert record_id(lie) in problem.message
    with (tmp_path / "j" / "s1.none.jsonl").open("rb") as file:
        file.seek(problem.place)
        assert record_id(lie).encode() in file.read(problem.length)


def test_more_than_its_records_allow(tmp_path: Path) -> None:
    assert PAGE.coverage is not None
    partial = replace(PAGE, coverage=replace(PAGE.coverage, state="partial"))
    honest = answer([record_id(partial)], [partial])
    assert honest.coverage is not None
    lie = replace(honest, coverage=replace(honest.coverage, state="complete"))
    assert verified(journal(tmp_path / "a", partial, honest)).status == "holds"
    [problem] = verified(journal(tmp_path / "b", partial, lie)).problems
    assert "wider" in problem.message


def test_a_torn_end_hides_no_lie(tmp_path: Path) -> None:
    path = journal(tmp_path, PAGE, answer(FALSE[0], [PAGE]))
    with path.open("ab") as file:
        file.write(b'{"n":5,"prev":"')
    report = verified(path)
    assert (report.status, [it.kind for it in report.problems]) == ("damaged", ["torn-tail", "false-answer"])
    with Store.open(tmp_path / "other") as store, pytest.raises(VerificationError, match="rows/3"):
        restore(path, store)


def test_one_whose_records_are_elsewhere_is_named(tmp_path: Path) -> None:
    alone = answer(TRUE[0], [PAGE])
    report = verified(journal(tmp_path, alone))
    assert (report.status, report.unchecked) == ("holds", (record_id(alone),))
    assert any("not checked" in note and record_id(alone) in note for note in report.notes())
