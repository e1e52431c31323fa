"""The adapter `documents`: `docs=dir:./notes`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final, Literal, cast

from affidavit.errors import FailedError, UsageError
from affidavit.evidence.record import JsonValue, Producer, Subject
from affidavit.extensions import Description, Embedder, Mount, Snapshot, Source, load_embedders
from affidavit.facts.collection import ParentRef
from affidavit.mounts.documents.collections import CHUNKS, FILES
from affidavit.mounts.documents.library import VERSION, Library, Shelf
from affidavit.mounts.documents.operations import FORMAT, documents_namespace
from affidavit.mounts.options import Options, read_options
from affidavit.namespaces.operation import Namespace

__all__ = ["DocumentsAdapter"]

SCHEME: Final = "dir:"
_BASIS: Final = "SHA-256 of a manifest of the documents"
_LOOK_SECONDS: Final = 1.0
_MAX_LIMITATIONS: Final = 1_000


class DocumentsOptions(Options):
    """Options of a mount.

    Attributes:
        embedder: name of what makes vectors for search by meaning (`wordllama`), or empty.
    """

    embedder: str = ""


class DocumentsAdapter:
    """Folders of documents."""

    name = "documents"
    version = "1"
    place: Literal["db", "tool"] = "db"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has the scheme."""
        return uri.startswith(SCHEME) and not head

    async def describe(self, source: Source) -> Description:
        """Read the documents; those that were read before and are the same are not read again."""
        library, options = _library(source)
        identity, facts = await asyncio.to_thread(library.update)
        try:
            files, chunks = facts.total(FILES.name), facts.total(CHUNKS.name)
            limitations = facts.limitations
        finally:
            facts.close()
        return Description(
            contents={
                "documents": 1,
                "identity": identity,
                "files": files,
                "chunks": chunks,
                "embedder": options.embedder,
            },
            summary=f"{files} documents in {chunks} chunks",
            snapshot=Snapshot(identity=identity, basis=_BASIS),
            limitations=limitations[:_MAX_LIMITATIONS],
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the mount; nothing is opened before the first call."""
        kept = cast("dict[str, Any]", contents) if isinstance(contents, dict) else {}
        if kept.get("documents") != 1:
            hint = "mount it again: `affidavit mount add NAME` with its name alone"
            raise FailedError(
                "mount-failed", "what was kept of the documents is of another version", hint=hint
            )
        library, _ = _library(source)
        return _DocumentsMount(source, library, kept)


class _DocumentsMount:
    def __init__(self, source: Source, library: Library, kept: dict[str, Any]) -> None:
        self._library = library
        self._identity: str = kept["identity"]
        self._shelf: Shelf | None = None
        self._looked: float | None = None
        self._lock = asyncio.Lock()
        embedder = kept["embedder"]
        self._namespace = documents_namespace(
            source.name,
            self._opened,
            Producer(name=DocumentsAdapter.name, version=f"{VERSION} {embedder}".strip()),
            about=f"{kept['files']} documents in {kept['chunks']} chunks.",
            vectors=bool(embedder),
        )

    @property
    def namespace(self) -> Namespace:
        """Chunks, files and searches."""
        return self._namespace

    async def snapshot(self) -> Snapshot:
        """The digest of the documents as they are now."""

        def identity() -> str:
            found, facts = self._library.update()
            facts.close()
            return found

        return Snapshot(identity=await asyncio.to_thread(identity), basis=_BASIS)

    async def close(self) -> None:
        """Let go of the files."""
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None

    async def _opened(self) -> tuple[Shelf, ParentRef]:
        """The documents, after a look at the folder: one a second, for that of 20,000 files takes 0.1 s."""
        async with self._lock:
            now = time.monotonic()
            if self._looked is None or now - self._looked > _LOOK_SECONDS:
                await asyncio.to_thread(self._library.check, self._identity)
                self._looked = now
            if self._shelf is None:
                self._shelf = await asyncio.to_thread(self._library.open, self._identity)
        facts = self._shelf.facts
        parent = ParentRef(
            evidence_id="",
            subject=Subject(digest=self._identity, format=FORMAT),
            coverage=facts.coverage,
            limitations=facts.limitations,
        )
        return self._shelf, parent


def _library(source: Source) -> tuple[Library, DocumentsOptions]:
    options = read_options(DocumentsOptions, source)
    name = source.uri.removeprefix(SCHEME)
    if not name:
        raise UsageError("mount-invalid", "dir: names no folder", hint="for example docs=dir:./notes")
    root = (source.folder / Path(name).expanduser()).absolute()
    return Library(root, source.cache, _embedder(options.embedder)), options


def _embedder(name: str) -> Embedder | None:
    if not name:
        return None
    known: list[str] = []
    for point, loaded in load_embedders():
        if point.name == name and not isinstance(loaded, Exception):
            return loaded
        if point.name == name:
            raise FailedError("extra-missing", f"the embedder {name} cannot be loaded: {loaded}")
        known.append(point.name)
    hint = f"there are {', '.join(known) or 'none'}"
    raise UsageError("mount-invalid", f"there is no embedder {name!r}", hint=hint)
