"""Which keys a script may put into rows of the host that its text does not name.

A key that is computed (`row[name + "_len"] = ...`, `row.update(match.groupdict())`) may be any. So is what code that
cannot be looked into adds. Where a row may get such a key, no key is known to be missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from affidavit.runtime.typecheck.flow.shapes import (
    PLAIN,
    UNKNOWN,
    HostObject,
    Instance,
    Library,
    Map,
    Record,
    Seq,
    Shape,
    Values,
)
from affidavit.runtime.typecheck.flow.statements import held

if TYPE_CHECKING:
    from affidavit.runtime.typecheck.flow.analysis import Analysis

__all__ = ["growth"]

_ONE: Final = frozenset({"setdefault", "__setitem__"})
_MANY: Final = frozenset({"update", "__ior__"})
_ANYWHERE: Final = frozenset({"setitem", "ior", "methodcaller"})
"""Functions of `operator` that store without naming where."""

_VIEWS: Final = frozenset(
    {"items", "keys", "values", "enumerate", "zip", "sorted", "list", "tuple", "set", "reversed"}
)
_HOPS: Final = 6


def growth(analysis: Analysis) -> frozenset[str] | None:
    """The keys that rows may get beside those of constant stores; None where they may get any."""
    found: set[str] = set()
    for node in analysis.script.nodes:
        keys = _of_node(analysis, node)
        if keys is None:
            return None
        found.update(keys)
    return frozenset(found)


def _of_node(analysis: Analysis, node: ast.AST) -> Iterable[str] | None:
    match node:
        case ast.Subscript(ctx=ast.Store(), value=owner, slice=index) if not isinstance(index, ast.Slice):
            return _stored(analysis, analysis.of(owner), index)
        case ast.AugAssign(op=ast.BitOr(), target=target, value=value):
            return _merged(analysis, held(analysis, target), [value])
        case ast.Attribute(attr=name, value=owner) if name in _ONE | _MANY:
            return _method(analysis, node, analysis.of(owner))
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in _ANYWHERE:
            return None
        case ast.Call():
            return None if _is_handed_over(analysis, node) else ()
        case _:
            return ()


def _method(analysis: Analysis, node: ast.Attribute, owners: Values) -> Iterable[str] | None:
    """`row.update(more)`, or the method on its way to somewhere else."""
    call = analysis.script.parent(node)
    if any(isinstance(one, Library) for one in owners):
        return None  # `dict.update(row, more)`
    if not isinstance(call, ast.Call) or call.func is not node:
        return None if _may_be_row(owners) else ()
    if node.attr in _ONE:
        return _stored(analysis, owners, call.args[0]) if call.args else ()
    given = [*call.args, *(one.value for one in call.keywords if one.arg is None)]
    return _merged(analysis, owners, given)


def _stored(analysis: Analysis, owners: Values, key: ast.expr) -> Iterable[str] | None:
    if isinstance(key, ast.Constant) or not _may_be_row(owners):
        return ()
    return analysis.case.stores.words if _is_word(analysis, key) else None


def _merged(analysis: Analysis, owners: Values, given: Iterable[ast.expr]) -> Iterable[str] | None:
    """The keys of what is merged into a row: those of displays are known to whoever reads the text."""
    if not _may_be_row(owners):
        return ()
    found: set[str] = set()
    for one in given:
        for shape in analysis.of(one):
            match shape:
                case Record():
                    found |= set(analysis.hosts.keys(shape))
                case Map() if not shape.rest.shapes and UNKNOWN not in shape.keys.shapes:
                    found |= set(shape.fields)
                case _:
                    return None
    return found


def _may_be_row(owners: Values) -> bool:
    return any(one is UNKNOWN or isinstance(one, Record | HostObject) for one in owners)


def _is_word(analysis: Analysis, node: ast.expr, hops: int = _HOPS) -> bool:
    """Whether a key is certainly one of the strings in the text, or no string."""
    match node:
        case ast.Constant():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _is_word(analysis, body, hops) and _is_word(analysis, orelse, hops)
        case ast.Name(id=name):
            bindings = analysis.names.meant(node)
            return (
                hops > 0
                and bool(bindings)
                and not analysis.script.is_shared(name)
                and all(_is_bound_to_word(analysis, one.node, hops - 1) for one in bindings)
            )
        case _:
            return False


def _is_bound_to_word(analysis: Analysis, node: ast.AST, hops: int) -> bool:
    inner, around = node, analysis.script.parent(node)
    while isinstance(around, ast.Tuple | ast.List):
        inner, around = around, analysis.script.parent(around)
    match around:
        case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated) if (
            target is inner
        ):
            return _has_words(analysis, iterated, hops)
        case ast.Assign(value=value, targets=targets) if inner in targets:
            return _is_word(analysis, value, hops) if inner is node else _has_words(analysis, value, hops)
        case _:
            return False


def _has_words(analysis: Analysis, node: ast.expr, hops: int) -> bool:
    """Whether everything in a container is written in the text."""
    match node:
        case ast.Constant():
            return not isinstance(node.value, str)  # of a text its characters
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(_is_part(analysis, one, hops) for one in parts)
        case ast.Dict(keys=keys, values=values):
            return None not in keys and all(
                _is_part(analysis, one, hops) for one in [*keys, *values] if one is not None
            )
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[]) if name in _VIEWS:
            return _has_words(analysis, owner, hops)
        case ast.Call(func=ast.Name(id=name), args=parts) if name in _VIEWS and not analysis.script.binds(
            name
        ):
            return all(_has_words(analysis, one, hops) for one in parts)
        case ast.Name(id=name):
            bindings = analysis.names.meant(node)
            return (
                hops > 0
                and len(bindings) == 1
                and bindings[0].how == "assign"
                and bindings[0].value is not None
                and _has_words(analysis, bindings[0].value, hops - 1)
            )
        case _:
            return False


def _is_part(analysis: Analysis, node: ast.expr, hops: int) -> bool:
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        return _has_words(analysis, node, hops)
    return isinstance(node, ast.Constant | ast.Lambda) or _is_word(analysis, node, hops)


def _is_handed_over(analysis: Analysis, call: ast.Call) -> bool:
    """Whether code of the preamble gets rows: it may add to them."""
    given = analysis.case.given
    if not any(analysis.script.uses(name) for name in given) or UNKNOWN not in analysis.of(call.func):
        return False
    parts = [*call.args, *(one.value for one in call.keywords)]
    return any(
        _leads_to_row(shape)
        for one in parts
        for shape in analysis.of(one.value if isinstance(one, ast.Starred) else one)
    )


def _leads_to_row(shape: Shape) -> bool:
    return shape is not PLAIN and (
        shape is UNKNOWN or isinstance(shape, Record | HostObject | Seq | Map | Instance)
    )
