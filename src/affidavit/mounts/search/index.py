"""An index of texts by number: one SQLite file, written once, then only read.

Scores are BM25 as FTS5 computes it (k1 = 1.2, b = 0.75), positive, more is better, rounded to six digits so that they
are the same on every machine.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.errors import FailedError, VerificationError
from affidavit.mounts.search.terms import Question, expanded

__all__ = ["INDEX_VERSION", "Ranked", "TextIndex", "add_texts", "build_index", "create_tables", "ranked"]

INDEX_VERSION: Final = 1
"""Part of every index's name: changes with the words that are made of a text."""

_DIGITS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The best of what an index found.

    Attributes:
        hits: number of each text and its score, best first; equal scores by number.
        matched: how many texts hold any of the terms.
    """

    hits: tuple[tuple[int, float], ...]
    matched: int


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the index's own table; the texts themselves are not kept in it."""
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text, inner, content='', "
        "tokenize=\"unicode61 remove_diacritics 2 categories 'L* N* M* Co'\")"
    )


def add_texts(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Add texts under their numbers."""
    connection.executemany(
        "INSERT INTO words(rowid, text, inner) VALUES (?, ?, ?)",
        ((number, *expanded(_plain(text))) for number, text in texts),
    )


def ranked(connection: sqlite3.Connection, question: Question, limit: int) -> Ranked:
    """The best `limit` texts for a question."""
    if not question.match:
        return Ranked(hits=(), matched=0)
    (matched,) = connection.execute(
        "SELECT count(*) FROM words WHERE words MATCH ?", (question.match,)
    ).fetchone()
    best = connection.execute(
        "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?",
        (question.match, limit),
    )
    return Ranked(hits=tuple((number, round(-score, _DIGITS)) for number, score in best), matched=matched)


def build_index(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Write an index file whole or not at all. Several processes may build the same one.

    Args:
        path: where it goes; its folder is made.
        fill: makes and fills the tables.

    Raises:
        FailedError: `store-full` or `store-unwritable`; whatever `fill` raises.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".building-", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise FailedError("store-unwritable", f"an index cannot be written: {error.strerror}") from error
    building = Path(name)
    try:
        with closing(sqlite3.connect(building, isolation_level=None, check_same_thread=False)) as connection:
            # The file is renamed into place when it is whole: a crash before that leaves nothing to recover.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            fill(connection)
            connection.execute("COMMIT")
        with building.open("rb") as file:
            os.fsync(file.fileno())
        building.replace(path)
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise FailedError("store-full", f"an index cannot be written: {error}") from error
        raise
    finally:
        with suppress(FileNotFoundError):
            building.unlink()


class TextIndex:
    """An index file that is read. Safe to use from several threads, one question at a time.

    Args:
        path: the file that `build_index` wrote.
    """

    def __init__(self, path: Path) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self.connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def search(self, question: Question, limit: int) -> Ranked:
        """The best `limit` texts for a question. Raises `VerificationError(facts-damaged)`."""
        try:
            return ranked(self.connection, question, limit)
        except sqlite3.DatabaseError as error:
            hint = "remove the folder of derived facts; the index is built again"
            raise VerificationError(
                "facts-damaged", f"an index cannot be read: {error}", hint=hint
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()


def _plain(text: str) -> str:
    """The text without what SQLite cannot hold as one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", " ")
