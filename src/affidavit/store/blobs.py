"""Content-addressed files: what is too large to stand inside a record.

`blobs/<tenant>/ab/cdef...` holds the bytes whose SHA-256 is `abcdef...`. A blob appears whole or not at all (written
beside, fsynced, renamed), is checked each time it is read, and is repaired by putting the same bytes again.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from affidavit.errors import UsageError, VerificationError
from affidavit.evidence.canonical import digest
from affidavit.evidence.files import sync_folder
from affidavit.evidence.record import BlobRef
from affidavit.store._faults import file_error

__all__ = ["Blobs"]

_ADDRESS: Final = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")
_INCOMING: Final = "incoming"
_ABANDONED_SECONDS: Final = 24 * 3600.0
_NO_FAULT_OF_THE_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Blobs:
    """The blobs of one tenant below `root`. Safe for several threads and processes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, data: bytes) -> BlobRef:
        """Keep the bytes. Keeping the same bytes again costs a comparison, and repairs a damaged blob.

        Raises:
            FailedError: `store-full` or `store-unwritable`; then nothing was changed.
        """
        address = digest(data)
        path = self.path(address)
        if not _holds(path, data):
            try:
                self._write(path, data)
            except OSError as error:
                raise file_error(error, path) from None
        return BlobRef(digest=address, size=len(data))

    def get(self, address: str) -> bytes:
        """The bytes of an address (`sha256:` + hex), checked against it.

        Raises:
            VerificationError: `blob-missing` or `blob-damaged`, naming the address.
            UsageError: `name-invalid`: not an address.
            FailedError: `store-unwritable`: this process has no room to open it.
        """
        path = self.path(address)
        try:
            data = _content(path)
        except (FileNotFoundError, NotADirectoryError):
            raise VerificationError(
                "blob-missing",
                f"the blob {address} is not there",
                hint="put the same content again, or import a bundle that holds it",
                details={"digest": address, "path": str(path)},
            ) from None
        except OSError as error:
            if error.errno in _NO_FAULT_OF_THE_FILE:
                raise file_error(error, path) from None
            reason = error.strerror or str(error)
            raise VerificationError(
                "blob-damaged",
                f"the blob {address} cannot be read: {reason}",
                hint="let this user read it; else put the same content again to repair it",
                details={"digest": address, "path": str(path), "reason": reason},
            ) from None
        if digest(data) != address:
            raise VerificationError(
                "blob-damaged",
                f"the {len(data)} bytes kept as {address} are not the content of that address",
                hint="put the same content again to repair it",
                details={"digest": address, "path": str(path), "size": len(data)},
            )
        return data

    def has(self, address: str) -> bool:
        """Whether a file stands at the address. Says nothing of its bytes: `get` does."""
        return self.path(address).is_file()

    def path(self, address: str) -> Path:
        """Where the bytes of an address stand, whether or not they do.

        Raises:
            UsageError: `name-invalid`: not an address.
        """
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise UsageError(
                "name-invalid",
                f"{address[:80]!a} is not the address of a blob",
                hint="an address is `sha256:` and 64 lower-case hexadecimal digits",
            )
        return self.root / match[1] / match[2]

    def addresses(self) -> Iterator[str]:
        """Every address with a file, sorted."""
        if not self.root.is_dir():
            return
        for folder in sorted(self.root.iterdir()):
            names = sorted(it.name for it in folder.iterdir()) if folder.is_dir() else []
            for name in names:
                address = f"sha256:{folder.name}{name}"
                if _ADDRESS.fullmatch(address):
                    yield address

    def damaged(self) -> list[str]:
        """Read every blob; the addresses whose bytes do not hold."""
        return [address for address in self.addresses() if not self._is_intact(address)]

    def clean(self) -> None:
        """Remove what writers that were killed a day ago or earlier left half-written."""
        limit = time.time() - _ABANDONED_SECONDS
        incoming = self.root / _INCOMING
        for path in incoming.iterdir() if incoming.is_dir() else ():
            try:
                if path.stat().st_mtime < limit:
                    path.unlink()
            except OSError:
                continue  # another process was faster, or may clean what this one may not

    def _is_intact(self, address: str) -> bool:
        try:
            self.get(address)
        except VerificationError:
            return False
        return True

    def _write(self, path: Path, data: bytes) -> None:
        incoming = self.root / _INCOMING
        incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=incoming)  # mode 0600
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def _content(path: Path) -> bytes:
    """The bytes of a file. What is no file is an error, and nothing that is waited for."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a file")
        return file.read()


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file has exactly these bytes. Its digest alone would need as much reading."""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False
