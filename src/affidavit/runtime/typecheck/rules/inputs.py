"""Proofs from inputs: values that exist before the script runs, so that their inferred types say what is in them.

If the type of an input says that some items hold None, or lack a key, then some item does. So what a script does with
*every* item, without a condition, certainly meets it: `[row["tag"].upper() for row in r]` must fail, while the same
with a filter, a slice or a single index need not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from affidavit.runtime.typecheck.catalogue import members, named
from affidavit.runtime.typecheck.resolve import Value
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.rules.reach import guarded
from affidavit.runtime.typecheck.server import Finding
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
_SCALARS = frozenset({"str", "int", "float", "bool", "bytes", "None"})
_CHANGING = frozenset({
    "append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "sort", "reverse",
    "add", "discard", "__setitem__",
})
# fmt: on
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONDITIONS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr, ast.Compare, *_COMPREHENSIONS)
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)

Loop: TypeAlias = ast.For | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def must_fail(case: Case, finding: Finding, node: ast.expr | ast.keyword) -> bool:
    """Whether an error that only some member of a union causes must happen, as every item of an input is examined."""
    if not isinstance(node, ast.expr):
        return False
    subject = node.value if isinstance(node, ast.Attribute) else node
    if guarded(case.script, node, "AttributeError", "TypeError"):
        return False
    if not isinstance(node, ast.Attribute) and not _is_builtin_argument(case, node):
        return False
    if not _is_item(case, subject) or not _reached_for_every_item(case, node):
        return False
    resolved = case.resolver.resolve(subject)
    return isinstance(resolved, Value) and _fails_for_declared(finding, resolved)


def _fails_for_declared(finding: Finding, value: Value) -> bool:
    """Whether a member that causes the error is one that the input's type names.

    A `float` stands for integers too in the checker's eyes; that there are any is not said.
    """
    found = re.search(r"is not defined on (.+) in union|found `([^`]+)`", finding.message)
    if found is None:
        return False
    culprits = (
        re.findall(r"`([^`]+)`", found[1])
        if found[1]
        else re.findall(r"element `([^`]+)` of union", finding.message)
    )
    culprits = culprits or [found[2]]
    declared = {ast.unparse(member) for member in members(value.annotation)}
    return any(culprit.rstrip("*") in declared for culprit in culprits)


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
    if keys and (case.growth is None or keys & case.growth):
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
    if case.growth is None or key in case.growth:
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
    loop = _loop_of(case, node)
    if loop is None or not _is_unconditional(case, node, loop):
        return False
    if isinstance(loop, ast.For):
        return not _leaves(loop) and _is_whole(case, loop.iter) and _is_reached(case, loop)
    generator = loop.generators[0]
    if len(loop.generators) != 1 or generator.ifs or not _is_whole(case, generator.iter):
        return False
    if isinstance(loop, ast.GeneratorExp) and not _is_eager(case, loop):
        return False
    statement = next((around for around in case.script.ancestors(loop) if isinstance(around, ast.stmt)), None)
    return (
        isinstance(statement, _PLAIN)
        and _is_unconditional(case, loop, statement)
        and _is_reached(case, statement)
    )


def _loop_of(case: Case, node: ast.expr) -> Loop | None:
    """The loop whose item the node is about."""
    names = [found for found in ast.walk(node) if isinstance(found, ast.Name)]
    bindings = [case.script.only_binding(name) for name in names]
    targets = [binding.node for binding in bindings if binding is not None and binding.how == "each"]
    for around in case.script.ancestors(node):
        if isinstance(around, ast.For) and around.target in targets:
            return around
        if isinstance(around, _COMPREHENSIONS) and around.generators[0].target in targets:
            return around
    return None


def _is_unconditional(case: Case, node: ast.AST, outer: ast.AST) -> bool:
    """Whether whatever evaluates `outer` evaluates `node`: nothing between them may skip it."""
    inner = node
    for around in case.script.ancestors(node):
        if around is outer:
            return not isinstance(outer, ast.For) or inner in outer.body
        if isinstance(around, _CONDITIONS) or (
            isinstance(around, ast.stmt) and not isinstance(around, _PLAIN)
        ):
            return False
        inner = around
    return False


def _is_reached(case: Case, statement: ast.stmt) -> bool:
    """Whether the script certainly comes to a statement: it stands at the top level, and nothing ends the run early."""
    if case.script.parent(statement) is not case.script.tree:
        return False
    if isinstance(statement, ast.Return):
        return not any(_ends_early(case, node) for node in case.script.nodes if node is not statement)
    if "ends early" not in case.answers:
        case.answers["ends early"] = any(_ends_early(case, node) for node in case.script.nodes)
    return not case.answers["ends early"]


def _ends_early(case: Case, node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return case.script.scope(node) is case.script.module
    if isinstance(node, ast.Name | ast.Attribute):
        return named(node) in {"exit", "quit", "SystemExit", "_exit"}
    return isinstance(node, ast.Raise | ast.Assert | ast.NamedExpr)


def _is_whole(case: Case, node: ast.expr) -> bool:
    """An input, or the value of fixed keys in it, as it came: no slice, no call but `.values()` at the end.

    Not a single item of a list: its type tells of all items together. A row of `results` may be asked for by number and
    loaded, and a name may stand for any of it that is only read.
    """
    if isinstance(node, ast.Call):
        match node:
            case ast.Call(func=ast.Attribute(attr="values", value=value), args=[], keywords=[]):
                node = value
            case _:
                return False
    followed: set[str] = set()
    inner: ast.expr | None = node
    while inner is not None and not (isinstance(inner, ast.Name) and case.resolver.is_host(inner)):
        inner = _meant(case, inner, followed) if isinstance(inner, ast.Name) else _owner(case, inner)
    return inner is not None


def _meant(case: Case, name: ast.Name, followed: set[str]) -> ast.expr | None:
    """What a second name for an input, or a part of one, stands for."""
    binding = case.script.only_binding(name)
    if (
        binding is None
        or binding.how != "assign"
        or name.id in followed
        or not _is_only_read_as(case, name.id)
    ):
        return None
    followed.add(name.id)
    return binding.value


def _owner(case: Case, node: ast.expr) -> ast.expr | None:
    """What a fixed part of an input is a part of."""
    match node:
        case ast.Attribute(value=value) | ast.Call(func=ast.Attribute(attr="by_run", value=value)):
            return value
        case ast.Await(value=ast.Call(func=ast.Attribute(attr="load", value=value))):
            return value
        case ast.Subscript(value=value, slice=ast.Constant() | ast.UnaryOp(operand=ast.Constant())):
            owner = case.resolver.resolve(value)
            return value if isinstance(owner, Value) and case.resolver.class_of(owner) else None
        case _:
            return None


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
    key = ("only read", root)
    if key not in case.answers:
        case.answers[key] = all(_is_reading(case, node) for node in case.script.mentions(root))
    return case.answers[key]


def _is_only_read_as(case: Case, name: str) -> bool:
    """Whether a second name for an input, or a part of one, is bound once and only read."""
    key = ("only read as", name)
    if key not in case.answers:
        case.answers[key] = False  # a name that is bound to itself
        case.answers[key] = len(case.script.bindings_everywhere(name)) == 1 and all(
            _is_reading(case, node) for node in case.script.uses(name)
        )
    return case.answers[key]


def _is_scalar(case: Case, node: ast.AST) -> bool:
    resolved = case.resolver.resolve(node)
    return isinstance(resolved, Value) and all(
        named(kind) in _SCALARS for kind in members(resolved.annotation)
    )


def _is_reading(case: Case, node: ast.Name) -> bool:
    script = case.script
    inner: ast.AST = node
    for around in script.ancestors(node):
        match around:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if value is inner:
                return False
            case ast.Attribute(value=value, attr=attribute) if value is inner and attribute in _CHANGING:
                return False
            case ast.Subscript(value=value) | ast.Attribute(value=value) | ast.Await(value=value) if (
                value is inner
            ):
                pass
            case ast.Call(func=function) if function is inner:
                pass  # what a method gives may be a part of it
            case ast.Call(func=function):
                return (
                    isinstance(function, ast.Name)
                    and function.id in _READING
                    and not script.binds(function.id)
                )
            case ast.Assign(targets=[ast.Name(id=name)]):
                return _is_scalar(case, inner) or _is_only_read_as(case, name)
            case ast.Assign() | ast.NamedExpr() | ast.keyword():
                return _is_scalar(case, inner)  # another name for a list or dictionary may change it
            case _:
                return True
        inner = around
    return True
