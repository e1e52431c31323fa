"""The unknowns of one tenant: a register in the log, which tells them across all sessions.

Each revision is an event `unknown-revised` in the log of the session that made it, and the same revision stands in the
register: a log under a name that no session can have. The key of an entry is its place in the register, so whoever
adds one has seen all entries before it, and everything that must hold between unknowns was checked against them. Of
two processes that revise one unknown at once, one finds its place taken, looks again, and is told of the conflict.
"""

from __future__ import annotations

import re
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from affidavit.errors import AffidavitError, FailedError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.record import JsonValue, Record
from affidavit.evidence.unknown_checks import (
    RecordOf,
    check_all,
    dependency_cycle,
    latest,
    qualifies,
    unqualified,
)
from affidavit.evidence.unknowns import (
    PREFIX,
    UnknownRevision,
    from_json,
    invalid,
    opened,
    revised,
    revision_digest,
    to_json,
    unknown_id,
)
from affidavit.store.events import Event, StoredEvent
from affidavit.store.store import Store

__all__ = ["KIND", "REGISTER", "Entry", "Unknowns", "read_revision"]

KIND: Final = "unknown-revised"
"""Kind of the events that keep revisions; their data is `{"revision": document}`."""
REGISTER: Final = "@unknowns"
"""The session under whose name the register stands."""

