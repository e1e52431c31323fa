"""Operations from foreign JSON Schemas: an MCP tool, an OpenAPI operation, anything that says its contract in JSON.

The schema is the contract. From it come the Python parameters, the stub's types, the validation of arguments before
they leave, and the conversion of results, so that a script meets the JSON types that were declared and no others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

from affidavit.errors import FailedError, UsageError
from affidavit.evidence.record import Authority, Confidence, JsonValue, Producer
from affidavit.namespaces._annotator import Annotator
from affidavit.namespaces._jsonschema import json_path, normalise, resolve
from affidavit.namespaces._quick import NOT_KNOWN
from affidavit.namespaces._validation import Contract
from affidavit.namespaces.names import class_name, identifiers, readable, suggestion
from affidavit.namespaces.operation import Effect, Operation, Parameter, Reply

__all__ = ["Pieces", "SchemaCall", "operation_from_schema", "pieces"]

SchemaCall = Callable[[dict[str, Any]], Awaitable[Any]]
"""Performs one call with validated arguments under their original names; returns the value or a `Reply`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What two schemas say about an operation; see the fields of `Operation`."""

    parameters: tuple[Parameter, ...]
    returns: str
    declarations: tuple[str, ...]
    input_schema: Mapping[str, JsonValue]
    output_schema: Mapping[str, JsonValue] | None
    parse: Callable[[Mapping[str, Any]], dict[str, Any]]
    convert: Callable[[Any], Any]


def operation_from_schema(
    name: str,
    input_schema: JsonValue,
    output_schema: JsonValue,
    call: SchemaCall,
    *,
    contract: str,
    effect: Effect,
    producer: Producer,
    doc: str = "",
    authority: Authority = "live-source",
    confidence: Confidence = "observed",
    reserved: AbstractSet[str] = frozenset(),
) -> Operation:
    """An operation whose contract is given as JSON Schema (draft-04 to 2020-12, OpenAPI 3.0 and 3.1).

    Args:
        name: the operation's Python name, unique in its namespace (see `names.identifiers`).
        input_schema: an object schema, or None for no arguments. Property names travel unchanged.
        output_schema: schema of the result, or None when the far side declares none; then the result is `Any`.
        call: performs the call. Optional arguments that the script omits are not in what it receives; defaults are
            the far side's business.
        contract: full contract name with version (`mcp.weather.forecast/1`).
        effect: what calling it may do.
        producer: who makes the observation, with its own contract version.
        doc: description for stubs and discovery.
        authority: what kind of source answers.
        confidence: how strong the answer is as evidence.
        reserved: parameter names that scripts cannot use.

    Raises:
        UsageError: `schema-unsupported`, naming the place.
    """
    made = pieces(name, input_schema, output_schema, reserved=reserved)

    async def handler(arguments: dict[str, Any], /) -> Reply:
        answer = await call(arguments)
        return answer if isinstance(answer, Reply) else Reply(value=answer)

    return Operation(
        name=name,
        contract=contract,
        effect=effect,
        doc=readable(doc),
        parameters=made.parameters,
        input_schema=made.input_schema,
        output_schema=made.output_schema,
        returns=made.returns,
        handler=handler,
        parse=made.parse,
        convert=made.convert,
        producer=producer,
        authority=authority,
        confidence=confidence,
        declarations=made.declarations,
    )


def pieces(
    name: str, input_schema: JsonValue, output_schema: JsonValue, *, reserved: AbstractSet[str] = frozenset()
) -> Pieces:
    """Everything about an operation that follows from its schemas alone. Raises `UsageError(schema-unsupported)`."""
    what = f"{name!r}"
    given = normalise({} if input_schema is None else input_schema, what=f"the arguments of {what}")
    arguments = _object_schema(given, what)
    annotator = Annotator()
    parameters = _parameters(arguments, given, annotator, class_name(name), reserved)
    returns, result, convert = "Any", None, _as_it_is
    if output_schema is not None:
        result = normalise(output_schema, what=f"the result of {what}")
        returns = annotator.annotation(
            result, document=result, direction="output", hint=_result_name(result, name)
        )
        convert = _converter(result, what)
    shown: dict[str, JsonValue] = (
        given if isinstance(given, dict) and given else {"type": "object", "properties": {}}
    )
    return Pieces(
        parameters=parameters,
        returns=returns,
        declarations=tuple(annotator.declared.values()),
        input_schema=shown,
        output_schema=None
        if result is None
        else result
        if isinstance(result, dict)
        else {}
        if result
        else {"not": {}},
        parse=_parser(shown, what, tuple(parameter.original for parameter in parameters)),
        convert=convert,
    )


def _object_schema(schema: dict[str, JsonValue] | bool, what: str) -> dict[str, JsonValue]:
    """The properties that any way through an arguments schema may take, as one object schema."""
    if isinstance(schema, bool):
        if schema:
            return {}
        raise _no_object(what, "false")
    properties: dict[str, JsonValue] = {}
    required = _gather(schema, schema, properties, 0)
    kind = schema.get("type", "object")
    kinds = cast("list[JsonValue]", kind) if isinstance(kind, list) else [kind]
    if "object" not in kinds:
        raise _no_object(what, " or ".join(str(one) for one in kinds))
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key in required],
    }


def _gather(
    node: JsonValue, document: dict[str, JsonValue], properties: dict[str, JsonValue], depth: int
) -> set[str]:
    """Collect properties into `properties`; returns the names that are always required."""
    if not isinstance(node, dict) or depth > 20:
        return set()
    schema = cast("dict[str, JsonValue]", node)
    required: set[str] = {str(key) for key in cast("list[JsonValue]", schema.get("required", []))}
    for key, value in cast("dict[str, JsonValue]", schema.get("properties", {})).items():
        properties[key] = value if key not in properties else {"anyOf": [properties[key], value]}
    for key in required:
        properties.setdefault(key, True)
    if "$ref" in schema:
        required |= _gather(resolve(document, str(schema["$ref"])), document, properties, depth + 1)
    for part in cast("list[JsonValue]", schema.get("allOf", [])):
        required |= _gather(part, document, properties, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        branches = [
            _gather(part, document, properties, depth + 1)
            for part in cast("list[JsonValue]", schema.get(keyword, []))
        ]
        if branches:
            required |= set[str].intersection(*branches)
    return required


def _parameters(
    arguments: dict[str, JsonValue],
    document: dict[str, JsonValue] | bool,
    annotator: Annotator,
    hint: str,
    reserved: AbstractSet[str],
) -> tuple[Parameter, ...]:
    fields = annotator.fields(arguments, document=document, direction="input", hint=hint)
    properties = cast("dict[str, JsonValue]", arguments.get("properties", {}))
    names = identifiers(fields, reserved=reserved, fallback="argument")
    required = [key for key, (_, needed) in fields.items() if needed]
    ordered = [*required, *(key for key in fields if key not in required)]
    return tuple(
        Parameter(
            name=names[key],
            original=key,
            annotation=fields[key][0],
            required=fields[key][1],
            default=_note(properties.get(key), "default"),
            # JSON objects have no order, so a place means something only when there is a single one to fill
            positional=required == [key],
            doc=readable(" ".join(str(_note(properties.get(key), "description") or "").split())),
        )
        for key in ordered
    )


def _result_name(schema: JsonValue, name: str) -> str:
    title = _note(schema, "title")
    return class_name(title if isinstance(title, str) else "", fallback=class_name(name) + "Result")


def _note(schema: JsonValue, key: str) -> JsonValue:
    return cast("dict[str, JsonValue]", schema).get(key) if isinstance(schema, dict) else None


def _parser(
    schema: dict[str, JsonValue], what: str, names: tuple[str, ...]
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    contract = Contract(schema, what=f"the arguments of {what}")
    open_ended = _takes_more(schema)

    def parse(arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        unknown = [key for key in given if key not in names]
        if unknown and not open_ended:
            raise UsageError(
                "arguments-invalid",
                f"{what} has no argument {unknown[0]!r}",
                hint=suggestion(unknown[0], names, otherwise="It takes"),
                details={"path": json_path([unknown[0]])},
            )
        plain = contract.quick(given)
        if plain is not NOT_KNOWN:
            return plain
        value = contract.declared(given)
        problem = contract.problem(value)
        if problem is not None:
            raise UsageError(
                "arguments-invalid",
                f"{what} refuses its arguments at {problem.path}: {problem.message}",
                hint="Call describe with its path for the types it takes.",
                details={"path": problem.path},
            )
        return cast("dict[str, Any]", value)

    return parse


def _takes_more(schema: Mapping[str, JsonValue]) -> bool:
    """Whether arguments that the schema does not name are invited by word rather than merely not forbidden."""
    extra = schema.get("additionalProperties")
    return extra is True or isinstance(extra, dict) or bool(schema.get("patternProperties"))


def _converter(schema: dict[str, JsonValue] | bool, what: str) -> Callable[[Any], Any]:
    contract = Contract(schema, what=f"the result of {what}")

    def convert(value: Any) -> Any:
        plain = contract.quick(value)
        if plain is not NOT_KNOWN:
            return plain
        result = contract.declared(value)
        problem = contract.problem(result)
        if problem is not None:
            raise FailedError(
                "result-invalid",
                f"{what} returned what its own schema refuses, at {problem.path}: {problem.message}",
                hint="The far side breaks its contract; report it there, or mount it without its output schema.",
                details={"path": problem.path},
            )
        return result

    return convert


def _as_it_is(value: Any) -> Any:
    return value


def _no_object(what: str, kind: str) -> UsageError:
    return UsageError(
        "schema-unsupported",
        f"the arguments of {what} are declared as {kind}, not as an object",
        hint="Only object schemas can name arguments.",
        details={"path": "$"},
    )
