"""A collection as a namespace: `page` (and `pages`), `get`, `get_many` and `count`, typed by its rows."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, Union

from typing_extensions import TypedDict

from affidavit.evidence.record import Authority, Confidence, Producer
from affidavit.facts.collection import MAX_IDS, Answer, Collection, CollectionSpec
from affidavit.facts.page import Count, Found, Missed, Page
from affidavit.facts.spec import FieldType, field_types
from affidavit.namespaces.datasets.queries import (
    PAGING,
    Argument,
    Query,
    beside_the_loop,
    operation,
    reply,
    sentence,
)
from affidavit.namespaces.operation import Handler, Namespace, Operation, Reply
from affidavit.namespaces.typeddicts import StubTypes

__all__ = ["Opener", "collection_namespace"]

Opener: TypeAlias = Callable[[], Collection | Awaitable[Collection]]
"""Gives the collection, at each call; it may analyze, wait, or raise `AffidavitError`."""

_Ask: TypeAlias = Callable[[Collection, dict[str, Any]], Answer]


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
    for query, ask in _queries(spec):
        operations[query.name] = operation(
            query,
            _handler(ask, collection),
            stub,
            producer=producer,
            authority=authority,
            confidence=confidence,
        )
    return Namespace(name=spec.name, doc=spec.doc, operations=operations)


def _queries(spec: CollectionSpec) -> tuple[tuple[Query, _Ask], ...]:
    fields = field_types(spec)
    row: Any = spec.row
    item: Any = spec.item
    where = Argument(
        name="where",
        type=_where(spec, fields) | None,
        doc="Equality by field; a list means any of; None means unknown. Omitted selects every row.",
        positional=True,
    )
    literal: Any = Literal
    by: Any = literal[tuple(fields)] | None if fields else None
    rows = sentence(spec.doc)
    asked = (
        f"Fields for `where` and `by`: {', '.join(fields)}." if fields else "It has no fields to select by."
    )

    def contract(verb: str) -> str:
        return f"{spec.contract}.{verb}/{spec.version}"

    page = Query(
        name="page",
        contract=contract("page"),
        doc=f"One page of {spec.name}. {rows} {asked}",
        arguments=(where, *PAGING),
        returns=Page[row],
        carries_evidence=True,
        streams="pages",
    )
    get = Query(
        name="get",
        contract=contract("get"),
        doc=f"The full item with this {spec.key}. Raises `item-not-found`. {rows}",
        arguments=(
            Argument(name="id", type=str, doc=f"A row's {spec.key}.", required=True, positional=True),
        ),
        returns=item,
    )
    get_many = Query(
        name="get_many",
        contract=contract("get_many"),
        doc=f"Many full items: in the order asked, with repeats, each `found` or `failed`. {rows}",
        arguments=(
            Argument(
                name="ids",
                type=list[str],
                doc=f"Up to {MAX_IDS} values of {spec.key}.",
                required=True,
                positional=True,
                bounds={"maxItems": MAX_IDS},
            ),
        ),
        returns=list[Found[item] | Missed],
    )
    count = Query(
        name="count",
        contract=contract("count"),
        doc=f"How many {spec.name} match, also by value of one field. {rows} {asked}",
        arguments=(where, Argument(name="by", type=by, doc="The field to group by.")),
        returns=Count,
        carries_evidence=True,
    )
    return (
        (page, lambda opened, given: opened.page(**given)),
        (get, lambda opened, given: opened.get(**given)),
        (get_many, lambda opened, given: opened.get_many(**given)),
        (count, lambda opened, given: opened.count(**given)),
    )


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


def _handler(ask: _Ask, collection: Collection | Opener) -> Handler:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        opened = collection if isinstance(collection, Collection) else collection()
        if inspect.isawaitable(opened):
            opened = await opened
        asked = opened
        if asked.quick:
            answer = ask(asked, arguments)
        else:
            answer = await beside_the_loop(lambda: ask(asked, arguments))
        return reply(answer, asked.parent, asked.parent.coverage)

    return handler
