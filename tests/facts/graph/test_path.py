"""`path`: witnesses and their order, exclusions, exits, missing ids, pages, and what a caller may do with a reply."""

from __future__ import annotations

import random
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.facts.graph.model import Block, Edge, Graph
from affidavit.facts.graph.queries import MAX_SHOWN_UNRESOLVED, GraphQueries
from tests.facts.graph.graphs import EXIT, PARENT, asked, graph, queries, steps, to

DIAMOND = ((0, 1, 1), (0, 2, 0), (1, 3), (2, 3))
"""`b0` to `b3` over `b1` or `b2`; the edge to `b2` comes first."""


class TestWitness:
    def test_of_equal_length_the_first_by_ordinal_then_by_place(self) -> None:
        assert steps(asked(4, DIAMOND).path("b0", to("b3"))) == ["e1", "e3"]
        assert steps(asked(4, [(0, 1), (0, 2), (1, 3), (2, 3)]).path("b0", to("b3"))) == ["e0", "e2"]

    def test_the_first_edge_decides_before_later_ones(self) -> None:
        # Over b1 the second step has the better ordinal, over b2 the first.
        links = [(0, 1, 1), (0, 2, 0), (1, 3, 0), (2, 3, 9)]
        assert steps(asked(4, links).path("b0", to("b3"))) == ["e1", "e3"]

    def test_shorter_comes_before_first(self) -> None:
        assert steps(asked(4, [(0, 1), (1, 2), (2, 3), (0, 3, 7)]).path("b0", to("b3"))) == ["e3"]

    def test_parallel_edges_are_told_apart(self) -> None:
        one = asked(2, [(0, 1, 5), (0, 1, 2), (0, 1, 2)])
        assert steps(one.path("b0", to("b1"))) == ["e1"]
        assert steps(one.path("b0", to("b1"), avoid_edges=["e1"])) == ["e2"]
        assert steps(one.path("b0", to("b1"), avoid_edges=["e1", "e2"])) == ["e0"]
        cut = one.path("b0", to("b1"), avoid_edges=["e0", "e1", "e2"]).value
        assert cut["status"] == "not-found"
        assert cut["certificate"]["edges"] == ["e0", "e1", "e2"]

    def test_rows_are_the_native_records_with_their_place(self) -> None:
        one = asked(3, [(0, 1, 3), (1, 2, 4)])
        rows = one.path("b0", to("b2")).value["rows"]
        assert rows == [{**one.graph.rows[at], "step_index": at} for at in (0, 1)]

    def test_self_loops_are_never_steps(self) -> None:
        one = asked(2, [(0, 0, -9), (0, 1), (1, 1, -9)], {1: "return"})
        assert steps(one.path("b0", to("b1"))) == ["e1"]
        assert steps(one.path("b0", EXIT)) == ["e1"]

    def test_a_block_reaches_itself_by_no_edge(self) -> None:
        for one in (asked(1, []), asked(1, [(0, 0)])):
            value = one.path("b0", to("b0")).value
            assert (value["status"], value["rows"], value["certificate"]) == ("found", [], None)
            assert value["page"] == {
                "offset": 0, "returned": 0, "total": 0, "exhausted": True, "shortened": False,
            }  # fmt: skip


