"""Pages against a plain-Python model: any way of walking gives the rows of a filter over a list, in order."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.canonical import freeze
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import Answer, Collection

from .samples import PATIENT, Row, collection, matching, rows, texts, wheres, write

limits = st.integers(1, 7) | st.sampled_from([64, 1000])


def same(left: object, right: object) -> bool:
    """Equality that tells True from 1, 1 from 1.0 and 0.0 from -0.0."""
    return freeze(left).data == freeze(right).data


@settings(PATIENT, max_examples=60)
@given(data=st.data(), found=rows())
def test_any_walk_over_pages_gives_the_matching_rows_in_order(data: st.DataObject, found: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder, write(Path(folder) / "f", found) as facts:
        asked = collection(facts)
        for _ in range(3):
            where = data.draw(wheres(found))
            expected = matching(found, where)
            walked: list[Row] = []
            cursor: str | None = None
            while True:
                limit = data.draw(limits)
                if cursor is not None and data.draw(st.booleans()):
                    answer = asked.page(where, cursor=cursor, limit=limit)
                    again = asked.page(where, offset=len(walked), limit=limit)
                    assert (answer.value, answer.parameters) == (again.value, again.parameters)
                    assert answer.outside == again.outside
                else:
                    answer = asked.page(where, offset=len(walked), limit=limit)
                assert answer.value["page"]["total"] == len(expected)
                assert answer.value["page"]["offset"] == len(walked)
                assert answer.value["page"]["returned"] == len(answer.value["rows"]) <= limit
                walked += answer.value["rows"]
                cursor = answer.outside["page.next_cursor"]
                assert answer.value["page"]["exhausted"] == (cursor is None) == (len(walked) == len(expected))
                if cursor is None:
                    break
            assert same(walked, expected)
            assert asked.count(where).value["count"] == len(expected)


@settings(PATIENT, max_examples=40)
@given(data=st.data(), found=rows(), start=st.integers(0, 60), limit=limits)
def test_any_page_is_a_slice_of_the_matching_rows(
    data: st.DataObject, found: list[Row], start: int, limit: int
) -> None:
    where = data.draw(wheres(found))
    with tempfile.TemporaryDirectory() as folder, write(Path(folder) / "f", found) as facts:
        page = collection(facts).page(where, offset=start, limit=limit)
    expected = matching(found, where)
    assert same(page.value["rows"], expected[start : start + limit])
    assert page.value["page"]["exhausted"] == (start + limit >= len(expected))


@settings(PATIENT, max_examples=40)
@given(data=st.data(), found=rows(), by=st.sampled_from(["path", "kind", "size", "mixed", "id"]))
def test_groups_are_counts_of_each_value(data: st.DataObject, found: list[Row], by: str) -> None:
    where = data.draw(wheres(found))
    with tempfile.TemporaryDirectory() as folder, write(Path(folder) / "f", found) as facts:
        value = collection(facts).count(where, by=by).value
    expected = matching(found, where)
    for group in value["groups"]:
        assert group["count"] == len(matching(expected, {by: group["value"]})) > 0
    assert sum(group["count"] for group in value["groups"]) == value["count"] == len(expected)
    counts = [group["count"] for group in value["groups"]]
    assert counts == sorted(counts, reverse=True)


class Queries(RuleBasedStateMachine):
    """Queries of every kind in any order, with callers that spoil what they are given."""

    @initialize(data=st.data(), found=rows(max_size=15))
    def start(self, data: st.DataObject, found: list[Row]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        items = {row["id"]: {**row, "detail": data.draw(texts)} for row in found if data.draw(st.booleans())}
        self.facts = write(Path(self.folder.name) / "f", found, items=items)
        # The model is a copy: what was handed over is spoilt below.
        self.found: list[Row] = copy.deepcopy(found)
        self.items: dict[str, Row] = copy.deepcopy(items)
        self.cache = QueryCache(entries=2, rows=20)
        self.collection: Collection = collection(self.facts, cache=self.cache)
        self.cursors: list[tuple[Any, str, int]] = []
        spoil(found)

    def teardown(self) -> None:
        if hasattr(self, "facts"):
            self.facts.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def check(self, answer: Answer, where: Any, offset: int, limit: int) -> None:
        assert same(answer.value["rows"], matching(self.found, where)[offset : offset + limit])
        cursor = answer.outside["page.next_cursor"]
        if cursor is not None:
            self.cursors.append((where, cursor, offset + len(answer.value["rows"])))
        spoil(answer.value)
        spoil(answer.outside)
        spoil(answer.parameters)

    @rule(data=st.data(), offset=st.integers(0, 20), limit=limits)
    def page(self, data: st.DataObject, offset: int, limit: int) -> None:
        where = data.draw(wheres(self.found))
        self.check(self.collection.page(where, offset=offset, limit=limit), where, offset, limit)

    @precondition(lambda self: bool(self.cursors))
    @rule(data=st.data(), limit=limits)
    def follow(self, data: st.DataObject, limit: int) -> None:
        where, cursor, offset = data.draw(st.sampled_from(self.cursors))
        self.check(self.collection.page(where, cursor=cursor, limit=limit), where, offset, limit)

    @precondition(lambda self: bool(self.cursors))
    @rule(data=st.data())
    def follow_elsewhere(self, data: st.DataObject) -> None:
        where, cursor, _ = data.draw(st.sampled_from(self.cursors))
        other: dict[str, Any] = {**(where or {}), "path": ["never", "there"]}
        with pytest.raises(UsageError) as caught:
            self.collection.page(other, cursor=cursor)
        assert caught.value.code == "cursor-mismatch"

    @rule(data=st.data())
    def count(self, data: st.DataObject) -> None:
        where = data.draw(wheres(self.found))
        answer = self.collection.count(where, by="path")
        assert answer.value["count"] == len(matching(self.found, where))
        spoil(answer.value)

    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from([row["id"] for row in self.found] or [""]) | texts)
        expected = self.full(one)
        if expected is None:
            with pytest.raises(NotFoundError) as caught:
                self.collection.get(one)
            assert caught.value.code == "item-not-found"
        else:
            answer = self.collection.get(one)
            assert same(answer.value, expected)
            spoil(answer.value)

    @rule(data=st.data())
    def get_many(self, data: st.DataObject) -> None:
        known = st.sampled_from([row["id"] for row in self.found] or [""])
        ids = data.draw(st.lists(known | texts, max_size=8))
        batch = self.collection.get_many(ids).value
        assert [one["id"] for one in batch] == ids
        for one in batch:
            expected = self.full(one["id"])
            assert one["status"] == ("failed" if expected is None else "found")
            assert expected is None or same(one["item"], expected)
        spoil(batch)

    @invariant()
    def bounded(self) -> None:
        assert not hasattr(self, "cache") or len(self.cache) <= 2

    def full(self, one: str) -> Row | None:
        return self.items.get(one) or next((row for row in self.found if row["id"] == one), None)


def spoil(value: Any) -> None:
    """Change everything that can be changed in place, as a careless caller might."""
    if isinstance(value, dict):
        for inner in list(value.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            spoil(inner)
        value.clear()  # pyright: ignore[reportUnknownMemberType]
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            spoil(inner)
        value.append("spoilt")  # pyright: ignore[reportUnknownMemberType]


Queries.TestCase.settings = settings(PATIENT, max_examples=40, stateful_step_count=15)
test_queries = Queries.TestCase
