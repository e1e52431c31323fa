"""The warm process that children are forked from.

It has one thread, loads everything once, and leaves the host's namespaces before the first fork.

Its control socket keeps message boundaries. From the host: `F` with two descriptors (socket, output memory) forks a
child. To the host: `R` + report when ready, `E` + text when it cannot start, `C` + pid with a pidfd or a negative error
number, `X` + exit.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

from affidavit.runtime.engines.cpython.guest.child import rehearse, serve
from affidavit.runtime.engines.cpython.guest.clock import Clock
from affidavit.runtime.engines.cpython.guest.lockdown import Lock
from affidavit.runtime.engines.cpython.guest.preload import fill_gaps, preload
from affidavit.runtime.engines.cpython.guest.surroundings import arrange
from affidavit.runtime.engines.cpython.wire import CREATED, ENDED

__all__ = ["main"]

_MESSAGE: Final = 64


def main(control: int) -> None:
    """Run until the host closes the control socket."""
    sock = socket.socket(fileno=control)
    try:
        preload()
        real_clock = time.monotonic
        clock = Clock()
        clock.patch()
        arrange()
        rehearse(clock, real_clock)
        lock = Lock()
        report = lock.isolate()
    except BaseException:
        sock.send(b"E" + traceback.format_exc()[-2000:].encode("utf-8", "replace"))
        return
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gaps = fill_gaps()
    gc.freeze()
    sock.send(b"R" + json.dumps(report).encode())
    _Zygote(sock, lambda rpc, shared, parent: serve(lock, clock, real_clock, parent, rpc, shared)).loop()
    del gaps  # until here nothing may take their place


class _Zygote:
    """The loop: fork on request, tell of every end."""

    def __init__(self, sock: socket.socket, serve_child: Callable[[int, int, int], NoReturn]) -> None:
        self._sock = sock
        self._serve_child = serve_child
        self._children: dict[int, int] = {}  # pidfd -> pid
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def loop(self) -> None:
        """Serve until the host is gone, then end every child."""
        try:
            while self._serve():
                pass
        except (BrokenPipeError, ConnectionError):
            pass
        for pid in self._children.values():
            os.kill(pid, signal.SIGKILL)
        for pid in self._children.values():
            os.waitpid(pid, 0)

    def _serve(self) -> bool:
        for fd, _ in self._poll.poll():
            if fd != self._sock.fileno():
                self._ended(fd)
                continue
            message, fds, _, _ = socket.recv_fds(self._sock, _MESSAGE, 2)
            if not message:
                return False
            if len(fds) == 2:
                self._fork(*fds)
            for left in fds:
                os.close(left)
        return True

    def _fork(self, rpc: int, shared: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # too many processes, no memory: this request fails, the zygote goes on
            self._sock.send(CREATED.pack(b"C", -(error.errno or 1)))
            return
        if pid == 0:
            try:
                self._close_all_but(rpc, shared)
                self._serve_child(rpc, shared, parent)
            finally:
                os._exit(1)
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)
        socket.send_fds(self._sock, [CREATED.pack(b"C", pid)], [pidfd])

    def _close_all_but(self, *kept: int) -> None:
        self._sock.detach()
        last = 2
        for fd in sorted(kept):
            os.closerange(last + 1, fd)
            last = fd
        os.closerange(last + 1, 1024)

    def _ended(self, pidfd: int) -> None:
        pid = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        self._sock.send(ENDED.pack(b"X", pid, status, usage.ru_utime, usage.ru_stime))
