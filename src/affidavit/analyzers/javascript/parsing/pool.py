"""Parser processes: source files in, facts out, and no file can take the rest with it.

A file that needs more CPU time than its size allows is given up, its process killed and replaced. The allowance is CPU
time, so a busy machine changes nothing; the wall clock only backs it up. A process that dies otherwise gets its file
once more; then the file is given up as well. Nothing is left running when the iteration ends, however it ends.

Memory is shared out: each file may take some by its size, a process that takes more is ended, and its file is read once
more in the way that takes less (see `extract`). So the sum is bounded whatever the files hold.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Literal, TypeAlias

from affidavit.analyzers.javascript.parsing.worker import ANSWER, READY, REQUEST
from affidavit.errors import FailedError

__all__ = ["Allowance", "Job", "Outcome", "parse_all"]

_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from affidavit.analyzers.javascript.parsing.worker import main; main()"
)
_AHEAD: Final = 64 << 10
"""Bytes that may wait in a process behind the file that it reads."""
_ROOM: Final = 240 << 20
"""Bytes of memory for the syntax trees of all processes together, but for one larger file alone."""
_HELD: Final = 300
"""Bytes of memory that every file takes in the process that listed it; they are taken off `_ROOM`."""
_SHARE: Final = 96 << 20
"""Bytes that a file waits for, where its tree might need them, before it is read beside others."""
_USUAL: Final = 52
"""Bytes of tree for a byte of source that a file may take however large it is: most take 20 to 50."""
_MOST: Final = 400
"""Bytes of tree for a byte of the densest source."""
_LEAST: Final = 12 << 20
"""Bytes that any file may take."""
_NO_ROOM: Final = "reading it takes more memory than a file of its size may"
_REFUSED_MEMORY: Final = frozenset({-signal.SIGABRT, -signal.SIGSEGV})
"""How a parser ends that is refused memory; it looks at no result of `malloc`."""
_MEMORY_ERRORS: Final = frozenset({"MemoryError", "NotThinnedError"})
_LARGE: Final = 128 << 10
"""Files above it go first, so that none is begun last and alone."""
_LITTLE: Final = 192 << 10
"""Below this a second process costs more than it brings."""
_PIPE: Final = 256 << 10
_LARGEST_ANSWER: Final = 1 << 30
_START_SECONDS: Final = 60.0
_INHERITED: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # without which some Python builds do not start


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """CPU seconds that a file may take: `base + per_mebibyte * size`, and ten times that by the clock."""

    base: float = 20.0
    per_mebibyte: float = 20.0

    def cpu(self, size: int) -> float:
        """CPU seconds for a file of `size` bytes."""
        return self.base + self.per_mebibyte * size / (1 << 20)

    def wall(self, size: int) -> float:
        """Seconds by the clock for a file of `size` bytes."""
        return 10 * self.cpu(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One file to parse: its place among the jobs, its language's number, its size, and how to get its bytes.

    `load` is given the place, and returns None when the bytes cannot be had; that file then has no outcome.
    """

    index: int
    language: int
    size: int
    load: Callable[[int], bytes | None]


