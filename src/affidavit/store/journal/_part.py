"""The files of a journal as they are written: claimed, locked, appended to, and cut back after a tear."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from affidavit.errors import FailedError
from affidavit.evidence.files import sync_folder
from affidavit.store.journal._lock import Lock
from affidavit.store.journal.names import find_journal, part_path, stem

__all__ = ["Part", "claim", "failed", "failing"]

_FLAGS: Final = (
    os.O_RDWR
    | os.O_APPEND
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_CUT_BLOCK: Final = 1 << 20


@contextmanager
def failing(path: Path) -> Generator[None]:
    """What the system reports about a journal's file, as the product's error.

    Raises:
        FailedError: `journal-failed`.
    """
    try:
        yield
    except OSError as error:
        raise failed(path, error) from None


def failed(path: Path, error: OSError) -> FailedError:
    """The product's error for what the system reports about a journal's file."""
    reason = error.strerror or str(error)
    return FailedError(
        "journal-failed",
        f"cannot write the journal {path}: {reason}",
        hint="nothing goes on unrecorded: free space or choose another folder, then go on with the session",
        details={"path": str(path), "reason": reason},
    )


def claim(folder: Path, session: str, first_subject: str | None) -> str:
    """The stem of the session's journal in the folder; its first part exists afterwards.

    Raises:
        OSError: the folder cannot be used.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _folder_lock(folder):
        found = find_journal(folder, session)
        if found is not None:
            return found
        name = stem(session, first_subject)
        os.close(os.open(part_path(folder, name, 1), _FLAGS | os.O_CREAT, 0o600))
        sync_folder(folder)
        return name


class Part:
    """One file of a journal, open for appending.

    Attributes:
        number: which part it is, from 1.
        path: where it stands.
        handle: its descriptor.
        acquire: waits for the lock that all writers of this part take; raises FailedError `store-busy`.
        release: lets the next writer in.
    """

    __slots__ = ("acquire", "handle", "number", "path", "release")

    def __init__(self, number: int, path: Path, handle: int) -> None:
        self.number = number
        self.path = path
        self.handle = handle
        lock = Lock(handle, path)
        self.acquire, self.release = (
            lock.acquire,
            lock.release,
        )  # without a step between: every event takes it

    @classmethod
    def open(cls, folder: Path, name: str, number: int, *, create: bool = False) -> Part:
        """Open a part, or make the file of a new one.

        Raises:
            OSError: it is not there, or cannot be written.
            FailedError: `journal-failed`: it is no file.
        """
        path = part_path(folder, name, number)
        handle = os.open(path, _FLAGS | (os.O_CREAT if create else 0), 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FailedError("journal-failed", f"{path} is not a file", hint="choose another folder")
        if create:
            sync_folder(folder)
        return cls(number, path, handle)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def size(self) -> int:
        """Bytes in the file, whoever wrote them.

        Raises:
            FailedError: `journal-failed`: the file was deleted, so that what is written to it is lost.
        """
        status = os.fstat(self.handle)
        if status.st_nlink == 0:
            raise FailedError(
                "journal-failed",
                f"the journal {self.path} was deleted while it was written",
                hint="open the session again: the journal is made anew from the workspace",
                details={"path": str(self.path)},
            )
        return status.st_size

    def begins_like(self, beginning: bytes) -> bool:
        """Whether the file is empty, begins with these bytes or a part of them, or with zeros of a lost page."""
        found = os.pread(self.handle, len(beginning), 0)
        return beginning.startswith(found) or not found.strip(b"\0")

    def append(self, at: int, line: bytes) -> None:
        """Write a line behind the `at` bytes that are there: all of it, or none.

        Raises:
            OSError: it is not, or not surely, there. What was written of it was cut off again, where that is possible.
        """
        written = 0
        try:
            while written < len(line):
                written += os.write(self.handle, line[written:] if written else line)
        except BaseException:
            if written:
                self._cut_quietly(at)
            raise

    def cut(self, place: int, length: int) -> dict[str, Any]:
        """Cut off the torn line that ends the file; what a `loss` line says of it."""
        content = sha256()
        for start in range(place, place + length, _CUT_BLOCK):
            content.update(os.pread(self.handle, min(_CUT_BLOCK, place + length - start), start))
        os.ftruncate(self.handle, place)
        return {"cut": True, "digest": f"sha256:{content.hexdigest()}", "length": length, "place": place}

    def _cut_quietly(self, at: int) -> None:
        with suppress(OSError):  # else the next writer finds a torn line and reports it
            os.ftruncate(self.handle, at)


@contextmanager
def _folder_lock(folder: Path) -> Generator[None]:
    """Hold off other processes that choose a name in this folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        handle = -1  # folders cannot be opened everywhere; the lock needs no descriptor there
    lock = Lock(handle, folder)
    try:
        lock.acquire()
        yield
        lock.release()
    finally:
        if handle >= 0:
            os.close(handle)
