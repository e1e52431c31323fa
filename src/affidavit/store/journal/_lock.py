"""One writer at a time among processes. The system releases the lock of the dead."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from affidavit.errors import FailedError

__all__ = ["Lock"]

WAIT_SECONDS: Final = 60.0
_FIRST_PAUSE: Final = 0.0002
_LONGEST_PAUSE: Final = 0.01

if sys.platform == "win32":  # pragma: no cover

    class Lock:
        """The lock of a file or folder; here a file beside it, since locks forbid reading on this system."""

        def __init__(self, handle: int, path: Path) -> None:
            from filelock import FileLock

            del handle
            self._path = path
            self._lock = FileLock(f"{path}.lock")

        def acquire(self) -> None:
            """Wait for the lock."""
            from filelock import Timeout

            try:
                self._lock.acquire(timeout=WAIT_SECONDS)
            except Timeout:
                raise _busy(self._path) from None

        def release(self) -> None:
            """Let the next one in."""
            self._lock.release()

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

    class Lock:
        """The lock of an open file or folder. Closing the file releases it, too."""

        __slots__ = ("_handle", "_path")

        def __init__(self, handle: int, path: Path) -> None:
            self._handle = handle
            self._path = path

        def acquire(self) -> None:
            """Wait for the lock.

            Raises:
                FailedError: `store-busy`, when others held it for a minute.
            """
            try:
                flock(self._handle, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                self._queue()

        def release(self) -> None:
            """Let the next one in."""
            flock(self._handle, LOCK_UN)

        def _queue(self) -> None:
            deadline = time.monotonic() + WAIT_SECONDS
            pause = _FIRST_PAUSE
            while True:
                time.sleep(pause)
                try:
                    flock(self._handle, LOCK_EX | LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise _busy(self._path) from None
                    pause = min(pause * 1.5, _LONGEST_PAUSE)
                else:
                    return


def _busy(path: Path) -> FailedError:
    return FailedError(
        "store-busy",
        f"another process kept the journal {path} locked for {WAIT_SECONDS:.0f} seconds",
        hint="see whether a process is stopped; try again",
        details={"path": str(path)},
        retryable=True,
    )
