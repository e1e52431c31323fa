"""The order of sets. Python's follows from hashes, monty's from insertion; nothing may depend on it.

What is a set is inferred from the script (see `sets`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import ORDERLESS

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
        if context.sets.is_set(value):
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
