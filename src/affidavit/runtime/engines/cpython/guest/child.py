"""A child from fork to end: lock, wait for a program, run it, report, die. One child runs one script."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import gc
import inspect
import linecache
import math
import mmap
import os
import re
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from itertools import accumulate, pairwise
from json import loads
from typing import Any, Final, NoReturn

from affidavit.errors import AffidavitError
from affidavit.evidence.values import decode, encode, soften
from affidavit.runtime.engines.cpython.guest.bridge import SCRIPT, Bridge, Root, to_json
from affidavit.runtime.engines.cpython.guest.channel import Channel, Policy
from affidavit.runtime.engines.cpython.guest.clock import Clock, Timing
from affidavit.runtime.engines.cpython.guest.faults import Fault, fault, limit_fault, syntax_fault
from affidavit.runtime.engines.cpython.guest.lockdown import Lock
from affidavit.runtime.engines.cpython.guest.output import Output
from affidavit.runtime.engines.cpython.guest.preamble import load
from affidavit.runtime.engines.cpython.guest.results import Results
from affidavit.runtime.engines.cpython.guest.structs import Nothing
from affidavit.runtime.engines.cpython.guest.surroundings import script_module
from affidavit.runtime.engines.cpython.wire import (
    DONE,
    LENGTH,
    OUTPUT_BYTES,
    PROGRAM,
    READY,
    RETURNED,
    SECTIONS,
    SETTLED,
    START,
)
from affidavit.runtime.engines.script import VALUE, Compiled, compile_script

__all__ = ["rehearse", "serve"]

_MISSING: Final = object()
_BALLAST: Final = 2 << 20  # of address space, held back for the report of a script that used it all up
_REHEARSALS: Final = 3  # bytecode is specialised after a few runs
_NOTES: Final = 100
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNAWAITED: Final = 1000

# Run in the zygote and once in every child before it is needed: it touches the memory that scripts touch, and the first
# touch after a fork copies a page.
_REHEARSAL: Final = """
import asyncio, json
async def inner(x):
    await asyncio.sleep(0)
    return {"a": [x, 1.5, None, True, "text"]}
rows = await asyncio.gather(*[inner(i) for i in range(3)])
rows.append({"a": [await df.ask(n=1)]})
print(f"{len(rows)} rows")
try:
    {}["x"]
except KeyError as error:
    rows.append(str(error))
sorted({row["a"][0]: row for row in rows[:4]}.items())
"""
_REHEARSED: Final = {"ask": {"$call": "ask", "parameters": ["n"], "positional": 1}}
_ANSWER: Final = SETTLED.pack(1, 0.0) + b"5"


def serve(
    lock: Lock, clock: Clock, real_clock: Callable[[], float], parent: int, rpc: int, shared: int
) -> NoReturn:
    """Everything a child does. Never returns.

    Args:
        lock: prepared in the zygote.
        clock: the scripts' clock, in place already.
        real_clock: the monotonic clock that it replaced.
        parent: process id of the zygote.
        rpc: file descriptor of the socket to the host.
        shared: file descriptor of the memory for output.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = Output(shared)
    os.close(shared)
    channel = Channel(socket.socket(fileno=rpc))
    timing = Timing(clock, real_clock)
    _use_loops_of(channel, timing, real_clock)
    report = lock.confine(parent)
    if report["seccomp"]:
        channel.post(READY, to_json(report).encode())
        channel.flush()
        os._exit(1)
    _play(clock)
    timing.passes = 0
    run = _Run(channel, output, timing)
    channel.post(READY, to_json(report).encode())
    channel.flush()
    kind, body = channel.read_frame()
    assert kind == PROGRAM
    run.prepare(lock, body)
    kind, _ = channel.read_frame()
    assert kind == START
    run.run()
    channel.wait_for_end()


def rehearse(clock: Clock, real_clock: Callable[[], float]) -> None:
    """Do in the zygote what every child does first, so that the interpreter's caches are full when it is forked."""
    here, there = socket.socketpair()
    with here, there:
        channel = Channel(here)
        for _ in range(_REHEARSALS):
            _use_loops_of(channel, Timing(clock, real_clock), real_clock)
            _play(clock)
            asyncio.get_event_loop().close()
            asyncio.set_event_loop(None)


def _use_loops_of(channel: Channel, timing: Timing, real_clock: Callable[[], float]) -> None:
    policy = Policy(channel, timing, real_clock)
    asyncio.set_event_loop_policy(policy)  # pyright: ignore[reportDeprecated]
    asyncio.set_event_loop(policy.new_event_loop())


