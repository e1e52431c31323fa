"""npm tarballs: unpacked once, in bounds, into one anonymous temporary file."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from affidavit.analyzers.javascript.containers.entry import (
    Entry,
    EntryError,
    limitation,
    unsafe_link,
    unsafe_path,
)
from affidavit.analyzers.javascript.containers.rooted import read_fd
from affidavit.analyzers.javascript.containers.tar_stream import Member, TarStream
from affidavit.analyzers.javascript.containers.tree import join
from affidavit.errors import FailedError, NotFoundError
from affidavit.evidence.record import Limitation

__all__ = ["TarballContainer"]

FORMAT: Final = "npm-tarball"


class TarballContainer:
    """A tarball as npm would unpack it: without its one top folder, the later of two equal names kept.

    Unlike npm, links are listed (npm leaves them out); they lead nowhere outside.

    Raises:
        NotFoundError: `artifact-not-found`.
        VerificationError: `artifact-damaged`, naming the offset in the (unpacked) stream.
        FailedError: `store-full` when there is no room to unpack it.
    """

    def __init__(self, path: Path) -> None:
        self._spool = tempfile.TemporaryFile(prefix="affidavit-")  # noqa: SIM115 - closed by close()
        weakref.finalize(self, self._spool.close)
        self._offsets: dict[str, int] = {}
        self._found: dict[str, tuple[Entry, int]] = {}
        self._limitations: list[Limitation] = []
        try:
            with _opened(path) as source:
                self._unpack(TarStream(source))
            self._spool.flush()
        except OSError as error:
            self.close()
            raise FailedError(
                "store-full",
                f"{path.name} cannot be unpacked into a temporary file: {error.strerror}",
                hint="free some room where temporary files lie",
                retryable=True,
            ) from error
        except BaseException:
            self.close()
            raise
        self.format = FORMAT
        self.entries: tuple[Entry, ...] = self._settle()
        self.limitations: tuple[Limitation, ...] = tuple(self._limitations)

    def _unpack(self, stream: TarStream) -> None:
        for member in stream:
            try:
                entry = _entry(member)
            except EntryError as error:
                self._limitations.append(error.limitation)
                continue
            offset = self._spool.tell()
            for chunk in stream.chunks() if entry.kind == "file" else ():
                self._spool.write(chunk)
            before = self._found.get(entry.path)
            if before is not None and "directory" not in {before[0].kind, entry.kind}:
                self._limitations.append(
                    limitation(
                        "entry-skipped", entry.path, "a later member of the same name replaces this one"
                    )
                )
            if before is None or entry.kind != "directory":
                self._found[entry.path] = (entry, offset)

    def _settle(self) -> tuple[Entry, ...]:
        """The entries under their final names, without directories that hold something."""
        top = _top_folder(self._found)
        self._limitations = [
            limitation(one.code, one.place.removeprefix(top), one.message) for one in self._limitations
        ]
        kept: list[Entry] = []
        parents = {parent for path in self._found for parent in _parents(path)}
        for path in sorted(self._found):
            entry, offset = self._found[path]
            name = path[len(top) :]
            if entry.kind == "directory" and (path in parents or not name):
                continue
            if any(
                self._found[parent][0].kind != "directory"
                for parent in _parents(path)
                if parent in self._found
            ):
                self._limitations.append(limitation("entry-unsafe", name, "lies below a file or a link"))
                continue
            moved = _moved(entry, name, top)
            if moved is None:
                self._limitations.append(limitation("entry-unsafe", name, "a link that leaves the container"))
                continue
            kept.append(moved)
            self._offsets[name] = offset
        self._found = {}
        return tuple(sorted(kept, key=lambda entry: entry.path))

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of a file, at most `CHUNK` at a time. Raises `EntryError`."""
        return read_fd(self._spool.fileno(), entry.path, offset=self._offsets[entry.path], size=entry.size)

    @property
    def is_open(self) -> bool:
        """Whether it can still be read."""
        return not self._spool.closed

    def close(self) -> None:
        """Release the temporary file, as the last reference to this object does too. Harmless when repeated."""
        self._spool.close()


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error


def _entry(member: Member) -> Entry:
    path = "/".join(part for part in member.name.split("/") if part != ".").rstrip("/")
    reason = "an absolute path" if member.name.startswith("/") else unsafe_path(path)
    if reason:
        raise EntryError("entry-unsafe", member.name, reason)
    if member.kind == "special":
        raise EntryError("entry-skipped", path, "a pipe, a device or a sparse file")
    if member.kind == "directory":
        return Entry(path=path, kind="directory")
    if member.kind == "file":
        return Entry(path=path, kind="file", size=member.size, executable=bool(member.mode & 0o111))
    if unsafe_link(member.link):
        raise EntryError("entry-unsafe", path, "a link that leaves the container")
    # A hard link names a member, a symbolic link a path from where it lies.
    directory = "" if member.kind == "hard-link" else path.rpartition("/")[0]
    return Entry(path=path, kind="link", target=join(directory, member.link))


def _moved(entry: Entry, name: str, top: str) -> Entry | None:
    """The entry without the top folder; None for a link that leads out of that folder."""
    if entry.target is None:
        return Entry(path=name, kind=entry.kind, size=entry.size, executable=entry.executable)
    target = os.path.normpath(entry.target)
    if target != top.rstrip("/") and not target.startswith(top):
        return None
    return Entry(path=name, kind="link", target=target[len(top) :])


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _top_folder(found: dict[str, tuple[Entry, int]]) -> str:
    """The one folder that everything lies in, with its slash; empty when there is no such folder."""
    tops = {path.partition("/")[0] for path in found}
    if len(tops) != 1:
        return ""
    top = next(iter(tops))
    alone = found.get(top)
    return "" if alone is not None and alone[0].kind != "directory" else top + "/"
