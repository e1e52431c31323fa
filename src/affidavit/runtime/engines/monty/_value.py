"""A script ends in its value: what `engines.script` keeps under a name is handed to the host by the last expression."""

from __future__ import annotations

import ast

from affidavit.runtime.engines.monty._nodes import call, read
from affidavit.runtime.engines.monty.scan import Scan, chain
from affidavit.runtime.engines.script import VALUE, entry_of, keep_value

__all__ = ["give_value"]


def give_value(module: ast.Module, scan: Scan) -> None:
    """Rewrite a module so that it ends in its value, evaluating nothing twice."""

    def is_final(last: ast.Expr) -> bool:
        """`df.answer(...)` happens at once and gives nothing, its like give values; an `await` of one is dropped."""
        value = last.value.value if isinstance(last.value, ast.Await) else last.value
        if not isinstance(value, ast.Call) or not scan.is_immediate(value):
            return False
        last.value = value
        return chain(value.func) == ["df", "answer"]

    entry = entry_of(module)
    given = keep_value(module.body, settle=_settled, is_final=is_final)
    last = module.body[-1] if module.body else None
    if last is None:
        return
    if given:
        value: ast.expr = call("result", read(VALUE, last), at=last)
    elif entry is not None:
        value = call("returned", _entered(entry), at=last)
    else:
        return
    module.body.append(ast.copy_location(ast.Expr(value=value), last))


def _settled(value: ast.expr) -> ast.expr:
    """The value; a coroutine of the script's own is awaited first."""
    return ast.copy_location(ast.Await(value=call("settle", value, at=value)), value)


def _entered(entry: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    made: ast.expr = ast.copy_location(ast.Call(func=read(entry.name, entry), args=[], keywords=[]), entry)
    if isinstance(entry, ast.AsyncFunctionDef):
        return ast.copy_location(ast.Await(value=made), entry)
    return _settled(made)
