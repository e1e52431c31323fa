"""What a mounted folder holds: chunks of text, and the files that they come from."""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from affidavit.facts.spec import CollectionSpec
from affidavit.mounts.documents.reading.blocks import FileKind

__all__ = ["CHUNKS", "FILES", "ChunksRow", "FilesRow"]


class ChunksRow(TypedDict):
    """A passage of a document and its place.

    `path` is below the folder; `number` counts the chunks of a file from 1; `line` and `end_line` (from 1) are None in
    a PDF and `page` (from 1) is None elsewhere; `digest` is that of the file's bytes.
    """

    id: str
    path: str
    number: int
    kind: FileKind
    heading: str | None
    page: int | None
    line: int | None
    end_line: int | None
    text: str
    digest: str


class FilesRow(TypedDict):
    """A document: its size in bytes, the digest of its bytes and how many chunks it has."""

    path: str
    kind: FileKind
    title: str | None
    size: int
    digest: str
    chunks: int


CHUNKS: Final = CollectionSpec(
    name="chunks",
    contract="documents.chunks",
    version=1,
    doc="Passages of the documents, by path and place.",
    row=ChunksRow,
    item=ChunksRow,
    key="id",
    where=("path", "kind", "heading", "page"),
)
FILES: Final = CollectionSpec(
    name="files",
    contract="documents.files",
    version=1,
    doc="The documents, by path.",
    row=FilesRow,
    item=FilesRow,
    key="path",
    where=("path", "kind", "digest"),
)
