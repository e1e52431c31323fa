"""Scripts that try to get out, to take more than their share, or to confuse the host; and what must come of each.

Plain data and a runner, so that the same list runs in the test process and as another user.
"""

# ruff: noqa: E501 - scripts on one line each

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any, Final

from affidavit.runtime.engines.cpython.engine import CPythonEngine
from affidavit.runtime.program import CallResult, CallReturned, Limits, Program, RunOutcome, ScriptCall

MB: Final = 1 << 20
TREE: Final[dict[str, Any]] = {
    "ok": {"$call": "ok", "parameters": ["n"], "positional": 1, "kind": "operation"},
    "fail": {"$call": "fail", "parameters": ["text"], "positional": 1, "kind": "operation"},
}
LIMITS: Final = Limits(
    wall_seconds=20.0,
    cpu_seconds=10.0,
    memory_bytes=192 * MB,
    output_bytes=100_000,
    calls=50,
    argument_bytes=100_000,
    result_bytes=1 * MB,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abuse:
    """A script and what must come of it: one of some reasons, one of some codes, or a value."""

    name: str
    source: str
    reasons: tuple[str, ...] = ("finished",)
    codes: tuple[str, ...] = ()
    value: Any = None
    message: str = ""
    limits: Limits = LIMITS


def refused(name: str, attempt: str, *imports: str) -> Abuse:
    """An attempt that must end in an OSError of its own, which the script can catch."""
    body = "\n".join(f"    {line}" for line in attempt.strip().splitlines())
    source = f"import os{''.join(f', {module}' for module in imports)}\ntry:\n{body}\n    got = 'reached'\n"
    source += "except (OSError, RuntimeError) as error:\n    got = 'refused'\ngot\n"
    return Abuse(name=name, source=source, value="refused")


def raw(name: str, number: int, *arguments: str) -> Abuse:
    """A system call made directly on x86_64: it must give -1 and EPERM (or ENOSYS, where libc falls back on it)."""
    given = ", ".join((str(number), *arguments))
    source = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"got = libc.syscall({given})\n[got, ctypes.get_errno() in (1, 38)]\n"
    )
    return Abuse(name=name, source=source, value=[-1, True])


def stopped(name: str, source: str) -> Abuse:
    """A script that never ends by itself."""
    return Abuse(
        name=name,
        source=source,
        reasons=("timed-out",),
        codes=("timed-out",),
        limits=Limits(wall_seconds=1.5, cpu_seconds=1.0, memory_bytes=192 * MB),
    )


def hungry(name: str, source: str) -> Abuse:
    """A script that wants more memory than it has."""
    limits = Limits(wall_seconds=20.0, cpu_seconds=10.0, memory_bytes=48 * MB)
    return Abuse(name=name, source=source, reasons=("memory",), codes=("memory-exceeded",), limits=limits)


_FRAME = """
import ctypes, os, struct
libc = ctypes.CDLL(None)
def send(kind, body):
    frame = struct.pack("<I", len(body) + 1) + kind + body
    for fd in range(3, 64):
        libc.send(fd, frame, len(frame), 0)
"""

_LOST: Final[dict[str, Any]] = {"reasons": ("lost",), "codes": ("engine-lost",)}

