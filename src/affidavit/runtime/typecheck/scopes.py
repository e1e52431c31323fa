"""Which names a script binds, where, and to what: enough of Python's scoping to prove things about names.

Everything here errs to one side: a name counts as bound when it may be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

__all__ = ["Binding", "Scope", "Script", "strings_in"]

Kind: TypeAlias = Literal["module", "function", "class", "comprehension"]

_DYNAMIC = frozenset({"exec", "eval", "globals", "locals", "vars", "builtins", "__builtins__"})
_CAPTURED: Final = {
    "arg": "arg",
    "ExceptHandler": "name",
    "MatchAs": "name",
    "MatchStar": "name",
    "MatchMapping": "rest",
    "TypeVar": "name",
    "ParamSpec": "name",
    "TypeVarTuple": "name",
}
"""By the kind of node, which of its fields is a name that it binds."""
_PLACED: Final = (ast.expr, ast.keyword)
_SCOPED: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.comprehension,
)  # fmt: skip
"""Nodes whose children are not all evaluated in the scope that they stand in themselves."""
_DYNAMIC_ATTRIBUTES = frozenset({"__dict__", "_getframe", "__globals__", "f_globals", "f_locals"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One place that binds a name.

    `how` tells what `value` is: `assign` the assigned expression, `each` the iterated one, `each-async` the one
    iterated by `async for`, `other` nothing (imports, parameters, unpacking, definitions, annotated names), `needs`
    nothing either: the name must be bound before (`total += 1`, `del total`).
    """

    node: ast.AST
    how: Literal["assign", "each", "each-async", "other", "needs"] = "other"
    value: ast.expr | None = None


