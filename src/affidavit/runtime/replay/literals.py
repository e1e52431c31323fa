"""The literals of a script that could be parameters: their values, their places, and the names they stand under.

Left out is what only looks like a value: docstrings, text inside f-strings, annotations and patterns of `match`; and
what an input cannot hold, such as tuples.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

__all__ = ["Literal", "literals"]

_SHOWN: Final = 60
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A literal of a script.

    Attributes:
        value: what it is.
        names: the variables, keywords, parameters or keys that it stands under.
        start: where it begins in the source, in UTF-8 bytes.
        end: where it ends.
        line: its line, from 1.
        column: its column, from 1, in characters.
        text: how it is written.
    """

    value: Any
    names: frozenset[str]
    start: int
    end: int
    line: int
    column: int
    text: str

    def shown(self) -> str:
        """Its place and how it is written, on one line."""
        text = " ".join(self.text.split())
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        return f"{self.line}:{self.column} {text}"


def literals(source: str) -> list[Literal]:
    """Every literal of a script that could be a parameter, in order; one that holds others comes before them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a script that ran
        tree = ast.parse(source)
    text = source.encode("utf-8", "surrogatepass")
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    names = _names(tree)
    found: list[Literal] = []
    for node in _values(tree):
        value = _literal(node)
        if value is _MISSING:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = lines[node.lineno - 1][: node.col_offset]
        found.append(
            Literal(
                value=value,
                names=frozenset(names.get(id(node), ())),
                start=start,
                end=end,
                line=node.lineno,
                column=len(before.decode("utf-8", "surrogatepass")) + 1,
                text=text[start:end].decode("utf-8", "surrogatepass"),
            )
        )
    return sorted(found, key=lambda literal: (literal.start, -literal.end))


def _values(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a script, without those that only look like values."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.pattern):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and _is_text(node.value):
            continue
        if isinstance(node, ast.expr):
            yield node
            if isinstance(node, ast.UnaryOp) and _literal(node) is not _MISSING:
                continue  # -5 is one literal, and holds no 5
        left_out = {id(part) for name in ("annotation", "returns") if (part := getattr(node, name, None))}
        waiting.extend(
            child for child in reversed(list(ast.iter_child_nodes(node))) if id(child) not in left_out
        )


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _literal(node: ast.expr) -> Any:
    """The value of a literal that an input can hold, or `_MISSING`."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as value)):
            return _MISSING if isinstance(value, bool) else -value if isinstance(node.op, ast.USub) else value
        case ast.List(elts=items):
            found = [_literal(item) for item in items]
            return _MISSING if any(item is _MISSING for item in found) else found
        case ast.Dict(keys=keys, values=held):
            return _mapping(keys, held)
        case _:
            return _MISSING


def _mapping(keys: Sequence[ast.expr | None], held: Sequence[ast.expr]) -> Any:
    found: dict[str, Any] = {}
    for key, item in zip(keys, held, strict=True):
        value = _literal(item)
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or value is _MISSING:
            return _MISSING
        found[key.value] = value
    return found


def _names(tree: ast.AST) -> dict[int, list[str]]:
    """The names that expressions stand under: of variables, keywords, parameters and keys."""
    found: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        for name, value in _named(node):
            found.setdefault(id(value), []).append(name)
    return found


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value) | ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Dict(keys=keys, values=held):
            for key, value in zip(keys, held, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        case ast.arguments():
            yield from _defaults(node)
        case _:
            pass


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=held) | ast.List(elts=held)),
        ):
            if len(targets) == len(held):
                for one, part in zip(targets, held, strict=True):
                    yield from _assigned(one, part)
        case _:
            pass


def _defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*node.posonlyargs, *node.args]
    given = positional[len(positional) - len(node.defaults) :]
    yield from ((argument.arg, default) for argument, default in zip(given, node.defaults, strict=True))
    for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default