ABUSES: Final[tuple[Abuse, ...]] = (
    # loops
    stopped("loop", "while True:\n    pass"),
    stopped("loop that catches all", "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"),
    stopped("loop in finally", "try:\n    while True:\n        pass\nfinally:\n    while True:\n        pass"),
    stopped("loop that handles the CPU signal", "import signal\nsignal.signal(signal.SIGXCPU, lambda *_: None)\nwhile True:\n    pass"),
    stopped("big power", "x = 10 ** 10 ** 8\nlen(str(x))"),
    stopped("backtracking", "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"),
    stopped("sleep", "import time\ntime.sleep(1000)"),
    stopped("awaited sleep", "import asyncio\nawait asyncio.sleep(1000)"),
    stopped("nothing to wait for", "import asyncio\nawait asyncio.get_running_loop().create_future()"),
    stopped("lock that is never free", "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    stopped("catching the time-out", "import asyncio\ntry:\n    await asyncio.sleep(60)\nexcept BaseException:\n    await asyncio.sleep(60)"),
    stopped("spinning coroutines", "import asyncio\nwhile True:\n    await asyncio.sleep(0)"),
    stopped("a thread that never ends", "import threading\nthreading.Thread(target=threading.Event().wait).start()\n1"),
    # memory
    hungry("many strings", "kept = []\nwhile True:\n    kept.append('a' * 1_000_000 + str(len(kept)))"),
    hungry("one string", "x = 'a' * 10 ** 10"),
    hungry("one list", "x = [0] * 10 ** 10"),
    hungry("growing dict", "d = {}\nfor i in range(10 ** 9):\n    d[i] = str(i)"),
    hungry("many small objects", "kept = []\nwhile True:\n    kept.append([])"),
    hungry("many small objects in a function", "def f():\n    kept = []\n    while True:\n        kept.append(str(len(kept)))\nf()"),
    hungry("a chain of small objects", "kept = None\nwhile True:\n    kept = (kept, kept)"),
    hungry("width in a format", "len(f'{1:>{10**10}}')"),
    hungry("bytearray", "bytearray(1 << 40)"),
    Abuse(
        name="memory that was caught",
        source="try:\n    x = 'a' * 10 ** 10\nexcept MemoryError:\n    got = 'caught'\ngot",
        value="caught",
    ),
    # processes
    refused("fork", "os.fork()"),
    refused("popen", "os.popen('id').read()"),
    refused("subprocess", "subprocess.run(['id'])", "subprocess"),
    refused("exec", "os.execv('/bin/true', ['true'])"),
    refused("posix_spawn", "os.posix_spawn('/bin/true', ['true'], {})"),
    refused("multiprocessing", "multiprocessing.Process(target=print).start()", "multiprocessing"),
    refused("process pool", "list(concurrent.futures.ProcessPoolExecutor(1).map(abs, [1]))", "concurrent.futures"),
    refused("pty", "pty.fork()", "pty"),
    refused("kill the parent", "os.kill(os.getppid(), 9)"),
    refused("kill everything", "os.kill(-1, 9)"),
    refused("kill the group", "os.killpg(0, 9)"),
    refused("limits of the parent", "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))", "resource"),
    Abuse(
        name="raise its own limits",
        source="import resource\ntry:\n    resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\n    got = 'raised'\nexcept (OSError, ValueError):\n    got = 'refused'\ngot",
        value="refused",
    ),
    raw("raw fork", 57),
    raw("raw vfork", 58),
    raw("raw clone of a process", 56, "17", "0", "0", "0", "0"),
    raw("raw clone of a namespace", 56, "0x10000000 | 17", "0", "0", "0", "0"),
    raw("raw clone3", 435, "0", "0"),
    raw("raw execve", 59, "b'/bin/true'", "0", "0"),
    raw("raw ptrace", 101, "16", "os.getppid()", "0", "0"),
    raw("raw kill", 62, "os.getppid()", "9"),
    raw("raw tgkill of the parent", 234, "os.getppid()", "os.getppid()", "9"),
    raw("raw tkill", 200, "os.getppid()", "9"),
    raw("raw pidfd_open", 434, "os.getppid()", "0"),
    raw("raw pidfd_send_signal", 424, "3", "9", "0", "0"),
    raw("raw process_vm_readv", 310, "os.getppid()", "0", "0", "0", "0", "0"),
    raw("raw unshare", 272, "0x10000000"),
    raw("raw setns", 308, "0", "0"),
    raw("raw prlimit of the parent", 302, "os.getppid()", "7", "0", "0"),
    raw("raw prctl", 157, "4", "1", "0", "0", "0"),
    raw("raw seccomp", 317, "0", "0", "0"),
    raw("raw bpf", 321, "0", "0", "0"),
    raw("raw io_uring", 425, "1", "0"),
    raw("raw perf", 298, "0", "0", "0", "0", "0"),
    raw("raw userfaultfd", 323, "0"),
    raw("raw keyctl", 250, "0", "0", "0"),
    raw("raw memfd_create", 319, "b'x'", "0"),
    raw("raw mount", 165, "b'none'", "b'/'", "b'tmpfs'", "0", "0"),
    Abuse(name="system calls of another ABI", source="import ctypes\nctypes.CDLL(None).syscall(0x40000000 | 39)", message="SIGSYS", **_LOST),
    # files
    refused("read", "open('/etc/passwd').read()"),
    refused("read by pathlib", "pathlib.Path('/etc/passwd').read_text()", "pathlib"),
    refused("write", "open('/tmp/affidavit-abuse', 'w')"),
    refused("list", "os.listdir('/')"),
    refused("stat", "os.stat('/etc/passwd')"),
    refused("unlink", "os.unlink('/tmp/x')"),
    refused("chdir", "os.chdir('/tmp')"),
    refused("proc of the parent", "open(f'/proc/{os.getppid()}/environ', 'rb').read()"),
    refused("own memory file", "open('/proc/self/mem', 'rb')"),
    refused("dlopen", "ctypes.CDLL('/lib/x86_64-linux-gnu/libutil.so.1')", "ctypes"),
    refused("module reach-through", "random._os.popen('id').read()", "random"),
    refused("sqlite file", "try:\n    sqlite3.connect('/tmp/x.db').execute('create table t(a)')\nexcept sqlite3.Error as e:\n    raise OSError(str(e))", "sqlite3"),
    raw("raw open", 2, "b'/etc/passwd'", "0"),
    raw("raw openat", 257, "-100", "b'/etc/passwd'", "0"),
    raw("raw openat2", 437, "-100", "b'/etc/passwd'", "0", "0"),
    raw("raw stat past AT_EMPTY_PATH", 262, "-100", "b'/etc/passwd'", "ctypes.create_string_buffer(256)", "0x1000"),
    raw("raw statx", 332, "-100", "b'/etc/passwd'", "0", "0", "0"),
    raw("raw readlink", 89, "b'/proc/self/exe'", "ctypes.create_string_buffer(256)", "256"),
    raw("raw ftruncate", 77, "3", "0"),
    Abuse(name="environment", source="import os\nsorted(os.environ)", value=[]),
    Abuse(name="existence", source="import os\n[os.path.exists('/etc/passwd'), os.path.exists('/')]", value=[False, False]),
    # sockets
    refused("socket", "socket.socket()", "socket"),
    refused("UNIX socket", "socket.socket(socket.AF_UNIX)", "socket"),
    refused("datagram pair", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "socket"),
    refused("create_connection", "socket.create_connection(('127.0.0.1', 80), 1)", "socket"),
    refused("urlopen", "urllib.request.urlopen('http://127.0.0.1/')", "urllib.request"),
    refused("asyncio connection", "await asyncio.open_connection('127.0.0.1', 80)", "asyncio"),
    raw("raw sendto with an address", 44, "3", "b'x'", "1", "0", "b'\\x01\\x00/dev/log'", "12"),
    raw("raw sendmsg", 46, "3", "0", "0"),
    raw("raw connect", 42, "3", "b'\\x01\\x00/dev/log'", "12"),
    # output
    Abuse(name="printed flood", source="for _ in range(100):\n    print('x' * 1_000_000)\n1", value=1),
    Abuse(name="many small prints", source="for i in range(50_000):\n    print(i)\n1", value=1),
    Abuse(name="large value", source="'x' * 2_000_000", reasons=("output",), codes=("output-exceeded",)),
    Abuse(name="deep value", source="a = []\nfor _ in range(100_000):\n    a = [a]\na", reasons=("error",), codes=("value-too-deep",)),
    Abuse(name="cyclic value", source="a = []\na.append(a)\na", reasons=("error",), codes=("value-unsupported", "value-too-deep")),
    Abuse(name="value of no JSON", source="object()", reasons=("error",), codes=("value-unsupported",)),
    Abuse(name="huge message", source="raise ValueError('x' * 50_000_000)", reasons=("error",), codes=("script-error",)),
    Abuse(
        name="exception without text",
        source="class E(Exception):\n    def __str__(self):\n        raise SystemExit\nraise E",
        reasons=("error",),
        codes=("script-error",),
    ),
    # recursion
    Abuse(name="recursion", source="def f():\n    return f()\nf()", reasons=("error",), codes=("recursion",)),
    Abuse(
        name="recursion that was caught",
        source="def f(n):\n    try:\n        return f(n + 1)\n    except RecursionError:\n        return n\nf(0) > 10",
        value=True,
    ),
    Abuse(name="deep repr", source="a = []\nfor _ in range(100_000):\n    a = [a]\nrepr(a)", reasons=("error",), codes=("recursion",)),
    Abuse(
        name="recursion without a limit",
        source="import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\nA().x",
        reasons=("lost", "memory", "error"),
        codes=("engine-lost", "memory-exceeded", "recursion"),
    ),
    Abuse(name="nested source", source="x = " + "(" * 5_000 + "1" + ")" * 5_000, reasons=("error", "memory"), codes=("script-syntax", "recursion", "memory-exceeded")),
    Abuse(name="long sum", source="x = " + "+".join(["1"] * 20_000), reasons=("error", "finished"), codes=("recursion", "script-syntax", "")),
    # ends
    Abuse(name="exit", source="exit()", reasons=("exit",), codes=("script-exit",)),
    Abuse(name="quit with code", source="quit(3)", reasons=("exit",), codes=("script-exit",), message="3"),
    Abuse(name="sys.exit", source="import sys\nsys.exit('bye')", reasons=("exit",), codes=("script-exit",), message="bye"),
    Abuse(name="SystemExit", source="raise SystemExit(3)", reasons=("exit",), codes=("script-exit",)),
    Abuse(name="exit in a task", source="import asyncio\nasync def f():\n    raise SystemExit(4)\nawait asyncio.gather(f())", reasons=("exit",), codes=("script-exit",)),
    Abuse(name="os._exit", source="import os\nos._exit(7)", message="7", **_LOST),
    Abuse(name="abort", source="import os\nos.abort()", message="SIGABRT", **_LOST),
    Abuse(name="segmentation fault", source="import ctypes\nctypes.string_at(0)", message="SIGSEGV", **_LOST),
    Abuse(name="killing itself", source="import signal\nsignal.raise_signal(signal.SIGTERM)", message="SIGTERM", **_LOST),
    Abuse(name="closing every descriptor", source="import os\nos.closerange(0, 64)\nwhile True:\n    pass", **_LOST),
    # object graph
    Abuse(name="subclasses", source="len(().__class__.__base__.__subclasses__()) > 10", value=True),
    Abuse(
        name="frames",
        source="import sys\nf = sys._getframe()\nnames = set()\nwhile f:\n    names |= set(f.f_globals)\n    f = f.f_back\n'df' in names",
        value=True,
    ),
    Abuse(name="format walk", source="'{0.__class__.__mro__}'.format(1)", value="(<class 'int'>, <class 'object'>)"),
    Abuse(name="own product", source="try:\n    import affidavit\n    got = 'there'\nexcept ImportError:\n    got = 'not there'\ngot", value="not there"),
    # threads
    Abuse(
        name="thread flood",
        source="import threading\nthreading.stack_size(65536)\nstop = threading.Event()\nts = []\ntry:\n    for _ in range(20_000):\n        t = threading.Thread(target=stop.wait, daemon=True)\n        t.start()\n        ts.append(t)\nexcept RuntimeError:\n    pass\nstop.wait(3)\n'over'",
        reasons=("error", "memory", "finished", "lost"),
        codes=("budget-exceeded", "memory-exceeded", "", "engine-lost"),
    ),
    Abuse(name="thread", source="import threading\ngot = []\nt = threading.Thread(target=got.append, args=(1,))\nt.start()\nt.join()\ngot", value=[1]),
    # executable memory
    refused("executable map", "mmap.mmap(-1, 4096, prot=7)", "mmap"),
    raw("raw mprotect of executable memory", 10, "0", "4096", "7"),
    # the wire
    Abuse(name="frame that is not JSON", source=_FRAME + "send(b'c', b'{')\nwhile True: pass", message="not JSON", **_LOST),
    Abuse(name="frame of another kind", source=_FRAME + "send(b'?', b'{}')\nwhile True: pass", message="kind", **_LOST),
    Abuse(name="frame of another form", source=_FRAME + "send(b'c', b'[1,2]')\nwhile True: pass", message="form", **_LOST),
    Abuse(name="call of another number", source=_FRAME + "send(b'c', b'[77,\"ok\",1,0,0,{}]')\nwhile True: pass", message="77", **_LOST),
    Abuse(name="call of another operation", source=_FRAME + "send(b'c', b'[2,\"secret\",1,0,0,{}]')\nwhile True: pass", message="not given", **_LOST),
    Abuse(name="call that is nested deeply", source=_FRAME + "send(b'c', b'[2,\"ok\",1,0,0,{\"n\":' + b'[' * 500 + b']' * 500 + b'}]')\nwhile True: pass", message="deep", **_LOST),
    Abuse(name="call that is too large", source=_FRAME + "send(b'c', b'[2,\"ok\",1,0,0,{\"n\":\"' + b'x' * 400_000 + b'\"}]')\nwhile True: pass", message="bytes", **_LOST),
    Abuse(name="frame without end", source=_FRAME + "for fd in range(3, 64): libc.send(fd, b'\\xff\\xff\\xff\\xff', 4, 0)\nwhile True: pass", message="bytes", **_LOST),
    Abuse(name="frame of length zero", source=_FRAME + "for fd in range(3, 64): libc.send(fd, b'\\0' * 8, 8, 0)\nwhile True: pass", message="bytes", **_LOST),
    Abuse(name="end with other keys", source=_FRAME + "send(b'd', struct.pack('<I', 2) + b'{}')\nwhile True: pass", message="keys", **_LOST),
    Abuse(name="end that is cut", source=_FRAME + "send(b'd', struct.pack('<I', 200) + b'{}')\nwhile True: pass", message="cut", **_LOST),
    Abuse(
        name="a value of many items",
        source="[[]] * 300_000",
        reasons=("finished", "output"),
        codes=("", "output-exceeded"),
    ),
    Abuse(name="patched json", source="import json\njson.dumps = lambda *a, **k: 'no'\njson.JSONEncoder.encode = lambda *a: 'no'\n{'a': await df.ok(2)}", value={"a": 2}),
    # calls
    Abuse(
        name="too many calls",
        source="import asyncio\ngot = await asyncio.gather(*[df.ok(i) for i in range(200)], return_exceptions=True)\n[sum(g == i for i, g in enumerate(got)), {g.code for g in got if isinstance(g, df.Error)}]",
        value=[49, ["budget-exceeded"]],
    ),
    Abuse(
        name="calls without end",
        source="while True:\n    try:\n        await df.ok(1)\n    except df.Error:\n        pass",
        reasons=("error", "timed-out"),
        codes=("budget-exceeded", "timed-out"),
    ),
    Abuse(
        name="large argument",
        source="try:\n    await df.ok('x' * 200_000)\nexcept df.Error as error:\n    got = error.code\ngot",
        value="budget-exceeded",
    ),
    Abuse(
        name="argument of no JSON",
        source="try:\n    await df.ok({'a': [object()]})\nexcept df.Error as error:\n    got = [error.code, error.details['path']]\ngot",
        value=["value-unsupported", "$.n.a[0]"],
    ),
    Abuse(
        name="cyclic argument",
        source="a = []\na.append(a)\ntry:\n    await df.ok(a)\nexcept df.Error as error:\n    got = error.code in ('value-unsupported', 'value-too-deep')\ngot",
        value=True,
    ),
)  # fmt: skip


class Host:
    """Answers calls and remembers them."""

    def __init__(self) -> None:
        self.calls: list[ScriptCall] = []

    async def handle(self, call: ScriptCall) -> CallResult:
        self.calls.append(call)
        return CallReturned(json=json.dumps(call.arguments.get("n")).encode(), completed=1000.0)


async def commit(engine: CPythonEngine, abuse: Abuse) -> list[str]:
    """Run one abuse after a call, and `1 + 1` after that; returns what is wrong."""
    host = Host()
    source = f"await df.ok(0)\nprint('before', flush=True)\n{abuse.source}"
    outcome = await engine.run(Program(source=source, tree=TREE, limits=abuse.limits), host.handle)
    problems = list(_problems(abuse, outcome))
    if abuse.name not in ("nested source", "long sum") and not (host.calls and host.calls[0].path == "ok"):
        problems.append("the call made before is not kept")
    if abuse.name not in ("nested source", "long sum") and not outcome.stdout.startswith("before\n"):
        problems.append(f"what was printed before is not kept: {outcome.stdout[:50]!r}")
    after = await engine.run(Program(source="1 + 1", tree=TREE), host.handle)
    if after.value != b"2":
        problems.append(f"the next run gives {after}")
    return problems


def _problems(abuse: Abuse, outcome: RunOutcome) -> list[str]:
    problems: list[str] = []
    code = outcome.error.code if outcome.error else ""
    message = outcome.error.message if outcome.error else ""
    if outcome.reason not in abuse.reasons:
        problems.append(f"reason {outcome.reason}: {code} {message[:300]}")
    if abuse.codes and code not in abuse.codes:
        problems.append(f"code {code!r}: {message[:300]}")
    if abuse.message not in message:
        problems.append(f"message {message[:300]!r}")
    if abuse.value is not None and (outcome.value is None or json.loads(outcome.value) != abuse.value):
        problems.append(f"value {outcome.value!r}: {message[:300]}")
    if len(outcome.stdout.encode()) > abuse.limits.output_bytes:
        problems.append("more output than allowed")
    return problems


async def commit_all(engine: CPythonEngine) -> dict[str, list[str]]:
    """Run the whole list, a few at a time; what is wrong, by name."""
    room = asyncio.Semaphore(4)

    async def one(abuse: Abuse) -> list[str]:
        async with room:
            return await commit(engine, abuse)

    found = await asyncio.gather(*[one(abuse) for abuse in ABUSES])
    return {abuse.name: problems for abuse, problems in zip(ABUSES, found, strict=True)}


async def main() -> dict[str, list[str]]:
    """The list in a process of its own, with what the engine's probe says and what is left afterwards."""
    probed = [f"{finding.name}: {finding.detail}" for finding in CPythonEngine.probe() if not finding.ok]
    engine = CPythonEngine()
    await engine.start()
    session = engine.pid
    problems = await commit_all(engine)
    await engine.close()
    left = [entry for entry in os.listdir("/proc") if entry.isdigit() and _session(entry) == session]
    return problems | {"(probe)": probed, "(left behind)": left}


def _session(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[3])
    except OSError:
        return 0
