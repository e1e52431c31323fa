"""CPython's own compiler decides what is Python; everything after this works on its tree.

A script may await at the top level and may return from there. Both are decided by the compiler: top-level `await` by
its own flag, a top-level `return` by compiling the same tree as the body of an async function, which leaves every
position as the caller wrote it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from affidavit.runtime.typecheck.verdict import Diagnostic, SourceText

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "Parsed", "Unparsable", "parse", "unfit_for_checking"]

MAX_BYTES = 1 << 20
"""Longer scripts are not compiled here: that would hold up everything else for seconds."""

MAX_DEPTH = 400
"""Deeper trees are not examined: the type checker overflows its stack on some of them."""

MAX_NODES = 40_000
"""Larger trees (some 100 KB of ordinary code) would take seconds to examine."""

_MAX_COMPILED = 256 << 10
"""Longer scripts are parsed, but not compiled: what only the compiler sees of them, the run will show."""

_MAX_FINALLY = 6
"""The compiler copies every `finally` body, so that nested ones double its work each time."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A script that is Python: its text with lines, and its tree."""

    text: SourceText
    tree: ast.Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsable:
    """Text that CPython could not compile within bounds; says nothing about its correctness."""

    reason: str


Outcome: TypeAlias = Parsed | Diagnostic | Unparsable


def parse(source: str) -> Outcome:
    """Compile a script.

    Returns:
        `Parsed`; a blocking `Diagnostic` of rule `syntax`, for text that is not Python; or `Unparsable`, for text that
        is too large or too deeply nested to tell.
    """
    text = SourceText(source)
    unreadable = _unreadable(text)
    if unreadable is not None:
        return unreadable
    if len(source) > MAX_BYTES:
        return Unparsable(
            reason=f"the script has {len(source)} characters, more than {MAX_BYTES} are not checked"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, "<script>")
            if len(source) > _MAX_COMPILED:
                return Parsed(text=text, tree=tree)
            if source.count("finally") > _MAX_FINALLY and _finally_depth(tree) > _MAX_FINALLY:
                return Unparsable(reason=f"more than {_MAX_FINALLY} `finally` blocks inside each other")
            return _compiled(source, tree, text)
    except SyntaxError as error:
        return _diagnostic(error, text)
    except (RecursionError, MemoryError):
        return Unparsable(reason="the script is nested too deeply to be checked")
    except (ValueError, OverflowError) as error:
        return Diagnostic(line=1, column=1, rule="syntax", message=str(error), blocking=True)


def _compiled(source: str, tree: ast.Module, text: SourceText) -> Outcome:
    try:
        compile(source, "<script>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        if "'return' outside function" not in str(error):
            raise
        # Compile the nodes of a second tree: the first keeps its shape for the rules.
        body = ast.parse(source, "<script>").body
        stray = _outermost(body, (ast.Yield, ast.YieldFrom))
        if stray is not None:
            return _at(stray, "'yield' outside function", text)
        wrapped = ast.parse("async def script(): pass")
        function = wrapped.body[0]
        assert isinstance(function, ast.AsyncFunctionDef)
        function.body = body
        compile(ast.fix_missing_locations(wrapped), "<script>", "exec")
    return Parsed(text=text, tree=tree)


def unfit_for_checking(parsed: Parsed) -> str:
    """Why a script must not be examined further, or empty: too large, or so deep that it may harm the checker."""
    level: list[ast.AST] = [parsed.tree]
    nodes = deep = 0
    while level:
        nodes += len(level)
        deep += 1
        if deep > MAX_DEPTH:
            return "the script is nested too deeply to be checked"
        if nodes > MAX_NODES:
            return f"the script has more than {MAX_NODES} syntax nodes, which is too large to be checked"
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return ""


def _finally_depth(tree: ast.Module) -> int:
    deepest = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        final: list[ast.stmt] = getattr(node, "finalbody", [])
        stack += [(child, level + (child in final)) for child in ast.iter_child_nodes(node)]
    return deepest


def _outermost(body: list[ast.stmt], kinds: tuple[type[ast.AST], ...]) -> ast.expr | None:
    """The first node of these kinds that belongs to the top level, not to a function or class in it."""
    for node in _outer_nodes(body):
        if isinstance(node, kinds) and isinstance(node, ast.expr):
            return node
    return None


def _outer_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack += reversed(list(ast.iter_child_nodes(node)))


def _unreadable(text: SourceText) -> Diagnostic | None:
    """Characters that no Python source may hold, found before the compiler raises without a place."""
    offset = text.text.find("\0")
    message = "source code cannot contain null characters"
    if offset < 0:
        try:
            text.text.encode()
        except UnicodeEncodeError as error:
            offset = error.start
            message = f"source code cannot contain the lone surrogate U+{ord(text.text[offset]):04X}"
    if offset < 0:
        return None
    line, column = text.position(offset)
    return Diagnostic(line=line, column=column, rule="syntax", message=message, blocking=True)


def _at(node: ast.expr, message: str, text: SourceText) -> Diagnostic:
    column = text.column(node.lineno, node.col_offset)
    return Diagnostic(line=node.lineno, column=column, rule="syntax", message=message, blocking=True)


def _diagnostic(error: SyntaxError, text: SourceText) -> Diagnostic:
    line = max(error.lineno or 1, 1)
    message = error.msg or "invalid syntax"
    shown = text.line(line).lstrip()
    suggestion = None
    if shown.startswith(("!", "%")):
        message = f"{message}: shell and notebook commands are not Python"
    elif message.startswith(("'await' outside", "'async ", "asynchronous comprehension outside")):
        suggestion = "async def"
    return Diagnostic(
        line=line,
        column=max(error.offset or 1, 1),
        rule="syntax",
        message=message,
        blocking=True,
        suggestion=suggestion,
    )
