"""What happens when functions, classes and methods of the script are called, and methods of its containers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.flow.hosts import key_of
from affidavit.runtime.typecheck.flow.shapes import (
    NOTHING,
    PLAIN,
    PLAINS,
    UNKNOWN,
    UNKNOWNS,
    Bound,
    Cell,
    Class,
    Function,
    Getter,
    HostMethod,
    Instance,
    Late,
    Library,
    Map,
    Partial,
    Record,
    Seq,
    Shape,
    Stream,
    Values,
)

if TYPE_CHECKING:
    from affidavit.runtime.typecheck.flow.analysis import Analysis

__all__ = ["Arguments", "apply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a call is given.

    Attributes:
        call: where the call stands.
        positional: the arguments in order.
        named: those by name.
        spread: what `*values` adds, together, or None.
        is_open: there is a `**mapping`, so that any name may be given.
    """

    call: ast.AST
    positional: tuple[Values, ...] = ()
    named: Mapping[str, Values] = field(default_factory=dict[str, Values])
    spread: Values | None = None
    is_open: bool = False

    def at(self, position: int, name: str = "") -> Values:
        """The argument at a position or with a name, or nothing."""
        if position < len(self.positional):
            return self.positional[position]
        return self.named.get(name, self.spread or NOTHING)

    def everything(self) -> Iterator[Values]:
        """All of them."""
        yield from self.positional
        yield from self.named.values()
        if self.spread is not None:
            yield self.spread


def apply(analysis: Analysis, function: Shape, given: Arguments) -> Values:
    """What calling a shape gives; everything that it does to its arguments is noted."""
    match function:
        case Function():
            return _run(analysis, function, given)
        case Bound(function=Function() as method, owner=owner):
            return _run(analysis, method, _with_self(given, frozenset({owner})))
        case Bound():
            return _method(analysis, function, given)
        case Class():
            return _construct(analysis, function, given)
        case HostMethod():
            call = given.call
            return analysis.hosts.called(function, call.args if isinstance(call, ast.Call) else [])
        case Library(path=path):
            return analysis.library(path, given)
        case _:
            return _apply_object(analysis, function, given)


def _apply_object(analysis: Analysis, function: Shape, given: Arguments) -> Values:
    match function:
        case Partial():
            return _partial(analysis, function, given)
        case Getter():
            return _get(analysis, function, given)
        case Instance():
            return analysis.called(analysis.attribute(function, "__call__"), given)
        case _:
            if function is PLAIN:
                return NOTHING  # this cannot be called
            for values in given.everything():
                analysis.escape(values)
            return UNKNOWNS


def _with_self(given: Arguments, owner: Values) -> Arguments:
    return Arguments(
        call=given.call,
        positional=(owner, *given.positional),
        named=given.named,
        spread=given.spread,
        is_open=given.is_open,
    )


def _run(analysis: Analysis, function: Function, given: Arguments) -> Values:
    """Call a function of the script: arguments flow into its parameters."""
    parameters = function.node.args
    plain = [*parameters.posonlyargs, *parameters.args]
    for position, parameter in enumerate(plain):
        if position < len(given.positional):
            analysis.put(analysis.bound(parameter), given.positional[position])
        elif given.spread is not None:
            analysis.put(analysis.bound(parameter), given.spread)
    extra = given.positional[len(plain) :]
    _rest(analysis, parameters, extra, given.spread)
    known = {parameter.arg: parameter for parameter in [*plain, *parameters.kwonlyargs]}
    for name, values in given.named.items():
        if name in known:
            analysis.put(analysis.bound(known[name]), values)
        elif parameters.kwarg is not None:
            _keyword(analysis, parameters.kwarg, name, values)
    if given.is_open:
        rest = [parameters.kwarg] if parameters.kwarg is not None else []
        for parameter in [*known.values(), *rest]:
            analysis.put(analysis.bound(parameter), UNKNOWNS)
    return frozenset({function.made}) if function.made is not None else frozenset(function.returns.shapes)


def _rest(
    analysis: Analysis, parameters: ast.arguments, extra: tuple[Values, ...], spread: Values | None
) -> None:
    """Fill `*args`."""
    if parameters.vararg is None:
        return
    seq = analysis.made(parameters.vararg, Seq)
    analysis.put(analysis.bound(parameters.vararg), frozenset({seq}))
    for values in (*extra, *([spread] if spread is not None else [])):
        analysis.put(seq.element, values)


def _keyword(analysis: Analysis, parameter: ast.arg, name: str, values: Values) -> None:
    """Fill `**kwargs`."""
    made = analysis.made(parameter, Map)
    analysis.put(analysis.bound(parameter), frozenset({made}))
    analysis.put(made.fields.setdefault(name, Cell()), values)
    analysis.put(made.keys, PLAINS)


