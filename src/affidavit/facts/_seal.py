"""The last 64 bytes of a fact file: length and SHA-256 of everything before them.

SQLite reads as many pages as its header counts, so a file may go on after them. A file that was cut, replaced or
changed in one bit is told from a good one by one pass over it, when it is opened.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from affidavit.errors import VerificationError

__all__ = ["VERSION", "check_seal", "damaged", "seal"]

VERSION = 1
"""Version of the file format: of the tables, the meta document and the seal."""

_MAGIC = b"affidavit facts\n"
_SIZE = 64
_CHUNK = 1 << 20


def seal(file: BinaryIO) -> None:
    """Append the seal to a finished file, open for reading and writing, and flush it to the disk."""
    file.seek(0)
    length, digest = _digest(file, None)
    body = _MAGIC + VERSION.to_bytes(8, "big") + length.to_bytes(8, "big") + digest
    file.seek(0, os.SEEK_END)
    file.write(body)
    file.flush()
    os.fsync(file.fileno())


def check_seal(path: Path) -> None:
    """Read the whole file against its seal.

    Raises:
        FileNotFoundError: there is no such file.
        VerificationError: `facts-damaged`.
    """
    try:
        _check(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error


def _check(path: Path) -> None:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SIZE))
        body = file.read()
        if len(body) != _SIZE or not body.startswith(_MAGIC):
            raise damaged(path, "it does not end as a finished fact file does")
        version = int.from_bytes(body[16:24], "big")
        if version != VERSION:
            raise newer(path, version)
        if int.from_bytes(body[24:32], "big") != size - _SIZE:
            raise damaged(path, "its length is not what it was written with")
        file.seek(0)
        if _digest(file, size - _SIZE)[1] != body[32:]:
            raise damaged(path, "its bytes are not what was written")


def damaged(path: Path, why: str) -> VerificationError:
    """The error of a fact file that cannot be used."""
    return VerificationError(
        "facts-damaged",
        f"the fact file {path} cannot be used: {why}",
        hint="delete it and analyze the artifact again; facts can always be made again from the artifact",
        details={"reason": "damaged"},
    )


def newer(path: Path, version: int) -> VerificationError:
    """The error of a fact file in a format that this version does not read."""
    return VerificationError(
        "facts-damaged",
        f"the fact file {path} has format {version}; this version reads format {VERSION}",
        hint="use the version that wrote it, or delete it and analyze the artifact again",
        details={"reason": "version"},
    )


def _digest(file: BinaryIO, length: int | None) -> tuple[int, bytes]:
    """Length and SHA-256 of the file from its position: to the end, or `length` bytes."""
    hasher = hashlib.sha256()
    done = 0
    while chunk := file.read(_CHUNK if length is None else min(_CHUNK, length - done)):
        hasher.update(chunk)
        done += len(chunk)
    return done, hasher.digest()
