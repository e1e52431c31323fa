"""`paths`, `reachable`, `must_pass`, `dominators` and `loops`, against their definitions on small graphs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.facts.graph import alternatives as search
from affidavit.facts.graph.model import Block, Edge, Graph
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.search import frontier, ways
from tests.facts.graph.graphs import EXIT, Case, asked, cases, graph, ids, queries, reached, simple_paths, to

MANY = settings(max_examples=300, deadline=None)


def with_exits(case: Case) -> GraphQueries:
    """The case's graph with its goals as the only `trap` exits, so that several goals are one target."""
    one = case.graph
    blocks = [Block(name, "trap" if at in case.goals else None) for at, name in enumerate(one.blocks)]
    edges = [
        Edge(
            name,
            one.blocks[one.sources[at]],
            one.blocks[one.targets[at]],
            one.rows[at]["ordinal"],
            one.rows[at],
        )
        for at, name in enumerate(one.edges)
    ]
    return queries(Graph.build(blocks, edges, owner="f"))


def question(case: Case) -> dict[str, Any]:
    return {
        "source": case.graph.blocks[case.start],
        "target": {"kind": "exit", "exit": ["trap"]},
        "avoid": ids(case.graph.blocks, case.gone),
        "avoid_edges": ids(case.graph.edges, case.cut),
    }


def expected_paths(case: Case) -> list[tuple[int, ...]]:
    goals = set(case.goals) - set(case.gone)
    return simple_paths(case.graph, case.start, goals, case.gone, case.cut)


class TestPaths:
    @MANY
    @given(cases(), st.sampled_from([1, 2, 3, 1000]))
    def test_are_the_first_of_all_simple_paths(self, case: Case, k: int) -> None:
        every = expected_paths(case)
        value = with_exits(case).paths(**question(case), k=k, limit=1000).value
        assert value["status"] == ("found" if every else "not-found")
        assert [row["edges"] for row in value["rows"]] == [ids(case.graph.edges, path) for path in every[:k]]
        assert value["page"]["total"] == (len(every) if len(every) <= k else None)
        for number, row in enumerate(value["rows"]):
            assert (row["number"], row["length"]) == (number, len(row["edges"]))
            rows = [case.graph.rows[case.graph.edges.index(edge)] for edge in row["edges"]]
            assert [(one["from"], one["to"]) for one in rows] == list(pairwise(row["blocks"]))

    @MANY
    @given(cases())
    def test_the_first_is_the_path(self, case: Case) -> None:
        one = with_exits(case)
        path, paths = one.path(**question(case)).value, one.paths(**question(case), k=1).value
        assert path["status"] == paths["status"]
        assert path["certificate"] == paths["certificate"]
        if path["status"] == "found":
            assert [row["edge_id"] for row in path["rows"]] == paths["rows"][0]["edges"]

    def test_may_pass_an_exit_and_end_at_the_next(self) -> None:
        one = asked(3, [(0, 1), (1, 2)], {1: "tail-call"})
        assert [row["edges"] for row in one.paths("b0", EXIT).value["rows"]] == [["e0"], ["e0", "e1"]]

    def test_of_many_equal_ones_come_one_by_one(self) -> None:
        # 400 diamonds in a row: 2 ** 400 paths of one length.
        links = [
            link
            for at in range(0, 1200, 3)
            for link in ((at, at + 1, 0), (at, at + 2, 1), (at + 1, at + 3), (at + 2, at + 3))
        ]
        rows = asked(1201, links).paths("b0", EXIT, k=5).value["rows"]
        assert [row["length"] for row in rows] == [800] * 5
        turns = [
            [at for at, block in enumerate(row["blocks"][1::2]) if int(block[1:]) % 3 == 2] for row in rows
        ]
        assert turns == [[], [399], [398], [398, 399], [397]]

    def test_that_would_need_too_many_searches_are_cut_and_it_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Every way off the chain only leads back to its start.
        links = [(at, at + 1, 0) for at in range(50)]
        links += [(at, 51 + at, 1) for at in range(49)] + [(51 + at, 0, 0) for at in range(49)]
        monkeypatch.setattr(search, "MAX_SEARCHES", 10)
        value = asked(101, links).paths("b0", to("b50")).value
        assert (value["status"], len(value["rows"]), value["page"]["total"]) == ("found", 1, None)
        monkeypatch.setattr(search, "MAX_SEARCHES", 1000)
        assert asked(101, links).paths("b0", to("b50")).value["page"]["total"] == 1

    def test_pages_are_of_the_same_paths(self) -> None:
        one = asked(2, [(0, 1)] * 9)
        value = one.paths("b0", to("b1"), k=7, offset=5, limit=4).value
        assert [row["edges"] for row in value["rows"]] == [["e5"], ["e6"]]
        assert (value["page"]["total"], value["page"]["exhausted"]) == (None, True)

    @pytest.mark.parametrize("k", [0, 1001, True, "3"])
    def test_k_is_bounded(self, k: Any) -> None:
        with pytest.raises(UsageError) as caught:
            asked(1, []).paths("b0", EXIT, k=k)
        assert caught.value.details == {"path": "$.k"}