def _play(clock: Clock) -> None:
    """Run the rehearsal; its one call was answered before it is made."""
    execution = _Execution(asyncio.get_event_loop())
    clock.start(0.0, 0)
    here, there = socket.socketpair()
    with here, there:
        there.send(LENGTH.pack(len(_ANSWER) + 1) + bytes((RETURNED,)) + _ANSWER)
        df = Root(Bridge(Channel(here), clock), "df", lambda: _REHEARSED)
        value = execution.execute(compile_script(_REHEARSAL, SCRIPT), {"__name__": "__main__", "df": df})
    to_json(encode(soften(value)[0])).encode()
    decode(loads('{"a": [1, {"$int": "9007199254740993"}]}'))
    fault(KeyError("rehearsal"))


class _Execution:
    """Runs compiled code with an event loop at hand."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def execute(self, compiled: Compiled, names: dict[str, Any]) -> object:
        """Run to the end; returns the script's value, or `_MISSING`."""
        pending = eval(compiled.code, names)  # noqa: S307 - this process exists for that, and is locked
        if compiled.body is not None:
            value = self._complete(names.pop(compiled.body)())
            if value is not None:
                names[VALUE] = value
        elif inspect.iscoroutine(pending):
            self._complete(pending)
        value = names.pop(VALUE, _MISSING)
        if value is _MISSING and compiled.entry is not None:
            value = names[compiled.entry]()
        if inspect.iscoroutine(value) and not value.__qualname__.startswith("df."):
            value = self._complete(value)
        return value

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


async def _awaited(compiled: Compiled, names: dict[str, Any]) -> object:
    """What `_Execution.execute` does, inside a running loop."""
    pending = eval(compiled.code, names)  # noqa: S307 - as there
    if compiled.body is not None:
        pending = names.pop(compiled.body)()
    if inspect.iscoroutine(pending):
        value = await pending
        if value is not None:
            names[VALUE] = value
    value = names.pop(VALUE, _MISSING)
    if value is _MISSING and compiled.entry is not None:
        value = names[compiled.entry]()
    if inspect.iscoroutine(value) and not value.__qualname__.startswith("df."):
        value = await value
    return value


