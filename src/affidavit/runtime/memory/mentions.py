"""Which rows of `results` a script names: those are typed for its check and sent along for its run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from affidavit.runtime.program import RESULTS

__all__ = ["Mentions", "mentions"]

_SILENT: Final = (ast.Constant, ast.Load, ast.operator, ast.Expr, ast.Assign, ast.AugAssign, ast.Await)
_CONTENT: Final = frozenset({"data", "load", "error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Which rows a script names.

    Attributes:
        positions: constant indexes.
        numbers: run numbers given to `by_run` as constants.
        last: whether it asks for `results.last`.
        every: whether it reaches rows in another way, as by a loop, and reads what some row holds.
        bound: whether it gives the name another meaning somewhere; then nothing is known of it.
    """

    positions: frozenset[int] = frozenset()
    numbers: frozenset[int] = frozenset()
    last: bool = False
    every: bool = False
    bound: bool = False


def mentions(*sources: str) -> Mentions | None:
    """Which rows these texts name, or None when none of them speaks of `results` at all."""
    if not any(RESULTS in source for source in sources):
        return None
    nodes = [node for source in sources for node in _nodes(source) if not isinstance(node, _SILENT)]
    positions, numbers = set[int | None](), set[int | None]()
    last = reads = False
    named = 0  # uses of the name that say which row they mean, or none
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Name(id="results"), slice=index):
                position = _constant(index)
                positions.add(position)
                named += position is not None
            case ast.Call(func=ast.Attribute(value=ast.Name(id="results"), attr="by_run")):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                numbers.add(_constant(given[0]) if given else None)
            case ast.Attribute(value=ast.Name(id="results"), attr=attribute):
                last = last or attribute == "last"
                named += 1
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id="results")]):
                named += 1
            case ast.Attribute(attr=attribute):
                reads = reads or attribute in _CONTENT
            case _:
                pass
    uses = sum(isinstance(node, ast.Name) and node.id == RESULTS for node in nodes)
    return Mentions(
        positions=frozenset(position for position in positions if position is not None),
        numbers=frozenset(number for number in numbers if number is not None),
        last=last,
        every=reads and uses > named,
        bound=any(map(_binds, nodes)),
    )


def _binds(node: ast.AST) -> bool:
    """Whether a node gives the name `results` another meaning."""
    match node:
        case ast.Name(id="results", ctx=ast.Store() | ast.Del()) | ast.arg(arg="results"):
            return True
        case ast.FunctionDef(name="results") | ast.AsyncFunctionDef(name="results"):
            return True
        case ast.ExceptHandler(name="results") | ast.MatchAs(name="results") | ast.ClassDef(name="results"):
            return True
        case ast.alias():
            return (node.asname or node.name) == RESULTS
        case _:
            return False


def _nodes(source: str) -> Iterator[ast.AST]:
    try:
        return ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return iter(())


def _constant(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(
            value, bool
        ):
            return -value
        case _:
            return None
