"""The little world that conformance scripts run in: some operations, a handler that notes calls, and plain CPython."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from affidavit.errors import AffidavitError
from affidavit.evidence import values
from affidavit.runtime.program import (
    CallFailed,
    CallHandler,
    CallResult,
    CallReturned,
    Limits,
    Program,
    RunOutcome,
    ScriptCall,
)

__all__ = ["CLOCK", "TREE", "Bench", "Engine", "Plain", "World", "plain_python"]

CLOCK = 1_700_000_000.0
T = TypeVar("T")


def _leaf(
    path: str, parameters: list[str], *, positional: int = 0, kind: str = "operation", struct: bool = False
) -> dict[str, Any]:
    return {"$call": path, "parameters": parameters, "positional": positional, "kind": kind, "struct": struct}


_PAGED = ["where", "cursor", "offset", "limit"]
TREE: Mapping[str, Any] = {
    "answer": _leaf("answer", ["status", "value"], kind="sync"),
    "calls": _leaf("calls", [], kind="sync"),
    "tool": {
        "math": {
            "ten": _leaf("tool.math.ten", ["x"], positional=1),
            "fail": _leaf("tool.math.fail", ["text", "code"], positional=1),
            "echo": _leaf("tool.math.echo", ["value"], positional=1),
            "hang": _leaf("tool.math.hang", []),
            "give": _leaf("tool.math.give", []),
        }
    },
    "db": {
        "app": {
            "modules": {
                "page": _leaf("db.app.modules.page", _PAGED, struct=True),
                "pages": _leaf("db.app.modules.page", _PAGED, kind="pages", struct=True),
                "get": _leaf("db.app.modules.get", ["id"], positional=1),
            }
        }
    },
}


class Engine(Protocol):
    """What the suite needs of an engine."""

    name: str

    async def start(self) -> None: ...
    def unsupported(self, source: str, tree: Mapping[str, Any]) -> Any: ...
    async def run(self, program: Program, handler: CallHandler) -> RunOutcome: ...
    async def close(self) -> None: ...


@dataclass(slots=True)
class World:
    """Answers calls and notes them.

    Attributes:
        rows: how many rows `db.app.modules` has.
        given: what `give` returns, as JSON.
        expected: `started` is set when that many calls have arrived.
        cancelled: how many hanging calls were cancelled.
        on_call: runs before each answer.
    """

    rows: int = 5
    given: Any = None
    calls: list[ScriptCall] = field(default_factory=list[ScriptCall])
    expected: int = 1
    cancelled: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)
    on_call: Callable[[ScriptCall], Coroutine[Any, Any, None]] | None = None

    async def handle(self, call: ScriptCall) -> CallResult:
        """Answer one call; each takes a second of the script's time."""
        self.calls.append(call)
        if len(self.calls) >= self.expected:
            self.started.set()
        completed = CLOCK + len(self.calls)
        if self.on_call is not None:
            await self.on_call(call)
        if call.path == "tool.math.fail":
            return CallFailed(
                code=str(call.arguments.get("code", "tool-failed")),
                message=str(call.arguments["text"]),
                hint="try again",
                retryable=True,
                details={"place": 7},
                completed=completed,
            )
        if call.path == "tool.math.hang":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return CallReturned(json=json.dumps(self._answer(call)).encode(), completed=completed)

    def _answer(self, call: ScriptCall) -> Any:
        arguments = call.arguments
        match call.path:
            case "tool.math.ten":
                return values.encode(values.decode(arguments["x"]) * 10)
            case "tool.math.echo":
                return arguments["value"]
            case "tool.math.give":
                return self.given
            case "db.app.modules.page":
                return self._page(arguments)
            case "db.app.modules.get":
                return {"id": arguments["id"], "page": {"deep": 1}}
            case "calls":
                return [{"operation": earlier.path} for earlier in self.calls[:-1]]
            case _:
                return None

    def _page(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        offset = int(arguments.get("cursor") or arguments.get("offset") or 0)
        end = min(offset + int(arguments.get("limit") or 2), self.rows)
        rows = [{"n": n, "name": f"row {n}"} for n in range(offset, end)]
        done = end >= self.rows
        return {
            "rows": rows,
            "evidence_id": f"ev1_{offset}",
            "page": {
                "offset": offset,
                "returned": len(rows),
                "next_cursor": None if done else str(end),
                "exhausted": done,
            },
        }

    @property
    def paths(self) -> list[str]:
        """The paths of the calls so far."""
        return [call.path for call in self.calls]

    @property
    def sites(self) -> list[tuple[int, int, int]]:
        """Line, column and iteration of the calls so far."""
        return [(call.line, call.column, call.iteration) for call in self.calls]


class Bench:
    """One engine on one event loop, for tests that are not coroutines themselves."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name = engine.name
        self._runner = asyncio.Runner()
        self.complete(engine.start())

    def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(work)

    def run(
        self,
        source: str,
        world: World | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        seed: int = 1,
        limits: Limits | None = None,
    ) -> RunOutcome:
        """Run one script in a world; inputs are Python values."""
        return self.complete(self.start(source, world, inputs=inputs, seed=seed, limits=limits))

    async def start(
        self,
        source: str,
        world: World | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        seed: int = 1,
        limits: Limits | None = None,
    ) -> RunOutcome:
        """The same, as a coroutine."""
        program = Program(
            source=source,
            tree=TREE,
            inputs={name: values.encode(value) for name, value in (inputs or {}).items()},
            clock=CLOCK,
            seed=seed,
            limits=limits or Limits(wall_seconds=60.0, cpu_seconds=20.0),
        )
        return await self.engine.run(program, (world or World()).handle)

    def value(self, source: str, world: World | None = None, **more: Any) -> Any:
        """The value of a script that must finish."""
        outcome = self.run(source, world, **more)
        assert outcome.error is None, outcome.error
        assert outcome.value is not None
        return values.decode(json.loads(outcome.value))

    def close(self) -> None:
        """End the engine and the loop."""
        self.complete(self.engine.close())
        self._runner.close()


@dataclass(frozen=True, slots=True)
class Plain:
    """What plain CPython made of a script: encoded value and output, or the type of the exception."""

    value: Any = None
    stdout: str = ""
    error: str | None = None
    calls: tuple[Any, ...] = ()


class Error(Exception):
    """`df.Error` of plain CPython; named as scripts see it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.retryable, self.details = (
            code,
            message,
            "try again",
            True,
            {"place": 7},
        )

    def __str__(self) -> str:
        return f"{self.code}: {self.message} ({self.hint})"


def plain_python(source: str) -> Plain:
    """Run a script on the interpreter of the tests, unprotected: only for scripts of the suite's own."""
    calls: list[Any] = []

    async def ten(x: Any) -> Any:
        calls.append(x)
        return x * 10

    async def fail(text: str, *, code: str = "tool-failed") -> Any:
        calls.append(text)
        raise Error(code, text)

    df = SimpleNamespace(tool=SimpleNamespace(math=SimpleNamespace(ten=ten, fail=fail)), Error=Error)
    names: dict[str, Any] = {"__name__": "__main__", "df": df}
    tree = ast.parse(source)
    _keep_last(tree)
    code = compile(tree, "<script>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            pending = eval(code, names)
            if inspect.iscoroutine(pending):
                asyncio.run(pending)
    except Exception as error:
        kind = "df.Error" if isinstance(error, Error) else type(error).__name__
        return Plain(error=kind, stdout=out.getvalue(), calls=tuple(calls))
    try:
        value = values.encode(values.soften(names.get("_value"))[0])
    except AffidavitError as error:
        return Plain(error=error.code, stdout=out.getvalue(), calls=tuple(calls))
    return Plain(value=value, stdout=out.getvalue(), calls=tuple(calls))


def _keep_last(tree: ast.Module) -> None:
    last = tree.body[-1]
    target = ast.Name(id="_value", ctx=ast.Store())
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign(targets=[target], value=last.value), last)
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        last.targets.append(target)
    ast.fix_missing_locations(tree)
