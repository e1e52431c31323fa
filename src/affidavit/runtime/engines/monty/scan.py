"""What a script's tree says about names: imports, functions, and where `df` goes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from affidavit.evidence.record import JsonValue

__all__ = ["Function", "Place", "Scan", "bound_names", "call_place", "chain"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def chain(node: ast.expr) -> list[str] | None:
    """The names of `a.b.c`, or None when it is not rooted in a plain name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    names.append(node.id)
    return names[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in the caller's script: 1-based line, 0-based column in UTF-8 bytes, as `ast` counts."""

    line: int
    column: int


def call_place(node: ast.Call) -> Place:
    """The place that CPython reports for a call: the called name, where a method chain runs over several lines."""
    function = node.func
    unpacked = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    )
    if isinstance(function, ast.Attribute) and not unpacked and function.end_lineno != function.lineno:
        end = function.end_col_offset or 0
        return Place(line=function.end_lineno or node.lineno, column=end - len(function.attr.encode()))
    return Place(line=node.lineno, column=node.col_offset)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names that one node binds, imports excepted."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            pass


class Scan:
    """One walk over a script.

    Attributes:
        imported: names that imports bind, anywhere, to what they stand for: `m` to `math`, `dt` to `datetime.datetime`.
        functions: top-level functions by name.
        called: names that are called anywhere.
        bound: names that the script binds other than by import.
        rebinds_df: whether `df` is among them, so that it may not be the namespace.
        aliases: whether a namespace of `df` is used as a value.
        operation_values: places where an operation of `df` is used as a value other than `name = df.x.y`.
        operation_names: whether some name is bound to an operation.
    """

    def __init__(self, module: ast.Module, tree: Mapping[str, JsonValue]) -> None:
        self.imported: dict[str, str] = {}
        self.functions: dict[str, Function] = {}
        self.called: set[str] = set()
        self.bound: set[str] = set()
        self.aliases = False
        self.operation_names = False
        self.operation_values: list[ast.expr] = []
        self._tree = tree
        self._leaves = set(_leaf_names(tree))
        for statement in module.body:
            if isinstance(statement, Function):
                self.functions[statement.name] = statement
        for node in ast.walk(module):
            self._note(node)
        self.rebinds_df = "df" in self.bound or "df" in self.imported
        self._follow(module)

    def _note(self, node: ast.AST) -> None:
        self.bound.update(bound_names(node))
        match node:
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    self.imported[alias.asname or root] = alias.name if alias.asname else root
            case ast.ImportFrom(module=source, names=names):
                for alias in names:
                    self.imported[alias.asname or alias.name] = f"{source}.{alias.name}"
            case ast.Call(func=ast.Name(id=name)):
                self.called.add(name)
            case _:
                pass

    def _follow(self, module: ast.Module) -> None:
        """Find where `df` is used for anything but a direct call."""
        parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(module):
            for child in ast.iter_child_nodes(node):
                parents[child] = node
        for node in ast.walk(module):
            if isinstance(node, ast.Name) and node.id == "df" and isinstance(node.ctx, ast.Load):
                self._use(node, parents)

    def _use(self, node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> None:
        at: JsonValue = cast("JsonValue", self._tree)
        above = parents.get(node)
        while isinstance(above, ast.Attribute) and isinstance(at, dict) and "$call" not in at:
            if above.attr not in at:
                return
            at = cast("dict[str, JsonValue]", at)[above.attr]
            node, above = above, parents.get(above)
        if not (isinstance(at, dict) and "$call" in at):
            self.aliases = True
        elif isinstance(above, ast.Call) and above.func is node:
            pass
        elif isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
            self.operation_names = True
        else:
            self.operation_values.append(node)

    def module_of(self, node: ast.expr) -> str | None:
        """What a dotted name stands for by the script's imports: `dt.now` is `datetime.datetime.now`."""
        names = chain(node)
        if names is None or names[0] not in self.imported:
            return None
        return ".".join([self.imported[names[0]], *names[1:]])

    def is_immediate(self, node: ast.expr) -> bool:
        """Whether an expression is a call that `df` answers at once, such as `df.answer(...)`."""
        if not isinstance(node, ast.Call) or self.rebinds_df:
            return False
        names = chain(node.func) or []
        leaf: Any = self._tree.get(names[1]) if len(names) == 2 and names[0] == "df" else None
        return isinstance(leaf, dict) and cast("dict[str, Any]", leaf).get("kind") == "sync"

    def is_exit(self, node: ast.expr | None) -> bool:
        """Whether an expression is the builtin `SystemExit`."""
        return isinstance(node, ast.Name) and node.id == "SystemExit" and node.id not in self.bound

    def is_below_df(self, node: ast.expr) -> bool:
        """Whether an expression is a chain of names from the namespace `df`."""
        names = chain(node)
        return names is not None and names[0] == "df" and not self.rebinds_df

    def is_error(self, function: ast.expr) -> bool:
        """Whether an expression is `df.Error`."""
        return not self.rebinds_df and chain(function) == ["df", "Error"]

    def leaves_script(self, function: ast.expr) -> bool:
        """Whether a callee is `sys.exit`."""
        return self.module_of(function) == "sys.exit"

    def site_of(self, node: ast.Call) -> Literal["base", "callee"] | None:
        """How a call must be told its site: by its namespace, by itself, or not at all."""
        function = node.func
        if isinstance(function, ast.Attribute):
            names = chain(function)
            if function.attr not in self._leaves or (names is not None and names[0] in self.imported):
                return None
            rooted = names is not None and names[0] == "df"
            return "base" if rooted or self.aliases else None
        if not self.operation_names or (
            isinstance(function, ast.Name) and function.id.startswith("_affidavit")
        ):
            return None
        if (
            isinstance(function, ast.Name)
            and function.id not in self.bound
            and hasattr(builtins, function.id)
        ):
            return None
        return "callee"


def _leaf_names(tree: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, branch in tree.items():
        if isinstance(branch, dict):
            if "$call" in branch:
                yield name
            else:
                yield from _leaf_names(cast("dict[str, JsonValue]", branch))