@dataclass(slots=True, kw_only=True)
class Scope:
    """A module, function, class or comprehension with the names bound directly in it."""

    kind: Kind
    parent: Scope | None = None
    bound: dict[str, list[Binding]] = field(default_factory=dict[str, list[Binding]])
    elsewhere: set[str] = field(default_factory=set[str])

    def bind(self, name: str, binding: Binding) -> None:
        """Note a binding of a name here."""
        self.bound.setdefault(name, []).append(binding)

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Script:
    """The tree of a script with parents, scopes and a few facts that rules ask for.

    Attributes:
        tree: the module.
        nodes: every node, parents before children.
        handlers: its `except` clauses.
        strings: every string constant in it.
        dynamic: names may come into being that no tree shows (`exec`, `globals()`, star imports).
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope(kind="module")
        self.dynamic = False
        self.nodes: list[ast.AST] = []
        self.handlers: list[ast.ExceptHandler] = []
        self.strings: set[str] = set()
        self._mentions: dict[str, list[ast.Name]] = {}
        self._parents: dict[ast.AST, ast.AST] = {}
        self._scopes: dict[ast.AST, Scope] = {}
        self._places: dict[tuple[int, int, int, int], list[ast.expr | ast.keyword]] = {}
        self._shared: set[str] = set()
        self._names: set[str] = set()
        self._all = [self.module]
        self._walk()

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around this one."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around this one, innermost first."""
        around = self._parents.get(node)
        while around is not None:
            yield around
            around = self._parents.get(around)

    def scope(self, node: ast.AST) -> Scope:
        """The scope in which a node is evaluated."""
        return self._scopes.get(node, self.module)

    def at(self, line: int, column: int, end_line: int, end_column: int) -> ast.expr | ast.keyword | None:
        """The outermost expression or keyword argument with exactly this range (lines 1-based, byte columns)."""
        found = self._places.get((line, column, end_line, end_column))
        return found[0] if found else None

    def mentions(self, name: str) -> list[ast.Name]:
        """Every place where the name stands, read or bound, in any scope."""
        return self._mentions.get(name, [])

    def uses(self, name: str) -> list[ast.Name]:
        """Every place where the name is read, in any scope."""
        return [node for node in self.mentions(name) if isinstance(node.ctx, ast.Load)]

    def bindings(self, name: str, scope: Scope) -> list[Binding]:
        """Every binding that a use of the name in this scope may mean."""
        found = (binding for around in _seen_from(scope) for binding in around.bound.get(name, ()))
        return [binding for binding in found if binding.how != "needs"]

    def binds(self, name: str) -> bool:
        """Whether any scope of the script binds the name."""
        return name in self._names

    def is_shared(self, name: str) -> bool:
        """Whether a `global` or `nonlocal` statement lets another scope bind the name."""
        return name in self._shared

    def bindings_everywhere(self, name: str) -> list[Binding]:
        """Every binding of the name in any scope."""
        return [binding for scope in self._all for binding in scope.bound.get(name, ())]

    def visible(self, scope: Scope) -> list[str]:
        """The names that are bound in a scope or around it."""
        return [name for around in scope.chain() for name in around.bound]

    def only_binding(self, name: ast.Name) -> Binding | None:
        """The binding of a name that is bound exactly once where it is used and shared with no other scope."""
        if name.id in self._shared:
            return None
        for around in self.scope(name).chain():
            found = around.bound.get(name.id)
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def _walk(self) -> None:
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, self.module)]
        while stack:
            node, scope = stack.pop()
            self.nodes.append(node)
            self._scopes[node] = scope
            if isinstance(node, _PLACED):
                place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
                self._places.setdefault(place, []).append(node)
            self._note(node, scope)
            inner = list(ast.iter_child_nodes(node)) if node._fields else ()
            children = [(child, scope) for child in inner]
            if isinstance(node, _SCOPED):
                children = list(self._children(node, inner, scope))
            self._parents.update(dict.fromkeys(inner, node))
            stack += reversed(children)

    def _children(
        self, node: ast.AST, children: Sequence[ast.AST], scope: Scope
    ) -> Iterator[tuple[ast.AST, Scope]]:
        """The children of a node with the scope that each is evaluated in; binders before what they bind for."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            inner = self._inner("class" if isinstance(node, ast.ClassDef) else "function", scope)
            body = set(node.body) if isinstance(node.body, list) else {node.body}
            for child in children:
                yield child, inner if child in body or isinstance(child, ast.arguments) else scope
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            inner = self._inner("comprehension", scope)
            yield from ((child, inner) for child in children if isinstance(child, ast.comprehension))
            yield from ((child, inner) for child in children if not isinstance(child, ast.comprehension))
        elif isinstance(node, ast.comprehension):
            outer = scope.parent if self._is_first_generator(node) and scope.parent else scope
            yield from ((child, outer if child is node.iter else scope) for child in children)

    def _inner(self, kind: Kind, scope: Scope) -> Scope:
        inner = Scope(kind=kind, parent=scope)
        self._all.append(inner)
        return inner

    def _is_first_generator(self, node: ast.comprehension) -> bool:
        generators: list[ast.comprehension] = getattr(self._parents[node], "generators", [])
        return generators[:1] == [node]

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        self._names.add(name)
        scope.bind(name, binding)

    def _note(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.strings.add(node.value)
        if isinstance(node, ast.Name):
            self._mentions.setdefault(node.id, []).append(node)
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.dynamic = self.dynamic or name in _DYNAMIC
            case ast.Name(id=name):
                self._bind(name, self._target_scope(node, scope), self._binding(node))
            case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
                self.dynamic = True
            case ast.Attribute(attr=attribute):
                self.dynamic = self.dynamic or attribute in _DYNAMIC_ATTRIBUTES
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._bind(name, scope, Binding(node=node))
            case ast.alias(name=name, asname=alias):
                self.dynamic = self.dynamic or name in {"*", "builtins"}
                self._bind(alias or name.partition(".")[0], scope, Binding(node=node))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._share(names, scope, everywhere=isinstance(node, ast.Global))
            case _:
                self._note_captured(node, scope)

    def _note_captured(self, node: ast.AST, scope: Scope) -> None:
        """Names bound by plain strings in the tree: parameters, handlers, patterns, type parameters."""
        captured = _CAPTURED.get(type(node).__name__)
        if captured is None:
            return
        if isinstance(node, ast.ExceptHandler):
            self.handlers.append(node)
        name = getattr(node, captured)
        if isinstance(name, str):
            self._bind(name, scope, Binding(node=node))

    def _share(self, names: list[str], scope: Scope, *, everywhere: bool) -> None:
        for name in names:
            self._shared.add(name)
            self._names.add(name)
            scope.elsewhere.add(name)
            if everywhere:
                self.module.bind(name, Binding(node=self.tree))

    def _target_scope(self, node: ast.AST, scope: Scope) -> Scope:
        """`:=` inside a comprehension binds in the scope around it."""
        if isinstance(self._parents.get(node), ast.NamedExpr):
            while scope.kind == "comprehension" and scope.parent is not None:
                scope = scope.parent
        return scope

    def _binding(self, node: ast.AST) -> Binding:
        match self._parents.get(node):
            case ast.Assign(targets=[target], value=value) if target is node:
                return Binding(node=node, how="assign", value=value)
            case ast.NamedExpr(value=value):
                return Binding(node=node, how="assign", value=value)
            case ast.For(target=target, iter=iterated) if target is node:
                return Binding(node=node, how="each", value=iterated)
            case ast.AsyncFor(target=target, iter=iterated) if target is node:
                return Binding(node=node, how="each-async", value=iterated)
            case ast.comprehension(target=target, iter=iterated, is_async=late) if target is node:
                return Binding(node=node, how="each-async" if late else "each", value=iterated)
            case ast.AugAssign() | ast.Delete():
                return Binding(node=node, how="needs")
            case _:
                return Binding(node=node)


def _seen_from(scope: Scope) -> Iterator[Scope]:
    """The scopes whose names may be seen from one: functions do not see the names of the class that they stand in."""
    inside = False
    for around in scope.chain():
        if around.kind != "class" or not inside:
            yield around
        inside = inside or around.kind == "function"


def strings_in(node: ast.AST) -> set[str]:
    """Every string constant in a tree."""
    return {
        found.value
        for found in ast.walk(node)
        if isinstance(found, ast.Constant) and isinstance(found.value, str)
    }
