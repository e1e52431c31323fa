"""Writing a bundle from a workspace that may be in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson

from affidavit.evidence.bundles.document import write_bundle
from affidavit.evidence.canonical import digest
from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue
from affidavit.store.events import StoredEvent
from affidavit.store.exporting.selection import Selection, batches, choose, to_id, to_raw
from affidavit.store.exporting.unknowns import Revisions
from affidavit.store.store import Store

__all__ = ["Exported", "export_bundle"]

_WITH_SOURCE: Final = ("run-requested", "run-started")
_RAW: Final = 32
_BLOB: Final = 0
_NOWHERE: Final = -1


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
    plan = _Plan(store)
    for batch in batches(chosen.records()):
        chosen.see_parents({parent for sealed in batch for parent in plan.see(sealed)})
    missing = chosen.missing | revisions.strangers()
    lost = plan.find_scripts()
    whole = write_bundle(
        write,
        answers=plan.answers(),
        blobs=plan.contents(),
        missing=sorted(missing),
        records=chosen.records(),
        unknowns=revisions.chosen(),
    )
    return Exported(
        whole=whole,
        records=plan.records,
        answers=len(plan.raw_answers) // _RAW,
        blobs=len(plan.results | plan.scripts.keys()),
        unknown_revisions=len(revisions.chosen()),
        missing=len(missing),
        scripts_missing=lost,
    )


@dataclass(slots=True)
class _Plan:
    """What stands before the records in a bundle, found by looking at each of them once.

    Attributes:
        raw_answers: their ids in order, 32 bytes each.
        results: addresses of results that are kept apart.
        scripts: addresses of scripts, each with the `seq` of an event that has its text, or `_BLOB`.
    """

    store: Store
    records: int = 0
    raw_answers: bytearray = field(default_factory=bytearray)
    results: set[str] = field(default_factory=set[str])
    scripts: dict[str, int] = field(default_factory=dict[str, int])

    def see(self, sealed: Sealed) -> list[str]:
        """Take note of a record; the ids that it rests on."""
        self.records += 1
        shape: dict[str, Any] = orjson.loads(sealed.body)
        blob = shape["outcome"].get("blob")
        if blob is not None:
            self.results.add(blob["digest"])
        if shape["kind"] == "derivation":
            if shape["operation"] == ANSWER:
                self.raw_answers += to_raw(sealed.id)
            address = shape["script"]
            if address is not None and address not in self.scripts:
                self.scripts[address] = _BLOB if self.store.blobs.has(address) else _NOWHERE
        return shape["parents"]

    def find_scripts(self) -> tuple[str, ...]:
        """Look through the runs, once, for the texts of scripts that are not blobs; those that are nowhere, sorted."""
        wanted = {address for address, seq in self.scripts.items() if seq == _NOWHERE}
        for event in self.store.events.walk(_WITH_SOURCE) if wanted else ():
            address = digest(_source(event))
            if address in wanted:
                self.scripts[address] = event.seq
                wanted.discard(address)
                if not wanted:
                    break
        for address in wanted:
            del self.scripts[address]
        return tuple(sorted(wanted))

    def answers(self) -> Iterator[str]:
        for start in range(0, len(self.raw_answers), _RAW):
            yield to_id(bytes(self.raw_answers[start : start + _RAW]))

    def contents(self) -> Iterator[tuple[str, bytes]]:
        for address in sorted(self.results | self.scripts.keys()):
            seq = self.scripts.get(address, _BLOB)
            if seq == _BLOB:
                yield address, self.store.blobs.get(address)
            else:
                [event] = self.store.events.after(seq - 1, limit=1)
                yield address, _source(event)


def _source(event: StoredEvent) -> bytes:
    """The script of a run, as it was given or as it was run; empty where the event has none."""
    data: Any = event.data
    source: Any = cast("dict[str, Any]", data).get("source") if isinstance(data, dict) else None
    return source.encode("utf-8", "surrogatepass") if isinstance(source, str) else b""
