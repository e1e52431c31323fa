"""A collection as a namespace: `page` (and `pages`), `get`, `get_many` and `count`, typed by its rows."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, Union

from typing_extensions import TypedDict

from affidavit.errors import UsageError
from affidavit.evidence.record import Authority, Confidence, JsonValue, Producer
from affidavit.facts.collection import (
    DEFAULT_LIMIT,
    MAX_IDS,
    MAX_LIMIT,
    Answer,
    Collection,
    CollectionSpec,
)
from affidavit.facts.page import Count, Found, Missed, Page
from affidavit.facts.spec import FieldType, field_types
from affidavit.namespaces.names import suggestion
from affidavit.namespaces.operation import Namespace, Operation, Parameter, Reply
from affidavit.namespaces.typeddicts import StubTypes, arguments_schema, json_schema

__all__ = ["Opener", "collection_namespace"]

Opener: TypeAlias = Callable[[], Collection | Awaitable[Collection]]
"""Gives the collection, at each call; it may analyze, wait, or raise `AffidavitError`."""

_INLINE_ROWS = 50_000
"""Up to this many rows a query takes about as long as handing it to a thread and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Argument:
    """One argument of a query: its type and what its schema says beyond that."""

    name: str
    type: Any
    doc: str
    required: bool = False
    default: JsonValue = None
    positional: bool = False
    bounds: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One of the queries: what it is called, takes, gives back and does."""

    name: str
    doc: str
    arguments: tuple[_Argument, ...]
    returns: Any
    ask: Callable[[Collection, dict[str, Any]], Answer]
    carries_evidence: bool = False
    streams: str | None = None


def collection_namespace(
    spec: CollectionSpec,
    collection: Collection | Opener,
    *,
    producer: Producer,
    authority: Authority = "static-analysis",
    confidence: Confidence = "observed",
) -> Namespace:
    """The operations of one collection.

    Args:
        spec: what it holds; stubs and schemas need nothing else.
        collection: the collection, or what gives it at each call.
        producer: the analyzer, with its contract version.
        authority: what its rows rest on.
        confidence: how strong they are.
    """
    stub = StubTypes()
    operations: dict[str, Operation] = {}
    for query in _queries(spec):
        operations[query.name] = _operation(
            query, spec, collection, stub, producer=producer, authority=authority, confidence=confidence
        )
    return Namespace(name=spec.name, doc=spec.doc, operations=operations)


def _queries(spec: CollectionSpec) -> tuple[_Query, ...]:
    fields = field_types(spec)
    row: Any = spec.row
    item: Any = spec.item
    where = _Argument(
        name="where",
        type=_where(spec, fields) | None,
        doc="Equality by field; a list means any of; None means unknown. Omitted selects every row.",
        positional=True,
    )
    literal: Any = Literal
    by: Any = literal[tuple(fields)] | None if fields else None
    rows = _sentence(spec.doc)
    asked = (
        f"Fields for `where` and `by`: {', '.join(fields)}." if fields else "It has no fields to select by."
    )
    return (
        _Query(
            name="page",
            doc=f"One page of {spec.name}. {rows} {asked}",
            arguments=(
                where,
                _Argument(
                    name="cursor", type=str | None, doc="`page.next_cursor` of an earlier page of this query."
                ),
                _Argument(
                    name="offset",
                    type=int | None,
                    doc="Number of the first row among the matching ones, from 0. Not together with `cursor`.",
                    bounds={"minimum": 0},
                ),
                _Argument(
                    name="limit",
                    type=int,
                    doc=f"Rows at most, 1 to {MAX_LIMIT}. A page also ends at 256 KB and then says `shortened`.",
                    default=DEFAULT_LIMIT,
                    bounds={"minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
                ),
            ),
            returns=Page[row],
            ask=lambda asked, given: asked.page(**given),
            carries_evidence=True,
            streams="pages",
        ),
        _Query(
            name="get",
            doc=f"The full item with this {spec.key}. Raises `item-not-found`. {rows}",
            arguments=(
                _Argument(name="id", type=str, doc=f"A row's {spec.key}.", required=True, positional=True),
            ),
            returns=item,
            ask=lambda asked, given: asked.get(**given),
        ),
        _Query(
            name="get_many",
            doc=f"Many full items: in the order asked, with repeats, each `found` or `failed`. {rows}",
            arguments=(
                _Argument(
                    name="ids",
                    type=list[str],
                    doc=f"Up to {MAX_IDS} values of {spec.key}.",
                    required=True,
                    positional=True,
                    bounds={"maxItems": MAX_IDS},
                ),
            ),
            returns=list[Found[item] | Missed],
            ask=lambda asked, given: asked.get_many(**given),
        ),
        _Query(
            name="count",
            doc=f"How many {spec.name} match, also by value of one field. {rows} {asked}",
            arguments=(where, _Argument(name="by", type=by, doc="The field to group by.")),
            returns=Count,
            ask=lambda asked, given: asked.count(**given),
            carries_evidence=True,
        ),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _where(spec: CollectionSpec, fields: Mapping[str, FieldType]) -> Any:
    """The TypedDict of `where`, called after the row class: `ModulesRow` has `ModulesWhere`."""
    name = spec.row.__name__.removesuffix("Row") + "Where"
    typed_dict: Any = TypedDict  # made at run time from the spec
    where: Any = typed_dict(name, {field: _asked(kind) for field, kind in fields.items()}, total=False)
    where.__doc__ = "Equality by field; a list means any of; None means unknown."
    return where


def _asked(kind: FieldType) -> Any:
    """What a `where` field takes: a value, any of a list, or None.

    Both list types are there because `list` is invariant: a list without None is no `list[str | None]`.
    """
    if kind.choices:
        literal: Any = Literal
        one: Any = literal[kind.choices]
    else:
        union: Any = Union
        one = union[kind.types] if kind.types else None
    return one | list[one] | list[one | None] | None


def _operation(
    query: _Query,
    spec: CollectionSpec,
    collection: Collection | Opener,
    stub: StubTypes,
    *,
    producer: Producer,
    authority: Authority,
    confidence: Confidence,
) -> Operation:
    parameters = tuple(
        Parameter(
            name=one.name,
            original=one.name,
            annotation=stub.annotation(one.type),
            required=one.required,
            default=one.default,
            positional=one.positional,
            doc=one.doc,
        )
        for one in query.arguments
    )
    return Operation(
        name=query.name,
        contract=f"{spec.contract}.{query.name}/{spec.version}",
        effect="read",
        doc=query.doc,
        parameters=parameters,
        input_schema=_input_schema(query.arguments),
        output_schema=json_schema(query.returns),
        returns=stub.annotation(query.returns),
        declarations=stub.declarations,
        handler=_handler(query, collection),
        parse=_parser(query.arguments),
        convert=_unchanged,
        producer=producer,
        authority=authority,
        confidence=confidence,
        carries_evidence=query.carries_evidence,
        streams=query.streams,
    )


def _input_schema(arguments: tuple[_Argument, ...]) -> dict[str, JsonValue]:
    schema = arguments_schema({one.name: (one.type, one.required) for one in arguments})
    for one in arguments:
        schema["properties"][one.name] |= {"description": one.doc} | dict(one.bounds)
    return schema


def _parser(arguments: tuple[_Argument, ...]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Checks which arguments there are and fills in the defaults; the query itself checks their values."""
    names = [one.name for one in arguments]

    def parse(given: Mapping[str, Any]) -> dict[str, Any]:
        for name in given:
            if name not in names:
                raise UsageError(
                    "arguments-invalid",
                    f"there is no argument {ascii(name)[:80]}",
                    hint=suggestion(name, names),
                    details={"path": "$"},
                )
        for one in arguments:
            if one.required and one.name not in given:
                raise UsageError(
                    "arguments-invalid",
                    f"the argument `{one.name}` is missing",
                    hint=f"`{one.name}`: {one.doc}",
                    details={"path": "$"},
                )
        return {one.name: given.get(one.name, one.default) for one in arguments}

    return parse


def _handler(query: _Query, collection: Collection | Opener) -> Callable[[dict[str, Any]], Awaitable[Reply]]:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        opened = collection if isinstance(collection, Collection) else collection()
        if inspect.isawaitable(opened):
            opened = await opened
        asked = opened
        if asked.total <= _INLINE_ROWS:
            return _reply(asked, query.ask(asked, arguments))
        # A thread cannot be stopped; a cancelled call therefore waits for its query, which is short, and then ends.
        working = asyncio.ensure_future(asyncio.to_thread(query.ask, asked, arguments))
        try:
            answer = await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.wait([working])
            raise
        return _reply(asked, answer)

    return handler


def _reply(collection: Collection, answer: Answer) -> Reply:
    parent = collection.parent
    return Reply(
        value=answer.value,
        outside=answer.outside,
        normalised=answer.parameters,
        subject=parent.subject,
        parents=(parent.evidence_id,),
        coverage=parent.coverage,
    )


def _unchanged(value: Any) -> Any:
    return value
