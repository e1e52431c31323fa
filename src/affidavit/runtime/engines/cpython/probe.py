"""Trying the isolation: a script in a real locked child attempts what must not work."""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from affidavit.errors import FailedError
from affidavit.runtime.engines.cpython.conversation import Conversation
from affidavit.runtime.engines.cpython.pool import Pool
from affidavit.runtime.engines.finding import Finding
from affidavit.runtime.program import CallResult, Limits, Program, ScriptCall

__all__ = ["findings"]

_LIMITS: Final = Limits(wall_seconds=10.0, cpu_seconds=5.0, memory_bytes=256 << 20)

# Each attempt returns "" when it was refused and what it reached when not.
_ATTEMPTS: Final = """
import ctypes, os, platform, resource, signal, socket, subprocess, threading

libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()

def reached(text):
    return text

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return reached(f"process {pid}")

def raw_fork():
    number = {"x86_64": 57, "aarch64": 220}[platform.machine()]
    pid = libc.syscall(number, 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return reached(f"process {pid}") if pid > 0 else ""

def execute():
    os.execv("/bin/true", ["true"])

def spawn():
    return reached(f"process {os.posix_spawn('/bin/true', ['true'], {})}")

def connect():
    return reached(repr(socket.socket()))

def unix_socket():
    return reached(repr(socket.socket(socket.AF_UNIX)))

def read():
    return reached(open("/etc/passwd").read(10))

def write():
    return reached(repr(open("/tmp/affidavit-probe", "w")))

def listing():
    return reached(repr(os.listdir("/")[:3]))

def status():
    return reached(repr(os.stat("/etc/passwd").st_size))

def raw_status():
    buffer = ctypes.create_string_buffer(256)
    number = {"x86_64": 262, "aarch64": 79}[platform.machine()]
    done = libc.syscall(number, -100, b"/etc/passwd", buffer, 0x1000)
    return reached("stat with AT_EMPTY_PATH") if done == 0 else ""

def memory_file():
    return reached(repr(os.memfd_create("probe")))

def limit_of_parent():
    return reached(repr(resource.prlimit(parent, resource.RLIMIT_NOFILE)))

def limit_of_host():
    return reached(repr(resource.prlimit(host, resource.RLIMIT_NOFILE)))

def signal_parent():
    os.kill(parent, 0)
    return reached("signal 0")

def signal_host():
    os.kill(host, 0)
    return reached("signal 0")

def trace():
    return reached("ptrace") if libc.ptrace(16, parent, 0, 0) == 0 else ""

def peek():
    return reached(open(f"/proc/{host}/environ", "rb").read(10))

def environment():
    return reached(repr(list(os.environ))) if os.environ else ""

def executable_memory():
    import mmap
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    return reached("executable memory")

def threads():
    got = []
    thread = threading.Thread(target=got.append, args=(1,))
    thread.start()
    thread.join()
    return "" if got else "no thread"

outcome = {}
for name, attempt in (
    ("fork", fork), ("fork by system call", raw_fork), ("exec", execute), ("spawn", spawn), ("socket", connect),
    ("UNIX socket", unix_socket), ("read a file", read), ("write a file", write), ("list a folder", listing),
    ("stat", status), ("stat by system call", raw_status), ("memory file", memory_file),
    ("limits of the parent", limit_of_parent), ("limits of the host", limit_of_host),
    ("signal to the parent", signal_parent), ("signal to the host", signal_host), ("ptrace", trace),
    ("environment of the host", peek), ("environment", environment), ("executable memory", executable_memory),
):
    try:
        outcome[name] = [attempt() or "", ""]
    except (OSError, RuntimeError, ValueError) as error:
        outcome[name] = ["", f"{type(error).__name__}: {error}"]
try:
    outcome["threads work"] = [threads(), ""]
except RuntimeError as error:
    outcome["threads work"] = [str(error), ""]
outcome
"""

_DECISIVE_LAYERS: Final = frozenset({"seccomp", "no new privileges"})
_NOT_DECISIVE: Final = frozenset({"threads work"})


async def findings(pool: Pool) -> list[Finding]:
    """Every layer and every attempt. Layers other than the filter are depth: the attempts decide."""
    try:
        child = await pool.take()
    except FailedError as error:
        return [Finding(name="sandbox process", ok=False, detail=error.message)]
    layers = pool.zygote.report | child.report
    found = [
        Finding(name=name, ok=not problem, detail=problem or "in place", decisive=name in _DECISIVE_LAYERS)
        for name, problem in layers.items()
    ]
    program = Program(source=_ATTEMPTS, tree={}, inputs={"host": os.getpid()}, limits=_LIMITS)
    try:
        outcome = await Conversation(child, program, _no_calls).run()
    finally:
        child.release()
    if not outcome.has_value or outcome.value is None:
        said = outcome.error.message if outcome.error else outcome.reason
        return [*found, Finding(name="attempts", ok=False, detail=said)]
    attempts: dict[str, Any] = orjson.loads(outcome.value)
    for name, (reached, refused) in attempts.items():
        detail = f"reached {reached}" if reached else f"refused ({refused})" if refused else "refused"
        found.append(Finding(name=name, ok=not reached, detail=detail, decisive=name not in _NOT_DECISIVE))
    return found


async def _no_calls(call: ScriptCall) -> CallResult:
    raise AssertionError(f"the probe calls nothing, not {call.path}")
