"""Files below one directory, opened so that the kernel itself never leaves it.

Every component is opened relative to its parent without following links, so neither a link in the tree nor one that
is swapped in while reading leads outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.analyzers.javascript.containers.entry import CHUNK, EntryError

__all__ = ["Found", "Root", "read_fd"]

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Found:
    """One directory entry as it was while listing."""

    name: str
    status: os.stat_result
    link: str | None


class Root:
    """A directory that paths are relative to.

    Raises:
        OSError: when the directory itself cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC)

    def close(self) -> None:
        """Release the directory. Harmless when repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def list(self, directory: str) -> list[Found]:
        """The entries of a directory, in no particular order. Raises `OSError`."""
        fd = self._descend(directory.split("/") if directory else [])
        try:
            found: list[Found] = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    link = os.readlink(entry.name, dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
                    found.append(Found(entry.name, status, link))
            return found
        finally:
            os.close(fd)

    def open(self, path: str) -> int:
        """A descriptor of the regular file at `path`.

        Raises:
            EntryError: `entry-missing`, `entry-unsafe` or `entry-unreadable`.
        """
        *parents, name = path.split("/")
        try:
            parent = self._descend(parents)
            try:
                fd = os.open(name, _FILE, dir_fd=parent)
            finally:
                os.close(parent)
        except FileNotFoundError as error:
            raise EntryError("entry-missing", path, "no file is there") from error
        except (NotADirectoryError, OSError, ValueError) as error:
            raise EntryError("entry-unreadable", path, _reason(error)) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise EntryError("entry-unsafe", path, "not a regular file")
        return fd

    def _descend(self, names: list[str]) -> int:
        fd = os.dup(self._fd)
        for name in names:
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd


def _reason(error: Exception) -> str:
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)


def read_fd(fd: int, path: str, *, offset: int, size: int) -> Iterator[bytes]:
    """`size` bytes from `offset`, at most `CHUNK` at a time; a shorter file raises `EntryError(entry-damaged)`.

    Positional reads, not a mapping: a mapped file that someone truncates ends this process with SIGBUS.
    """
    end = offset + size
    while offset < end:
        try:
            data = os.pread(fd, min(CHUNK, end - offset), offset)
        except OSError as error:
            raise EntryError("entry-unreadable", path, _reason(error)) from error
        if not data:
            raise EntryError("entry-damaged", path, f"the file ends {end - offset:,} bytes early")
        offset += len(data)
        yield data
