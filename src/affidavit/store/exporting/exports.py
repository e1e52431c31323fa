"""Writing a bundle from a workspace that may be in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from affidavit.evidence.bundle import write_bundle
from affidavit.evidence.canonical import digest
from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue
from affidavit.store.exporting.selection import Selection, choose
from affidavit.store.exporting.unknowns import Revisions
from affidavit.store.store import Store

__all__ = ["Exported", "export_bundle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written.

    Attributes:
        whole: the digest that names the content.
        records: how many; `answers`, `blobs`, `unknown_revisions` and `missing` likewise.
        scripts_missing: digests of scripts that answers name and the workspace does not have.
    """

    whole: str
    records: int
    answers: int
    blobs: int
    unknown_revisions: int
    missing: int
    scripts_missing: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit bundle export --json`."""
        return {
            "whole": self.whole,
            "records": self.records,
            "answers": self.answers,
            "blobs": self.blobs,
            "unknown_revisions": self.unknown_revisions,
            "missing": self.missing,
            "scripts_missing": list(self.scripts_missing),
        }


def export_bundle(
    store: Store, write: Callable[[bytes], object], selection: Selection | None = None
) -> Exported:
    """Write the records that are selected, and everything that they rest on, as a bundle.

    The same content gives the same bytes, from whatever workspace. Records that are added meanwhile are left out.

    Args:
        store: the workspace's store.
        write: takes the next bytes of the file.
        selection: what to export; everything by default.

    Raises:
        NotFoundError, UsageError: as `choose`.
        VerificationError: `store-damaged`, `blob-missing` or `blob-damaged`, naming the record or address.
    """
    chosen = choose(store, selection or Selection())
    revisions = Revisions.of(store)
    while revisions.take(chosen):
        chosen.add(revisions.records())
    missing = chosen.missing | revisions.strangers()
    plan = _Plan(store)
    for sealed in chosen.records():
        plan.see(sealed)
    whole = write_bundle(
        write,
        answers=plan.answers,
        blobs=plan.contents(),
        missing=sorted(missing),
        records=chosen.records(),
        unknowns=revisions.chosen(),
    )
    return Exported(
        whole=whole,
        records=plan.records,
        answers=len(plan.answers),
        blobs=len(plan.results) + len(plan.scripts),
        unknown_revisions=len(revisions.chosen()),
        missing=len(missing),
        scripts_missing=tuple(sorted(plan.lost)),
    )


@dataclass(slots=True)
class _Plan:
    """What stands before the records in a bundle, found by looking at each of them once."""

    store: Store
    records: int = 0
    answers: list[str] = field(default_factory=list[str])
    results: set[str] = field(default_factory=set[str])
    scripts: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    lost: set[str] = field(default_factory=set[str])

    def see(self, sealed: Sealed) -> None:
        self.records += 1
        shape: dict[str, Any] = orjson.loads(sealed.body)
        blob = shape["outcome"].get("blob")
        if blob is not None:
            self.results.add(blob["digest"])
        if shape["kind"] == "derivation":
            if shape["operation"] == ANSWER:
                self.answers.append(sealed.id)
            self._script(sealed.id, shape["script"])

    def contents(self) -> Iterator[tuple[str, bytes]]:
        for address in sorted(self.results | set(self.scripts)):
            text = self.scripts.get(address)
            yield address, self.store.blobs.get(address) if text is None else text

    def _script(self, evidence_id: str, address: str | None) -> None:
        if address is None or address in self.scripts:
            return
        if self.store.blobs.has(address):
            self.scripts[address] = None
            return
        for text in _sources(self.store, evidence_id):
            if digest(text) == address:
                self.scripts[address] = text
                self.lost.discard(address)
                return
        self.lost.add(address)


def _sources(store: Store, evidence_id: str) -> Iterator[bytes]:
    """The scripts of the runs that recorded this, as they were given and as they were run."""
    for run in {event.run for event in store.events.of_record(evidence_id) if event.run is not None}:
        for event in store.events.of_run(run):
            source: Any = None
            if event.kind in ("run-requested", "run-started"):
                source = cast("dict[str, Any]", event.data).get("source")
            if isinstance(source, str):
                yield source.encode("utf-8", "surrogatepass")
