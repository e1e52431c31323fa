"""What an expression of a script is, as far as the stubs alone tell.

A small and deliberately partial inference: it follows `df`, the inputs, names bound exactly once, attributes, constant
subscripts, awaited and un-awaited calls, and iteration. Where it is not certain it answers None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from affidavit.runtime.typecheck.catalogue import Catalogue, Method, members, named
from affidavit.runtime.typecheck.scopes import Script

__all__ = ["Callable", "Missing", "Pending", "Resolver", "Value"]

_FUEL = 60
_SEQUENCES = frozenset({"list", "List", "Sequence", "Iterable", "Iterator", "set", "frozenset", "Collection"})
_ASYNC_SEQUENCES = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
_MAPPINGS = frozenset({"dict", "Dict", "Mapping"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value with this annotation.

    `variables` gives type variables their meaning; `root` is the host's name that it was reached from (`df`, an input).
    """

    annotation: ast.expr
    root: str
    variables: Mapping[str, ast.expr] = field(default_factory=dict[str, ast.expr])


@dataclass(frozen=True, slots=True, kw_only=True)
class Callable:
    """A method or function of the stubs, not called yet. `path` is how the script reached it."""

    definitions: tuple[Method, ...]
    path: str
    root: str
    variables: Mapping[str, ast.expr] = field(default_factory=dict[str, ast.expr])

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something that must be awaited."""
        return all(isinstance(one, ast.AsyncFunctionDef) for one in self.definitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A called and un-awaited operation."""

    call: ast.Call
    target: Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """An attribute that the class of the stubs does not have."""

    node: ast.Attribute
    owner: str
    root: str


Resolved: TypeAlias = Value | Callable | Pending | Missing | None