_SHORTENED: Final = re.compile(r"(?:unk1_)?([0-9a-f]{4,64})")
_ATTEMPTS: Final = 1_000  # each lost one means that another process added an entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A revision as the register keeps it.

    Attributes:
        revision: the revision.
        at: when it was made or brought here, seconds since the epoch.
        session: the session that made it, or None when a person did without one, or when it was brought here.
        run: the run that made it, or None.
    """

    revision: UnknownRevision
    at: float
    session: str | None
    run: str | None


@dataclass(slots=True)
class _Seen:
    """What of the register was read: the reduction of its entries up to `seq`."""

    seq: int = 0
    count: int = 0
    chains: dict[str, dict[int, Entry]] = field(default_factory=dict[str, dict[int, Entry]])
    current: dict[str, UnknownRevision] = field(default_factory=dict[str, UnknownRevision])

    def add(self, event: StoredEvent) -> None:
        entry = _entry(event)
        name = unknown_id(entry.revision)
        self.chains.setdefault(name, {})[entry.revision.revision] = entry
        known = self.current.get(name)
        if known is None or known.revision < entry.revision.revision:
            self.current[name] = entry.revision
        self.seq, self.count = event.seq, self.count + 1


class Unknowns:
    """Reads and revises unknowns. For use in one thread at a time; other processes are seen at every call."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._now = now
        self._seen = _Seen()

    def all(self) -> list[UnknownRevision]:
        """The newest revision of every unknown, in the order in which they came here."""
        return list(self._look().current.values())

    def get(self, unknown: str) -> UnknownRevision:
        """The newest revision of an unknown, by its id or a prefix that only one id has.

        Raises:
            NotFoundError: `unknown-not-found`.
            UsageError: `unknown-ambiguous`.
        """
        return self._look().current[self._resolve(unknown)]

    def history(self, unknown: str) -> list[Entry]:
        """Every revision of an unknown that is here, by number.

        Raises:
            AffidavitError: as `get`.
        """
        self._look()
        chain = self._seen.chains[self._resolve(unknown)]
        return [chain[number] for number in sorted(chain)]

    def open(
        self, given: Mapping[str, JsonValue], *, session: str | None = None, run: str | None = None
    ) -> tuple[UnknownRevision, bool]:
        """Open an unknown, or find the one that asks the same already; the other fields are then left as they are.

        Args:
            given: its fields by name (`unknowns.FIELDS`), JSON values.
            session: the session in whose log the revision is also kept.
            run: the run that opens it.

        Returns:
            The newest revision, and whether it was made by this call.

        Raises:
            UsageError: `unknown-invalid`.
            NotFoundError: `evidence-not-found`, `unknown-not-found`.
            AffidavitError: what `Store.append` raises; then nothing was kept.
        """
        revision = opened(given)
        name = unknown_id(revision)

        def following() -> UnknownRevision:
            return self._seen.current.get(name, revision)

        return self._write(following, session, run)

    def revise(
        self,
        unknown: str,
        expect: int,
        given: Mapping[str, JsonValue],
        *,
        session: str | None = None,
        run: str | None = None,
    ) -> tuple[UnknownRevision, bool]:
        """Change fields of an unknown by a revision that follows the newest one.

        Args:
            unknown: its id, or a prefix that only one id has.
            expect: number of the revision that the caller has seen as the newest.
            given: the fields that change. A list that is given replaces the one before.
            session: as in `open`.
            run: as in `open`.

        Returns:
            The newest revision, and whether it was made by this call: it is not when nothing changes.

        Raises:
            FailedError: `revision-conflict`: another revision is the newest; `details.revision` is its number.
            AffidavitError: as `open` and `get`.
        """

        def following() -> UnknownRevision:
            current = self._seen.current[self._resolve(unknown)]
            if current.revision != expect:
                raise _conflict(current, expect)
            return revised(current, given)

        return self._write(following, session, run)

    def adopting(
        self,
        revisions: Iterable[UnknownRevision],
        *,
        record_of: RecordOf | None = None,
        whole: bool = True,
        on_conflict: Callable[[FailedError], object] | None = None,
    ) -> Iterator[Event]:
        """The events that bring revisions from elsewhere into the register, for `Store.load` in one transaction.

        Those that are here already give none. To be iterated inside `load`: nobody else adds anything meanwhile.

        Args:
            revisions: the revisions, in any order.
            record_of: the record of an id among those that come along; the store is asked for the others.
            whole: whether everything must hold together with what is here. When false, revisions and records that
                are missing may come later; only what contradicts a revision here is refused.
            on_conflict: told of each revision that contradicts one here, which is then left out instead of refused.

        Raises:
            FailedError: `revision-conflict`: another revision of this number, or another one before it, is here.
            AffidavitError: the first thing that does not hold, when `whole`.
        """
        seen = self._look()
        chains = {name: {n: it.revision for n, it in chain.items()} for name, chain in seen.chains.items()}
        fresh: list[UnknownRevision] = []
        for revision in sorted(revisions, key=lambda one: one.revision):
            chain = chains.setdefault(unknown_id(revision), {})
            try:
                new = _belongs(revision, chain)
            except FailedError as conflict:
                if on_conflict is None:
                    raise
                on_conflict(conflict)
                continue
            if new:
                chain[revision.revision] = revision
                fresh.append(revision)
        if whole and fresh:
            self._check_together({unknown_id(one) for one in fresh}, chains, record_of)
        for offset, revision in enumerate(fresh, start=1):
            yield self._entry_event(revision, seen.count + offset, None, None)

    # ---- the register ----

    def _look(self) -> _Seen:
        """Read what was added to the register since the last look."""
        for event in self._store.events.of_session(REGISTER, after=self._seen.seq):
            self._seen.add(event)
        return self._seen

    def _resolve(self, prefix: str) -> str:
        match = _SHORTENED.fullmatch(prefix)
        low = PREFIX + match[1] if match else "-"
        found = (
            [low] if low in self._seen.current else sorted(n for n in self._seen.current if n.startswith(low))
        )
        if not found:
            shown = f"{prefix[:80]!a}"
            raise NotFoundError(
                "unknown-not-found", f"no unknown has the id {shown} here", hint="`affidavit unknown list`"
            )
        if len(found) > 1:
            raise UsageError(
                "unknown-ambiguous",
                f"several unknowns begin with {prefix}",
                hint="give more digits: " + ", ".join(one[: len(low) + 6] for one in found[:3]) + ", ...",
                details={"candidates": found[:6]},
            )
        return found[0]

    def _write(
        self, following: Callable[[], UnknownRevision], session: str | None, run: str | None
    ) -> tuple[UnknownRevision, bool]:
        """Add what follows from the register as it stands, again from the start when another process was first."""
        for _ in range(_ATTEMPTS):
            seen = self._look()
            revision = following()
            if seen.current.get(unknown_id(revision)) == revision:
                return revision, False
            self._check(revision)
            events = [self._entry_event(revision, seen.count + 1, session, run)]
            if session is not None:
                data = {"revision": to_json(revision)}
                events.append(Event(kind=KIND, session=session, run=run, at=events[0].at, data=data))
            if self._store.append_new(events) is None:
                return revision, True
        raise FailedError(
            "store-busy", "other processes revise unknowns without a pause", hint="try again", retryable=True
        )

    def _entry_event(
        self, revision: UnknownRevision, place: int, session: str | None, run: str | None
    ) -> Event:
        data = {"revision": to_json(revision), "session": session, "run": run}
        return Event(kind=KIND, session=REGISTER, at=self._now(), data=data, key=str(place))

    def _check(self, revision: UnknownRevision) -> None:
        """What must hold between a new revision and all that is here; `unknowns.check` saw to the rest."""
        name = unknown_id(revision)
        gap = next((n for n in range(1, revision.revision) if n not in self._seen.chains[name]), None)
        if gap is not None:
            hint = "restore the journal or import the bundle that has it"
            raise invalid("revision", f"revision {gap} of {name} is not here, so none can follow", hint)
        for relation in revision.relations:
            if relation.unknown not in self._seen.current and relation.unknown != name:
                hint = "open it first"
                raise NotFoundError("unknown-not-found", f"no unknown {relation.unknown} is here", hint=hint)
        named = (*revision.supports, *revision.contradicts)
        absent = sorted(set(named) - self._store.evidence.has(named)) if named else []
        if absent:
            hint = "name only what was recorded: page.evidence_id, or an id of df.calls()"
            raise NotFoundError("evidence-not-found", f"{absent[0]} was never recorded here", hint=hint)
        if revision.resolution == "verified" and not any(
            qualifies(revision, self._store.evidence.get(one)) for one in revision.supports
        ):
            raise invalid("supports", unqualified(revision), "support it with a record that qualifies")
        if any(relation.kind == "depends-on" for relation in revision.relations):
            cycle = dependency_cycle(ChainMap({name: revision}, self._seen.current), name)
            if cycle:
                raise invalid("relations", f"it would depend on itself: {' -> '.join([*cycle, cycle[0]])}")

    def _check_together(
        self,
        names: Collection[str],
        chains: Mapping[str, Mapping[int, UnknownRevision]],
        record_of: RecordOf | None,
    ) -> None:
        """Everything that must hold of the unknowns that are added to; the others were checked before."""

        def find(evidence_id: str) -> Record | None:
            return (record_of and record_of(evidence_id)) or self._record(evidence_id)

        check_all((one for name in names for one in chains[name].values()), find, missing=chains)
        cycle = dependency_cycle(latest(one for chain in chains.values() for one in chain.values()))
        if cycle:
            raise invalid(
                "relations", f"an unknown would depend on itself: {' -> '.join([*cycle, cycle[0]])}"
            )

    def _record(self, evidence_id: str) -> Record | None:
        try:
            return self._store.evidence.get(evidence_id)
        except NotFoundError:
            return None


