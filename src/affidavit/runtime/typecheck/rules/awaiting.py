"""Operations that are called and certainly never awaited.

An un-awaited call may be kept, passed on or returned, and awaited by whoever gets it: `gather(*[op(i) for i in x])` is
fine. So a call counts as lost only where every end of it is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.typecheck.resolve import Callable, Pending
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["not_awaited", "without_loop"]

_NEEDS_LOOP = frozenset({"create_task", "ensure_future", "gather", "wait_for", "shield", "get_running_loop"})
_WAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)

# fmt: off
_CONSUMING = frozenset({
    "print", "len", "str", "repr", "sorted", "sum", "list", "set", "tuple", "dict", "max", "min", "any", "all", "int",
    "float", "bool", "isinstance", "type", "bytes",
})
# fmt: on
_COROUTINE = frozenset(
    {"send", "throw", "close", "cr_await", "cr_code", "cr_frame", "cr_running", "__await__"}
)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_TESTS = (ast.If, ast.While, ast.Assert, ast.FormattedValue, ast.UnaryOp, ast.BinOp)
_LONGEST = 100
_HOPS = 8
"""How many names a call is followed through."""


def not_awaited(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """A call of an operation that certainly nobody awaits."""
    pending = case.resolver.resolve(node)
    if isinstance(pending, Pending) and pending.call is node and _is_lost(case, node):
        path = pending.target.path
        message = f"`{path}` is called and never awaited, so it would not run"
        source = case.source_of(node, _LONGEST)
        yield case.found(node, "not-awaited", message, f"await {source or path + '(...)'}")


def without_loop(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """A task made at the top level of a script that waits for nothing: such a script runs outside any event loop."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _NEEDS_LOOP:
        return
    if not isinstance(function.value, ast.Name) or function.value.id != "asyncio":
        return
    if case.script.scope(node) is not case.script.module or _has_loop(case):
        return
    message = f"nothing at the top level is awaited, so there is no event loop for `asyncio.{function.attr}`"
    source = case.source_of(node, _LONGEST)
    suggestion = f"await {source}" if source else "await"
    yield case.found(node, "not-awaited", message, suggestion, raises=["RuntimeError"])


def _has_loop(case: Case) -> bool:
    """Whether the script waits for anything, or returns, at its top level."""
    if "has loop" not in case.answers:
        case.answers["has loop"] = any(_needs_loop(case, node) for node in case.script.nodes)
    return case.answers["has loop"]


def _needs_loop(case: Case, node: ast.AST) -> bool:
    late = isinstance(node, _WAITING) or (isinstance(node, ast.comprehension) and node.is_async)
    if not late and not isinstance(node, ast.Return):
        return False
    scope = case.script.scope(node)
    while scope.kind in {"comprehension", "class"} and scope.parent is not None:
        scope = scope.parent
    return scope is case.script.module


def _is_lost(case: Case, node: ast.expr, hops: int = _HOPS) -> bool:
    """Whether this un-awaited call certainly never runs: nothing that can await it ever gets it."""
    around = case.script.parent(node)
    match around:
        case ast.Expr() | ast.Subscript(value=ast.Call() | ast.Name()) if (
            getattr(around, "value", None) is node
        ):
            return True
        case ast.Attribute(attr=attribute):
            return attribute not in _COROUTINE
        case ast.Call():
            return node is not around.func and _loses_argument(case, around)
        case ast.keyword():
            call = case.script.parent(around)
            return isinstance(call, ast.Call) and _loses_argument(case, call)
        case ast.Assign(targets=[ast.Name() as target]):
            return hops > 0 and _is_name_lost(case, target, node, hops - 1)
        case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is node
        case ast.Compare(ops=operators):
            return not any(isinstance(operator, ast.Is | ast.IsNot) for operator in operators)
        case _:
            return _is_lost_in(case, around)


def _is_lost_in(case: Case, around: ast.AST | None) -> bool:
    if isinstance(around, _TESTS):
        return True
    return isinstance(around, _DISPLAYS) and _is_display_lost(case, around)


def _is_display_lost(case: Case, display: ast.expr) -> bool:
    """A list of un-awaited calls can be awaited element by element: only certain ends lose all of them."""
    around = case.script.parent(display)
    match around:
        case ast.Expr() | ast.FormattedValue():
            return True
        case ast.Call(func=ast.Name(id="print")):
            return not case.script.binds("print")
        case ast.Assign(targets=[ast.Name(id=name)]):
            return not case.script.dynamic and not case.script.uses(name)
        case _:
            return False


def _loses_argument(case: Case, call: ast.Call) -> bool:
    if isinstance(case.resolver.resolve(call.func), Callable):
        return True
    return (
        isinstance(call.func, ast.Name) and call.func.id in _CONSUMING and not case.script.binds(call.func.id)
    )


def _is_name_lost(case: Case, target: ast.Name, node: ast.expr, hops: int) -> bool:
    if case.script.dynamic:
        return False
    uses = case.script.uses(target.id)
    if not uses:
        return True
    bindings = case.script.bindings_everywhere(target.id)
    # Uses of a name with several bindings may mean another one.
    return len(bindings) == 1 and bindings[0].value is node and all(_is_lost(case, use, hops) for use in uses)
