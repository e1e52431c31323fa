"""A workspace with a few operations, and runs that are replayed as soon as they are settled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from affidavit import Run, Workspace
from affidavit.errors import RejectedError
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.replay.replay import Replay
from affidavit.runtime.session import Session

__all__ = ["ENGINES", "Bench"]

ENGINES = ("cpython", "monty")


class Bench:
    """Runs scripts whose operations end in an order that the test decides.

    Attributes:
        name: the session's id.
        gates: calls of `late(n)` return when their event is set.
        made: the operations that were really called.
        on_late: told of each call of `late` before it waits.
        on_ten: told of each call of `ten`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.name = "s0"
        workspace.use(functions_namespace("t", [self.ten, self.late, self.long, self.boom]))
        self.renew()

    def renew(self) -> None:
        """Begin another session, and forget what the one before did."""
        self.name = f"s{int(self.name[1:]) + 1}"
        self.gates: dict[int, asyncio.Event] = {}
        self.made: list[str] = []
        self.on_late: Callable[[], object] = list
        self.on_ten: Callable[[], object] = list

    def ten(self, n: int) -> int:
        """Ten times n."""
        self.made.append(f"ten {n}")
        self.on_ten()
        return 10 * n

    async def late(self, n: int) -> int:
        """n, when its time has come."""
        self.made.append(f"late {n}")
        self.on_late()
        await self.gates[n].wait()
        return n

    def long(self, size: int) -> str:
        """Text of so many characters."""
        self.made.append(f"long {size}")
        return "x" * size

    def boom(self, text: str) -> int:
        """Always fails."""
        self.made.append("boom")
        raise ValueError(text)

    async def session(self, name: str | None = None) -> Session:
        """The session of the test, or another."""
        return await self.workspace.session(name or self.name)

    async def replayed(
        self,
        source: str,
        *,
        engine: str = "cpython",
        inputs: Mapping[str, Any] | None = None,
    ) -> tuple[Run, dict[str, Replay]]:
        """Run a script, and replay it on every engine that accepts it; nothing is called meanwhile."""
        run = await (await self.session()).run(source, engine=engine, inputs=inputs)
        assert run.status in ("succeeded", "failed"), run.error
        return run, await self.replays(run)

    async def replays(self, run: Run) -> dict[str, Replay]:
        """Replay a run on every engine that accepts it."""
        before = list(self.made)
        events = len(self.workspace.store.events.of_session(run.session_id))
        found: dict[str, Replay] = {}
        for engine in ENGINES:
            with contextlib.suppress(RejectedError):  # `monty` refuses what it cannot run as Python means it
                found[engine] = await self.workspace.replay(run.run_id, engine=engine)
        assert "cpython" in found
        assert self.made == before
        assert len(self.workspace.store.events.of_session(run.session_id)) == events
        return found
