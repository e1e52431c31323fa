"""Several bundles as one, and two beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, repeat
from typing import BinaryIO

from affidavit.evidence import unknowns
from affidavit.evidence.bundles.document import Bounds, write_bundle
from affidavit.evidence.canonical import canonical
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue, Record
from affidavit.evidence.unknown_checks import problems
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.evidence.verification.bundle import BundleCheck, BundleLookup, Contents, damaged

__all__ = ["Difference", "OpenBundle", "diff", "merge_bundles"]


@dataclass(slots=True, kw_only=True)
class OpenBundle:
    """A bundle that holds, open to be read in any order."""

    name: str
    contents: Contents
    lookup: BundleLookup
    revisions: list[UnknownRevision] = field(default_factory=list[UnknownRevision])

    @classmethod
    def read(cls, name: str, file: BinaryIO, bounds: Bounds | None = None) -> OpenBundle:
        """Check a bundle.

        Raises:
            VerificationError: `bundle-damaged`, `format-unknown`.
        """
        revisions: list[UnknownRevision] = []
        check = BundleCheck(bounds, on_unknown=revisions.append)
        check.run(file)
        if check.problems:
            raise damaged(check.problems, name)
        return cls(
            name=name,
            contents=check.contents,
            lookup=BundleLookup(file, check.contents),
            revisions=revisions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What two bundles have apart and together: ids of records, digests of revisions, addresses of blobs."""

    records: tuple[list[str], list[str], int]
    unknown_revisions: tuple[list[str], list[str], int]
    blobs: tuple[list[str], list[str], int]

    @property
    def equal(self) -> bool:
        """Whether both have the same."""
        return not any(side for part in self._parts().values() for side in part[:2])

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit bundle diff --json`."""
        parts = {
            name: {"only_first": first, "only_second": second, "common": common}
            for name, (first, second, common) in self._parts().items()
        }
        return {"equal": self.equal, **parts}

    def _parts(self) -> dict[str, tuple[list[str], list[str], int]]:
        return {"records": self.records, "unknown_revisions": self.unknown_revisions, "blobs": self.blobs}


def merge_bundles(bundles: Sequence[OpenBundle], write: Callable[[bytes], object]) -> str:
    """Write the union of bundles; its digest. In whatever order they are given, the bytes are the same.

    A record that several have is kept once. The words beside it, which no id covers, may differ between them: those
    whose canonical bytes come first are kept, and some are preferred to none.

    Raises:
        AffidavitError: `revision-conflict` and others of unknowns that were revised differently in two bundles.
    """
    present = set[str]().union(*(bundle.contents.records for bundle in bundles))
    revisions = {unknowns.revision_digest(it): it for bundle in bundles for it in bundle.revisions}
    known = present | {unknowns.unknown_id(it) for it in revisions.values()}
    missing = set[str]().union(*(bundle.contents.missing for bundle in bundles)) - known
    _check_unknowns(bundles, list(revisions.values()), missing)
    return write_bundle(
        write,
        answers=sorted(set[str]().union(*(bundle.contents.answers for bundle in bundles))),
        blobs=_blobs(bundles),
        missing=sorted(missing),
        records=_records(bundles),
        unknowns=sorted(canonical(unknowns.to_json(it)) for it in revisions.values()),
    )


def diff(first: OpenBundle, second: OpenBundle) -> Difference:
    """Compare two bundles by what they hold."""
    return Difference(
        records=_apart(set(first.contents.records), set(second.contents.records)),
        unknown_revisions=_apart(
            {unknowns.revision_digest(it) for it in first.revisions},
            {unknowns.revision_digest(it) for it in second.revisions},
        ),
        blobs=_apart(set(first.contents.blobs), set(second.contents.blobs)),
    )


def _apart(first: set[str], second: set[str]) -> tuple[list[str], list[str], int]:
    return sorted(first - second), sorted(second - first), len(first & second)


def _records(bundles: Sequence[OpenBundle]) -> Iterator[Sealed]:
    """Each record once, in the order of ids."""
    numbered = [zip(bundle.contents.records, repeat(index)) for index, bundle in enumerate(bundles)]
    for evidence_id, group in groupby(merge(*numbered), key=lambda pair: pair[0]):
        owners = [bundles[index] for _, index in group]
        yield min((owner.lookup.sealed(evidence_id) for owner in owners), key=_words)


def _words(sealed: Sealed) -> tuple[bool, bytes]:
    return (True, b"") if sealed.notes is None else (False, canonical(sealed.notes))


def _blobs(bundles: Sequence[OpenBundle]) -> Iterator[tuple[str, bytes]]:
    owners = {address: bundle for bundle in reversed(bundles) for address in bundle.contents.blobs}
    for address in sorted(owners):
        yield address, owners[address].lookup.blob(address)


def _check_unknowns(
    bundles: Sequence[OpenBundle], revisions: list[UnknownRevision], missing: set[str]
) -> None:
    def record_of(evidence_id: str) -> Record | None:
        owner = next((bundle for bundle in bundles if bundle.lookup.has(evidence_id)), None)
        return None if owner is None else owner.lookup.get(evidence_id)

    for problem in problems(revisions, record_of, missing=missing):
        raise problem.as_error()
