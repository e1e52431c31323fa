"""Which definitions a use of a name may mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from affidavit.runtime.typecheck.scopes import Binding, Scope, Script

__all__ = ["Names"]

_BLOCKS = ("body", "orelse", "finalbody", "handlers")


class Names:
    """Answers for one script, each use once."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._known: dict[ast.Name, tuple[Binding, ...]] = {}

    def meant(self, use: ast.Name) -> tuple[Binding, ...]:
        """Every binding that the use may mean; none where the script does not bind the name there."""
        if use not in self._known:
            self._known[use] = tuple(self._meant(use))
        return self._known[use]

    def _meant(self, use: ast.Name) -> Sequence[Binding]:
        name = use.id
        if self._script.is_shared(name):
            found = self._script.bindings_everywhere(name)
            return [one for one in found if one.how != "needs" and one.node is not self._script.tree]
        own = self._script.scope(use)
        for scope in own.chain():
            if scope.kind == "class" and scope is not own:
                continue
            found = [one for one in scope.bound.get(name, ()) if one.how != "needs"]
            if found and scope.kind == "class":
                return self._script.bindings(name, own)
            if found:
                return self._nearest(use, scope, found) if scope is own and len(found) > 1 else found
        return ()

    def _nearest(self, use: ast.Name, scope: Scope, found: list[Binding]) -> Sequence[Binding]:
        """The one definition that certainly comes last before the use, where there is one."""
        places = {one.node: one for one in found}
        inner: ast.AST = use
        for around in self._script.ancestors(use):
            if isinstance(around, ast.For | ast.AsyncFor) and inner in around.body:
                one = self._of_loop(around, places)
                if one is not None:
                    return [one]
            for statement in reversed(_before(around, inner)):
                held = [node for node in ast.walk(statement) if node in places]
                if held:
                    certain = len(held) == 1 and _assigns(statement, held[0])
                    return [places[held[0]]] if certain else found
            if self._script.scope(around) is not scope or self._repeats(around, places):
                return found
            inner = around
        return found

    def _of_loop(self, loop: ast.For | ast.AsyncFor, places: dict[ast.AST, Binding]) -> Binding | None:
        """The loop's own target, where nothing in its body binds the name again."""
        bound = [node for node in ast.walk(loop.target) if node in places]
        again = any(node in places for statement in loop.body for node in ast.walk(statement))
        return places[bound[0]] if len(bound) == 1 and not again else None

    def _repeats(self, around: ast.AST, places: dict[ast.AST, Binding]) -> bool:
        """Whether a definition later in this statement may come before the use: in a loop, or in a `try`."""
        if isinstance(around, ast.For | ast.AsyncFor | ast.While | ast.Try | ast.TryStar | ast.Match):
            return any(node in places for node in ast.walk(around))
        return isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)


def _before(around: ast.AST, inner: ast.AST) -> list[ast.AST]:
    """The statements before one in its block."""
    for name in _BLOCKS:
        block: object = getattr(around, name, None)
        if isinstance(block, list) and inner in block:
            return list(_until(block, inner))  # pyright: ignore[reportUnknownArgumentType]
    return []


def _until(block: Sequence[ast.AST], inner: ast.AST) -> Iterator[ast.AST]:
    for statement in block:
        if statement is inner:
            return
        yield statement


def _assigns(statement: ast.AST, node: ast.AST) -> bool:
    """Whether a statement certainly binds the name: a plain assignment or definition, not one under a condition."""
    match statement:
        case ast.Assign(targets=targets):
            return node in targets
        case ast.AnnAssign(target=target, value=value):
            return node is target and value is not None
        case _:
            return statement is node
