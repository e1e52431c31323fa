"""Lazy iteration: monty makes lists of generator expressions, `map`, `filter`, `zip`, `enumerate` and `reversed`.

A list in place of an iterator is invisible where it is consumed at once and computing its items has no effect that
anyone could see. Everywhere else it is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import CONSUMERS, MUTATORS, PURE

__all__ = ["check"]

_EAGER = ("map", "filter", "zip", "enumerate", "reversed")
_ENDLESS = ("itertools.count", "itertools.cycle", "itertools.repeat")
_CONSUMING_MODULES = ("collections.", "itertools.chain", "math.", "functools.reduce", "statistics.")
_STOPPING = ("any", "all")


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """Where an eager list would show."""
    if isinstance(node, ast.GeneratorExp):
        yield from _lazy(context, node, "generator expression")
    elif isinstance(node, ast.Call):
        called = context.called(node)
        if called in _EAGER:
            yield from _lazy(context, node, called)
        elif called in _ENDLESS:
            yield from _endless(context, node, called)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "elements" and not node.args:
            yield from _lazy(context, node, "elements()")
    if isinstance(node, ast.For):
        yield from _mutated(context, node)


def _lazy(context: Context, node: ast.expr, what: str) -> Iterator[Unsupported]:
    parent = context.parent(node)
    if isinstance(parent, ast.For) and parent.iter is node:
        if not _pure(context, node):
            yield context.find(node, "eager iteration", f"this {what} would run ahead of the loop")
        return
    if not _consumed(context, node, parent):
        yield context.find(
            node, "eager iteration", f"a {what} is a list here; consume it at once, as in list(...)"
        )
    elif not _pure(context, node) and _interleaved(context, node):
        yield context.find(node, "eager iteration", f"this {what} would not stop early here")


def _consumed(context: Context, node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether all items are taken out at once, by something that cannot tell what it took them from."""
    match parent:
        case ast.Starred() | ast.comprehension():
            return True
        case ast.Call():
            called = context.called(parent)
            if called is not None:
                return called in CONSUMERS or called.startswith(_CONSUMING_MODULES) or called == "reversed"
            return isinstance(parent.func, ast.Attribute) and parent.func.attr in (
                "join",
                "extend",
                "update",
                "union",
            )
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return value is node
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[side]):
            return side is node and _pure(context, node)
        case _:
            return False


def _interleaved(context: Context, node: ast.expr) -> bool:
    """Whether something around may stop early or act between two items."""
    for above in context.above(node):
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.For)
        if isinstance(above, ast.comprehension):
            return True
        called = context.called(above)
        if (
            called in _STOPPING
            or (called is not None and called.startswith("itertools."))
            or called in ("zip", "next")
        ):
            return True
    return False


def _pure(context: Context, node: ast.AST) -> bool:
    """Whether evaluating a node can have no effect that a script notices: no call of unknown code."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Await | ast.NamedExpr):
            return False
        if isinstance(inner, ast.Call):
            called = context.called(inner)
            if called is None:
                if not isinstance(inner.func, ast.Attribute) or inner.func.attr in MUTATORS:
                    return False
            elif called not in PURE and not called.startswith(
                ("math.", "os.path.", "re.", "json.", "itertools.")
            ):
                return False
    return all(_pure_callable(context, call) for call in ast.walk(node) if isinstance(call, ast.Call))


def _pure_callable(context: Context, call: ast.Call) -> bool:
    """What `map` and `filter` are given must be a pure builtin or a lambda, whose body was looked at already."""
    if context.called(call) not in ("map", "filter") or not call.args:
        return True
    function = call.args[0]
    return isinstance(function, ast.Lambda | ast.Constant) or (context.builtin(function) or "") in PURE


def _endless(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if called == "itertools.repeat" and len(node.args) > 1:
        return
    parent = context.parent(node)
    if context.called(parent) not in ("zip", "itertools.islice", "itertools.takewhile", "next"):
        if isinstance(parent, ast.For | ast.Assign):
            return
        yield context.find(node, "endless iterator", f"{called} would never end here")


def _mutated(context: Context, node: ast.For) -> Iterator[Unsupported]:
    """A loop that changes what it walks over: Python sees the change, a list made beforehand does not."""
    if context.called(node.iter) not in _EAGER:
        return
    names = {inner.id for inner in ast.walk(node.iter) if isinstance(inner, ast.Name)}
    for inner in (inner for statement in node.body for inner in ast.walk(statement)):
        if _changes(inner, names):
            yield context.find(node, "loop over a changing list", "the loop changes what it walks over")
            return


def _changes(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name in names and method in MUTATORS
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            return name in names
        case ast.AugAssign(target=ast.Name(id=name)):
            return name in names
        case _:
            return False
