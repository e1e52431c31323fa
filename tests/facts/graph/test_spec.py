"""Graphs from rows and from fact files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from affidavit.errors import FailedError, NotFoundError, UsageError, VerificationError
from affidavit.facts.factfile import FactFile, FactFileWriter, analysis_meta
from affidavit.facts.graph.model import Bounds
from affidavit.facts.graph.spec import GraphSpec, graph_of_facts, graph_of_rows
from affidavit.facts.spec import CollectionSpec
from tests.facts.graph.graphs import EDGES, FLOW, PARENT, edge_row, queries, to


def block_row(at: int, function: str = "f", kind: str | None = None) -> dict[str, Any]:
    return {"block_id": f"b{at}", "function": function, "exit": kind}


@pytest.fixture
def facts(tmp_path: Path) -> Iterator[FactFile]:
    """Two functions, their rows mixed: `f` is b0 -> b2 -> b4, and `g` is b1 <-> b3 with a jump to somewhere."""
    writer = FactFileWriter(tmp_path / "facts", [FLOW.blocks, FLOW.edges])
    for at in range(5):
        writer.add("blocks", block_row(at, "fg"[at % 2], "return" if at == 4 else None))
    for at, (source, target, function) in enumerate(
        [(0, 2, "f"), (1, 3, "g"), (2, 4, "f"), (3, 1, "g"), (3, None, "g")]
    ):
        writer.add("edges", edge_row(at, source, target, at, function))
    meta = analysis_meta(summary={}, coverage=PARENT.coverage, limitations=())
    with writer.finish(meta) as made:
        yield made


class TestFacts:
    def test_each_owner_has_its_own_graph(self, facts: FactFile) -> None:
        f, g = graph_of_facts(FLOW, facts, "f"), graph_of_facts(FLOW, facts, "g")
        assert (f.blocks, f.edges, f.exits) == (
            ("b0", "b2", "b4"),
            ("e0", "e2"),
            (None, None, "return"),
        )
        assert (g.blocks, g.exits, g.unresolved) == (("b1", "b3"), (None, "unresolved"), {1})
        value = queries(f).path("b0", to("b4")).value
        assert [row["operation"] for row in value["rows"]] == ["0x0:jmp", "0x2:jmp"]
        assert queries(f).path("b0", to("b1")).value["missing"] == [{"argument": "target", "id": "b1"}]

    def test_an_owner_without_blocks_is_not_found(self, facts: FactFile) -> None:
        with pytest.raises(NotFoundError) as caught:
            graph_of_facts(FLOW, facts, "h")
        assert caught.value.code == "item-not-found"
        assert "function" in caught.value.hint

    @pytest.mark.parametrize("bounds", [Bounds(blocks=2), Bounds(edges=1)])
    def test_a_graph_beyond_its_bounds_is_not_read(
        self, facts: FactFile, bounds: Bounds, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FactFile, "rows", None)
        with pytest.raises(FailedError) as caught:
            graph_of_facts(replace(FLOW, bounds=bounds), facts, "f")
        assert caught.value.code == "graph-too-large"

    def test_without_owner_all_rows_are_one_graph(self, facts: FactFile) -> None:
        calls = replace(FLOW, owner=None)
        one = queries(graph_of_facts(calls, facts, None), calls)
        assert one.graph.blocks == ("b0", "b1", "b2", "b3", "b4")
        answer = one.path("b0", to("b4"))
        assert "function" not in answer.parameters
        assert answer.value["status"] == "found"

    def test_which_has_no_entry(self, facts: FactFile) -> None:
        calls = replace(FLOW, owner=None)
        one = queries(graph_of_facts(calls, facts, None), calls)
        with pytest.raises(UsageError) as caught:
            one.dominators()
        assert caught.value.details == {"path": "$.source"}
        assert one.dominators(source="b0").value["page"]["total"] == 3

    def test_more_rows_than_are_read_at_once(self, tmp_path: Path) -> None:
        writer = FactFileWriter(tmp_path / "facts", [FLOW.blocks, FLOW.edges])
        for at in range(2_500):
            writer.add("blocks", block_row(at, "fg"[at % 2]))
        with writer.finish(analysis_meta(summary={}, coverage=PARENT.coverage, limitations=())) as made:
            assert graph_of_facts(FLOW, made, "g").blocks == tuple(f"b{at}" for at in range(1, 2_500, 2))


class TestRows:
    def test_calls_between_functions(self) -> None:
        functions = CollectionSpec(
            name="functions", contract="sample.functions", version=1, doc="", row=Function, item=Function,
            key="function_id", where=(),
        )  # fmt: skip
        calls = CollectionSpec(
            name="calls",
            contract="sample.calls",
            version=1,
            doc="",
            row=Call,
            item=Call,
            key="call_id",
            where=(),
        )
        spec = GraphSpec(
            contract="sample.calls", version=1, blocks=functions, edges=calls, owner=None, source="caller",
            target="callee", ordinal=None, exit=None,
        )  # fmt: skip
        rows = [("main", "parse"), ("main", "log"), ("parse", "log"), ("log", None)]
        one = graph_of_rows(
            spec,
            None,
            [{"function_id": name} for name in ("main", "parse", "log", "leaf")],
            [{"call_id": f"c{at}", "caller": a, "callee": b} for at, (a, b) in enumerate(rows)],
        )
        assert one.exits == (None, None, "unresolved", "return")
        asked = queries(one, spec)
        assert asked.path("main", to("log")).value["rows"] == [
            {"call_id": "c1", "caller": "main", "callee": "log", "step_index": 0}
        ]
        assert asked.path("main", to("leaf")).value["certificate"]["unresolved"] == ["log"]

    @pytest.mark.parametrize(
        ("block", "edge"),
        [
            ({"block_id": 3}, {}),
            ({"exit": "gone"}, {}),
            ({"exit": ["return"]}, {}),
            ({}, {"edge_id": None}),
            ({}, {"from": None}),
            ({}, {"from": 3}),
            ({}, {"to": 3}),
            ({}, {"to": "b9"}),
            ({}, {"ordinal": "0"}),
            ({}, {"ordinal": None}),
            ({}, {"ordinal": True}),
        ],
    )
    def test_of_the_wrong_type_make_none(self, block: dict[str, Any], edge: dict[str, Any]) -> None:
        with pytest.raises(VerificationError) as caught:
            graph_of_rows(FLOW, "f", [block_row(0) | block], [edge_row(0, 0, 0, 0) | edge])
        assert caught.value.code == "graph-invalid"

    @pytest.mark.parametrize("field", ["edge_id", "from", "to", "ordinal"])
    def test_without_a_field_make_none(self, field: str) -> None:
        row = edge_row(0, 0, 0, 0)
        del row[field]
        with pytest.raises(VerificationError, match=field):
            graph_of_rows(FLOW, "f", [block_row(0)], [row])


class Function(TypedDict):
    function_id: str


class Call(TypedDict):
    call_id: str
    caller: str
    callee: str | None


class Stepped(TypedDict):
    edge_id: str
    step_index: int


class TestDeclaration:
    @pytest.mark.parametrize("field", ["owner", "source", "target", "ordinal", "exit"])
    def test_names_fields_that_rows_have(self, field: str) -> None:
        change: dict[str, Any] = {field: "nope"}
        with pytest.raises(TypeError, match="nope"):
            replace(FLOW, **change)

    def test_leaves_the_step_to_paths(self) -> None:
        edges = replace(EDGES, row=Stepped, item=Stepped, where=())
        with pytest.raises(TypeError, match="step_index"):
            replace(FLOW, edges=edges, owner=None, source="edge_id", target="edge_id", ordinal=None)
