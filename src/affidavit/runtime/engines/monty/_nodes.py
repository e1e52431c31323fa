"""Small makers of syntax nodes that keep the caller's places."""

from __future__ import annotations

import ast

__all__ = ["call", "read", "stored"]


def read(name: str, at: ast.AST) -> ast.Name:
    """A name that is read."""
    return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), at)


def stored(name: str, at: ast.AST) -> ast.Name:
    """A name that is bound."""
    return ast.copy_location(ast.Name(id=name, ctx=ast.Store()), at)


def call(name: str, *arguments: ast.expr, at: ast.AST) -> ast.Call:
    """A call of one of the prelude's functions, `_affidavit_<name>`."""
    for argument in arguments:
        if not hasattr(argument, "lineno"):
            ast.copy_location(argument, at)
    function = read(f"_affidavit_{name}", at)
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), at)