class TestExclusions:
    def test_go_round(self) -> None:
        one = asked(4, DIAMOND)
        assert steps(one.path("b0", to("b3"), avoid=["b2"])) == ["e0", "e2"]
        assert steps(one.path("b0", to("b3"), avoid_edges=["e3"])) == ["e0", "e2"]

    def test_the_certificate_is_the_cut(self) -> None:
        one = asked(6, [*DIAMOND, (3, 4), (4, 5)])
        value = one.path("b0", to("b5"), avoid=["b2", "b5"], avoid_edges=["e2"]).value
        assert value["certificate"] == {
            "reached": 2, "blocks": ["b2"], "edges": ["e2"], "unresolved": [], "unresolved_omitted": 0,
        }  # fmt: skip

    def test_an_excluded_start_or_end_is_no_path(self) -> None:
        one = asked(4, DIAMOND)
        start = one.path("b0", to("b3"), avoid=["b0"]).value
        assert (start["status"], start["certificate"]["reached"]) == ("not-found", 0)
        assert start["certificate"]["blocks"] == ["b0"]
        end = one.path("b0", to("b3"), avoid=["b3"]).value
        assert (end["status"], end["certificate"]["blocks"]) == ("not-found", ["b3"])
        itself = one.path("b0", to("b0"), avoid=["b0"]).value
        assert (itself["status"], itself["page"]["total"]) == ("not-found", 0)

    def test_without_any_connection_the_certificate_is_empty(self) -> None:
        certificate = asked(3, [(1, 0)]).path("b0", to("b1"), avoid=["b2"]).value["certificate"]
        assert (certificate["reached"], certificate["blocks"], certificate["edges"]) == (1, [], [])

    def test_order_and_repeats_of_exclusions_say_nothing(self) -> None:
        one = asked(4, DIAMOND)
        first = one.path("b0", to("b3"), avoid=["b2", "b1", "b2"])
        again = one.path("b0", to("b3"), avoid=["b1", "b2"])
        assert first.parameters == again.parameters
        assert first.value == again.value


class TestExits:
    def test_the_nearest_of_the_asked_kinds(self) -> None:
        one = asked(4, [(0, 1), (1, 2), (2, 3)], {1: "trap", 2: "tail-call", 3: "return"})
        assert steps(one.path("b0", EXIT)) == ["e0"]
        assert steps(one.path("b0", {"kind": "exit", "exit": ["return", "tail-call"]})) == ["e0", "e1"]
        assert steps(one.path("b0", {"kind": "exit", "exit": ["return"]})) == ["e0", "e1", "e2"]
        assert one.path("b0", {"kind": "exit", "exit": []}).value["status"] == "not-found"

    def test_kinds_left_out_are_all_but_unresolved(self) -> None:
        one = asked(2, [(0, 1)], {1: "unresolved"})
        value = one.path("b0", EXIT).value
        assert value["status"] == "not-found"
        assert value["certificate"]["unresolved"] == ["b1"]
        assert value["coverage"] == {
            "state": "partial", "selection": "all blocks", "examined": 2, "omitted": 0, "unknown": 1,
            "bounds": {"blocks": 12_000, "edges": 50_000},
        }  # fmt: skip
        assert steps(one.path("b0", {"kind": "exit", "exit": ["unresolved"]})) == ["e0"]
        kinds = ["return", "noreturn", "tail-call", "trap"]
        assert one.path("b0", EXIT).parameters["target"] == {"kind": "exit", "exit": kinds}

    def test_a_graph_without_exits_has_no_path_to_one(self) -> None:
        value = asked(2, [(0, 1), (1, 0)]).path("b0", EXIT).value
        assert (value["status"], value["certificate"]["reached"]) == ("not-found", 2)

    def test_a_long_list_of_unresolved_blocks_is_cut_and_counted(self) -> None:
        many = MAX_SHOWN_UNRESOLVED + 7
        one = asked(
            many + 1, [(0, at + 1) for at in range(many)], dict.fromkeys(range(1, many + 1), "unresolved")
        )
        certificate = one.path("b0", EXIT).value["certificate"]
        assert (len(certificate["unresolved"]), certificate["unresolved_omitted"]) == (
            MAX_SHOWN_UNRESOLVED,
            7,
        )


