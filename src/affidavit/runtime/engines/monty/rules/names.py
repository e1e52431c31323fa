"""Names, attributes and calls that monty lacks or that mean something else there."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from affidavit.runtime.engines.monty.rules.context import Context, Unsupported
from affidavit.runtime.engines.monty.rules.tables import (
    ABSENT_ATTRIBUTES,
    BUILTIN_METHODS,
    BUILTIN_TYPES,
    CLASSES,
    MODULES,
    REFUSED_BUILTINS,
)

__all__ = ["check"]

_FAILURE_FIELDS = ("code", "message", "hint", "retryable", "details")
_SINGLETONS = (None, True, False, ...)


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """What monty lacks of the names in a node."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _import(context, node)
        case ast.Name():
            yield from _name(context, node)
        case ast.Attribute():
            yield from _attribute(context, node)
        case ast.Compare():
            yield from _identity(context, node)
        case ast.FormattedValue(conversion=114, value=ast.Name(id=name)) if name in context.caught:
            yield context.find(node, "repr of an exception", "the repr of a caught exception")
        case _:
            pass


def _import(context: Context, node: ast.Import | ast.ImportFrom) -> Iterator[Unsupported]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name not in MODULES:
                yield context.find(node, "import", f"there is no module {alias.name} here")
        return
    module = node.module or ""
    if node.level or module not in MODULES:
        yield context.find(node, "import", f"there is no module {'.' * node.level}{module} here")
        return
    for alias in node.names:
        dotted = f"{module}.{alias.name}"
        if alias.name not in MODULES[module] and dotted not in MODULES:
            yield context.find(node, "import", f"{dotted} is not there, or differs from Python's")


def _name(context: Context, node: ast.Name) -> Iterator[Unsupported]:
    if node.id.startswith("_affidavit"):
        yield context.find(node, "reserved name", "names that start with _affidavit are reserved")
        return
    name = context.builtin(node)
    if name is None or not isinstance(node.ctx, ast.Load):
        return
    if name == "SystemExit" and not _is_raised(context, node):
        yield context.find(node, "SystemExit", "SystemExit can only be raised here; exit() does the same")
    elif name == "type" and not _is_called(context, node):
        yield context.find(node, "builtin", "type is a function here, and no class")
    elif name in REFUSED_BUILTINS and not (
        name == "object" and isinstance(context.parent(node), ast.ClassDef)
    ):
        yield context.find(node, "builtin", f"{name} is not there, or differs from Python's")
    elif name.startswith("__") and name != "__name__" and hasattr(builtins, name):
        yield context.find(node, "builtin", f"{name} is not there")


def _is_called(context: Context, node: ast.AST) -> bool:
    parent = context.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _is_raised(context: Context, node: ast.AST) -> bool:
    parent = context.parent(node)
    return isinstance(parent, ast.Raise) or (
        isinstance(parent, ast.Call) and parent.func is node and isinstance(context.parent(parent), ast.Raise)
    )


def _attribute(context: Context, node: ast.Attribute) -> Iterator[Unsupported]:
    dotted = context.scan.module_of(node)
    if dotted is not None:
        yield from _member(context, node, dotted)
        return
    if node in context.scan.operation_values:
        yield context.find(
            node, "operation as a value", "an operation can be called, or bound to a name and called"
        )
    if context.scan.is_below_df(node):
        if ast.unparse(node) == "df.lib":
            yield context.find(node, "helper", "helpers run on cpython alone")
        return
    name, parent = node.attr, context.parent(node)
    called = isinstance(parent, ast.Call) and parent.func is node
    own = name in context.stored
    if name.startswith("__") and name.endswith("__"):
        if name != "__name__" or not _is_type(context, node.value):
            yield context.find(node, "special attribute", f"{name} cannot be asked for here")
    elif name in ABSENT_ATTRIBUTES and not own:
        yield context.find(node, "attribute", f"no object has {name} here")
    elif context.builtin(node.value) in BUILTIN_TYPES:
        yield from _of_type(context, node, called)
    elif not called and not own and isinstance(node.ctx, ast.Load):
        yield from _read(context, node)


def _of_type(context: Context, node: ast.Attribute, called: bool) -> Iterator[Unsupported]:
    """`str.lower`, `dict.fromkeys`: an attribute of a built-in type."""
    name = f"{context.builtin(node.value)}.{node.attr}"
    if not called or name not in ("dict.fromkeys", "bytes.fromhex"):
        yield context.find(node, "method of a type", f"{name} is no value here; use a lambda")


def _read(context: Context, node: ast.Attribute) -> Iterator[Unsupported]:
    """An attribute that is read and not called."""
    if node.attr in BUILTIN_METHODS:
        message = f"the method {node.attr} can only be called here; use a lambda"
        yield context.find(node, "method as a value", message)
    elif (
        isinstance(node.value, ast.Name)
        and node.value.id in context.caught
        and node.attr not in _FAILURE_FIELDS
    ):
        yield context.find(node, "exception attribute", f"exceptions have no {node.attr} here")


def _is_type(context: Context, node: ast.expr) -> bool:
    return context.called(node) == "type"


def _member(context: Context, node: ast.Attribute, dotted: str) -> Iterator[Unsupported]:
    """An attribute of an imported module, at any depth: `datetime.timezone.utc`."""
    owner, _, name = dotted.rpartition(".")
    if owner in MODULES:
        absent = dotted not in MODULES and name not in MODULES[owner]
    elif owner in CLASSES:
        absent = name not in CLASSES[owner]
    else:
        absent = name in ABSENT_ATTRIBUTES or (name.startswith("__") and name != "__name__")
    if absent:
        yield context.find(node, "module attribute", f"{dotted} is not there, or differs from Python's")


def _identity(context: Context, node: ast.Compare) -> Iterator[Unsupported]:
    sides = [node.left, *node.comparators]
    for at, operator in enumerate(node.ops):
        if not isinstance(operator, ast.Is | ast.IsNot):
            continue
        pair = sides[at : at + 2]
        if not any(_unique(context, side) for side in pair):
            yield context.find(
                node, "identity", "`is` between values that are not None, True, False or types"
            )
        if any(_is_type(context, side) for side in pair) and any(
            context.builtin(side) in ("dict", "list", "type") for side in pair
        ):
            yield context.find(
                node, "type identity", "`type(x) is ...` differs for results and subclasses; use isinstance"
            )


def _unique(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return any(node.value is single for single in _SINGLETONS)
    return _is_type(context, node) or context.builtin(node) in BUILTIN_TYPES