class TestReachable:
    @MANY
    @given(cases(), st.booleans())
    def test_is_the_closure_by_distance(self, case: Case, backward: bool) -> None:
        one = case.graph
        turned = graph(len(one.blocks), [(one.targets[at], one.sources[at]) for at in range(len(one.edges))])
        seen = turned if backward else one
        value = (
            queries(one)
            .reachable(
                one.blocks[case.start],
                "backward" if backward else "forward",
                ids(one.blocks, case.gone),
                ids(one.edges, case.cut),
                limit=1000,
            )
            .value
        )
        there = reached(seen, [case.start], case.gone, case.cut)
        assert {row["block"] for row in value["rows"]} == set(ids(one.blocks, there))
        order = [(row["distance"], one.block(row["block"])) for row in value["rows"]]
        assert order == sorted(order)
        for steps, block in order:
            paths = simple_paths(seen, case.start, [block or 0], case.gone, case.cut)
            assert len(paths[0]) == steps
        met = [
            at
            for at in sorted(case.gone)
            if at == case.start
            or any(
                seen.sources[edge] in there and seen.targets[edge] == at and edge not in case.cut
                for edge in range(len(one.edges))
            )
        ]
        assert value["certificate"]["blocks"] == ids(one.blocks, met)
        cut = [edge for edge in sorted(case.cut) if seen.sources[edge] in there]
        assert value["certificate"]["edges"] == ids(one.edges, cut)
        assert value["status"] == ("found" if there else "not-found")

    @MANY
    @given(cases())
    def test_lifting_what_is_no_certificate_changes_nothing(self, case: Case) -> None:
        """Only the exclusions that the search met keep anything out: without the others the same is reached."""
        end = frontier(ways(case.graph, case.gone, case.cut), [case.start])
        assert reached(case.graph, [case.start], case.gone, case.cut) == reached(
            case.graph, [case.start], end.blocks, end.edges
        )

    def test_takes_no_other_direction(self) -> None:
        with pytest.raises(UsageError, match="sideways"):
            asked(1, []).reachable("b0", "sideways")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class TestMustPass:
    @MANY
    @given(cases())
    def test_is_what_all_paths_share(self, case: Case) -> None:
        every = expected_paths(case)
        value = with_exits(case).must_pass(**question(case), limit=1000).value
        if not every:
            assert (value["status"], value["rows"]) == ("not-found", [])
            assert value["certificate"] is not None
            return
        one = case.graph
        blocks = set[int].intersection(*[{case.start, *(one.targets[at] for at in path)} for path in every])
        edges = set[int].intersection(*[set(path) for path in every])
        found = [(row["kind"], row["id"]) for row in value["rows"]]
        assert len(found) == len(set(found))
        assert set(found) == {("block", one.blocks[at]) for at in blocks} | {
            ("edge", one.edges[at]) for at in edges
        }
        first = every[0]
        passed = [case.start, *(one.targets[at] for at in first)]
        for row in value["rows"]:
            place = first if row["kind"] == "edge" else passed
            names = one.edges if row["kind"] == "edge" else one.blocks
            assert names[place[row["step_index"]]] == row["id"]
        assert [row["step_index"] for row in value["rows"]] == sorted(
            row["step_index"] for row in value["rows"]
        )

    def test_of_parallel_edges_neither(self) -> None:
        rows = asked(3, [(0, 1), (0, 1), (1, 2)]).must_pass("b0", to("b2")).value["rows"]
        assert [row["id"] for row in rows] == ["b0", "b1", "e2", "b2"]


