"""The bytes of one entry: digested, compared with what the container declares, and kept when they are source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias

from affidavit.analyzers.javascript.containers.entry import (
    Container,
    Entry,
    EntryError,
    Integrity,
    limitation,
    read_entry,
)
from affidavit.evidence.record import Limitation

__all__ = ["Content", "FileKind", "IntegrityState", "examine", "is_script", "kind_of", "load"]

FileKind: TypeAlias = Literal[
    "javascript-module", "json-module", "native-addon", "asset", "html", "link", "directory"
]
IntegrityState: TypeAlias = Literal["verified", "mismatch", "undeclared"]

_SHEBANG: Final = 256
_KINDS: Final[dict[str, FileKind]] = {
    ".json": "json-module",
    ".node": "native-addon",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a file's bytes are.

    Attributes:
        sha256: lower-case hex, or None where they could not be read.
        integrity: whether they have the digests that the container declares.
        fault: why they could not be read, or do not have the declared digests.
    """

    sha256: str | None
    integrity: IntegrityState
    fault: Limitation | None = None


def kind_of(path: str) -> FileKind:
    """What a file that is no source is, by its name."""
    return _KINDS.get(PurePosixPath(path).suffix.lower(), "asset")


def is_script(container: Container, entry: Entry) -> bool:
    """Whether a file without suffix says in its first line that Node.js runs it."""
    if "." in PurePosixPath(entry.path).name or entry.size < 3:
        return False
    try:
        head = next(iter(container.chunks(entry)), b"")[:_SHEBANG]
    except EntryError:
        return False
    line = head.partition(b"\n")[0]
    return line.startswith(b"#!") and b"node" in line


def examine(container: Container, entry: Entry) -> Content:
    """Digest a file without keeping it."""
    digest = _Digest(entry)
    try:
        for chunk in container.chunks(entry):
            digest.update(chunk)
    except EntryError as error:
        return Content(sha256=None, integrity="undeclared", fault=error.limitation)
    return digest.finish()


def load(container: Container, entry: Entry, *, limit: int) -> tuple[bytes | None, Content]:
    """The bytes of a file and what they are; a file above the limit is digested and its bytes left where they are."""
    if entry.size > limit:
        content = examine(container, entry)
        message = f"{entry.size:,} bytes, above the bound of {limit:,} for source files"
        fault = content.fault or limitation("entry-too-large", entry.path, message)
        return None, Content(sha256=content.sha256, integrity=content.integrity, fault=fault)
    try:
        data = read_entry(container, entry, limit=limit)
    except EntryError as error:
        return None, Content(sha256=None, integrity="undeclared", fault=error.limitation)
    digest = _Digest(entry)
    digest.update(data)
    return data, digest.finish()


class _Digest:
    """The digest of a whole file and, where the container declares several, of its blocks."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._whole = hashlib.sha256()
        declared = entry.integrity
        self._block_size = declared.block_size if declared and entry.size > declared.block_size else 0
        self._block = hashlib.sha256()
        self._room = self._block_size
        self._blocks = bytearray()

    def update(self, chunk: bytes) -> None:
        self._whole.update(chunk)
        view = memoryview(chunk)
        while self._block_size and view:
            part = view[: self._room]
            self._block.update(part)
            self._room -= len(part)
            view = view[len(part) :]
            if not self._room:
                self._next_block()

    def _next_block(self) -> None:
        self._blocks += self._block.digest()
        self._block = hashlib.sha256()
        self._room = self._block_size

    def finish(self) -> Content:
        whole = self._whole.digest()
        declared = self._entry.integrity
        if declared is None:
            return Content(sha256=whole.hex(), integrity="undeclared")
        if self._block_size and self._room < self._block_size:
            self._next_block()
        blocks = bytes(self._blocks) if self._block_size else whole
        message = _difference(declared, whole, blocks, self._entry.size)
        if message is None:
            return Content(sha256=whole.hex(), integrity="verified")
        return Content(
            sha256=whole.hex(),
            integrity="mismatch",
            fault=limitation("entry-damaged", self._entry.path, message),
        )


def _difference(declared: Integrity, whole: bytes, blocks: bytes, size: int) -> str | None:
    if declared.sha256 == whole and declared.blocks == blocks:
        return None
    if not size and declared.sha256 == whole and not declared.blocks:
        return None  # packers differ on whether an empty file has a block
    if declared.blocks != blocks:
        length = hashlib.sha256().digest_size
        shared = min(len(declared.blocks), len(blocks))
        at = next(
            (
                i
                for i in range(0, shared, length)
                if declared.blocks[i : i + length] != blocks[i : i + length]
            ),
            None,
        )
        counts = f"{len(declared.blocks) // length} blocks for {len(blocks) // length}"
        where = f"block {at // length}" if at is not None else counts
        return f"its bytes do not have the declared SHA-256 ({where})"
    return "its bytes do not have the declared SHA-256"
