"""The revisions of unknowns in a workspace's log, for bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from affidavit.evidence.canonical import canonical
from affidavit.evidence.citations import evidence_ids
from affidavit.evidence.record import JsonValue
from affidavit.store.exporting.selection import Chosen
from affidavit.store.store import Store

__all__ = ["KIND", "Revisions"]

KIND: Final = "unknown-revised"


@dataclass(slots=True)
class Revisions:
    """Every revision that the log tells, and which of them belong into a bundle."""

    by_unknown: Mapping[str, list[JsonValue]]
    taken: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, store: Store) -> Revisions:
        """Read the log."""
        found: dict[str, list[JsonValue]] = {}
        after = 0
        while events := store.events.after(after):
            for event in events:
                if event.kind == KIND:
                    data = cast("dict[str, Any]", event.data)
                    found.setdefault(data["unknown_id"], []).append(data)
            after = events[-1].seq
        return cls(found)

    def about(self, chosen: Chosen) -> set[str]:
        """Take every unknown that refers to a chosen record; ids that these refer to and that are not chosen yet."""
        ids: set[str] = set()
        for name, revisions in self.by_unknown.items():
            if name not in self.taken:
                referred = evidence_ids(revisions)
                if chosen.raw is None or any(it in chosen for it in referred):
                    self.taken.add(name)
                    ids |= referred
        return ids

    def chosen(self) -> list[bytes]:
        """Canonical bytes of the revisions that were taken, ascending, each once."""
        return sorted({canonical(it) for name in self.taken for it in self.by_unknown[name]})
