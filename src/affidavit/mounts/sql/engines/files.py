"""A database file as a snapshot: its digest, and whether it is still what was mounted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from affidavit.errors import FailedError, NotFoundError, VerificationError
from affidavit.evidence.canonical import canonical, digest

__all__ = ["FileSnapshot", "digest_of"]

_Signature: TypeAlias = tuple[tuple[int, int, int, int] | None, ...]


def digest_of(path: Path) -> str:
    """`sha256:` of a file's bytes. Raises `NotFoundError(artifact-not-found)`, `FailedError(mount-failed)`."""
    try:
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise NotFoundError("artifact-not-found", f"there is no file {path.name}") from error
    except OSError as error:
        raise FailedError("mount-failed", f"{path.name} cannot be read: {error.strerror}") from error


class FileSnapshot:
    """A file, and the files beside it that belong to it. Safe to use from several threads.

    Args:
        path: the file.
        beside: endings of companions (`-wal`) whose bytes count where they hold any.
        expected: the identity that was mounted, or empty to take what is there.
    """

    def __init__(self, path: Path, *, beside: Sequence[str] = (), expected: str = "") -> None:
        self.path = path
        self.companions = tuple(path.with_name(path.name + ending) for ending in beside)
        self._endings = tuple(beside)
        self._expected = expected
        self._seen: _Signature | None = None
        self._lock = Lock()

    def identity(self) -> str:
        """The digest of what is there now; with companions, that of a manifest of digests."""
        before = self.signature()
        main = digest_of(self.path)
        parts = {
            ending: digest_of(companion)
            for ending, companion in zip(self._endings, self.companions, strict=True)
            if _holds_bytes(companion)
        }
        if self.signature() != before:
            raise FailedError(
                "artifact-changed",
                f"{self.path.name} changes while it is read",
                hint="mount it again when nothing writes to it",
                retryable=True,
            )
        return digest(canonical({"": main} | parts)) if parts else main

    def check(self) -> None:
        """See that the bytes are those that were mounted; the look is cheap while sizes and times are the same.

        Raises:
            VerificationError: `artifact-changed`.
            NotFoundError: `artifact-not-found`.
        """
        with self._lock:
            now = self.signature()
            if now == self._seen:
                return
            identity = self.identity()
            if self._expected and identity != self._expected:
                raise VerificationError(
                    "artifact-changed",
                    f"{self.path.name} is no longer what was mounted",
                    hint="mount it again: `affidavit mount add NAME` with its name alone",
                    details={"expected": self._expected, "found": identity},
                )
            self._expected, self._seen = identity, now

    def signature(self) -> _Signature:
        """What tells cheaply that nothing changed."""
        return tuple(_signature(path) for path in (self.path, *self.companions))


def _signature(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _holds_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
