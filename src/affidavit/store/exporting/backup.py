"""A copy of a whole workspace, taken while it is in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import JsonValue
from affidavit.store._faults import database_error, file_error
from affidavit.store._reading import connect_to_read
from affidavit.store.blobs import Blobs
from affidavit.store.store import Store

__all__ = ["BackedUp", "back_up"]

_PAGES: Final = 512  # copied at once; writers go on between
_FACTS: Final = "facts"
_BLOBS: Final = "blobs"
_SUFFIX: Final = ".facts"
_OF_THE_COPY: Final = ("store-full", "store-unwritable")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What was copied.

    Attributes:
        folder: the new workspace.
        blobs: blobs that were copied; `facts` fact files likewise.
        damaged: addresses of blobs that do not hold in the workspace: they are not in the copy.
    """

    folder: Path
    blobs: int
    facts: int
    damaged: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit backup --json`."""
        return {
            "folder": str(self.folder),
            "blobs": self.blobs,
            "facts": self.facts,
            "damaged_blobs": list(self.damaged),
        }


def back_up(store: Store, folder: Path) -> BackedUp:
    """Copy all tenants of the workspace into a new folder, which is a workspace itself.

    The database is copied as it stands at one moment; blobs are copied after it, and each blob stands before any event
    that refers to it, so the copy is complete. Fact files are copied as they are: what is missing is analysed again.
    Blobs are copied, not linked, so that damage to one does not reach the other.

    Args:
        store: the store; others may use it meanwhile.
        folder: the new folder, which must not be there or be empty.

    Raises:
        UsageError: `file-exists`.
        FailedError: `store-full`, `store-unwritable`; then the folder is not there.
        VerificationError: `store-damaged`: the database cannot be read.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("file-exists", f"{folder} is there already", hint="take another name")
    made = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        made.mkdir(mode=0o700, parents=True)
        _copy_database(store.database.path, made / store.database.path.name, folder)
        blobs, damaged = _copy_blobs(store.root / _BLOBS, made / _BLOBS)
        facts = _copy_facts(store.root / _FACTS, made / _FACTS)
        if folder.exists():
            folder.rmdir()
        os.replace(made, folder)
    except OSError as error:
        raise file_error(error, folder) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return BackedUp(folder=folder, blobs=blobs, facts=facts, damaged=tuple(damaged))


def _copy_database(source: Path, target: Path, told: Path) -> None:
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        reader = connect_to_read(source)
        try:
            writer = sqlite3.connect(target)
            try:
                # One read transaction: the copy is one moment of a workspace that goes on.
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
                reader.backup(writer, pages=_PAGES)
            finally:
                writer.close()
        finally:
            reader.close()
    except sqlite3.Error as error:
        problem = database_error(error, source)
        if isinstance(problem, FailedError) and problem.code in _OF_THE_COPY:
            problem = database_error(error, told)  # the workspace is only read
        raise problem from None
    _sync(target)


def _copy_blobs(source: Path, target: Path) -> tuple[int, list[str]]:
    copied = 0
    damaged: list[str] = []
    for tenant in _folders(source):
        here, there = Blobs(tenant), Blobs(target / tenant.name)
        for address in here.addresses():
            try:
                there.put(here.get(address))
            except AffidavitError as error:
                if error.code not in ("blob-damaged", "blob-missing"):
                    raise
                damaged.append(address)
            else:
                copied += 1
    return copied, damaged


def _copy_facts(source: Path, target: Path) -> int:
    copied = 0
    for path in sorted(source.rglob(f"*{_SUFFIX}")) if source.is_dir() else ():
        place = target / path.relative_to(source)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        place.chmod(0o600)
        _sync(place)
        copied += 1
    return copied


def _folders(source: Path) -> Iterator[Path]:
    if source.is_dir():
        yield from (path for path in sorted(source.iterdir()) if path.is_dir())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
