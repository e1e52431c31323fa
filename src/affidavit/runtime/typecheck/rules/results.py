"""Proofs about `results`: a position or run that is not there, a value that a row does not have.

The rows exist before the script runs, so that what is read of them for certain, without a condition, certainly fails.
Under a condition or in a function it is advice: the script may know better.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from affidavit.runtime.typecheck.resolve import Value
from affidavit.runtime.typecheck.rules import suggest
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.rules.reach import guarded
from affidavit.runtime.typecheck.surroundings import ResultTypes
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["examine", "is_marker"]

_MARKER: Final = re.compile(r"\b(TooLargeUse_await_|FailedUse_results_|TheValueOf_run_)")
_CONDITIONS: Final = (
    ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.Match, ast.comprehension, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.For, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda,
    ast.ClassDef, ast.With, ast.AsyncWith, ast.Assert,
)  # fmt: skip
_EXPECTED: Final = ("IndexError", "LookupError", "Error", "AttributeError", "TypeError")


def is_marker(message: str) -> bool:
    """Whether a finding speaks of a class that stands for a value which is not there."""
    return _MARKER.search(message) is not None


def examine(case: Case, types: ResultTypes | None) -> Iterator[Diagnostic]:
    """Every finding about `results`; those that are certain to be reached block."""
    if types is None or not case.script.mentions("results") or case.script.binds("results"):
        return
    for node in case.script.nodes:
        found = None
        match node:
            case ast.Subscript(value=ast.Name(id="results"), ctx=ast.Load()):
                found = _position(case, node, types)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="results"), attr="by_run")):
                found = _number(case, node, types)
            case ast.Attribute(value=ast.Name(id="results"), attr="last") if not types.has_last:
                message = "no earlier run of this session succeeded"
                found = case.found(node, "unknown-result", message)
            case ast.Attribute(attr="data" | "load", ctx=ast.Load()):
                found = _content(case, node)
            case ast.Subscript(slice=ast.Constant(), ctx=ast.Load()) if _row(case, node.value):
                message = "a row of `results` is not its value: take its .data first"
                suggestion = f"{case.source_of(node.value, 60)}.data[{ast.unparse(node.slice)}]"
                found = case.found(node, "unknown-result", message, suggestion)
            case _:
                pass
        if found is not None and isinstance(node, ast.expr) and not guarded(case.script, node, *_EXPECTED):
            yield found if _is_certain(case, node) else replace(found, blocking=False)


def _is_certain(case: Case, node: ast.expr) -> bool:
    """Whether the node is evaluated in every run that gets that far."""
    inner: ast.AST = node
    for around in case.script.ancestors(node):
        if isinstance(around, _CONDITIONS):
            tested = getattr(around, "test", None) or getattr(around, "iter", None)
            first = around.values[0] if isinstance(around, ast.BoolOp) else tested
            if inner is not first or isinstance(around, ast.While | ast.comprehension):
                return False
        inner = around
    return not _may_end_before(case, node)


def _may_end_before(case: Case, node: ast.expr) -> bool:
    """Whether a top-level `return`, `exit()` or `raise` may end the script before this."""
    return any(
        isinstance(found, ast.Return | ast.Raise) and found.lineno < node.lineno
        for found in case.script.nodes
    ) or any(
        name.lineno < node.lineno for word in ("exit", "quit", "sys") for name in case.script.mentions(word)
    )


def _position(case: Case, node: ast.Subscript, types: ResultTypes) -> Diagnostic | None:
    position = _integer(node.slice)
    if position is None:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(key, str):
            message = "`results` is a sequence of rows: take a row first, then its data"
            return case.found(node.slice, "unknown-result", message, f'results[0].data["{key}"]')
        return None
    if -types.length <= position < types.length:
        return None
    return case.found(
        node.slice,
        "unknown-result",
        f"`results` has {_rows(types)}",
        _nearest(types) or None,
    )


def _number(case: Case, node: ast.Call, types: ResultTypes) -> Diagnostic | None:
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    number = _integer(given[0]) if given else None
    if number is None or number not in types.unknown:
        return None
    near = min(types.numbers, key=lambda known: abs(known - number), default=None)
    return case.found(
        given[0],
        "unknown-result",
        f"no result of run {number}; `results` has {_rows(types)}",
        f"results.by_run({near})" if near is not None else None,
    )


def _content(case: Case, node: ast.Attribute) -> Diagnostic | None:
    row = _row(case, node.value)
    kind = case.catalogue.field(row[0], "kind") if row else None
    if row is None or kind is None:
        return None
    written = case.source_of(node.value, 60) or f"results.by_run({row[1]})"
    match kind:
        case ast.Subscript(slice=ast.Constant(value="large")) if node.attr == "data":
            message = f"the value of run {row[1]} is too large for .data"
            return case.found(node, "result-kind", message, f"await {written}.load()")
        case ast.Subscript(slice=ast.Constant(value="error")):
            message = f"run {row[1]} failed: it has .error and no value"
            return case.found(node, "result-kind", message, f"{written}.error")
        case ast.Subscript(slice=ast.Constant(value="omitted")):
            return case.found(node, "result-kind", f"the value of run {row[1]} is no longer kept")
        case ast.Subscript(slice=ast.Constant(value="done")) if node.attr == "data" and _is_used(case, node):
            message = f"run {row[1]} returned nothing: its .data is None"
            return case.found(node, "result-kind", message, "results.last.data")
        case _:
            return None


def _row(case: Case, node: ast.expr) -> re.Match[str] | None:
    """The class of an expression that is certainly one row, with its run's number."""
    owner = case.resolver.resolve(node)
    if not isinstance(owner, Value) or owner.root != "results":
        return None
    return re.fullmatch(r"EarlierResult(\d+)", case.resolver.class_of(owner))


def _is_used(case: Case, node: ast.Attribute) -> bool:
    """Whether something of the value is asked for: a key, an attribute, its items."""
    around = case.script.parent(node)
    return (isinstance(around, ast.Subscript | ast.Attribute) and around.value is node) or (
        isinstance(around, ast.For) and around.iter is node
    )


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if type(value) is int else None


def _rows(types: ResultTypes) -> str:
    if not types.length:
        return "no rows yet: no script of this session has settled"
    runs = suggest.listing(map(str, types.numbers))
    return f"{types.length} row{'s' * (types.length != 1)}, newest first, of run{'s' * (types.length != 1)} {runs}"


def _nearest(types: ResultTypes) -> str:
    return f"results[{types.length - 1}]" if types.length else ""
