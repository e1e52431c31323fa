"""Constructs that monty does not parse, and classes beyond what it has of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import DUNDER_METHODS

__all__ = ["check"]

_STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Delete: ("del", "the `del` statement; use pop() or rebind"),
    ast.AsyncWith: ("async with", "`async with`"),
    ast.Yield: ("yield", "generators; build a list"),
    ast.YieldFrom: ("yield", "generators; build a list"),
    ast.TryStar: ("except*", "exception groups"),
    ast.MatMult: ("@", "matrix multiplication"),
}


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """What monty refuses of a node by its form."""
    if type(node) in _STATEMENTS:
        construct, message = _STATEMENTS[type(node)]
        yield context.find(node, construct, f"{message} cannot be run here")
    elif type(node).__name__ in ("TypeAlias", "TemplateStr", "Interpolation"):
        yield context.find(node, "syntax", "this newer syntax cannot be run here")
    elif isinstance(node, ast.ClassDef):
        yield from _class(context, node)
    elif isinstance(node, ast.AsyncFor):
        yield from _async_for(context, node)
    elif isinstance(node, ast.comprehension) and node.is_async:
        yield context.find(node.iter, "async comprehension", "asynchronous comprehensions cannot be run here")
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield from _stored(context, node)
    elif isinstance(node, ast.Call):
        yield from _keywords(context, node)
    elif isinstance(node, ast.Constant):
        yield from _constant(context, node)
    elif isinstance(node, ast.Dict):
        yield from _dict(context, node)


def _stored(context: Context, node: ast.Attribute) -> Iterator[Unsupported]:
    """Only what a class of the script made has attributes to set; a page or record has keys alone."""
    made = any(isinstance(other, ast.ClassDef) for other in context.nodes)
    if not made or (isinstance(node.value, ast.Name) and node.value.id in context.awaited):
        yield context.find(
            node, "attribute", "only objects of the script's own classes can have attributes set"
        )


def _class(context: Context, node: ast.ClassDef) -> Iterator[Unsupported]:
    bases = [base for base in node.bases if context.builtin(base) != "object"]
    if bases or node.keywords or getattr(node, "type_params", None):
        yield context.find(node, "inheritance", f"class {node.name} has a base class or is generic")
    yield from _dataclass(context, node)
    methods = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
    if "__getitem__" in methods and "__iter__" not in methods:
        yield context.find(node, "iteration by index", f"class {node.name} has __getitem__ and no __iter__")
    for statement in node.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _method(context, statement)
            case ast.Assign() | ast.AnnAssign() | ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                yield context.find(statement, "class body", "statements in a class body cannot be run here")


def _method(context: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Unsupported]:
    if node.decorator_list:
        yield context.find(
            node, "method decorator", f"method {node.name} is decorated (property, classmethod, ...)"
        )
    if node.name.startswith("__") and node.name.endswith("__") and node.name not in DUNDER_METHODS:
        yield context.find(node, "special method", f"{node.name} is not called where Python calls it")


def _dataclass(context: Context, node: ast.ClassDef) -> Iterator[Unsupported]:
    for decorator in node.decorator_list:
        name = context.scan.module_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name != "dataclasses.dataclass":
            yield context.find(decorator, "class decorator", "only @dataclass decorates classes here")
        elif isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg != "frozen":
                    yield context.find(decorator, "dataclass option", f"dataclass({keyword.arg}=...)")


def _async_for(context: Context, node: ast.AsyncFor) -> Iterator[Unsupported]:
    for target in ast.walk(node.target):
        if not isinstance(target, ast.Name | ast.Tuple | ast.List | ast.expr_context):
            yield context.find(node, "async for", "the target of `async for` must be plain names here")
            return


def _keywords(context: Context, node: ast.Call) -> Iterator[Unsupported]:
    unpacked = False
    for keyword in node.keywords:
        if keyword.arg is None:
            unpacked = True
        elif unpacked:
            yield context.find(node, "keyword order", "keywords after `**` would arrive in another order")
            return


def _constant(context: Context, node: ast.Constant) -> Iterator[Unsupported]:
    if isinstance(node.value, complex):
        yield context.find(node, "complex", "complex numbers differ in signs and last digits")
    elif isinstance(node.value, str) and any("\ud800" <= letter <= "\udfff" for letter in node.value):
        yield context.find(node, "surrogate", "text with lone surrogates")


def _dict(context: Context, node: ast.Dict) -> Iterator[Unsupported]:
    seen: dict[object, type] = {}
    for key in node.keys:
        if isinstance(key, ast.Constant):
            known = seen.setdefault(key.value, type(key.value))
            if known is not type(key.value):
                yield context.find(
                    key, "equal keys", "of two equal keys Python keeps the first, monty the last"
                )
