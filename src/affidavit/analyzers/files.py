"""What the analyzers of single files share."""

from __future__ import annotations

from pathlib import Path

from affidavit.errors import NotFoundError

__all__ = ["signature_of", "unreadable"]


def signature_of(path: Path) -> str:
    """Size, times of change and inode: what tells cheaply that a file is no longer what it was.

    Raises:
        NotFoundError: `artifact-not-found`.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable(path, error) from error
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}"


def unreadable(path: Path, error: OSError) -> NotFoundError:
    """A file that is not there, or may not be read."""
    return NotFoundError(
        "artifact-not-found", f"{path} cannot be read: {error.strerror}", hint="check the path"
    )
