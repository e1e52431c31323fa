"""Shapes of what the host gives: what the stubs say of an annotation, an attribute, a key or a call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from affidavit.runtime.typecheck.catalogue import Catalogue, Method, members, named
from affidavit.runtime.typecheck.flow.shapes import (
    PLAIN,
    PLAINS,
    UNKNOWN,
    UNKNOWNS,
    HostMethod,
    HostObject,
    Late,
    Map,
    Record,
    Seq,
    Shape,
    Stream,
    Values,
    joined,
)

__all__ = ["Hosts", "key_of"]

_SEQUENCES = frozenset({
    "list", "List", "Sequence", "Iterable", "Iterator", "set", "frozenset", "Collection", "KeysView", "ValuesView",
})  # fmt: skip
_STREAMS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
_MAPPINGS = frozenset({"dict", "Dict", "Mapping"})
_SCALARS = frozenset({"str", "int", "float", "bool", "bytes", "None", "Literal"})

_Subscript: TypeAlias = tuple[str, tuple[int | str | None, ...], ast.expr | None]
"""A definition of `__getitem__`: the type of its key, the literals of that, and what it returns; None: unknown."""


class Hosts:
    """Reads shapes off one catalogue. Equal questions have the same answer: the very same shapes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._made: dict[
            tuple[int, object], tuple[ast.AST, Shape]
        ] = {}  # the node is held: its id must stay its own
        self._read: dict[tuple[int, object], tuple[ast.AST, Values]] = {}
        self._subscripts: dict[str, list[_Subscript]] = {}

    def value(self, name: str) -> Values:
        """What a name of the host is: `df`, an input, a function."""
        functions = self._catalogue.functions.get(name)
        if functions:
            return frozenset({HostMethod(owner=None, definitions=tuple(functions))})
        return self.shapes(self._catalogue.values[name], None)

    def shapes(self, annotation: ast.expr, owner: HostObject | Record | None) -> Values:
        """The shapes of an annotation; the type variables in it mean what they mean in `owner`."""
        key = (id(annotation), owner)
        if key not in self._read:
            found: set[Shape] = set()
            for member in members(annotation):
                found |= self._member(member, owner)
            self._read[key] = (annotation, frozenset(found) if UNKNOWN not in found else UNKNOWNS)
        return self._read[key][1]

    def attribute(self, owner: HostObject, name: str) -> Values | None:
        """An attribute, UNKNOWN where not all are known, or None for one that it certainly does not have."""
        annotation = self._catalogue.field(owner.name, name)
        if annotation is not None:
            return self.shapes(annotation, owner)
        definitions = self._catalogue.method(owner.name, name)
        if definitions:
            return frozenset({HostMethod(owner=owner, definitions=tuple(definitions))})
        known = name.startswith("__") or not self._catalogue.is_whole(owner.name)
        return UNKNOWNS if known else None

    def field(self, record: Record, key: str) -> Values | None:
        """The value of a key, or None for one that no part of the record has."""
        if key in record.extras:
            return UNKNOWNS
        found: set[Shape] = set()
        lacking = True
        for name, arguments in record.rows:
            annotation = self._catalogue.field(name, key)
            if annotation is not None:
                lacking = False
                found |= self.shapes(annotation, HostObject(name=name, arguments=arguments))
        return None if lacking else frozenset(found)

    def keys(self, record: Record) -> list[str]:
        """Every key that a record may have."""
        declared = [key for name, _ in sorted(record.rows, key=str) for key in self._catalogue.keys(name)]
        return list(dict.fromkeys([*declared, *sorted(record.extras)]))

    def item(self, owner: HostObject, index: ast.expr) -> Values | None:
        """What an index or key gives; None where it certainly is not there."""
        key = key_of(index)
        kind = type(key).__name__
        if owner.name not in self._subscripts:
            definitions = self._catalogue.method(owner.name, "__getitem__")
            self._subscripts[owner.name] = [_subscript(definition) for definition in definitions]
        for wanted, literals, returns in self._subscripts[owner.name]:
            if returns is None:
                return UNKNOWNS
            if key is not None and (key in literals if wanted == "Literal" else wanted == kind):
                return self.shapes(returns, owner)
        if isinstance(key, str) and key in self._catalogue.item_keys(owner.name):
            return UNKNOWNS
        return None if isinstance(key, str) and self._catalogue.item_keys(owner.name) else UNKNOWNS

    def called(self, method: HostMethod, given: Sequence[ast.expr]) -> Values:
        """What a call gives."""
        definition = self._overload(method, given)
        if definition is None or definition.returns is None:
            return UNKNOWNS
        owner = method.owner
        if not isinstance(definition, ast.AsyncFunctionDef):
            return self.shapes(definition.returns, owner)
        key = (id(definition), owner)
        if key not in self._made:
            late = Late()
            late.result.shapes |= self.shapes(definition.returns, owner)
            self._made[key] = (definition, late)
        return frozenset({self._made[key][1]})

    def elements(self, owner: HostObject) -> Values:
        """What iterating over it gives."""
        for definition in self._catalogue.method(owner.name, "__iter__")[:1]:
            if definition.returns is not None:
                found = self.shapes(definition.returns, owner)
                return joined([one.element.shapes if isinstance(one, Seq) else UNKNOWNS for one in found])
        return UNKNOWNS

    def _overload(self, method: HostMethod, given: Sequence[ast.expr]) -> Method | None:
        if len(method.definitions) == 1:
            return method.definitions[0]
        key = key_of(given[0]) if len(given) == 1 else None
        for definition in method.definitions if key is not None else ():
            wanted = _wanted(definition)
            if wanted is not None and named(wanted) == "Literal" and key in _literals(wanted):
                return definition
        return None

    def _member(self, kind: ast.expr, owner: HostObject | Record | None) -> Values:
        head = named(kind)
        if head in _SCALARS:
            return PLAINS
        if isinstance(owner, HostObject):
            variables = self._variables(owner)
            if head in variables:
                return variables[head]
        if head in self._catalogue.classes:
            return frozenset({self._object(kind, head, owner)})
        key = (id(kind), owner)
        if key not in self._made:
            self._made[key] = (kind, self._container(kind, head, owner))
        return frozenset({self._made[key][1]})

    def _object(self, kind: ast.expr, head: str, owner: HostObject | Record | None) -> Shape:
        arguments = tuple(self.shapes(one, owner) for one in _arguments(kind))
        if not self._catalogue.is_dict(head):
            return HostObject(name=head, arguments=arguments)
        return UNKNOWN if self._catalogue.is_open(head) else Record(rows=frozenset({(head, arguments)}))

    def _container(self, kind: ast.expr, head: str, owner: HostObject | Record | None) -> Shape:
        arguments = _arguments(kind)
        if head in _SEQUENCES and arguments:
            seq = Seq()
            seq.element.shapes |= self.shapes(arguments[0], owner)
            return seq
        if head in _STREAMS and arguments:
            stream = Stream()
            stream.element.shapes |= self.shapes(arguments[0], owner)
            return stream
        if head in _MAPPINGS and len(arguments) == 2:
            made = Map()
            made.keys.shapes |= {PLAIN}
            made.rest.shapes |= self.shapes(arguments[1], owner)
            return made
        return UNKNOWN

    def _variables(self, owner: HostObject) -> Mapping[str, Values]:
        one = self._catalogue.classes.get(owner.name)
        return dict(zip(one.parameters, owner.arguments, strict=False)) if one is not None else {}


def key_of(index: ast.expr) -> int | str | None:
    """The value of a constant key or index, negative ones too."""
    match index:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
        case _:
            return None


def _wanted(definition: Method) -> ast.expr | None:
    parameters = [*definition.args.posonlyargs, *definition.args.args]
    return parameters[1].annotation if len(parameters) > 1 else None


def _subscript(definition: Method) -> _Subscript:
    wanted = _wanted(definition)
    if wanted is None:
        return "", (), None
    return named(wanted), tuple(_literals(wanted)), definition.returns


def _literals(wanted: ast.expr) -> list[int | str | None]:
    return [key_of(one) for one in _arguments(wanted)]


def _arguments(annotation: ast.expr) -> list[ast.expr]:
    if not isinstance(annotation, ast.Subscript):
        return []
    inner = annotation.slice
    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
