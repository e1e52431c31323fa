"""From a script's text to code, and what its value is: the same in every engine. Standard library only.

The value is that of the last expression, of a trailing assignment, or of a top-level `return`; without any of these, of
a `main`, `run` or `solve` that the script defines and never mentions again. Where the last statement is an
`if __name__ == "__main__":` block, its last statement counts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final, cast

__all__ = ["BODY", "VALUE", "Compiled", "compile_script", "entry_of", "keep_value"]

VALUE: Final = "_affidavit_value"
"""The global that receives the value; removed again before anything is returned."""

_OBJECT: Final = "_affidavit_object"
_INDEX: Final = "_affidavit_index"
BODY: Final = "_affidavit_body"
"""The coroutine function that holds a script which returns at top level."""

_ENTRIES: Final = ("main", "run", "solve")
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Code that is ready to run.

    Attributes:
        code: the module's code; with `body`, code that only defines the function of that name.
        body: the name of the coroutine function that holds the script, where it returns at top level.
        entry: the function to call when the script gives no value, or None.
        filename: what the code is called in tracebacks.
    """

    code: CodeType
    body: str | None
    entry: str | None


def compile_script(source: str, filename: str) -> Compiled:
    """Compile a script with top-level `await` and `return`.

    Raises:
        SyntaxError: as CPython words it, in the script's own coordinates.
    """
    tree = ast.parse(source, filename)
    entry = entry_of(tree)
    keep_value(tree.body)
    returns = any(isinstance(node, ast.Return) for node in _own(tree))
    if returns:
        tree = _wrapped(tree, filename)
    code = compile(tree, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return Compiled(code, BODY if returns else None, entry.name if entry else None)


# ---- the value ----


def _as_it_is(value: ast.expr) -> ast.expr:
    return value


def keep_value(
    body: list[ast.stmt],
    *,
    settle: Callable[[ast.expr], ast.expr] = _as_it_is,
    is_final: Callable[[ast.Expr], bool] = lambda _: False,
) -> bool:
    """Rewrite the last statement so that it leaves its value under `VALUE`, evaluating nothing twice.

    Args:
        body: the statements of a module; changed in place.
        settle: wraps an expression whose value is kept, where an engine must do more than keep it.
        is_final: tells expressions that an engine leaves as they are because they give no value.

    Returns:
        Whether there is a value.
    """
    last = body[-1] if body else None
    match last:
        case ast.Expr(value=value):
            if _prints(value) or is_final(last):
                return False
            body[-1] = _assign(settle(value), last)
        case ast.Assign(targets=targets):
            if all(_is_unpacking_of_names(target) for target in targets):
                body.append(_assign(settle(_loaded(targets[0])), last))
            else:
                last.value = _caught(last.value)
        case ast.AnnAssign(value=ast.expr() as value):
            last.value = _caught(value)
        case ast.AugAssign():
            body[-1:] = _augmented(last)
        case ast.If(orelse=[]) if _is_main_guard(last):
            return keep_value(last.body, settle=settle, is_final=is_final)
        case _:
            return False
    return True


def _prints(value: ast.expr) -> bool:
    """`print(...)` as the last line shows something; nobody means its None."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"


def _assign(value: ast.expr, at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign(targets=[_stored(VALUE, at)], value=value), at)


def _stored(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(id=name, ctx=ast.Store()), at)


def _read(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), at)


def _caught(value: ast.expr) -> ast.expr:
    return ast.copy_location(ast.NamedExpr(target=_stored(VALUE, value), value=value), value)


def _is_unpacking_of_names(target: ast.expr) -> bool:
    """Plain names, also unpacked: reading them again runs no code, and the right side may be a spent iterator."""
    match target:
        case ast.Name():
            return True
        case ast.Starred(value=inner):
            return _is_unpacking_of_names(inner)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(_is_unpacking_of_names(item) for item in items)
        case _:
            return False


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Starred(value=inner):
            made: ast.expr = ast.Starred(value=_loaded(inner), ctx=ast.Load())
        case ast.Tuple(elts=items):
            made = ast.Tuple(elts=[_loaded(item) for item in items], ctx=ast.Load())
        case ast.List(elts=items):
            made = ast.List(elts=[_loaded(item) for item in items], ctx=ast.Load())
        case _:
            made = ast.Name(id=cast("ast.Name", target).id, ctx=ast.Load())
    return ast.copy_location(made, target)


def _augmented(last: ast.AugAssign) -> list[ast.stmt]:
    """`d[k()] += 1`, with `d` and `k()` evaluated once and the result read back."""
    target = last.target
    before: list[ast.stmt] = []
    match target:
        case ast.Name():
            back: ast.expr = _read(target.id, target)
        case ast.Attribute():
            before.append(_put(_OBJECT, target.value, last))
            target.value = _read(_OBJECT, target)
            back = ast.Attribute(value=_read(_OBJECT, target), attr=target.attr, ctx=ast.Load())
        case ast.Subscript():
            before += [_put(_OBJECT, target.value, last), _put(_INDEX, target.slice, last)]
            target.value, target.slice = _read(_OBJECT, target), _read(_INDEX, target)
            back = ast.Subscript(value=_read(_OBJECT, target), slice=_read(_INDEX, target), ctx=ast.Load())
    return [*before, last, _assign(ast.copy_location(back, last), last)]


def _put(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign(targets=[_stored(name, at)], value=value), at)


def _is_main_guard(node: ast.If) -> bool:
    match node.test:
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return True
        case _:
            return False


def entry_of(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """A function to call: defined at top level, callable without arguments, and mentioned nowhere outside itself."""
    defined = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name in _ENTRIES:
        node = defined.get(name)
        if node is None or _required(node.args):
            continue
        inside = set(map(id, ast.walk(node)))
        mentions = (part for part in ast.walk(tree) if isinstance(part, ast.Name) and part.id == name)
        if all(id(part) in inside for part in mentions):
            return node
    return None


def _required(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)


# ---- top-level return ----


def _own(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes in it. No recursion: expressions may nest deeply."""
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            yield node
            if not isinstance(node, _SCOPES):
                waiting.append(node)


def _wrapped(tree: ast.Module, filename: str) -> ast.Module:
    """The script as the body of a coroutine function whose names are all global, so that nothing else changes."""
    for node in _own(tree):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            where = (filename, node.lineno, node.col_offset + 1, None)
            raise SyntaxError("'yield' outside function", where)
    names = sorted(set(_bound(tree)))
    _drop_annotations(tree)
    body = tree.body
    if names:
        body.insert(0, ast.copy_location(ast.Global(names=names), body[0]))
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.AsyncFunctionDef(name=BODY, args=arguments, body=body, decorator_list=[])
    if sys.version_info >= (3, 12):
        function.type_params = []
    ast.copy_location(function, body[0])
    return ast.Module(body=[function], type_ignores=[])


def _drop_annotations(tree: ast.Module) -> None:
    """Turn annotated names of this scope into plain ones: a global of a function may not have an annotation."""
    for node in [tree, *_own(tree)]:
        for field in ("body", "orelse", "finalbody"):
            statements: object = getattr(node, field, None)
            if isinstance(statements, list):
                block = cast("list[ast.stmt]", statements)
                block[:] = [_unannotated(statement) for statement in block]


def _unannotated(node: ast.stmt) -> ast.stmt:
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
        return node
    if node.value is None:
        return ast.copy_location(ast.Pass(), node)
    return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)


def _bound(tree: ast.AST) -> Iterator[str]:
    """Every name that this scope binds. Loop variables of comprehensions are in a scope of their own."""
    inner = {
        id(part)
        for node in _own(tree)
        if isinstance(node, _COMPREHENSIONS)
        for generator in node.generators
        for part in ast.walk(generator.target)
    }
    for node in _own(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(node) not in inner:
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (
                    (alias.asname or alias.name.split(".")[0]) for alias in names if alias.name != "*"
                )
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case _:
                pass
