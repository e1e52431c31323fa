"""A collection as a namespace: contracts, stubs, schemas and replies."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NotRequired

import pytest
from jsonschema import Draft202012Validator
from typing_extensions import TypedDict

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence import values
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Coverage, Limitation, Producer, Record, Subject, Success
from affidavit.facts import collection as facts
from affidavit.facts import page as shapes
from affidavit.facts.collection import Answer, Collection, CollectionSpec, ParentRef
from affidavit.facts.factfile import FactFileWriter, analysis_meta
from affidavit.namespaces.datasets.collections import collection_namespace
from affidavit.namespaces.operation import Namespace, Operation, Reply
from affidavit.namespaces.stubs import render

PRODUCER = Producer(name="javascript", version="1")


class SourceModule(TypedDict):
    """A module with a file."""

    strategy: Literal["source-module"]
    path: str


class UnresolvedModule(TypedDict):
    strategy: Literal["unresolved-module"]
    key: str


class ModulesRow(TypedDict):
    """One module."""

    node_id: str
    path: str | None
    kind: Literal["javascript-module", "asset"]
    identity: SourceModule | UnresolvedModule
    sites: int
    weight: NotRequired[float]
    basis: list[dict[str, str]]


class ModulesItem(ModulesRow):
    references: NotRequired[list[str]]


MODULES = CollectionSpec(
    name="modules",
    contract="javascript.modules",
    version=1,
    doc="One module.",
    row=ModulesRow,
    item=ModulesItem,
    key="node_id",
    where=("path", "kind"),
)
NO_FIELDS = replace(MODULES, name="plain", contract="javascript.plain", where=())


def module(at: int) -> dict[str, Any]:
    return {
        "node_id": f"n{at}",
        "path": None if at % 4 == 0 else "main.js",
        "kind": "asset" if at % 2 else "javascript-module",
        "identity": {"strategy": "unresolved-module", "key": f"external:p{at}"},
        "sites": at,
        "basis": [{"authority": "static-analysis"}],
    }


PARENT = ParentRef(
    evidence_id="ev1_" + "0" * 64,
    subject=Subject(digest="sha256:" + "a" * 64, format="asar"),
    coverage=Coverage(state="partial", selection="all files", examined=2, unknown=1),
    limitations=(Limitation(code="parse-error", place="a\ud800.js", message="at 3"),),
)


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[Collection]:
    writer = FactFileWriter(tmp_path / "f", [MODULES])
    for at in range(100):
        writer.add("modules", module(at), module(at) | {"references": ["x"]})
    meta = analysis_meta(summary={}, coverage=PARENT.coverage, limitations=PARENT.limitations)
    with writer.finish(meta) as facts:
        yield Collection(MODULES, facts, PARENT)


@pytest.fixture
def operations(modules: Collection) -> dict[str, Operation]:
    return dict(collection_namespace(MODULES, modules, producer=PRODUCER).operations)


def call(operation: Operation, **arguments: Any) -> Reply:
    async def run() -> Reply:
        return await operation.handler(operation.parse(arguments))

    return asyncio.run(run())


def shown(operation: Operation, reply: Reply) -> Any:
    """The result with what is outside the hash put in, as tagged JSON."""
    whole: Any = values.encode(operation.convert(reply.value))
    if operation.carries_evidence:
        whole["evidence_id"] = "ev1_" + "1" * 64
    for path, value in reply.outside.items():
        *parents, last = path.split(".")
        at = whole
        for name in parents:
            at = at[name]
        at[last] = value
    return whole


def problems(schema: Any, instance: Any) -> list[Any]:
    validator: Any = Draft202012Validator(schema)
    validator.check_schema(schema)
    return list(validator.iter_errors(instance))


def identity(operation: Operation, reply: Reply) -> str:
    record = Record(
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
        limitations=reply.limitations,
    )
    return record_id(record)


def test_contracts_know_no_mount(operations: dict[str, Operation]) -> None:
    assert {name: one.contract for name, one in operations.items()} == {
        "page": "javascript.modules.page/1",
        "get": "javascript.modules.get/1",
        "get_many": "javascript.modules.get_many/1",
        "count": "javascript.modules.count/1",
    }
    assert {(one.effect, one.producer, one.authority) for one in operations.values()} == {
        ("read", PRODUCER, "static-analysis")
    }
    assert operations["page"].streams == "pages"
    assert [name for name, one in operations.items() if one.carries_evidence] == ["page", "count"]


def test_stub_has_the_types_of_the_rows(operations: dict[str, Operation]) -> None:
    page = operations["page"]
    assert [(one.name, one.annotation, one.default, one.positional) for one in page.parameters] == [
        ("where", "ModulesWhere | None", None, True),
        ("cursor", "str | None", None, False),
        ("offset", "int | None", None, False),
        ("limit", "int", 64, False),
    ]
    assert page.returns == "Page[ModulesRow]"
    assert operations["get"].returns == "ModulesItem"
    assert operations["get_many"].returns == "list[Found[ModulesItem] | Missed]"
    assert operations["count"].returns == "Count"
    assert operations["count"].parameters[1].annotation == 'Literal["path", "kind"] | None'


def test_docs_are_sentences(operations: dict[str, Operation]) -> None:
    lower = collection_namespace(replace(MODULES, doc="every module"), opener_that_fails, producer=PRODUCER)
    expected = "One page of modules. Every module. Fields for `where` and `by`: path, kind."
    assert lower.operations["page"].doc == expected
    assert operations["page"].doc == expected.replace("Every", "One")


def test_stub_declares_where_with_lists_and_none(operations: dict[str, Operation]) -> None:
    (where,) = [one for one in operations["page"].declarations if "ModulesWhere" in one]
    assert "path: NotRequired[str | list[str] | list[str | None] | None]" in where


def test_stub_of_a_whole_tree_is_python(operations: dict[str, Operation]) -> None:
    plain = collection_namespace(NO_FIELDS, opener_that_fails, producer=PRODUCER)
    tree = Namespace(
        name="app", children={"modules": Namespace(name="modules", operations=operations), "plain": plain}
    )
    text = render(Namespace(name="df", children={"app": tree}))
    compile(text, "stub", "exec")
    assert "def pages(self, where: ModulesWhere | None = None" in text
    assert text.count("class ModulesRow(") == 1
    assert "Page_2" not in text


def test_the_prelude_of_stubs_has_the_shapes_that_collections_return() -> None:
    classes = {
        node.name: node
        for node in ast.parse(render(Namespace(name="df"))).body
        if isinstance(node, ast.ClassDef)
    }
    for name in shapes.__all__:
        fields = {
            node.target.id: ast.unparse(node.annotation).replace("_Row", "Row")
            for node in classes[name].body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        declared: dict[str, Any] = getattr(shapes, name).__annotations__
        assert fields == {
            key: ast.unparse(ast.parse(getattr(hint, "__forward_arg__", str(hint))))
            for key, hint in declared.items()
        }, name


class TestSchemas:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("page", {}),
            ("page", {"where": {}}),
            ("page", {"where": {"path": None}, "limit": 3}),
            ("page", {"where": {"path": ["main.js", None], "kind": "asset"}}),
            ("page", {"where": {"path": []}, "offset": 7}),
            ("get", {"id": "n1"}),
            ("get_many", {"ids": ["n1", "nope", "n1"]}),
            ("count", {}),
            ("count", {"where": {"kind": ["asset"]}, "by": "path"}),
        ],
    )
    def test_calls_and_results_are_what_the_schemas_say(
        self, operations: dict[str, Operation], name: str, arguments: Any
    ) -> None:
        operation = operations[name]
        assert problems(operation.input_schema, arguments) == []
        result = values.decode(shown(operation, call(operation, **arguments)))
        assert problems(operation.output_schema, result) == []

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("page", {"where": {"pth": "x"}}),
            ("page", {"where": {"path": 3}}),
            ("page", {"where": {"kind": "other"}}),
            ("page", {"where": "main.js"}),
            ("page", {"limit": 0}),
            ("page", {"limit": 1001}),
            ("page", {"offset": -1}),
            ("page", {"cursor": 3}),
            ("page", {"cursor": "garbage"}),
            ("page", {"limits": 3}),
            ("get", {}),
            ("get", {"id": None}),
            ("get_many", {"ids": "n1"}),
            ("get_many", {"ids": ["n1"] * 1001}),
            ("count", {"by": "pth"}),
        ],
    )
    def test_what_the_schema_refuses_the_call_refuses(
        self, operations: dict[str, Operation], name: str, arguments: Any
    ) -> None:
        operation = operations[name]
        if arguments != {"cursor": "garbage"}:  # a schema cannot tell a cursor from other text
            assert problems(operation.input_schema, arguments)
        with pytest.raises(UsageError) as caught:
            call(operation, **arguments)
        assert caught.value.hint

    def test_a_row_schema_knows_its_tags_and_optional_keys(self, operations: dict[str, Operation]) -> None:
        schema = operations["page"].output_schema
        assert schema is not None
        assert schema["$defs"]["SourceModule"]["properties"]["strategy"] == {"const": "source-module"}
        assert "weight" not in schema["$defs"]["ModulesRow"]["required"]
        assert schema["$defs"]["ModulesRow"]["additionalProperties"] is False


class TestParse:
    def test_fills_in_defaults(self, operations: dict[str, Operation]) -> None:
        assert operations["page"].parse({}) == {"where": None, "cursor": None, "offset": None, "limit": 64}

    def test_names_a_misspelt_argument(self, operations: dict[str, Operation]) -> None:
        with pytest.raises(UsageError) as caught:
            operations["page"].parse({"were": {}})
        assert caught.value.code == "arguments-invalid"
        assert "'where'" in caught.value.hint

    def test_names_a_missing_argument(self, operations: dict[str, Operation]) -> None:
        with pytest.raises(UsageError, match="`id` is missing"):
            operations["get"].parse({})


class TestReplies:
    def test_rest_on_the_analysis(self, operations: dict[str, Operation]) -> None:
        calls: list[tuple[str, Any]] = [
            ("page", {}),
            ("get", {"id": "n1"}),
            ("get_many", {"ids": []}),
            ("count", {}),
        ]
        for name, arguments in calls:
            reply = call(operations[name], **arguments)
            assert reply.subject == PARENT.subject
            assert reply.parents == (PARENT.evidence_id,)
            assert reply.coverage == PARENT.coverage
            assert reply.limitations == (), "they stand in the parent's record, once"

    def test_cursor_and_offset_give_one_evidence_id(self, operations: dict[str, Operation]) -> None:
        page = operations["page"]
        first = call(page, where={"kind": "asset"}, limit=10)
        by_cursor = call(page, where={"kind": ["asset"]}, cursor=first.outside["page.next_cursor"], limit=10)
        by_offset = call(page, where={"kind": "asset"}, offset=10, limit=10)
        assert by_cursor.normalised == {"where": {"kind": "asset"}, "offset": 10, "limit": 10}
        assert identity(page, by_cursor) == identity(page, by_offset) != identity(page, first)

    def test_defaults_written_out_give_one_evidence_id(self, operations: dict[str, Operation]) -> None:
        page = operations["page"]
        forms: list[Any] = [{}, {"where": {}}, {"where": None, "offset": 0}, {"limit": 64}]
        assert len({identity(page, call(page, **one)) for one in forms}) == 1

    def test_words_of_limitations_are_not_in_the_evidence_id(self, modules: Collection) -> None:
        seen: set[str] = set()
        for words in ["at 3", "somewhere else said"]:
            limitation = replace(PARENT.limitations[0], message=words)
            other = Collection(MODULES, modules._facts, replace(PARENT, limitations=(limitation,)))  # pyright: ignore[reportPrivateUsage]
            page = collection_namespace(MODULES, other, producer=PRODUCER).operations["page"]
            seen.add(identity(page, call(page)))
        assert len(seen) == 1

    def test_outside_is_json(self, operations: dict[str, Operation]) -> None:
        (limitation,) = call(operations["page"]).outside["limitations"]
        assert values.decode(limitation) == {"code": "parse-error", "place": "a\ud800.js", "message": "at 3"}


def opener_that_fails() -> Collection:
    raise FailedError("artifact-changed", "changed", hint="mount it again")


class TestOpening:
    def test_happens_at_each_call(self, modules: Collection) -> None:
        opened: list[int] = []

        def opener() -> Collection:
            opened.append(1)
            return modules

        count = collection_namespace(MODULES, opener, producer=PRODUCER).operations["count"]
        assert opened == []
        assert call(count).value["count"] == call(count).value["count"] == 100
        assert opened == [1, 1]

    def test_may_wait(self, modules: Collection) -> None:
        async def opener() -> Collection:
            await asyncio.sleep(0)
            return modules

        count = collection_namespace(MODULES, opener, producer=PRODUCER).operations["count"]
        assert call(count).value["count"] == 100

    def test_may_fail(self) -> None:
        count = collection_namespace(MODULES, opener_that_fails, producer=PRODUCER).operations["count"]
        with pytest.raises(AffidavitError) as caught:
            call(count)
        assert caught.value.code == "artifact-changed"


class TestLargeCollections:
    def test_are_asked_beside_the_loop(
        self, modules: Collection, operations: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = call(operations["page"])
        threads: list[threading.Thread] = []
        ask = Collection.page

        def noting(*arguments: Any, **named: Any) -> Answer:
            threads.append(threading.current_thread())
            return ask(*arguments, **named)

        monkeypatch.setattr(facts, "_QUICK_ROWS", 10)
        monkeypatch.setattr(Collection, "page", noting)
        assert call(operations["page"]) == expected
        assert threads != [threading.main_thread()]

    def test_fail_as_small_ones_do(
        self, operations: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(facts, "_QUICK_ROWS", 10)
        with pytest.raises(UsageError) as caught:
            call(operations["page"], where={"pth": 1})
        assert caught.value.code == "selector-invalid"

    def test_a_cancelled_call_ends_with_its_query(
        self, operations: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started, release, ended = threading.Event(), threading.Event(), threading.Event()

        def slow(*_: Any, **__: Any) -> Answer:
            started.set()
            release.wait(30)
            ended.set()
            return Answer(value=None, parameters={})

        monkeypatch.setattr(facts, "_QUICK_ROWS", 10)
        monkeypatch.setattr(Collection, "count", slow)

        async def run() -> None:
            task = asyncio.ensure_future(operations["count"].handler({"where": None, "by": None}))
            await asyncio.to_thread(started.wait, 30)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=0)
            assert not done
            release.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended.is_set()

        asyncio.run(run())
