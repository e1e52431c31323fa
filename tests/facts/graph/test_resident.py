"""What is kept between queries, how much of it, and that threads do not get in each other's way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from affidavit.errors import NotFoundError
from affidavit.facts.collection import ParentRef
from affidavit.facts.graph import queries as room
from affidavit.facts.graph.model import Graph
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.resident import ResidentGraphs
from affidavit.facts.graph.spec import GraphSpec
from tests.facts.graph.graphs import FLOW, PARENT, asked, graph, steps, to


class Graphs:
    """Chains of as many blocks as their name says, and how often each was loaded."""

    def __init__(self, spec: GraphSpec = FLOW) -> None:
        self.spec = spec
        self.loaded: list[str | None] = []

    def parent(self, owner: str | None) -> ParentRef:
        return PARENT

    def load(self, owner: str | None) -> Graph:
        self.loaded.append(owner)
        if owner is None or not owner.isdigit():
            raise NotFoundError("item-not-found", "no such function")
        return graph(int(owner), [(at, at + 1) for at in range(int(owner) - 1)])


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The starts of all searches for a path."""
    starts: list[int] = []
    search = room.shortest

    def noting(left: Any, start: int, goals: Any) -> Any:
        starts.append(start)
        return search(left, start, goals)

    monkeypatch.setattr(room, "shortest", noting)
    return starts


class TestLastQuery:
    def test_is_searched_once_whatever_page_is_asked(self, searched: list[int]) -> None:
        one = asked(4, [(0, 1), (1, 2), (2, 3)])
        first = one.path("b0", to("b3"), limit=1)
        one.path("b0", to("b3"), limit=1, cursor=first.outside["page.next_cursor"])
        assert one.path("b0", to("b3"), avoid=[], offset=2).value["page"]["returned"] == 1
        assert searched == [0]

    def test_is_replaced_by_another(self, searched: list[int]) -> None:
        one = asked(3, [(0, 1), (1, 2)])
        for avoid in ([], ["b1"], []):
            found = one.path("b0", to("b2"), avoid=avoid).value["status"]
            assert found == ("not-found" if avoid else "found")
        assert searched == [0, 0, 0]

    def test_outlives_a_question_about_what_is_not_there(self, searched: list[int]) -> None:
        one = asked(3, [(0, 1), (1, 2)])
        for target in ("b2", "nope", "b2"):
            one.path("b0", to(target))
        assert searched == [0]

    @pytest.mark.parametrize("other", [{"source": "b1"}, {"target": to("b1")}, {"avoid_edges": ["e1"]}])
    def test_is_never_taken_for_another(self, searched: list[int], other: dict[str, Any]) -> None:
        one = asked(3, [(0, 1), (1, 2)])
        question: dict[str, Any] = {"source": "b0", "target": to("b2")}
        fresh = asked(3, [(0, 1), (1, 2)]).path(**(question | other))
        one.path(**question)
        assert one.path(**(question | other)) == fresh
        assert len(searched) == 3

    def test_is_kept_by_verb(self) -> None:
        one = asked(3, [(0, 1), (1, 2)])
        assert one.path("b0", to("b2")).value["rows"] != one.must_pass("b0", to("b2")).value["rows"]

    def test_of_two_threads_never_mix(self) -> None:
        one = asked(40, [(at, at + 1) for at in range(39)])

        def ask(goal: int) -> bool:
            return all(len(steps(one.path("b0", to(f"b{goal}")))) == goal for _ in range(60))

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(4, 40, 5)))


class TestResidentGraphs:
    def test_keeps_the_two_used_last(self) -> None:
        graphs, kept = Graphs(), ResidentGraphs()
        for owner in ("1", "2", "1", "3", "1", "2"):
            kept.queries(graphs, owner, PARENT)
        assert graphs.loaded == ["1", "2", "3", "2"]
        assert len(kept) == 2

    def test_keeps_each_with_its_last_query(self, searched: list[int]) -> None:
        graphs, kept = Graphs(), ResidentGraphs()
        for owner in ("3", "4", "3", "4"):
            kept.queries(graphs, owner, PARENT).path("b0", to("b2"))
        assert searched == [0, 0]

    def test_a_fresh_owner_starts_afresh(self, searched: list[int]) -> None:
        graphs, kept = Graphs(), ResidentGraphs(capacity=1)
        for owner in ("3", "4", "3"):
            assert len(steps(kept.queries(graphs, owner, PARENT).path("b0", to("b2")))) == 2
        assert searched == [0, 0, 0]

    def test_tells_snapshots_contracts_and_versions_apart(self) -> None:
        kept = ResidentGraphs(capacity=9)
        other = replace(PARENT, evidence_id="ev1_" + "1" * 64)
        specs = [FLOW, replace(FLOW, contract="other"), replace(FLOW, version=2)]
        made = [kept.queries(Graphs(spec), "2", PARENT) for spec in specs]
        made.append(kept.queries(Graphs(), "2", other))
        assert len({id(one) for one in made}) == 4
        assert made[3].path("b0", to("b1")).value["source"]["evidence_id"] == other.evidence_id

    def test_what_cannot_be_loaded_leaves_nothing(self) -> None:
        graphs, kept = Graphs(), ResidentGraphs()
        kept.queries(graphs, "2", PARENT)
        for _ in range(2):
            with pytest.raises(NotFoundError):
                kept.queries(graphs, "nope", PARENT)
        assert kept.resident(graphs, "2", PARENT) is not None
        assert graphs.loaded == ["2", "nope", "nope"]
        assert len(kept) == 1

    def test_looking_does_not_load(self) -> None:
        graphs, kept = Graphs(), ResidentGraphs()
        assert kept.resident(graphs, "2", PARENT) is None
        kept.queries(graphs, "2", PARENT)
        kept.clear()
        assert kept.resident(graphs, "2", PARENT) is None
        assert graphs.loaded == ["2"]

    def test_threads_that_ask_at_once_load_once(self) -> None:
        graphs = Slow()
        kept = ResidentGraphs()
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(kept.queries, graphs, "5", PARENT) for _ in range(4)]
            assert graphs.begun.wait(30)
            graphs.go_on.set()
            assert len({id(one.result()) for one in asking}) == 1
        assert graphs.loaded == ["5"]

    def test_a_fault_reaches_all_that_wait(self) -> None:
        graphs = Slow()
        kept = ResidentGraphs()
        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(kept.queries, graphs, "nope", PARENT) for _ in range(2)]
            assert graphs.begun.wait(30)
            graphs.go_on.set()
            assert all(isinstance(one.exception(), NotFoundError) for one in asking)

    def test_a_graph_put_out_during_a_query_stays_whole(self) -> None:
        graphs, kept = Graphs(), ResidentGraphs(capacity=1)

        def ask(owner: int) -> bool:
            asking: Callable[[], GraphQueries] = lambda: kept.queries(graphs, str(owner), PARENT)  # noqa: E731
            return all(len(steps(asking().path("b0", to(f"b{owner - 1}")))) == owner - 1 for _ in range(40))

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, [3, 9, 27, 40, 3, 9]))
        assert len(kept) == 1


class Slow(Graphs):
    """Loads when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def load(self, owner: str | None) -> Graph:
        self.begun.set()
        self.go_on.wait(30)
        return super().load(owner)
