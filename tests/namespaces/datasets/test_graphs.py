"""The graphs of a dataset as operations: contracts, stubs, schemas, replies, and where they run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from affidavit.errors import FailedError, NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Producer, Record, Success
from affidavit.facts.collection import Collection, ParentRef
from affidavit.facts.factfile import FactFile, FactFileWriter, analysis_meta
from affidavit.facts.graph.model import Graph
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.resident import ResidentGraphs
from affidavit.facts.graph.spec import FactGraphs, GraphSpec
from affidavit.namespaces.datasets import graphs as room
from affidavit.namespaces.datasets.collections import collection_namespace
from affidavit.namespaces.datasets.graphs import graph_operations
from affidavit.namespaces.operation import Namespace, Operation, Reply
from affidavit.namespaces.stubs import render
from tests.facts.graph.graphs import EXIT, FLOW, PARENT, edge_row, graph, to
from tests.namespaces.checkers import ty

PRODUCER = Producer(name="sample", version="3")
VERBS = ["path", "paths", "reachable", "must_pass", "dominators", "loops"]


class Functions:
    """Two functions: `f` has a check at `b1` that `b2` goes round, `g` is one block."""

    spec: GraphSpec = FLOW

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.changed = False

    def parent(self, owner: str | None) -> ParentRef:
        if self.changed:
            raise FailedError("artifact-changed", "changed", hint="mount it again")
        return PARENT

    def load(self, owner: str | None) -> Graph:
        self.threads.append(threading.current_thread())
        if owner == "f":
            return graph(4, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 3)], {3: "return"})
        if owner == "g":
            return graph(1, [])
        raise NotFoundError("item-not-found", f"no function {owner}", hint="see functions.page()")


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def operations(functions: Functions) -> dict[str, Operation]:
    return graph_operations(FLOW, functions, producer=PRODUCER)


def call(operation: Operation, **arguments: Any) -> Reply:
    async def run() -> Reply:
        return await operation.handler(operation.parse(arguments))

    return asyncio.run(run())


def identity(operation: Operation, reply: Reply) -> str:
    return record_id(
        Record(
            kind="observation",
            operation=operation.contract,
            parameters=values.encode(dict(reply.normalised or {})),
            outcome=Success(result=values.encode(reply.value)),
            producer=operation.producer,
            authority=operation.authority,
            confidence=operation.confidence,
            subject=reply.subject,
            parents=reply.parents,
            coverage=reply.coverage,
        )
    )


def problems(schema: Any, instance: Any) -> list[Any]:
    validator: Any = Draft202012Validator(schema)
    validator.check_schema(schema)
    return list(validator.iter_errors(instance))


def shown(reply: Reply) -> dict[str, Any]:
    """A reply as a caller sees it."""
    value: dict[str, Any] = dict(reply.value) | {"evidence_id": "ev1_" + "1" * 64}
    value["page"] = value["page"] | {"next_cursor": reply.outside["page.next_cursor"]}
    return value


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("path", {"source": "b0", "target": EXIT}),
    ("path", {"source": "b0", "target": {"kind": "exit", "exit": ["return", "trap"]}, "limit": 1}),
    ("path", {"source": "b0", "target": to("b3"), "avoid": ["b1", "b2"], "avoid_edges": ["e0"]}),
    ("path", {"source": "x", "target": to("b3")}),
    ("paths", {"source": "b0", "target": to("b3"), "k": 1}),
    ("paths", {"source": "b0", "target": to("b3"), "offset": 1}),
    ("reachable", {"block": "b3", "direction": "backward", "avoid": ["b1"]}),
    ("must_pass", {"source": "b0", "target": EXIT}),
    ("dominators", {}),
    ("dominators", {"block": "b3", "direction": "backward", "exit": ["return"]}),
    ("dominators", {"block": "b3", "source": "b1"}),
    ("loops", {}),
    ("loops", {"source": "b3"}),
]


class TestDeclaration:
    def test_contracts_know_no_mount(self, operations: dict[str, Operation]) -> None:
        assert list(operations) == VERBS
        assert [one.contract for one in operations.values()] == [f"sample.{verb}/1" for verb in VERBS]
        assert {(one.effect, one.confidence, one.carries_evidence) for one in operations.values()} == {
            ("read", "derived", True)
        }

    def test_calls_begin_with_the_owner(self, operations: dict[str, Operation]) -> None:
        for one in operations.values():
            first = one.parameters[0]
            assert (first.name, first.annotation, first.required, first.positional) == (
                "function",
                "str",
                True,
                True,
            )

    def test_a_graph_of_everything_has_no_owner(self, functions: Functions) -> None:
        calls = graph_operations(replace(FLOW, owner=None), functions, producer=PRODUCER)
        assert [one.name for one in calls["path"].parameters][:2] == ["source", "target"]
        dominators = {one.name: one.annotation for one in calls["dominators"].parameters}
        assert dominators["source"] == "str"

    def test_the_stub_is_python_and_types_rows(self, operations: dict[str, Operation]) -> None:
        tree = Namespace(name="df", children={"bin": Namespace(name="bin", operations=operations)})
        text = render(tree)
        compile(text, "stub", "exec")
        assert "-> GraphReply[EdgesStep]" in text
        assert text.count("class GraphReply(_Struct, Generic[_Row])") == 1
        assert 'def __getitem__(self, key: Literal["rows"], /) -> list[_Row]' in text
        assert operations["path"].parameters[2].annotation == "BlockTarget | ExitTarget"

    def test_what_scripts_are_checked_against(self, operations: dict[str, Operation], tmp_path: Path) -> None:
        """Attributes and items of replies have their types, and mistakes are found."""
        tree = Namespace(name="df", children={"bin": Namespace(name="bin", operations=operations)})
        files = {
            "host.pyi": render(tree),
            "good.py": GOOD,
            **{f"bad_{at}.py": HEAD + line for at, line in enumerate(BAD)},
        }
        found = ty(tmp_path, files)
        assert (found["host.pyi"], found["good.py"]) == ([], [])
        assert {name for name in files if name.startswith("bad_") and not found[name]} == set()


HEAD = "from host import df\n\nasync def main() -> None:\n    reply = await df.bin.path"
GOOD = (
    HEAD
    + """("f", "b0", {"kind": "exit"}, avoid=["b1"])
    total: int | None = reply.page.total
    for row in reply.rows:
        step: int = row["step_index"]
        source: str = row["from"]
    if reply.certificate is not None:
        cut: list[str] = reply.certificate.blocks + reply.certificate["edges"]
    if reply.status == "unknown":
        missing: str = reply.missing[0]["id"]
    tree = await df.bin.dominators("f", "b3", direction="backward", exit=["return"])
    above: str | None = tree.rows[0]["immediate"]
    loops = await df.bin.loops("f")
    inside: list[str] = loops["rows"][0]["blocks"]
