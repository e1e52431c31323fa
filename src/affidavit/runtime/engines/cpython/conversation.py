"""One run as the host leads it: give the program, serve the calls, watch the limits, tell the end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from affidavit.runtime.engines.cpython.eager import start_eagerly
from affidavit.runtime.engines.cpython.inbound import Done, ViolationError, read_call, read_done
from affidavit.runtime.engines.cpython.outbound import program_body, settled_frame
from affidavit.runtime.engines.cpython.process import Child, Ending
from affidavit.runtime.engines.cpython.wire import CALL, DONE, LENGTH, PROGRAM, START
from affidavit.runtime.program import (
    RESULTS,
    CallFailed,
    CallHandler,
    CallResult,
    Program,
    RunOutcome,
    ScriptCall,
    ScriptError,
)

__all__ = ["Conversation"]

_CHUNK: Final = 1 << 18
_OVERHEAD: Final = 1 << 20  # of a last frame beside its value
_CALL_OVERHEAD: Final = 1 << 16  # of a call beside its arguments; the child refuses larger ones itself
_POLL_SECONDS: Final = 0.1
_DYING_SECONDS: Final = 2.0
_BUSY: Final = 1024  # calls under way at which no more are read
_BACKLOG: Final = 32 << 20  # unsent bytes at which no more are read
_FREE_CALLS: Final = 10_000  # calls of the session's own operations, which the budget does not count
_REFUSALS: Final = 1_000  # calls beyond twice the budget that are answered before the run is ended
_THREADS: Final = 256

_Stop: TypeAlias = Literal["wall", "cpu", "threads", "calls"]
_End: TypeAlias = Done | ViolationError | _Stop | None
"""The script's own account, a broken frame, a limit, or None when the child died."""


