"""What every container offers: entries by path, bounded reading, and the places that could not be read.

Paths are container-relative, `/`-separated, without leading `/`, `.` or `..`. One bad entry never aborts the rest: it
becomes a `Limitation`. Only a container that cannot be read as a whole raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from affidavit.errors import VerificationError
from affidavit.evidence.record import Limitation

__all__ = [
    "CHUNK",
    "MAX_ENTRIES",
    "Container",
    "Entry",
    "EntryError",
    "EntryKind",
    "Integrity",
    "beyond",
    "damaged",
    "limitation",
    "printable",
    "read_entry",
    "unsafe_link",
    "unsafe_name",
    "unsafe_path",
]

CHUNK: Final = 1 << 20
"""Bytes read at once while digesting."""

MAX_ENTRIES: Final = 300_000
"""Entries that a container may list; above it the container is refused as a whole."""

_MAX_NAME: Final = 1024
_MAX_PATH: Final = 8192

EntryKind: TypeAlias = Literal["file", "link", "directory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """Digests that a container itself declares of an entry: SHA-256 of the whole, and of each block one after another.

    There may be as many as entries, so they are bytes: 32 each.
    """

    sha256: bytes
    block_size: int
    blocks: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One named thing in a container.

    Attributes:
        path: container-relative path.
        kind: `file`, `link`, or `directory` (only those that hold nothing are listed).
        size: bytes of a file, 0 of others.
        offset: where the bytes of a file begin, in a container that reads them where they lie; else 0.
        executable: whether the container marks it so.
        unpacked: whether its bytes lie beside the container (`X.asar.unpacked`).
        target: where a link leads, container-relative and not yet normalised; None when it is no link.
        integrity: digests that the container declares, or None.
    """

    path: str
    kind: EntryKind
    size: int = 0
    offset: int = 0
    executable: bool = False
    unpacked: bool = False
    target: str | None = None
    integrity: Integrity | None = None


class EntryError(VerificationError):
    """One entry cannot be read; carries the limitation that says so."""

    def __init__(self, code: str, place: str, message: str) -> None:
        super().__init__(code, f"{printable(place)}: {message}", details={"place": printable(place)})
        self.limitation = limitation(code, place, message)


class Container(Protocol):
    """A readable set of entries. Close it after use; reading never leaves the container.

    Attributes:
        format: what enters the subject: `asar`, `folder`, `npm-tarball`, `source-file`.
        entries: sorted by path, unique.
        limitations: entries that were refused while listing.
    """

    format: str
    entries: tuple[Entry, ...]
    limitations: tuple[Limitation, ...]

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of a file, at most `CHUNK` at a time. Raises `EntryError`."""
        ...

    def close(self) -> None:
        """Release files. Harmless when repeated."""
        ...


def read_entry(container: Container, entry: Entry, *, limit: int) -> bytes:
    """All bytes of a file entry, at most `limit` of them.

    Raises:
        EntryError: `entry-too-large` above the limit, else as the container says.
    """
    if entry.size > limit:
        raise _too_large(entry, entry.size, limit)
    parts: list[bytes] = []
    total = 0
    for chunk in container.chunks(entry):
        total += len(chunk)
        if total > limit:
            raise _too_large(entry, total, limit)
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(entry: Entry, size: int, limit: int) -> EntryError:
    return EntryError("entry-too-large", entry.path, f"{size:,} bytes, above the bound of {limit:,}")


def unsafe_name(name: str) -> str | None:
    """Why one path segment may not be used, or None when it may."""
    if name in {"", ".", ".."}:
        return "an empty, `.` or `..` name"
    if "/" in name or "\\" in name or "\0" in name:
        return "a name with a separator or NUL"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "a name that is not valid Unicode"
    return "a name longer than any file system allows" if size > _MAX_NAME else None


def unsafe_path(path: str) -> str | None:
    """Why a whole `/`-separated path may not be used, or None when it may."""
    if len(path) > _MAX_PATH:
        return "a path longer than any file system allows"
    return next((reason for name in path.split("/") if (reason := unsafe_name(name))), None)


def unsafe_link(target: str) -> bool:
    """Whether a link's text alone says that it may not be followed. Where `..` leads is found out by following it."""
    if not target or target.startswith("/") or len(target) > _MAX_PATH:
        return True
    return any(unsafe_name(name) for name in target.split("/") if name not in {"", ".", ".."})


def printable(place: str) -> str:
    r"""A place that can be stored anywhere: what is no Unicode is written as `\uNNNN`, over-long text is cut."""
    text = place.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "…"


def limitation(code: str, place: str, message: str) -> Limitation:
    """A limitation whose place is printable."""
    return Limitation(code=code, place=printable(place), message=message)


def beyond(what: str, offset: int, message: str) -> VerificationError:
    """The error of a container that is above a bound, naming the byte offset where that shows."""
    return VerificationError(
        "artifact-damaged",
        f"{what} is not read beyond offset {offset}: {message}",
        hint="that is a bound on what is read at once; unpack it elsewhere and mount a part of it",
        details={"offset": offset},
    )


def damaged(what: str, offset: int, message: str) -> VerificationError:
    """The error of a container that cannot be read as a whole, naming the byte offset."""
    return VerificationError(
        "artifact-damaged",
        f"{what} cannot be read at offset {offset}: {message}",
        hint="check that the file was copied completely and is of the kind that its name says",
        details={"offset": offset},
    )
