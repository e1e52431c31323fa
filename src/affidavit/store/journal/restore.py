"""Bringing what a journal holds back into a workspace: every record under its old id, every event in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from affidavit.errors import FailedError, VerificationError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue
from affidavit.store.events import Event, prepare
from affidavit.store.journal._portable import portable
from affidavit.store.journal.contents import Contents
from affidavit.store.journal.verify import Report, open_walk, report, verify
from affidavit.store.store import Store
from affidavit.store.unknowns import KIND, Unknowns, read_revision

__all__ = ["Restored", "restorable", "restore"]

_Print: TypeAlias = bytes
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restoration did.

    Attributes:
        report: what the journal holds and whether it holds.
        events: events that were added; the others were there.
        records: records that were added.
        conflicts: revisions of unknowns that the workspace has otherwise; they are in the session's log alone.
    """

    report: Report
    events: int
    records: int
    conflicts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit journal restore --json`."""
        return {
            "session": self.report.session,
            "status": self.report.status,
            "events": {"added": self.events, "present": self.report.events - self.events},
            "records": {"added": self.records, "present": self.report.records - self.records},
            "blobs": self.report.blobs,
            "conflicts": list(self.conflicts),
            "losses": [dict(it) for it in self.report.losses],
            "problems": [it.as_json() for it in self.report.problems],
        }


def restorable(path: Path, *, partial: bool = False) -> Report:
    """The report of a journal that may be restored. No workspace is needed for it.

    Args:
        path: a part of the journal.
        partial: whether a damaged one may be.

    Raises:
        VerificationError: `journal-damaged`, with the problems in `details`; `journal-version`.
        NotFoundError: `artifact-not-found`.
    """
    found = verify(path)
    if found.status == "damaged" and not partial:
        raise VerificationError(
            "journal-damaged",
            f"{path} does not hold: " + "; ".join(it.message for it in found.problems[:_SHOWN]),
            hint="`--partial` restores what is readable",
            details={"problems": [it.as_json() for it in found.problems]},
        )
    return found


def restore(path: Path, store: Store, *, partial: bool = False, checked: Report | None = None) -> Restored:
    """Add the events, records and blobs of a journal to a workspace. Repeating it adds nothing.

    The journal is checked as a whole first, and all of it is added in one transaction. A torn end costs the torn line
    and is reported; it does not keep the rest out.

    Args:
        path: a part of the journal.
        store: the workspace's store.
        partial: whether what is readable of a damaged journal is added.
        checked: what `restorable` gave for it just before; it is asked here by default.

    Raises:
        VerificationError: as `restorable`; nothing was added.
        FailedError: `journal-mismatch`: the workspace has another session of this name.
        NotFoundError: `artifact-not-found`.
    """
    first = checked or restorable(path, partial=partial)
    contents = Contents(open_walk(path), on_blob=lambda digest, data: _put(store, digest, data))
    revised: list[Event] = []
    register = _Register(store, revised)
    items = _items(contents, store, first.session, revised, partial=partial)
    events, records = store.load(chain(items, register.entries()))
    return Restored(
        report=report(contents, path),
        events=events - register.added,
        records=records,
        conflicts=tuple(register.conflicts),
    )


def _put(store: Store, digest: str, data: bytes) -> None:
    assert store.blobs.put(data).digest == digest


class _Register:
    """Brings the revisions of unknowns that a journal tells into the workspace's register."""

    def __init__(self, store: Store, revised: Sequence[Event]) -> None:
        self.added = 0
        self.conflicts: list[str] = []
        self._store = store
        self._revised = revised

    def entries(self) -> Iterator[Event]:
        """Those that are not there yet. What they refer to may come with the journals of other sessions."""
        adopting = Unknowns(self._store).adopting(
            map(read_revision, self._revised),
            whole=False,
            on_conflict=lambda conflict: self.conflicts.append(conflict.message),
        )
        for entry in adopting:
            self.added += 1
            yield entry


def _items(
    contents: Contents, store: Store, session: str, revised: list[Event], *, partial: bool
) -> Generator[Event | Sealed]:
    """Records and new events, in the journal's order; every revision of an unknown is noted in `revised`.

    What the workspace has of the session must be the beginning of what the journal tells, or all of it: events have an
    order, and one that is put behind later ones would tell another story.
    """
    present: Counter[_Print] | None = None
    added = 0
    for item in contents.items():
        if isinstance(item, Sealed):
            yield item
            continue
        if item.kind == KIND:
            revised.append(item)
        if present is None:
            # Read inside the transaction: nobody else adds to the session from here on.
            present = Counter(_print(it) for it in store.events.of_session(item.session))
        mark = _print(item)
        if present[mark]:
            present[mark] -= 1
            if added and not partial:
                raise _mismatch(session)
            continue
        if (
            item.evidence_id is not None
            and not contents.has(item.evidence_id)
            and not store.evidence.has([item.evidence_id])
        ):
            continue  # its record is lost; only damaged journals come here, and their report says so
        added += 1
        yield item
    if added and present and present.total() and not partial:
        raise _mismatch(session)


def _print(event: Event) -> _Print:
    """What makes an event the same one in two places: everything but its number there."""
    about = [event.kind, event.session, event.at, event.run, event.key, event.evidence_id]
    return sha256(canonical(about) + portable(event.kind, prepare(event))).digest()


def _mismatch(session: str) -> FailedError:
    return FailedError(
        "journal-mismatch",
        f"the workspace has other events of session {session!a} than the journal",
        hint="restore into another workspace; `--partial` adds what is missing behind them",
        details={"session": session},
    )
