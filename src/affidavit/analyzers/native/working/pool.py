"""Starts the processes that read a binary, hears what they say, and stops them when that takes too long.

What a binary may take is CPU time by its size, so a busy machine changes nothing; the wall clock only backs it up.
Nothing is left running when the iteration ends, however it ends.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import orjson

from affidavit.analyzers.native.working.wire import LENGTH, Task
from affidavit.errors import FailedError

__all__ = ["Allowance", "Workers"]

_BOOT: Final = (
    "import sys; cut = sys.argv.index('--'); sys.path[:] = sys.argv[1:cut]; sys.argv[1:] = sys.argv[cut + 1:]; "
    "from affidavit.analyzers.native.working.worker import main; main()"
)
_INHERITED: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT")  # without which some Python builds do not start
_LARGEST: Final = 1 << 30
_READ: Final = 1 << 18
_LITTLE: Final = 256 << 10
"""Below this size a second process costs more than it brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """CPU seconds that each process may take: `base + per_mebibyte * size`, and ten times that by the clock."""

    base: float = 60.0
    per_mebibyte: float = 20.0

    def cpu(self, size: int) -> float:
        """CPU seconds for a file of `size` bytes."""
        return self.base + self.per_mebibyte * size / (1 << 20)


class Workers:
    """The processes of one analysis. Use as a context manager.

    Args:
        path: the binary.
        size: of the file in bytes.
        task: what they do.
        processes: how many decode; by default one for a small file, else one per core (at most 8).
        allowance: how long it may take.

    Raises:
        FailedError: `analysis-failed` when no process can be started.
    """

    def __init__(
        self,
        path: Path,
        size: int,
        task: Task,
        *,
        processes: int | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.count = processes or (1 if size < _LITTLE else min(8, os.cpu_count() or 1))
        seconds = (allowance or Allowance()).cpu(size)
        self._deadline = time.monotonic() + 10 * seconds
        self._errors = tempfile.TemporaryFile(prefix="affidavit-")  # noqa: SIM115 - closed by __exit__
        pipes = [os.pipe() for _ in range(self.count + 1)]
        self._readers = [reader for reader, _ in pipes]
        self._buffers = [bytearray() for _ in pipes]
        writers = [writer for _, writer in pipes]
        paths = [one for one in sys.path if one]
        told = tempfile.TemporaryFile(prefix="affidavit-")  # noqa: SIM115 - closed below
        try:
            told.write(json.dumps(task).encode())
            told.seek(0)
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _BOOT, *paths, "--"),
                    *(str(path), f"{seconds:.1f}", *map(str, writers)),
                ],
                stdin=told,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=writers,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
                process_group=0,  # the terminal's Ctrl-C goes to us alone, and we stop them
            )
        except OSError as error:
            raise FailedError("analysis-failed", f"no process can be started: {error}") from error
        finally:
            told.close()
            for writer in writers:
                os.close(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            os.close(reader)
        self._errors.close()

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the leader says, up to its last word or to `found`."""
        while True:
            message: dict[str, Any] = self._next(0)
            yield message
            if message["kind"] in ("found", "failed", "end"):
                return

    def batches(self, count: int) -> Iterator[list[dict[str, Any]]]:
        """The rows of the functions, in order of address."""
        for at in range(count):
            yield self._next(1 + at % self.count)

    def _next(self, stream: int) -> Any:
        """The next document of a stream.

        Raises:
            FailedError: `analysis-failed`: it took too long, or the process is gone.
        """
        buffer = self._buffers[stream]
        wanted = LENGTH.size
        while True:
            if len(buffer) >= LENGTH.size:
                (size,) = LENGTH.unpack_from(buffer)
                if size > _LARGEST:
                    raise FailedError("analysis-failed", "a decoding process answered nonsense")
                wanted = LENGTH.size + size
                if len(buffer) >= wanted:
                    document = bytes(buffer[LENGTH.size : wanted])
                    del buffer[:wanted]
                    return orjson.loads(document)
            self._wait(stream)
            data = os.read(self._readers[stream], max(_READ, wanted - len(buffer)))
            if not data:
                raise self._ended()
            buffer += data

    def _wait(self, stream: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._readers[stream], selectors.EVENT_READ)
            if not selector.select(max(0.0, self._deadline - time.monotonic())):
                raise _too_long()

    def _ended(self) -> FailedError:
        """Why a stream ended early."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        status = self._process.returncode
        self._errors.seek(0)
        said = self._errors.read(4000).decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
        if status == -signal.SIGPROF or (not said and status in (None, 0, 1)):
            return _too_long()
        return FailedError(
            "analysis-failed",
            f"a decoding process ended early ({status}){': ' + said if said else ''}",
            hint="the file may be made to break decoders; please report it",
        )


def _too_long() -> FailedError:
    return FailedError(
        "analysis-failed",
        "decoding took more time than the size of the file allows, or a process was ended",
        hint="is this file what it seems?",
    )
