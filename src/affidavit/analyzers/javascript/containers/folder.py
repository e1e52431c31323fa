"""Folders as containers: every file below them, `node_modules` included, links listed and never followed outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from affidavit.analyzers.javascript.containers.entry import (
    MAX_ENTRIES,
    Entry,
    limitation,
    unsafe_link,
    unsafe_name,
)
from affidavit.analyzers.javascript.containers.rooted import Found, Root, read_fd
from affidavit.analyzers.javascript.containers.tree import join
from affidavit.errors import FailedError, NotFoundError
from affidavit.evidence.record import Limitation

__all__ = ["SKIPPED", "FolderContainer"]

FORMAT: Final = "folder"

SKIPPED: Final = frozenset({".git", ".hg", ".svn"})
"""Directories of version control: their content changes without the tree changing, and no application reads them."""

_MAX_DEPTH: Final = 256
_MAX_BYTES: Final = 64 << 30
"""Bytes below a folder; above it, it is a disk and not an application."""


class FolderContainer:
    """A folder as it was when listed.

    Raises:
        NotFoundError: `artifact-not-found`.
        FailedError: `value-too-large` above `MAX_ENTRIES` entries.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._root = Root(path)
        except OSError as error:
            raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error
        self._entries: list[Entry] = []
        self._limitations: list[Limitation] = []
        self._stats: list[tuple[str, int, int, int, int]] = []
        self._bytes = 0
        try:
            self._walk()
        except BaseException:
            self.close()
            raise
        self.format = FORMAT
        self.entries: tuple[Entry, ...] = tuple(sorted(self._entries, key=lambda entry: entry.path))
        self.limitations: tuple[Limitation, ...] = tuple(sorted(self._limitations, key=lambda one: one.place))

    @property
    def stats(self) -> tuple[tuple[str, int, int, int, int], ...]:
        """Path, size, modification time, change time and inode of everything listed: tells cheaply what changed."""
        return tuple(sorted(self._stats))

    def _walk(self) -> None:
        pending = [("", 0)]
        while pending:
            directory, depth = pending.pop()
            try:
                found = self._root.list(directory)
            except OSError as error:
                message = (error.strerror or str(error)).lower()
                self._limitations.append(
                    limitation("entry-unreadable", directory or ".", f"a folder: {message}")
                )
                continue
            if not found and directory:
                self._entries.append(Entry(path=directory, kind="directory"))
            pending.extend(
                (join(directory, one.name), depth + 1) for one in found if self._add(directory, one)
            )
            if depth >= _MAX_DEPTH or len(self._stats) > MAX_ENTRIES or self._bytes > _MAX_BYTES:
                raise FailedError(
                    "value-too-large",
                    f"the folder has more than {MAX_ENTRIES:,} entries, {_MAX_DEPTH} levels or {_MAX_BYTES:,} bytes",
                    hint="mount a folder below it",
                )

    def _add(self, directory: str, found: Found) -> bool:
        """List one entry; whether it is a directory to look into."""
        path = join(directory, found.name)
        reason = unsafe_name(found.name)
        if reason:
            self._limitations.append(limitation("entry-unsafe", path, reason))
            return False
        status = found.status
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            if found.name in SKIPPED:
                self._limitations.append(
                    limitation("entry-skipped", path, "the store of a version control system")
                )
                return False
            return True
        self._stats.append((path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
        if found.link is not None:
            self._link(path, directory, found.link)
        elif stat.S_ISREG(mode):
            self._bytes += status.st_size
            executable = bool(mode & stat.S_IXUSR)
            self._entries.append(Entry(path=path, kind="file", size=status.st_size, executable=executable))
        else:
            self._limitations.append(
                limitation("entry-skipped", path, "a pipe, socket or device, not a file")
            )
        return False

    def _link(self, path: str, directory: str, target: str) -> None:
        if unsafe_link(target):
            self._limitations.append(limitation("entry-unsafe", path, "a link that leaves the container"))
            return
        self._entries.append(Entry(path=path, kind="link", target=join(directory, target)))

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of a file, at most `CHUNK` at a time. Raises `EntryError`."""
        fd = self._root.open(entry.path)
        try:
            yield from read_fd(fd, entry.path, offset=0, size=os.fstat(fd).st_size)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Release files. Harmless when repeated."""
        self._root.close()
