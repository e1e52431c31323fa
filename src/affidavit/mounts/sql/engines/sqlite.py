"""SQLite: a file that is opened immutable, with an authorizer that knows nothing but reading.

Four walls, each enough by itself for most of what must not happen: the file is opened `immutable`, so that SQLite
neither writes to it nor makes a file beside it; an authorizer allows `SELECT`, reading columns and calling harmless
functions, and nothing else, so there is no `ATTACH`, no `PRAGMA`, no temporary table; a script's statement is prepared
by `EXPLAIN` before it runs, and only what is a `SELECT` to SQLite's own parser runs, which leaves `VACUUM INTO` out;
and the schema of the file is not trusted. See "Defense Against The Dark Arts", sqlite.org/security.html.

A database whose last changes are still in its write-ahead log is copied with that log, and the copy is brought up to
date and read: nothing touches the file or its neighbours. One with a hot rollback journal is refused, since its own
program has to repair it.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, cast

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import Limitation
from affidavit.mounts.sql.catalogue import Catalogue, Column, Table
from affidavit.mounts.sql.engines.engine import (
    MAX_VALUE_BYTES,
    Bounds,
    Clock,
    Found,
    Parameters,
    ResultColumn,
    refused,
    taken,
)
from affidavit.mounts.sql.engines.files import FileSnapshot
from affidavit.mounts.sql.engines.sqlite_lengths import bounded_lengths
from affidavit.mounts.sql.engines.sqlite_schema import read_tables

__all__ = ["SqliteDialect", "SqliteEngine"]

_READING: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_FUNCTIONS_THAT_REACH_OUT: Final = frozenset(
    # `fts3_tokenizer` hands out and takes addresses; the others reach files or code where they exist
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsdir", "sqlite_log"}
)
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_COMPUTING: Final = (
    "SELECT 1 FROM sqlite_schema WHERE type = 'view' OR (type = 'table' AND sql LIKE '%AS%(%') LIMIT 1"
)
"""Whether reading a table may call functions: those of a view, or of a generated column."""

_STEPS: Final = 10_000
"""Virtual machine steps between two looks at the clock."""

_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_INTEGERS: Final = range(-(2**63), 2**63)


class SqliteDialect:
    """How SQLite writes it."""

    def table(self, table: Table) -> str:
        """The table's name in a statement."""
        return quoted(table.path[-1])

    def shown(self, column: Column) -> str:
        """The column itself: SQLite's five kinds of values are exact."""
        return quoted(column.name)

    def key(self, name: str) -> str:
        """The column, or one of the names of the row number."""
        return quoted(name)

    def equals(self, column: Column, value: Any, place: int) -> tuple[str, Any]:
        """Equality of values, not of what the column's collation or affinity takes for equal."""
        name = quoted(column.name)
        asked, parameter = self.bound(value, place)
        if isinstance(value, str):
            exact = f"{name} = {asked} AND {name} = {asked} COLLATE BINARY AND typeof({name}) = 'text'"
            return f"({exact})", parameter
        if len(column.kinds) > 1:
            return f"({name} = {asked} AND typeof({name}) <> 'text')", parameter
        return f"{name} = {asked}", parameter

    def distinct(self, column: Column) -> str:
        """The column compared byte by byte, whatever its own collation is."""
        return f"{quoted(column.name)} COLLATE BINARY"

    def bound(self, value: Any, place: int) -> tuple[str, Any]:
        """`?1` and the value; text that is no UTF-8 goes as its bytes."""
        if isinstance(value, str) and not _is_text(value):
            return f"CAST(?{place} AS TEXT)", value.encode("utf-8", "surrogateescape")
        return f"?{place}", value


