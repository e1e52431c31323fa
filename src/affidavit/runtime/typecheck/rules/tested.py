"""Whether a script asks what kind of thing it has: what it reads of another kind may never be reached."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.rules.case import Case

__all__ = ["is_for_no_row", "is_told_apart"]

_TESTS: Final = frozenset({"isinstance", "issubclass", "type", "callable", "hasattr"})
_ROWS: Final = frozenset({"dict", "Mapping", "MutableMapping"})


def is_told_apart(case: Case, owner: ast.expr) -> bool:
    """Whether the script tests the kind of a value anywhere, so that a read of it may be for another kind."""
    return any(_tests(case.script.tree, owner)) or any(
        isinstance(node, ast.Match) and _same(node.subject, owner) for node in case.script.nodes
    )


def is_for_no_row(case: Case, node: ast.expr, owner: ast.expr) -> bool:
    """Whether a read stands in a branch that is taken for something else than dictionaries."""
    inner: ast.AST = node
    for around in case.script.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and inner is not around.test:
            body = around.body if isinstance(around.body, list) else [around.body]
            for test in _tests(around.test, owner):
                if _is_negated(case, test) == ((inner in body) == _is_of_row(test)):
                    return True
        inner = around
    return False


def _tests(tree: ast.AST, owner: ast.expr) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        asks = isinstance(node, ast.Call) and named(node.func) in _TESTS and bool(node.args)
        if asks and isinstance(node, ast.Call) and _same(node.args[0], owner):
            yield node


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _is_of_row(test: ast.Call) -> bool:
    """Whether a test is true of dictionaries."""
    kinds = test.args[1] if len(test.args) > 1 else test
    parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return named(test.func) == "isinstance" and any(named(one) in _ROWS for one in parts)


def _is_negated(case: Case, test: ast.Call) -> bool:
    around = case.script.parent(test)
    return isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)
