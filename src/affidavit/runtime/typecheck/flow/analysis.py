"""What every expression of a script may be: its own functions, classes and containers followed, nothing believed.

A whole-program analysis in passes over the tree until nothing new is found (0-CFA): arguments flow into parameters,
returned and yielded values to the callers, what is appended to a list to whoever reads it. Annotations that the script
wrote claim nothing here. Whatever the analysis does not know is `UNKNOWN`, and what is handed to something unknown may
hold anything from then on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.flow import expressions, statements
from affidavit.runtime.typecheck.flow.calls import Arguments, apply
from affidavit.runtime.typecheck.flow.hosts import Hosts, key_of
from affidavit.runtime.typecheck.flow.library import BUILTINS, library
from affidavit.runtime.typecheck.flow.names import Names
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
    HostMethod,
    HostObject,
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
    joined,
)

if TYPE_CHECKING:
    from affidavit.runtime.typecheck.rules.case import Case

__all__ = ["Analysis", "follow"]

_PASSES: Final = 14
_MOST_NODES: Final = 12_000
"""Longer scripts (some 30 KB) are not followed: it would take too long."""

_EVALUATED: Final = (
    *statements.NOTED,
    ast.Call,
    ast.BinOp,
    ast.Lambda,
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
)
"""What has an effect; the value of any other expression is asked by what uses it."""

_WIDEST: Final = 12
_NAMED_TUPLE: Final = frozenset({Library("typing.NamedTuple")})
_OF_TUPLES: Final = frozenset(dir(tuple)) | {"_replace", "_make", "_asdict", "_fields", "_field_defaults"}
_OPAQUE_BASES: Final = frozenset({"object", "Generic", "Protocol", "ABC"})
Made = TypeVar("Made")


def follow(case: Case) -> Analysis | None:
    """The analysis of a script; None where it would take too long, or where names come into being unseen."""
    if case.script.dynamic or len(case.script.nodes) > _MOST_NODES:
        return None
    analysis = Analysis(case)
    try:
        return analysis if analysis.run() else None
    except RecursionError:  # expressions nested too deeply
        return None


class Analysis:
    """One script. Make it, `run` it, ask `of` any expression."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.script = case.script
        self.hosts = Hosts(case.catalogue)
        self.names = Names(case.script)
        self._values: dict[ast.AST, Values] = {}
        self._bound: dict[ast.AST, Cell] = {}
        self._allocated: dict[object, Any] = {}
        self._escaped: set[Shape] = set()
        self._changed = False
        self.functions: dict[ast.AST, Function] = {}
        self.classes: list[Class] = []

    def run(self) -> bool:
        """Analyse the script; False where that did not come to an end within bounds."""
        nodes = [node for node in self.script.nodes if isinstance(node, _EVALUATED)]
        for _ in range(_PASSES):
            self._changed = False
            self._values.clear()
            for node in nodes:
                if isinstance(node, ast.expr):
                    self.of(node)
                else:
                    statements.note(self, node)
            if not self._changed:
                return True
        return False

    def of(self, node: ast.expr) -> Values:
        """What an expression may be; nothing where it is never evaluated or always fails."""
        if node not in self._values:
            self._values[node] = NOTHING  # what leads back to itself adds nothing
            self._values[node] = self._joined(expressions.value(self, node))
        return self._values[node]

    def put(self, cell: Cell, values: Values) -> None:
        """Note that a place may hold these, too."""
        if UNKNOWN in cell.shapes:
            self.escape(values)
            return
        new = values - cell.shapes
        if not new:
            return
        self._changed = True
        cell.shapes |= new
        if UNKNOWN in new or len(cell.shapes) > _WIDEST:
            held = frozenset(cell.shapes)
            cell.shapes = {UNKNOWN}
            self.escape(held)

    def escape(self, values: Values) -> None:
        """Note that unknown code has these: it may put anything into them and call them with anything."""
        for shape in values:
            if shape in self._escaped or isinstance(shape, HostObject | HostMethod | Record | Library):
                continue
            if shape is UNKNOWN or shape is PLAIN:
                continue
            self._escaped.add(shape)
            self._changed = True
            self._open(shape)

    def bound(self, node: ast.AST) -> Cell:
        """What the binding at a node may give its name."""
        return self._bound.setdefault(node, Cell())

    def made(self, place: object, kind: Callable[[], Made]) -> Made:
        """The one container that stands for all that are made at a place."""
        key = (place, kind if isinstance(kind, type) else None)
        if key not in self._allocated:
            self._allocated[key] = kind()
        return self._allocated[key]

    def called(self, functions: Values | None, given: Arguments) -> Values:
        """What calling any of these may give."""
        found: set[Shape] = set()
        for function in functions or ():
            found |= apply(self, function, given)
        return frozenset(found)

    def library(self, path: str, given: Arguments) -> Values:
        """What calling something of the standard library gives."""
        return library(self, path, given)

    def name(self, node: ast.Name) -> Values:
        """What a name may be where it stands."""
        bindings = self.names.meant(node)
        if bindings:
            found: set[Shape] = set()
            for binding in bindings:
                found |= self.bound(binding.node).shapes
            return frozenset(found)
        if self.script.binds(node.id) or node.id in self.case.given:
            return UNKNOWNS
        if self.case.resolver.is_host(node):
            return self.hosts.value(node.id)
        return frozenset({Library(f"builtins.{node.id}")}) if node.id in BUILTINS else UNKNOWNS

    def attribute(self, owner: Shape, name: str) -> Values | None:
        """An attribute; None where the owner certainly has none of this name."""
        match owner:
            case HostObject():
                return UNKNOWNS if self._is_stored(name) else self.hosts.attribute(owner, name)
            case Instance(of=one):
                return self._of_class(one, name, owner)
            case Class():
                return self._of_class(owner, name, None) if owner.instance is not None else UNKNOWNS
            case Library(path=path):
                return frozenset({Library(f"{path}.{name}")})
            case Record():
                return frozenset({Bound(owner, name)}) if hasattr(dict, name) else None
            case Seq() | Map() | Late() | Stream():
                return frozenset({Bound(owner, name)})
            case HostMethod() | Function() | Bound() | Partial():
                return UNKNOWNS
            case _:
                return frozenset({Bound(owner, name)}) if owner is PLAIN else UNKNOWNS

    def _is_stored(self, name: str) -> bool:
        """Whether the script may put something of its own under this name into an object of the host."""
        stores = self.case.stores
        return name in stores.attributes | stores.copied or self.case.is_probed(name)

    def item(self, owners: Values, index: ast.expr) -> Values:
        """What an index or key gives, of whichever of the owners has it."""
        found: set[Shape] = set()
        for owner in owners:
            found |= self._item(owner, index)
        return frozenset(found)

    def field(self, record: Record, key: str) -> Values | None:
        """The value of a row's key; None where it certainly has none."""
        stores = self.case.stores
        if key in stores.copied or (stores.computed and key in stores.words):
            return UNKNOWNS
        return self.hosts.field(record, key)

    def store(self, owner: Map, key: ast.expr | None, values: Values) -> None:
        """Note that a value is stored under a key."""
        known = key_of(key) if key is not None else None
        cell = owner.fields.setdefault(known, Cell()) if isinstance(known, str) else owner.rest
        self.put(owner.keys, PLAINS if known is not None or key is None else self.of(key))
        self.put(cell, values)

    def merge(self, owner: Map, shape: Shape) -> None:
        """Note that a dictionary gets everything of another, or of pairs."""
        match shape:
            case Map():
                self.put(owner.keys, frozenset(shape.keys.shapes))
                self.put(owner.rest, frozenset(shape.rest.shapes))
                for key, cell in list(shape.fields.items()):
                    self.put(owner.fields.setdefault(key, Cell()), frozenset(cell.shapes))
            case Seq():
                for pair in shape.inside():
                    if isinstance(pair, Seq) and len(pair.items) == 2:
                        self.put(owner.keys, frozenset(pair.items[0].shapes))
                        self.put(owner.rest, frozenset(pair.items[1].shapes))
                    else:
                        self.put(owner.rest, UNKNOWNS)
                        self.put(owner.keys, UNKNOWNS)
            case _:
                if shape is not PLAIN:
                    self.put(owner.rest, UNKNOWNS)
                    self.put(owner.keys, UNKNOWNS)

    def elements(self, values: Values) -> Values:
        """What iterating over any of these gives."""
        found: set[Shape] = set()
        for shape in values:
            found |= self._elements(shape)
        return frozenset(found)

    def awaited(self, values: Values) -> Values:
        """What awaiting any of these gives."""
        found: set[Shape] = set()
        for shape in values:
            match shape:
                case Late(result=cell):
                    found |= cell.shapes
                case Instance():
                    found.add(UNKNOWN)
                case _:
                    found |= UNKNOWNS if shape is UNKNOWN else NOTHING
        return frozenset(found)

    def define_class(self, node: ast.ClassDef) -> Class:
        """The shape of a class of the script; one that inherits from something unknown has no known instances."""
        made = self.made(node, lambda: Class(node=node))
        if made not in self.classes:
            self.classes.append(made)
            made.is_tuple = [self.of(base) for base in node.bases] == [_NAMED_TUPLE]
            known = made.is_tuple or all(
                named(base) in _OPAQUE_BASES or self._own(base) for base in node.bases
            )
            if known and not node.keywords:
                made.instance = Instance(of=made)
        return made

    def _joined(self, values: Values) -> Values:
        if UNKNOWN not in values and len(values) <= _WIDEST:
            return values
        self.escape(values)
        return UNKNOWNS

    def _own(self, base: ast.expr) -> bool:
        bases = [one for one in self.of(base) if isinstance(one, Class)]
        return any(one.instance is not None and not one.is_tuple for one in bases)

    def _family(self, one: Class) -> list[Class]:
        """A class with everything that it inherits from and that inherits from it."""
        found, pending = [one], [one]
        while pending:
            current = pending.pop()
            above = [
                shape for base in current.node.bases for shape in self.of(base) if isinstance(shape, Class)
            ]
            below = [
                other for other in self.classes if any(current in self.of(base) for base in other.node.bases)
            ]
            new = [other for other in (*above, *below) if other not in found]
            found += new
            pending += new
        return found

    def _of_class(self, one: Class, name: str, instance: Instance | None) -> Values:
        found: set[Shape] = set()
        owners = self._family(one)
        for owner in owners:
            for shape in owner.attributes[name].shapes if name in owner.attributes else ():
                found |= self._seen_from(shape, instance)
        dynamic = any(
            "__getattr__" in owner.attributes or "__getattribute__" in owner.attributes for owner in owners
        )
        if one.is_tuple and name in _OF_TUPLES:
            self.escape(frozenset({one if instance is None else instance}))
            found.add(UNKNOWN)
        if dynamic or one in self._escaped or instance in self._escaped:
            found.add(UNKNOWN)
        return frozenset(found)

    def _seen_from(self, shape: Shape, instance: Instance | None) -> Values:
        """What an attribute of the class is on an instance: functions become methods, properties their value."""
        if instance is None or not isinstance(shape, Function) or isinstance(shape.node, ast.Lambda):
            return frozenset({shape})
        decorators = {named(one) for one in shape.node.decorator_list}
        if "staticmethod" in decorators:
            return frozenset({shape})
        owner: Shape = instance.of if "classmethod" in decorators else instance
        method = Bound(owner, shape.node.name, shape)
        if decorators & {"property", "cached_property"}:
            return apply(self, method, Arguments(call=shape.node))
        return frozenset({method})

    def _item(self, owner: Shape, index: ast.expr) -> Values:
        key = key_of(index)
        match owner:
            case Record():
                found = self.field(owner, key) if isinstance(key, str) else UNKNOWNS
                return found if found is not None else NOTHING
            case Map():
                if isinstance(key, str) and (key in owner.fields or UNKNOWN not in owner.keys.shapes):
                    cell = owner.fields.get(key)
                    return joined([owner.rest.shapes, cell.shapes if cell is not None else NOTHING])
                return owner.held()
            case Seq():
                if isinstance(index, ast.Slice):
                    return frozenset({owner})
                if isinstance(key, int) and owner.items and -len(owner.items) <= key < len(owner.items):
                    return frozenset(owner.items[key].shapes | owner.element.shapes)
                return owner.inside()
            case HostObject():
                if isinstance(key, str) and self._is_stored(key):
                    return UNKNOWNS
                return self.hosts.item(owner, index) or NOTHING
            case Instance():
                given = Arguments(call=index, positional=(self.of(index),))
                method = self.attribute(owner, "__getitem__")
                return self.called(method, given) if method else UNKNOWNS
            case _:
                return PLAINS if owner is PLAIN else UNKNOWNS

    def _elements(self, shape: Shape) -> Values:
        match shape:
            case Seq():
                return shape.inside()
            case Map():
                return frozenset(shape.keys.shapes)
            case Record():
                return PLAINS
            case Stream():
                return frozenset(shape.element.shapes)
            case HostObject():
                return self.hosts.elements(shape)
            case Instance():
                made = self.called(self.attribute(shape, "__iter__"), Arguments(call=shape.of.node))
                kept = [one for one in made if isinstance(one, Seq)]
                return joined([one.inside() for one in kept]) if len(made) == len(kept) > 0 else UNKNOWNS
            case _:
                return PLAINS if shape is PLAIN else UNKNOWNS

    def _open(self, shape: Shape) -> None:
        """Let unknown code do everything that it can with a shape."""
        match shape:
            case Seq():
                for cell in (shape.element, *shape.items):
                    self.put(cell, UNKNOWNS)
            case Map():
                for cell in (shape.rest, shape.keys, *shape.fields.values()):
                    self.put(cell, UNKNOWNS)
            case Instance() | Class():
                for cell in list(_class_of(shape).attributes.values()):
                    self.put(cell, UNKNOWNS)
            case Function():
                self._open_function(shape)
            case _:
                self._open_holder(shape)

    def _open_holder(self, shape: Shape) -> None:
        match shape:
            case Late(result=cell) | Stream(element=cell):
                self.escape(frozenset(cell.shapes))
            case Bound(owner=owner, function=function):
                self.escape(frozenset({owner, function or owner}))
            case Partial(function=function, given=given):
                self.escape(function.union(*given))
            case _:
                pass

    def _open_function(self, function: Function) -> None:
        parameters = function.node.args
        for one in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
            self.put(self.bound(one), UNKNOWNS)
        for one in (parameters.vararg, parameters.kwarg):
            if one is not None:
                self.put(self.bound(one), UNKNOWNS)
        self.escape(frozenset(function.returns.shapes))

    def is_escaped(self, function: Function) -> bool:
        """Whether unknown code may call a function."""
        return function in self._escaped

    def stored(self, owner: Shape, name: str, values: Values) -> None:
        """Note that an attribute is stored."""
        match owner:
            case Instance() | Class():
                self.put(_class_of(owner).attribute(name), values)
            case _:
                if owner is UNKNOWN:
                    self.escape(values)
                    for one in self.classes:
                        if name in one.attributes:
                            self.put(one.attributes[name], UNKNOWNS)
                elif owner is not PLAIN:
                    self.escape(values)
                    if name.startswith("__"):  # `function.__defaults__ = ...`
                        self.escape(frozenset({owner}))


def _class_of(shape: Instance | Class) -> Class:
    return shape.of if isinstance(shape, Instance) else shape
