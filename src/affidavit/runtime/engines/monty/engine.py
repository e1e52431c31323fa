"""The engine itself: a pool of sandbox processes, one of them for each run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
from pydantic_monty import AsyncMonty, AsyncMontySession, MontyError

from affidavit.errors import AffidavitError, FailedError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.finding import Finding
from affidavit.runtime.engines.monty._drive import Drive, StoppedError, decoded
from affidavit.runtime.engines.monty._failures import explain, timed_out
from affidavit.runtime.engines.monty._kit import kit_source
from affidavit.runtime.engines.monty._parsing import parse_valid
from affidavit.runtime.engines.monty._prelude import PRELUDE
from affidavit.runtime.engines.monty._results import plain_value
from affidavit.runtime.engines.monty._rewrite import Rewritten, rewrite
from affidavit.runtime.engines.monty.unsupported import Unsupported, unsupported
from affidavit.runtime.program import CallHandler, Limits, Program, RunOutcome, ScriptError

__all__ = ["MontyEngine"]

# The pool's threads must have ended before the interpreter does, or a busy host process aborts at its exit.
_EXIT_GRACE_SECONDS = 0.05
# A single long operation inside the sandbox cannot look at its clock; the process is killed this much later.
_HANG_GRACE_SECONDS = 0.5
_MAX_PROCESSES = 16
_RECURSION = 1000
# Suspensions cannot be unlimited; calls are counted here instead.
_SUSPENSIONS = 10**9


class MontyEngine:
    """Runs scripts in pydantic-monty. Several runs may be under way at once; each starts fresh.

    Attributes:
        name: `monty`.
        has_memory: it offers neither `results` nor the preamble.
    """

    name = "monty"
    has_memory = False

    def __init__(self) -> None:
        self._pool: AsyncMonty | None = None
        self._open = asyncio.Lock()

    @classmethod
    def probe(cls) -> list[Finding]:
        """Try what this engine needs here: start a sandbox, run in it, and fail to leave it."""
        return asyncio.run(_probe())

    async def start(self) -> None:
        """Open the pool of sandbox processes.

        Raises:
            FailedError: `engine-unavailable`, when no sandbox process can be started.
        """
        async with self._open:
            if self._pool is not None:
                return
            pool = AsyncMonty(
                min_processes=1, max_processes=_MAX_PROCESSES, feed_duration_limit_grace=_HANG_GRACE_SECONDS
            )
            try:
                await pool.__aenter__()
            except (MontyError, OSError, RuntimeError) as error:
                raise FailedError(
                    "engine-unavailable",
                    f"no sandbox process can be started: {error}",
                    hint="reinstall pydantic-monty, or use --engine cpython",
                ) from error
            self._pool = pool

    def unsupported(self, source: str, tree: Mapping[str, JsonValue]) -> Sequence[Unsupported]:
        """What of the script this engine would refuse or do differently from Python; empty when nothing.

        Args:
            source: the script.
            tree: the callable names below `df`, as in `Program`.
        """
        return unsupported(source, tree)

    async def run(
        self, program: Program, handler: CallHandler, *, starts: asyncio.Event | None = None
    ) -> RunOutcome:
        """Run one program. Cancelling the task kills the sandbox and joins every call it made.

        It begins when `starts` is set, at once without.

        Raises:
            FailedError: `engine-unavailable`, when the engine was not started.
            Exception: whatever the handler raises; the sandbox is gone then.
        """
        if self._pool is None:
            raise FailedError("engine-unavailable", "the engine is not started", hint="start it first")
        if starts is not None:
            await starts.wait()
        refused = unsupported(program.source, program.tree)
        if refused:
            return RunOutcome(reason="error", error=_refusal(refused[0]))
        try:
            script = rewrite(parse_valid(program.source), program.tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return RunOutcome(reason="error", error=_not_python(error, program.source))
        try:
            inputs = decoded(orjson.dumps(program.inputs))
        except StoppedError as stopped:
            return RunOutcome(reason="error", error=stopped.error)
        drive = Drive(program, handler, script.sites)
        try:
            async with self._pool.checkout(
                limits={
                    "max_feed_duration_secs": program.limits.cpu_seconds,
                    "max_memory": program.limits.memory_bytes,
                    "max_recursion_depth": _RECURSION,
                    "max_suspensions": _SUSPENSIONS,
                },
                assert_message_annotations=False,
                os_policy={
                    "datetime": "call_host",
                    "timezone": "utc",
                    "sleep": "call_host",
                    "process_time": "elapsed",
                    "random_start": {"seed": program.seed},
                },
            ) as session:
                return await _Run(program, script, drive, session).outcome(inputs)
        finally:
            await drive.join()

    async def close(self) -> None:
        """End every sandbox process."""
        async with self._open:
            pool, self._pool = self._pool, None
            if pool is not None:
                await pool.__aexit__(None, None, None)
                await asyncio.sleep(_EXIT_GRACE_SECONDS)


class _Run:
    """One run on one sandbox process."""

    def __init__(self, program: Program, script: Rewritten, drive: Drive, session: AsyncMontySession) -> None:
        self._program = program
        self._script = script
        self._drive = drive
        self._session = session
        self._process = session.worker_pid

    async def outcome(self, inputs: Mapping[str, Any]) -> RunOutcome:
        limits = self._program.limits
        deadline = asyncio.timeout(limits.wall_seconds)
        try:
            async with deadline:
                return await self._attempt(inputs)
        except TimeoutError:
            if not deadline.expired():
                raise
            self._discard()
            return self._ended("timed-out", timed_out(limits))

    async def _attempt(self, inputs: Mapping[str, Any]) -> RunOutcome:
        try:
            await self._prepare(inputs)
            value = await self._drive.feed(self._session, self._script.text)
        except StoppedError as stopped:
            self._discard()
            return self._ended("error", stopped.error)
        except MontyError as error:
            reason, shown = explain(
                error,
                self._script,
                self._program.source,
                self._drive.failures,
                self._program.limits,
            )
            if reason in ("finished", "error", "exit"):
                pending, seconds = await self._account()
                return self._ended(reason, shown, pending, seconds)
            self._discard()
            return self._ended(reason, shown)
        return await self._finished(value)

    async def _prepare(self, inputs: Mapping[str, Any]) -> None:
        limits = self._program.limits
        given = {
            "_affidavit_tree": self._program.tree,
            "_affidavit_limits": {
                "argument_bytes": limits.argument_bytes,
                "result_bytes": limits.result_bytes,
            },
        }
        prelude = PRELUDE + kit_source() if "kit" in self._program.source else PRELUDE
        await self._drive.feed(self._session, prelude, {**inputs, **given})

    async def _finished(self, raw: Any) -> RunOutcome:
        pending, seconds = await self._account()
        if raw is None:
            return RunOutcome(
                reason="finished",
                stdout=self._drive.output.text,
                stdout_cut=self._drive.output.cut,
                unawaited=pending,
                timers=self._drive.timers,
                cpu_seconds=seconds,
            )
        try:
            value, notes = plain_value(*raw)
            encoded = orjson.dumps(values.encode(value))
        except AffidavitError as error:
            return self._ended("error", _of(error), pending, seconds)
        if len(encoded) > self._program.limits.result_bytes:
            return self._ended("output", _too_large(self._program.limits), pending, seconds)
        return RunOutcome(
            reason="finished",
            has_value=True,
            value=encoded,
            stdout=self._drive.output.text,
            stdout_cut=self._drive.output.cut,
            notes=tuple(notes),
            unawaited=pending,
            timers=self._drive.timers,
            cpu_seconds=seconds,
        )

    async def _account(self) -> tuple[tuple[tuple[str, int], ...], float]:
        """The calls that were made and never awaited, and the time spent executing, in seconds."""
        ended: tuple[list[tuple[str, int]], float] = await self._drive.feed(
            self._session, "_affidavit_ended()"
        )
        pending, seconds = ended
        return tuple((path, self._script.sites[site].line) for path, site in pending), seconds

    def _ended(
        self,
        reason: Any,
        error: ScriptError,
        pending: tuple[tuple[str, int], ...] = (),
        seconds: float | None = None,
    ) -> RunOutcome:
        return RunOutcome(
            reason=reason,
            error=error,
            stdout=self._drive.output.text,
            stdout_cut=self._drive.output.cut,
            unawaited=pending,
            timers=self._drive.timers,
            cpu_seconds=self._program.limits.cpu_seconds if seconds is None else seconds,
        )

    def _discard(self) -> None:
        """Kill the sandbox process: after a limit hit nothing is promised about it. The pool starts another."""
        process = self._session.worker_pid or self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _refusal(refused: Unsupported) -> ScriptError:
    return ScriptError(
        code="engine-unsupported",
        type="NotImplementedError",
        message=f"line {refused.line}: monty cannot run this as Python means it: {refused.message}",
        line=refused.line,
        column=refused.column,
        hint="use --engine cpython",
    )


def _not_python(error: Exception, source: str) -> ScriptError:
    """A script that is not Python, as CPython words it. The column is in UTF-8 bytes, as everywhere."""
    if not isinstance(error, SyntaxError):
        message = str(error) if isinstance(error, ValueError) else "the script is nested too deeply"
        return ScriptError(code="script-syntax", type="SyntaxError", message=message)
    column = None
    lines = source.splitlines()
    if error.lineno and error.offset and error.lineno <= len(lines):
        column = len(lines[error.lineno - 1][: error.offset - 1].encode("utf-8", "surrogatepass"))
    shown = "".join(traceback.format_exception_only(error))
    return ScriptError(
        code="script-syntax",
        type=type(error).__name__,
        message=error.msg,
        line=error.lineno,
        column=column,
        traceback=shown,
    )


def _of(error: AffidavitError) -> ScriptError:
    return ScriptError(
        code=error.code,
        type="df.Error",
        message=f"the script's value: {error.message}",
        hint=error.hint,
        details=error.details,
    )


def _too_large(limits: Limits) -> ScriptError:
    return ScriptError(
        code="output-exceeded",
        type="UsageError",
        message=f"the value has more than {limits.result_bytes} bytes",
        hint="return less, or raise the result limit",
    )


async def _probe() -> list[Finding]:
    engine = MontyEngine()
    try:
        await engine.start()
    except FailedError as error:
        return [Finding(name="monty sandbox", ok=False, detail=error.message)]
    try:
        return [await _tried(engine, *case) for case in _TRIALS]
    finally:
        await engine.close()


async def _nothing(_: object) -> Any:
    raise AssertionError("no probe makes a call")


async def _tried(engine: MontyEngine, name: str, source: str, wanted: str) -> Finding:
    outcome = await engine.run(Program(source=source, tree={}, limits=Limits(wall_seconds=10.0)), _nothing)
    found = "value" if outcome.has_value else cast("ScriptError", outcome.error).type
    return Finding(
        name=name, ok=found == wanted, detail=f"{found}, as it must be" if found == wanted else found
    )


_TRIALS = (
    ("monty runs", "1 + 1", "value"),
    ("monty opens no file", "open('/etc/hostname').read()", "PermissionError"),
)
