"""What items, counts, bounds and the cache promise, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import NotFoundError, UsageError
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import (
    MAX_BATCH_BYTES,
    MAX_GROUPS,
    MAX_IDS,
    MAX_PAGE_BYTES,
    Collection,
)

from .samples import HOSTILE, PARTIAL, Row, collection, numbered, write

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
