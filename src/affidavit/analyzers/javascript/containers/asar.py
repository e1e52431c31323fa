"""ASAR archives, read in place: nothing is extracted, and unpacked files are read from `X.asar.unpacked`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from affidavit.analyzers.javascript.containers.asar_header import PREFIX, parse_header, parse_prefix
from affidavit.analyzers.javascript.containers.entry import Entry, EntryError, damaged
from affidavit.analyzers.javascript.containers.rooted import Root, read_fd
from affidavit.errors import NotFoundError
from affidavit.evidence.record import Limitation

__all__ = ["AsarContainer", "companion"]

FORMAT: Final = "asar"


def companion(path: Path) -> Path:
    """The folder beside an archive that holds its unpacked files."""
    return path.with_name(path.name + ".unpacked")


class AsarContainer:
    """An open archive.

    Raises:
        NotFoundError: `artifact-not-found`.
        VerificationError: `artifact-damaged` when the header does not hold.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error
        self._unpacked: Root | None = None
        try:
            size = os.fstat(self._fd).st_size
            length, self._data = parse_prefix(os.pread(self._fd, PREFIX, 0), size)
            # Not kept under a name here, so that it can go before it has become as many entries.
            header = parse_header(
                b"".join(read_fd(self._fd, "header", offset=PREFIX, size=length)), size - self._data
            )
            with suppress(OSError):
                self._unpacked = Root(companion(path))
        except EntryError as error:
            self.close()
            raise damaged("the archive", PREFIX, error.limitation.message) from error
        except BaseException:
            self.close()
            raise
        self.size = size
        self.format = FORMAT
        self.entries: tuple[Entry, ...] = header.entries
        self.limitations: tuple[Limitation, ...] = header.limitations

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of a file, at most `CHUNK` at a time. Raises `EntryError`."""
        if not entry.unpacked:
            yield from read_fd(self._fd, entry.path, offset=self._data + entry.offset, size=entry.size)
            return
        fd = self._open_unpacked(entry)
        try:
            yield from read_fd(fd, entry.path, offset=0, size=os.fstat(fd).st_size)
        finally:
            os.close(fd)

    def _open_unpacked(self, entry: Entry) -> int:
        if self._unpacked is None:
            raise EntryError(
                "entry-missing",
                entry.path,
                "unpacked, and no folder with unpacked files is beside the archive",
            )
        fd = self._unpacked.open(entry.path)
        size = os.fstat(fd).st_size
        if size != entry.size:
            os.close(fd)
            raise EntryError(
                "entry-damaged",
                entry.path,
                f"unpacked with {size:,} bytes where the header says {entry.size:,}",
            )
        return fd

    def archive_chunks(self) -> Iterator[bytes]:
        """The bytes of the archive file itself, header included."""
        return read_fd(self._fd, "archive", offset=0, size=self.size)

    def close(self) -> None:
        """Release files. Harmless when repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._unpacked is not None:
            self._unpacked.close()
            self._unpacked = None
