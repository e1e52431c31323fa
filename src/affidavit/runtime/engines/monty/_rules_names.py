"""Names, attributes and calls that monty lacks or that mean something else there."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from ._context import Context, Unsupported
from ._scan import Function, chain
from ._tables import (
    ABSENT_ATTRIBUTES,
    BUILTIN_METHODS,
    BUILTIN_TYPES,
    CODECS,
    MODULES,
    REFUSED_BUILTINS,
)

__all__ = ["check"]

_FAILURE_FIELDS = ("code", "message", "hint", "retryable", "details", "args")
_SINGLETONS = (None, True, False, ...)
_IDENTITY_CALLS = ("type",)
_TEXT_METHODS = ("join", "format", "strip", "upper", "lower", "replace", "decode", "isoformat")


def check(context: Context, node: ast.AST) -> Iterator[Unsupported]:
    """What monty lacks of the names in a node."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _import(context, node)
        case ast.Name():
            yield from _name(context, node)
        case ast.Attribute():
            yield from _attribute(context, node)
        case ast.Call():
            yield from _call(context, node)
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
    if node.level or node.module not in MODULES:
        yield context.find(node, "import", f"there is no module {'.' * node.level}{node.module or ''} here")
        return
    for alias in node.names:
        if alias.name not in MODULES[node.module] and f"{node.module}.{alias.name}" not in MODULES:
            yield context.find(
                node, "import", f"{node.module}.{alias.name} is not there, or differs from Python's"
            )


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
    elif name in REFUSED_BUILTINS:
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
            node, "operation as a value", "an operation can be called here, or bound to a name and called"
        )
    dotted_names = chain(node)
    if dotted_names is not None and dotted_names[0] == "df" and not context.scan.rebinds_df:
        return
    name, parent = node.attr, context.parent(node)
    called = isinstance(parent, ast.Call) and parent.func is node
    own = name in context.stored
    if name.startswith("__") and name.endswith("__"):
        if name != "__name__" or not _is_type(context, node.value):
            yield context.find(node, "special attribute", f"{name} cannot be asked for here")
    elif name in ABSENT_ATTRIBUTES and not own:
        yield context.find(node, "attribute", f"no object has {name} here")
    elif isinstance(node.value, ast.Name) and context.builtin(node.value) in BUILTIN_TYPES:
        if not called or (node.value.id, name) not in (("dict", "fromkeys"), ("bytes", "fromhex")):
            yield context.find(
                node, "method of a type", f"{node.value.id}.{name} is no value here; use a lambda"
            )
    elif name in BUILTIN_METHODS and not called and not own and isinstance(node.ctx, ast.Load):
        yield context.find(
            node, "method as a value", f"the method {name} can only be called here; use a lambda"
        )
    elif isinstance(node.value, ast.Name) and node.value.id in context.caught and not called:
        if name not in _FAILURE_FIELDS:
            yield context.find(node, "exception attribute", f"exceptions have no {name} here")


def _is_type(context: Context, node: ast.expr) -> bool:
    return context.called(node) == "type"


def _member(context: Context, node: ast.Attribute, dotted: str) -> Iterator[Unsupported]:
    """An attribute of an imported module, at any depth: `datetime.timezone.utc`."""
    module, _, name = dotted.rpartition(".")
    if module in MODULES and dotted not in MODULES and name not in MODULES[module]:
        yield context.find(node, "module attribute", f"{dotted} is not there, or differs from Python's")
    elif module not in MODULES and (
        name in ABSENT_ATTRIBUTES or (name.startswith("__") and name != "__name__")
    ):
        yield context.find(node, "module attribute", f"{dotted} is not there")
    elif dotted in (
        "datetime.datetime.max",
        "datetime.datetime.min",
        "datetime.date.max",
        "datetime.date.min",
    ):
        yield context.find(node, "module attribute", f"{dotted} is not there")


