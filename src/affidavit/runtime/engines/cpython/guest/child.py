"""A child from fork to end: lock, wait for a program, run it, report, die. One child runs one script."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import linecache
import math
import os
import signal
import socket
import sys
import threading
import time
import types
import warnings
from collections.abc import Coroutine
from json import loads
from typing import Any, Final, NoReturn

from affidavit.errors import AffidavitError
from affidavit.evidence.values import decode, encode, soften
from affidavit.runtime.engines.cpython.guest.bridge import SCRIPT, Bridge, Root, to_json
from affidavit.runtime.engines.cpython.guest.channel import Channel, Policy
from affidavit.runtime.engines.cpython.guest.clock import Clock
from affidavit.runtime.engines.cpython.guest.faults import Fault, fault, limit_fault, syntax_fault
from affidavit.runtime.engines.cpython.guest.lockdown import Lock
from affidavit.runtime.engines.cpython.guest.output import CAPACITY, Output
from affidavit.runtime.engines.cpython.guest.script import VALUE, Compiled, compile_script
from affidavit.runtime.engines.cpython.guest.structs import Nothing
from affidavit.runtime.engines.cpython.guest.wire import DONE, LENGTH, PROGRAM, READY, SECTIONS

__all__ = ["serve"]

_MISSING: Final = object()


def serve(lock: Lock, parent: int, rpc: int, shared: int) -> NoReturn:
    """Everything a child does. Never returns.

    Args:
        lock: prepared in the zygote.
        parent: process id of the zygote.
        rpc: file descriptor of the socket to the host.
        shared: file descriptor of the memory for output.
    """
    real = time.monotonic
    _reset_signals()
    output = Output(shared)
    os.close(shared)
    channel = Channel(socket.socket(fileno=rpc))
    policy = Policy(channel, real)
    asyncio.set_event_loop_policy(policy)
    loop = policy.new_event_loop()
    report = lock.confine(parent)
    channel.post(READY, to_json(report).encode())
    channel.flush()
    if report["seccomp"]:
        os._exit(1)
    kind, body = channel.read_frame()
    assert kind == PROGRAM
    _Run(channel, loop, output, lock, body).run()
    os._exit(0)


def _reset_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Run:
    """One script's run."""

    def __init__(
        self, channel: Channel, loop: asyncio.AbstractEventLoop, output: Output, lock: Lock, body: bytes
    ) -> None:
        header_size, tree_size, _ = SECTIONS.unpack_from(body)
        at = SECTIONS.size
        header: dict[str, Any] = loads(body[at : at + header_size])
        self._tree_text = body[at + header_size : at + header_size + tree_size]
        self._inputs_text = body[at + header_size + tree_size :]
        self._tree: dict[str, Any] | None = None
        self._source: str = header["source"]
        self._result_bytes: int = header["result_bytes"]
        self._channel = channel
        self._loop = loop
        self._clock = Clock()
        self._bridge = Bridge(channel, self._clock, argument_bytes=header["argument_bytes"])
        self._value: object = _MISSING
        output.open(header["output_bytes"])
        self._clock.install(header["clock"], header["seed"])
        lock.bound(header["memory_bytes"], max(1, math.ceil(header["cpu_seconds"])), CAPACITY)

    def run(self) -> None:
        """Run the script and send what came of it."""
        module = self._module()
        reason, error = "finished", None
        try:
            self._execute(compile_script(self._source, SCRIPT), vars(module))
        except SyntaxError as problem:
            if problem.__traceback__ is not None and _ran(problem):
                reason, error = fault(problem)
            else:
                reason, error = "error", syntax_fault(problem, self._source)
        except BaseException as problem:
            self._spare_memory()
            reason, error = fault(problem)
            del problem
        self._finish(vars(module))
        self._report(reason, error)

    # ---- surroundings ----

    def _module(self) -> types.ModuleType:
        """The script's `__main__`, with `df` and the inputs."""
        module = types.ModuleType("__main__")
        names = vars(module)
        names["__builtins__"] = builtins
        names["__annotations__"] = {}
        names["df"] = Root(self._bridge, "df", self._read_tree)
        if self._inputs_text != b"{}":
            names.update({name: decode(value) for name, value in loads(self._inputs_text).items()})
        for name in [name for name in sys.modules if name.split(".")[0] == "affidavit"]:
            del sys.modules[name]
        sys.modules["__main__"] = module
        sys.argv = [SCRIPT]
        lines = self._source.splitlines(keepends=True)
        linecache.cache[SCRIPT] = (len(self._source), None, lines, SCRIPT)
        builtins.input = _no_input
        builtins.exit = _leave
        builtins.quit = _leave
        asyncio.run = _nested(asyncio.run)
        warnings.filterwarnings("ignore", r"coroutine 'df\..*' was never awaited")
        asyncio.set_event_loop(self._loop)
        return module

    def _read_tree(self) -> dict[str, Any]:
        if self._tree is None:
            self._tree = loads(self._tree_text)
        return self._tree

    # ---- execution ----

    def _execute(self, compiled: Compiled, names: dict[str, Any]) -> None:
        pending = eval(compiled.code, names)  # noqa: S307 - running the script is the point; this process is locked
        if compiled.body is not None:
            value = self._complete(names.pop(compiled.body)())
            if value is not None:
                names[VALUE] = value
        elif asyncio.iscoroutine(pending):
            self._complete(pending)
        self._value = names.pop(VALUE, _MISSING)
        if self._value is _MISSING and compiled.entry is not None:
            self._value = names[compiled.entry]()
        if asyncio.iscoroutine(self._value):
            self._value = self._complete(self._value)

    def _complete(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end, then cancel what the script left running, as `asyncio.run` does."""
        loop = self._loop
        try:
            return loop.run_until_complete(coroutine)
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())

    def _finish(self, names: dict[str, Any]) -> None:
        """What an interpreter does at its end: join threads, run exit handlers. The script's value stands already."""
        del names
        for step in (getattr(threading, "_shutdown", None), getattr(atexit, "_run_exitfuncs", None)):
            try:
                if step is not None:
                    step()
            except BaseException as problem:
                sys.excepthook(type(problem), problem, problem.__traceback__)

    def _spare_memory(self) -> None:
        """Lift the soft limit to the hard one: room for the report of a script that used up its own."""
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    # ---- report ----

    def _report(self, reason: str, error: Fault | None) -> None:
        value, notes = b"", list[str]()
        if error is None and self._value is not _MISSING and not isinstance(self._value, Nothing):
            try:
                value, notes = self._encoded()
            except AffidavitError as problem:
                error = limit_fault(
                    problem.code, f"the script's value: {problem.message}", problem.hint, problem.details
                )
                reason = "output" if problem.code == "value-too-large" else "error"
            except BaseException as problem:
                self._spare_memory()
                reason, error = fault(problem)
        header = {
            "reason": reason,
            "error": error if error is None else _safe(error),
            "has_value": bool(value),
            "notes": notes[:100],
            "unawaited": self._bridge.unawaited()[:1000],
        }
        head = to_json(header).encode("utf-8", "backslashreplace")
        self._channel.post(DONE, LENGTH.pack(len(head)) + head + value)
        self._channel.flush()

    def _encoded(self) -> tuple[bytes, list[str]]:
        value, notes = soften(self._value)
        data = to_json(encode(value)).encode()
        if len(data) > self._result_bytes:
            message = f"it is {len(data)} bytes as JSON, the limit is {self._result_bytes}"
            raise AffidavitError("value-too-large", message, hint="return less: filter, aggregate, or page")
        return data, notes


def _safe(error: Fault) -> Fault:
    """The details of a script's own `df.Error` may be anything."""
    try:
        return error | {"details": encode(error["details"])}
    except AffidavitError:
        return error | {"details": {}}


def _ran(error: SyntaxError) -> bool:
    """Whether a SyntaxError came out of the running script (`ast.literal_eval`) and not from compiling it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SCRIPT:
            return True
        trace = trace.tb_next
    return False


def _no_input(prompt: object = "", /) -> str:
    raise EOFError("input() is not available: a script has no standard input; pass values in, or ask df")


def _leave(code: object = None) -> NoReturn:
    raise SystemExit(code)


def _nested(run: Any) -> Any:
    """`asyncio.run` that also works where a loop runs already, as under top-level `await`: the outer one waits."""

    def asyncio_run(main: Any, **options: Any) -> Any:
        outer = asyncio._get_running_loop()
        if outer is None:
            return run(main, **options)
        asyncio._set_running_loop(None)
        try:
            return run(main, **options)
        finally:
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)

    asyncio_run.__name__ = asyncio_run.__qualname__ = "run"
    return asyncio_run
