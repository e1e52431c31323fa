"""Opening a database that this process may not write: on a read-only medium, or of somebody else."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from affidavit.errors import FailedError

__all__ = ["connect_to_read", "may_be_written"]


def may_be_written(path: Path) -> bool:
    """Whether SQLite could write the file and make its side files beside it. An absent file counts as writable."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also where SQLite cannot make the files that it shares with writers.

    With its log and the log's index (`-wal`, `-shm`) beside it, the database is read together with its writers.
    Without a log nobody has it open, and the file is whole. Only then may SQLite take it for one that nothing changes
    (`immutable`): it looks at no log and takes no lock. "Read-Only Databases" in SQLite's page on write-ahead logging
    says why both are needed.

    Raises:
        FailedError: `store-unwritable`: there is a log, and no index to read it by.
        sqlite3.Error: whatever else is wrong.
    """
    log, index = (path.with_name(f"{path.name}-{it}") for it in ("wal", "shm"))
    logged = log.exists() and (index.exists() or log.stat().st_size > 0)
    mode = "mode=ro" if logged or may_be_written(path) else "immutable=1"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if logged and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
            raise FailedError(
                "store-unwritable",
                f"the last changes of {path} stand in {log.name}, which cannot be read where nothing may be written",
                hint="copy the whole folder, that file included, to where you may write, and open the copy",
                details={"path": str(path)},
            ) from None
        raise
    except BaseException:
        connection.close()
        raise
    return connection
