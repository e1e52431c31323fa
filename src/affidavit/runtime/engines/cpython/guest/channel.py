"""The one way out of a locked child: a stream socket to the host, and an event loop that waits on it cheaply.

Frames are collected and sent together when the loop is about to wait. While no thread runs and nothing but the host can
wake the script, waiting is one blocking `recv`.

Answers are handed over one at a time, in the order in which the host sent them, and the next only when the script has
nothing left to do. So what a script does follows from the order of the answers, not from when they came: a replay that
sends them in the same order sees it do the same.
"""

from __future__ import annotations

import _thread
import asyncio
import math
import os
import select
import selectors
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from affidavit.runtime.engines.cpython.guest.clock import Timing
from affidavit.runtime.engines.cpython.wire import LENGTH, RETURNED, SETTLED

__all__ = ["Channel", "Loop", "Policy", "Settled"]

Settled: TypeAlias = tuple[bool, float, bytes]
"""Of one call: whether it returned, when it completed, and the JSON that came."""

_CHUNK: Final = 1 << 18
_BODY: Final = LENGTH.size + 1
_SECOND: Final = 1_000_000_000
_TIE: Final = 1e-12  # seconds between timers of one nanosecond
_IDLE_PASSES: Final = 32  # loop passes with work left between two looks at the socket


_threads: Final = _thread._count  # pyright: ignore[reportPrivateUsage] - the only count that no thread escapes


