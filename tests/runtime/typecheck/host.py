"""A host for scripts under test: stubs as the product renders them, for a dataset, two tools and some inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from affidavit.evidence.record import JsonValue, Producer
from affidavit.facts.collection import CollectionSpec
from affidavit.namespaces.datasets.collections import collection_namespace
from affidavit.namespaces.infer import input_stub
from affidavit.namespaces.operation import Namespace, Operation
from affidavit.namespaces.schema import operation_from_schema
from affidavit.namespaces.stubs import render

__all__ = ["RESULTS", "inputs", "stubs"]

_PRODUCER = Producer(name="test", version="1")


class SourceId(TypedDict):
    strategy: Literal["source"]
    key: str


class MissingId(TypedDict):
    strategy: Literal["missing"]
    key: str
    reason: str


class ModulesRow(TypedDict):
    node_id: str
    path: str | None
    kind: Literal["script", "data", "addon"]
    size: int
    sites: int
    tags: list[str]
    identity: SourceId | MissingId


class NotesRow(TypedDict):
    note_id: str
    text: str
    score: float
    done: bool


_MODULES = CollectionSpec(
    name="modules",
    contract="sample.modules",
    version=1,
    doc="Modules.",
    row=ModulesRow,
    item=ModulesRow,
    key="node_id",
    where=("path", "kind", "size", "node_id"),
)
_NOTES = CollectionSpec(
    name="notes",
    contract="sample.notes",
    version=1,
    doc="Notes.",
    row=NotesRow,
    item=NotesRow,
    key="note_id",
    where=("text", "done"),
)


def stubs() -> str:
    """The stub text of `df`."""
    db = {name: _dataset() for name in ("app", "other")}
    weather = [
        _tool("forecast", _object(["city"], city=_TEXT, days=_COUNT, unit={"enum": ["c", "f"]}), _FORECAST),
        _tool("add", _object(["a", "b"], a=_COUNT, b=_COUNT), _COUNT),
        _tool("raw", _object(["q"], q=_TEXT), None),
    ]
    shop = [
        _tool(
            "orders", _object(["customer"], customer=_TEXT, limit=_COUNT), {"type": "array", "items": _ORDER}
        ),
        _tool(
            "send-mail",
            _object(["to", "from"], to=_TEXT, **{"from": _TEXT}),
            {"type": "boolean"},
            "send_mail",
        ),
    ]
    tools = {"weather": _bundle("weather", weather), "shop": _bundle("shop", shop)}
    children = {"db": Namespace(name="db", children=db), "tool": Namespace(name="tool", children=tools)}
    return render(Namespace(name="df", children=children))


def inputs(values: Mapping[str, JsonValue]) -> str:
    """The stub text of some inputs."""
    return input_stub(values)


RESULTS = """\
from typing import Any, Literal, NotRequired, TypedDict, overload

class NewestData(TypedDict):
    counts: dict[str, int]
    names: list[str]
    best: str | None

class Newest:
    @property
    def data(self) -> NewestData: ...
    @property
    def error(self) -> None: ...

class Older:
    @property
    def data(self) -> int: ...
    @property
    def error(self) -> None: ...

class Results:
    @overload
    def __getitem__(self, index: Literal[0, -2], /) -> Newest: ...
    @overload
    def __getitem__(self, index: Literal[1, -1], /) -> Older: ...
    @overload
    def __getitem__(self, index: int, /) -> Any: ...
    def __len__(self) -> int: ...
    @property
    def last(self) -> Newest: ...
    def by_run(self, number: int) -> Any: ...

results: Results
"""
"""Inputs as a session declares them: two earlier results, the newer one a record, the older one a number."""

_TEXT: JsonValue = {"type": "string"}
_COUNT: JsonValue = {"type": "integer"}


def _object(required: list[str], **properties: JsonValue) -> JsonValue:
    return {"type": "object", "properties": properties, "required": list[JsonValue](required)}


_HOUR = _object(["hour", "celsius"], hour=_COUNT, celsius={"type": "number"})
_FORECAST = _object(
    ["city", "high", "hours"],
    city=_TEXT,
    high={"type": "number"},
    note=_TEXT,
    hours={"type": "array", "items": _HOUR},
)
_ORDER = _object(
    ["id", "total", "status"],
    id=_COUNT,
    total={"type": "number"},
    status={"enum": ["open", "paid"]},
    email={"anyOf": [_TEXT, {"type": "null"}]},
)


async def _never(arguments: dict[str, Any]) -> Any:
    raise AssertionError("checking calls nothing")


def _tool(original: str, given: JsonValue, result: JsonValue, name: str | None = None) -> Operation:
    return operation_from_schema(
        name or original,
        given,
        result,
        _never,
        contract=f"test.{original}/1",
        effect="read",
        producer=_PRODUCER,
    )


def _bundle(name: str, tools: list[Operation]) -> Namespace:
    return Namespace(name=name, operations={tool.name: tool for tool in tools})


def _dataset() -> Namespace:
    def opened() -> Any:
        raise AssertionError("checking opens nothing")

    children = {
        spec.name: collection_namespace(spec, opened, producer=_PRODUCER) for spec in (_MODULES, _NOTES)
    }
    return Namespace(name="dataset", children=children)
