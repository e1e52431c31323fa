"""What the tests of this folder run scripts with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from affidavit.runtime.engines.cpython import CPythonEngine
from affidavit.runtime.program import (
    CallFailed,
    CallResult,
    CallReturned,
    Limits,
    Program,
    RunOutcome,
    ScriptCall,
)

CLOCK: Final = 1_700_000_000.0
T = TypeVar("T")

TREE: Final[dict[str, Any]] = {
    "ok": {"$call": "ok", "parameters": ["n"], "positional": 1, "kind": "operation"},
    "fail": {"$call": "fail", "parameters": ["text", "code"], "positional": 1, "kind": "operation"},
    "hang": {"$call": "hang", "parameters": [], "positional": 0, "kind": "operation"},
    "answer": {"$call": "answer", "parameters": ["status", "value"], "positional": 0, "kind": "sync"},
    "calls": {"$call": "calls", "parameters": [], "positional": 0, "kind": "sync"},
    "db": {
        "app": {
            "modules": {
                "page": {
                    "$call": "db.app.modules.page",
                    "parameters": ["where", "cursor", "offset", "limit"],
                    "positional": 0,
                    "kind": "operation",
                    "struct": True,
                },
                "pages": {
                    "$call": "db.app.modules.page",
                    "parameters": ["where", "cursor", "offset", "limit"],
                    "positional": 0,
                    "kind": "pages",
                    "struct": True,
                },
            }
        }
    },
}


class Host:
    """Answers calls and remembers them; `before` may be awaited ahead of each answer."""

    def __init__(self, before: Callable[[ScriptCall], Awaitable[object]] | None = None) -> None:
        self.calls: list[ScriptCall] = []
        self.cancelled = 0
        self.before = before
        self.hanging = asyncio.Event()

    async def handle(self, call: ScriptCall) -> CallResult:
        self.calls.append(call)
        completed = CLOCK + len(self.calls)
        if self.before is not None:
            await self.before(call)
        match call.path:
            case "fail":
                code = str(call.arguments.get("code", "tool-failed"))
                text = str(call.arguments["text"])
                return CallFailed(
                    code=code, message=text, hint="try", retryable=True, details={"n": 1}, completed=completed
                )
            case "hang":
                self.hanging.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cancelled += 1
                raise AssertionError
            case "db.app.modules.page":
                value: Any = self._page(call.arguments)
            case "calls":
                value = [{"operation": made.path} for made in self.calls]
            case _:
                value = call.arguments.get("n")
        return CallReturned(json=json.dumps(value).encode(), completed=completed)

    def _page(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        start = int(arguments.get("cursor") or 0)
        rows = [{"path": f"{at}.js"} for at in range(start, min(start + 2, 5))]
        following = str(start + 2) if start + 2 < 5 else None
        page = {"offset": start, "returned": len(rows), "total": 5, "next_cursor": following}
        return {"rows": rows, "evidence_id": "ev1_x", "page": page, "source": {"artifact": "sha256:x"}}


class Bench:
    """An engine on a loop, driven from ordinary tests."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.engine = CPythonEngine()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def run(self, source: str, host: Host | None = None, **options: Any) -> RunOutcome:
        program = make(source, **options)
        return self.wait(self.engine.run(program, (host or Host()).handle))

    def value(self, source: str, host: Host | None = None, **options: Any) -> Any:
        """The value of a script that must succeed."""
        outcome = self.run(source, host, **options)
        assert outcome.error is None, outcome.error
        assert outcome.reason == "finished"
        return json.loads(outcome.value) if outcome.value is not None else None

    def error(self, source: str, host: Host | None = None, **options: Any) -> Any:
        """The error of a script that must fail."""
        outcome = self.run(source, host, **options)
        assert outcome.error is not None, outcome
        return outcome.error

    def close(self) -> None:
        """Close the engine; nothing of it may be left."""
        session = self.engine.pid
        self.wait(self.engine.close())
        if session is not None:
            assert members(session) == []


def make(source: str, **options: Any) -> Program:
    limits = options.pop("limits", None) or Limits(wall_seconds=20.0)
    return Program(source=source, tree=TREE, clock=CLOCK, limits=limits, **options)


def members(session: int) -> list[int]:
    """Every living process of a session: the zygote leads one, and its children are in it."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found
