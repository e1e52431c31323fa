"""Proofs from inputs: values that exist before the script runs, so that their inferred types say what is in them.

If the type of an input says that some items hold None, or lack a key, then some item does. So what a script does with
*every* item, without a condition, certainly meets it: `[row["tag"].upper() for row in r]` must fail, while the same
with a filter, a slice or a single index need not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.resolve import Value
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.rules.proof import guarded
from affidavit.runtime.typecheck.scopes import Script
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["missing_keys", "must_fail", "undisturbed"]

_EAGER = frozenset(
    {"sum", "list", "sorted", "set", "tuple", "max", "min", "dict", "frozenset", "join", "Counter"}
)
# fmt: off
_READING = frozenset({
    "len", "sum", "list", "sorted", "set", "tuple", "max", "min", "enumerate", "print", "str", "repr", "zip", "map",
    "filter", "any", "all", "reversed", "dict", "iter", "type", "isinstance",
})
_CHANGING = frozenset({
    "append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "sort", "reverse",
    "add", "discard", "__setitem__",
})
# fmt: on
_CONDITIONS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr, ast.Compare)
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)


def must_fail(case: Case, node: ast.expr | ast.keyword) -> bool:
    """Whether an error that only some member of a union causes must happen, as every item of an input is examined."""
    if not isinstance(node, ast.expr):
        return False
    subject = node.value if isinstance(node, ast.Attribute) else node
    if guarded(case.script, node, "AttributeError", "TypeError"):
        return False
    if not isinstance(node, ast.Attribute) and not _is_builtin_argument(case, node):
        return False
    return _is_item(case, subject) and _reached_for_every_item(case, node)


def missing_keys(case: Case) -> Iterator[Diagnostic]:
    """Reads of a key that some items lack, for every item of an input. The type checker does not look for these."""
    for node in case.script.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_lacking(case, node):
            key = ast.literal_eval(node.slice)
            yield case.found(
                node.slice,
                "missing-key",
                f"some items have no {key!r}: use `.get` or test for it",
                f".get({key!r})",
            )


def undisturbed(case: Case, node: ast.expr) -> bool:
    """Whether nothing in the script can have changed what the stubs say of this expression's value."""
    keys = _path_keys(node)
    if keys & case.stores.copied or (case.stores.computed and keys & case.stores.words):
        return False
    resolved = case.resolver.resolve(node)
    return not isinstance(resolved, Value) or resolved.root == "df" or _only_read(case, resolved.root)


def _path_keys(node: ast.expr) -> set[str]:
    return {
        found.slice.value
        for found in ast.walk(node)
        if isinstance(found, ast.Subscript)
        and isinstance(found.slice, ast.Constant)
        and isinstance(found.slice.value, str)
    }


def _is_lacking(case: Case, node: ast.Subscript) -> bool:
    if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, str):
        return False
    owner = case.resolver.resolve(node.value)
    if not isinstance(owner, Value) or owner.root == "df":
        return False
    name = case.resolver.class_of(owner)
    key = node.slice.value
    if not name or not case.catalogue.may_lack(name, key) or key in case.stores.asked | case.stores.copied:
        return False
    if guarded(case.script, node, "KeyError", "LookupError"):
        return False
    return _is_item(case, node.value) and _reached_for_every_item(case, node) and _only_read(case, owner.root)


def _is_builtin_argument(case: Case, node: ast.expr) -> bool:
    around = case.script.parent(node)
    if not isinstance(around, ast.Call) or node not in around.args or not isinstance(around.func, ast.Name):
        return False
    return around.func.id in {"len", "sum", "sorted", "max", "min", "abs", "round"} and not case.script.binds(
        around.func.id
    )


def _is_item(case: Case, node: ast.expr) -> bool:
    """Whether the expression is a whole item, or one key below it, of an input that is iterated as a whole.

    Two keys below, a missing value in between may belong to no item: the union was met somewhere, not here.
    """
    path = node.value if isinstance(node, ast.Subscript) else node
    resolved = case.resolver.resolve(node)
    if not isinstance(path, ast.Name) or not isinstance(resolved, Value) or resolved.root == "df":
        return False
    binding = case.script.only_binding(path)
    return binding is not None and binding.how == "each" and undisturbed(case, node)


def _reached_for_every_item(case: Case, node: ast.expr) -> bool:
    """Whether a node is evaluated for every item: no condition, no early end, nothing lazy on the way out."""
    name = next(found for found in ast.walk(node) if isinstance(found, ast.Name) and _is_target(case, found))
    binding = case.script.only_binding(name)
    inner: ast.AST = node
    for around in case.script.ancestors(node):
        match around:
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                target = around.generators[0].target
                whole = len(around.generators) == 1 and not around.generators[0].ifs
                lazy = isinstance(around, ast.GeneratorExp) and not _is_eager(case, around)
                return (
                    whole
                    and not lazy
                    and binding is not None
                    and binding.node is target
                    and _certain(case, around)
                )
            case ast.For(target=target, body=body):
                straight = inner in body and not _leaves(around)
                return straight and binding is not None and binding.node is target and _certain(case, around)
            case ast.stmt() if not isinstance(around, _PLAIN):
                return False
            case _ if isinstance(around, _CONDITIONS):
                return False
            case _:
                inner = around
    return False


def _is_target(case: Case, node: ast.Name) -> bool:
    binding = case.script.only_binding(node)
    return binding is not None and binding.how == "each"


def _certain(case: Case, loop: ast.AST) -> bool:
    """Whether the loop itself certainly runs, over the whole input."""
    iterated = loop.iter if isinstance(loop, ast.For) else getattr(loop, "generators")[0].iter  # noqa: B009
    return _is_whole(case, iterated)


def _is_whole(case: Case, node: ast.expr) -> bool:
    """An input, or a fixed path into it, as it came: no slice, no call but `.values()`."""
    while True:
        match node:
            case ast.Name():
                return case.resolver.is_host(node)
            case ast.Subscript(value=value, slice=ast.Constant()) | ast.Attribute(value=value):
                node = value
            case ast.Call(func=ast.Attribute(attr="values", value=value), args=[], keywords=[]):
                node = value
            case _:
                return False


def _is_eager(case: Case, generator: ast.GeneratorExp) -> bool:
    around = case.script.parent(generator)
    return (
        isinstance(around, ast.Call)
        and named(around.func) in _EAGER
        and not case.script.binds(named(around.func))
    )


def _leaves(loop: ast.For) -> bool:
    """Whether a loop may end or skip an item early."""
    leaving = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.With)
    return any(isinstance(node, leaving) for statement in loop.body for node in ast.walk(statement))


def _only_read(case: Case, root: str) -> bool:
    """Whether an input is only read: never handed to unknown code, never changed in place."""
    return all(
        _is_reading(case.script, node)
        for node in case.script.nodes
        if isinstance(node, ast.Name) and node.id == root
    )


def _is_reading(script: Script, node: ast.Name) -> bool:
    inner: ast.AST = node
    for around in script.ancestors(node):
        match around:
            case ast.Subscript(value=value, ctx=context) if value is inner:
                if not isinstance(context, ast.Load):
                    return False
            case ast.Attribute(value=value) if value is inner:
                call = script.parent(around)
                if isinstance(call, ast.Call) and call.func is around:
                    return around.attr not in _CHANGING
            case ast.Call(func=function):
                return (
                    isinstance(function, ast.Name)
                    and function.id in _READING
                    and not script.binds(function.id)
                )
            case ast.Assign() | ast.NamedExpr() | ast.keyword():
                return False
            case _:
                return True
        inner = around
    return True
