"""The engine: a zygote that lives as long as it is needed, and one locked child for each run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from affidavit.errors import FailedError
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.cpython.conversation import Conversation
from affidavit.runtime.engines.cpython.pool import Pool
from affidavit.runtime.engines.cpython.probe import findings
from affidavit.runtime.engines.cpython.process import Child, Zygote
from affidavit.runtime.engines.finding import Finding
from affidavit.runtime.program import CallHandler, Program, RunOutcome

__all__ = ["CPythonEngine"]

_LOOKS: Final = 50
_LOOK_SECONDS: Final = 0.01


class CPythonEngine:
    """Runs scripts as CPython of the host's own version, isolated by the Linux kernel.

    One engine belongs to one event loop. Several runs may be under way at once; each has a process of its own, which
    ends with it.
    """

    name = "cpython"
    has_memory = True

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._starting: asyncio.Lock | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Process id of the zygote, which is also the session of all its children; None before the first run."""
        return self._pool.zygote.pid if self._pool is not None else None

    @classmethod
    def probe(cls) -> list[Finding]:
        """Try every layer in a real locked child: what holds here, and what does not. Blocks for about a second.

        Never raises: an engine that cannot even start is one finding.
        """
        found: list[Finding] = []

        def work() -> None:
            found.extend(asyncio.run(_probed(cls())))

        thread = threading.Thread(target=work, name="affidavit-probe")
        thread.start()
        thread.join()
        return found

    async def start(self) -> None:
        """Start the zygote and prove the isolation.

        Raises:
            FailedError: `engine-unavailable`, naming what does not hold.
        """
        await self._ready()

    def unsupported(self, source: str, tree: Mapping[str, JsonValue]) -> Sequence[Any]:
        """Nothing: this engine is Python."""
        del source, tree
        return []

    async def run(
        self, program: Program, handler: CallHandler, *, starts: asyncio.Event | None = None
    ) -> RunOutcome:
        """Run one program in a process of its own, which takes it in before `starts` is set.

        Cancelling the task kills the process and joins every call that it made. Whatever the script does is told by
        the outcome.

        Raises:
            FailedError: `engine-unavailable` when no sandbox can be started, `engine-lost` when it broke before the
                script ran.
            Exception: what `handler` raised. A call that fails is a `CallFailed`, not an exception.
        """
        pool, child = await self._child()
        try:
            return await Conversation(child, program, handler).run(starts)
        except asyncio.CancelledError:
            child.kill()
            await asyncio.shield(child.ended)
            raise
        finally:
            pool.put_back(child)

    async def _child(self) -> tuple[Pool, Child]:
        """A child to run in. A zygote whose end nobody had noticed yet is replaced, once."""
        pool = await self._ready()
        try:
            return pool, await pool.take()
        except FailedError:
            for _ in range(_LOOKS):
                if pool.zygote.dead:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                raise
        pool = await self._ready()
        return pool, await pool.take()

    async def close(self) -> None:
        """End the zygote, every child and every run that is under way."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _ready(self) -> Pool:
        """The pool of a living zygote, started or started anew where needed."""
        if self._pool is not None and not self._pool.zygote.dead:
            return self._pool
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._closed:
                raise FailedError("engine-unavailable", "the engine is closed")
            if self._pool is not None and self._pool.zygote.dead:
                await self._pool.close()
                self._pool = None
            if self._pool is None:
                pool = Pool(await Zygote.spawn())
                try:
                    _require(await findings(pool))
                except BaseException:
                    await pool.close()
                    raise
                self._pool = pool
            return self._pool


def _require(found: Sequence[Finding]) -> None:
    broken = [finding for finding in found if finding.decisive and not finding.ok]
    if broken:
        named = "; ".join(f"{finding.name}: {finding.detail}" for finding in broken)
        raise FailedError(
            "engine-unavailable",
            f"scripts cannot be isolated here: {named}",
            hint="`affidavit doctor` tries each layer; or use --engine monty",
        )


async def _probed(engine: CPythonEngine) -> list[Finding]:
    try:
        pool = Pool(await Zygote.spawn())
    except FailedError as error:
        return [Finding(name="sandbox process", ok=False, detail=error.message)]
    try:
        return await findings(pool)
    finally:
        await pool.close()
        await engine.close()
