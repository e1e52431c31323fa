"""The order of sets. Python's follows from hashes, monty's from insertion; nothing may depend on it.

What is a set is inferred from the script alone: displays, constructors, operators, methods, annotations and the names,
attributes and functions that those flow into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import ORDERLESS, SET_METHODS

__all__ = ["check"]

_SHOWING = (
    "list",
    "tuple",
    "str",
    "repr",
    "print",
    "enumerate",
    "zip",
    "map",
    "filter",
    "iter",
    "reversed",
    "format",
    "dict",
    "next",
)


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """Where the order of a set would show."""
    for value in _ordered_uses(context, node):
        if _is_set(context, value, set()):
            yield context.find(value, "set order", "the order of a set would show here; use sorted(...)")


def _ordered_uses(context: Context, node: ast.AST) -> Iterator[ast.expr]:
    """Expressions whose order of iteration reaches the script's behaviour."""
    match node:
        case ast.For():
            yield node.iter
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            if context.called(context.parent(node)) not in ORDERLESS:
                yield from (generator.iter for generator in node.generators)
        case ast.Starred(ctx=ast.Load()):
            yield node.value
        case ast.Call():
            yield from _call(context, node)
        case ast.FormattedValue():
            yield node.value
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            yield node.value
        case _:
            pass


def _call(context: Context, node: ast.Call) -> Iterator[ast.expr]:
    called = context.called(node)
    if called is not None:
        if (called in _SHOWING or called.startswith("itertools.")) and context.called(
            context.parent(node)
        ) not in ORDERLESS:
            yield from node.args
    elif isinstance(node.func, ast.Attribute):
        if node.func.attr == "pop" and not node.args:
            yield node.func.value
        elif node.func.attr in ("join", "extend", "writerows", "format"):
            yield from node.args


def _is_set(context: Context, node: ast.expr, seen: set[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(context, left, seen) or _is_set(context, right, seen)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_set(context, body, seen) or _is_set(context, orelse, seen)
        case ast.Call():
            return _makes_set(context, node, seen)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _named_set(context, name, seen)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return _holds_sets(context, name)
        case ast.NamedExpr(value=value) | ast.Await(value=value):
            return _is_set(context, value, seen)
        case _:
            return False


def _makes_set(context: Context, node: ast.Call, seen: set[str]) -> bool:
    called = context.called(node)
    if called in ("set", "frozenset"):
        return True
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in SET_METHODS:
            return True
        return node.func.attr in ("copy", "setdefault", "get") and any(
            _is_set(context, part, seen) for part in [node.func.value, *node.args]
        )
    if isinstance(node.func, ast.Name) and node.func.id in context.scan.functions:
        return _returns_set(context, node.func.id, seen)
    return False


def _returns_set(context: Context, name: str, seen: set[str]) -> bool:
    mark = f"{name}()"
    if mark in seen:
        return False
    function = context.scan.functions[name]
    return any(
        isinstance(inner, ast.Return)
        and inner.value is not None
        and _is_set(context, inner.value, seen | {mark})
        for inner in ast.walk(function)
    )


def _named_set(context: Context, name: str, seen: set[str]) -> bool:
    """Whether anything in the script gives a name, or an attribute of that name, a set."""
    if name in seen:
        return False
    below = seen | {name}
    return any(_binds_set(context, node, name, below) for node in context.nodes)


def _binds_set(context: Context, node: ast.AST, name: str, seen: set[str]) -> bool:
    """Whether one node gives a name a set."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return any(_is_named(target, name) for target in targets) and _is_set(context, value, seen)
        case ast.AnnAssign(target=target, annotation=annotation):
            return _is_named(target, name) and _says_set(annotation)
        case ast.arg(arg=argument, annotation=ast.expr() as annotation):
            return argument == name and _says_set(annotation)
        case ast.NamedExpr(target=target, value=value):
            return _is_named(target, name) and _is_set(context, value, seen)
        case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
            return _item_is_set(context, target, iterated, name)
        case ast.Call():
            return _passes_set(context, node, name, seen)
        case _:
            return False


def _is_named(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found == name
        case _:
            return False


def _says_set(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation).lower()
    return text.startswith(("set", "frozenset", "typing.set"))


def _item_is_set(context: Context, target: ast.expr, iterated: ast.expr, name: str) -> bool:
    """Whether a loop variable runs over sets: `for group in groups.values()`, `for key, group in groups.items()`."""
    match iterated:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return _is_named(target, name) and any(isinstance(item, ast.Set | ast.SetComp) for item in items)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held) | ast.Attribute(attr=held), attr="values")):
            return _is_named(target, name) and _holds_sets(context, held)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held) | ast.Attribute(attr=held), attr="items")):
            pair = isinstance(target, ast.Tuple) and len(target.elts) == 2 and _is_named(target.elts[1], name)
            return pair and _holds_sets(context, held)
        case ast.Name(id=held) | ast.Attribute(attr=held):
            return _is_named(target, name) and _holds_sets(context, held)
        case _:
            return False


def _passes_set(context: Context, node: ast.Call, name: str, seen: set[str]) -> bool:
    """Whether a call hands a set to a parameter of this name."""
    if any(keyword.arg == name and _is_set(context, keyword.value, seen) for keyword in node.keywords):
        return True
    names = context.parameters(node.func)
    return any(
        parameter == name and _is_set(context, value, seen)
        for parameter, value in zip(names, node.args, strict=False)
    )


def _holds_sets(context: Context, name: str) -> bool:
    """Whether a name is a mapping or list whose items are sets: `defaultdict(set)`, `{"a": set()}`."""
    for node in context.nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                if any(_is_named(target, name) for target in targets) and _container_of_sets(context, value):
                    return True
                if any(
                    isinstance(target, ast.Subscript) and _is_named(target.value, name) for target in targets
                ) and _is_set(context, value, {name}):
                    return True
            case _:
                pass
    return False


def _container_of_sets(context: Context, node: ast.expr) -> bool:
    match node:
        case ast.Call(args=[ast.Name(id="set" | "frozenset"), *_]):
            return context.called(node) == "collections.defaultdict"
        case ast.Dict(values=items) | ast.List(elts=items):
            return any(_is_set(context, item, set()) for item in items)
        case ast.DictComp(value=item) | ast.ListComp(elt=item):
            return _is_set(context, item, set())
        case _:
            return False