class TestMissing:
    def test_every_missing_id_is_named_with_its_argument(self) -> None:
        value = asked(2, [(0, 1)]).path("x", to("y"), avoid=["b0", "z"], avoid_edges=["e0", "e9"]).value
        assert value["status"] == "unknown"
        assert value["missing"] == [
            {"argument": "source", "id": "x"},
            {"argument": "target", "id": "y"},
            {"argument": "avoid", "id": "z"},
            {"argument": "avoid_edges", "id": "e9"},
        ]
        assert (value["rows"], value["page"]["total"], value["certificate"]) == ([], None, None)

    @pytest.mark.parametrize("name", ["", "B0", "b0 ", "\ud800", "b\x000", "0", "e0"])
    def test_an_id_is_compared_as_it_is(self, name: str) -> None:
        one = asked(2, [(0, 1)])
        assert one.path(name, to("b1")).value["missing"] == [{"argument": "source", "id": name}]
        assert one.path("b0", to("b1"), avoid=[name]).value["status"] == "unknown"

    def test_a_missing_id_hides_behind_nothing(self) -> None:
        # Neither an excluded start nor a path that is there lets an unknown exclusion pass unseen.
        one = asked(2, [(0, 1)])
        assert one.path("b0", to("b1"), avoid=["b0", "nope"]).value["status"] == "unknown"
        assert one.path("b0", to("b0"), avoid=["nope"]).value["status"] == "unknown"


class TestReportedFaults:
    """Kinds of fault that others' path queries were reported for, on one small graph."""

    NAMES = ("in", "left", "join", "out", "right", "far", "apart", "self")
    LINKS = ((0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 2), (6, 0), (7, 7))

    def queries(self) -> GraphQueries:
        blocks = [Block(name) for name in self.NAMES]
        edges = [
            Edge(f"{self.NAMES[a]}-{self.NAMES[b]}", self.NAMES[a], self.NAMES[b], 0, {"to": self.NAMES[b]})
            for a, b in self.LINKS
        ]
        return queries(Graph.build(blocks, edges, owner="f"))

    @pytest.mark.parametrize(
        ("source", "target", "avoid", "path"),
        [
            ("in", "out", [], ["left", "join", "out"]),
            ("in", "out", ["left"], ["right", "far", "join", "out"]),
            ("in", "out", ["join"], None),
            ("in", "out", ["left", "far"], None),
            ("in", "in", [], []),
            ("self", "self", [], []),
            ("in", "apart", [], None),
            ("in", "out", ["in"], None),
            ("in", "out", ["out"], None),
            ("in", "in", ["in"], None),
            ("in", "out", ["nope"], "unknown"),
            ("in", "nope", [], "unknown"),
            ("nope", "out", [], "unknown"),
        ],
    )
    def test_answers(self, source: str, target: str, avoid: list[str], path: list[str] | str | None) -> None:
        value = self.queries().path(source, to(target), avoid).value
        if isinstance(path, list):
            assert (value["status"], [row["to"] for row in value["rows"]]) == ("found", path)
        else:
            assert value["status"] == (path or "not-found")