class TestDominators:
    @MANY
    @given(cases())
    def test_forward_are_on_every_way_from_the_source(self, case: Case) -> None:
        one = case.graph
        value = queries(one).dominators(source=one.blocks[case.start], limit=1000).value
        check_dominators(one, value, [case.start])

    @MANY
    @given(cases())
    def test_backward_are_on_every_way_to_an_exit(self, case: Case) -> None:
        made = with_exits(case)
        one = made.graph
        turned = graph(len(one.blocks), [(one.targets[at], one.sources[at]) for at in range(len(one.edges))])
        check_dominators(
            turned, made.dominators(direction="backward", exit=["trap"], limit=1000).value, case.goals
        )

    def test_of_one_block_go_outwards(self) -> None:
        one = asked(5, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)])
        rows = one.dominators("b4").value["rows"]
        assert [(row["block"], row["immediate"], row["depth"]) for row in rows] == [
            ("b4", "b1", 3), ("b1", "b0", 2), ("b0", None, 1),
        ]  # fmt: skip

    def test_begin_at_the_entry_and_end_at_every_exit(self) -> None:
        one = asked(4, [(0, 1), (1, 2), (3, 0)], {1: "unresolved"})
        assert [row["block"] for row in one.dominators().value["rows"]] == ["b0", "b1", "b2"]
        assert one.dominators("b3").value["status"] == "not-found"
        # Control may leave at b1, so b2 is not on every way out.
        assert [row["block"] for row in one.dominators("b0", "backward").value["rows"]] == ["b0", "b1"]
        answer = one.dominators("b0", "backward", exit=["return"])
        assert [row["block"] for row in answer.value["rows"]] == ["b0", "b1", "b2"]

    def test_without_any_exit_there_are_none(self) -> None:
        value = asked(2, [(0, 1), (1, 0)]).dominators(direction="backward").value
        assert (value["status"], value["rows"]) == ("not-found", [])

    def test_missing_blocks_are_named(self) -> None:
        value = asked(1, []).dominators("x", source="y").value
        assert value["missing"] == [{"argument": "block", "id": "x"}, {"argument": "source", "id": "y"}]

    @pytest.mark.parametrize(
        "wrong", [{"direction": "backward", "source": "b0"}, {"exit": ["return"]}, {"direction": "up"}]
    )
    def test_what_contradicts_itself_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError) as caught:
            asked(1, []).dominators(**wrong)
        assert caught.value.code == "arguments-invalid"

    def test_a_chain_of_12_000_blocks(self) -> None:
        value = asked(12_000, [(at, at + 1) for at in range(11_999)]).dominators("b11999").value
        assert value["page"]["total"] == 12_000


