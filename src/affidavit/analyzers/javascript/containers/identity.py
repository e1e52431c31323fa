"""What an artifact is: the digest of its content, the same wherever it lies, and a cheap signature of its place.

An ASAR archive without companions has the digest of its bytes. Folders, tarballs, archives with unpacked files and
single source files have the digest of a *manifest*: the canonical JSON of their format and of every entry with its
mode (executable or not, as Git keeps it), link target and content digest, plus what was refused. So equal trees have
equal digests on every machine, whatever their owners, times and permissions. A single source file has a manifest
because its name decides its language and is what rows call it: equal bytes under two names are two artifacts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from affidavit.analyzers.javascript.containers.asar import AsarContainer, companion
from affidavit.analyzers.javascript.containers.entry import Container, Entry, EntryError
from affidavit.analyzers.javascript.containers.folder import FolderContainer
from affidavit.errors import NotFoundError
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.record import JsonValue, Limitation, Subject

__all__ = ["manifest_digest", "sha256_of", "signature_of", "subject_of"]

_FILE: Final = "100644"
_EXECUTABLE: Final = "100755"
_LINK: Final = "120000"
_DIRECTORY: Final = "040000"


def sha256_of(chunks: Iterable[bytes]) -> str:
    """`sha256:` and lower-case hex over the chunks."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return "sha256:" + hasher.hexdigest()


def subject_of(container: Container) -> Subject:
    """Digest and format of an open container. Reads every byte of it.

    Raises:
        NotFoundError: the archive's bytes went away meanwhile.
    """
    if isinstance(container, AsarContainer):
        return Subject(digest=_asar_digest(container), format=container.format)
    contents = {entry.path: _content(container, entry) for entry in container.entries if entry.kind == "file"}
    return Subject(digest=manifest_digest(container, contents), format=container.format)


def _asar_digest(container: AsarContainer) -> str:
    try:
        archive = sha256_of(container.archive_chunks())
    except EntryError as error:
        raise NotFoundError(
            "artifact-not-found", f"the archive changed while it was read: {error.message}"
        ) from error
    beside = [entry for entry in container.entries if entry.kind == "file" and entry.unpacked]
    found = {entry.path: _content(container, entry) for entry in beside}
    if all(content == "entry-missing" for content in found.values()):
        return archive
    rows = [_row(entry, found) for entry in beside]
    return _seal(container.format, rows, (), archive=archive)


def _content(container: Container, entry: Entry) -> str:
    """The content digest, or the code that says why there is none."""
    try:
        return sha256_of(container.chunks(entry))
    except EntryError as error:
        return error.code


def manifest_digest(container: Container, contents: Mapping[str, str]) -> str:
    """The digest of a container's manifest.

    Args:
        container: whose entries and limitations enter.
        contents: of each file entry its content digest, or the code that says why it has none.
    """
    return _seal(
        container.format, [_row(entry, contents) for entry in container.entries], container.limitations
    )


def _row(entry: Entry, contents: Mapping[str, str]) -> list[str]:
    if entry.kind == "link":
        return [entry.path, _LINK, entry.target or ""]
    if entry.kind == "directory":
        return [entry.path, _DIRECTORY, ""]
    return [entry.path, _EXECUTABLE if entry.executable else _FILE, contents[entry.path]]


def _seal(form: str, rows: list[list[str]], refused: tuple[Limitation, ...], *, archive: str = "") -> str:
    document: dict[str, JsonValue] = {
        "manifest": 1,
        "format": form,
        "archive": archive,
        "entries": rows,
        "refused": sorted([one.code, one.place] for one in refused),
    }
    return digest(canonical(document))


def signature_of(path: Path) -> str:
    """What changes when anything of the artifact does, from file status alone; reads no content.

    Raises:
        NotFoundError: `artifact-not-found`.
    """
    hasher = hashlib.sha256()
    for part in _status(path):
        hasher.update(repr(part).encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()


def _status(path: Path) -> Iterator[tuple[object, ...]]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error
    if path.is_dir():
        yield from _folder_status(path)
        return
    yield ("", status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    beside = companion(path)
    if beside.is_dir():
        yield from _folder_status(beside)


def _folder_status(path: Path) -> Iterator[tuple[object, ...]]:
    folder = FolderContainer(path)
    try:
        yield from folder.stats
        yield tuple((one.code, one.place) for one in folder.limitations)
        yield tuple(entry.path for entry in folder.entries if entry.kind == "directory")
    finally:
        folder.close()
