"""Connections of one mount, used in threads: a few at a time, ended when their call is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar

from affidavit.errors import AffidavitError, FailedError, NotFoundError, RefusedError, UsageError
from affidavit.mounts.sql.engines.engine import Connection, Engine

__all__ = ["MAX_CONNECTIONS", "Readers"]

MAX_CONNECTIONS: Final = 4
"""Statements of one mount that run at the same time; others wait."""

_PATIENCE: Final = 0.5
"""Seconds between two attempts to end a statement."""

T = TypeVar("T")


class _Call:
    """One call in a thread, which the loop may cancel at any moment."""

    def __init__(self) -> None:
        self.cancelled = False
        self._connection: Connection | None = None
        self._lock = Lock()

    def uses(self, connection: Connection) -> None:
        """What the call runs on from now on."""
        with self._lock:
            self._connection = connection
            if self.cancelled:
                connection.interrupt()

    def cancel(self) -> None:
        """End it."""
        with self._lock:
            self.cancelled = True
            if self._connection is not None:
                self._connection.interrupt()


class Readers:
    """The connections of one mount. Opened when first needed, kept while they work.

    Args:
        engine: what they connect to.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(MAX_CONNECTIONS, thread_name_prefix="sql")
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._lock = Lock()
        self._closed = False

    async def use(self, ask: Callable[[Connection], T]) -> T:
        """Ask in a thread, over a connection to the source as it was mounted.

        When the call is cancelled its statement is ended, and the connection is free again before this returns.

        Raises:
            VerificationError: `artifact-changed`.
            AffidavitError: whatever `ask` raises.
        """
        call = _Call()
        job = self._threads.submit(self._run, ask, call)
        working = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            if not job.cancel():
                await self._ended(working, call)
            raise

    async def close(self) -> None:
        """End what runs and let go of every connection."""
        with self._lock:
            self._closed = True
            busy = list(self._busy)
        for connection in busy:
            await asyncio.to_thread(connection.interrupt)
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _ended(self, working: asyncio.Future[Any], call: _Call) -> None:
        """End a call that runs. An engine may miss what comes just before its statement starts: so again and again."""
        while not working.done():
            await asyncio.to_thread(call.cancel)
            await asyncio.wait([working], timeout=_PATIENCE)
        working.exception()  # whatever it is, the caller is gone

    def _run(self, ask: Callable[[Connection], T], call: _Call) -> T:
        self._engine.check()
        connection = self._taken()
        call.uses(connection)
        try:
            found = ask(connection)
        except (UsageError, NotFoundError, RefusedError):
            self._returned(connection, call)
            raise
        except BaseException as error:
            self._dropped(connection)
            if isinstance(error, AffidavitError):
                self._engine.check()  # a file that changed meanwhile is the better explanation
            raise
        self._returned(connection, call)
        self._engine.check()
        return found

    def _taken(self) -> Connection:
        with self._lock:
            if self._closed:
                raise FailedError("mount-failed", "the mount is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._engine.connect()
        with self._lock:
            self._busy.add(connection)
        return connection

    def _returned(self, connection: Connection, call: _Call) -> None:
        if call.cancelled:  # an interrupted connection is used no more
            self._dropped(connection)
            return
        with self._lock:
            self._busy.discard(connection)
            self._idle.append(connection)

    def _dropped(self, connection: Connection) -> None:
        with self._lock:
            self._busy.discard(connection)
        with suppress(Exception):  # it is broken already
            connection.close()
