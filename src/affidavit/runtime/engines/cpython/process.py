"""The host's side of the zygote: starting it, asking it for children, hearing of their ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.errors import FailedError
from affidavit.runtime.engines.cpython.wire import (
    CREATED,
    ENDED,
    LENGTH,
    OUTPUT_BYTES,
    OUTPUT_HEADER,
    READY,
)

__all__ = ["Child", "Ending", "Zygote"]

_START_SECONDS: Final = 30.0
_CLOSE_SECONDS: Final = 5.0
_CONTROL: Final = 4096
_READY_BYTES: Final = 4096
_SENDING: Final = 2 << 20  # for a program with its rows at one go, the kernel's account included
_ROOT: Final = Path(__file__).parents[4]  # the folder that holds the package

# Isolated as `-I` would, but for the hash seed, which `-I` would ignore; the environment is ours entirely.
_COMMAND: Final = ("-P", "-s", "-S", "-B", "-X", "utf8", "-c")
_ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "MALLOC_ARENA_MAX": "2",  # each arena takes 64 MB of the address space that a script may use
}
_BOOT: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from affidavit.runtime.engines.cpython.guest.zygote import main
sys.path.remove(sys.argv[1])
main(int(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended: its signal or its exit code, and the CPU seconds it took.

    `orphaned` says that the zygote ended, and this child with it.
    """

    signal: int = 0
    code: int = 0
    cpu_seconds: float = 0.0
    orphaned: bool = False


class Child:
    """A forked child, from the request to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, memory: int) -> None:
        self.pid = 0
        self.report: dict[str, str] = {}
        self.ready: asyncio.Future[Child] = loop.create_future()
        self.ended: asyncio.Future[Ending] = loop.create_future()
        self.sock = sock
        self._memory = memory
        self._pidfd = -1
        self._loop = loop
        self._doomed = False
        self._early = b""
        loop.add_reader(sock, self._on_early)

    def created(self, pid: int, pidfd: int) -> None:
        """The zygote forked it."""
        self.pid, self._pidfd = pid, pidfd
        if self._doomed:
            self.kill()

    def failed(self, problem: str) -> None:
        """The zygote could not fork it."""
        self._settle_ready(
            FailedError("engine-lost", f"no process for the script: {problem}", retryable=True)
        )
        self.end(Ending())

    def _on_early(self) -> None:
        """Read the one frame that a child sends before it is given a program."""
        try:
            data = self.sock.recv(_READY_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._early += data
        whole = (
            len(self._early) > LENGTH.size
            and len(self._early) - LENGTH.size >= LENGTH.unpack_from(self._early)[0]
        )
        if not data or len(self._early) > _READY_BYTES:
            self._settle_ready(FailedError("engine-lost", "a sandbox process ended before it was ready"))
        elif whole and self._early[LENGTH.size] == READY:
            self.report = json.loads(self._early[LENGTH.size + 1 :])
            self._settle_ready(None)

    def _settle_ready(self, problem: FailedError | None) -> None:
        self._loop.remove_reader(self.sock)
        if self.ready.done():
            return
        if problem is None:
            self.ready.set_result(self)
        else:
            self.ready.set_exception(problem)
            self.ready.exception()  # a parked child that nobody waits for may die unseen

    def cpu_seconds(self) -> float:
        """CPU time of the process so far, by the kernel's own account."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return 0.0

    def printed(self, limit: int) -> tuple[str, int]:
        """Text in the shared output memory, and how many characters were dropped. Its header is not trusted."""
        used, dropped = OUTPUT_HEADER.unpack(os.pread(self._memory, OUTPUT_HEADER.size, 0))
        used = min(used, limit, OUTPUT_BYTES - OUTPUT_HEADER.size)
        data = os.pread(self._memory, used, OUTPUT_HEADER.size)
        return data.decode("utf-8", "replace"), min(dropped, 1 << 53)

    def kill(self) -> None:
        """End it now, whatever it does. Safe at any time: a pidfd never names another process."""
        self._doomed = True
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def end(self, ending: Ending) -> None:
        """Its end became known."""
        if not self.ended.done():
            self.ended.set_result(ending)
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def release(self) -> None:
        """Kill it and let go of its descriptors."""
        self.kill()
        if self.sock.fileno() >= 0:
            self._loop.remove_reader(self.sock)
            self._loop.remove_writer(self.sock)
            self.sock.close()
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1


