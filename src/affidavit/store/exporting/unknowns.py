"""The revisions of unknowns in a workspace's register, for bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from affidavit.evidence import unknowns
from affidavit.evidence.canonical import canonical
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.store.exporting.selection import Chosen
from affidavit.store.store import Store
from affidavit.store.unknowns import REGISTER, read_revision

__all__ = ["Revisions"]


@dataclass(slots=True)
class Revisions:
    """Every revision in the register, and which of them belong into a bundle."""

    by_unknown: Mapping[str, list[UnknownRevision]]
    taken: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, store: Store) -> Revisions:
        """Read the register.

        Raises:
            UsageError: `unknown-invalid`: a revision in it does not hold.
        """
        found: dict[str, list[UnknownRevision]] = {}
        for event in store.events.of_session(REGISTER):
            revision = read_revision(event)
            found.setdefault(unknowns.unknown_id(revision), []).append(revision)
        return cls(found)

    def take(self, chosen: Chosen) -> bool:
        """Take the unknowns that chosen records speak for or against, and their relatives; whether any is new."""
        before = len(self.taken)
        for name, revisions in self.by_unknown.items():
            if chosen.raw is None or any(one in chosen for it in revisions for one in _records_of(it)):
                self.taken.add(name)
        waiting = set(self.taken)
        while waiting:
            related = {
                one.unknown for name in waiting for it in self.by_unknown[name] for one in it.relations
            }
            waiting = (related & set(self.by_unknown)) - self.taken
            self.taken |= waiting
        return len(self.taken) > before

    def records(self) -> set[str]:
        """Ids of the records that the taken ones refer to."""
        return {one for name in self.taken for it in self.by_unknown[name] for one in _records_of(it)}

    def strangers(self) -> set[str]:
        """Ids of unknowns that the taken ones are related to and that the register does not have."""
        related = {one.unknown for name in self.taken for it in self.by_unknown[name] for one in it.relations}
        return related - self.taken

    def chosen(self) -> list[bytes]:
        """Canonical bytes of the revisions that were taken, ascending, each once."""
        return sorted(
            {canonical(unknowns.to_json(it)) for name in self.taken for it in self.by_unknown[name]}
        )


def _records_of(revision: UnknownRevision) -> tuple[str, ...]:
    return (*revision.supports, *revision.contradicts)
