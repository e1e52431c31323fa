"""Fact files: immutable, indexed SQLite files of typed rows, written once and opened read-only.

One table per collection: `ordinal` (the row's place, from 0), `key`, one indexed column per `where` field, `row` (the
canonical JSON of the row's tagged values) and `item` (the same of the full item, where it differs). A meta table holds
what the analyzer said, the declared collections and the digest. A seal of 64 bytes ends the file.

A file is named by its input, not by its content: who has the artifact and the analyzer knows the name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from affidavit.errors import FailedError, VerificationError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import Coverage, JsonValue, Limitation
from affidavit.facts._read import FactFile
from affidavit.facts._write import FactFileWriter
from affidavit.facts.spec import CollectionSpec

if sys.platform != "win32":
    import fcntl

__all__ = ["FactFile", "FactFileWriter", "FactKey", "FactStore", "Fill", "analysis_meta"]

_SUFFIX = ".facts"
_UNFINISHED = ".tmp"
_log = logging.getLogger(__name__)

Fill = Callable[[FactFileWriter], Mapping[str, JsonValue]]
"""Writes every row and returns the meta document (see `analysis_meta`); raises when it cannot complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactKey:
    """What facts are made from. Equal keys name one file.

    Attributes:
        artifact: `sha256:` digest of the artifact.
        analyzer: name of the analyzer.
        version: contract version of its facts.
        options: what it was told beside the artifact.
    """

    artifact: str
    analyzer: str
    version: str
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @property
    def name(self) -> str:
        """Lower-hex SHA-256 of the canonical key."""
        key = asdict(self) | {"options": dict(self.options)}
        return hashlib.sha256(canonical(values.encode(key))).hexdigest()


def analysis_meta(
    *, summary: Mapping[str, JsonValue], coverage: Coverage, limitations: Sequence[Limitation]
) -> dict[str, JsonValue]:
    """The meta document of an analysis, as `FactFile.summary`, `.coverage` and `.limitations` read it back."""
    return {
        "summary": dict(summary),
        "coverage": coverage.as_json(),
        "limitations": [asdict(one) for one in limitations],
    }


class FactStore:
    """A folder of fact files. Several processes may use one folder at once.

    Args:
        root: the folder; made when first needed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, key: FactKey) -> Path:
        """Where the facts of a key are, or will be."""
        return self._root / f"{key.name}{_SUFFIX}"

    def get(self, key: FactKey, collections: Sequence[CollectionSpec]) -> FactFile | None:
        """Open the facts of a key, or None where they must be built.

        A damaged file counts as none, with a warning in the log: `build` replaces it and nothing is lost by that.

        Raises:
            VerificationError: `facts-damaged` for a file of a newer format, which only its own version may replace.
        """
        try:
            return FactFile.open(self.path(key), collections)
        except FileNotFoundError:
            return None
        except VerificationError as error:
            if error.details.get("reason") == "version":
                raise
            _log.warning("%s; the artifact is analyzed again", error.message)
            return None

    def build(
        self,
        key: FactKey,
        collections: Sequence[CollectionSpec],
        fill: Fill,
        *,
        page_size: int | None = None,
    ) -> FactFile:
        """Make the facts of a key and open them.

        The file appears complete or not at all: a crash leaves an unfinished one under another name, which a later
        build removes. Of two processes that build the same, either result stands; their rows are the same.

        Args:
            key: what the facts are made from.
            collections: what they hold.
            fill: writes the rows.
            page_size: bytes of a page of the file; a smaller one suits a file of few rows.

        Raises:
            FailedError: `store-full`, or whatever `fill` raises.
        """
        with _folder_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            self._sweep()
        path = self.path(key)
        with _unfinished(path) as temporary:
            writer = FactFileWriter(temporary, collections, page_size=page_size)
            try:
                writer.seal(fill(writer))
            finally:
                writer.abort()
            with _folder_errors(self._root):
                _publish(temporary, path)
        return FactFile.open(path, collections)

    def _sweep(self) -> None:
        """Remove what builds left that did not live to finish."""
        for path in self._root.glob(f"*{_UNFINISHED}"):
            try:
                descriptor = os.open(path, os.O_RDWR)
            except OSError:  # finished, swept by another, or (on Windows) still open elsewhere
                continue
            try:
                if _claim(descriptor):
                    path.unlink(missing_ok=True)
            except OSError as error:
                _log.info("%s is left over and cannot be removed: %s", path, error)
            finally:
                os.close(descriptor)


@contextmanager
def _unfinished(path: Path) -> Generator[Path]:
    """A new empty file beside `path` that no sweep removes while the block runs; gone afterwards."""
    with _folder_errors(path.parent):
        temporary, descriptor = _create(path)
    try:
        yield temporary
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _create(path: Path) -> tuple[Path, int]:
    while True:
        temporary = path.with_name(f"{path.stem}.{secrets.token_hex(8)}{_UNFINISHED}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            claimed = _claim(descriptor)
        except OSError:  # a file system without locks, where no sweep can remove anything either
            claimed = True
        # A sweep may come between making the file and claiming it; then it is gone or claimed, and we take another.
        if claimed and temporary.exists():
            return temporary, descriptor
        os.close(descriptor)


def _claim(descriptor: int) -> bool:
    """Lock an open file for as long as it stays open; False where someone else holds it.

    Raises:
        OSError: the file system has no locks.
    """
    if sys.platform == "win32":  # an open file cannot be removed there, which is all that the lock is for
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _publish(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except PermissionError:
        if sys.platform != "win32" or not path.exists():
            raise
        return  # another process has the same facts open already
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _folder_errors(root: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise FailedError(
            "store-full",
            f"facts cannot be kept in {root}: {error.strerror or error}",
            hint="free some disk space, or check that the folder can be written",
            retryable=True,
        ) from error
