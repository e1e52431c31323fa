"""What SQLite and the file system report, as errors of the product."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from affidavit.errors import AffidavitError, FailedError, VerificationError

__all__ = ["database_error", "file_error"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_UNWRITABLE: Final = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_IOERR,
    }
)


_PERHAPS_FULL: Final = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_ROOM: Final = 256 << 10  # bytes that the side files of a database need at least


def database_error(error: sqlite3.Error, path: Path) -> AffidavitError:
    """The product's error for one of SQLite. The transaction that met it was rolled back."""
    details = {"path": str(path), "reason": str(error)}
    code = (
        getattr(error, "sqlite_errorcode", 0) & 0xFF
    )  # the low byte is the kind, the rest its circumstances
    if code in _BUSY:
        return FailedError(
            "store-busy",
            f"another process keeps {path} locked",
            hint="try again; nothing of this step was stored",
            details=details,
            retryable=True,
        )
    if code == sqlite3.SQLITE_FULL or (code in _PERHAPS_FULL and _no_room(path)):
        return _full(path, details)
    if code in _DAMAGED:
        return VerificationError(
            "store-damaged",
            f"{path} is damaged: {error}",
            hint="keep a copy of the folder, then restore it from a journal or a bundle",
            details=details,
        )
    if code in _UNWRITABLE:
        return _unwritable(path, str(error), details)
    return FailedError("internal", f"{path}: {error}", details=details)


def file_error(error: OSError, path: Path) -> AffidavitError:
    """The product's error for a file that could not be read or written."""
    reason = error.strerror or str(error)
    details = {"path": str(path), "reason": reason}
    return _full(path, details) if error.errno in _FULL else _unwritable(path, reason, details)


def _no_room(path: Path) -> bool:
    """Whether the disk is full: SQLite reports its side files, which it cannot make then, as unreadable or broken."""
    try:
        return shutil.disk_usage(path.parent).free < _ROOM
    except OSError:
        return False


def _full(path: Path, details: dict[str, str]) -> FailedError:
    return FailedError(
        "store-full",
        f"no room left to write {path}",
        hint="free some space and try again; what was stored before is intact",
        details=details,
        retryable=True,
    )


def _unwritable(path: Path, reason: str, details: dict[str, str]) -> FailedError:
    return FailedError(
        "store-unwritable",
        f"cannot write {path}: {reason}",
        hint="choose a workspace folder that you may write, or give this one its rights back",
        details=details,
    )
