"""What a script prints: both streams, in order, into memory that the host shares, so that a kill loses nothing.

The host reads it after the child is gone. Beyond the limit text is only counted, whatever the flood.
"""

from __future__ import annotations

import io
import mmap
import sys
import threading
from typing import Any, Final

from affidavit.runtime.engines.cpython.wire import OUTPUT_BYTES, OUTPUT_HEADER

__all__ = ["Output"]

_CONTINUING: Final = bytes(range(0x80, 0xC0))  # bytes that continue a character


class Output(io.BufferedIOBase):
    """The byte sink below `sys.stdout` and `sys.stderr`.

    Args:
        fd: the shared file, `OUTPUT_BYTES` bytes long.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._memory = mmap.mmap(fd, OUTPUT_BYTES)
        self._lock = threading.RLock()
        self._used = 0
        self._dropped = 0
        self._limit = 0

        stream: Any = self  # a buffer without a name, which TextIOWrapper does not ask for
        for name in ("stdout", "stderr"):
            wrapper = io.TextIOWrapper(
                stream, encoding="utf-8", errors="backslashreplace", write_through=True
            )
            setattr(sys, name, wrapper)
            setattr(sys, f"__{name}__", wrapper)
        sys.stdin = io.StringIO()
        sys.__stdin__ = sys.stdin

    def allow(self, limit: int) -> None:
        """Keep at most so many bytes; nothing is kept before."""
        self._limit = min(limit, OUTPUT_BYTES - OUTPUT_HEADER.size)
        self._used = self._dropped = 0
        OUTPUT_HEADER.pack_into(self._memory, 0, 0, 0)

    def writable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """A script that closes one stream keeps the other."""

    def write(self, data: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keep what fits, on a character boundary, and count the rest."""
        size = len(data)
        with self._lock:
            start = OUTPUT_HEADER.size + self._used
            room = self._limit - self._used
            if size <= room and not self._dropped:
                self._memory[start : start + size] = data
                self._used += size
            else:
                kept = b"" if self._dropped else _whole(bytes(memoryview(data)[: max(room, 0)]))
                self._memory[start : start + len(kept)] = kept
                self._used += len(kept)
                self._dropped += _characters(memoryview(data)[len(kept) :])
            OUTPUT_HEADER.pack_into(self._memory, 0, self._used, self._dropped)
        return size


def _whole(data: bytes) -> bytes:
    """Without a cut character at the end."""
    return data.decode("utf-8", "ignore").encode("utf-8", "ignore")


def _characters(data: memoryview) -> int:
    """Count characters in pieces, so that counting a flood needs no memory of its size."""
    step = 1 << 16
    return sum(
        len(bytes(data[at : at + step]).translate(None, _CONTINUING)) for at in range(0, len(data), step)
    )
