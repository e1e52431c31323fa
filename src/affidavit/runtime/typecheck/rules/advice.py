"""Which unproven findings are worth telling: correct code has many that say nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Final

from affidavit.runtime.typecheck.rules import keys, tested, types
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.server import Finding

__all__ = ["is_noise"]

_NOISE: Final = frozenset({
    "redundant-condition", "no-matching-overload", "unresolved-global", "invalid-assignment", "invalid-return-type",
    "unknown-typed-dict-constructor-key", "invalid-parameter-default", "unsupported-operator", "not-subscriptable",
    "not-iterable", "invalid-method-override", "invalid-yield", "non-literal-typed-dict-key",
})  # fmt: skip
"""Findings about types that a script wrote or the checker guessed: nothing that happens when it runs."""

Node = ast.expr | ast.keyword | None


def is_noise(case: Case, finding: Finding, node: Node) -> bool:
    """Whether an unproven finding tells nothing."""
    ask = _ASKED.get(finding.rule)
    return finding.rule in _NOISE if ask is None else ask(case, finding, node)


def _argument(case: Case, finding: Finding, node: Node) -> bool:
    found = re.search(r"Expected `([^`]+)`, found `([^`]+)`", finding.message)
    if found is None or (isinstance(node, ast.keyword) and node.arg is None):
        return True  # what `**values` brings, the checker knows only all together
    around = case.script.parent(node) if node is not None else None
    if isinstance(around, ast.keyword) and around.arg is None:
        return True
    return not types.disjoint(found[2], found[1], case.catalogue)


def _name(case: Case, _: Finding, __: Node) -> bool:
    return case.script.dynamic


def _key(case: Case, _: Finding, node: Node) -> bool:
    """A key that may be there, or that other rows have: the script may well know which it reads."""
    around = case.script.parent(node) if node is not None else None
    if not isinstance(node, ast.Constant) or not isinstance(around, ast.Subscript):
        return True
    key = node.value
    if not isinstance(key, str) or keys.may_exist(case, key):
        return True
    if keys.is_another_kind(case, key) and not keys.is_certain(case, node):
        return True
    given = isinstance(around.value, ast.Name) and case.resolver.is_host(around.value)
    return (not given and keys.contradicted(case, around.value)) or tested.is_for_no_row(
        case, node, around.value
    )


def _keyword(case: Case, _: Finding, node: Node) -> bool:
    """`row.update(more=1)`: a row is a dictionary, whatever its type declares."""
    call = case.script.parent(node) if isinstance(node, ast.keyword) else None
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and hasattr(dict, call.func.attr)
    )


def _attribute(case: Case, finding: Finding, node: Node) -> bool:
    """An attribute that the script itself puts there, or that only some of several kinds lack."""
    if not isinstance(node, ast.Attribute):
        return not finding.message.startswith("Module ")
    if not isinstance(node.ctx, ast.Load) or node.attr in case.stores.attributes or case.is_probed(node.attr):
        return True
    if case.script.dynamic or tested.is_told_apart(case, node.value) or _is_set_by_name(case):
        return True
    found = re.match(r"(?:Object of type|Function|Class) `(.+?)`", finding.message)
    kind = found[1] if found is not None else ""
    if case.catalogue.is_dict(kind) and keys.contradicted(case, node.value):
        return True
    return hasattr(dict, node.attr) or any(word in kind for word in (" | ", " & ", "Self@", "_Wrapped"))


def _is_set_by_name(case: Case) -> bool:
    """Whether attributes are set whose names are computed."""
    calls = [case.script.parent(use) for use in case.script.uses("setattr")]
    return any(
        not isinstance(call, ast.Call)
        or not isinstance(call.args[1:2][0] if call.args[1:] else None, ast.Constant)
        for call in calls
    )


def _called(_: Case, finding: Finding, __: Node) -> bool:
    return (
        "`Overload[" in finding.message
    )  # the checker's own word for methods of dictionaries that it does not know


def _union(case: Case, finding: Finding, node: Node) -> bool:
    """That it may be None is worth a word where the script does nothing about it; other kinds the checker guessed."""
    culprits = re.search(r"is not defined on (.+) in union", finding.message)
    if culprits is None or culprits[1] != "`None`":
        return True
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Subscript)
        and _is_selected(case, node.value)
    )


def _is_selected(case: Case, value: ast.Subscript) -> bool:
    """Whether the script chooses rows, by `where` or by this very key."""
    key = ast.dump(value.slice)
    for node in case.script.nodes:
        if isinstance(node, ast.keyword) and node.arg == "where":
            return True
        same = isinstance(node, ast.Subscript) and node is not value and ast.dump(node.slice) == key
        if same and isinstance(node, ast.expr) and _is_tested(case, node):
            return True
    return False


def _is_tested(case: Case, node: ast.expr) -> bool:
    inner: ast.AST = node
    for around in case.script.ancestors(node):
        if isinstance(around, ast.Compare | ast.BoolOp):
            return True
        if isinstance(around, ast.comprehension):
            return inner in around.ifs
        if isinstance(around, ast.If | ast.IfExp | ast.While):
            return inner is around.test
        if isinstance(around, ast.stmt | ast.Lambda):
            return isinstance(around, ast.Lambda)
        inner = around
    return False


_ASKED: Final[Mapping[str, Callable[[Case, Finding, Node], bool]]] = {
    "invalid-argument-type": _argument,
    "unresolved-reference": _name,
    "invalid-typed-dict-key": _key,
    "unknown-argument": _keyword,
    "missing-attribute": _attribute,
    "not-callable": _called,
    "missing-union-attribute": _union,
}
