"""What each query promises, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.record import Limitation
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import (
    MAX_BATCH_BYTES,
    MAX_GROUPS,
    MAX_IDS,
    MAX_PAGE_BYTES,
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


class TestBytes:
    @pytest.fixture
    def wide(self, tmp_path: Path) -> Iterator[Collection]:
        found = [
            {"id": f"t{at}", "path": None, "kind": "asset", "body": "x" * size}
            for at, size in enumerate([100_000, 100_000, 100_000, 400_000, 10, 10])
        ]
        with write(tmp_path / "f", found) as facts:
            yield collection(facts)

    def test_a_page_ends_before_its_bytes_pass_the_bound(self, wide: Collection) -> None:
        page = wide.page()
        assert page.value["page"] == {
            "offset": 0,
            "returned": 2,
            "total": 6,
            "exhausted": False,
            "shortened": True,
        }

    def test_one_row_is_always_shown(self, wide: Collection) -> None:
        page = wide.page(offset=3)
        assert len(page.value["rows"][0]["body"]) == 400_000 > MAX_PAGE_BYTES
        assert (page.value["page"]["returned"], page.value["page"]["shortened"]) == (1, True)

    def test_a_page_that_limit_ended_is_not_shortened(self, wide: Collection) -> None:
        assert wide.page(offset=3, limit=1).value["page"]["shortened"] is False
        assert wide.page(limit=2).value["page"]["shortened"] is False

    def test_a_walk_over_shortened_pages_misses_nothing(self, wide: Collection) -> None:
        seen: list[str] = []
        cursor = None
        for _ in range(6):
            page = wide.page({"kind": "asset"}, cursor=cursor)
            seen += [row["id"] for row in page.value["rows"]]
            cursor = page.outside["page.next_cursor"]
            if cursor is None:
                break
        assert seen == ["t0", "t1", "t2", "t3", "t4", "t5"]

    def test_the_bound_is_inclusive(self, tmp_path: Path) -> None:
        frame = len('{"body":"","id":"t0","kind":"asset","path":null}')
        half = MAX_PAGE_BYTES // 2 - frame
        for extra, returned in [(0, 2), (1, 1)]:
            found = [
                {"id": f"t{at}", "path": None, "kind": "asset", "body": "x" * (half + extra * at)}
                for at in range(2)
            ]
            with write(tmp_path / f"f{extra}", found) as facts:
                assert collection(facts).page().value["page"]["returned"] == returned

    def test_a_batch_beyond_the_bound_says_which_items_it_left(self, tmp_path: Path) -> None:
        big = MAX_BATCH_BYTES // 3 + 1000
        found: list[Row] = [{"id": f"t{at}", "path": None, "kind": "asset", "body": None} for at in range(4)]
        items = {row["id"]: row | {"detail": "x" * (big if row["id"] != "t3" else 1)} for row in found}
        with write(tmp_path / "f", found, items=items) as facts:
            batch = collection(facts).get_many(["t0", "none", "t1", "t2", "t3", "t0"]).value
        assert [(one["id"], one["status"], one.get("code")) for one in batch] == [
            ("t0", "found", None),
            ("none", "failed", "item-not-found"),
            ("t1", "found", None),
            ("t2", "failed", "value-too-large"),
            ("t3", "found", None),
            ("t0", "failed", "value-too-large"),
        ]


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


class TestItems:
    def test_get_returns_the_full_item(self, things: Collection) -> None:
        assert things.get("a").value == ITEMS["a"]
        assert things.get("b").value == things.get("b").value == ROWS[1]
        assert things.get("a").parameters == {"id": "a"}

    def test_a_page_row_is_the_projection(self, things: Collection) -> None:
        assert things.page({"id": "a"}).value["rows"] == [ROWS[0]]

    def test_get_of_an_unknown_id_names_snapshot_and_next_step(self, things: Collection) -> None:
        with pytest.raises(NotFoundError) as caught:
            things.get("zz")
        assert caught.value.code == "item-not-found"
        assert caught.value.details == {
            "collection": "sample.things",
            "id": "zz",
            "source": "ev1_" + "0" * 64,
        }
        assert "page()" in caught.value.hint
        assert "no proof" not in caught.value.hint

    def test_absence_over_partial_coverage_is_no_proof(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", ROWS, coverage=PARTIAL) as facts, pytest.raises(NotFoundError) as caught:
            collection(facts).get("zz")
        assert "no proof of absence" in caught.value.hint

    @pytest.mark.parametrize("one", [None, 3, b"a", ["a"], True])
    def test_ids_are_text(self, things: Collection, one: Any) -> None:
        assert refused(things.get, one).code == "arguments-invalid"
        assert refused(things.get_many, ["a", one]).details == {"path": "$.ids[1]"}

    def test_a_batch_keeps_order_repeats_and_failures(self, things: Collection) -> None:
        answer = things.get_many(["b", "zz", "a", "b", ""])
        assert [(one["status"], one["id"]) for one in answer.value] == [
            ("found", "b"),
            ("failed", "zz"),
            ("found", "a"),
            ("found", "b"),
            ("failed", ""),
        ]
        assert answer.value[2]["item"] == ITEMS["a"]
        assert answer.value[1]["code"] == "item-not-found"
        assert answer.value[1]["message"]
        assert all(one["support"] == ["ev1_" + "0" * 64] for one in answer.value)
        assert answer.parameters == {"ids": ["b", "zz", "a", "b", ""]}

    def test_repeated_items_are_separate_values(self, things: Collection) -> None:
        first, second = things.get_many(["b", "b"]).value
        first["item"]["body"]["deep"].clear()
        first["support"].clear()
        assert second["item"] == ROWS[1]
        assert second["support"]

    def test_a_batch_is_bounded(self, many: Collection) -> None:
        assert len(many.get_many(["t1"] * MAX_IDS).value) == MAX_IDS
        assert refused(many.get_many, ["t1"] * (MAX_IDS + 1)).code == "arguments-invalid"
        assert many.get_many([]).value == []

    @pytest.mark.parametrize("ids", ["abc", None, {"a": 1}, 3, {"a"}])
    def test_a_batch_is_a_list(self, things: Collection, ids: Any) -> None:
        assert refused(things.get_many, ids).code == "arguments-invalid"


class TestCount:
    def test_over_complete_coverage_is_exact(self, things: Collection) -> None:
        value = things.count({"path": "main.js"}).value
        assert (value["count"], value["bound"], value["groups"]) == (2, "exact", [])

    def test_over_partial_coverage_is_a_lower_bound(self, tmp_path: Path) -> None:
        for at, state in enumerate(["partial", "unknown"]):
            coverage: Any = replace(PARTIAL, state=state)
            with write(tmp_path / f"f{at}", ROWS, coverage=coverage) as facts:
                value = collection(facts).count().value
            assert (value["count"], value["bound"]) == (6, "lower")
            assert value["source_coverage"]["unknown"] == 1

    def test_groups_are_largest_first_then_by_value(self, things: Collection) -> None:
        assert things.count(by="path").value["groups"] == [
            {"value": None, "count": 2},
            {"value": "main.js", "count": 2},
            {"value": "", "count": 1},
            {"value": "lib.js", "count": 1},
        ]
        assert things.count({"kind": "asset"}, by="size").value["groups"] == [
            {"value": 1, "count": 1},
            {"value": 2, "count": 1},
        ]

    def test_groups_keep_types_apart(self, tmp_path: Path) -> None:
        mixed: list[Any] = [True, 1, "1", False, 0, None, 2**70, "\ud800"]
        found = [{"id": f"{at}", "path": None, "kind": "asset", "mixed": one} for at, one in enumerate(mixed)]
        with write(tmp_path / "f", found) as facts:
            groups = collection(facts).count(by="mixed").value["groups"]
        values = [one["value"] for one in groups]
        assert [(type(one), one) for one in values] == [
            (type(one), one) for one in [None, False, True, 0, 1, 2**70, "1", "\ud800"]
        ]

    def test_too_many_groups_are_cut_and_counted(self, tmp_path: Path) -> None:
        found = [{"id": f"{at:05}", "path": None, "kind": "asset"} for at in range(MAX_GROUPS + 5)]
        with write(tmp_path / "f", found) as facts:
            value = collection(facts).count(by="id").value
        assert value["count"] == MAX_GROUPS + 5
        assert value["groups_omitted"] == 5
        assert [one["value"] for one in value["groups"][:2]] == ["00000", "00001"]

    @pytest.mark.parametrize("by", ["pth", "body", "", 3, True, ["path"]])
    def test_by_is_a_field(self, things: Collection, by: Any) -> None:
        assert refused(things.count, by=by).code == "selector-invalid"

    def test_parameters_are_normal(self, things: Collection) -> None:
        assert things.count().parameters == {"where": {}, "by": None}


class TestCache:
    def test_is_shared_by_the_pages_of_a_query(self, many: Collection, tmp_path: Path) -> None:
        with write(tmp_path / "g", numbered(30)) as facts:
            cache = QueryCache()
            asked = collection(facts, cache=cache)
            for offset in range(3):
                asked.page({"kind": "script"}, offset=offset)
            assert len(cache) == 1
            asked.page({"kind": ["script", None]})
            assert len(cache) == 2

    def test_tells_snapshots_apart(self, tmp_path: Path) -> None:
        cache = QueryCache()
        with write(tmp_path / "f", numbered(5)) as one, write(tmp_path / "g", numbered(9)) as two:
            first = collection(one, cache=cache)
            second = collection(two, parent="ev1_" + "1" * 64, cache=cache)
            where = {"kind": "script"}
            assert first.page(where).value["page"]["total"] == 5
            assert second.page(where).value["page"]["total"] == 9

    def test_does_not_keep_what_was_not_there(self, tmp_path: Path) -> None:
        cache = QueryCache()
        with write(tmp_path / "f", numbered(5)) as facts:
            collection(facts, cache=cache).page({"path": "nowhere.js"})
        assert len(cache) == 0


def test_hostile_texts_are_found_by_value_and_by_id(tmp_path: Path) -> None:
    found = [{"id": one, "path": one, "kind": "asset", "body": {one: one}} for one in HOSTILE]
    with write(tmp_path / "f", found) as facts:
        things = collection(facts)
        for one in HOSTILE:
            page = things.page({"path": one})
            assert [row["id"] for row in page.value["rows"]] == [one]
            assert page.value["rows"][0]["body"] == {one: one}
            assert things.get(one).value["id"] == one
        assert [one["id"] for one in things.get_many(list(HOSTILE)).value] == list(HOSTILE)
        assert things.page({"path": list(HOSTILE)}).value["page"]["total"] == len(HOSTILE)
        groups = things.count(by="path").value["groups"]
        assert [one["value"] for one in groups] == sorted(HOSTILE)


def test_threads_may_share_a_collection(tmp_path: Path) -> None:
    with write(tmp_path / "f", numbered(400)) as facts:
        things = collection(facts)

        def walk(at: int) -> list[str]:
            where = {"path": [f"lib/{one}.js" for one in range(at, at + 20)]}
            return [row["id"] for row in things.page(where, limit=100).value["rows"]]

        with ThreadPoolExecutor(8) as pool:
            walks = list(pool.map(walk, [at % 100 for at in range(300)]))
    for at, walked in enumerate(walks):
        start = at % 100 * 3
        assert walked == [f"t{one}" for one in range(start, start + 60)]
