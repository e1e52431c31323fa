"""What a citation may state, and when it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.evidence.citations import (
    cited_confidence,
    cited_coverage,
    mismatch,
    read_citation,
)
from affidavit.evidence.pointer import resolve
from affidavit.evidence.record import Coverage, JsonValue, Record
from affidavit.evidence.values import encode

from .records import observation
from .strategies import VALUES

ID = "ev1_" + "ab" * 32
RESULT: JsonValue = encode(
    {
        "rows": [
            {"kind": "external", "name": "electron", "sites": 2, "score": 1.0},
            {"kind": "external", "name": "lodash", "sites": 1, "score": 0.5},
            {"kind": "internal", "name": "été \ud800 x", "sites": 1, "score": 1.0},
        ],
        "page": {"total": 3, "exhausted": True},
        "a/b": {"~": "tilde"},
        "": "empty key",
        "big": 2**70,
        "raw": b"hello world",
    }
)

HOLD: list[Any] = [
    ID,
    f"{ID}#",
    f"{ID}#/rows",
    f"{ID}#/rows/2",
    f"{ID}#/a~1b/~0",
    f"{ID}#/",
    {"evidence": f"{ID}#/rows/0/sites", "equals": 2},
    {"evidence": f"{ID}#/rows/0/score", "equals": {"$float": "1.0"}},
    {"evidence": f"{ID}#/big", "equals": {"$int": str(2**70)}},
    {"evidence": f"{ID}#/page", "equals": {"exhausted": True, "total": 3}},
    {"evidence": f"{ID}#/rows", "count": 3},
    {"evidence": f"{ID}#/page", "count": 2},
    {"evidence": ID, "count": 6},
    {"evidence": f"{ID}#/rows", "count": 2, "where": {"kind": "external"}},
    {"evidence": f"{ID}#/rows", "count": 1, "where": {"kind": "external", "sites": 1}},
    {"evidence": f"{ID}#/rows", "count": 0, "where": {"kind": "nothing"}},
    {"evidence": f"{ID}#/rows", "count": 0, "where": {"nothing": None}},
    {"evidence": f"{ID}#/rows", "count": 3, "where": {}},
    {"evidence": ID, "quote": "lodash"},
    {"evidence": f"{ID}#/rows/2/name", "quote": "été"},
    {"evidence": f"{ID}#/rows/2", "quote": encode("\ud800 x")},
    {"evidence": f"{ID}#/rows/0/sites", "equals": 2, "quote": "x"},
]
FAIL: list[Any] = [
    f"{ID}#/rows/3",
    f"{ID}#/rows/-1",
    f"{ID}#/rows/00",
    f"{ID}#/rows/-",
    f"{ID}#/rows/0/sites/0",
    f"{ID}#/nothing",
    f"{ID}#/rows/1e0",
    f"{ID}#/rows/" + "9" * 5000,
    {"evidence": f"{ID}#/rows/0/sites", "equals": 3},
    {"evidence": f"{ID}#/rows/0/sites", "equals": {"$float": "2.0"}},
    {"evidence": f"{ID}#/page/exhausted", "equals": 1},
    {"evidence": f"{ID}#/page", "equals": {"exhausted": True}},
    {"evidence": f"{ID}#/rows", "count": 2},
    {"evidence": f"{ID}#/rows/0/sites", "count": 2},
    {"evidence": f"{ID}#/rows/0/name", "count": 8},
    {"evidence": f"{ID}#/rows", "count": 2, "where": {"kind": "internal"}},
    {"evidence": f"{ID}#/page", "count": 2, "where": {}},
    {"evidence": ID, "quote": "Lodash"},
    {"evidence": ID, "quote": "kind"},
    {"evidence": f"{ID}#/rows/0", "quote": "lodash"},
    {"evidence": ID, "quote": "aGVsbG8"},
    {"evidence": f"{ID}#/rows", "count": 3, "quote": "nothing"},
]
MALFORMED: list[Any] = [
    None,
    7,
    "",
    "ev1_",
    ID.upper(),
    ID + "0",
    f" {ID}",
    f"{ID}#rows",
    f"{ID}#/a~2",
    f"{ID}#/a~",
    f"{ID}\n",
    {},
    {"evidence": ID},
    {"evidence": None, "count": 1},
    {"count": 1},
    {"evidence": ID, "equal": 1},
    {"evidence": ID, "count": -1},
    {"evidence": ID, "count": True},
    {"evidence": ID, "count": {"$float": "2.0"}},
    {"evidence": ID, "where": {"a": 1}},
    {"evidence": ID, "count": 1, "where": ["a"]},
    {"evidence": ID, "quote": ""},
    {"evidence": ID, "quote": 3},
    {"evidence": ID, "quote": {"$text": "?"}},
]


@pytest.mark.parametrize("json", HOLD[:-1], ids=repr)
def test_true_citations_hold(json: Any) -> None:
    assert mismatch(read_citation(json), RESULT) == ""


@pytest.mark.parametrize("json", [*FAIL, HOLD[-1]], ids=lambda json: repr(json)[:80])
def test_false_citations_are_told_with_their_place(json: Any) -> None:
    problem = mismatch(read_citation(json), RESULT)
    assert ID in problem
    assert len(problem) < 500


@pytest.mark.parametrize("json", MALFORMED, ids=repr)
def test_malformed_citations_are_refused(json: Any) -> None:
    with pytest.raises(UsageError) as caught:
        read_citation(json)
    assert caught.value.code == "answer-invalid"
    assert caught.value.hint


@settings(deadline=None)
@given(VALUES)
def test_whatever_stands_in_a_record_equals_itself_and_nothing_else(value: Any) -> None:
    result = encode({"it": value, "other": [value]})
    assert mismatch(read_citation({"evidence": f"{ID}#/it", "equals": result["it"]}), result) == ""
    assert mismatch(read_citation({"evidence": f"{ID}#/it", "equals": [result["it"]]}), result) != ""


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=()), min_size=1), st.text(), st.text())
def test_a_quotation_is_found_wherever_it_stands(quote: str, before: str, after: str) -> None:
    result = encode({"rows": [{"text": before + quote + after}]})
    citation = read_citation({"evidence": ID, "quote": encode(quote)})
    assert mismatch(citation, result) == ""


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_key_can_be_pointed_at(key: str, other: str) -> None:
    escaped = key.replace("~", "~0").replace("/", "~1")
    assert resolve(f"/{escaped}/0", {key: [1], other + key + "x": [2]}) == 1


def test_coverage_is_the_weakest_and_counts_records() -> None:
    complete = observation(coverage=Coverage(state="complete", selection="", examined=1))
    partial = observation(coverage=Coverage(state="partial", selection="", examined=1, omitted=1))
    silent = observation()
    expected: list[tuple[list[Record], tuple[str, int, int]]] = [
        ([], ("unknown", 0, 0)),
        ([silent], ("unknown", 1, 0)),
        ([complete, silent], ("complete", 2, 0)),
        ([complete, partial], ("partial", 2, 1)),
    ]
    for records, said in expected:
        found = cited_coverage(records)
        assert (found.state, found.examined, found.unknown) == said
    assert cited_confidence([silent]) == "derived"
    assert cited_confidence([silent, observation(confidence="inferred")]) == "inferred"
