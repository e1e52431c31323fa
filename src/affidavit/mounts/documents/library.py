"""What is kept of a folder: its text as facts, an index of the words and, where asked for, vectors of the meaning.

All three are named by what they are made of, so the same documents are read once. When a folder is mounted again, only
files that changed are read: the text of the others comes from the facts of the last time.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import orjson

from affidavit.errors import FailedError, VerificationError
from affidavit.evidence.files import write_output
from affidavit.evidence.record import Coverage, JsonValue, Limitation
from affidavit.extensions import Embedder
from affidavit.facts.factfile import FactFile, FactFileWriter, FactKey, FactStore, analysis_meta
from affidavit.mounts.documents.chunks import chunked
from affidavit.mounts.documents.collections import CHUNKS, FILES
from affidavit.mounts.documents.folder import Document, Folder, kind_of, look, read_bytes, signatures
from affidavit.mounts.documents.reading.blocks import FileKind, Text
from affidavit.mounts.documents.reading.html import read_html
from affidavit.mounts.documents.reading.pdf import PdfReader
from affidavit.mounts.documents.reading.plain import is_binary, read_markdown, read_text
from affidavit.mounts.documents.vectors import Vectors, build_vectors
from affidavit.mounts.search.index import INDEX_VERSION, TextIndex, add_texts, build_index, create_tables

__all__ = ["VERSION", "Library", "Shelf"]

VERSION: Final = "1 pypdf 7.1.1"
"""Contract version of the text: what reads PDF is part of it."""

_SPECS: Final = (CHUNKS, FILES)
_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The documents of one state of a folder, open."""

    facts: FactFile
    index: TextIndex
    vectors: Vectors | None

    def close(self) -> None:
        """Let go of the files."""
        self.facts.close()
        self.index.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What was seen of a folder the last time: its identity, and of each file the signature and digest."""

    identity: str = ""
    files: Mapping[str, tuple[tuple[int, ...], str]]


class Library:
    """One folder of documents.

    Args:
        root: the folder.
        cache: where what is derived is kept.
        embedder: what gives texts a meaning, or None.
    """

    def __init__(self, root: Path, cache: Path, embedder: Embedder | None) -> None:
        self._root = root
        self._cache = cache / "documents"
        self._facts = FactStore(self._cache)
        self._embedder = embedder
        # Only a note of what need not be read again: it may be lost at any time.
        self._note = self._cache / f"{hashlib.sha256(str(root).encode()).hexdigest()}.seen"

    def update(self) -> tuple[str, FactFile]:
        """Read what changed; the identity of the folder as it is now, and its text.

        Raises:
            NotFoundError: `artifact-not-found`.
            FailedError: `artifact-changed` when files change meanwhile, `value-too-large`, `store-full`.
        """
        seen = self._last()
        folder = look(self._root)
        limitations = list(folder.limitations)
        digests: dict[str, str] = {}
        for document in folder.documents:
            signature, known = seen.files.get(document.path, ((), ""))
            if signature == document.signature:
                digests[document.path] = known
                continue
            read = read_bytes(self._root, document)
            if read is None:
                message = "the file cannot be read"
                limitations.append(Limitation(code="entry-unreadable", place=document.path, message=message))
            else:
                digests[document.path] = read[1]
        folder = Folder(
            documents=tuple(one for one in folder.documents if one.path in digests),
            limitations=tuple(limitations),
        )
        identity = folder.identity(digests)
        with closing(self._earlier(seen.identity)) as earlier:
            facts = self._made(folder, digests, identity, earlier)
            self._indexed(identity, facts)
            self._with_vectors(identity, facts, earlier)
        self._remember(folder, digests, identity)
        return identity, facts

    def open(self, identity: str) -> Shelf:
        """Open one state of the folder; what is missing of it is made again, while the folder is still the same.

        Raises:
            VerificationError: `artifact-changed`.
        """
        facts = self._facts.get(self._key(identity), _SPECS)
        if facts is None:
            found, facts = self.update()
            if found != identity:
                facts.close()
                raise changed(self._root)
        return Shelf(
            facts=facts,
            index=TextIndex(self._indexed(identity, facts)),
            vectors=self._with_vectors(identity, facts, _Nothing()),
        )

    def check(self, identity: str) -> None:
        """See that the folder is what was mounted; files that were only touched are read for their digest.

        Raises:
            VerificationError: `artifact-changed`.
        """
        seen = self._last()
        now = signatures(look(self._root))
        before = {path: signature for path, (signature, _) in seen.files.items()}
        if seen.identity == identity and before == now:
            return
        found, facts = self.update()
        facts.close()
        if found != identity:
            raise changed(self._root)

    def _key(self, identity: str) -> FactKey:
        return FactKey(artifact=identity, analyzer="documents", version=VERSION)

    def _earlier(self, identity: str) -> FactFile | _Nothing:
        found = self._facts.get(self._key(identity), _SPECS) if identity else None
        return _Nothing() if found is None else found

    def _made(
        self, folder: Folder, digests: Mapping[str, str], identity: str, earlier: FactFile | _Nothing
    ) -> FactFile:
        kept = self._facts.get(self._key(identity), _SPECS)
        if kept is not None:
            return kept

        def fill(writer: FactFileWriter) -> Mapping[str, JsonValue]:
            return self._fill(writer, folder, digests, earlier)

        return self._facts.build(self._key(identity), _SPECS, fill)

    def _fill(
        self,
        writer: FactFileWriter,
        folder: Folder,
        digests: Mapping[str, str],
        earlier: FactFile | _Nothing,
    ) -> dict[str, JsonValue]:
        limitations = list(folder.limitations)
        known = _known(earlier, digests)
        with PdfReader() as pdf:
            for document in folder.documents:
                digest = digests[document.path]
                if document.path in known:
                    text, rows, said = known[document.path]
                else:
                    text, rows, said = self._read(document, digest, pdf)
                limitations += said
                if text is not None:
                    writer.add(FILES.name, text)
                for row in rows:
                    writer.add(CHUNKS.name, row)
        unread = len({one.place for one in limitations if one.code != "encoding"})
        coverage = Coverage(
            state="partial" if limitations else "complete",
            selection="text of all files of the folder",
            examined=len(folder.documents),
            unknown=unread,
        )
        return analysis_meta(summary={}, coverage=coverage, limitations=limitations)

    def _read(
        self, document: Document, digest: str, pdf: PdfReader
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]], list[Limitation]]:
        """The row of a file, the rows of its chunks, and what could not be read."""
        read = read_bytes(self._root, document)
        if read is None or read[1] != digest:
            raise FailedError(
                "artifact-changed",
                f"{document.path} changes while it is read",
                hint="mount the folder again when nothing writes to it",
                retryable=True,
            )
        data = read[0]
        kind = kind_of(document.path, data[:16])
        if kind != "pdf" and is_binary(data):
            said = Limitation(code="entry-skipped", place=document.path, message="not a text")
            return None, [], [said]
        text = _text(kind, data, document.path, pdf)
        rows = [
            {
                "id": f"{document.path}#{number}",
                "path": document.path,
                "number": number,
                "kind": kind,
                "heading": chunk.heading,
                "page": chunk.page,
                "line": chunk.line,
                "end_line": chunk.end_line,
                "text": chunk.text,
                "digest": digest,
            }
            for number, chunk in enumerate(chunked(text.blocks), start=1)
        ]
        row = {
            "path": document.path,
            "kind": kind,
            "title": text.title,
            "size": document.size,
            "digest": digest,
            "chunks": len(rows),
        }
        return row, rows, list(text.limitations)

    def _indexed(self, identity: str, facts: FactFile) -> Path:
        path = self._cache / f"{self._key(identity).name}-{INDEX_VERSION}.index"
        if not path.exists():

            def fill(database: sqlite3.Connection) -> None:
                create_tables(database)
                for first, rows in _chunks(facts):
                    add_texts(database, ((first + at, _words(row)) for at, row in enumerate(rows)))

            build_index(path, fill)
        return path

    def _with_vectors(self, identity: str, facts: FactFile, earlier: FactFile | _Nothing) -> Vectors | None:
        if self._embedder is None:
            return None
        ending = f"{self._embedder.name}-{self._embedder.version}.vectors"
        path = self._cache / f"{self._key(identity).name}-{ending}"
        if not path.exists():
            known: Iterator[tuple[int, list[dict[str, Any]]]] = iter(())
            old: Path | None = None
            if isinstance(earlier, FactFile):
                old, known = earlier.path.with_name(f"{earlier.path.stem}-{ending}"), _chunks(earlier)
            build_vectors(
                path, self._embedder, _chunks(facts), facts.total(CHUNKS.name), old=old, known=known
            )
        return Vectors(path, self._embedder)

    def _last(self) -> _Seen:
        try:
            kept = orjson.loads(self._note.read_bytes())
            if kept["version"] != VERSION:
                return _Seen(files={})
            files = {path: (tuple(found[0]), str(found[1])) for path, found in kept["files"].items()}
            return _Seen(identity=kept["identity"], files=files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return _Seen(files={})

    def _remember(self, folder: Folder, digests: Mapping[str, str], identity: str) -> None:
        files = {one.path: [list(one.signature), digests[one.path]] for one in folder.documents}
        note = {"version": VERSION, "identity": identity, "files": files}
        write_output(self._note, lambda write: write(orjson.dumps(note)), force=True)


class _Nothing:
    """No earlier facts."""

    def close(self) -> None:
        """Nothing is held."""


def changed(root: Path) -> VerificationError:
    """The folder is no longer what was mounted."""
    return VerificationError(
        "artifact-changed",
        f"the documents of {root.name} are no longer what was mounted",
        hint="mount them again: `affidavit mount add NAME` with its name alone reads what changed",
    )


def _text(kind: FileKind, data: bytes, path: str, pdf: PdfReader) -> Text:
    if kind == "pdf":
        return pdf.read(data, path)
    if kind == "html":
        return read_html(data, path)
    return read_markdown(data, path) if kind == "markdown" else read_text(data, path)


def _known(
    earlier: FactFile | _Nothing, digests: Mapping[str, str]
) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[Limitation]]]:
    """What earlier facts say of files that are the same: the file's row, its chunks and limitations."""
    if not isinstance(earlier, FactFile):
        return {}
    files: dict[str, dict[str, Any]] = {}
    total = earlier.total(FILES.name)
    for first in range(0, total, _BATCH):
        places = range(first, min(first + _BATCH, total))
        for row in cast("list[dict[str, Any]]", earlier.decode(earlier.rows(FILES.name, places))):
            if digests.get(row["path"]) == row["digest"]:
                files[row["path"]] = row
    chunks: dict[str, list[dict[str, Any]]] = {path: [] for path in files}
    for _, rows in _chunks(earlier):
        for row in rows:
            if row["path"] in chunks:
                chunks[row["path"]].append(row)
    said: dict[str, list[Limitation]] = {}
    for one in earlier.limitations:
        said.setdefault(one.place.rpartition(", page ")[0] or one.place, []).append(one)
    return {path: (row, chunks[path], said.get(path, [])) for path, row in files.items()}


def _chunks(facts: FactFile) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Every chunk, some at a time: the number of the first, counted from 1, and the rows."""
    total = facts.total(CHUNKS.name)
    for first in range(0, total, _BATCH):
        places = range(first, min(first + _BATCH, total))
        yield first + 1, facts.decode(facts.rows(CHUNKS.name, places))


def _words(row: Mapping[str, Any]) -> str:
    """What a chunk is found by: its text, and the headings that it stands under."""
    heading = row["heading"]
    return f"{heading}\n{row['text']}" if heading else row["text"]
