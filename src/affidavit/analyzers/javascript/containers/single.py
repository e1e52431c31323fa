"""One source file as a container with one entry, named as the file is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from affidavit.analyzers.javascript.containers.entry import Entry, unsafe_name
from affidavit.analyzers.javascript.containers.rooted import read_fd
from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.record import Limitation

__all__ = ["SUFFIXES", "SingleContainer"]

FORMAT: Final = "source-file"

SUFFIXES: Final = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json"})


class SingleContainer:
    """An open source file.

    Raises:
        NotFoundError: `artifact-not-found`.
        UsageError: `artifact-unsupported` for what is no regular file.
    """

    def __init__(self, path: Path) -> None:
        if unsafe_name(path.name):
            raise UsageError("artifact-unsupported", f"{path}: a file name that is not valid Unicode")
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise UsageError("artifact-unsupported", f"{path}: not a regular file")
        self.format = FORMAT
        # The executable flag of a loose file is an accident of where it lies.
        self.entries: tuple[Entry, ...] = (Entry(path=path.name, kind="file", size=status.st_size),)
        self.limitations: tuple[Limitation, ...] = ()

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of the file, at most `CHUNK` at a time. Raises `EntryError`."""
        return read_fd(self._fd, entry.path, offset=0, size=entry.size)

    def close(self) -> None:
        """Release the file. Harmless when repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
