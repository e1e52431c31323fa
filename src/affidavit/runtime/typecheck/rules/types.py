"""Types in the checker's words: when no value of one can be a value of the other.

Stricter than "not assignable": a `str` may well hold one of the wanted literals, a list of optional texts may hold
none that is missing. Only types whose values never meet prove that a call must fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.typecheck.catalogue import Catalogue, members, named
from affidavit.runtime.typecheck.resolve import Callable, Pending, Value
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.rules.proof import Stores, literal

__all__ = ["disjoint", "is_single", "literals", "texts", "trusted", "within"]

_SCALARS = frozenset({"str", "int", "bool", "float", "bytes", "None"})
_LISTS = frozenset({"list", "Sequence", "Iterable", "Collection"})
_DICTS = frozenset({"dict", "Mapping"})
_ACCEPTS = {"float": frozenset({"float", "int", "bool"}), "int": frozenset({"int", "bool", "float"})}
"""What may pass for a kind: whole floats pass for integers in JSON."""

_PURE = frozenset(
    {"len", "str", "repr", "sorted", "list", "dict", "tuple", "set", "bool", "sum", "round", "abs"}
)


def literals(kind: str) -> list[object]:
    """The values of every `Literal[...]` in a type."""
    tree = _parsed(kind)
    return [value for member in members(tree) for value in _values(member)] if tree is not None else []


def texts(kind: str) -> set[str] | None:
    """The members of a union as text, or None where it is not understood."""
    tree = _parsed(kind)
    return {ast.unparse(member) for member in members(tree)} if tree is not None else None


def disjoint(given: str, wanted: str, catalogue: Catalogue) -> bool:
    """Whether no value of type `given` can be one of type `wanted`; False where either is not understood."""
    left, right = _parsed(given), _parsed(wanted)
    if left is None or right is None:
        return False
    return all(_apart(one, other, catalogue) for one in members(left) for other in members(right))


def is_single(annotation: ast.expr) -> bool:
    """Whether an annotation is of one known kind, not a union and not open."""
    kinds = members(annotation)
    return len(kinds) == 1 and named(kinds[0]) not in {"", "Any", "object"}


def within(kind: str, annotation: ast.expr) -> bool:
    """Whether a type in the checker's words is an annotation or, narrowed by the script, some members of it."""
    tree = _parsed(kind)
    declared = {named(member) for member in members(annotation)}
    return tree is not None and all(
        named(member) in declared - {"", "Any", "object"} or _kind_of_literal(member) in declared
        for member in members(tree)
    )


def trusted(case: Case, node: ast.expr) -> bool:
    """Whether the type of an expression rests on literals and stubs alone.

    Not on what the script's own annotations claim, nor on what stores elsewhere may have changed.
    """
    stack: list[ast.expr] = [node]
    seen: set[ast.expr] = set()
    while stack:
        current = stack.pop()
        parts = _parts(case, current) if current not in seen and len(seen) < 200 else None
        if parts is None:
            return False
        seen.add(current)
        stack += [part for part in parts if part not in seen]
    return True


def _parts(case: Case, node: ast.expr) -> list[ast.expr] | None:
    """What the type of an expression rests on; None where it cannot be trusted."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            return []
        case (
            ast.List()
            | ast.Tuple()
            | ast.Set()
            | ast.Dict()
            | ast.ListComp()
            | ast.DictComp()
            | ast.SetComp()
        ):
            return []  # its own kind is certain; what it holds is never compared
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Await(value=value):
            return [] if isinstance(case.resolver.resolve(value), Pending) else None
        case ast.Call():
            return _of_call(case, node)
        case ast.Attribute(value=value, attr=attribute):
            return [value] if attribute not in case.stores.attributes else None
        case ast.Subscript(value=value, slice=index):
            key = literal(index)
            return [value] if key is not Stores.UNKNOWN and key not in case.stores.copied else None
        case ast.Name():
            return _of_name(case, node)
        case _:
            return None


def _of_call(case: Case, node: ast.Call) -> list[ast.expr] | None:
    if isinstance(case.resolver.resolve(node), Pending | Value):
        return []
    pure = isinstance(node.func, ast.Name) and node.func.id in _PURE and not case.script.binds(node.func.id)
    return [] if pure else None


def _of_name(case: Case, node: ast.Name) -> list[ast.expr] | None:
    resolved = case.resolver.resolve(node)
    if isinstance(resolved, Value | Callable | Pending):
        return []
    binding = case.script.only_binding(node)
    if binding is None or binding.how == "other" or binding.value is None:
        return None
    return [binding.value]


def _parsed(kind: str) -> ast.expr | None:
    try:
        return ast.parse(kind, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _values(kind: ast.expr) -> Iterator[object]:
    if named(kind) == "Literal" and isinstance(kind, ast.Subscript):
        elements = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        yield from (value for value in map(literal, elements) if value is not Stores.UNKNOWN)


def _apart(given: ast.expr, wanted: ast.expr, catalogue: Catalogue) -> bool:
    left, right = _kind(given, catalogue), _kind(wanted, catalogue)
    if not left or not right:
        return False
    if left != right:
        return not _meets(left, right)
    allowed, offered = list(_values(wanted)), list(_values(given))
    return (
        bool(allowed) and bool(offered) and not any(_same(one, other) for one in offered for other in allowed)
    )


def _meets(given: str, wanted: str) -> bool:
    if given in _ACCEPTS.get(wanted, ()):
        return True
    if given == "int" and wanted == "bool":
        return True
    # A class of the stubs may be a dictionary when the script runs; a tuple or set may pass for a list.
    return given in {"object", "tuple", "set"} and wanted not in _SCALARS


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _kind_of_literal(node: ast.expr) -> str:
    kinds = {type(value).__name__ for value in _values(node)}
    return kinds.pop() if len(kinds) == 1 else "-"


def _kind(node: ast.expr, catalogue: Catalogue) -> str:
    """One word for what a type's values are when the script runs; empty where that is open."""
    head = named(node)
    if head == "Literal":
        kinds = {"None" if value is None else type(value).__name__ for value in _values(node)}
        return kinds.pop() if len(kinds) == 1 else ""
    if head in catalogue.classes:
        return "dict" if catalogue.is_dict(head) else "object"
    if head in _SCALARS:
        return head
    if head in _LISTS:
        return "list"
    if head in _DICTS:
        return "dict"
    return head if head in {"tuple", "set"} else ""
