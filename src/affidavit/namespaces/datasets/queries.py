"""How a query over facts becomes an operation: its arguments, its schema, its stub and its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from affidavit.errors import UsageError
from affidavit.evidence.record import Authority, Confidence, Coverage, JsonValue, Producer
from affidavit.facts.collection import DEFAULT_LIMIT, MAX_LIMIT, Answer, ParentRef
from affidavit.namespaces.names import suggestion
from affidavit.namespaces.operation import Handler, Operation, Parameter, Reply
from affidavit.namespaces.typeddicts import StubTypes, arguments_schema, json_schema

__all__ = ["PAGING", "Argument", "Query", "beside_the_loop", "operation", "reply", "sentence"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a query: its type and what its schema says beyond that."""

    name: str
    type: Any
    doc: str
    required: bool = False
    default: JsonValue = None
    positional: bool = False
    bounds: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


PAGING = (
    Argument(name="cursor", type=str | None, doc="`page.next_cursor` of an earlier page of this query."),
    Argument(
        name="offset",
        type=int | None,
        doc="Number of the first row among the matching ones, from 0. Not together with `cursor`.",
        bounds={"minimum": 0},
    ),
    Argument(
        name="limit",
        type=int,
        doc=f"Rows at most, 1 to {MAX_LIMIT}. A page also ends at 256 KB and then says `shortened`.",
        default=DEFAULT_LIMIT,
        bounds={"minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    ),
)
"""Which page of its rows a query shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a query is called, takes and gives back.

    Attributes:
        contract: the name that enters records, with version.
        carries_evidence: the result is a mapping that shows its own `evidence_id`.
        streams: name of the companion that iterates its pages, or None.
    """

    name: str
    contract: str
    doc: str
    arguments: tuple[Argument, ...]
    returns: Any
    carries_evidence: bool = False
    streams: str | None = None


def operation(
    query: Query,
    handler: Handler,
    stub: StubTypes,
    *,
    producer: Producer,
    authority: Authority,
    confidence: Confidence,
) -> Operation:
    """The operation of a query. Queries of one namespace share `stub`, so that classes are declared once."""
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
        contract=query.contract,
        effect="read",
        doc=query.doc,
        parameters=parameters,
        input_schema=_input_schema(query.arguments),
        output_schema=json_schema(query.returns),
        returns=stub.annotation(query.returns),
        declarations=stub.declarations,
        handler=handler,
        parse=_parser(query.arguments),
        convert=_unchanged,
        producer=producer,
        authority=authority,
        confidence=confidence,
        carries_evidence=query.carries_evidence,
        streams=query.streams,
    )


def reply(answer: Answer, parent: ParentRef, coverage: Coverage) -> Reply:
    """The reply to a query whose rows rest on `parent`."""
    return Reply(
        value=answer.value,
        outside=answer.outside,
        normalised=answer.parameters,
        subject=parent.subject,
        parents=(parent.evidence_id,),
        coverage=coverage,
    )


async def beside_the_loop(ask: Callable[[], T]) -> T:
    """Ask in a thread. It cannot be stopped, so a cancelled call waits for its query, which is short, and then ends."""
    working = asyncio.ensure_future(asyncio.to_thread(ask))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def sentence(text: str) -> str:
    """The text with a capital and one full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _input_schema(arguments: tuple[Argument, ...]) -> dict[str, JsonValue]:
    schema = arguments_schema({one.name: (one.type, one.required) for one in arguments})
    for one in arguments:
        schema["properties"][one.name] |= {"description": one.doc} | dict(one.bounds)
    return schema


def _parser(arguments: tuple[Argument, ...]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
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


def _unchanged(value: Any) -> Any:
    return value
