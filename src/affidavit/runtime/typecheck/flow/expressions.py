"""The values of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from affidavit.runtime.typecheck.flow.calls import Arguments
from affidavit.runtime.typecheck.flow.shapes import (
    NOTHING,
    PLAIN,
    PLAINS,
    UNKNOWNS,
    Cell,
    Class,
    Function,
    Instance,
    Late,
    Map,
    Record,
    Seq,
    Shape,
    Stream,
    Values,
    joined,
)

if TYPE_CHECKING:
    from affidavit.runtime.typecheck.flow.analysis import Analysis

__all__ = ["attribute_of", "defaults_of", "function_of", "value"]

_TUPLE: Final = 8
"""Displays up to this length are known by position."""


def value(analysis: Analysis, node: ast.expr) -> Values:
    """What an expression may be; the parts that it is made of are asked through the analysis."""
    evaluate = _VALUES.get(type(node))
    return evaluate(analysis, node) if evaluate is not None else UNKNOWNS


def function_of(analysis: Analysis, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
    """The shape of a definition."""
    function = analysis.functions.get(node)
    if function is None:
        function = analysis.functions[node] = Function(node=node)
        yields = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in _own_nodes(node))
        late = isinstance(node, ast.AsyncFunctionDef)
        if yields:
            function.made = Stream() if late else Seq()
        elif late:
            function.made = Late(function.returns)
    return function


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    """The nodes of a function that belong to no function in it."""
    found: list[ast.AST] = []
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            found.append(node)
            pending += ast.iter_child_nodes(node)
    return found


def _plain(_: Analysis, __: ast.expr) -> Values:
    return PLAINS


def _name(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Name)
    return analysis.name(node) if isinstance(node.ctx, ast.Load) else NOTHING


def attribute_of(analysis: Analysis, owner: Shape, name: str) -> Values:
    """An attribute that the script asks for: what Python itself provides of objects is not known."""
    found = analysis.attribute(owner, name) or NOTHING
    if (
        found
        or not isinstance(owner, Class | Instance)
        or not (name.startswith("__") and name.endswith("__"))
    ):
        return found
    if name == "__class__" and isinstance(owner, Instance):
        return frozenset({owner.of})
    analysis.escape(frozenset({owner}))
    return UNKNOWNS


def _attribute(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Attribute)
    found: set[Shape] = set()
    for owner in analysis.of(node.value):
        found |= attribute_of(analysis, owner, node.attr)
    return frozenset(found)


def _subscript(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Subscript)
    return analysis.item(analysis.of(node.value), node.slice) if isinstance(node.ctx, ast.Load) else NOTHING


def _call(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Call)
    positional: list[Values] = []
    spread: Values | None = None
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread = (spread or NOTHING) | analysis.elements(analysis.of(argument.value))
        elif spread is not None:
            spread |= analysis.of(argument)
        else:
            positional.append(analysis.of(argument))
    named, is_open = _named(analysis, node)
    given = Arguments(call=node, positional=tuple(positional), named=named, spread=spread, is_open=is_open)
    return analysis.called(analysis.of(node.func), given)


def _named(analysis: Analysis, node: ast.Call) -> tuple[dict[str, Values], bool]:
    """The arguments by name, and whether any name may be given: not by `**kwargs` whose keys are known."""
    named: dict[str, Values] = {}
    is_open = False
    for keyword in node.keywords:
        values = analysis.of(keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = named.get(keyword.arg, NOTHING) | values
            continue
        for shape in values:
            if isinstance(shape, Map) and not shape.rest.shapes and shape.keys.shapes <= PLAINS:
                for name, cell in shape.fields.items():
                    named[name] = named.get(name, NOTHING) | cell.shapes
            else:
                is_open = True
                analysis.escape(values)
    return named, is_open


def _await(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Await)
    return analysis.awaited(analysis.of(node.value))


def _display(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.List | ast.Tuple | ast.Set)
    if isinstance(node, ast.List | ast.Tuple) and not isinstance(node.ctx, ast.Load):
        return NOTHING
    starred = any(isinstance(one, ast.Starred) for one in node.elts)
    fixed = isinstance(node, ast.Tuple | ast.List) and not starred and 0 < len(node.elts) <= _TUPLE
    seq = analysis.made(node, lambda: Seq(items=tuple(Cell() for _ in node.elts) if fixed else ()))
    for position, one in enumerate(node.elts):
        if isinstance(one, ast.Starred):
            analysis.put(seq.element, analysis.elements(analysis.of(one.value)))
        else:
            analysis.put(seq.items[position] if fixed else seq.element, analysis.of(one))
    return frozenset({seq})


def _comprehension(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp)
    late = isinstance(node, ast.GeneratorExp) and any(one.is_async for one in node.generators)
    if late:
        stream = analysis.made(node, Stream)
        analysis.put(stream.element, analysis.of(node.elt))
        return frozenset({stream})
    seq = analysis.made(node, Seq)
    analysis.put(seq.element, analysis.of(node.elt))
    return frozenset({seq})


def _dictionary_of_items(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.DictComp)
    made = analysis.made(node, Map)
    analysis.put(made.keys, analysis.of(node.key))
    analysis.put(made.rest, analysis.of(node.value))
    return frozenset({made})


def _dictionary(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Dict)
    merged = [analysis.of(one) for key, one in zip(node.keys, node.values, strict=True) if key is None]
    if not all(merged):
        return NOTHING  # what is spread in is not known yet
    if any(isinstance(shape, Record) for values in merged for shape in values):
        return _copies(analysis, node, merged)
    made = analysis.made(node, Map)
    for values in merged:
        for shape in values:
            analysis.merge(made, shape)
    for key, one in zip(node.keys, node.values, strict=True):
        if key is not None:
            analysis.store(made, key, analysis.of(one))
    return frozenset({made})


def _copies(analysis: Analysis, node: ast.Dict, merged: list[Values]) -> Values:
    """`{**row, "more": 1}`: a row with more keys; of several spread in, all keys together."""
    whole: Record = Record(rows=frozenset())
    extras = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    for shape in joined(merged):
        match shape:
            case Record():
                whole = Record(rows=whole.rows | shape.rows, extras=whole.extras | shape.extras)
            case Map() if not shape.rest.shapes:
                extras |= set(shape.fields)
            case _:
                return UNKNOWNS
    if any(key is not None and not isinstance(key, ast.Constant) for key in node.keys):
        return UNKNOWNS
    for key, one in zip(node.keys, node.values, strict=True):
        if key is not None:
            analysis.escape(analysis.of(one))
    return frozenset({Record(rows=whole.rows, extras=whole.extras | extras)})


def _either(analysis: Analysis, node: ast.expr) -> Values:
    match node:
        case ast.BoolOp(values=values):
            return joined([analysis.of(one) for one in values])
        case ast.IfExp(body=body, orelse=orelse):
            return analysis.of(body) | analysis.of(orelse)
        case ast.NamedExpr(target=target, value=inner):
            analysis.put(analysis.bound(target), analysis.of(inner))
            return analysis.of(inner)
        case _:
            return UNKNOWNS


def _operation(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.BinOp)
    left, right = analysis.of(node.left), analysis.of(node.right)
    both = left | right
    if not left or not right:
        return NOTHING
    if all(shape is PLAIN for shape in both):
        return both
    if isinstance(node.op, ast.BitOr) and any(isinstance(shape, Record | Map) for shape in both):
        return _united(analysis, node, both)
    if all(isinstance(shape, Seq) or shape is PLAIN for shape in both):
        return _sequence(analysis, node, both)
    analysis.escape(both)
    return UNKNOWNS


def _sequence(analysis: Analysis, node: ast.BinOp, both: Values) -> Values:
    """`first + second`, `items * 2`, `"%s" % (x,)`, and operations on sets."""
    if isinstance(node.op, ast.Mod):
        return PLAINS
    seq = analysis.made(node, Seq)
    for shape in both:
        if isinstance(shape, Seq):
            analysis.put(seq.element, shape.inside())
    return frozenset({seq})


def _united(analysis: Analysis, node: ast.BinOp, both: Values) -> Values:
    """`row | {"more": 1}`: what is in the display, `Stores` knows."""
    made = analysis.made(node, Map)
    records = [shape for shape in both if isinstance(shape, Record)]
    if not records:
        for shape in both:
            analysis.merge(made, shape)
        return frozenset({made})
    rows, extras = records[0].rows, records[0].extras
    for shape in both:
        match shape:
            case Record():
                rows, extras = rows | shape.rows, extras | shape.extras
            case Map() if not shape.rest.shapes:
                extras |= frozenset(shape.fields)
            case _:
                return UNKNOWNS
    return frozenset({Record(rows=rows, extras=frozenset(extras))})


def _lambda(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.Lambda)
    function = function_of(analysis, node)
    for parameter, default in defaults_of(node.args):
        analysis.put(analysis.bound(parameter), analysis.of(default))
    analysis.put(function.returns, analysis.of(node.body))
    if analysis.is_escaped(function):
        analysis.escape(frozenset(function.returns.shapes))
    return frozenset({function})


def defaults_of(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters with a default, each with its default."""
    plain = [*arguments.posonlyargs, *arguments.args]
    found = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found.append((parameter, default))
    return found