class _Run:
    """One script's run. Made before the program is known, so that little is left to do then."""

    def __init__(self, channel: Channel, output: Output, timing: Timing) -> None:
        self._channel = channel
        self._output = output
        self._timing = timing
        self._clock = timing.clock
        self._bridge = Bridge(channel, timing.clock)
        self._bridge.run_again = self._run_again
        self._bridge.run_helpers = self._run_helpers
        self._execution = _Execution(asyncio.get_event_loop())
        self._module = script_module(SCRIPT, Root(self._bridge, "df", self._read_tree))
        self._tree_text = b"{}"
        self._tree: dict[str, Any] | None = None
        self._source = ""
        self._header: dict[str, Any] = {}
        self._compiled: Compiled | None = None
        self._refused: BaseException | None = None
        self._preamble: list[tuple[str, str]] = []
        self._notes: list[str] = []
        self._result_bytes = 0
        self._value: object = _MISSING
        self._memory_bytes = 0
        self._ballast: mmap.mmap | None = None

    def prepare(self, lock: Lock, body: bytes) -> None:
        """Take in the program and its limits. Nothing of it runs yet."""
        ends = list(accumulate(SECTIONS.unpack_from(body), initial=SECTIONS.size))
        head, self._tree_text, inputs, held = (body[start:end] for start, end in pairwise(ends))
        header: dict[str, Any] = loads(head)
        if inputs != b"{}":
            vars(self._module).update({name: decode(value) for name, value in loads(inputs).items()})
        results: Results | None = None
        self._source = header["source"]
        self._preamble = header.get("preamble", [])
        if "results" in header:
            results = vars(self._module)["results"] = Results(self._bridge, header["results"], held)
        self._result_bytes = header["result_bytes"]
        self._bridge.argument_bytes = header["argument_bytes"]
        self._output.allow(header["output_bytes"])
        self._header = header
        lines = self._source.splitlines(keepends=True)
        linecache.cache[SCRIPT] = (len(self._source), None, lines, SCRIPT)
        self._memory_bytes = header["memory_bytes"]
        self._ballast = mmap.mmap(-1, _BALLAST, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # never touched
        lock.bound(self._memory_bytes, max(1, math.ceil(header["cpu_seconds"])), OUTPUT_BYTES)
        try:
            self._compiled = compile_script(self._source, SCRIPT)
            if results is not None:
                _read_ahead(results)
        except BaseException as problem:
            self._refused = problem

    def run(self) -> None:
        """Run the script and send what came of it."""
        self._clock.start(self._header["clock"], self._header["seed"])
        if "timers" in self._header:
            self._timing.follow(self._header["timers"])
        if self._preamble:
            self._notes = load(self._preamble, vars(self._module))
        if self._compiled is not None:
            reason, error = self._execute(self._compiled)
        elif isinstance(self._refused, SyntaxError | ValueError):  # ValueError: a null byte in the source
            reason, error = "error", syntax_fault(self._refused, self._source)
        else:
            reason, error = self._fault(self._refused or RuntimeError("nothing to run"))
        self._finish(join=error is None)
        self._report(reason, error)

    def _read_tree(self) -> dict[str, Any]:
        if self._tree is None:
            self._tree = loads(self._tree_text)
        assert self._tree is not None
        return self._tree

    def _execute(self, compiled: Compiled) -> tuple[str, Fault | None]:
        try:
            self._value = self._execution.execute(compiled, vars(self._module))
        except BaseException as problem:
            return self._fault(problem)
        return "finished", None

    async def _run_again(self, number: int, source: str, inputs: dict[str, Any]) -> Any:
        """Run an earlier script inside this one, with names of its own. Its calls stand where this one asked for it."""
        here = vars(self._module)
        names = {name: here[name] for name in ("__builtins__", "__name__", "df", "results")} | inputs
        load(self._preamble, names)
        value = await _awaited(compile_script(source, f"<run {number}>"), names)
        return None if value is _MISSING else decode(encode(soften(value)[0]))

    def _run_helpers(self, filename: str, code: str) -> dict[str, Any]:
        """Run a module of helpers, with names of its own."""
        here = vars(self._module)
        names = {"__builtins__": here["__builtins__"], "__name__": "df.lib", "df": here["df"]}
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        exec(compile(code, filename, "exec", dont_inherit=True), names)  # noqa: S102 - as for scripts
        return names

    def _fault(self, problem: BaseException) -> tuple[str, Fault]:
        """Report an exception. Where memory ran out, first make room for the report, without needing any."""
        if self._ballast is not None:
            self._ballast.close()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        if not isinstance(problem, MemoryError):
            return fault(problem)
        traceback.clear_frames(problem.__traceback__)
        vars(self._module).clear()
        reason, error = fault(problem)
        error["message"] = (
            error["message"] or f"the script used up its {self._memory_bytes >> 20} MB of memory"
        )
        return reason, error

    def _finish(self, *, join: bool) -> None:
        """What an interpreter does at its end: join threads, run exit handlers. The script's value stands already."""
        steps: list[Any] = []
        if join and _thread._count():  # pyright: ignore[reportPrivateUsage]
            steps.append(getattr(threading, "_shutdown", None))
        if getattr(atexit, "_ncallbacks", _one)():
            steps.append(getattr(atexit, "_run_exitfuncs", None))
        for step in steps:
            try:
                step()
            except BaseException as problem:
                sys.excepthook(type(problem), problem, problem.__traceback__)

    # ---- report ----

    def _report(self, reason: str, error: Fault | None) -> None:
        value, notes = b"", list[str]()
        if error is None and self._value is not _MISSING and not isinstance(self._value, Nothing):
            try:
                value, notes = self._encoded()
            except AffidavitError as problem:
                message = f"the script's value: {problem.message}"
                error = limit_fault(problem.code, message, problem.hint, problem.details)
                reason = "output" if problem.code == "output-exceeded" else "error"
            except BaseException as problem:
                reason, error = self._fault(problem)
        header = {
            "reason": reason,
            "error": error if error is None else _safe(error),
            "has_value": bool(value),
            "notes": (self._notes + notes)[:_NOTES],
            "unawaited": self._bridge.unawaited()[:_UNAWAITED],
            "timers": self._timing.taken,
        }
        head = _SURROGATE.sub(_escaped, to_json(header)).encode()
        self._channel.post(DONE, LENGTH.pack(len(head)) + head + value)
        self._channel.flush()

    def _encoded(self) -> tuple[bytes, list[str]]:
        value, notes = soften(self._value)
        data = to_json(encode(value)).encode()
        if len(data) > self._result_bytes:
            message = f"it is {len(data)} bytes as JSON, the limit is {self._result_bytes}"
            raise AffidavitError("output-exceeded", message, hint="return less: filter, aggregate, or page")
        return data, notes


def _read_ahead(results: Results) -> None:
    """Read what came along. It lives as long as the process, so that looking through it for garbage is for nothing."""
    gc.disable()
    try:
        results.read_ahead()
        gc.freeze()
    finally:
        gc.enable()


def _one() -> int:
    return 1


def _escaped(surrogate: re.Match[str]) -> str:
    """What no JSON text may hold, as a message shows it: a backslash, which JSON doubles, and its number."""
    return f"\\\\u{ord(surrogate[0]):04x}"


def _safe(error: Fault) -> Fault:
    """The details of a script's own `df.Error` may be anything."""
    try:
        return error | {"details": encode(error["details"])}
    except AffidavitError:
        return error | {"details": {}}
