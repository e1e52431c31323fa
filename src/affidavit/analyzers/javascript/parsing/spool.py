"""A file beside memory, for what waits until its turn comes."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from affidavit.errors import FailedError

__all__ = ["Spool"]

_BUFFER: Final = 1 << 20
_LENGTH: Final = 5
"""Bytes of the length before each byte string."""


class Spool:
    """Keeps byte strings in an anonymous temporary file, in whatever number; for one thread.

    Raises:
        FailedError: `store-full`, from every method that writes.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="affidavit-", buffering=0)  # noqa: SIM115 - closed by close()
        self._written = 0
        self._buffer = bytearray()

    def keep(self, data: bytes) -> int:
        """Append a byte string; its place."""
        place = self._written + len(self._buffer)
        self._buffer += len(data).to_bytes(_LENGTH, "little")
        self._buffer += data
        if len(self._buffer) > _BUFFER:
            self._flush()
        return place

    def read(self, place: int) -> bytes:
        """The byte string at a place."""
        size = int.from_bytes(self._read(place, _LENGTH), "little")
        return self._read(place + _LENGTH, size)

    def _read(self, start: int, size: int) -> bytes:
        if start >= self._written:
            return bytes(self._buffer[start - self._written : start - self._written + size])
        parts: list[bytes] = []
        while size:
            part = os.pread(self._file.fileno(), size, start)
            if not part:
                raise OSError("a temporary file is shorter than it was written")
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Let the file go. Harmless when repeated."""
        self._file.close()

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        try:
            while view:
                written = self._file.write(view)
                self._written += written
                view = view[written:]
        except OSError as error:
            raise FailedError(
                "store-full",
                f"a temporary file cannot be written: {error.strerror}",
                hint="free some room where temporary files lie",
                retryable=True,
            ) from error
        finally:
            view.release()
        self._buffer = bytearray()
