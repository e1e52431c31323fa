"""Whether an error would end the script: not where the code never runs, nor where something catches it.

Every question here is answered for the script's benefit: an error counts as caught when it may be. An error in a
function is met where the function is called, so that is where handlers are looked for, too.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.scopes import Script

__all__ = ["guarded"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_STARTED_BY_ITSELF: Final = frozenset({"main", "run", "solve"})
_EXITS: Final = frozenset({"exit", "quit", "_exit"})
# fmt: off
_EAGER: Final = frozenset({
    "sum", "list", "sorted", "set", "tuple", "max", "min", "dict", "frozenset", "any", "all", "join", "Counter",
    "reduce", "sort", "extend", "update", "nlargest", "nsmallest", "print", "len", "next", "mean", "median",
    "fmean", "dumps",
})
_HARMLESS: Final = frozenset({
    "staticmethod", "classmethod", "property", "cache", "lru_cache", "cached_property", "wraps", "dataclass",
    "override", "total_ordering", "abstractmethod", "overload",
})
_MANAGERS: Final = (["contextmanager"], ["asynccontextmanager"])
_ELSEWHERE: Final = frozenset({
    "return_exceptions", "ExitStack", "AsyncExitStack", "contextmanager", "asynccontextmanager", "exception",
    "__exit__", "__aexit__", "add_done_callback", "set_exception_handler", "suppress",
})
# fmt: on


def guarded(script: Script, node: ast.AST, *exceptions: str) -> bool:
    """Whether these exceptions, raised at the node, may leave the script unharmed.

    They do where the node certainly never runs (`if False`, behind a `return`, in a function that nobody mentions), and
    where a handler takes them: `except` with a fitting or unknown class, `suppress`, a `finally` that returns,
    `gather(..., return_exceptions=True)`; around the node, or around every use of the function that holds it.

    Args:
        script: the script.
        node: where they would be raised.
        exceptions: names of builtin exceptions; `Error` is `df.Error`. None at all: an error that nothing can catch.
    """
    return _Guard(script, exceptions).covers(node, frozenset())


class _Guard:
    """Answers for one kind of error."""

    def __init__(self, script: Script, exceptions: Sequence[str]) -> None:
        self._script = script
        self._fitting = frozenset(name for one in exceptions for name in _lineage(one))
        self._somewhere: bool | None = None
        self._managers: set[str] = set()

    def covers(self, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
        """Whether an error at the node does no harm; `seen` are the functions that led here."""
        inner = node
        for around in self._script.ancestors(node):
            if _never(around, inner) or self._is_caught(around, inner):
                return True
            match around:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if inner in around.body:
                    return around in seen or self._function(around, seen | {around})
                case ast.Lambda(body=body) if inner is body and not self._is_used_at_once(around):
                    if self.somewhere():
                        return True
                case ast.GeneratorExp() if not self._is_used_at_once(around) and self.somewhere():
                    return True
                case _:
                    pass
            inner = around
        return False

    def somewhere(self) -> bool:
        """Whether anything in the script may take such an error."""
        if self._somewhere is None and not self._fitting:
            self._somewhere = False
        elif self._somewhere is None:
            handled = any(self._fits(handler.type) for handler in self._script.handlers)
            self._somewhere = handled or any(_word(node) in _ELSEWHERE for node in self._script.nodes)
        return self._somewhere is True

    def _is_caught(self, around: ast.AST, inner: ast.AST) -> bool:
        if not self._fitting:
            return False
        match around:
            case (
                ast.Try(body=body, handlers=handlers, finalbody=final)
                | ast.TryStar(body=body, handlers=handlers, finalbody=final)
            ):
                tried = inner in body and any(self._fits(one.type) for one in handlers)
                return tried or any(_leaves(statement) for statement in final)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return inner in body and any(self._may_suppress(item.context_expr) for item in items)
            case ast.Call(keywords=keywords):
                return any(
                    one.arg == "return_exceptions" and not _is_static(one.value, truth=False)
                    for one in keywords
                )
            case _:
                return False

    def _fits(self, caught: ast.expr | None) -> bool:
        """Whether a handler takes such an error, or may."""
        match caught:
            case None:
                return True
            case ast.Tuple(elts=elements):
                return any(self._fits(one) for one in elements)
            case ast.Name(id=name):
                return name in self._fitting or self._is_another_name(name)
            case ast.Attribute(attr=name):
                return name in self._fitting
            case _:
                return True

    def _is_another_name(self, name: str) -> bool:
        """Whether the script gives a name to exceptions that may be any: `ERRORS = (KeyError, ValueError)`."""
        for binding in self._script.bindings_everywhere(name):
            match binding.node:
                case ast.ClassDef() | ast.alias(asname=None):
                    pass
                case _:
                    return True
        return False

    def _may_suppress(self, manager: ast.expr) -> bool:
        if not isinstance(manager, ast.Call):
            return isinstance(manager, ast.Name) and self._is_another_name(manager.id)
        name = named(manager.func)
        if name == "suppress":
            return any(self._fits(one.value if isinstance(one, ast.Starred) else one) for one in manager.args)
        if name in {"ExitStack", "AsyncExitStack"}:
            return True
        return self._script.binds(name) and self._may_take(name)

    def _may_take(self, name: str) -> bool:
        """Whether a manager of the script may take an error: one that is a generator only does around its `yield`."""
        bindings = self._script.bindings_everywhere(name)
        function = bindings[0].node if len(bindings) == 1 else None
        if name in self._managers or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return True
        if [self._decorator(one) for one in function.decorator_list] not in _MANAGERS:
            return True
        self._managers.add(name)
        yields = [node for node in ast.walk(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
        taken = any(isinstance(one, ast.YieldFrom) or self._is_taken(one, function) for one in yields)
        self._managers.discard(name)
        return taken

    def _decorator(self, decorator: ast.expr) -> str:
        """The word of a decorator that comes from a library."""
        word = named(decorator)
        bindings = self._script.bindings_everywhere(word)
        return word if all(isinstance(one.node, ast.alias) for one in bindings) else ""

    def _is_taken(self, node: ast.AST, function: ast.AST) -> bool:
        inner = node
        for around in self._script.ancestors(node):
            if around is function:
                return False
            if self._is_caught(around, inner):
                return True
            inner = around
        return True

    def _is_used_at_once(self, lazy: ast.Lambda | ast.GeneratorExp) -> bool:
        """Whether it is evaluated where it stands: `sorted(rows, key=lambda row: ...)`, `sum(... for ...)`."""
        around = self._script.parent(lazy)
        if isinstance(around, ast.keyword):
            around = self._script.parent(around)
        return isinstance(around, ast.Call) and around.func is not lazy and self._is_eager(around)

    def _is_eager(self, call: ast.Call) -> bool:
        return named(call.func) in _EAGER and not self._script.binds(named(call.func))

    def _function(self, function: Function, seen: frozenset[ast.AST]) -> bool:
        """Whether an error in a function does no harm wherever it is used."""
        if any(named(_called(one)) not in _HARMLESS for one in function.decorator_list) and self.somewhere():
            return True
        uses = [use for use in self._uses(function) if function not in self._script.ancestors(use)]
        if not uses:
            return not self._starts_by_itself(function) and function.name not in self._script.strings
        return all(self._use(use, function, seen) for use in uses)

    def _starts_by_itself(self, function: Function) -> bool:
        return function.name in _STARTED_BY_ITSELF and self._script.parent(function) is self._script.tree

    def _uses(self, function: Function) -> list[ast.expr]:
        around = self._script.parent(function)
        if not isinstance(around, ast.ClassDef):
            return list(self._script.uses(function.name))
        owners: list[ast.expr] = [
            use for use in self._script.uses(around.name) if around not in self._script.ancestors(use)
        ]
        if not owners or (function.name.startswith("__") and function.name.endswith("__")):
            return owners
        return [
            node
            for node in self._script.nodes
            if isinstance(node, ast.Attribute) and node.attr == function.name
        ]

    def _use(self, use: ast.expr, function: Function, seen: frozenset[ast.AST]) -> bool:
        """Whether an error of the function does no harm where it is used like this."""
        if self.covers(use, seen):
            return True
        call = self._script.parent(use)
        if isinstance(call, ast.Call) and call.func is use:
            late = isinstance(function, ast.AsyncFunctionDef) and not self._is_awaited_at_once(call)
        else:
            argument = self._script.parent(call) if isinstance(call, ast.keyword) else call
            late = not (isinstance(argument, ast.Call) and self._is_eager(argument))
        return late and self.somewhere()

    def _is_awaited_at_once(self, call: ast.expr) -> bool:
        """Whether the coroutine is awaited in the statement that makes it, or iterated there."""
        for around in self._script.ancestors(call):
            if isinstance(around, ast.Await | ast.AsyncFor | ast.comprehension):
                return True
            if isinstance(around, ast.stmt):
                return False
        return False


def _lineage(name: str) -> Iterator[str]:
    yield name
    known = getattr(builtins, name, Exception)
    yield from (one.__name__ for one in known.__mro__ if one is not object)
    yield from ("ExceptionGroup", "BaseExceptionGroup")


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _word(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=word) | ast.alias(name=word):
            return word
        case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
            return word
        case _:
            return None


def _never(around: ast.AST, inner: ast.AST) -> bool:
    """Whether `around` never evaluates its part `inner`."""
    match around:
        case ast.If(test=test, body=first) if inner is not test:
            skipped = _is_static(test, truth=inner not in first)
        case ast.IfExp(test=test, body=chosen) if inner is not test:
            skipped = _is_static(test, truth=inner is not chosen)
        case ast.While(test=test, body=first) if inner in first:
            skipped = _is_static(test, truth=False)
        case ast.For(iter=iterated, body=first) if inner in first:
            skipped = _is_empty(iterated)
        case ast.BoolOp(op=operator, values=values):
            before = itertools.takewhile(lambda value: value is not inner, values)
            skipped = any(_is_static(one, truth=isinstance(operator, ast.Or)) for one in before)
        case _:
            skipped = False
    return skipped or any(_is_behind_end(block, inner) for block in _blocks(around))


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.AST]]:
    for name in ("body", "orelse", "finalbody"):
        block: Sequence[ast.AST] | ast.AST = getattr(node, name, ())
        if not isinstance(block, ast.AST):
            yield block


def _is_static(test: ast.expr, *, truth: bool) -> bool:
    """Whether a condition certainly has this truth when the script runs."""
    match test:
        case ast.Constant(value=value):
            return bool(value) is truth
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return not truth
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_static(operand, truth=not truth)
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]):
            return truth
        case ast.Compare(left=ast.Attribute(attr="version_info" | "platform")):
            return True  # which of the two runs is not decided here
        case _:
            return _is_empty(test) and not truth


def _is_empty(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case _:
            return False


def _is_behind_end(body: Sequence[ast.AST], inner: ast.AST) -> bool:
    """Whether a statement before it in the same block always leaves the block."""
    return inner in body and any(_ends(statement) for statement in body[: body.index(inner)])


def _ends(statement: ast.AST) -> bool:
    match statement:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return named(function) in _EXITS
        case ast.If(test=test, body=body, orelse=orelse):
            first, second = any(map(_ends, body)), any(map(_ends, orelse))
            if first and second:
                return True
            return (first and _is_static(test, truth=True)) or (second and _is_static(test, truth=False))
        case ast.While(test=test):
            return _is_static(test, truth=True) and not any(
                isinstance(node, ast.Break) for node in ast.walk(statement)
            )
        case _:
            return False


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement of a `finally` may swallow the error by leaving it."""
    return any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(statement))