class Zygote:
    """A running zygote. `dead` is set once it is gone; its children die with it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes], control: socket.socket
    ) -> None:
        self.dead = False
        self.report: dict[str, str] = {}
        self.pid = process.pid
        self._loop = loop
        self._process = process
        self._control = control
        self._asked: deque[Child] = deque()
        self._living: dict[int, Child] = {}

    @classmethod
    async def spawn(cls) -> Zygote:
        """Start one and wait until it can fork.

        Raises:
            FailedError: `engine-unavailable`, with what it said.
        """
        if sys.platform != "linux":
            raise _unavailable("scripts can be isolated on Linux only")
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.setblocking(False)
            command = [sys.executable, *_COMMAND, _BOOT, str(_ROOT), str(theirs.fileno())]
            try:
                process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond, once
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=_ENVIRONMENT,
                    cwd="/",
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise _unavailable(f"{sys.executable} does not start: {error.strerror}") from error
        zygote = cls(loop, process, ours)
        try:
            async with asyncio.timeout(_START_SECONDS):
                message = await loop.sock_recv(ours, _CONTROL)
        except TimeoutError as error:
            await zygote.close()
            raise _unavailable(f"the sandbox did not start within {_START_SECONDS:.0f} s") from error
        except BaseException:
            await zygote.close()
            raise
        if message[:1] != b"R":
            await zygote.close()
            said = message[1:].decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise _unavailable(f"the sandbox did not start: {said or 'its process ended at once'}")
        zygote.report = json.loads(message[1:])
        loop.add_reader(ours, zygote._on_message)
        return zygote

    def fork(self) -> Child:
        """Ask for a child; it is usable once `ready` is done.

        Raises:
            OSError: when the zygote is gone.
        """
        import fcntl  # not on every system, and only needed where a zygote runs

        ours, theirs = socket.socketpair()
        memory = -1
        try:
            ours.setblocking(False)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENDING)  # as far as the system allows
            memory = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(memory, OUTPUT_BYTES)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
            socket.send_fds(self._control, [b"F"], [theirs.fileno(), memory])
        except OSError:
            ours.close()
            if memory >= 0:
                os.close(memory)
            raise
        finally:
            theirs.close()
        child = Child(self._loop, ours, memory)
        self._asked.append(child)
        return child

    def _on_message(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._control, _CONTROL, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            message, fds = b"", []
        if not message:
            self._died()
        elif message[:1] == b"C":
            _, pid = CREATED.unpack(message)
            child = self._asked.popleft()
            if fds:
                self._living[pid] = child
                child.created(pid, fds[0])
            else:
                child.failed(os.strerror(-pid))
        elif message[:1] == b"X":
            _, pid, status, user, system = ENDED.unpack(message)
            number = status & 0x7F
            ending = Ending(signal=number, code=0 if number else status >> 8, cpu_seconds=user + system)
            self._living.pop(pid).end(ending)

    def _died(self) -> None:
        self.dead = True
        self._loop.remove_reader(self._control)
        for child in [*self._living.values(), *self._asked]:
            child.end(Ending(orphaned=True))
        self._living.clear()
        self._asked.clear()

    async def close(self) -> None:
        """End it and all its children, and wait until they are gone."""
        if not self.dead:
            self._died()
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, _CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


def _unavailable(message: str) -> FailedError:
    return FailedError(
        "engine-unavailable",
        message,
        hint="`affidavit doctor` tries each isolation layer; or use --engine monty",
    )
