"""What statements do: they bind names, store into objects, return and yield."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.flow.calls import Arguments
from affidavit.runtime.typecheck.flow.expressions import defaults_of, function_of
from affidavit.runtime.typecheck.flow.shapes import (
    NOTHING,
    PLAIN,
    PLAINS,
    UNKNOWN,
    UNKNOWNS,
    Class,
    Function,
    Instance,
    Library,
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

__all__ = ["NOTED", "held", "note"]

NOTED: Final[tuple[type[ast.AST], ...]] = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Return,
    ast.For, ast.AsyncFor, ast.comprehension, ast.withitem, ast.Import, ast.ImportFrom, ast.match_case,
    ast.ExceptHandler, ast.Delete,
    *(getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name)),
)  # fmt: skip
"""The nodes that `note` does something for."""

_FOLLOWED = frozenset({"__init__", "__call__", "__post_init__", "__getitem__", "__setitem__"})
_TRANSPARENT = frozenset({
    "staticmethod", "classmethod", "property", "cached_property", "cache", "lru_cache", "override", "setter",
    "contextmanager", "asynccontextmanager",
})  # fmt: skip
"""What is decorated with these is called as it was; `with` asks a generator for what it yields."""


def note(analysis: Analysis, node: ast.AST) -> None:
    """Note what a statement, handler, import or pattern does."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _assign(analysis, target, analysis.of(value))
        case ast.AnnAssign(target=target, annotation=annotation, value=value) if value is not None:
            # `: Any` is how a script says that it knows better than the declared types
            given_up = named(annotation) == "Any"
            _assign(analysis, target, UNKNOWNS if given_up else _declared(analysis, value))
        case ast.AugAssign():
            _augment(analysis, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _function(analysis, node)
        case ast.ClassDef():
            _class(analysis, node)
        case ast.Return(value=value) if value is not None:
            _returned(analysis, node, analysis.of(value))
        case _:
            _note_others(analysis, node)


def _note_others(analysis: Analysis, node: ast.AST) -> None:
    match node:
        case ast.For(target=target, iter=iterated):
            _assign(analysis, target, analysis.elements(analysis.of(iterated)))
        case ast.AsyncFor(target=target, iter=iterated):
            _assign(analysis, target, _streamed(analysis, analysis.of(iterated)))
        case ast.comprehension(target=target, iter=iterated, is_async=late):
            values = analysis.of(iterated)
            _assign(analysis, target, _streamed(analysis, values) if late else analysis.elements(values))
        case ast.withitem(context_expr=manager, optional_vars=target) if target is not None:
            _assign(analysis, target, _entered(analysis, manager))
        case ast.Import() | ast.ImportFrom():
            _imported(analysis, node)
        case ast.match_case():
            _matched(analysis, node)
        case ast.Delete(targets=targets):
            _deleted(analysis, targets)
        case _:  # a handler, or a type variable
            analysis.put(analysis.bound(node), UNKNOWNS)


def _deleted(analysis: Analysis, targets: list[ast.expr]) -> None:
    """After `del rows[0]` nothing is known by position any more."""
    for shape in joined(analysis.of(one.value) for one in targets if isinstance(one, ast.Subscript)):
        if isinstance(shape, Seq):
            analysis.put(shape.element, shape.inside())


def _imported(analysis: Analysis, node: ast.Import | ast.ImportFrom) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            path = alias.name if alias.asname else alias.name.partition(".")[0]
        else:
            path = f"{node.module}.{alias.name}" if node.module is not None and not node.level else ""
        analysis.put(analysis.bound(alias), frozenset({Library(path)}) if path else UNKNOWNS)


def _declared(analysis: Analysis, value: ast.expr) -> Values:
    """The default of a dataclass field may be made by a factory."""
    match value:
        case ast.Call(func=function, keywords=[ast.keyword(arg="default_factory", value=factory)]) if (
            named(function) == "field"
        ):
            return analysis.called(analysis.of(factory), Arguments(call=value))
        case _:
            return analysis.of(value)


def _assign(analysis: Analysis, target: ast.expr, values: Values) -> None:
    match target:
        case ast.Name():
            analysis.put(analysis.bound(target), values)
            _class_attribute(analysis, target, values)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(analysis, targets, values)
        case ast.Starred(value=inner):
            _assign(analysis, inner, values)
        case ast.Attribute(value=owner, attr=name):
            for shape in analysis.of(owner):
                analysis.stored(shape, name, values)
        case ast.Subscript(value=owner, slice=index):
            for shape in analysis.of(owner):
                _store(analysis, shape, index, values)
        case _:
            analysis.escape(values)


def _class_attribute(analysis: Analysis, target: ast.Name, values: Values) -> None:
    """A name bound in a class body is an attribute of the class."""
    if analysis.script.scope(target).kind != "class":
        return
    for around in analysis.script.ancestors(target):
        if isinstance(around, ast.ClassDef):
            analysis.put(analysis.define_class(around).attribute(target.id), values)
            return


def _store(analysis: Analysis, owner: Shape, index: ast.expr, values: Values) -> None:
    match owner:
        case Map():
            analysis.store(owner, index, values)
        case Seq():
            shifted = isinstance(index, ast.Slice)
            analysis.put(owner.element, analysis.elements(values) | owner.inside() if shifted else values)
        case Instance():
            given = Arguments(call=index, positional=(analysis.of(index), values))
            analysis.called(analysis.attribute(owner, "__setitem__"), given)
        case _:
            analysis.escape(values)


def _unpack(analysis: Analysis, targets: list[ast.expr], values: Values) -> None:
    starred = [position for position, one in enumerate(targets) if isinstance(one, ast.Starred)]
    for shape in values:
        fixed = isinstance(shape, Seq) and len(shape.items) == len(targets) and not starred
        for position, one in enumerate(targets):
            if fixed and isinstance(shape, Seq):
                part: Values = frozenset(shape.items[position].shapes | shape.element.shapes)
            else:
                part = analysis.elements(frozenset({shape}))
            if position in starred:
                rest = analysis.made(one, Seq)
                analysis.put(rest.element, part)
                part = frozenset({rest})
            _assign(analysis, one, part)


def held(analysis: Analysis, target: ast.expr) -> Values:
    """What a target of `+=` holds before."""
    match target:
        case ast.Name(id=name):
            places = analysis.script.bindings(name, analysis.script.scope(target))
            return joined([analysis.bound(one.node).shapes for one in places])
        case ast.Attribute(value=owner, attr=name):
            return joined([analysis.attribute(one, name) or NOTHING for one in analysis.of(owner)])
        case ast.Subscript(value=owner, slice=index):
            return analysis.item(analysis.of(owner), index)
        case _:
            return NOTHING


def _augment(analysis: Analysis, node: ast.AugAssign) -> None:
    """`rows += page.rows` changes the list in place."""
    added = analysis.of(node.value)
    for shape in held(analysis, node.target):
        if isinstance(shape, Seq):
            analysis.put(shape.element, analysis.elements(added))
        elif isinstance(shape, Map):
            for one in added:
                analysis.merge(shape, one)
        elif not (shape is PLAIN and added <= PLAINS) and not isinstance(shape, Record):
            _assign_unknown(analysis, node.target, added)
    if isinstance(node.target, ast.Subscript) and added - PLAINS:
        _assign_parts(analysis, node.target, added)


def _assign_parts(analysis: Analysis, target: ast.Subscript, added: Values) -> None:
    """`counts[key] += x` of something that is no number: what is stored is not known."""
    if not all(
        isinstance(shape, Seq | Map) for shape in analysis.item(analysis.of(target.value), target.slice)
    ):
        _assign_unknown(analysis, target, added)


def _assign_unknown(analysis: Analysis, target: ast.expr, added: Values) -> None:
    analysis.escape(added)
    match target:
        case ast.Name(id=name):
            for one in analysis.script.bindings(name, analysis.script.scope(target)):
                analysis.put(analysis.bound(one.node), UNKNOWNS)
        case _:
            _assign(analysis, target, UNKNOWNS)


def _streamed(analysis: Analysis, values: Values) -> Values:
    """What `async for` over any of these gives."""
    found: set[Shape] = set()
    for shape in values:
        match shape:
            case Stream(element=cell):
                found |= cell.shapes
            case Instance(of=one):
                made = analysis.called(analysis.attribute(shape, "__aiter__"), Arguments(call=one.node))
                streams = [each for each in made if isinstance(each, Stream)]
                found |= joined([each.element.shapes for each in streams]) if streams else UNKNOWNS
                found |= UNKNOWNS if len(streams) < len(made) else NOTHING
            case _:
                found |= UNKNOWNS if shape is UNKNOWN else NOTHING
    return frozenset(found)


def _entered(analysis: Analysis, manager: ast.expr) -> Values:
    """What `with ... as name` binds."""
    found: set[Shape] = set()
    for shape in analysis.of(manager):
        match shape:
            case Library():
                found.add(shape)
            case Seq() | Stream():  # a generator function under `contextmanager`
                found |= shape.element.shapes
            case Instance(of=one):
                given = Arguments(call=one.node)
                found |= analysis.called(analysis.attribute(shape, "__enter__"), given)
                found |= analysis.awaited(analysis.called(analysis.attribute(shape, "__aenter__"), given))
            case _:
                found.add(UNKNOWN)
    return frozenset(found)


def _function(analysis: Analysis, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    function = function_of(analysis, node)
    for parameter, default in defaults_of(node.args):
        analysis.put(analysis.bound(parameter), analysis.of(default))
    for rest, kind in ((node.args.vararg, Seq), (node.args.kwarg, Map)):
        if rest is not None:
            made: Seq | Map = analysis.made(rest, kind)
            analysis.put(analysis.bound(rest), frozenset({made}))
    values: Values = frozenset({function})
    for decorator in reversed(node.decorator_list):
        if not _is_transparent(analysis, decorator):
            values = analysis.called(analysis.of(decorator), Arguments(call=decorator, positional=(values,)))
    analysis.put(analysis.bound(node), values)
    if analysis.is_escaped(function):
        analysis.escape(frozenset(function.returns.shapes))
    owner = analysis.script.parent(node)
    if isinstance(owner, ast.ClassDef):
        _member(analysis, analysis.define_class(owner), function, values)


def _is_transparent(analysis: Analysis, decorator: ast.expr) -> bool:
    """Whether a decorator is one of the library's; a script may call its own by the same name."""
    word = _word(decorator)
    bindings = analysis.script.bindings_everywhere(word)
    return word in _TRANSPARENT and all(isinstance(one.node, ast.alias) for one in bindings)


def _member(analysis: Analysis, owner: Class, function: Function, values: Values) -> None:
    """A method: it gets its object, and where Python calls it by itself, anything beside."""
    node = function.node
    assert not isinstance(node, ast.Lambda)
    analysis.put(owner.attribute(node.name), values)
    if owner.instance is None:
        analysis.escape(frozenset({function}))
        return
    decorators = {named(one) for one in node.decorator_list}
    parameters = [*node.args.posonlyargs, *node.args.args]
    if parameters and "staticmethod" not in decorators:
        itself: Shape = owner if "classmethod" in decorators else owner.instance
        analysis.put(analysis.bound(parameters[0]), frozenset({itself}))
    implicit = node.name.startswith("__") and node.name.endswith("__") and node.name not in _FOLLOWED
    if implicit or "setter" in decorators:
        rest = [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
        for parameter in [*parameters[1:], *node.args.kwonlyargs, *rest]:
            analysis.put(analysis.bound(parameter), UNKNOWNS)


def _class(analysis: Analysis, node: ast.ClassDef) -> None:
    made: Values = frozenset({analysis.define_class(node)})
    for decorator in node.decorator_list:
        if _word(decorator) not in {"dataclass", "total_ordering"}:
            analysis.escape(made)
            made = UNKNOWNS
    analysis.put(analysis.bound(node), made)


def _word(decorator: ast.expr) -> str:
    return named(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _returned(analysis: Analysis, node: ast.AST, values: Values) -> None:
    function = _around(analysis, node)
    if function is not None:
        analysis.put(function.returns, values)


def _around(analysis: Analysis, node: ast.AST) -> Function | None:
    for around in analysis.script.ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return function_of(analysis, around)
    return None


def _matched(analysis: Analysis, case: ast.match_case) -> None:
    """Names that a pattern binds: the whole subject, its elements, or something unknown."""
    subject = analysis.script.parent(case)
    values = analysis.of(subject.subject) if isinstance(subject, ast.Match) else UNKNOWNS
    _pattern(analysis, case.pattern, values)


def _pattern(analysis: Analysis, pattern: ast.pattern, values: Values) -> None:
    match pattern:
        case ast.MatchAs(pattern=inner):
            analysis.put(analysis.bound(pattern), values)
            if inner is not None:
                _pattern(analysis, inner, values)
        case ast.MatchOr(patterns=inners):
            for inner in inners:
                _pattern(analysis, inner, values)
        case ast.MatchSequence(patterns=inners):
            for inner in inners:
                _pattern(analysis, inner, analysis.elements(values))
        case ast.MatchStar():
            rest = analysis.made(pattern, Seq)
            analysis.put(rest.element, values)
            analysis.put(analysis.bound(pattern), frozenset({rest}))
        case _:
            for node in ast.walk(pattern):
                if isinstance(node, ast.MatchAs | ast.MatchStar | ast.MatchMapping):
                    analysis.put(analysis.bound(node), UNKNOWNS)
