"""PostgreSQL: a live server, through a role that may only read.

Five walls. Each statement runs in a transaction of its own that is `READ ONLY` and always rolled back, under a
time limit of the server's. A script's statement is the query of a cursor, which PostgreSQL's own grammar allows for
`SELECT` and `VALUES` alone, one at a time. A role that is a superuser, may read or write the server's files, run its
programs, or call a function that does so is refused when it is mounted. Functions that signal other sessions, change
settings or run SQL from text are refused by name, and so are the tables of passwords. And a session is discarded after
a script's statement.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.files import optional
from affidavit.extensions import Source
from affidavit.mounts.secrets import expand
from affidavit.mounts.sql.catalogue import Catalogue, Column, Table
from affidavit.mounts.sql.engines.engine import (
    Bounds,
    Found,
    Parameters,
    ResultColumn,
    overdue,
    refused,
    taken,
)
from affidavit.mounts.sql.engines.postgres_schema import read_tables
from affidavit.mounts.sql.engines.postgres_types import set_loaders
from affidavit.mounts.sql.sources import SqlOptions

__all__ = ["PostgresDialect", "PostgresEngine"]

_CONNECT_SECONDS: Final = 10
_SETTINGS: Final = (
    "-c default_transaction_read_only=on -c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 "
    "-c bytea_output=hex -c extra_float_digits=1 -c search_path=public"
)
_ROLES: Final = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
_REACHING: Final = (
    r"^(dblink.*|pg_read_(binary_)?file|pg_ls_(dir|logdir|waldir)|pg_stat_file|lo_(im|ex)port)$"
)
_BY_NAME: Final = re.compile(
    r"\b(dblink\w*|pg_(terminate|cancel)_backend|pg_reload_conf|pg_rotate_logfile|set_config|pg_notify|"
    r"pg_advisory\w*|pg_try_advisory\w*|lo_(import|export|creat|create|unlink|open|close|get|put|from_bytea|"
    r"l?seek(64)?|l?tell(64)?|truncate(64)?)|lowrite|loread|pg_read_\w+|pg_ls_\w+|pg_stat_file|pg_logical_\w+|"
    r"pg_create_\w+|pg_export_snapshot|"
    # password hashes and connection strings, which `pg_read_all_data` lets a role read
    r"pg_authid|pg_shadow|pg_user_mappings?|pg_subscription|pg_foreign_server|"
    # these run SQL from a text, which may be put together so that no name can be seen in it
    r"ts_stat|ts_rewrite|crosstab\w*|connectby|xpath_table|query_to_xml\w*|table_to_xml\w*|cursor_to_xml\w*|"
    r"schema_to_xml\w*|database_to_xml\w*)\b",
    re.IGNORECASE,
)
_ESCAPED_NAME: Final = re.compile(r"""\bU&["']""", re.IGNORECASE)


class PostgresDialect:
    """How PostgreSQL writes it."""

    def table(self, table: Table) -> str:
        """The table's full name."""
        return ".".join(quoted(part) for part in table.path)

    def shown(self, column: Column) -> str:
        """The column, or its text where no value holds it exactly."""
        return f"{quoted(column.name)}::text" if column.as_text else quoted(column.name)

    def key(self, name: str) -> str:
        """The column, or the place of the row in its table."""
        return quoted(name)

    def equals(self, column: Column, value: Any, place: int) -> tuple[str, Any]:
        """Equality as the column's type has it."""
        return f"{self.shown(column)} = ${place}", value

    def distinct(self, column: Column) -> str:
        """The column as it is shown."""
        return self.shown(column)

    def bound(self, value: Any, place: int) -> tuple[str, Any]:
        """`$1` and the value."""
        return f"${place}", value