class SqliteEngine:
    """One database file.

    Args:
        path: the file.
        cache: where a copy goes when the write-ahead log holds something.
        expected: the identity that was mounted, or empty.
    """

    live = False

    def __init__(self, path: Path, cache: Path, *, expected: str = "") -> None:
        self.dialect = SqliteDialect()
        self._cache = cache
        self._snapshot = FileSnapshot(path, beside=("-wal",), expected=expected)

    def describe(self) -> Catalogue:
        """Tables and views with the types that their values have: every value is looked at."""
        self._snapshot.check()
        limitations: list[Limitation] = []
        with closing(self._open()) as connection:
            try:
                tables = read_tables(connection.database, limitations)
            except sqlite3.DatabaseError as error:
                raise FailedError(
                    "mount-failed", f"{self._snapshot.path.name} cannot be read: {error}"
                ) from error
        self._snapshot.check()
        return Catalogue(
            engine="sqlite",
            version="",
            format="sqlite",
            identity=self._snapshot.identity(),
            tables=tuple(tables),
            limitations=tuple(limitations),
        )

    def identity(self) -> str:
        """The digest of the file, with that of its write-ahead log where it holds something."""
        return self._snapshot.identity()

    def check(self) -> None:
        """See that the file is what was mounted."""
        self._snapshot.check()

    def connect(self) -> SqliteConnection:
        """A guarded connection."""
        connection = self._open()
        connection.guard()
        return connection

    def close(self) -> None:
        """Nothing is shared."""

    def _open(self) -> SqliteConnection:
        path = self._snapshot.path
        _refuse_hot_journal(path)
        wal = self._snapshot.companions[0]
        if wal.exists() and wal.stat().st_size > 0:
            path = self._merged(path, wal)
        try:
            return SqliteConnection(path)
        except sqlite3.DatabaseError as error:
            raise FailedError(
                "mount-failed", f"{self._snapshot.path.name} cannot be opened: {error}"
            ) from error

    def _merged(self, path: Path, wal: Path) -> Path:
        """A copy of the database with what its log holds, named by the digest of both."""
        merged = self._cache / "sqlite" / (self._snapshot.identity().removeprefix("sha256:") + ".sqlite")
        if merged.exists():
            return merged
        merged.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=merged.parent, prefix=".merging-") as folder:
            copy = Path(folder) / "copy"
            shutil.copyfile(path, copy)
            shutil.copyfile(wal, copy.with_name("copy-wal"))
            with closing(sqlite3.connect(copy, isolation_level=None)) as database:
                database.execute("PRAGMA trusted_schema = OFF")
                database.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._snapshot.check()  # nothing changed while it was copied
            copy.replace(merged)
        return merged


class SqliteConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        # Without a cache of statements each one is prepared anew, and the authorizer sees it each time.
        self.database = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0
        )
        self._stopped = False
        self._actions: set[int] = set()
        try:
            for pragma in (
                "trusted_schema = OFF",
                "query_only = ON",
                "cell_size_check = ON",
                "mmap_size = 0",
            ):
                self.database.execute(f"PRAGMA {pragma}").fetchall()
            for limit, value in _LIMITS.items():
                self.database.setlimit(limit, value)
            self._wake_virtual_tables()
            self._computes = self.database.execute(_COMPUTING).fetchone() is not None
        except BaseException:
            self.database.close()
            raise

    def guard(self) -> None:
        """From now on only reading is allowed."""
        self.database.set_authorizer(self._allow)

    def select(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that this product wrote."""
        with self._running(bounds):
            if not self._computes:
                return self._read(statement, parameters, bounds)
            with bounded_lengths(self.database, statement, cast(Any, parameters)):
                return self._read(statement, parameters, bounds)

    def query(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that a script wrote."""
        given = _bindable(parameters)
        with self._running(bounds):
            self._actions.clear()
            with bounded_lengths(
                self.database, statement, cast(Any, given)
            ):  # prepares it and does not run it
                if sqlite3.SQLITE_SELECT not in self._actions:
                    raise refused("this is no SELECT")
                return self._read(statement, given, bounds)

    def interrupt(self) -> None:
        """End the statement that another thread runs."""
        self._stopped = True
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed in between
            self.database.interrupt()

    def close(self) -> None:
        """Let go of the file."""
        self.database.close()

    def _read(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        try:
            return self._fetch(statement, parameters, bounds)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
        # Text that is not UTF-8 keeps its bytes as lone surrogates.
        self.database.text_factory = _text
        try:
            return self._fetch(statement, parameters, bounds)
        finally:
            self.database.text_factory = str

    def _fetch(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        with closing(self.database.execute(statement, cast(Any, parameters))) as cursor:
            columns = tuple(ResultColumn(name=entry[0]) for entry in cursor.description or ())
            rows, exhausted, shortened = taken(cursor.fetchmany, bounds)
        return Found(columns=columns, rows=rows, exhausted=exhausted, shortened=shortened)

    @contextmanager
    def _running(self, bounds: Bounds) -> Generator[None]:
        clock = Clock(bounds.seconds)
        if self._stopped:
            raise clock.error()
        self.database.set_progress_handler(lambda: self._stopped or clock.is_over(), _STEPS)
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            if "interrupted" in str(error):
                raise clock.error() from None
            raise _translated(error) from None
        finally:
            self.database.set_progress_handler(None, 0)

    def _allow(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        self._actions.add(action)
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS_THAT_REACH_OUT:
            return sqlite3.SQLITE_DENY
        if action in _READING or (action, first) == (sqlite3.SQLITE_PRAGMA, "data_version"):
            return sqlite3.SQLITE_OK  # full-text tables look at the data version when they are read
        return sqlite3.SQLITE_DENY

    def _wake_virtual_tables(self) -> None:
        """Use each virtual table once: to the authorizer its first use looks like a change of the schema."""
        names = ["json_each('[]')", "json_tree('[]')"]
        for name, kind in self.database.execute("SELECT name, type FROM pragma_table_list"):
            if kind == "virtual":
                names.append(quoted(name))
        for name in names:
            with contextlib.suppress(sqlite3.DatabaseError):  # of a module that is not here: a limitation
                self.database.execute(f"SELECT 1 FROM {name} LIMIT 0").close()  # noqa: S608


def quoted(name: str) -> str:
    """An identifier in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _translated(error: Exception) -> AffidavitError:
    text = str(error)
    if any(word in text for word in ("not authorized", "authorization denied", "prohibited")):
        return refused("the statement does more than read")
    if "one statement at a time" in text:
        return refused("there is more than one statement")
    if isinstance(error, sqlite3.DataError):
        return FailedError(
            "tool-failed",
            f"SQLite says: {text}",
            hint="values have at most 512 KB beside instr and replace, 2 MB beside LIKE, 16 KB beside trim(x, y)",
            details={"reason": "sql"},
        )
    # SQLite's one code for all that a statement can be wrong in; the parameters are the module's own error
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_ERROR or isinstance(error, (sqlite3.ProgrammingError, OverflowError)):
        return UsageError("arguments-invalid", f"SQLite says: {text}", details={"reason": "sql"})
    return FailedError("tool-failed", f"SQLite says: {text}", details={"reason": "sql"})


def _bindable(parameters: Parameters) -> Parameters:
    """Parameters that SQLite takes as they are; it would store other types as something else without a word."""
    if isinstance(parameters, Mapping):
        return {name: _value(name, value) for name, value in parameters.items()}
    return [_value(str(place), value) for place, value in enumerate(parameters)]


def _value(place: str, value: object) -> object:
    if isinstance(value, str) and not _is_text(value):
        problem = "has lone surrogates, which SQLite cannot compare"
    elif isinstance(value, float) and math.isnan(value):
        problem = "is NaN, which SQLite takes for NULL"
    elif isinstance(value, int) and value not in _INTEGERS:
        problem = "is an integer beyond 64 bits"
    elif value is None or isinstance(value, (str, int, float, bytes)):
        return value
    else:
        problem = f"is a {type(value).__name__}; SQLite has NULL, integers, floats, text and bytes"
    raise UsageError(
        "arguments-invalid", f"the parameter {place} {problem}", details={"path": f"$.params[{place}]"}
    )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _refuse_hot_journal(path: Path) -> None:
    journal = path.with_name(path.name + "-journal")
    try:
        with journal.open("rb") as file:
            hot = file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except OSError:
        return
    if hot:
        raise FailedError(
            "mount-failed",
            f"{path.name} was not closed properly, or is being written: its journal {journal.name} is not empty",
            hint="open it once with its own program, which repairs it",
            retryable=True,
        )
