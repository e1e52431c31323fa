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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from affidavit.analyzers.native.flow.descent import World
from affidavit.analyzers.native.flow.functions import STUBS, Functions
from affidavit.analyzers.native.flow.machines import decoder_of
from affidavit.analyzers.native.flow.switches import JumpResolver
from affidavit.analyzers.native.loading.formats import load
from affidavit.analyzers.native.loading.image import DamagedError, Image, UnsupportedError
from affidavit.analyzers.native.working.report import (
    Outline,
    failed_outline,
    failed_report,
    import_report,
    outlined_row,
    report_of,
)
from affidavit.analyzers.native.working.rounds import Learnt, Rounds, Seen, look, take_in
from affidavit.analyzers.native.working.strings import Strings
from affidavit.analyzers.native.working.wire import BATCH, Frames, Known, Task

__all__ = ["main"]

_MEMORY: Final = 4 << 30
_PR_SET_PDEATHSIG: Final = 1
_LENGTH: Final = struct.Struct("<Q")
_STRINGS: Final = 2000
_APART: Final = {"__stubs": 6}
"""Bytes from one stub to the next where they are not aligned."""

_STEP: Final = 64
"""Functions that a worker looks at before it says how far it is."""


def main() -> None:
    """Arguments: the path, CPU seconds for each process, the leader's descriptor, those of the workers.

    What to do comes through the standard input, as one JSON document: see `Task`.
    """
    path, seconds, own, *others = sys.argv[1:]
    task = Task(*orjson.loads(sys.stdin.buffer.read()))
    _confine(float(seconds))
    frames = Frames(int(own))
    try:
        image = _load(Path(path))
    except (DamagedError, UnsupportedError, OSError, MemoryError) as error:
        frames.send({"kind": "failed", "state": type(error).__name__, "reason": str(error)[:500]})
        return
    leader = _Leader(image, frames, [int(one) for one in others])
    if task.known is None:
        leader.explore()
    else:
        leader.recall(Known(*task.known))
    if task.rows:
        leader.write(task.wanted)
    else:
        leader.outline()


