"""Which expressions of a script are sets, inferred from the script alone.

By name, not by scope: a name or attribute that is a set anywhere counts as one everywhere. The inference starts from
displays, constructors, operators, methods and annotations, and follows names, attributes, parameters, items of
containers and results of functions until nothing more is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from affidavit.runtime.engines.monty.rules.tables import SET_METHODS
from affidavit.runtime.engines.monty.scan import Function

__all__ = ["Sets"]


class Sets:
    """What is known of sets in one script.

    Args:
        nodes: every node of the script.
        parameters: positional parameters of functions and lambdas by the name that they are bound to.
    """

    def __init__(self, nodes: Sequence[ast.AST], parameters: Mapping[str, list[str]]) -> None:
        self._parameters = parameters
        self._names: set[str] = set()
        self._holders: set[str] = set()
        self._functions: set[str] = set()
        while True:
            before = len(self._names) + len(self._holders) + len(self._functions)
            for node in nodes:
                self._learn(node)
            if before == len(self._names) + len(self._holders) + len(self._functions):
                break

    def is_set(self, node: ast.expr) -> bool:
        """Whether an expression may be a set."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                return self.is_set(left) or self.is_set(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_set(body) or self.is_set(orelse)
            case ast.BoolOp(values=operands):
                return any(map(self.is_set, operands))
            case ast.Call():
                return self._is_set_call(node)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self._names
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in self._holders
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.is_set(value)
            case _:
                return False

    def _is_set_call(self, node: ast.Call) -> bool:
        match node.func:
            case ast.Name(id="set" | "frozenset"):
                return True
            case ast.Name(id=name):
                return name in self._functions
            case ast.Attribute(value=base, attr=method):
                if method in SET_METHODS or method in self._functions:
                    return True
                if method == "copy":
                    return self.is_set(base)
                return method in ("setdefault", "get", "pop") and (
                    any(map(self.is_set, node.args)) or _name(base) in self._holders
                )
            case _:
                return False

    # ---- learning ----

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assigned(targets, value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                if _says_set(annotation):
                    self._names.add(_name(target))
                if value is not None:
                    self._assigned([target], value)
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if _says_set(annotation):
                self._names.add(name)
            case ast.NamedExpr(target=target, value=value):
                self._assigned([target], value)
            case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
                self._iterated(target, iterated)
            case ast.Call():
                self._passed(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._returned(node)
            case _:
                pass

    def _assigned(self, targets: Iterable[ast.expr], value: ast.expr) -> None:
        is_set, holds = self.is_set(value), self._holds(value)
        for target in targets:
            if is_set and isinstance(target, ast.Subscript):
                self._holders.add(_name(target.value))
            elif is_set:
                self._names.add(_name(target))
            elif holds:
                self._holders.add(_name(target))

    def _iterated(self, target: ast.expr, iterated: ast.expr) -> None:
        """`for group in groups.values()`, `for key, group in groups.items()`, `for group in [{1}, {2}]`."""
        match iterated:
            case ast.Call(func=ast.Attribute(value=base, attr="values")) if _name(base) in self._holders:
                self._names.add(_name(target))
            case ast.Call(func=ast.Attribute(value=base, attr="items")) if _name(base) in self._holders:
                if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                    self._names.add(_name(target.elts[1]))
            case _:
                if self._holds(iterated):
                    self._names.add(_name(target))

    def _passed(self, node: ast.Call) -> None:
        """A call that hands a set to a parameter."""
        for keyword in node.keywords:
            if keyword.arg is not None and self.is_set(keyword.value):
                self._names.add(keyword.arg)
        for name, value in zip(self._names_of(node.func), node.args, strict=False):
            if self.is_set(value):
                self._names.add(name)
            elif self._holds(value):
                self._holders.add(name)
        match node.func:
            case ast.Attribute(value=base, attr="append" | "insert") if any(map(self.is_set, node.args)):
                self._holders.add(_name(base))
            case _:
                pass

    def _names_of(self, function: ast.expr) -> list[str]:
        match function:
            case ast.Lambda(args=arguments):
                return [argument.arg for argument in arguments.posonlyargs + arguments.args]
            case ast.Name(id=name):
                return self._parameters.get(name, [])
            case ast.Attribute(attr=name):
                return self._parameters.get(name, [])[1:]  # without `self`
            case _:
                return []

    def _returned(self, node: Function) -> None:
        values = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value]
        if any(map(self.is_set, values)):
            self._functions.add(node.name)

    def _holds(self, node: ast.expr) -> bool:
        """Whether an expression is a mapping or list whose items are sets: `defaultdict(set)`, `{"a": set()}`."""
        match node:
            case ast.Call(args=[ast.Name(id="set" | "frozenset"), *_]):
                return "defaultdict" in ast.unparse(node.func)
            case ast.Call(args=[ast.Lambda(body=body), *_]):
                return "defaultdict" in ast.unparse(node.func) and self.is_set(body)
            case ast.Dict(values=items) | ast.List(elts=items) | ast.Tuple(elts=items):
                return any(map(self.is_set, items))
            case ast.DictComp(value=item) | ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                return self.is_set(item)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self._holders
            case _:
                return False


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _says_set(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).lower().startswith(("set", "frozenset", "typing.set"))
