"""What makes a graph, and what does not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from affidavit.errors import FailedError, VerificationError
from affidavit.facts.graph.model import Block, Bounds, Edge, Graph
from tests.facts.graph.graphs import graph


def test_order_is_that_of_the_facts_and_edges_of_a_block_go_by_ordinal() -> None:
    one = graph(3, [(0, 1, 2), (0, 2, 1), (0, 1, 1), (2, 0)])
    assert one.blocks == ("b0", "b1", "b2")
    assert one.edges == ("e0", "e1", "e2", "e3")
    assert one.outgoing == [(1, 2, 0), (), (3,)]
    assert one.incoming == [(3,), (0, 2), (1,)]
    assert one.successors == [(2, 1), (), (0,)]
    assert one.predecessors == [(2,), (0,), (0,)]


def test_ids_lead_to_places() -> None:
    one = graph(2, [(0, 1)])
    assert (one.block("b1"), one.block("b2"), one.edge("e0"), one.edge("b0")) == (1, None, 0, None)


def test_an_empty_graph_is_one() -> None:
    one = Graph.build([], [])
    assert one.blocks == ()
    assert one.coverage.state == "complete"


class TestExits:
    def test_a_block_without_edges_or_kind_is_unresolved(self) -> None:
        one = Graph.build([Block("a"), Block("b")], [Edge("e", "a", "b")])
        assert one.exits == (None, "unresolved")
        assert one.unresolved == {1}
        assert (one.coverage.state, one.coverage.unknown) == ("partial", 1)

    def test_or_what_the_kind_of_graph_says(self) -> None:
        one = Graph.build([Block("a"), Block("b")], [Edge("e", "a", "b")], leaf="return")
        assert one.exits == (None, "return")
        assert one.coverage.state == "complete"

    def test_an_edge_to_somewhere_unknown_makes_its_block_unresolved(self) -> None:
        blocks = [Block("a"), Block("b", "return"), Block("c", "trap")]
        edges = [Edge("e", "a", "b"), Edge("f", "a", None), Edge("g", "c", None)]
        one = Graph.build(blocks, edges, leaf="return")
        assert one.exits == ("unresolved", "return", "trap")
        assert one.unresolved == {0, 2}
        assert one.outgoing == [(0,), (), ()]
        assert one.edge("f") == 1

    def test_a_block_may_be_left_and_go_on(self) -> None:
        one = graph(2, [(0, 1)], {0: "tail-call"})
        assert one.exits_of(["tail-call", "return"]) == [0, 1]


@pytest.mark.parametrize(
    ("blocks", "edges", "named"),
    [
        ([Block("a"), Block("a")], [], "'a'"),
        ([Block("a")], [Edge("e", "a", "a"), Edge("e", "a", "a")], "'e'"),
        ([Block("a")], [Edge("e", "a", "nowhere")], "'nowhere'"),
        ([Block("a")], [Edge("e", "nowhere", "a")], "'nowhere'"),
        ([Block("a")], [Edge("e", "nowhere", None)], "'nowhere'"),
        ([Block("a", cast(Any, "left"))], [], "'left'"),
    ],
)
def test_what_does_not_hold_together_is_refused_by_name(
    blocks: list[Block], edges: list[Edge], named: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        Graph.build(blocks, edges, owner="main")
    assert caught.value.code == "graph-invalid"
    assert named in caught.value.message
    assert "main" in caught.value.message
    assert caught.value.hint


def test_many_missing_blocks_are_not_all_named() -> None:
    with pytest.raises(VerificationError) as caught:
        Graph.build([Block("a")], [Edge(f"e{at}", "a", f"x{at:02}") for at in range(30)])
    assert "'x09', ..." in caught.value.message
    assert len(caught.value.details["ids"]) == 10


@pytest.mark.parametrize(("bounds", "what"), [(Bounds(blocks=2), "blocks"), (Bounds(edges=1), "edges")])
def test_bounds_are_kept_and_can_be_set(bounds: Bounds, what: str) -> None:
    links = [(0, 1), (1, 2)]
    with pytest.raises(FailedError) as caught:
        graph(3, links, bounds=bounds)
    assert caught.value.code == "graph-too-large"
    assert what in caught.value.details
    assert graph(3, links, bounds=Bounds(blocks=3, edges=2)).coverage.bounds == {"blocks": 3, "edges": 2}


def test_the_default_bounds() -> None:
    assert graph(12_000, []).blocks[-1] == "b11999"
    with pytest.raises(FailedError, match="12,001 blocks, more than 12,000"):
        graph(12_001, [])
    with pytest.raises(FailedError, match="50,001 edges, more than 50,000"):
        graph(1, [(0, 0)] * 50_001)
