"""What the rules look at: one script, with its names and the way up from each node."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.monty.rules.sets import Sets
from affidavit.runtime.engines.monty.scan import Scan, bound_names

__all__ = ["Context", "Unsupported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A construct that monty cannot run as Python means it.

    Attributes:
        line: 1-based line in the script.
        column: 0-based column in UTF-8 bytes.
        construct: short name of the rule.
        message: what is wrong with it, for people.
    """

    line: int
    column: int
    construct: str
    message: str


class Context:
    """A script under examination."""

    def __init__(self, module: ast.Module, tree: Mapping[str, JsonValue]) -> None:
        self.module = module
        self.scan = Scan(module, tree)
        self.nodes = list(ast.walk(module))
        self._parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.sets = Sets(self.nodes, dict(_functions(self.nodes)))
        self.caught = {node.name for node in self.nodes if isinstance(node, ast.ExceptHandler) and node.name}
        self.awaited = set(_awaited(self.nodes))
        self.stored = {
            node.attr
            for node in self.nodes
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        } | {name for node in self.nodes if isinstance(node, ast.ClassDef) for name in _class_names(node)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that a node is directly part of."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Everything that a node is part of, from the inside out."""
        at = self._parents.get(node)
        while at is not None:
            yield at
            at = self._parents.get(at)

    def builtin(self, node: ast.AST | None) -> str | None:
        """The builtin that a name means, unless the script binds that name itself."""
        if not isinstance(node, ast.Name) or node.id in self.scan.bound or node.id in self.scan.imported:
            return None
        return node.id

    def called(self, node: ast.AST | None) -> str | None:
        """What a call calls: a builtin's name, or the dotted origin of an imported one (`itertools.count`)."""
        if not isinstance(node, ast.Call):
            return None
        return self.builtin(node.func) or self.scan.module_of(node.func)

    def find(self, node: ast.AST, construct: str, message: str) -> Unsupported:
        """A finding at a node."""
        return Unsupported(
            line=getattr(node, "lineno", 1),
            column=getattr(node, "col_offset", 0),
            construct=construct,
            message=message,
        )


def _awaited(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that are bound to what a call of `df` returned, or to a page of it."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=ast.Await()):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.NamedExpr(target=ast.Name(id=name), value=ast.Await()):
                yield name
            case ast.AsyncFor(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def _class_names(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        for inner in (
            ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else (statement,)
        ):
            yield from bound_names(inner)


def _functions(nodes: list[ast.AST]) -> Iterator[tuple[str, list[str]]]:
    """Positional parameters of functions by the name that these are defined or bound under."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, _positional(node.args)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=arguments)):
                yield name, _positional(arguments)
            case _:
                pass


def _positional(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in arguments.posonlyargs + arguments.args]
