"""The processes that read and decode a binary: one leads, its children do the work, all can be killed at any time.

The leader is started with the file's path and a file descriptor for each worker and itself. It reads the file, so that
its children share the memory, and then says what it found (`working.wire`): progress, and at the end the binary's
summary. Each worker writes the rows of its functions to its own descriptor: batch `n` comes from worker `n` modulo
their number, so the reader needs no more than one batch at a time and the order is always the same.

Leader and workers speak in rounds (`working.rounds`) over pairs of sockets.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from affidavit.analyzers.native.flow.descent import World
from affidavit.analyzers.native.flow.functions import Functions
from affidavit.analyzers.native.flow.machines import decoder_of
from affidavit.analyzers.native.flow.switches import JumpResolver
from affidavit.analyzers.native.loading.elf import load_elf
from affidavit.analyzers.native.loading.image import DamagedError, Image, UnsupportedError
from affidavit.analyzers.native.working.report import failed_report, import_report, report_of
from affidavit.analyzers.native.working.rounds import Learnt, Rounds, as_seen, look, take_in
from affidavit.analyzers.native.working.strings import Strings
from affidavit.analyzers.native.working.wire import BATCH, Frames

__all__ = ["main"]

_MEMORY: Final = 4 << 30
_PR_SET_PDEATHSIG: Final = 1
_LENGTH: Final = struct.Struct("<Q")
_STRINGS: Final = 2000
_STEP: Final = 64
"""Functions that a worker looks at before it says how far it is."""


def main() -> None:
    """Arguments: the path, CPU seconds for each process, the leader's descriptor, those of the workers."""
    path, seconds, own, *others = sys.argv[1:]
    _confine(float(seconds))
    frames = Frames(int(own))
    try:
        image = _load(Path(path))
    except (DamagedError, UnsupportedError, OSError, MemoryError) as error:
        frames.send({"kind": "failed", "state": type(error).__name__, "reason": str(error)[:500]})
        return
    _Leader(image, frames, [int(one) for one in others]).run()


def _load(path: Path) -> Image:
    with path.open("rb") as file:
        return load_elf(file)