class TestPages:
    def test_pages_add_up(self) -> None:
        one = asked(101, [(at, at + 1) for at in range(100)])
        whole = one.path("b0", to("b100"), limit=1000).value["rows"]
        assert [row["step_index"] for row in whole] == list(range(100))
        found: list[Any] = []
        answer = one.path("b0", to("b100"), limit=33)
        while True:
            found += answer.value["rows"]
            cursor = answer.outside["page.next_cursor"]
            if cursor is None:
                break
            answer = one.path("b0", to("b100"), cursor=cursor, limit=33)
        assert found == whole
        assert answer.value["page"] == {
            "offset": 99, "returned": 1, "total": 100, "exhausted": True, "shortened": False,
        }  # fmt: skip

    def test_a_page_past_the_end_is_empty_and_the_path_still_found(self) -> None:
        value = asked(3, [(0, 1), (1, 2)]).path("b0", to("b2"), offset=2).value
        assert (value["status"], value["rows"]) == ("found", [])
        assert (value["page"]["total"], value["page"]["exhausted"]) == (2, True)

    def test_cursor_and_offset_are_one_question(self) -> None:
        one = asked(5, [(at, at + 1) for at in range(4)])
        first = one.path("b0", to("b4"), limit=2)
        by_cursor = one.path("b0", to("b4"), limit=2, cursor=first.outside["page.next_cursor"])
        by_offset = one.path("b0", to("b4"), limit=2, offset=2)
        assert by_cursor == by_offset

    def test_a_cursor_belongs_to_its_question(self) -> None:
        one = asked(5, [(at, at + 1) for at in range(4)])
        cursor = one.path("b0", to("b4"), limit=2).outside["page.next_cursor"]
        question: dict[str, Any] = {"source": "b0", "target": to("b4"), "cursor": cursor}
        others: list[dict[str, Any]] = [
            {"avoid": ["b1"]}, {"target": to("b3")}, {"source": "b1"}, {"avoid_edges": ["e3"]},
        ]  # fmt: skip
        for other in others:
            with pytest.raises(UsageError) as caught:
                one.path(**(question | other))
            assert caught.value.code == "cursor-mismatch"
        with pytest.raises(UsageError) as caught:
            one.must_pass("b0", to("b4"), cursor=cursor)
        assert caught.value.code == "cursor-mismatch"

    def test_a_page_ends_at_its_bound_on_bytes(self) -> None:
        wide = {"text": "x" * 100_000}
        blocks = [Block(f"b{at}", None if at < 5 else "return") for at in range(6)]
        edges = [Edge(f"e{at}", f"b{at}", f"b{at + 1}", 0, wide) for at in range(5)]
        one = queries(Graph.build(blocks, edges, owner="f"))
        value = one.path("b0", to("b5")).value
        assert (value["page"]["returned"], value["page"]["shortened"], value["page"]["exhausted"]) == (
            2,
            True,
            False,
        )


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"source": 3}, "arguments-invalid"),
        ({"source": None}, "arguments-invalid"),
        ({"target": "b1"}, "arguments-invalid"),
        ({"target": {}}, "arguments-invalid"),
        ({"target": {"kind": "block"}}, "arguments-invalid"),
        ({"target": {"kind": "block", "id": 3}}, "arguments-invalid"),
        ({"target": {"kind": "block", "id": "b1", "exit": []}}, "arguments-invalid"),
        ({"target": {"kind": "exit", "id": "b1"}}, "arguments-invalid"),
        ({"target": {"kind": "exit", "exit": ["returns"]}}, "arguments-invalid"),
        ({"target": {"kind": "exit", "exit": "return"}}, "arguments-invalid"),
        ({"target": {"kind": "exit", "exit": [["return"]]}}, "arguments-invalid"),
        ({"avoid": "b1"}, "arguments-invalid"),
        ({"avoid": {"b1": 1}}, "arguments-invalid"),
        ({"avoid": ["b1", 3]}, "arguments-invalid"),
        ({"avoid_edges": [None]}, "arguments-invalid"),
        ({"avoid": [f"x{at}" for at in range(12_001)]}, "arguments-invalid"),
        ({"avoid": [f"x{at}" for at in range(12_000)], "avoid_edges": ["e0"]}, "arguments-invalid"),
        ({"limit": 0}, "limit-invalid"),
        ({"limit": True}, "limit-invalid"),
        ({"limit": 1001}, "limit-invalid"),
        ({"offset": -1}, "limit-invalid"),
        ({"cursor": "x"}, "cursor-invalid"),
        ({"cursor": "x", "offset": 0}, "limit-invalid"),
    ],
)
def test_what_is_no_question_is_refused_with_its_place(wrong: dict[str, Any], code: str) -> None:
    question: dict[str, Any] = {"source": "b0", "target": to("b1")}
    with pytest.raises(UsageError) as caught:
        asked(2, [(0, 1)]).path(**(question | wrong))
    assert caught.value.code == code
    assert caught.value.hint


