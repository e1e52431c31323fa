"""Operations and namespaces for tests."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from affidavit.evidence.record import JsonValue, Producer
from affidavit.namespaces.operation import Namespace, Operation, Parameter
from affidavit.namespaces.schema import operation_from_schema

PRODUCER = Producer(name="sample", version="1")


async def echo(arguments: dict[str, Any]) -> Any:
    """Give back what arrived."""
    return arguments


def tool(name: str, arguments: JsonValue = None, result: JsonValue = None, doc: str = "") -> Operation:
    """An operation from schemas that gives back what it was given."""
    return operation_from_schema(
        name,
        arguments,
        result,
        echo,
        contract=f"sample.{name}/1",
        effect="read",
        producer=PRODUCER,
        doc=doc or f"Does {name}.",
    )


def called(operation: Operation, arguments: dict[str, Any]) -> Any:
    """What a call gives, as a script would see it: parsed, performed, converted."""

    async def call() -> Any:
        reply = await operation.handler(operation.parse(arguments))
        return operation.convert(reply.value)

    return asyncio.run(call())


def namespace(name: str, *operations: Operation, doc: str = "", **children: Namespace) -> Namespace:
    """A namespace of these operations and children."""
    return Namespace(name=name, doc=doc, operations={one.name: one for one in operations}, children=children)


def collection(row: str = "ModulesRow", fields: str = "path: str") -> tuple[Operation, ...]:
    """Paged and counted operations over one kind of row."""
    declarations = (
        f"class {row}(TypedDict):\n    {fields}",
        f"class {row}Where(TypedDict, total=False):\n    path: str | list[str] | None",
    )
    where = Parameter(
        name="where", original="where", annotation=f"{row}Where | None", required=False, positional=True
    )
    limit = Parameter(name="limit", original="limit", annotation="int", required=False, default=64)
    base = replace(
        tool("page", doc="One page of rows."), parameters=(where, limit), declarations=declarations
    )
    page = replace(base, returns=f"Page[{row}]", streams="pages", carries_evidence=True)
    count = replace(base, name="count", doc="How many rows match.", returns="Count", carries_evidence=True)
    many = replace(
        base,
        name="get_many",
        doc="Many rows by id.",
        returns=f"list[Found[{row}] | Missed]",
        parameters=(Parameter(name="ids", original="ids", annotation="Sequence[str]", positional=True),),
    )
    return page, count, many