class Conversation:
    """Talks with one child about one program."""

    def __init__(self, child: Child, program: Program, handler: CallHandler) -> None:
        self._child = child
        self._program = program
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[_End] = self._loop.create_future()
        self._paths: frozenset[str] = frozenset()
        self._free: frozenset[str] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in = bytearray()
        self._out: list[bytes] = []
        self._unsent = b""
        self._flushing = False
        self._reading = False
        self._paused = False
        self._cpu = 0.0
        self._number = 0
        self._spent = 0
        self._refused = 0
        limits = program.limits
        self._longest = max(limits.result_bytes, limits.argument_bytes) + _OVERHEAD

    async def run(self, starts: asyncio.Event | None = None) -> RunOutcome:
        """Lead the run to its end. The child is dead or dying afterwards, and no task is left.

        Args:
            starts: the script starts when this is set; until then the child takes the program in. At once without.

        Raises:
            Exception: what the handler raised; handlers report failures of calls as `CallFailed`.
        """
        child, limits = self._child, self._program.limits
        timers = [self._loop.call_later(_POLL_SECONDS, self._watch)]
        self._watcher = timers[0]
        try:
            self._post_program()
            self._loop.add_reader(child.sock, self._on_readable)
            if starts is not None:
                self._flush()
                await starts.wait()
            timers.append(self._loop.call_later(limits.wall_seconds, self._stop, "wall"))
            self._post(START, b"")
            self._flush()
            end = await self._end
            cpu = self._cpu or child.cpu_seconds()
            ending = await self._ending() if end is None else None
            child.kill()
            return self._outcome(end, ending, cpu)
        finally:
            for timer in (*timers, self._watcher):
                timer.cancel()
            child.kill()
            self._loop.remove_reader(child.sock)
            await self._join()

    # ---- to the child ----

    def _post_program(self) -> None:
        program = self._program
        leaves = list(_leaves(program.tree))
        self._paths = frozenset(leaf["$call"] for leaf in leaves)
        self._free = frozenset(leaf["$call"] for leaf in leaves if leaf.get("kind") == "sync")
        if program.results is not None:
            self._paths |= {RESULTS}
            self._free |= {RESULTS}
        self._post(PROGRAM, program_body(program))

    def _post(self, kind: int, body: bytes) -> None:
        self._out += (LENGTH.pack(len(body) + 1) + bytes((kind,)), body)

    def _flush(self) -> None:
        """Send what is queued; what does not fit waits until the child reads."""
        self._flushing = False
        if self._child.sock.fileno() < 0:
            return
        waiting = bool(self._unsent)
        data = self._unsent + b"".join(self._out)
        self._out.clear()
        try:
            sent = self._child.sock.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # it died; reading tells
        self._unsent = data[sent:]
        if self._unsent and not waiting:
            self._loop.add_writer(self._child.sock, self._flush)
        elif waiting and not self._unsent:
            self._loop.remove_writer(self._child.sock)
        self._regulate()

    # ---- from the child ----

    def _on_readable(self) -> None:
        try:
            data = self._child.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._finish(None)
            return
        self._reading = True
        try:
            if self._in:
                self._in += data
                del self._in[: self._read_frames(self._in)]
            else:
                self._in += data[self._read_frames(data) :]
        except ViolationError as violation:
            self._finish(violation)
        finally:
            self._reading = False
        if self._out:
            self._flush()
        else:
            self._regulate()

    def _read_frames(self, data: bytes | bytearray) -> int:
        """Handle the whole frames; returns how many bytes they took."""
        at, size = 0, len(data)
        while size - at >= LENGTH.size and not self._end.done():
            length = LENGTH.unpack_from(data, at)[0]
            if not 1 <= length <= self._longest:
                raise ViolationError(f"a frame of {length} bytes")
            start = at + LENGTH.size
            if size < start + length:
                break
            self._on_frame(data[start], data[start + 1 : start + length])
            at = start + length
        return at

    def _on_frame(self, kind: int, body: bytes | bytearray) -> None:
        if kind == CALL:
            self._on_call(body)
        elif kind == DONE:
            self._finish(read_done(body, self._paths))
        else:
            raise ViolationError(f"a frame of kind {kind}")

    def _on_call(self, body: bytes | bytearray) -> None:
        if len(body) > self._program.limits.argument_bytes + _CALL_OVERHEAD:
            raise ViolationError(f"a call of {len(body)} bytes")
        number, call = read_call(body)
        self._number += 1
        if number != self._number:
            raise ViolationError(f"call {number} where {self._number} was due")
        if call.path not in self._paths:
            raise ViolationError("a call of an operation that the script was not given")
        refused = self._refusal(call)
        if refused is not None:
            self._settle(number, refused)
            return
        task = start_eagerly(self._loop, self._serve(number, call))
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._on_served)

    def _on_served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._paused:
            self._regulate()

    def _refusal(self, call: ScriptCall) -> CallFailed | None:
        limits = self._program.limits
        if call.path not in self._free:
            self._spent += 1
        if max(self._spent, self._number - _FREE_CALLS) > limits.calls:
            self._refused += 1
            if self._refused > limits.calls + _REFUSALS:
                self._stop("calls")
            message = f"the run's budget of {limits.calls} calls is spent"
            return self._failed(message, "use fewer, larger calls: pages, get_many, count")
        return None

    def _failed(self, message: str, hint: str) -> CallFailed:
        return CallFailed(
            code="budget-exceeded", message=message, hint=hint, retryable=False, details={}, completed=0.0
        )

    async def _serve(self, number: int, call: ScriptCall) -> None:
        try:
            result = await self._handler(call)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if not self._end.done():
                self._end.set_exception(error)
            return
        self._settle(number, result)

    def _settle(self, number: int, result: CallResult) -> None:
        self._post(*settled_frame(number, result))
        if self._reading or self._flushing:
            return
        if len(self._tasks) <= 1:
            self._flush()
        else:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _regulate(self) -> None:
        """Stop reading while too much is under way or unsent, so that a flood costs the host nothing."""
        full = len(self._tasks) >= _BUSY or len(self._unsent) > _BACKLOG
        if full == self._paused or self._end.done() or self._child.sock.fileno() < 0:
            return
        self._paused = full
        if full:
            self._loop.remove_reader(self._child.sock)
        else:
            self._loop.add_reader(self._child.sock, self._on_readable)

    # ---- the end ----

    def _finish(self, end: _End) -> None:
        if not self._end.done():
            self._end.set_result(end)
            self._loop.remove_reader(self._child.sock)

    def _stop(self, limit: _Stop) -> None:
        self._cpu = self._child.cpu_seconds()
        self._child.kill()
        self._finish(limit)

    def _watch(self) -> None:
        """Look at what the kernel does not bound exactly: CPU below a whole second, and threads."""
        if self._child.cpu_seconds() > self._program.limits.cpu_seconds:
            self._stop("cpu")
        elif _threads(self._child.pid) > _THREADS:
            self._stop("threads")
        else:
            self._watcher = self._loop.call_later(_POLL_SECONDS, self._watch)

    async def _join(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ending(self) -> Ending | None:
        """How the child died, after its socket closed; None when it only closed the socket."""
        await asyncio.wait({self._child.ended}, timeout=_DYING_SECONDS)
        return self._child.ended.result() if self._child.ended.done() else None

    def _outcome(self, end: _End, ending: Ending | None, cpu: float) -> RunOutcome:
        stdout, cut = self._child.printed(self._program.limits.output_bytes)
        if isinstance(end, Done):
            return RunOutcome(
                reason=end.reason,
                has_value=end.has_value,
                value=end.value,
                stdout=stdout,
                stdout_cut=cut,
                error=end.error,
                notes=end.notes,
                unawaited=end.unawaited,
                timers=end.timers,
                cpu_seconds=cpu,
            )
        reason, error = self._account(end, ending, cpu)
        return RunOutcome(
            reason=cast("Any", reason), stdout=stdout, stdout_cut=cut, error=error, cpu_seconds=cpu
        )

    def _account(
        self, end: ViolationError | _Stop | None, ending: Ending | None, cpu: float
    ) -> tuple[str, ScriptError]:
        limits = self._program.limits
        if isinstance(end, ViolationError):
            message = f"the script's process sent {end}, which scripts do not; it was ended"
            return "lost", _error("engine-lost", "SandboxViolation", message, "use df as documented")
        if end == "wall":
            message = f"the run passed its limit of {limits.wall_seconds:g} s and was stopped"
            return "timed-out", _error(
                "timed-out", "TimeoutError", message, "do less in one run, or ask for more time"
            )
        if end == "threads":
            message = f"the script started more than {_THREADS} threads and was stopped"
            return "error", _error(
                "budget-exceeded", "RuntimeError", message, "use asyncio, or a pool of few threads"
            )
        if end == "calls":
            message = (
                f"the script kept calling after its budget of {limits.calls} calls was spent, and was stopped"
            )
            return "error", _error(
                "budget-exceeded", "df.Error", message, "stop when df.Error says budget-exceeded"
            )
        spent = max(cpu, ending.cpu_seconds if ending else 0.0)
        if end == "cpu" or spent >= limits.cpu_seconds or (ending and ending.signal == signal.SIGXCPU):
            message = f"the run passed its limit of {limits.cpu_seconds:g} s of CPU and was stopped"
            return "timed-out", _error(
                "timed-out", "TimeoutError", message, "do less in one run, or ask for more time"
            )
        return _died(ending)


def _died(ending: Ending | None) -> tuple[str, ScriptError]:
    if ending is None:
        message = "the script closed its connection to the host"
        return "lost", _error(
            "engine-lost", "OSError", message, "leave file descriptors that are not yours alone"
        )
    if ending.orphaned:
        return "lost", _error("engine-lost", "OSError", "the sandbox's main process ended", "run it again")
    if not ending.signal:
        message = f"the script ended its own process (exit code {ending.code}) without an answer"
        return "lost", _error("engine-lost", "SystemExit", message, "end the script by reaching its end")
    if ending.signal == signal.SIGKILL:
        message = "the machine ran out of memory and the script's process was ended"
        return "memory", _error("memory-exceeded", "MemoryError", message, "work on less at once")
    name = signal.Signals(ending.signal).name if ending.signal in set(signal.Signals) else str(ending.signal)
    message = f"the script's process crashed ({name})"
    return "lost", _error(
        "engine-lost", name, message, "very deep nesting or native code does this; avoid it"
    )


def _error(code: str, name: str, message: str, hint: str) -> ScriptError:
    return ScriptError(code=code, type=name, message=message, hint=hint)


def _leaves(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in tree.values():
        if "$call" in entry:
            yield entry
        else:
            yield from _leaves(entry)


def _threads(pid: int) -> int:
    """How many threads a process has; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[17])
    except (OSError, IndexError, ValueError):
        return 0