class TestReplies:
    def test_belong_to_the_caller(self) -> None:
        one = asked(3, [(0, 1), (1, 2)])
        first = one.path("b0", to("b2"))
        kept = repr(first)
        for row in first.value["rows"]:
            row["edge_id"] = "changed"
            row.clear()
        first.value["rows"].clear()
        first.value["coverage"]["bounds"].clear()
        first.parameters["avoid"].append("b1")
        assert repr(one.path("b0", to("b2"))) == kept
        gone = one.path("b0", to("b2"), avoid=["b1"])
        kept = repr(gone)
        gone.value["certificate"]["blocks"].append("x")
        assert repr(one.path("b0", to("b2"), avoid=["b1"])) == kept

    def test_hold_nested_records_apart_from_the_graph(self) -> None:
        row = {"operation": {"text": "jne", "bytes": [1, 2]}}
        built = Graph.build([Block("a"), Block("b")], [Edge("e", "a", "b", 0, row)], owner="f")
        one = queries(built)
        one.path("a", to("b")).value["rows"][0]["operation"]["bytes"].append(3)
        assert one.path("a", to("b")).value["rows"][0]["operation"]["bytes"] == [1, 2]

    def test_say_what_they_rest_on(self) -> None:
        value = asked(1, []).path("b0", EXIT).value
        assert value["source"] == {
            "evidence_id": PARENT.evidence_id, "artifact": PARENT.subject.digest, "format": "elf",
        }  # fmt: skip


class TestLargeGraphs:
    def test_a_chain_of_12_000_blocks(self) -> None:
        one = asked(12_000, [(at, at + 1) for at in range(11_999)])
        value = one.path("b0", EXIT, offset=11_900, limit=1000).value
        assert value["page"]["total"] == 11_999
        assert [row["step_index"] for row in value["rows"]] == list(range(11_900, 11_999))
        assert one.path("b0", EXIT, avoid=["b11998"]).value["certificate"]["reached"] == 11_998

    def test_12_000_blocks_50_000_edges_and_1_000_exclusions(self) -> None:
        shuffle = random.Random(5)
        links = [
            (shuffle.randrange(12_000), shuffle.randrange(12_000), shuffle.randrange(9))
            for _ in range(50_000)
        ]
        one = asked(12_000, links)
        for _ in range(3):
            gone = shuffle.sample(range(12_000), 1_000)
            start, goal = shuffle.sample(sorted(set(range(12_000)) - set(gone)), 2)
            avoid = [f"b{at}" for at in gone]
            value = one.path(f"b{start}", to(f"b{goal}"), avoid, limit=1000).value
            levels = by_distance(one.graph, start, set(gone))
            assert (value["status"] == "found") == any(goal in level for level in levels)
            if value["status"] == "found":
                blocks = [f"b{start}", *(row["to"] for row in value["rows"])]
                assert blocks[:-1] == [row["from"] for row in value["rows"]]
                assert goal in levels[len(blocks) - 1]
                assert not set(blocks) & set(avoid)

    def test_a_not_found_names_the_whole_cut(self) -> None:
        # A grid of 100 by 100 blocks, its middle column excluded.
        links = [(at, at + 1) for at in range(10_000) if at % 100 < 99]
        links += [(at, at + 100) for at in range(9_900)]
        one = queries(graph(10_000, links))
        wall = [f"b{row * 100 + 50}" for row in range(100)]
        value = one.path("b0", to("b9999"), avoid=wall).value
        assert value["status"] == "not-found"
        assert value["certificate"]["reached"] == 5_000
        assert sorted(value["certificate"]["blocks"]) == sorted(wall)


def by_distance(one: Graph, start: int, gone: set[int]) -> list[set[int]]:
    """Blocks by their distance, one whole pass over all edges for each step."""
    levels = [{start}]
    seen = {start} | gone
    while levels[-1]:
        following = {
            target for source, target in zip(one.sources, one.targets, strict=True) if source in levels[-1]
        }
        levels.append(following - seen)
        seen |= following
    return levels
