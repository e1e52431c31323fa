"""One SQLite file, written by one transaction at a time and read by short reads.

Write-ahead logging lets readers and the writer of several processes go on beside each other. `synchronous=NORMAL` then
means that a commit is a write to the log file without an fsync. What was committed survives the death of every process
(`kill -9` included), because the bytes are the kernel's by then; only a crash of the whole machine may take back the
last transactions, and never leaves the file damaged. `FULL` would make an append about eight times as slow.

Every write begins with `BEGIN IMMEDIATE`. A transaction that reads first and writes later fails when another process
wrote in between, whatever the busy time-out; one that takes the write lock first only ever waits.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from affidavit.errors import FailedError, NotFoundError, VerificationError
from affidavit.store._checkpoint import Checkpointer
from affidavit.store._faults import database_error, file_error
from affidavit.store._reading import connect_to_read
from affidavit.store._schema import APPLICATION_ID, SCHEMA, VERSION

__all__ = ["Database", "Parameters", "Row"]

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

BUSY_SECONDS: Final = 10.0
"""How long a writer waits for the others."""

_PAGE_BYTES: Final = 2048  # an append touches about five pages: small pages make the log a third shorter
_CHECKPOINT_PAGES: Final = 16_000  # the writer folds the log in itself when the thread could not keep up
_LOG_BYTES: Final = 64 << 20  # what the log file is cut back to after a reader let it grow
_RETRY_SECONDS: Final = 0.005


class Database:
    """A workspace database: a connection that writes, one that reads. Safe to use from several threads."""

    def __init__(
        self, path: Path, writer: sqlite3.Connection, reader: sqlite3.Connection, checkpointer: Checkpointer
    ) -> None:
        self.path = path
        self._writer = writer
        self._cursor = writer.cursor()
        self._reader = reader
        self._checkpointer = checkpointer
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> Database:
        """Open the file, making it first where it is absent or empty. Several processes may do so at once.

        Raises:
            NotFoundError: `store-missing`, when it is absent and `create` is false.
            FailedError: `store-version` (written by a newer version), `store-busy`, `store-full`, `store-unwritable`.
            VerificationError: `store-damaged`: the file is not a workspace database.
        """
        _prepare_file(path, create)
        with _connections(path) as connections:
            connections.append(_connect(path, busy_seconds))
            _initialise(connections[0], path, busy_seconds)
            connections.append(_connect(path, busy_seconds))
            connections[1].execute("PRAGMA query_only = ON")
            connections.append(_connect(path, busy_seconds))
        writer, reader, third = connections
        return cls(path, writer, reader, Checkpointer(third))

    @classmethod
    def open_to_read(cls, path: Path) -> Database:
        """Open a file that may not be written. Every write fails with `store-unwritable`.

        Raises:
            NotFoundError: `store-missing`: it is empty.
            FailedError: `store-version`; `store-unwritable`: its log cannot be read here.
            VerificationError: `store-damaged`.
        """
        with _connections(path) as connections:
            connections.extend(connect_to_read(path) for _ in range(3))
            if _version(connections[0], path) == 0:
                raise _missing(path)
        writer, reader, third = connections
        return cls(path, writer, reader, Checkpointer(third))

    def write(self, work: Callable[[sqlite3.Cursor], T]) -> T:
        """Run `work` in one transaction: all of it is stored when this returns, or nothing when it raises.

        Raises:
            FailedError: `store-busy`, `store-full`, `store-unwritable`.
            VerificationError: `store-damaged`.
        """
        cursor = self._cursor
        with self._write_lock:
            self._check_usable()
            try:
                cursor.execute("BEGIN IMMEDIATE")
                result = work(cursor)
                cursor.execute("COMMIT")
            except BaseException as error:
                self._roll_back()
                if isinstance(error, sqlite3.Error):
                    raise database_error(error, self.path) from None
                raise
            self._checkpointer.count()
            return result

    def read(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of one query. The read ends before this returns, so no reader holds the log back.

        Raises:
            VerificationError: `store-damaged`.
            FailedError: as `write`.
        """
        with self._read_lock:
            self._check_usable()
            try:
                return self._reader.execute(sql, parameters).fetchall()
            except UnicodeEncodeError:  # no stored text has lone surrogates
                return []
            except sqlite3.Error as error:
                raise database_error(error, self.path) from None

    def close(self) -> None:
        """Close both connections. The last process to close folds the log into the file. Repeating it is harmless."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            self._closed = True
            if os.getpid() == self._process:
                self._checkpointer.close()
                self._reader.close()
                self._writer.close()

    def _roll_back(self) -> None:
        try:
            if self._writer.in_transaction:
                self._cursor.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the first error is the one to report; SQLite rolls back by itself on the next use

    def _check_usable(self) -> None:
        if self._closed:
            raise FailedError("internal", f"the store {self.path} is closed", hint="open it again")
        if os.getpid() != self._process:
            raise FailedError(
                "internal",
                f"the store {self.path} was opened before this process was forked",
                hint="open the store in the process that uses it",
            )


@contextmanager
def _connections(path: Path) -> Generator[list[sqlite3.Connection]]:
    """A list to fill: where that fails, those in it are closed, and a fault of SQLite is told as ours."""
    made: list[sqlite3.Connection] = []
    try:
        yield made
    except BaseException as error:
        for connection in made:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise database_error(error, path) from None
        raise


def _prepare_file(path: Path, create: bool) -> None:
    """Make the folder and an empty file that only their owner can read; SQLite gives its side files the same mode."""
    if not create and not path.exists():
        raise _missing(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise file_error(error, path) from None


def _missing(path: Path) -> NotFoundError:
    return NotFoundError(
        "store-missing",
        f"there is no workspace at {path.parent}",
        hint="check the path, or run something in it",
    )


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # isolation_level=None: transactions are ours. Statements are prepared once and kept.
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=128
    )
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _initialise(connection: sqlite3.Connection, path: Path, busy_seconds: float) -> None:
    """Check the version, and make the tables in a file that has none."""
    if _version(connection, path) == VERSION:
        return
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    _switch_to_log(connection, time.monotonic() + busy_seconds)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection, path) != VERSION:  # another process may have been first
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file, 0 for an empty one."""
    alone = not connection.in_transaction
    if alone:
        connection.execute("BEGIN")  # one moment for all three: another process may be making the tables
    try:
        [(application,)] = connection.execute("PRAGMA application_id").fetchall()
        [(version,)] = connection.execute("PRAGMA user_version").fetchall()
        [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    finally:
        if alone:
            connection.execute("COMMIT")
    if application == APPLICATION_ID and 1 <= version <= VERSION:
        return version
    if application == APPLICATION_ID and version > VERSION:
        raise FailedError(
            "store-version",
            f"{path} was written by a newer version (schema {version}; this one knows {VERSION})",
            hint="upgrade affidavit, or use another workspace folder",
            details={"path": str(path), "found": version, "supported": VERSION},
        )
    if tables:
        raise VerificationError(
            "store-damaged",
            f"{path} is a database of something else",
            hint="choose another workspace folder",
            details={"path": str(path)},
        )
    return 0


def _switch_to_log(connection: sqlite3.Connection, deadline: float) -> None:
    """Turn on write-ahead logging. SQLite does not wait for its lock here, so several first openers must retry."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
