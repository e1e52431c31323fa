"""Calls that monty takes otherwise: options it lacks, arguments it reads differently."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import BUILTIN_METHODS, CODECS
from affidavit.runtime.engines.monty.scan import Function

__all__ = ["check"]

_Check: TypeAlias = Callable[[Context, ast.Call, str], Iterator[Unsupported]]

_TEXT_METHODS = ("join", "format", "strip", "upper", "lower", "replace", "decode", "isoformat")
_SEARCHES = ("find", "rfind", "startswith", "endswith", "index", "rindex")
_JSON_OPTIONS = frozenset({"indent", "sort_keys", "ensure_ascii", "separators", "skipkeys", "allow_nan"})


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """What of a call differs."""
    if not isinstance(node, ast.Call):
        return
    called = context.called(node)
    if called is not None and called in _CHECKS:
        yield from _CHECKS[called](context, node, called)
    if isinstance(node.func, ast.Attribute):
        yield from _method(context, node, node.func)
    elif called is not None and called != "SystemExit" and _is_exception(called):
        yield from _exception(context, node, called)


def _gather(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if node.keywords:
        yield context.find(node, "gather option", f"{called} takes no keyword here")
    if not isinstance(context.parent(node), ast.Await):
        yield context.find(node, "gather", f"{called} must be awaited where it is called")


def _run(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if any(isinstance(above, Function | ast.Lambda) for above in context.above(node)) or len(node.args) != 1:
        yield context.find(node, "asyncio.run", f"{called} inside a function; await it instead")


def _json(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if any(keyword.arg not in _JSON_OPTIONS for keyword in node.keywords):
        yield context.find(node, "json option", f"{called} with an option that is not there")


def _seed(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    given = node.args[0] if node.args else None
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        yield context.find(node, "random", f"{called} without a seed draws on other entropy here")


def _repr(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if _of_caught(context, node):
        yield context.find(node, "repr of an exception", f"the {called} of a caught exception")


def _type(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    """The type of an exception equals nothing here, and that of `df.Error` is another; its name is right."""
    parent = context.parent(node)
    if _of_caught(context, node) and not (isinstance(parent, ast.Attribute) and parent.attr == "__name__"):
        yield context.find(
            node, "type of an exception", f"the {called} of an exception; use isinstance, or its __name__"
        )


def _of_caught(context: Context, node: ast.Call) -> bool:
    given = node.args[0] if node.args else None
    return isinstance(given, ast.Name) and given.id in context.caught


def _by_name(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    """`hasattr` and `getattr` do not see methods: with a default that would be silent."""
    name = node.args[1] if len(node.args) > 1 else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        if (
            name.value in BUILTIN_METHODS
            or name.value.startswith("__")
            or name.value in ("count", "index", "title")
        ):
            yield context.find(node, called, f"{called} does not see the method {name.value} here")
    elif called == "hasattr" or len(node.args) > 2:
        yield context.find(
            node, called, f"{called} does not see methods, and the name is not known beforehand"
        )


def _bytes(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    given = node.args[0] if node.args else None
    if isinstance(given, ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.GeneratorExp):
        yield context.find(node, called, "bytes cannot be made of a list here")


_CHECKS: Mapping[str, _Check] = {
    "asyncio.gather": _gather,
    "asyncio.run": _run,
    "json.dumps": _json,
    "json.loads": _json,
    "random.Random": _seed,
    "random.seed": _seed,
    "repr": _repr,
    "type": _type,
    "getattr": _by_name,
    "hasattr": _by_name,
    "bytes": _bytes,
}


def _method(context: Context, node: ast.Call, function: ast.Attribute) -> Iterator[Unsupported]:
    if function.attr in ("encode", "decode"):
        given = [*node.args[:1], *[keyword.value for keyword in node.keywords if keyword.arg == "encoding"]]
        if any(not (isinstance(codec, ast.Constant) and codec.value in CODECS) for codec in given):
            yield context.find(node, "codec", "only UTF-8 and ASCII are there")
    if function.attr in _SEARCHES and len(node.args) > 1:
        first = node.args[0]
        if isinstance(first, ast.Constant) and first.value == "":
            yield context.find(
                node, "empty search", f"{function.attr} of an empty text beyond the end differs"
            )
    first = node.args[0] if node.args else None
    named = (
        function.attr in ("start", "end", "span")
        and isinstance(first, ast.Constant)
        and isinstance(first.value, str)
    )
    if named or (first is not None and function.attr in ("groups", "groupdict")):
        yield context.find(
            node, "match option", f"{function.attr} of a match with this argument is not there"
        )
    if context.scan.is_error(function):
        yield context.find(node, "df.Error", "df.Error cannot be made here")


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _exception(context: Context, node: ast.Call, name: str) -> Iterator[Unsupported]:
    if len(node.args) > 1 or node.keywords or any(not _is_text(context, argument) for argument in node.args):
        yield context.find(
            node, "exception argument", f"{name} takes one text here; wrap it in str() or an f-string"
        )


def _is_text(context: Context, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return _is_text(context, left) or _is_text(context, right)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _TEXT_METHODS
        case _:
            return context.called(node) in ("str", "repr", "format", "json.dumps")
