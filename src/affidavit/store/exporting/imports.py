"""Bringing a bundle into a workspace: checked first, then all of it in one transaction, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from affidavit.errors import VerificationError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue, Record
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.evidence.verification.bundle import BundleCheck, BundleLookup, damaged
from affidavit.store.events import Event
from affidavit.store.store import Store
from affidavit.store.unknowns import Unknowns

__all__ = ["Imported", "import_bundle", "importable"]

_SHOWN_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        session: the session whose log tells of it, `import-` and the first digits of the bundle's digest.
        whole: the bundle's digest.
        records: records of the bundle; `added` of them were new here.
        blobs: blobs of the bundle.
        unknown_revisions: revisions of the bundle.
        repeated: whether this bundle was imported before.
    """

    session: str
    whole: str
    records: int
    added: int
    blobs: int
    unknown_revisions: int
    repeated: bool

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit bundle import --json`."""
        return {
            "session": self.session,
            "whole": self.whole,
            "records": {"added": self.added, "present": self.records - self.added},
            "blobs": self.blobs,
            "unknown_revisions": self.unknown_revisions,
            "repeated": self.repeated,
        }


def importable(file: BinaryIO, bounds: Bounds | None = None) -> BundleCheck:
    """The check of a bundle that may be imported. No workspace is needed for it.

    Raises:
        VerificationError: `bundle-damaged`, every place in `details.problems`; `format-unknown`, naming the version.
    """
    check = BundleCheck(bounds)
    check.run(file)
    if check.problems:
        raise damaged(check.problems, "the bundle")
    return check


def import_bundle(
    store: Store,
    file: BinaryIO,
    *,
    bounds: Bounds | None = None,
    checked: BundleCheck | None = None,
    now: Callable[[], float] = time.time,
) -> Imported:
    """Add the records, blobs and unknowns of a bundle. Doing it again changes nothing.

    Each record gets an event of the import's session, so that answers may cite it here. A record that is there already
    stays; a damaged copy of it, or of a blob, is repaired.

    Args:
        store: the workspace's store.
        file: the bundle, open for reading and seekable.
        bounds: how large it may be.
        checked: what `importable` gave for it just before; it is asked here by default.
        now: the wall clock, seconds since the epoch.

    Raises:
        VerificationError: as `importable`; nothing was added.
        FailedError: `revision-conflict`: an unknown was revised otherwise here; `store-*`.
    """
    first = checked or importable(file, bounds)
    contents = first.contents
    session = f"import-{contents.whole.removeprefix('sha256:')[:_SHOWN_DIGITS]}"
    repeated = store.events.by_key(session, "bundle") is not None
    _, added = store.load(_items(store, file, first, session, now()))
    return Imported(
        session=session,
        whole=contents.whole,
        records=len(contents.records),
        added=added,
        blobs=len(contents.blobs),
        unknown_revisions=contents.revisions,
        repeated=repeated,
    )


def _items(
    store: Store, file: BinaryIO, first: BundleCheck, session: str, at: float
) -> Iterator[Event | Sealed]:
    """Everything that is added, read from the file a second time and checked again."""
    contents = first.contents
    data: dict[str, JsonValue] = {"bundle": contents.whole}
    yield Event(kind="bundle-imported", session=session, data=data, at=at, key="bundle")
    waiting: list[Event | Sealed] = []
    revisions: list[UnknownRevision] = []

    def on_record(sealed: Sealed, record: Record) -> None:
        del record
        waiting.append(sealed)
        waiting.append(
            Event(
                kind="evidence-imported",
                session=session,
                data=data,
                at=at,
                evidence_id=sealed.id,
                key=sealed.id,
            )
        )

    second = BundleCheck(
        first.bounds,
        on_record=on_record,
        on_blob=lambda _, content: _put(store, content),
        on_unknown=revisions.append,
    )
    for _ in second.pieces(file):
        yield from waiting
        waiting.clear()
    if second.problems or second.contents.whole != contents.whole:
        raise VerificationError(
            "bundle-damaged", "the bundle changed while it was read", hint="nothing was added; try again"
        )
    if revisions:
        lookup = BundleLookup(file, contents)

        def record_of(evidence_id: str) -> Record | None:
            return lookup.get(evidence_id) if lookup.has(evidence_id) else None

        yield from Unknowns(store).adopting(revisions, record_of=record_of, whole=not contents.missing)


def _put(store: Store, content: bytes) -> None:
    store.blobs.put(content)
