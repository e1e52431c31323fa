"""DuckDB: a database file, or a file of one table that is loaded into one.

The database is opened read-only, without access to any other file, without extensions, without a look at the variables
of this process, and its configuration is locked. A script's statement has to be one `SELECT` to DuckDB's own parser,
and runs as a subquery of ours, which bounds its rows before they are made.

A Parquet, CSV or JSON file is loaded once, before all that, into a database of the cache that its digest names.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.files import optional
from affidavit.mounts.sql.catalogue import Catalogue, Column, Table
from affidavit.mounts.sql.engines.duckdb_loading import load
from affidavit.mounts.sql.engines.duckdb_schema import read_tables
from affidavit.mounts.sql.engines.duckdb_types import Shown, exact, shown_as
from affidavit.mounts.sql.engines.engine import (
    Bounds,
    Clock,
    Found,
    Parameters,
    ResultColumn,
    refused,
    taken,
)
from affidavit.mounts.sql.engines.files import FileSnapshot
from affidavit.mounts.sql.sources import FileTarget

__all__ = ["DuckDialect", "DuckEngine"]

_CONFIGURATION: Final = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "memory_limit": "1GB",
    "temp_directory": "",
    "threads": "2",
}


class DuckDialect:
    """How DuckDB writes it."""

    def table(self, table: Table) -> str:
        """The table's full name in a statement."""
        return ".".join(quoted(part) for part in table.path)

    def shown(self, column: Column) -> str:
        """The column, or its text where no value holds it exactly."""
        name = quoted(column.name)
        return f"CAST({name} AS VARCHAR)" if column.as_text else name

    def key(self, name: str) -> str:
        """The column, or the row number."""
        return quoted(name)

    def equals(self, column: Column, value: Any, place: int) -> tuple[str, Any]:
        """Equality; the column's own collation never merges texts here."""
        return f"{self.shown(column)} = ${place}", value

    def distinct(self, column: Column) -> str:
        """The column as it is shown."""
        return self.shown(column)

    def bound(self, value: Any, place: int) -> tuple[str, Any]:
        """`$1` and the value."""
        return f"${place}", value


class DuckEngine:
    """One file.

    Args:
        target: the file and its format.
        cache: where files of one table are loaded to.
        expected: the identity that was mounted, or empty.
    """

    live = False

    def __init__(self, target: FileTarget, cache: Path, *, expected: str = "") -> None:
        self.dialect = DuckDialect()
        self._duckdb = optional("duckdb", "sql")
        self._target = target
        self._cache = cache / "duckdb"
        beside = (".wal",) if target.format == "duckdb" else ()
        self._snapshot = FileSnapshot(target.path, beside=beside, expected=expected)
        self._database: Any = None
        self._lock = threading.Lock()

    def describe(self) -> Catalogue:
        """Tables and views, with their types and sizes."""
        self._snapshot.check()
        identity = self._snapshot.identity()
        with closing(self.connect()) as connection:
            try:
                tables = read_tables(connection.database, from_data=self._target.format != "duckdb")
            except self._duckdb.Error as error:
                raise FailedError(
                    "mount-failed", f"{self._target.path.name} cannot be read: {error}"
                ) from error
        self._snapshot.check()
        self._close()
        return Catalogue(
            engine="duckdb",
            version=self._duckdb.__version__,
            format=self._target.format,
            identity=identity,
            tables=tuple(tables),
        )

    def identity(self) -> str:
        """The digest of the file."""
        return self._snapshot.identity()

    def check(self) -> None:
        """See that the file is what was mounted."""
        self._snapshot.check()

    def connect(self) -> DuckConnection:
        """A connection to the one read-only database."""
        with self._lock:
            if self._database is None:
                self._database = self._opened()
            return DuckConnection(self._duckdb, self._database.cursor())

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    def _close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _opened(self) -> Any:
        path = self._target.path if self._target.format == "duckdb" else self._loaded()
        try:
            database = self._duckdb.connect(str(path), read_only=True, config=dict(_CONFIGURATION))
        except self._duckdb.Error as error:
            message = f"{self._target.path.name} cannot be opened: {_first_line(error)}"
            raise FailedError("mount-failed", message) from error
        database.execute("SET TimeZone = 'UTC'")
        database.execute("SET lock_configuration = true")
        return database

    def _loaded(self) -> Path:
        """The database that a file of one table was loaded into, named by the file's digest."""
        name = self._snapshot.identity().removeprefix("sha256:")
        kept = self._cache / f"{name}-{self._target.format}-{self._duckdb.__version__}.duckdb"
        if kept.exists():
            return kept
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".loading-") as folder:
            made = Path(folder) / "made.duckdb"
            try:
                with closing(self._duckdb.connect(str(made))) as database:
                    load(database, self._target)
            except self._duckdb.Error as error:
                message = f"{self._target.path.name} is no {self._target.format} that can be read"
                raise FailedError("mount-failed", f"{message}: {_first_line(error)}") from error
            self._snapshot.check()
            made.replace(kept)
        return kept


class DuckConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, duckdb: Any, database: Any) -> None:
        self._duckdb = duckdb
        self.database = database
        self._stopped = False

    def select(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that this product wrote."""
        with self._running(bounds):
            return self._read(statement, parameters, bounds)

    def query(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that a script wrote, as a subquery."""
        with self._running(bounds):
            asked = self._one_select(statement)
            described = self._execute(f"DESCRIBE {asked}", parameters).fetchall()
            columns = [(str(name), str(kind)) for name, kind, *_ in described]
            ways = [shown_as(kind) for _, kind in columns]
            names = [f"c{place}" for place in range(len(columns))]
            shown = ", ".join(
                f"CAST({name} AS VARCHAR)" if way is not Shown.AS_IT_IS else name
                for name, way in zip(names, ways, strict=True)
            )
            found = self._read(
                f"SELECT {shown} FROM (\n{asked}\n) AS asked({', '.join(names)}) LIMIT {bounds.rows + 1}",  # noqa: S608
                parameters,
                bounds,
            )
        return Found(
            columns=tuple(ResultColumn(name=name, declared=kind) for name, kind in columns),
            rows=[
                tuple(exact(value, way) for value, way in zip(row, ways, strict=True)) for row in found.rows
            ],
            exhausted=found.exhausted,
            shortened=found.shortened,
        )

    def interrupt(self) -> None:
        """End the statement that runs or is about to."""
        self._stopped = True
        with contextlib.suppress(Exception):  # closed in between
            self.database.interrupt()

    def close(self) -> None:
        """Let go."""
        self.database.close()

    def _read(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        cursor = self._execute(statement, parameters)
        columns = tuple(ResultColumn(name=entry[0], declared=str(entry[1])) for entry in cursor.description)
        rows, exhausted, shortened = taken(cursor.fetchmany, bounds)
        return Found(
            columns=columns,
            rows=[tuple(exact(value, Shown.AS_IT_IS) for value in row) for row in rows],
            exhausted=exhausted,
            shortened=shortened,
        )

    def _execute(self, statement: str, parameters: Parameters) -> Any:
        if self._stopped:
            raise self._duckdb.InterruptException("cancelled")
        if not parameters:
            return self.database.execute(statement)
        return self.database.execute(statement, parameters)

    def _one_select(self, statement: str) -> str:
        """The text of the one `SELECT` that a statement is, without what ends it."""
        found = self._duckdb.extract_statements(statement)
        if not found:
            raise UsageError("arguments-invalid", "there is no statement", details={"reason": "sql"})
        if len(found) > 1:
            raise refused("there is more than one statement")
        if found[0].type != self._duckdb.StatementType.SELECT:
            raise refused(f"this is {found[0].type.name}, not SELECT")
        data = statement.encode()
        for place, kind in self._duckdb.tokenize(statement):
            if kind == self._duckdb.token_type.operator and data[place : place + 1] == b";":
                return data[:place].decode()
        return statement

    @contextmanager
    def _running(self, bounds: Bounds) -> Generator[None]:
        clock = Clock(bounds.seconds)
        timer = threading.Timer(bounds.seconds, self.database.interrupt)
        timer.start()
        try:
            yield
        except self._duckdb.InterruptException:
            raise clock.error() from None
        except self._duckdb.Error as error:
            raise self._translated(error) from None
        except (
            TypeError,
            OverflowError,
            RuntimeError,
            UnicodeError,
        ) as error:  # parameters it has no type for
            message = f"DuckDB cannot take this: {_first_line(error)}"
            raise UsageError("arguments-invalid", message, details={"reason": "sql"}) from None
        finally:
            timer.cancel()

    def _translated(self, error: Exception) -> AffidavitError:
        duckdb = self._duckdb
        text, details = f"DuckDB says: {_first_line(error)}", {"reason": "sql"}
        if isinstance(error, duckdb.PermissionException):
            return refused(_first_line(error))
        callers = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        if isinstance(error, (*callers, duckdb.InvalidInputException, duckdb.NotImplementedException)):
            return UsageError("arguments-invalid", text, details=details)
        return FailedError("tool-failed", text, details=details)


def quoted(name: str) -> str:
    """An identifier in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
