"""Which files of a folder are documents: links are never followed out, what is left out is said with its place."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from affidavit.errors import FailedError, NotFoundError
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.record import Limitation
from affidavit.mounts.documents.reading.blocks import FileKind

__all__ = ["Document", "Folder", "Signature", "kind_of", "look", "read_bytes", "signatures"]

MAX_FILES: Final = 200_000
MAX_BYTES: Final = 16 << 20
MAX_PDF_BYTES: Final = 128 << 20
_MAX_DEPTH: Final = 64

Signature: TypeAlias = tuple[int, int, int, int]
"""Size, times of modification and change, inode: what tells cheaply that a file is the same."""

_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_KINDS: Final[Mapping[str, FileKind]] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mdx"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    **dict.fromkeys(
        (
            ".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs",
            ".go", ".rs", ".java", ".kt", ".swift", ".rb", ".php", ".pl", ".lua", ".r", ".jl", ".scala", ".hs", ".ml",
            ".sh", ".bash", ".ps1", ".sql", ".css", ".scss", ".toml", ".yaml", ".yml", ".json", ".ini", ".xml",
            ".proto", ".tf", ".cmake", ".gradle", ".vue", ".svelte",
        ),
        "source",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that is read.

    Attributes:
        path: below the folder, with `/`.
        size: in bytes.
        signature: see `Signature`.
    """

    path: str
    size: int
    signature: Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What is in a folder: documents by path, and what is left out."""

    documents: tuple[Document, ...]
    limitations: tuple[Limitation, ...]

    def identity(self, digests: Mapping[str, str]) -> str:
        """The digest of a manifest of the documents' paths and digests."""
        return digest(canonical([[one.path, digests[one.path]] for one in self.documents]))


def kind_of(path: str, head: bytes) -> FileKind:
    """How a file is read, from its ending, or its first bytes."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    return _KINDS.get(PurePosixPath(path).suffix.lower(), "text")


def look(root: Path) -> Folder:
    """List a folder.

    Raises:
        NotFoundError: `artifact-not-found`.
        FailedError: `value-too-large` for a folder of too many files.
    """
    documents: list[Document] = []
    limitations: list[Limitation] = []
    for path, entry in _entries(root, limitations):
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:  # gone in between
            continue
        if stat.S_ISLNK(found.st_mode):
            limitations.append(_left_out("entry-skipped", path, "a link, which is not followed"))
        elif not stat.S_ISREG(found.st_mode):
            limitations.append(_left_out("entry-skipped", path, "a pipe, socket or device, not a file"))
        elif found.st_size > (MAX_PDF_BYTES if path.lower().endswith(".pdf") else MAX_BYTES):
            limitations.append(_left_out("entry-too-large", path, f"{found.st_size:,} bytes"))
        else:
            documents.append(Document(path=path, size=found.st_size, signature=_signature(found)))
        if len(documents) > MAX_FILES:
            hint = "mount a folder below it"
            raise FailedError("value-too-large", f"the folder has more than {MAX_FILES:,} files", hint=hint)
    documents.sort(key=lambda one: one.path)
    limitations.sort(key=lambda one: one.place)
    return Folder(documents=tuple(documents), limitations=tuple(limitations))


def signatures(folder: Folder) -> dict[str, Signature]:
    """What tells cheaply whether a folder is the same."""
    return {one.path: one.signature for one in folder.documents}


def read_bytes(root: Path, document: Document) -> tuple[bytes, str] | None:
    """The bytes of a file and their digest, or None where it cannot be read, as when a link took its place."""
    try:
        descriptor = os.open(root / document.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(MAX_PDF_BYTES + 1)
        except OSError:
            return None
    return data, "sha256:" + hashlib.sha256(data).hexdigest()


def _entries(root: Path, limitations: list[Limitation]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry below a folder that is no folder itself. Links to folders are entries, so there are no loops."""
    if not root.is_dir():
        raise NotFoundError(
            "artifact-not-found", f"there is no folder {root.name or root}", hint="check the path"
        )
    pending = [("", 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            with os.scandir(root / folder) as listed:
                entries = list(listed)
        except OSError as error:
            limitations.append(_left_out("entry-unreadable", folder or ".", f"a folder: {error.strerror}"))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _is_plain(entry.name):
                limitations.append(_left_out("entry-unsafe", ascii(path), "a name that is no text"))
            elif not entry.is_dir(follow_symlinks=False):
                yield path, entry
            elif entry.name in _SKIPPED:
                limitations.append(_left_out("entry-skipped", path, "a folder that holds no documents"))
            elif depth >= _MAX_DEPTH:
                limitations.append(_left_out("entry-skipped", path, f"more than {_MAX_DEPTH} levels deep"))
            else:
                pending.append((path, depth + 1))


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _signature(found: os.stat_result) -> Signature:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _left_out(code: str, path: str, message: str) -> Limitation:
    return Limitation(code=code, place=path, message=message)