def _construct(analysis: Analysis, one: Class, given: Arguments) -> Values:
    instance = one.instance
    if instance is None:
        for values in given.everything():
            analysis.escape(values)
        return UNKNOWNS
    made: Values = frozenset({instance})
    if one.is_tuple or any(
        named(decorator) == "dataclass" or _is_dataclass(decorator) for decorator in one.node.decorator_list
    ):
        _fields(analysis, one, given)
        for shape in analysis.attribute(instance, "__post_init__") or ():
            apply(analysis, shape, Arguments(call=given.call))
        return made
    for shape in analysis.attribute(instance, "__init__") or ():
        if shape is not UNKNOWN:
            apply(analysis, shape, given)
    return made


def _is_dataclass(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and named(decorator.func) == "dataclass"


def _fields(analysis: Analysis, one: Class, given: Arguments) -> None:
    """The fields of a dataclass, from the arguments and from the class body."""
    fields = [
        node
        for node in one.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    words = {found.id for node in fields for found in ast.walk(node) if isinstance(found, ast.Name)}
    special = any(keyword.arg in {"init", "kw_only"} for node in ast.walk(one.node) if isinstance(node, ast.Call)
                  for keyword in node.keywords)  # fmt: skip
    inherits = (
        (bool(one.node.bases) and not one.is_tuple)
        or special
        or bool(words & {"ClassVar", "InitVar", "KW_ONLY"})
    )
    for position, node in enumerate(fields):
        assert isinstance(node.target, ast.Name)
        values = given.named.get(node.target.id) or (
            UNKNOWNS if inherits or given.is_open else given.at(position)
        )
        analysis.put(one.attribute(node.target.id), values)


def _partial(analysis: Analysis, partial: Partial, given: Arguments) -> Values:
    whole = Arguments(
        call=given.call,
        positional=(*partial.given, *given.positional),
        named={**partial.named, **given.named},
        spread=given.spread,
        is_open=given.is_open,
    )
    return analysis.called(partial.function, whole)


def _get(analysis: Analysis, getter: Getter, given: Arguments) -> Values:
    """Apply `itemgetter(...)`."""
    owner = given.at(0)
    analysis.put(getter.applied, owner)
    found = [analysis.item(owner, key) for key in getter.keys]
    if len(found) == 1:
        return found[0]
    for cell, values in zip(getter.pair.items, found, strict=True):
        analysis.put(cell, values)
    return frozenset({getter.pair})


_ADDING = frozenset({"append", "add", "appendleft", "put", "put_nowait"})
_EXTENDING = frozenset(
    {"extend", "update", "extendleft", "union", "symmetric_difference", "difference_update"}
)
_TAKING = frozenset({"pop", "popleft", "get_nowait", "__getitem__", "__next__"})
_SAME = frozenset({"copy", "difference", "intersection", "__iter__", "elements"})
_REORDERING = frozenset(
    {"insert", "pop", "popleft", "remove", "reverse", "sort", "rotate", "appendleft", "clear"}
)
"""After these, nothing is known by position."""

_QUIET = frozenset({
    "join",
    "remove", "reverse", "index", "count", "clear", "discard", "rotate", "issubset", "issuperset", "isdisjoint",
    "__len__", "__contains__", "task_done", "empty", "full", "qsize", "intersection_update", "total",
})  # fmt: skip


def _method(analysis: Analysis, bound: Bound, given: Arguments) -> Values:
    """Call a method of something that is no class of the script."""
    owner = bound.owner
    match owner:
        case Seq():
            return _of_seq(analysis, owner, bound.name, given)
        case Map():
            return _of_map(analysis, owner, bound.name, given)
        case Record():
            return _of_record(analysis, owner, bound.name, given)
        case Late():
            return _of_late(analysis, owner, bound.name, given)
        case Stream():
            return frozenset({_late(analysis, given.call, frozenset(owner.element.shapes))})
        case _:
            return _of_plain(analysis, bound.name, given)


def _late(analysis: Analysis, place: ast.AST, values: Values) -> Late:
    late = analysis.made(place, Late)
    analysis.put(late.result, values)
    return late


def _of_seq(analysis: Analysis, seq: Seq, name: str, given: Arguments) -> Values:
    if name in _REORDERING:
        analysis.put(seq.element, seq.inside())
    if name in _ADDING:
        analysis.put(seq.element, given.at(0))
        return PLAINS
    if name == "insert":
        analysis.put(seq.element, given.at(1))
        return PLAINS
    if name in _EXTENDING:
        for values in given.everything():
            analysis.put(seq.element, analysis.elements(values))
        return frozenset({seq})
    if name == "sort":
        analysis.called(given.at(9, "key"), Arguments(call=given.call, positional=(seq.inside(),)))
        return PLAINS
    if name in _TAKING:
        return seq.inside()
    if name in _SAME:
        return frozenset({seq})
    if name == "get":  # of a queue
        return frozenset({_late(analysis, given.call, seq.inside())})
    return _foreign(analysis, seq, name in _QUIET, given)


def _foreign(analysis: Analysis, owner: Shape, is_known: bool, given: Arguments) -> Values:
    if is_known:
        return PLAINS
    analysis.escape(frozenset({owner}))
    for values in given.everything():
        analysis.escape(values)
    return UNKNOWNS


def _pairs(analysis: Analysis, place: ast.AST, keys: Values, values: Values) -> Values:
    """What `.items()` gives."""
    pair = analysis.made((place, "pair"), lambda: Seq(items=(Cell(), Cell())))
    whole = analysis.made((place, "pairs"), Seq)
    analysis.put(pair.items[0], keys)
    analysis.put(pair.items[1], values)
    analysis.put(whole.element, frozenset({pair}))
    return frozenset({whole})


def _listed(analysis: Analysis, place: ast.AST, values: Values) -> Values:
    seq = analysis.made((place, "listed"), Seq)
    analysis.put(seq.element, values)
    return frozenset({seq})


def _of_map(analysis: Analysis, owner: Map, name: str, given: Arguments) -> Values:
    call = given.call
    match name:
        case "items" | "most_common":
            return _pairs(analysis, call, frozenset(owner.keys.shapes), owner.held())
        case "values":
            return _listed(analysis, call, owner.held())
        case "keys" | "__iter__":
            return _listed(analysis, call, frozenset(owner.keys.shapes))
        case "get" | "pop" | "__getitem__":
            key = call.args[0] if isinstance(call, ast.Call) and call.args else None
            found = analysis.item(frozenset({owner}), key) if key is not None else owner.held()
            return found | given.at(1, "default") | PLAINS
        case "setdefault":
            key = call.args[0] if isinstance(call, ast.Call) and call.args else None
            analysis.store(owner, key, given.at(1, "default") | PLAINS)
            return analysis.item(frozenset({owner}), key) if key is not None else owner.held()
        case "update":
            return _update(analysis, owner, given)
        case "popitem":
            pairs = _pairs(analysis, call, frozenset(owner.keys.shapes), owner.held())
            return analysis.elements(pairs)
        case "copy":
            return frozenset({owner})
        case _:
            return _foreign(analysis, owner, name in _QUIET, given)


def _update(analysis: Analysis, owner: Map, given: Arguments) -> Values:
    for values in given.positional:
        for shape in values:
            analysis.merge(owner, shape)
    for name, values in given.named.items():
        analysis.put(owner.fields.setdefault(name, Cell()), values)
    if given.is_open or given.spread is not None:
        analysis.put(owner.rest, UNKNOWNS)
    return PLAINS


def _of_record(analysis: Analysis, owner: Record, name: str, given: Arguments) -> Values:
    call = given.call
    match name:
        case "copy":
            return frozenset({owner})
        case "keys":
            return _listed(analysis, call, PLAINS)
        case "items":
            return _pairs(analysis, call, PLAINS, UNKNOWNS)
        case "values":
            return _listed(analysis, call, UNKNOWNS)
        case "get" | "pop" | "__getitem__" | "setdefault":
            key = key_of(call.args[0]) if isinstance(call, ast.Call) and call.args else None
            found = analysis.field(owner, key) if isinstance(key, str) else UNKNOWNS
            return (found if found is not None else PLAINS) | given.at(1, "default") | PLAINS
        case _:
            for values in given.everything():
                analysis.escape(values)
            return UNKNOWNS


def _of_late(analysis: Analysis, owner: Late, name: str, given: Arguments) -> Values:
    if name == "result":
        return frozenset(owner.result.shapes)
    for values in given.everything():
        analysis.escape(values)
    return PLAINS if name in {"cancel", "done", "cancelled", "exception", "get_name", "close"} else UNKNOWNS


def _of_plain(analysis: Analysis, name: str, given: Arguments) -> Values:
    """Methods of texts and numbers: none keeps or changes its arguments."""
    if name in {"split", "rsplit", "splitlines", "partition", "rpartition"}:
        return _listed(analysis, given.call, PLAINS)
    return frozenset({PLAIN})
