"""Regular expressions: monty's are another engine's. What both read alike is allowed, everything else refused."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported

__all__ = ["check"]

_FUNCTIONS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "compile")
_MANY = ("findall", "finditer", "sub", "split", "compile")
_FLAGS = ("re.I", "re.IGNORECASE", "re.M", "re.MULTILINE", "re.S", "re.DOTALL")
_MAX_PATTERN = 2000
# Escapes and class operators that the other engine reads in its own way, or does not read.
_FOREIGN = re.compile(r"\\[<>NBauU0]|\\[xu]\{|\(\?[aLux]|\[\[|&&|--|~~|\|\||\(\?P?<[0-9]")
_TEMPLATE = re.compile(r"\\(?!\d|g<|\\)")


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """What of a call of `re` differs."""
    if isinstance(node, ast.Attribute):
        yield from _attribute(context, node)
    if not isinstance(node, ast.Call):
        return
    called = context.scan.module_of(node.func) or ""
    function = called.removeprefix("re.")
    if called != f"re.{function}" or function not in _FUNCTIONS:
        return
    pattern = node.args[0] if node.args else _keyword(node, "pattern")
    if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
        yield context.find(
            node, "regular expression", "the pattern must be a literal here, so that it can be examined"
        )
    elif (problem := _problem(pattern.value, function)) is not None:
        yield context.find(node, "regular expression", problem)
    if function == "sub":
        yield from _replacement(context, node)
    for flags in _flags(node, function):
        if not _known_flags(context, flags):
            yield context.find(node, "regular expression flag", "only I, M and S are there")


def _attribute(context: Context, node: ast.Attribute) -> Iterator[Unsupported]:
    """Flags are plain numbers here, and a compiled pattern shows another text than it was given."""
    parent = context.parent(node)
    if context.scan.module_of(node) in _FLAGS:
        if not isinstance(parent, ast.Call | ast.keyword | ast.BinOp):
            yield context.find(node, "regular expression flag", "a flag is a plain number here")
    elif (
        node.attr in ("pattern", "flags", "string")
        and "re" in context.scan.imported.values()
        and node.attr not in context.stored
    ):
        yield context.find(node, "compiled pattern", f"{node.attr} of a pattern or match differs here")


def _problem(pattern: str, function: str) -> str | None:
    if len(pattern) > _MAX_PATTERN or _FOREIGN.search(pattern) or not pattern.isascii():
        return "this pattern would be read differently here"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parsed: Any = import_module("re._parser").parse(pattern)
    except (re.error, FutureWarning, DeprecationWarning, OverflowError, RecursionError):
        return "this pattern is not one that Python reads without complaint"
    if any(_empty_repeat(item) for item in _items(parsed)):
        return "a repetition of something that may be empty keeps another group here"
    least, most = parsed.getwidth()
    if function in _MANY and least == 0 and most > 0:
        return "a pattern that matches both nothing and something finds other places here"
    return None


def _items(parsed: Any) -> Iterator[Any]:
    """Every operation of a parsed pattern, at any depth."""
    for operation, argument in parsed:
        yield str(operation), argument
        parts = cast("tuple[Any, ...]", argument if isinstance(argument, tuple) else ())
        for inner in parts:
            if hasattr(inner, "getwidth"):
                yield from _items(inner)
            elif isinstance(inner, list):
                for branch in cast("list[Any]", inner):
                    if hasattr(branch, "getwidth"):
                        yield from _items(branch)


def _empty_repeat(item: Any) -> bool:
    operation, argument = item
    return operation.endswith("_REPEAT") and argument[2].getwidth()[0] == 0


def _replacement(context: Context, node: ast.Call) -> Iterator[Unsupported]:
    given = node.args[1] if len(node.args) > 1 else _keyword(node, "repl")
    if isinstance(given, ast.Constant):
        if isinstance(given.value, str) and _TEMPLATE.search(given.value):
            yield context.find(node, "replacement", "escapes in the replacement are not read here")
    elif isinstance(given, ast.Lambda) or (
        isinstance(given, ast.Name) and given.id in context.scan.functions
    ):
        yield context.find(node, "replacement", "re.sub with a function")
    elif given is not None:
        yield context.find(
            node, "replacement", "the replacement must be a literal here, so that it can be examined"
        )


def _flags(node: ast.Call, function: str) -> Iterator[ast.expr]:
    at = {"compile": 1, "sub": 4, "split": 3}.get(function, 2)
    yield from node.args[at : at + 1]
    given = _keyword(node, "flags")
    if given is not None:
        yield given


def _known_flags(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _known_flags(context, node.left) and _known_flags(context, node.right)
    return context.scan.module_of(node) in _FLAGS or (isinstance(node, ast.Constant) and node.value == 0)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)
