"""What a URI names: `sqlite:///x.db`, `duckdb:./x.parquet`, `postgresql://user@host/name`, or a file by its bytes.

Relative paths start in the mount's folder: `sqlite:///x.db` and `sqlite:x.db` are the same file, `sqlite:////x.db` is
an absolute path.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from affidavit.errors import NotFoundError, UsageError
from affidavit.extensions import Source
from affidavit.mounts.options import Options, read_options
from affidavit.mounts.secrets import refuse_credentials, refuse_userinfo
from affidavit.mounts.sql.claims import DUCKDB, DUCKDB_AT, SCHEMES, SQLITE, TABLE_FILES

__all__ = ["FileTarget", "ServerTarget", "SqlOptions", "read_target"]


class SqlOptions(Options):
    """Options of a mount.

    Attributes:
        timeout: seconds that one statement may take.
        password: of a PostgreSQL server, as `env:VARIABLE`.
        schemas: the schemas of a PostgreSQL database whose tables are offered; all that the role sees when empty.
    """

    timeout: float = Field(default=30.0, gt=0, le=3600)
    password: str = ""
    schemas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """A file: a database, or one table of a format that DuckDB reads."""

    engine: Literal["sqlite", "duckdb"]
    format: Literal["sqlite", "duckdb", "parquet", "csv", "json"]
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTarget:
    """A PostgreSQL server: its connection URI without any password."""

    uri: str


def read_target(source: Source) -> tuple[FileTarget | ServerTarget, SqlOptions]:
    """What a source names, and its options.

    Raises:
        UsageError: `mount-invalid`.
        NotFoundError: `artifact-not-found`.
    """
    options = read_options(SqlOptions, source)
    if options.password:
        refuse_credentials("option", "password", options.password)
    scheme, _, rest = source.uri.partition(":")
    if scheme in ("postgresql", "postgres"):
        refuse_userinfo(source.uri)
        if "password=" in rest or "passfile=" in rest:
            hint = "say --option password=env:VARIABLE"
            raise UsageError(
                "mount-invalid", "the URI holds a password, and URIs are kept in the log", hint=hint
            )
        return ServerTarget(uri=source.uri), options
    if f"{scheme}:" in SCHEMES:
        name = rest.removeprefix("///") if rest.startswith("///") else rest
        if not name or (rest.startswith("//") and not rest.startswith("///")):
            hint = f"for example {scheme}:///x.db"
            raise UsageError("mount-invalid", f"{source.uri!r} names no file", hint=hint)
    else:
        scheme, name = "", source.uri
    path = source.folder / Path(name).expanduser()
    return _file(path, scheme), options


def _file(path: Path, scheme: str) -> FileTarget:
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except FileNotFoundError as error:
        raise NotFoundError("artifact-not-found", f"there is no file {path.name}") from error
    except OSError as error:
        raise UsageError("mount-invalid", f"{path.name} cannot be read: {error.strerror}") from error
    if head.startswith(SQLITE) or (not head and scheme == "sqlite"):
        return FileTarget(engine="sqlite", format="sqlite", path=path)
    if head[DUCKDB_AT:].startswith(DUCKDB):
        return FileTarget(engine="duckdb", format="duckdb", path=path)
    kind = TABLE_FILES.get(path.suffix.lower())
    if scheme == "sqlite" or kind is None:
        hint = "there are SQLite and DuckDB databases, .parquet, .csv, .tsv, .json, .jsonl"
        raise UsageError("mount-invalid", f"{path.name} is no database or table that can be read", hint=hint)
    return FileTarget(engine="duckdb", format=kind, path=path)