class Resolver:
    """Resolves expressions of one script against one catalogue; remembers what it found."""

    def __init__(self, script: Script, catalogue: Catalogue) -> None:
        self.script = script
        self.catalogue = catalogue
        self._known: dict[ast.AST, Resolved] = {}
        self._items: dict[str, dict[int | str, ast.expr]] = {}

    def resolve(self, node: ast.AST, fuel: int = _FUEL) -> Resolved:
        """What the expression is, or None where that is not certain."""
        if node not in self._known:
            self._known[node] = None  # a definition that leads back to itself is nothing
            self._known[node] = self._resolve(node, fuel - 1) if fuel > 0 else None
        return self._known[node]

    def element(self, value: Value, *, late: bool = False) -> Value | None:
        """What iterating over a value gives; `late` for `async for`."""
        kinds = members(value.annotation)
        if len(kinds) != 1:
            return None
        kind = kinds[0]
        head = named(kind)
        arguments = _arguments(kind)
        if (head in _ASYNC_SEQUENCES if late else head in _SEQUENCES | _MAPPINGS) and arguments:
            return self._value(arguments[0], value)
        return None

    def class_of(self, value: Value) -> str:
        """The stub class of a value that has exactly one, else empty."""
        kinds = members(value.annotation)
        head = named(kinds[0]) if len(kinds) == 1 else ""
        return head if head in self.catalogue.classes else ""

    def is_host(self, node: ast.Name) -> bool:
        """Whether a name means what the host put there: the script binds it nowhere."""
        known = node.id in self.catalogue.values or node.id in self.catalogue.functions
        return known and not self.script.binds(node.id)

    def _resolve(self, node: ast.AST, fuel: int) -> Resolved:
        match node:
            case ast.Name(id=name):
                return self._name(node, name, fuel)
            case ast.Attribute(value=value, attr=attribute):
                return self._attribute(node, self.resolve(value, fuel), attribute)
            case ast.Call():
                return self._call(node, fuel)
            case ast.Await(value=value):
                pending = self.resolve(value, fuel)
                return self._returned(pending.target) if isinstance(pending, Pending) else None
            case ast.NamedExpr(value=value):
                return self.resolve(value, fuel)
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                return self._subscript(self.resolve(value, fuel), index)
            case _:
                return None

    def _name(self, node: ast.Name, name: str, fuel: int) -> Resolved:
        if self.is_host(node):
            functions = self.catalogue.functions.get(name)
            if functions:
                return Callable(definitions=tuple(functions), path=name, root=name)
            return Value(annotation=self.catalogue.values[name], root=name)
        binding = self.script.only_binding(node)
        if binding is None or binding.value is None:
            return None
        resolved = self.resolve(binding.value, fuel)
        if binding.how == "assign":
            return resolved
        late = binding.how == "each-async"
        return self.element(resolved, late=late) if isinstance(resolved, Value) else None

    def _attribute(self, node: ast.Attribute, owner: Resolved, attribute: str) -> Resolved:
        if not isinstance(owner, Value):
            return None
        name = self.class_of(owner)
        if not name or self.catalogue.is_dict(name):
            return None
        variables = self._variables(owner, name)
        path = f"{self.catalogue.paths.get(name, name)}.{attribute}"
        annotation = self.catalogue.field(name, attribute)
        if annotation is not None:
            return Value(annotation=_substitute(annotation, variables), root=owner.root, variables=variables)
        definitions = self.catalogue.method(name, attribute)
        if definitions:
            return Callable(definitions=tuple(definitions), path=path, root=owner.root, variables=variables)
        if attribute.startswith("_") or not self.catalogue.is_whole(name):
            return None
        return Missing(node=node, owner=name, root=owner.root)

    def _call(self, node: ast.Call, fuel: int) -> Resolved:
        target = self.resolve(node.func, fuel)
        if isinstance(target, Callable):
            if target.is_async:
                return Pending(call=node, target=target)
            return self._returned(target) or self._overload(target, node)
        if isinstance(node.func, ast.Attribute):
            return self._view(node.func, fuel)
        return None

    def _view(self, function: ast.Attribute, fuel: int) -> Value | None:
        """`.values()` and `.keys()` of a mapping, as the sequence that iterating over them gives."""
        owner = self.resolve(function.value, fuel)
        if not isinstance(owner, Value) or named(owner.annotation) not in _MAPPINGS:
            return None
        arguments = _arguments(owner.annotation)
        if len(arguments) != 2 or function.attr not in {"values", "keys"}:
            return None
        element = arguments[function.attr == "values"]
        sequence = ast.Subscript(value=ast.Name(id="list", ctx=ast.Load()), slice=element, ctx=ast.Load())
        return self._value(sequence, owner)

    def _returned(self, target: Callable) -> Value | None:
        if len(target.definitions) != 1 or target.definitions[0].returns is None:
            return None
        annotation = _substitute(target.definitions[0].returns, target.variables)
        return Value(annotation=annotation, root=target.root, variables=target.variables)

    def _overload(self, target: Callable, node: ast.Call) -> Value | None:
        """What the overload returns whose one parameter is the literal that is given: `results.by_run(3)`."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        key = _literal(given[0]) if len(given) == 1 else None
        for definition in target.definitions if key is not None else ():
            wanted = definition.args.args[1].annotation if len(definition.args.args) == 2 else None
            literals = _arguments(wanted) if wanted is not None and named(wanted) == "Literal" else []
            if definition.returns is not None and key in [_literal(literal) for literal in literals]:
                annotation = _substitute(definition.returns, target.variables)
                return Value(annotation=annotation, root=target.root, variables=target.variables)
        return None

    def _subscript(self, owner: Resolved, index: ast.expr) -> Value | None:
        if not isinstance(owner, Value):
            return None
        kinds = members(owner.annotation)
        if len(kinds) != 1:
            return None
        name, arguments = named(kinds[0]), _arguments(kinds[0])
        if self.catalogue.is_dict(name):
            key = index.value if isinstance(index, ast.Constant) else None
            annotation = self.catalogue.field(name, key) if isinstance(key, str) else None
            if annotation is None:
                return None
            variables = self._variables(owner, name)
            return Value(annotation=_substitute(annotation, variables), root=owner.root, variables=variables)
        if name in _SEQUENCES and arguments:
            return self._value(kinds[0] if isinstance(index, ast.Slice) else arguments[0], owner)
        if name in _MAPPINGS and len(arguments) == 2:
            return self._value(arguments[1], owner)
        return self._item(owner, name, index)

    def _item(self, owner: Value, name: str, index: ast.expr) -> Value | None:
        """A class with overloads of `__getitem__` on literals: `results[0]`, `page["rows"]`."""
        key = _literal(index)
        if key is None:
            return None
        variables = self._variables(owner, name) if name in self.catalogue.classes else owner.variables
        if name not in self._items:
            self._items[name] = dict(reversed([*self._literal_items(name)]))  # the first of equal keys stays
        returns = self._items[name].get(key)
        if returns is None:
            return None
        return Value(annotation=_substitute(returns, variables), root=owner.root, variables=variables)

    def _literal_items(self, name: str) -> Iterator[tuple[int | str, ast.expr]]:
        """The keys that the overloads of a class's `__getitem__` name, and what each gives."""
        for definition in self.catalogue.method(name, "__getitem__"):
            parameters = [*definition.args.posonlyargs, *definition.args.args]
            wanted = parameters[1].annotation if len(parameters) > 1 else None
            literals = _arguments(wanted) if wanted is not None and named(wanted) == "Literal" else []
            for key in map(_literal, literals):
                if key is not None and definition.returns is not None:
                    yield key, definition.returns

    def _variables(self, value: Value, name: str) -> Mapping[str, ast.expr]:
        parameters = self.catalogue.classes[name].parameters
        arguments = _arguments(members(value.annotation)[0])
        return dict(zip(parameters, arguments, strict=False))

    def _value(self, annotation: ast.expr, origin: Value) -> Value:
        annotation = _substitute(annotation, origin.variables)
        return Value(annotation=annotation, root=origin.root, variables=origin.variables)


def _arguments(annotation: ast.expr) -> list[ast.expr]:
    if not isinstance(annotation, ast.Subscript):
        return []
    inner = annotation.slice
    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]


def _literal(node: ast.expr) -> int | str | None:
    try:
        value: object = node.value if isinstance(node, ast.Constant) else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _substitute(annotation: ast.expr, variables: Mapping[str, ast.expr]) -> ast.expr:
    """The annotation with type variables replaced."""
    if not variables:
        return annotation
    match annotation:
        case ast.Name(id=name):
            return variables.get(name, annotation)
        case ast.Subscript(value=value, slice=inner):
            return ast.Subscript(value=value, slice=_substitute(inner, variables), ctx=ast.Load())
        case ast.Tuple(elts=elements):
            return ast.Tuple(elts=[_substitute(element, variables) for element in elements], ctx=ast.Load())
        case ast.BinOp(left=left, op=operator, right=right):
            return ast.BinOp(
                left=_substitute(left, variables), op=operator, right=_substitute(right, variables)
            )
        case _:
            return annotation