def _confine(seconds: float) -> None:
    """Bound this process, and end it with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _world(image: Image, functions: Functions) -> World:
    decoder = decoder_of(image)
    return World(image, functions, decoder, set(), JumpResolver(image, decoder.convention))


class _Leader:
    """Loads, divides the work, and brings together what was found."""

    def __init__(self, image: Image, frames: Frames, descriptors: Sequence[int]) -> None:
        self.image = image
        self.frames = frames
        self.functions = Functions(image)
        self.strings = Strings(image)
        self.world = _world(image, self.functions)
        self.rounds = Rounds(self.functions, self.world.ending, self.world.decoder.convention.aligned)
        for start, slot in _stubs(image, self.world):
            image.add_stub(start, slot)
        self.stubs = dict(image.stubs)
        self.workers = [self._fork(descriptor, descriptors) for descriptor in descriptors]

    def run(self) -> None:
        """Round after round, then the rows."""
        work = self.rounds.first()
        while work:
            work = self._round(work)
        listed = sorted(
            [("function", start) for start in [*self.rounds.first(), *self.rounds.unowned()]]
            + [("import", start) for start in self.stubs],
            key=lambda one: one[1],
        )
        batches = [listed[at : at + BATCH] for at in range(0, len(listed), BATCH)]
        limitations = list(self.image.limitations)
        self.frames.send(
            {
                "kind": "found",
                "machine": self.image.machine,
                "batches": len(batches),
                "functions": len(listed),
                "limitations": limitations,
            }
        )
        for at, worker in enumerate(self.workers):
            _send(worker, ["rows", batches[at :: len(self.workers)], self.rounds.failed])
        texts = list(self.strings)
        for at in range(0, len(texts), _STRINGS):
            self.frames.send(
                {"kind": "strings", "texts": [tuple(text) for text in texts[at : at + _STRINGS]]}
            )
        self.frames.send({"kind": "end"})
        for worker in self.workers:
            _receive(worker)

    def _round(self, work: list[int]) -> list[int]:
        shares = [work[at :: len(self.workers)] for at in range(len(self.workers))]
        for worker, share in zip(self.workers, shares, strict=True):
            _send(worker, ["look", share])
        seen: list[Any] = []
        for worker, share in zip(self.workers, shares, strict=True):
            done = 0
            while done < len(share):
                found = _receive(worker)
                done += len(found)
                seen += found
                self.frames.send({"kind": "progress", "done": len(seen), "total": len(work)})
        learnt, again = self.rounds.learn(as_seen(seen))
        for worker in self.workers:
            _send(worker, ["learnt", tuple(learnt)])
        return again

    def _fork(self, descriptor: int, descriptors: Sequence[int]) -> socket.socket:
        ours, theirs = socket.socketpair()
        gc.freeze()
        if os.fork():
            theirs.close()
            os.close(descriptor)
            return ours
        code = 1
        try:
            ours.close()
            for other in descriptors:
                if other != descriptor:
                    with suppress(OSError):
                        os.close(other)
            with suppress(OSError, AttributeError):
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.setitimer(signal.ITIMER_PROF, signal.getitimer(signal.ITIMER_PROF)[0])
            _Worker(self, theirs, Frames(descriptor)).run()
            code = 0
        except BaseException:  # told to the one who reads our errors; nothing of the leader may run on here
            traceback.print_exc()
        finally:
            os._exit(code)


class _Worker:
    """Does what its leader says until that is gone."""

    def __init__(self, leader: _Leader, leading: socket.socket, frames: Frames) -> None:
        self.leading = leading
        self.frames = frames
        self.world = leader.world
        self.strings = leader.strings
        self.stubs = leader.stubs

    def run(self) -> None:
        """Serve."""
        while True:
            kind, *rest = _receive(self.leading)
            if kind == "look":
                self._look(rest[0])
            elif kind == "learnt":
                take_in(self.world.functions, self.world.ending, Learnt(*rest[0]))
            else:
                self._rows(rest[0], dict(rest[1]))
                _send(self.leading, ["done"])
                return

    def _look(self, starts: list[int]) -> None:
        for at in range(0, len(starts), _STEP):
            _send(self.leading, [tuple(look(self.world, start)) for start in starts[at : at + _STEP]])

    def _rows(self, batches: list[list[tuple[str, int]]], failed: dict[str, str]) -> None:
        reasons = {int(start): reason for start, reason in failed.items()}
        for batch in batches:
            self.frames.send([self._report(kind, start, reasons.get(start)) for kind, start in batch])

    def _report(self, kind: str, start: int, failed: str | None) -> dict[str, Any]:
        if kind == "import":
            return import_report(start, self.stubs[start])
        function = self.world.functions.by_start[start]
        if failed is None:
            try:
                return report_of(self.world, self.strings, function)
            except (
                ArithmeticError,
                LookupError,
                ValueError,
                TypeError,
                AttributeError,
                RecursionError,
            ) as error:
                failed = f"{type(error).__name__}: {error}"[:200]
        return failed_report(function, failed)


def _stubs(image: Image, world: World) -> Iterator[tuple[int, int]]:
    """The stubs of the linkage table, each with its slot: every place in its sections whose code is one."""
    for area in image.areas:
        if area.executable and area.name.startswith(".plt"):
            last = -1
            for start in range(area.start, area.end, 8):
                slot = world.decoder.stub(start)
                if slot is not None and slot in image.imports and slot != last:
                    last = slot
                    yield start, slot


def _send(connection: socket.socket, value: Any) -> None:
    data = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    """The next value; ends the process where the other side is gone."""
    (size,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return orjson.loads(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        data = connection.recv(min(size, 1 << 20))
        if not data:
            os._exit(1)
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


if __name__ == "__main__":
    main()