State: TypeAlias = Literal["facts", "failed", "timed-out"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: encoded facts, or why there are none."""

    index: int
    state: State
    body: bytes = b""
    reason: str = ""


@dataclass(slots=True)
class _Sent:
    job: Job
    data: bytes
    attempts: int
    room: int = 0
    thinned: bool = False


@dataclass(slots=True, eq=False)
class _Process:
    """One child: what is to be written to it, what it was sent and has not answered, what it wrote.

    `load` counts the bytes of `sent`, `room` is the memory that they may take; `writing` tells whether the selector
    waits until its input takes more.
    """

    popen: subprocess.Popen[bytes]
    started: float
    ready: bool = False
    output: deque[memoryview] = field(default_factory=deque[memoryview])
    sent: deque[_Sent] = field(default_factory=deque[_Sent])
    answer: bytearray = field(default_factory=bytearray)
    since: float = 0.0
    load: int = 0
    room: int = 0
    writing: bool = False

    @property
    def stdin(self) -> IO[bytes]:
        assert self.popen.stdin is not None
        return self.popen.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.popen.stdout is not None
        return self.popen.stdout


def parse_all(
    jobs: Sequence[Job], *, processes: int | None = None, allowance: Allowance | None = None
) -> Generator[Outcome]:
    """Parse files in parallel: large ones first, by size, then the others about in the order of their places.

    Args:
        jobs: the files.
        processes: how many at once; by default one for little work, else one per core (at most 8).
        allowance: how long a file may take.

    Raises:
        FailedError: `analysis-failed` when a parser process cannot be started at all.
    """
    if not jobs:
        return
    work = sum(job.size for job in jobs)
    count = processes or (1 if work < _LITTLE else min(8, len(jobs), os.cpu_count() or 1))
    pool = _Pool(jobs, count, allowance or Allowance())
    try:
        yield from pool.run()
    finally:
        pool.close()


class _Pool:
    def __init__(self, jobs: Sequence[Job], count: int, allowance: Allowance) -> None:
        large = (job for job in jobs if job.size > _LARGE)
        self._jobs = jobs
        self._held = _HELD * len(jobs)
        self._large = deque(sorted(large, key=lambda job: (-job.size, job.index)))
        # Places only: there may be hundreds of thousands.
        self._small = deque(place for place, job in enumerate(jobs) if job.size <= _LARGE)
        self._again: deque[_Sent] = deque()
        self._allowance = allowance
        self._count = count
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self._errors = tempfile.TemporaryFile(prefix="affidavit-")  # noqa: SIM115 - closed by close()

    def run(self) -> Generator[Outcome]:
        while self._unsent() or any(process.sent for process in self._processes):
            self._feed()
            if not any(process.sent for process in self._processes):
                continue
            for key, events in self._selector.select(self._patience()):
                process: _Process = key.data
                if process not in self._processes:
                    continue
                if events & selectors.EVENT_WRITE:
                    self._write(process)
                if events & selectors.EVENT_READ:
                    yield from self._read(process)
            yield from self._expire()

    def _unsent(self) -> int:
        return len(self._large) + len(self._small) + len(self._again)

    def close(self) -> None:
        for process in list(self._processes):
            self._stop(process)
        self._selector.close()
        self._errors.close()

    # processes

    def _start(self) -> _Process:
        paths = [path for path in sys.path if path]
        try:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, *paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
                process_group=0,  # the terminal's Ctrl-C goes to us alone, and we stop them
            )
        except OSError as error:
            raise FailedError("analysis-failed", f"a parser process cannot be started: {error}") from error
        process = _Process(popen, time.monotonic())
        self._processes.append(process)
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, process)
        return process

    def _stop(self, process: _Process) -> None:
        self._processes.remove(process)
        process.popen.kill()
        self._selector.unregister(process.stdout)
        if process.writing:
            self._selector.unregister(process.stdin)
        process.stdin.close()
        process.stdout.close()
        process.popen.wait()

    # sending

    def _feed(self) -> None:
        while len(self._processes) < min(self._count, self._unsent()):
            self._start()
        for process in sorted(self._processes, key=lambda one: one.load):
            while (one := self._next(process)) is not None:
                self._send(process, one)

    def _next(self, process: _Process) -> _Sent | None:
        """The next file for a process: the largest that there is room for, else the next small one."""
        if self._again:
            # A file that ended its process is tried alone, so that it cannot be blamed for another.
            is_free = not process.sent and self._has_room(len(self._again[0].data), process)
            return self._again.popleft() if is_free else None
        while (job := self._take(process)) is not None:
            data = job.load(job.index)
            if data is not None:
                return _Sent(job, data, 0)
        return None

    def _take(self, process: _Process) -> Job | None:
        if self._large and not process.sent and self._has_room(self._large[0].size, process):
            return self._large.popleft()
        if not self._small:
            return None
        job = self._jobs[self._small[0]]
        if not self._has_room(job.size, process):
            return None
        if process.sent and process.load + job.size > _AHEAD:
            return None
        self._small.popleft()
        return job

    def _has_room(self, size: int, process: _Process) -> bool:
        others = self._taken(process)
        return not others or others + self._wanted(size) <= _ROOM - self._held

    def _wanted(self, size: int) -> int:
        """Bytes of memory that have to be free before a file of this size is read beside others."""
        usual = _LEAST + _USUAL * size
        wanted = _LEAST + min(_MOST * size, max(_SHARE, _USUAL * size))
        return min(wanted, max(_ROOM - self._held, usual - self._held))

    def _taken(self, process: _Process) -> int:
        """The memory that all other processes may take."""
        return sum(one.room for one in self._processes if one is not process)

    def _send(self, process: _Process, one: _Sent) -> None:
        if not process.sent:
            process.since = time.monotonic()
        size = len(one.data)
        one.room = self._wanted(size)
        if not self._unsent():
            one.room = max(one.room, _ROOM - self._held - self._taken(process))
        process.sent.append(one)
        process.load += size
        process.room = max(process.room, one.room)
        cpu = max(1, round(1000 * self._allowance.cpu(size)))
        header = REQUEST.pack(one.job.index, size, cpu, one.room >> 10, one.job.language, one.thinned)
        process.output += (memoryview(header), memoryview(one.data))
        self._write(process)

    def _write(self, process: _Process) -> None:
        fd = process.stdin.fileno()
        try:
            while process.output:
                written = os.write(fd, process.output[0][:_PIPE])
                process.output[0] = process.output[0][written:]
                if not process.output[0]:
                    process.output.popleft()
        except BlockingIOError:
            pass
        except BrokenPipeError:
            process.output.clear()  # its end is seen where its answers are read
        if process.output and not process.writing:
            self._selector.register(process.stdin, selectors.EVENT_WRITE, process)
        elif process.writing and not process.output:
            self._selector.unregister(process.stdin)
        process.writing = bool(process.output)

    # receiving

    def _read(self, process: _Process) -> Generator[Outcome]:
        try:
            data = os.read(process.stdout.fileno(), _PIPE)
        except BlockingIOError:
            return
        if not data:
            yield from self._ended(process)
            return
        process.answer += data
        while len(process.answer) >= ANSWER.size:
            index, state, size = ANSWER.unpack_from(process.answer)
            if size > _LARGEST_ANSWER:
                yield from self._replace(
                    process, timed_out=False, reason="its parser process answered nonsense"
                )
                return
            if len(process.answer) < ANSWER.size + size:
                break
            body = bytes(process.answer[ANSWER.size : ANSWER.size + size])
            del process.answer[: ANSWER.size + size]
            process.since = time.monotonic()
            if index == READY:
                process.ready = True
            elif process.sent and process.sent[0].job.index == index:
                one = process.sent.popleft()
                process.load -= len(one.data)
                process.room = max((other.room for other in process.sent), default=0)
                yield from self._answered(one, state=bool(state), body=body)

    def _answered(self, one: _Sent, *, state: bool, body: bytes) -> Generator[Outcome]:
        if state:
            yield Outcome(one.job.index, "facts", body)
            return
        name = body.decode("ascii", "replace")
        if name == "MemoryError" and not one.attempts:
            self._try_again(one, thinned=True)
        else:
            yield Outcome(one.job.index, "failed", b"", _NO_ROOM if name in _MEMORY_ERRORS else name)

    def _try_again(self, one: _Sent, *, thinned: bool) -> None:
        one.attempts, one.thinned = 1, thinned
        self._again.append(one)

    def _ended(self, process: _Process) -> Generator[Outcome]:
        process.popen.wait()
        status = process.popen.returncode
        if not process.ready:
            self._errors.seek(0)
            said = self._errors.read(2000).decode("utf-8", "replace").strip()
            raise FailedError("analysis-failed", f"a parser process ended while starting ({status}): {said}")
        yield from self._replace(process, timed_out=status == -signal.SIGPROF, reason=_status_text(status))

    def _replace(self, process: _Process, *, timed_out: bool, reason: str) -> Generator[Outcome]:
        """Stop a process; the file that it was reading is to blame, the others go to another one."""
        sent = list(process.sent)
        self._stop(process)
        if not sent:
            return
        first, *rest = sent
        # The files behind the first were not begun: they go back in their order.
        self._small.extendleft(one.job.index for one in reversed(rest) if not one.attempts)
        if timed_out:
            yield Outcome(first.job.index, "timed-out", b"", reason)
        elif first.attempts:
            yield Outcome(first.job.index, "failed", b"", reason)
        else:
            self._try_again(first, thinned=process.popen.returncode in _REFUSED_MEMORY)

    def _expire(self) -> Generator[Outcome]:
        now = time.monotonic()
        for process in list(self._processes):
            if now >= self._deadline(process):
                if not process.ready:
                    raise FailedError(
                        "analysis-failed", "a parser process did not start in time", retryable=True
                    )
                yield from self._replace(
                    process, timed_out=True, reason="no answer within the time by the clock"
                )

    def _deadline(self, process: _Process) -> float:
        if not process.ready:
            return process.started + _START_SECONDS
        if not process.sent:
            return float("inf")
        return process.since + self._allowance.wall(len(process.sent[0].data))

    def _patience(self) -> float:
        nearest = min(self._deadline(process) for process in self._processes)
        return max(0.0, min(nearest - time.monotonic(), 3600.0))


def _status_text(status: int) -> str:
    if status == -signal.SIGPROF:
        return "more CPU time than its size allows"
    if status < 0:
        often = f", as when {_NO_ROOM}" if status in _REFUSED_MEMORY else ""
        return f"its parser process was ended by {signal.Signals(-status).name}{often}"
    return f"its parser process ended with status {status}"
