"""Forcing lines to the disk: one fsync for all who wait, or one every so often."""

from __future__ import annotations

import os
import threading

from affidavit.store.journal.settings import JournalSettings

__all__ = ["Syncer"]


class Syncer:
    """Carries out the fsync policy for the file that is written. Safe for several threads.

    A failed fsync is final: the system may have dropped the pages and will report success the next time, so no later
    success can be believed. Every later `check` raises that first error.
    """

    def __init__(self, settings: JournalSettings, handle: int) -> None:
        self._settings = settings
        self._handle = handle
        self._changed = threading.Condition()
        self._written = 0
        self._synced = 0
        self._busy = False
        self._error: OSError | None = None
        self._closing = False
        self._idle = False  # whether the thread may be waiting for the next line
        self._thread: threading.Thread | None = None

    def wrote(self, length: int) -> None:
        """Note bytes that were written. They reach the disk as the policy says."""
        # Only the one writer adds. No lock is needed for that, and a waiting thread is told under its own: it says that
        # it waits before it looks, and this adds before it looks, so one of the two sees the other.
        self._written += length
        if self._settings.fsync != "batch":
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="affidavit-journal", daemon=True)
            self._thread.start()
        if self._idle or self._full():
            with self._changed:
                self._changed.notify_all()

    def check(self) -> None:
        """Raise the error that an fsync met, if one did.

        Raises:
            OSError: the first one that a sync met.
        """
        if self._error is not None:
            raise self._error

    def settle(self) -> None:
        """Under `always`, wait until all that was written so far is on the disk. One waiter syncs for all.

        Raises:
            OSError: it cannot be known to be there.
        """
        if self._settings.fsync == "always":
            with self._changed:
                self._sync(self._written)

    def move(self, handle: int) -> None:
        """Force out what was written to the file, and go on with another one.

        Raises:
            OSError: as `settle`.
        """
        with self._changed:
            if self._settings.fsync != "never":
                self._sync(self._written)
            while self._busy:
                self._changed.wait()
            self._handle = handle

    def close(self) -> None:
        """Force out the rest and end the thread.

        Raises:
            OSError: as `settle`.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        with self._changed:
            if self._settings.fsync != "never" and self._error is None:
                self._sync(self._written)
        self.check()

    def _full(self) -> bool:
        return self._written - self._synced >= self._settings.batch_bytes

    def _sync(self, target: int) -> None:
        """With the lock held: return when `target` bytes are on the disk, leading a sync or waiting for another's."""
        while self._synced < target:
            self.check()
            if self._busy:
                self._changed.wait()
                continue
            self._busy = True
            reached = self._written
            self._changed.release()
            error: OSError | None = None
            try:
                _force(self._handle)
            except OSError as problem:
                error = problem
            finally:
                self._changed.acquire()
                self._busy = False
            if error is None:
                self._synced = max(self._synced, reached)
            elif self._error is None:
                self._error = error
            self._changed.notify_all()
        self.check()

    def _run(self) -> None:
        with self._changed:
            while not self._closing:
                self._idle = True
                if self._synced >= self._written:
                    self._changed.wait()
                    continue
                self._idle = False
                self._changed.wait_for(
                    lambda: self._closing or self._full(), timeout=self._settings.batch_seconds
                )
                try:
                    self._sync(self._written)
                except OSError:
                    return  # kept: the next write reports it


def _force(handle: int) -> None:
    # Length and content must be there; times need not.
    getattr(os, "fdatasync", os.fsync)(handle)