class Channel:
    """Sends frames and hands answers to whoever waits for them. Belongs to the thread that made it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.thread = _thread.get_ident()
        self.waiting: dict[int, Callable[[Settled], object]] = {}
        self._recv = sock.recv
        self._send = sock.send
        self._out: list[bytes] = []
        self._in = b""
        self._answers: deque[tuple[int, Settled]] = deque()
        self._next = 0
        self.idle_passes = 0

    def number(self) -> int:
        """The next call's id, from 1, in the order of sending."""
        self._next += 1
        return self._next

    def post(self, kind: int, body: bytes) -> None:
        """Queue a frame; `flush` sends it."""
        self._out.append(LENGTH.pack(len(body) + 1) + bytes((kind,)) + body)

    def flush(self) -> None:
        """Send what is queued. Takes in answers meanwhile, so that both sides never wait for each other."""
        if not self._out:
            return
        data = b"".join(self._out) if len(self._out) > 1 else self._out[0]
        self._out.clear()
        sent = 0
        while True:
            try:
                sent += self._send(data if not sent else memoryview(data)[sent:], socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait_writable()
            if sent == len(data):
                return

    def _wait_writable(self) -> None:
        poll = select.poll()
        poll.register(self.sock, select.POLLIN | select.POLLOUT)
        for _, events in poll.poll():
            if events & ~select.POLLOUT:
                self._take_in(block=False)

    def read_frame(self) -> tuple[int, bytes]:
        """The next frame, waiting for it. Only used before the script starts."""
        data = self._complete(self._in)
        end = LENGTH.size + LENGTH.unpack_from(data)[0]
        self._in = data[end:]
        return data[LENGTH.size], data[LENGTH.size + 1 : end]

    def receive(self, *, block: bool) -> bool:
        """Hand over the next answer, waiting for one when blocking; whether there was one."""
        if not self._answers:
            self._take_in(block=block)
        while self._answers:
            number, settled = self._answers.popleft()
            deliver = self.waiting.pop(number, None)
            if deliver is not None:
                deliver(settled)
                return True
        return False

    def _take_in(self, *, block: bool) -> None:
        """Read answers without handing them over: at least one when blocking, else those that are there."""
        try:
            data = self._in + self._more(0 if block else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if len(data) < LENGTH.size or len(data) - LENGTH.size < LENGTH.unpack_from(data)[0]:
            data = self._complete(data)
        self._in = self._take(data)

    def _complete(self, data: bytes) -> bytes:
        """Read on until the first frame is whole."""
        parts, size, need = [data], len(data), LENGTH.size
        while True:
            if need == LENGTH.size and size >= need:
                parts = [b"".join(parts)]
                need += LENGTH.unpack_from(parts[0])[0]
            if size >= need > LENGTH.size:
                return b"".join(parts)
            parts.append(self._more(0))
            size += len(parts[-1])

    def _more(self, flags: int) -> bytes:
        data = self._recv(_CHUNK, flags)
        if not data:
            os._exit(0)  # the host is gone
        return data

    def _take(self, data: bytes) -> bytes:
        """Queue the answers of the whole frames; returns what is left over."""
        at, size = 0, len(data)
        while size - at >= LENGTH.size:
            end = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
            if end > size:
                break
            number, completed = SETTLED.unpack_from(data, at + _BODY)
            body = data[at + _BODY + SETTLED.size : end]
            self._answers.append((number, (data[at + LENGTH.size] == RETURNED, completed, body)))
            at = end
        return data[at:]

    def wait_for_end(self) -> NoReturn:
        """Wait to be killed, so that the host can look at this process until it has seen the end of the run."""
        while True:
            self._more(0)

    def wait_for(self, number: int) -> Settled:
        """Block until this one call is answered; the answers of others stay in the queue."""
        self.flush()
        seen = 0
        while True:
            for place in range(seen, len(self._answers)):
                if self._answers[place][0] == number:
                    settled = self._answers[place][1]
                    del self._answers[place]
                    return settled
            seen = len(self._answers)
            self._take_in(block=True)


class _Selector(selectors.PollSelector):
    """Waits for the host as well as for what the event loop registered.

    Args:
        channel: to the host.
        timing: decides between timers and answers.
        next_timer: when the loop's next timer is due, by the script's clock; None without timers.
    """

    def __init__(self, channel: Channel, timing: Timing, next_timer: Callable[[], float | None]) -> None:
        super().__init__()
        self._channel = channel
        self._timing = timing
        self._next_timer = next_timer

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        channel = self._channel
        if _thread.get_ident() != channel.thread:
            return super().select(timeout)
        channel.flush()
        self._timing.passes += 1
        if timeout is not None and timeout <= 0:
            return self._pass_by()
        channel.idle_passes = 0
        when = self._next_timer()
        if when is not None:
            return self._wait_timed(when)
        if channel.waiting and self._only_host():
            channel.receive(block=True)
            return []
        return self._wait_for_both()

    def _only_host(self) -> bool:
        """Whether nothing but the host can make a waiting script go on."""
        return not _threads() and self._alone()

    def _alone(self) -> bool:
        return (
            len(self.get_map() or ()) <= 1
        )  # the loop's own wake-up socket, which only threads and signals use

    def _pass_by(self) -> list[tuple[selectors.SelectorKey, int]]:
        """A pass of a loop that has work left; every few of them, something from outside may come in."""
        channel, timing = self._channel, self._timing
        channel.idle_passes += 1
        if timing.replays and (timer := timing.planned(busy=True)) is not None:
            self._hand_in(timer=timer)
        if channel.idle_passes < _IDLE_PASSES:
            return []
        channel.idle_passes = 0
        when = self._next_timer()
        if when is None:
            # A script that does nothing but look again gets its next answer after so many looks, whenever it comes.
            channel.receive(block=bool(channel.waiting) and self._only_host())
        elif not timing.replays:
            if timing.left(when) <= 0:
                timing.take(timer=True, busy=True)
                timing.clock.advance_timer(when)
            elif channel.receive(block=False):
                timing.take(timer=False, busy=True)
        return super().select(0)

    def _wait_timed(self, when: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for the next timer or an answer, whichever comes first; a replay knows which did."""
        channel, timing = self._channel, self._timing
        contested = bool(channel.waiting)
        if timing.replays and self._only_host():
            planned = timing.planned(busy=False) if contested else True
            self._hand_in(timer=planned is not False)
            return []
        while True:
            if channel.receive(block=False):
                timer = False
            elif (left := timing.left(when)) <= 0:
                timer = True
                timing.clock.advance_timer(when)
            elif self._woken(left):
                return super().select(0)
            else:
                continue
            if contested:
                timing.take(timer=timer)
            return super().select(0)

    def _hand_in(self, *, timer: bool) -> None:
        """The next timer or answer, as planned."""
        when = self._next_timer()
        if timer and when is not None:
            self._timing.clock.advance_timer(when)
        elif self._channel.waiting:
            self._channel.receive(block=True)

    def _wait_for_both(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for the host and for threads, without any timer."""
        if not self._channel.receive(block=False):
            self._woken(None)
            self._channel.receive(block=False)
        return super().select(0)

    def _woken(self, seconds: float | None) -> bool:
        """Wait for the host and for what is registered; whether the latter has something."""
        poll = select.poll()
        keys: Mapping[Any, selectors.SelectorKey] = self.get_map() or {}
        for key in keys.values():
            poll.register(key.fd, key.events)
        poll.register(self._channel.sock, select.POLLIN)
        ready = poll.poll(None if seconds is None else math.ceil(seconds * 1000))
        return any(fd != self._channel.sock.fileno() for fd, _ in ready)


class Loop(asyncio.SelectorEventLoop):
    """An ordinary event loop over `_Selector`. In the script's own thread its timers go by the script's clock."""

    def __init__(self, channel: Channel, timing: Timing, real: Callable[[], float]) -> None:
        self._timing = timing
        self._real = real
        self._channel = channel
        self._set: dict[int, int] = {}
        super().__init__(_Selector(channel, timing, self._next_timer))

    def _next_timer(self) -> float | None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        return timers[0].when() if timers else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def only_waits_here(self) -> bool:
        """Whether nothing but the current task could go on now, so that blocking it delays nobody."""
        if self._ready or self._scheduled or self._channel.waiting or _threads():  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            return False
        task = asyncio.current_task(self)
        return task is not None and not task.cancelling()

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        """Set a timer. Of several for one nanosecond of the script's clock, the one that was set first comes first."""
        moment = round(when * _SECOND)
        if self._next_timer() is None:
            self._set.clear()
        before = self._set[moment] = self._set.get(moment, -1) + 1
        return super().call_at(moment / _SECOND + before * _TIE, callback, *args, context=context)

    def time(self) -> float:
        """Seconds by the script's clock; of a loop in another thread, real ones."""
        return self._timing.clock.elapsed() if _thread.get_ident() == self._channel.thread else self._real()


class Policy(asyncio.DefaultEventLoopPolicy):
    """Makes `asyncio.run` and `new_event_loop` in a script give loops that can reach the host."""

    def __init__(self, channel: Channel, timing: Timing, real: Callable[[], float]) -> None:
        super().__init__()
        self._make: Final = lambda: Loop(channel, timing, real)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """A new loop over the same channel."""
        return self._make()