def _call(context: Context, node: ast.Call) -> Iterator[Unsupported]:
    called = context.called(node)
    if called is not None:
        yield from _known_call(context, node, called)
    if isinstance(node.func, ast.Attribute):
        yield from _method_call(context, node, node.func)
    elif (name := context.builtin(node.func)) is not None and _is_exception(name) and name != "SystemExit":
        yield from _exception(context, node, name)


def _known_call(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    keywords = {keyword.arg for keyword in node.keywords}
    match called:
        case "getattr" | "hasattr":
            yield from _by_name(context, node, called)
        case "asyncio.gather":
            if keywords:
                yield context.find(node, "gather option", "asyncio.gather takes no keyword here")
            if not isinstance(context.parent(node), ast.Await):
                yield context.find(node, "gather", "asyncio.gather must be awaited where it is called")
        case "asyncio.run":
            if any(isinstance(above, Function | ast.Lambda) for above in context.above(node)):
                yield context.find(node, "asyncio.run", "asyncio.run inside a function; await it instead")
        case "json.dumps" | "json.loads":
            if keywords - {"indent", "sort_keys", "ensure_ascii", "separators", "skipkeys", "allow_nan"}:
                yield context.find(node, "json option", f"{called} with an option that is not there")
        case "random.Random" | "random.seed":
            if not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is None):
                yield context.find(node, "random", f"{called} without a seed draws on other entropy here")
        case "repr":
            if (
                isinstance(node.args[0] if node.args else None, ast.Name)
                and node.args[0].id in context.caught
            ):  # type: ignore[attr-defined]
                yield context.find(node, "repr of an exception", "the repr of a caught exception")
        case "bytes" | "slice":
            yield from _bytes(context, node, called)
        case _:
            pass


def _by_name(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    """`hasattr` and `getattr` do not see methods: with a default that would be silent."""
    name = node.args[1] if len(node.args) > 1 else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        if (
            name.value in BUILTIN_METHODS
            or name.value.startswith("__")
            or name.value in ("count", "index", "title")
        ):
            yield context.find(node, called, f"{called} does not see the method {name.value} here")
    elif called == "hasattr" or len(node.args) > 2:
        yield context.find(
            node, called, f"{called} does not see methods, and the name is not known beforehand"
        )


def _bytes(context: Context, node: ast.Call, called: str) -> Iterator[Unsupported]:
    if (
        called == "bytes"
        and node.args
        and isinstance(node.args[0], ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp)
    ):
        yield context.find(node, "bytes", "bytes cannot be made of a list here")


def _method_call(context: Context, node: ast.Call, function: ast.Attribute) -> Iterator[Unsupported]:
    if function.attr in ("encode", "decode"):
        given = [*node.args[:1], *[keyword.value for keyword in node.keywords if keyword.arg == "encoding"]]
        for codec in given:
            if not (isinstance(codec, ast.Constant) and codec.value in CODECS):
                yield context.find(node, "codec", "only UTF-8 and ASCII are there")
    if function.attr in ("find", "rfind", "startswith", "endswith", "index", "rindex") and len(node.args) > 1:
        first = node.args[0]
        if isinstance(first, ast.Constant) and first.value == "":
            yield context.find(
                node, "empty search", f"{function.attr} of an empty text beyond the end differs"
            )
    if context.scan.is_error(function):
        yield context.find(node, "df.Error", "df.Error cannot be made here")


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _exception(context: Context, node: ast.Call, name: str) -> Iterator[Unsupported]:
    if len(node.args) > 1 or node.keywords or any(not _is_text(context, argument) for argument in node.args):
        yield context.find(
            node, "exception argument", f"{name} takes one text here; wrap it in str() or an f-string"
        )


def _is_text(context: Context, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return _is_text(context, left) or _is_text(context, right)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _TEXT_METHODS
        case _:
            return context.called(node) in ("str", "repr", "format", "json.dumps")


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
