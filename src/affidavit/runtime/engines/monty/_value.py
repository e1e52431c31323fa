"""What a script's value is (design rule 15), as a rewriting of its last statement.

The value is that of the last expression, of a trailing assignment, or of a top-level `return`; without any of these, of
a `main`, `run` or `solve` that the script defines and never mentions again. Where the last statement is an
`if __name__ == "__main__":` block, its last statement counts. `print(...)` gives no value.
"""

from __future__ import annotations

import ast

from affidavit.runtime.engines.monty._nodes import call, read, stored
from affidavit.runtime.engines.monty.scan import Function, Scan

__all__ = ["give_value"]

_ENTRIES = ("main", "run", "solve")
_KEPT = "_affidavit_kept"
_OBJECT = "_affidavit_object"
_INDEX = "_affidavit_index"


def give_value(module: ast.Module, scan: Scan) -> None:
    """Rewrite a module so that it ends in its value, evaluating nothing twice."""
    given = _keep(module.body, scan)
    last = module.body[-1] if module.body else None
    if last is None:
        return
    entry = None if given else _entry(module)
    if given:
        value: ast.expr = call("result", read(_KEPT, last), at=last)
    elif entry is not None:
        value = call("returned", _entered(entry), at=last)
    else:
        return
    module.body.append(ast.copy_location(ast.Expr(value=value), last))


def _keep(body: list[ast.stmt], scan: Scan) -> bool:
    """Make the last statement leave its value under a name; whether there is any."""
    last = body[-1] if body else None
    match last:
        case ast.Expr(value=value):
            if _prints(value):
                return False
            if scan.is_immediate(value.value if isinstance(value, ast.Await) else value):
                last.value = value
                return False
            body[-1] = _put(_KEPT, _settled(value), last)
        case ast.Assign(targets=targets):
            if all(_names_only(target) for target in targets):
                body.append(_put(_KEPT, _settled(_loaded(targets[0])), last))
            else:
                last.value = _caught(last.value)
        case ast.AnnAssign(value=ast.expr() as value):
            last.value = _caught(value)
        case ast.AugAssign():
            body[-1:] = _augmented(last)
        case ast.If(orelse=[]) if _is_main_guard(last):
            return _keep(last.body, scan)
        case _:
            return False
    return True


def _prints(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"


def _settled(value: ast.expr) -> ast.expr:
    """The value; a coroutine of the script's own is awaited first."""
    return ast.copy_location(ast.Await(value=call("settle", value, at=value)), value)


def _put(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign(targets=[stored(name, at)], value=value), at)


def _caught(value: ast.expr) -> ast.expr:
    return ast.copy_location(ast.NamedExpr(target=stored(_KEPT, value), value=value), value)


def _names_only(target: ast.expr) -> bool:
    match target:
        case ast.Name():
            return True
        case ast.Starred(value=inner):
            return _names_only(inner)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(_names_only(item) for item in items)
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
            assert isinstance(target, ast.Name)
            made = ast.Name(id=target.id, ctx=ast.Load())
    return ast.copy_location(made, target)


def _augmented(last: ast.AugAssign) -> list[ast.stmt]:
    """`d[k()] += 1`, with `d` and `k()` evaluated once and the result read back."""
    target = last.target
    before: list[ast.stmt] = []
    match target:
        case ast.Name():
            back: ast.expr = read(target.id, target)
        case ast.Attribute():
            before.append(_put(_OBJECT, target.value, last))
            target.value = read(_OBJECT, target)
            back = ast.Attribute(value=read(_OBJECT, target), attr=target.attr, ctx=ast.Load())
        case ast.Subscript():
            before += [_put(_OBJECT, target.value, last), _put(_INDEX, target.slice, last)]
            target.value, target.slice = read(_OBJECT, target), read(_INDEX, target)
            back = ast.Subscript(value=read(_OBJECT, target), slice=read(_INDEX, target), ctx=ast.Load())
    return [*before, last, _put(_KEPT, ast.copy_location(back, last), last)]


def _is_main_guard(node: ast.If) -> bool:
    match node.test:
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return True
        case _:
            return False


def _entry(module: ast.Module) -> Function | None:
    """A function to call: defined at top level, callable without arguments, and mentioned nowhere outside itself."""
    defined = {node.name: node for node in module.body if isinstance(node, Function)}
    for name in _ENTRIES:
        node = defined.get(name)
        if node is None or _required(node.args):
            continue
        inside = set(map(id, ast.walk(node)))
        mentions = (part for part in ast.walk(module) if isinstance(part, ast.Name) and part.id == name)
        if all(id(part) in inside for part in mentions):
            return node
    return None


def _required(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)


def _entered(entry: Function) -> ast.expr:
    made: ast.expr = ast.copy_location(ast.Call(func=read(entry.name, entry), args=[], keywords=[]), entry)
    if isinstance(entry, ast.AsyncFunctionDef):
        return ast.copy_location(ast.Await(value=made), entry)
    return _settled(made)