def _unary(analysis: Analysis, node: ast.expr) -> Values:
    assert isinstance(node, ast.UnaryOp)
    inner = analysis.of(node.operand)
    return PLAINS if isinstance(node.op, ast.Not) or inner <= PLAINS else UNKNOWNS


def _unknown(_: Analysis, __: ast.expr) -> Values:
    return UNKNOWNS


def _yield(analysis: Analysis, node: ast.expr) -> Values:
    """What is yielded flows into the generator; what is sent to it is not known."""
    match node:
        case ast.Yield(value=value) if value is not None:
            values = analysis.of(value)
        case ast.YieldFrom(value=value):
            values = analysis.elements(analysis.of(value))
        case _:
            values = PLAINS
    for around in analysis.script.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            made = function_of(analysis, around).made
            if isinstance(made, Seq | Stream):
                analysis.put(made.element, values)
            break
    return UNKNOWNS


_VALUES: Final[Mapping[type[ast.expr], Callable[[Analysis, ast.expr], Values]]] = {
    ast.Constant: _plain,
    ast.JoinedStr: _plain,
    ast.FormattedValue: _plain,
    ast.Compare: _plain,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.Await: _await,
    ast.List: _display,
    ast.Tuple: _display,
    ast.Set: _display,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dictionary_of_items,
    ast.Dict: _dictionary,
    ast.BoolOp: _either,
    ast.IfExp: _either,
    ast.NamedExpr: _either,
    ast.BinOp: _operation,
    ast.Lambda: _lambda,
    ast.UnaryOp: _unary,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Starred: _unknown,
    ast.Slice: _unknown,
}
