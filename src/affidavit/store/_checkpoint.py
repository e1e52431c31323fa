"""Folding the log into the database, beside the writer."""

from __future__ import annotations

import sqlite3
import threading
from typing import Final

__all__ = ["Checkpointer"]

_EVERY_WRITES: Final = 500


class Checkpointer:
    """A thread that copies the log's pages into the database from time to time, so that no append waits for the disk.

    It never holds a writer up: a passive checkpoint copies what it can. The thread starts with the first need and ends
    with `close`. Should it fail, the writer's own bound on the log remains.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._writes = 0
        self._wake = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def count(self) -> None:
        """Note one write transaction. Called by one thread at a time."""
        self._writes += 1
        if self._writes >= _EVERY_WRITES:
            self._writes = 0
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="affidavit-checkpoint", daemon=True)
                self._thread.start()
            self._wake.set()

    def close(self) -> None:
        """End the thread, waiting for a checkpoint that is under way, and close the connection."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closing:
                return
            try:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error:
                continue  # a full disk, say: the next write meets it and reports it
