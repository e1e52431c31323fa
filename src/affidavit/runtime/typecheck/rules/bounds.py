"""Literal arguments outside the bounds of an operation's schema: `limit=0`. The call is certain to be refused."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final, cast

from affidavit.runtime.typecheck.resolve import Callable
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["exceeded"]

_HOPS: Final = 8


def exceeded(case: Case, call: ast.Call) -> Iterator[Diagnostic]:
    """Every literal argument of a call that its schema forbids by size."""
    target = case.resolver.resolve(call.func)
    path = (
        _path(case, call.func)
        if isinstance(target, Callable) and target.root == "df" and case.schemas
        else ""
    )
    if path not in case.schemas or not isinstance(target, Callable):
        return
    names = [one.arg for one in target.definitions[0].args.args[1:]]
    given = [*zip(names, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
    for name, value in given:
        schema = case.schemas[path].get(name or "")
        if isinstance(value, ast.Starred):
            return
        if isinstance(schema, Mapping):
            wrong = _wrong(cast("Mapping[str, object]", schema), case.constant(value))
            if wrong:
                message = f"`{name}` is {ast.unparse(value)}; it is {wrong}"
                yield case.found(value, "out-of-bounds", message, raises=["Error", "TypeError"])


def _path(case: Case, function: ast.expr) -> str:
    """The path below `df` of what is called: through names that are bound once."""
    words: list[str] = []
    for _ in range(_HOPS * 4):
        match function:
            case ast.Attribute(value=inner, attr=word):
                words.append(word)
                function = inner
            case ast.Name(id="df"):
                return ".".join(reversed(words))
            case ast.Name():
                binding = case.script.only_binding(function)
                if binding is None or binding.how != "assign" or binding.value is None:
                    return ""
                function = binding.value
            case _:
                return ""
    return ""


def _wrong(schema: Mapping[str, object], value: object) -> str:
    """What a value would have to be, or empty where it is within bounds or not known."""
    match value:
        case bool():
            return ""
        case int() | float():
            return _outside(value, schema.get("minimum"), schema.get("maximum"), "")
        case str():
            return _outside(len(value), schema.get("minLength"), schema.get("maxLength"), " characters")
        case list():
            size = len(cast("list[object]", value))
            return _outside(size, schema.get("minItems"), schema.get("maxItems"), " items")
        case _:
            return ""


def _outside(size: float, low: object, high: object, what: str) -> str:
    least = f"at least {low}" if isinstance(low, int | float) else ""
    most = f"at most {high}" if isinstance(high, int | float) else ""
    below = isinstance(low, int | float) and size < low
    above = isinstance(high, int | float) and size > high
    return " and ".join(filter(None, (least, most))) + what if below or above else ""
