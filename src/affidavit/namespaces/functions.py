"""Operations from typed Python functions.

The signature is the contract: pydantic reads the annotations, JSON Schema says them to everyone, and the stub is made
from that schema, so the faces cannot disagree. Arguments and results cross as the JSON types that the schema declares
(a `datetime` parameter takes ISO text, a `Decimal` result arrives as text); `bytes` cross as `bytes`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NotRequired, TypeVar, cast

import pydantic
import pydantic_core
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import Authority, JsonValue, Producer
from affidavit.namespaces._jsonschema import json_path
from affidavit.namespaces.names import identifier
from affidavit.namespaces.operation import Effect, Operation, Reply
from affidavit.namespaces.schema import pieces

__all__ = ["Marks", "marks_of", "operation", "operation_from_function", "tool_failed"]

_MARK: Final = "__affidavit__"
_Function = TypeVar("_Function", bound=Callable[..., Any])

BYTES_SCHEMA: Final = {
    "type": "object",
    "title": "bytes",
    "properties": {"$bytes": {"type": "string", "contentEncoding": "base64"}},
    "required": ["$bytes"],
    "additionalProperties": False,
}
"""How bytes look wherever JSON is shown: the tag of the value domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What `operation` notes on a function; see `operation_from_function`."""

    name: str | None = None
    effect: Effect = "read"
    version: int = 1
    blocking: bool = False


def operation(
    *, name: str | None = None, effect: Effect = "read", version: int = 1, blocking: bool = False
) -> Callable[[_Function], _Function]:
    """Mark a function with what its signature cannot say, for when its module is mounted.

    The function stays as it is and can be called as before.
    """

    def mark(fn: _Function) -> _Function:
        setattr(fn, _MARK, Marks(name=name, effect=effect, version=version, blocking=blocking))
        return fn

    return mark


def marks_of(fn: Callable[..., Any]) -> Marks | None:
    """What `operation` noted on a function, or None."""
    found = getattr(fn, _MARK, None)
    return found if isinstance(found, Marks) else None


def operation_from_function(
    fn: Callable[..., Any],
    *,
    contract: str,
    effect: Effect = "read",
    version: int = 1,
    name: str | None = None,
    blocking: bool = False,
    producer: Producer | None = None,
    authority: Authority = "live-source",
) -> Operation:
    """Make an operation of a function, sync or async.

    Parameters without annotation are `Any`; `Annotated`, `Literal`, unions, containers, TypedDicts, dataclasses,
    pydantic models, enums, dates, decimals and UUIDs work as pydantic defines them, strictly: `"5"` is no int.
    The first paragraph of the docstring describes the operation; a Google-style `Args:` section its parameters.
    What the function raises becomes `tool-failed`; errors of this product pass through.

    Args:
        fn: the function.
        contract: prefix of the contract name: `python.weather` gives `python.weather.forecast/1`.
        effect: what calling it may do.
        version: contract version; change it when equal arguments may mean something else.
        name: operation name, by default the function's.
        blocking: whether it waits or computes for long without awaiting: then it runs in a thread. A sync function is
            otherwise called directly, since a thread costs more than most functions take.
        producer: who observes; by default the contract prefix with the version.
        authority: what kind of source answers.

    Raises:
        UsageError: `schema-unsupported` for a signature that cannot be a contract: `*args`, `**kwargs`, or a type that
            has no JSON form.
    """
    own_name = name or _name_of(fn)
    signature = _Signature(fn, own_name)
    doc, notes = _documentation(fn)
    made = pieces(own_name, signature.input_schema(notes), signature.output_schema())
    order = {key: place for place, key in enumerate(signature.arguments)}

    def parse(given: Mapping[str, Any]) -> dict[str, Any]:
        value = made.parse(given)
        signature.prepare(value)  # what annotations demand beyond their schema
        return value

    async def handler(given: dict[str, Any], /) -> Reply:
        try:
            return await _call(fn, *signature.prepare(given), blocking=blocking)
        except AffidavitError:
            raise
        except Exception as error:  # whatever the function raises is the call's failure, not ours
            raise tool_failed(error) from error

    return Operation(
        name=identifier(own_name),
        contract=f"{contract}.{own_name}/{version}",
        effect=effect,
        doc=doc,
        parameters=tuple(
            replace(one, positional=signature.is_positional(one.original))
            for one in sorted(made.parameters, key=lambda one: order[one.original])
        ),
        input_schema=made.input_schema,
        output_schema=made.output_schema,
        returns=made.returns,
        handler=handler,
        parse=parse,
        convert=lambda value: made.convert(signature.dumped(value)),
        producer=producer or Producer(name=contract, version=str(version)),
        authority=authority,
        declarations=made.declarations,
    )


def tool_failed(error: BaseException) -> FailedError:
    """The failure of a call whose function raised `error`.

    The details, which are hashed, hold the exception's type and its text without what differs between machines:
    folders of absolute paths and memory addresses.
    """
    kind = type(error).__name__
    text = str(error)
    return FailedError(
        "tool-failed",
        f"{kind}: {text}" if text else kind,
        hint="Catch it with `except df.Error`, or change the arguments.",
        details={"type": kind, "message": _portable(text)},
    )


async def _call(
    fn: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], *, blocking: bool
) -> Reply:
    if blocking:
        result = await asyncio.to_thread(fn, *args, **named)
    else:
        result = fn(*args, **named)
    if inspect.isawaitable(result):
        result = await result
    return result if isinstance(result, Reply) else Reply(value=result)


class _Signature:
    """A function's parameters and result, as pydantic understands them."""

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        self.name = name
        self.arguments: dict[str, inspect.Parameter] = {}
        for key, parameter in inspect.signature(fn).parameters.items():
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
                raise _unsupported(name, f"takes {stars}{key}, which has no fixed arguments to declare")
            self.arguments[key] = parameter
        hints = _hints(fn, name)
        fields: dict[str, Any] = {}
        for key, parameter in self.arguments.items():
            kind = modern(hints.get(key, Any))
            fields[key] = kind if parameter.default is inspect.Parameter.empty else NotRequired[kind]
        typed_dict: Any = TypedDict  # made at run time
        model: Any = typed_dict("Arguments", fields)
        # inherited by the TypedDicts inside, so that nothing given is dropped silently
        model.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        returned = hints.get("return", Any)
        self.declared = returned not in (Any, Reply, inspect.Parameter.empty)
        self._arguments = _adapter(model, name)
        self._result = _adapter(modern(returned) if self.declared else Any, name)

    def is_positional(self, key: str) -> bool:
        """Whether the argument may be given by its place."""
        return self.arguments[key].kind is not inspect.Parameter.KEYWORD_ONLY

    def input_schema(self, notes: Mapping[str, str]) -> JsonValue:
        """JSON Schema of the arguments, with defaults and the docstring's words."""
        schema = _json_schema(self._arguments, "validation", self.name)
        properties = cast("dict[str, dict[str, JsonValue]]", schema.get("properties", {}))
        for key, parameter in self.arguments.items():
            if key in notes:
                properties[key].setdefault("description", notes[key])
            if parameter.default is not inspect.Parameter.empty and not isinstance(parameter.default, bytes):
                with contextlib.suppress(pydantic_core.PydanticSerializationError, ValueError):
                    properties[key]["default"] = pydantic_core.to_jsonable_python(parameter.default)
        schema["additionalProperties"] = False
        for definition in cast("dict[str, dict[str, JsonValue]]", schema.get("$defs", {})).values():
            if "properties" in definition:
                # pydantic would ignore further keys; nothing given may be dropped
                definition.setdefault("additionalProperties", False)
        return schema

    def output_schema(self) -> JsonValue | None:
        """JSON Schema of the result, or None where the function declares none."""
        return _json_schema(self._result, "serialization", self.name) if self.declared else None

    def prepare(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional-only and named arguments as the objects that the annotations ask for."""
        try:
            values = cast("dict[str, Any]", self._arguments.validate_python(dict(given)))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            path = json_path(_place(first["loc"], given))
            raise UsageError(
                "arguments-invalid",
                f"{self.name!r} refuses its arguments at {path}: {first['msg']}",
                hint="Call describe with its path for the types it takes.",
                details={"path": path},
            ) from None
        first = [
            values.pop(key)
            for key, parameter in self.arguments.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and key in values
        ]
        return first, values

    def dumped(self, value: Any) -> Any:
        """The result with models and dataclasses as mappings; what the schema says of it is checked after this."""
        try:
            return self._result.dump_python(value, mode="python", by_alias=True, warnings=False)
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
            raise FailedError(
                "result-invalid",
                f"{self.name!r} returned what cannot be shown as data: {error}",
                hint="Return plain values, dataclasses or models without cycles.",
                details={"path": "$"},
            ) from None


class _Schema(GenerateJsonSchema):
    """JSON Schema without the titles that only repeat names, and with bytes as their tag."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never: a title that repeats the key costs tokens and says nothing."""
        return False

    def bytes_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ARG002
        """Bytes as they are tagged wherever JSON is shown."""
        return dict(BYTES_SCHEMA)

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A field with a default is always there in a result."""
        if self.mode == "serialization" and field["type"] in ("model-field", "dataclass-field"):
            return not field.get("serialization_exclude")
        return super().field_is_required(field, total)


def modern(kind: Any) -> Any:
    """`kind` with the TypedDicts of `typing` replaced, which pydantic refuses on Python 3.11."""
    return kind if sys.version_info >= (3, 12) else _modern(kind, {})


def _modern(kind: Any, seen: dict[Any, Any]) -> Any:
    if isinstance(kind, type) and type(kind).__module__ == "typing" and hasattr(kind, "__required_keys__"):
        if kind in seen:
            return seen[kind]
        typed_dict: Any = TypedDict
        hints = typing.get_type_hints(kind, include_extras=True)
        # with postponed annotations the class itself has not seen its qualifiers
        required = {key: _is_required(kind, key, hint) for key, hint in hints.items()}
        made: Any = typed_dict(
            kind.__name__, {key: Any if required[key] else NotRequired[Any] for key in hints}
        )
        made.__doc__, made.__module__, seen[kind] = kind.__doc__, kind.__module__, made
        for key, hint in hints.items():
            inner = _modern(_unqualified(hint), seen)
            made.__annotations__[key] = inner if required[key] else NotRequired[inner]
        return made
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if not arguments or origin is Literal:
        return kind
    changed = tuple(_modern(one, seen) for one in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return kind
    union: Any = typing.Union
    if origin in (union, types.UnionType):
        return union[changed]
    if origin is typing.Annotated:
        annotated: Any = typing.Annotated
        return annotated[(changed[0], *typing.get_args(kind)[1:])]
    generic: Any = origin
    return generic[changed]


def _is_required(kind: Any, key: str, hint: Any) -> bool:
    qualifier = typing.get_origin(hint)
    return qualifier is typing.Required or (
        qualifier is not typing.NotRequired and key in kind.__required_keys__
    )


def _unqualified(hint: Any) -> Any:
    return (
        typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
    )


def _name_of(fn: Callable[..., Any]) -> str:
    name = getattr(fn, "__name__", "")
    if not name or name == "<lambda>":
        raise UsageError("mount-invalid", "a function without a name cannot be called", hint="Pass `name=`.")
    return name


def _hints(fn: Callable[..., Any], name: str) -> dict[str, Any]:
    target: Any = fn
    while isinstance(target, functools.partial):
        target = cast(Any, target).func
    target = inspect.unwrap(target)
    if not inspect.isroutine(target) and not isinstance(target, type):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # annotations are foreign code, evaluated here
        raise _unsupported(name, f"has annotations that cannot be read: {error}") from None


def _adapter(kind: Any, name: str) -> pydantic.TypeAdapter[Any]:
    try:
        return pydantic.TypeAdapter(kind)
    except (pydantic.PydanticUserError, pydantic_core.SchemaError, TypeError, RecursionError) as error:
        raise _unsupported(name, f"has a type without a JSON form: {str(error).splitlines()[0]}") from None


def _json_schema(adapter: pydantic.TypeAdapter[Any], mode: Any, name: str) -> dict[str, JsonValue]:
    try:
        schema = adapter.json_schema(mode=mode, schema_generator=_Schema)
    except pydantic.PydanticUserError as error:
        raise _unsupported(name, f"has a type without a JSON form: {str(error).splitlines()[0]}") from None
    if mode == "validation":
        schema.pop("title", None)
    for definition in schema.get("$defs", {}).values():
        definition.pop("title", None)
    return schema


def _place(location: Sequence[int | str], given: Any) -> list[int | str]:
    """The part of pydantic's location that leads through the data; it also names members of unions."""
    path: list[int | str] = []
    at = given
    for step in location:
        if isinstance(at, Mapping) and step in at:
            at = cast("Mapping[Any, Any]", at)[step]
        elif isinstance(at, list) and isinstance(step, int) and step < len(cast("list[Any]", at)):
            at = cast("list[Any]", at)[step]
        else:
            continue
        path.append(step)
    return path


def _documentation(fn: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The docstring's description, and its words about each parameter."""
    import docstring_parser

    text = inspect.getdoc(fn) or ""
    try:
        parsed = docstring_parser.parse(text, style=docstring_parser.DocstringStyle.GOOGLE)
    except docstring_parser.ParseError:
        return text.strip(), {}
    words = {one.arg_name: " ".join((one.description or "").split()) for one in parsed.params}
    return (parsed.description or "").strip(), {key: value for key, value in words.items() if value}


def _portable(text: str) -> str:
    text = re.sub(r"(?<![\w:/.\\])(?:[A-Za-z]:)?[/\\](?:[^\s'\"<>|:;,()\[\]{}/\\]+[/\\])+", ".../", text)
    return re.sub(r"\b0x[0-9a-fA-F]{6,}\b", "0x...", text)


def _unsupported(name: str, why: str) -> UsageError:
    return UsageError(
        "schema-unsupported",
        f"the function {name!r} {why}",
        hint="Give every parameter a name and a type that JSON can hold.",
        details={"path": "$"},
    )