class PostgresEngine:
    """One database of a server.

    Args:
        uri: where it is, without a password.
        source: gives the password, from the environment.
        options: the mount's options.
    """

    live = True

    def __init__(self, uri: str, source: Source, options: SqlOptions) -> None:
        self.dialect = PostgresDialect()
        self._psycopg = optional("psycopg", "sql")
        self._uri = uri
        self._source = source
        self._options = options

    def describe(self) -> Catalogue:
        """The tables and views that the role may read."""
        connection = self.connect()
        try:
            with connection.reading(self._options.timeout) as cursor:
                name, version = cursor.execute("SELECT current_database(), version()").fetchone()
                tables = read_tables(cursor, self._options.schemas)
        except self._psycopg.Error as error:
            raise FailedError("mount-failed", f"PostgreSQL says: {_said(error)}") from error
        finally:
            connection.close()
        return Catalogue(
            engine="postgresql",
            version=version.split()[1],
            format="postgresql",
            identity="",
            database=name,
            tables=tuple(tables),
        )

    def identity(self) -> str:
        """A live server has none; that it can be reached is seen."""
        self.connect().close()
        return ""

    def check(self) -> None:
        """Nothing can be said beforehand."""

    def connect(self) -> PostgresConnection:
        """A connection whose role may only read. Raises `FailedError(mount-failed)`."""
        password = expand(self._options.password, self._source.secret) or None
        try:
            connection = self._psycopg.connect(
                self._uri,
                **({"password": password} if password else {}),
                options=_SETTINGS,
                connect_timeout=_CONNECT_SECONDS,
                application_name="affidavit",
                client_encoding="utf8",
            )
        except (self._psycopg.Error, ValueError) as error:
            raise FailedError("mount-failed", f"PostgreSQL: {_said(error)}", retryable=True) from None
        made = PostgresConnection(self._psycopg, connection)
        try:
            made.see_that_it_only_reads()
        except BaseException:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Nothing is shared."""


class PostgresConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, psycopg: Any, connection: Any) -> None:
        self._psycopg = psycopg
        self._connection = connection
        self._stopped = False
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        set_loaders(psycopg, connection)

    def see_that_it_only_reads(self) -> None:
        """Refuse a role whose rights go beyond reading tables. Raises `FailedError(mount-failed)`."""
        with self.reading(_CONNECT_SECONDS) as cursor:
            (powers,) = cursor.execute(
                "SELECT CASE WHEN (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) "
                "THEN ARRAY['superuser'] ELSE ARRAY(SELECT rolname::text FROM pg_roles "
                "WHERE rolname = ANY($1) AND pg_has_role(current_user, oid, 'MEMBER')) || "
                "ARRAY(SELECT DISTINCT proname::text FROM pg_proc WHERE proname ~ $2 "
                "AND has_function_privilege(oid, 'EXECUTE')) END",
                [list(_ROLES), _REACHING],
            ).fetchone()
        if powers:
            raise FailedError(
                "mount-failed",
                f"the role of this mount can do more than read: {', '.join(powers[:5])}",
                hint="mount with a role of its own: CREATE ROLE reader LOGIN PASSWORD '...'; "
                "GRANT pg_read_all_data TO reader",
                details={"powers": list(powers)},
            )

    def select(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that this product wrote."""
        return self._fetched(statement, parameters, bounds)

    def query(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        """Run a statement that a script wrote, as the query of a cursor."""
        if not isinstance(parameters, (list, tuple)):
            hint = "write $1, $2 and give a list"
            raise UsageError("arguments-invalid", "PostgreSQL has no named parameters", hint=hint)
        found = _BY_NAME.search(statement) or _ESCAPED_NAME.search(statement)
        if found:
            raise refused(f"`{found[0]}` is not for scripts")
        try:
            return self._fetched(statement, parameters, bounds)
        finally:
            self._discard()

    def interrupt(self) -> None:
        """End the statement that runs or is about to."""
        self._stopped = True
        with contextlib.suppress(Exception):  # closed in between
            self._connection.cancel_safe(timeout=5.0)

    def close(self) -> None:
        """Let go."""
        with contextlib.suppress(Exception):
            self._connection.close()

    @contextmanager
    def reading(self, seconds: float) -> Generator[Any]:
        """A cursor in a read-only transaction that is rolled back."""
        if self._stopped:
            raise overdue(seconds)
        try:
            with self._psycopg.RawCursor(self._connection) as cursor:
                cursor.execute(
                    "SELECT set_config('statement_timeout', $1, true)", [str(max(1, int(seconds * 1000)))]
                )
                yield cursor
        finally:
            with contextlib.suppress(self._psycopg.Error):  # the connection is gone
                self._connection.rollback()

    def _fetched(self, statement: str, parameters: Parameters, bounds: Bounds) -> Found:
        psycopg = self._psycopg
        try:
            with (
                self.reading(bounds.seconds),
                psycopg.RawServerCursor(self._connection, "asked", scrollable=False) as cursor,
            ):
                cursor.execute(statement, parameters or None)
                columns = tuple(
                    ResultColumn(name=one.name, declared=self._declared(one))
                    for one in cursor.description or ()
                )
                rows, exhausted, shortened = taken(cursor.fetchmany, bounds)
        except psycopg.Error as error:
            raise self._translated(error, bounds.seconds) from None
        except (TypeError, ValueError, OverflowError) as error:  # parameters it has no type for
            message = f"PostgreSQL cannot take this: {_said(error)}"
            raise UsageError("arguments-invalid", message, details={"reason": "sql"}) from None
        return Found(columns=columns, rows=rows, exhausted=exhausted, shortened=shortened)

    def _declared(self, column: Any) -> str | None:
        known = self._connection.adapters.types.get(column.type_code)
        return cast("str", known.name) if known is not None else None

    def _discard(self) -> None:
        """Take back whatever a script's statement left in the session: locks, settings, plans."""
        try:
            self._connection.autocommit = True
            self._connection.execute("DISCARD ALL")
            self._connection.autocommit = False
            self._connection.read_only = True
        except self._psycopg.Error:
            self._stopped = True  # the connection is not used again
            self.close()

    def _translated(self, error: Any, seconds: float) -> AffidavitError:
        psycopg = self._psycopg
        text, details = f"PostgreSQL says: {_said(error)}", {"reason": "sql"}
        state = str(getattr(error, "sqlstate", None) or "")
        if isinstance(error, psycopg.errors.QueryCanceled):
            return overdue(seconds)
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction) or state == "42501":
            return refused(_said(error))
        if "cannot insert multiple commands" in text or "must not contain data-modifying" in text:
            return refused("there is more than one statement, or one that writes")
        # SQLSTATE: 42 syntax and names, 22 data, 26, 34 and 0A what there is not, 08P01 too few parameters
        if (
            state == "08P01"
            or state[:2] in ("42", "22", "0A", "26", "34")
            or isinstance(error, psycopg.ProgrammingError)
        ):
            return UsageError("arguments-invalid", text, details=details)
        return FailedError(
            "tool-failed", text, details=details, retryable=isinstance(error, psycopg.OperationalError)
        )


def quoted(name: str) -> str:
    """An identifier in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _said(error: Exception) -> str:
    return " ".join(str(error).split("\n", 1)[0].split())[:300]