def _load(path: Path) -> Image:
    with path.open("rb") as file:
        return load(file)


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
        self.outlines: dict[int, Outline] = {}
        self.loose: list[int] = []
        self.rounds = Rounds(self.functions, self.world.ending, self.world.decoder.convention.aligned)
        for start, slot in _stubs(image, self.world):
            image.add_stub(start, slot)
        self.stubs = dict(image.stubs)
        self.workers = [self._fork(descriptor, descriptors) for descriptor in descriptors]

    def explore(self) -> None:
        """Round after round, until nothing new is learnt."""
        work = self.rounds.first()
        while work:
            work = self._round(work)
        self.loose = self.rounds.unowned()

    def recall(self, known: Known) -> None:
        """Take in what an earlier exploration learnt."""
        learnt = Learnt(known.called, known.continued, known.parts, known.ending)
        take_in(self.functions, self.world.ending, learnt)
        self.rounds.failed.update({int(start): reason for start, reason in known.failed.items()})
        self.loose = known.loose
        for worker in self.workers:
            _send(worker, ["learnt", tuple(learnt)])

    def outline(self) -> None:
        """Send a row for each function, and the strings with how often code names them."""
        self._look(self.loose)
        named = Counter(text for one in self.outlines.values() for text in one.texts)
        self._found(known=tuple(self._known()))
        listed = sorted([*self.rounds.first(), *self.loose, *self.stubs])
        for at in range(0, len(listed), _STRINGS):
            rows = [self._outlined(start) for start in listed[at : at + _STRINGS]]
            self.frames.send({"kind": "functions", "rows": rows})
        self._strings(named)
        self._end("done")

    def write(self, wanted: list[int] | None) -> None:
        """Have the workers write everything about the wanted functions, or about all, and send all strings."""
        listed = sorted([*self.rounds.first(), *self.loose, *self.stubs] if wanted is None else wanted)
        batches = [listed[at : at + BATCH] for at in range(0, len(listed), BATCH)]
        self._found(batches=len(batches), functions=len(listed))
        for at, worker in enumerate(self.workers):
            _send(worker, ["rows", batches[at :: len(self.workers)], self.rounds.failed])
        if wanted is None:
            self._strings(None)
        self._end("written")

    def _found(self, **more: Any) -> None:
        found = {"kind": "found", "machine": self.image.machine, "limitations": list(self.image.limitations)}
        self.frames.send(found | more)

    def _known(self) -> Known:
        failed = {str(start): reason for start, reason in self.rounds.failed.items()}
        learnt = self.rounds.learnt
        return Known(learnt.called, learnt.continued, learnt.parts, learnt.ending, failed, self.loose)

    def _outlined(self, start: int) -> tuple[dict[str, Any], int, list[tuple[int, str, str]]]:
        """The row of a function, how many references it makes, and what is unknown of it."""
        if start in self.stubs:
            return import_report(start, self.stubs[start])["row"], 0, []
        function = self.functions.by_start[start]
        outline = self.outlines.get(start) or failed_outline(start, "not looked at")
        return outlined_row(function, outline), outline.references, outline.unknowns

    def _strings(self, named: Mapping[int, int] | None) -> None:
        texts = list(self.strings)
        for at in range(0, len(texts), _STRINGS):
            some = [(*text, named[text.address] if named else 0) for text in texts[at : at + _STRINGS]]
            self.frames.send({"kind": "strings", "texts": some})

    def _end(self, word: str) -> None:
        self.frames.send({"kind": "end"})
        for worker in self.workers:
            _send(worker, [word])
            _receive(worker)

    def _round(self, work: list[int]) -> list[int]:
        learnt, again = self.rounds.learn(self._look(work))
        for worker in self.workers:
            _send(worker, ["learnt", tuple(learnt)])
        return again

    def _look(self, work: list[int]) -> list[Seen]:
        """Have the workers look at functions; what each tells of others. What it says of itself is kept."""
        shares = [work[at :: len(self.workers)] for at in range(len(self.workers))]
        for worker, share in zip(self.workers, shares, strict=True):
            _send(worker, ["look", share])
        seen: list[Seen] = []
        for worker, share in zip(self.workers, shares, strict=True):
            done = 0
            while done < len(share):
                found = _receive(worker)
                done += len(found)
                for told, outline in found:
                    seen.append(Seen(*told))
                    self.outlines[seen[-1].start] = Outline(*outline)
                self.frames.send({"kind": "progress", "done": len(seen), "total": len(work)})
        return seen

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
            elif kind == "rows":
                self._rows(rest[0], dict(rest[1]))
            else:
                _send(self.leading, [kind])
                return

    def _look(self, starts: list[int]) -> None:
        for at in range(0, len(starts), _STEP):
            found = [look(self.world, self.strings, start) for start in starts[at : at + _STEP]]
            _send(self.leading, [(tuple(seen), tuple(outline)) for seen, outline in found])

    def _rows(self, batches: list[list[int]], failed: dict[str, str]) -> None:
        reasons = {int(start): reason for start, reason in failed.items()}
        for batch in batches:
            self.frames.send([self._report(start, reasons.get(start)) for start in batch])

    def _report(self, start: int, failed: str | None) -> dict[str, Any]:
        if start in self.stubs:
            return import_report(start, self.stubs[start])
        function = self.world.functions.by_start[start]
        if failed is None:
            try:
                return report_of(self.world, self.strings, function, self.stubs)
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
        if area.executable and area.name.startswith(STUBS):
            last = -1
            for start in range(area.start, area.end, _APART.get(area.name, 8)):
                slot = world.decoder.stub(start)
                if slot is not None and slot in image.imports and slot != last:
                    last = slot
                    yield start, slot
    for start in image.thunks:
        slot = world.decoder.stub(start)
        if slot is not None and slot in image.imports:
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
