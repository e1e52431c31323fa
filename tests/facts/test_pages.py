"""What `where` selects and what a page is, one promise at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.evidence.record import Limitation
from affidavit.facts.collection import (
    MAX_SHOWN_LIMITATIONS,
    Collection,
)

from .samples import HOSTILE, LIMITATIONS, PARTIAL, THINGS, Row, collection, numbered, write

ROWS: list[Row] = [
    {"id": "a", "path": "main.js", "kind": "script", "size": 1, "body": None},
    {"id": "b", "path": "main.js", "kind": "asset", "size": 1, "body": {"deep": [1, {"x": 2}]}},
    {"id": "c", "path": "", "kind": "script", "size": None, "body": 1.0},
    {"id": "d", "path": None, "kind": "script", "body": -0.0},
    {"id": "e", "path": "lib.js", "kind": "json-module", "size": 2, "body": 2**70},
    {"id": "f", "path": None, "kind": "asset", "size": 2, "body": b"\x00\xff"},
]
ITEMS: dict[str, Row] = {"a": {**ROWS[0], "detail": "x" * 100}, "b": dict(ROWS[1])}


@pytest.fixture
def things(tmp_path: Path) -> Iterator[Collection]:
    with write(tmp_path / "f", ROWS, items=ITEMS) as facts:
        yield collection(facts)


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Collection]:
    with write(tmp_path / "f", numbered(300)) as facts:
        yield collection(facts)


def ids(answer: Any) -> str:
    return "".join(row["id"] for row in answer.value["rows"])


def refused(call: Any, *arguments: Any, **named: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        call(*arguments, **named)
    assert caught.value.hint
    return caught.value


class TestWhere:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (None, "abcdef"),
            ({}, "abcdef"),
            ({"path": "main.js"}, "ab"),
            ({"path": ""}, "c"),
            ({"path": None}, "df"),
            ({"path": ["", None]}, "cdf"),
            ({"path": ["main.js", "main.js"]}, "ab"),
            ({"path": []}, ""),
            ({"path": "main.js", "kind": "asset"}, "b"),
            ({"path": ["main.js", None], "kind": ["asset", "script"]}, "abdf"),
            ({"size": None}, "cd"),
            ({"size": [2, None]}, "cdef"),
            ({"kind": None}, ""),
            ({"id": ["f", "a"]}, "af"),
            ({"path": "MAIN.JS"}, ""),
            ({"path": "main%"}, ""),
        ],
    )
    def test_selects(self, things: Collection, where: Any, expected: str) -> None:
        page = things.page(where)
        assert ids(page) == expected
        assert page.value["page"]["total"] == things.count(where).value["count"] == len(expected)

    def test_equal_questions_have_equal_parameters(self, things: Collection) -> None:
        forms: list[Any] = [
            {"path": ["lib.js", None, ""], "kind": "asset"},
            {"kind": ["asset"], "path": [None, "", "lib.js", ""]},
            {"kind": ["asset", "asset"], "path": ("", "lib.js", None)},
        ]
        answers = [things.page(where) for where in forms]
        assert answers[0].parameters["where"] == {"kind": "asset", "path": [None, "", "lib.js"]}
        assert all(one == answers[0] for one in answers)
        assert all(things.count(where) == things.count(forms[0]) for where in forms)

    def test_omitted_and_empty_are_one_question(self, things: Collection) -> None:
        assert things.page() == things.page({}) == things.page(None, offset=0, limit=64)

    def test_an_unknown_field_is_an_error_with_a_suggestion(self, things: Collection) -> None:
        error = refused(things.page, {"pth": "main.js"})
        assert (error.code, error.details) == ("selector-invalid", {"path": "$.pth"})
        assert "did you mean 'path'" in error.hint

    @pytest.mark.parametrize("value", [3, True, 1.5, b"x", {"a": 1}, [["a"]], ["a", 3], object()])
    def test_a_value_of_another_type_is_an_error(self, things: Collection, value: Any) -> None:
        assert refused(things.page, {"path": value}).code == "selector-invalid"

    def test_booleans_are_no_integers(self, things: Collection) -> None:
        assert refused(things.page, {"size": True}).code == "selector-invalid"
        assert refused(things.page, {"size": 1.0}).code == "selector-invalid"

    def test_a_value_outside_the_vocabulary_is_an_error_with_a_suggestion(self, things: Collection) -> None:
        error = refused(things.page, {"kind": ["asset", "json-modul"]})
        assert (error.code, error.details) == ("selector-invalid", {"path": "$.kind[1]"})
        assert "did you mean 'json-module'" in error.hint

    @pytest.mark.parametrize("where", ["main.js", ["path"], 3, True])
    def test_where_is_a_mapping(self, things: Collection, where: Any) -> None:
        assert refused(things.page, where).code == "selector-invalid"
        assert refused(things.count, where).code == "selector-invalid"

    def test_keys_of_any_kind_are_refused_not_crashed_on(self, things: Collection) -> None:
        for key in [*HOSTILE, 3, None, (1, 2), b"path"]:
            assert refused(things.page, {key: "x"}).code == "selector-invalid"

    def test_too_many_alternatives_are_refused(self, things: Collection) -> None:
        assert ids(things.page({"path": ["x"] * 999 + ["main.js"]})) == "ab"
        assert refused(things.page, {"path": ["x"] * 1001}).code == "selector-invalid"


class TestPage:
    def test_says_what_it_rests_on(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", ROWS, coverage=PARTIAL, limitations=LIMITATIONS) as facts:
            page = collection(facts).page(limit=1)
        assert page.value["source"] == {
            "evidence_id": "ev1_" + "0" * 64,
            "artifact": "sha256:" + "a" * 64,
            "format": "asar",
        }
        assert page.value["source_coverage"] == {
            "state": "partial",
            "selection": "all files",
            "examined": 3,
            "omitted": 0,
            "unknown": 1,
            "bounds": {"file_bytes": 10},
        }
        assert page.outside["limitations_omitted"] == 0
        (limitation,) = page.outside["limitations"]
        assert (limitation["code"], limitation["message"]) == ("parse-error", "range 3-4")

    def test_exhausted_rows_say_nothing_of_the_source(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", ROWS, coverage=PARTIAL) as facts:
            page = collection(facts).page()
        assert page.value["page"]["exhausted"] is True
        assert page.value["source_coverage"]["state"] == "partial"

    def test_shows_some_limitations_and_counts_the_rest(self, tmp_path: Path) -> None:
        limitations = tuple(Limitation(code="parse-error", place=f"{at}.js") for at in range(250))
        with write(tmp_path / "f", ROWS, limitations=limitations) as facts:
            page = collection(facts).page()
        assert [one["place"] for one in page.outside["limitations"]] == [
            f"{at}.js" for at in range(MAX_SHOWN_LIMITATIONS)
        ]
        assert page.outside["limitations_omitted"] == 250 - MAX_SHOWN_LIMITATIONS

    def test_what_may_not_be_hashed_is_outside(self, many: Collection) -> None:
        page = many.page()
        assert set(page.value) == {"rows", "source", "source_coverage", "page"}
        assert set(page.value["page"]) == {"offset", "returned", "total", "exhausted", "shortened"}
        assert set(page.outside) == {"page.next_cursor", "limitations", "limitations_omitted"}

    def test_is_64_rows_unless_asked_otherwise(self, many: Collection) -> None:
        assert many.page().value["page"]["returned"] == 64
        assert many.page(limit=1).value["page"]["returned"] == 1
        assert many.page(limit=1000).value["page"]["returned"] == 300

    @pytest.mark.parametrize("limit", [0, -1, 1001, True, 1.0, "64", None, 10**30])
    def test_limit_has_bounds(self, many: Collection, limit: Any) -> None:
        assert refused(many.page, limit=limit).code == "limit-invalid"

    @pytest.mark.parametrize("offset", [-1, True, 1.0, "0", [], ""])
    def test_offset_has_a_bound(self, many: Collection, offset: Any) -> None:
        assert refused(many.page, offset=offset).code == "limit-invalid"

    @pytest.mark.parametrize("offset", [0, 5])
    def test_offset_and_cursor_exclude_each_other(self, many: Collection, offset: int) -> None:
        cursor = many.page().outside["page.next_cursor"]
        assert refused(many.page, cursor=cursor, offset=offset).code == "limit-invalid"

    @pytest.mark.parametrize("offset", [300, 301, 10**30])
    def test_past_the_end_is_empty(self, many: Collection, offset: int) -> None:
        page = many.page(offset=offset)
        assert page.value["rows"] == []
        assert page.outside["page.next_cursor"] is None
        assert page.value["page"] == {
            "offset": offset,
            "returned": 0,
            "total": 300,
            "exhausted": True,
            "shortened": False,
        }

    def test_ending_exactly_at_the_last_row_is_exhausted(self, many: Collection) -> None:
        page = many.page(offset=290, limit=10)
        assert page.value["page"]["exhausted"] is True
        assert page.outside["page.next_cursor"] is None

    def test_an_empty_collection_is_exhausted(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", []) as facts:
            empty = collection(facts)
            assert empty.page().value["page"] == {
                "offset": 0,
                "returned": 0,
                "total": 0,
                "exhausted": True,
                "shortened": False,
            }
            assert empty.count(by="path").value["groups"] == []
            assert empty.get_many(["x"]).value[0]["status"] == "failed"

    def test_cursor_and_offset_are_one_question(self, many: Collection) -> None:
        first = many.page({"kind": "script"}, limit=10)
        by_cursor = many.page({"kind": "script"}, cursor=first.outside["page.next_cursor"], limit=20)
        by_offset = many.page({"kind": "script"}, offset=10, limit=20)
        assert by_cursor == by_offset
        assert by_cursor.parameters == {"where": {"kind": "script"}, "offset": 10, "limit": 20}

    def test_limit_may_change_from_page_to_page(self, many: Collection) -> None:
        cursor = many.page(limit=3).outside["page.next_cursor"]
        assert many.page(cursor=cursor, limit=2).value["rows"][0]["id"] == "t3"

    def test_one_path_may_have_many_identities(self, many: Collection) -> None:
        assert [row["id"] for row in many.page({"path": "lib/2.js"}).value["rows"]] == ["t6", "t7", "t8"]

    def test_values_come_back_as_they_went_in(self, things: Collection) -> None:
        bodies = {row["id"]: row["body"] for row in things.page().value["rows"]}
        assert type(bodies["c"]) is float
        assert str(bodies["d"]) == "-0.0"
        assert (bodies["e"], bodies["f"]) == (2**70, b"\x00\xff")

    def test_an_absent_field_stays_absent(self, things: Collection) -> None:
        (row,) = things.page({"id": "d"}).value["rows"]
        assert "size" not in row


class TestCursors:
    def test_of_another_selector_is_a_mismatch(self, many: Collection) -> None:
        cursor = many.page({"kind": "script"}, limit=1).outside["page.next_cursor"]
        for where in [None, {"kind": ["script", "asset"]}, {"kind": "script", "size": None}]:
            assert refused(many.page, where, cursor=cursor).code == "cursor-mismatch"

    def test_of_an_equal_selector_fits(self, many: Collection) -> None:
        cursor = many.page({"kind": "script"}, limit=1).outside["page.next_cursor"]
        assert (
            many.page({"kind": ["script", "script"]}, cursor=cursor, limit=1).value["rows"][0]["id"] == "t1"
        )

    def test_of_another_snapshot_is_a_mismatch(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", numbered(10)) as facts:
            cursor = collection(facts).page(limit=1).outside["page.next_cursor"]
            other = collection(facts, parent="ev1_" + "1" * 64)
            assert refused(other.page, cursor=cursor).code == "cursor-mismatch"

    def test_of_another_collection_or_version_is_a_mismatch(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", numbered(10)) as facts:
            cursor = collection(facts).page(limit=1).outside["page.next_cursor"]
        for at, spec in enumerate([replace(THINGS, version=2), replace(THINGS, contract="sample.others")]):
            with write(tmp_path / f"f{at}", numbered(10), spec=spec) as facts:
                assert refused(collection(facts, spec=spec).page, cursor=cursor).code == "cursor-mismatch"

    def test_holds_on_another_machine(self, tmp_path: Path) -> None:
        walked: list[Any] = []
        for folder in ["one", "two"]:
            (tmp_path / folder).mkdir()
            with write(tmp_path / folder / "f", numbered(10)) as facts:
                walked.append(collection(facts).page(limit=4))
        assert walked[0] == walked[1]

    @pytest.mark.parametrize("cursor", ["", "x", "AAAA", "!" * 39, "\u00e9", 5, b"x", [], True])
    def test_garbage_is_invalid(self, many: Collection, cursor: Any) -> None:
        assert refused(many.page, cursor=cursor).code == "cursor-invalid"