"""
)
BAD = (
    '("f", "b0")\n',
    '("f", "b0", "b3")\n',
    '("f", "b0", {"kind": "block"})\n',
    '("f", "b0", {"kind": "exit", "exit": ["leave"]})\n',
    '("f", "b0", {"kind": "exit"}, avoids=[])\n',
    '("f", "b0", {"kind": "exit"})\n    reply.row\n',
    '("f", "b0", {"kind": "exit"})\n    reply.rows[0]["steps"]\n',
    '("f", "b0", {"kind": "exit"})\n    reply.page.totals\n',
    '("f", "b0", {"kind": "exit"})\n    number: str = reply.page.total\n',
)


class TestSchemas:
    @pytest.mark.parametrize(("verb", "arguments"), CALLS)
    def test_calls_and_replies_are_what_they_say(
        self, operations: dict[str, Operation], verb: str, arguments: dict[str, Any]
    ) -> None:
        operation = operations[verb]
        whole = {"function": "f"} | arguments
        assert problems(operation.input_schema, whole) == []
        assert problems(operation.output_schema, shown(call(operation, **whole))) == []

    @pytest.mark.parametrize(
        ("verb", "arguments"),
        [
            ("path", {"source": "b0"}),
            ("path", {"target": EXIT}),
            ("path", {"source": "b0", "target": "b3"}),
            ("path", {"source": "b0", "target": {"kind": "block"}}),
            ("path", {"source": "b0", "target": {"kind": "exit", "exit": ["leave"]}}),
            ("path", {"source": "b0", "target": EXIT, "avoid": "b1"}),
            ("path", {"source": "b0", "target": EXIT, "limit": 0}),
            ("path", {"source": "b0", "target": EXIT, "k": 3}),
            ("paths", {"source": "b0", "target": EXIT, "k": 0}),
            ("reachable", {"block": "b0", "direction": "up"}),
            ("dominators", {"exit": "return", "direction": "backward"}),
            ("loops", {"source": 3}),
            ("loops", {"function": 3}),
        ],
    )
    def test_what_they_refuse_the_call_refuses(
        self, operations: dict[str, Operation], verb: str, arguments: dict[str, Any]
    ) -> None:
        whole = {"function": "f"} | arguments
        assert problems(operations[verb].input_schema, whole)
        with pytest.raises(UsageError) as caught:
            call(operations[verb], **whole)
        assert caught.value.hint

    def test_the_owner_is_needed(self, operations: dict[str, Operation]) -> None:
        with pytest.raises(UsageError, match="`function` is missing"):
            operations["loops"].parse({})


class TestReplies:
    @pytest.mark.parametrize(("verb", "arguments"), CALLS)
    def test_rest_on_the_analysis_and_cover_the_graph(
        self, operations: dict[str, Operation], verb: str, arguments: dict[str, Any]
    ) -> None:
        reply = call(operations[verb], function="f", **arguments)
        assert (reply.subject, reply.parents) == (PARENT.subject, (PARENT.evidence_id,))
        assert reply.coverage is not None
        assert reply.coverage.examined == reply.value["coverage"]["examined"] == 4

    def test_equal_questions_have_one_evidence_id(self, operations: dict[str, Operation]) -> None:
        path = operations["path"]
        kinds = ["trap", "return", "tail-call", "noreturn"]
        forms: list[dict[str, Any]] = [
            {"target": EXIT},
            {"target": {"kind": "exit", "exit": kinds}, "avoid": []},
            {"target": EXIT, "offset": 0, "limit": 64, "avoid_edges": []},
        ]
        ids = {identity(path, call(path, function="f", source="b0", **form)) for form in forms}
        assert len(ids) == 1

    def test_a_cursor_and_an_offset_have_one_evidence_id(self, operations: dict[str, Operation]) -> None:
        path = operations["path"]
        question: dict[str, Any] = {"function": "f", "source": "b0", "target": to("b3"), "limit": 1}
        cursor = call(path, **question).outside["page.next_cursor"]
        by_cursor, by_offset = call(path, **question, cursor=cursor), call(path, **question, offset=1)
        assert identity(path, by_cursor) == identity(path, by_offset)

    def test_a_cursor_of_another_function_is_refused(self, operations: dict[str, Operation]) -> None:
        reachable = operations["reachable"]
        cursor = call(reachable, function="f", block="b0", limit=1).outside["page.next_cursor"]
        with pytest.raises(UsageError) as caught:
            call(reachable, function="g", block="b0", limit=1, cursor=cursor)
        assert caught.value.code == "cursor-mismatch"


class TestOpening:
    def test_a_graph_is_loaded_once_and_beside_the_loop(
        self, operations: dict[str, Operation], functions: Functions
    ) -> None:
        for verb, arguments in CALLS:
            call(operations[verb], function="f", **arguments)
        assert len(functions.threads) == 1
        assert functions.threads[0] is not threading.main_thread()

    def test_residents_may_be_shared(self, functions: Functions) -> None:
        shared = ResidentGraphs()
        both = [graph_operations(FLOW, functions, producer=PRODUCER, resident=shared) for _ in range(2)]
        for one in both:
            call(one["loops"], function="f")
        assert len(functions.threads) == 1

    def test_the_artifact_is_looked_at_before_each_call(
        self, operations: dict[str, Operation], functions: Functions
    ) -> None:
        call(operations["loops"], function="f")
        functions.changed = True
        with pytest.raises(FailedError) as caught:
            call(operations["loops"], function="f")
        assert caught.value.code == "artifact-changed"

    def test_what_is_not_there_says_so_each_time(self, operations: dict[str, Operation]) -> None:
        for _ in range(2):
            with pytest.raises(NotFoundError) as caught:
                call(operations["path"], function="h", source="b0", target=EXIT)
            assert caught.value.code == "item-not-found"

    @pytest.fixture
    def ways(self, monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
        threads: list[threading.Thread] = []

        def noting(ask: Any) -> Any:
            def noted(asked: GraphQueries, **given: Any) -> Any:
                threads.append(threading.current_thread())
                return ask(asked, **given)

            return noted

        monkeypatch.setattr(GraphQueries, "loops", noting(GraphQueries.loops))
        monkeypatch.setattr(GraphQueries, "reachable", noting(GraphQueries.reachable))
        return threads

    def test_quick_queries_over_small_resident_graphs_are_asked_at_once_and_others_in_a_thread(
        self, operations: dict[str, Operation], ways: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reachable = operations["reachable"]
        expected = [call(reachable, function="f", block="b0") for _ in range(2)][1]
        call(operations["loops"], function="f")
        monkeypatch.setattr(room, "_INLINE_EDGES", 4)
        assert call(reachable, function="f", block="b0") == expected
        assert [one is threading.main_thread() for one in ways] == [False, True, False, False]


class TestFactFiles:
    @pytest.fixture
    def facts(self, tmp_path: Path) -> Iterator[FactFile]:
        writer = FactFileWriter(tmp_path / "facts", [FLOW.blocks, FLOW.edges])
        for at, kind in enumerate([None, None, "return"]):
            writer.add("blocks", {"block_id": f"b{at}", "function": "f", "exit": kind})
        for at in range(2):
            writer.add("edges", edge_row(at, at, at + 1, 0))
        meta = analysis_meta(summary={}, coverage=PARENT.coverage, limitations=())
        with writer.finish(meta) as made:
            yield made

    def test_answer_as_graphs_and_as_collections(self, facts: FactFile) -> None:
        """A step of a path is the row that the collection shows, and its place."""
        graphs = FactGraphs(FLOW, lambda: (facts, PARENT))
        path = call(
            graph_operations(FLOW, graphs, producer=PRODUCER)["path"], function="f", source="b0", target=EXIT
        )
        edges = call(
            collection_namespace(
                FLOW.edges, Collection(FLOW.edges, facts, PARENT), producer=PRODUCER
            ).operations["page"]
        )
        assert path.value["rows"] == [row | {"step_index": at} for at, row in enumerate(edges.value["rows"])]
        assert path.value["source"] == edges.value["source"]

    def test_a_changed_artifact_stops_questions(self) -> None:
        def opened() -> tuple[FactFile, ParentRef]:
            raise FailedError("artifact-changed", "changed", hint="mount it again")

        operations = graph_operations(FLOW, FactGraphs(FLOW, opened), producer=PRODUCER)
        with pytest.raises(FailedError, match="changed"):
            call(operations["loops"], function="f")