def read_revision(event: Event) -> UnknownRevision:
    """The revision that an event of kind `unknown-revised` keeps, in the register or in a session's log.

    Raises:
        UsageError: `unknown-invalid`: it keeps none that holds.
    """
    data = event.data
    if not isinstance(data, dict):
        raise invalid("document", f"an event of kind {event.kind} without a revision")
    return from_json(cast("dict[str, JsonValue]", data).get("revision"))


def _entry(event: StoredEvent) -> Entry:
    try:
        revision = read_revision(event)
    except AffidavitError as error:
        raise VerificationError(
            "store-damaged",
            f"event {event.seq} does not keep a revision of an unknown: {error.message}",
            hint="restore the workspace from a journal or a copy",
            details={"seq": event.seq},
        ) from error
    data = cast("dict[str, Any]", event.data)
    return Entry(revision=revision, at=event.at, session=data.get("session"), run=data.get("run"))


def _belongs(revision: UnknownRevision, chain: Mapping[int, UnknownRevision]) -> bool:
    """Whether a revision from elsewhere is new to a chain; one that contradicts it is refused."""
    here = chain.get(revision.revision)
    if here is not None and here != revision:
        raise _fork(revision, f"another revision has number {revision.revision}")
    if here is not None:
        return False
    before, after = chain.get(revision.revision - 1), chain.get(revision.revision + 1)
    if before is not None and revision.previous != revision_digest(before):
        raise _fork(revision, f"revision {revision.revision} follows another one than is here")
    if after is not None and after.previous != revision_digest(revision):
        raise _fork(revision, f"revision {after.revision} here follows another one")
    return True


def _fork(revision: UnknownRevision, problem: str) -> FailedError:
    name = unknown_id(revision)
    return FailedError(
        "revision-conflict",
        f"{name} was revised in two places: {problem}",
        hint="revise the one here by hand, with what the other one says",
        details={"unknown_id": name, "revision": revision.revision},
    )


def _conflict(current: UnknownRevision, expected: int) -> FailedError:
    return FailedError(
        "revision-conflict",
        f"{unknown_id(current)} is at revision {current.revision}, not {expected}",
        hint=f"look at revision {current.revision}, then revise it with expect {current.revision}",
        details={
            "unknown_id": unknown_id(current),
            "revision": current.revision,
            "digest": revision_digest(current),
            "expected": expected,
        },
    )