def check_dominators(one: Graph, value: dict[str, Any], roots: Any) -> None:
    there = reached(one, roots)
    rows = {row["block"]: row for row in value["rows"]}
    assert set(rows) == {one.blocks[at] for at in there}
    for block in there:
        dominating = {at for at in there if at == block or block not in reached(one, roots, [at])}
        row = rows[one.blocks[block]]
        assert row["depth"] == len(dominating)
        nearest = [
            at for at in dominating if at != block and rows[one.blocks[at]]["depth"] == row["depth"] - 1
        ]
        assert row["immediate"] == (one.blocks[nearest[0]] if nearest else None)


class TestLoops:
    @MANY
    @given(cases(blocks=7, edges=14))
    def test_are_natural_or_irreducible(self, case: Case) -> None:
        one = case.graph
        start = case.start
        rows = queries(one).loops(one.blocks[start], limit=1000).value["rows"]
        there = reached(one, [start])

        def dominates(block: int, other: int) -> bool:
            return block == other or other not in reached(one, [start], [block])

        turned = graph(len(one.blocks), [(one.targets[at], one.sources[at]) for at in range(len(one.edges))])
        closing: dict[int, list[int]] = {}
        for edge in range(len(one.edges)):
            if one.sources[edge] in there and dominates(one.targets[edge], one.sources[edge]):
                closing.setdefault(one.targets[edge], []).append(edge)
        bodies = {
            header: ({header} | reached(turned, [one.sources[edge] for edge in edges], [header])) & there
            for header, edges in closing.items()
        }
        natural = [row for row in rows if row["kind"] == "natural"]
        assert [row["header"] for row in natural] == ids(one.blocks, sorted(closing))
        for row, header in zip(natural, sorted(closing), strict=True):
            around = [other for other in closing if other != header and header in bodies[other]]
            assert row["blocks"] == ids(one.blocks, sorted(bodies[header]))
            assert row["back_edges"] == ids(one.edges, closing[header])
            assert row["depth"] == 1 + len(around)
            nearest = min(around, key=lambda other: len(bodies[other]), default=None)
            assert row["parent"] == (None if nearest is None else one.blocks[nearest])
        cut = [edge for edges in closing.values() for edge in edges]
        cyclic = {
            block: frozenset(
                other
                for other in reached(one, [block], cut=cut)
                if block != other and block in reached(one, [other], cut=cut)
            )
            | {block}
            for block in there
        }
        parts = {frozenset(part) for part in cyclic.values() if len(part) > 1}
        irreducible = [row for row in rows if row["kind"] == "irreducible"]
        assert {frozenset(row["blocks"]) for row in irreducible} == {
            frozenset(ids(one.blocks, part)) for part in parts
        }
        assert all(len(row["entries"]) > 1 for row in irreducible)
        assert rows == natural + irreducible

    def test_two_entries_make_a_part_irreducible(self) -> None:
        rows = asked(4, [(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]).loops().value["rows"]
        assert rows == [
            {
                "kind": "irreducible", "header": None, "entries": ["b1", "b2"], "blocks": ["b1", "b2"],
                "back_edges": [], "parent": None, "depth": None,
            }
        ]  # fmt: skip

    def test_the_whole_graph_has_also_those_that_the_entry_does_not_reach(self) -> None:
        one = asked(5, [(0, 0), (1, 2), (2, 1), (3, 4), (4, 3)])
        assert [row["header"] for row in one.loops().value["rows"]] == ["b0", "b1", "b3"]
        assert [row["header"] for row in one.loops("b0").value["rows"]] == ["b0"]

    def test_none_is_not_found(self) -> None:
        value = asked(2, [(0, 1)]).loops().value
        assert (value["status"], value["page"]["total"]) == ("not-found", 0)

    def test_6_000_loops_in_each_other(self) -> None:
        links = [(at, at + 1) for at in range(11_999)] + [(at, 11_999 - at) for at in range(6_000, 12_000)]
        value = asked(12_000, links).loops(offset=5_999).value
        assert [(row["header"], row["depth"], row["blocks"]) for row in value["rows"]] == [
            ("b5999", 6_000, ["b5999", "b6000"])
        ]
