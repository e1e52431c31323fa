"""What holds between the revisions of unknowns, their records and each other.

A revision alone is checked by `unknowns.check`. Here are the rest: no number is missing and none stands twice, each
revision follows the one before, every record and unknown that is named is there, what is verified has support that
qualifies, and no unknown depends on itself through others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from affidavit.errors import AffidavitError, FailedError, NotFoundError, UsageError
from affidavit.evidence.record import Record, Unfinished
from affidavit.evidence.unknowns import CONFIDENCE_RANK, UnknownRevision, check, revision_digest, unknown_id

__all__ = [
    "RecordOf", "UnknownProblem", "check_all", "dependency_cycle", "latest", "problems", "qualifies", "unqualified",
]  # fmt: skip

RecordOf: TypeAlias = Callable[[str], Record | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownProblem:
    """Something that does not hold.

    Attributes:
        code: `unknown-invalid`, `unknown-not-found`, `evidence-not-found`, or `revision-conflict` where two revisions
            have one number.
        unknown: id of the unknown.
        revision: number of the revision, 0 where it is about the chain.
        message: what does not hold.
    """

    code: str
    unknown: str
    revision: int
    message: str

    def as_error(self) -> AffidavitError:
        """The problem as an error."""
        text = f"{self.unknown} revision {self.revision}: {self.message}"
        kind = {"unknown-invalid": UsageError, "revision-conflict": FailedError}.get(self.code, NotFoundError)
        return kind(self.code, text, details={"unknown_id": self.unknown, "revision": self.revision})


def latest(revisions: Iterable[UnknownRevision]) -> dict[str, UnknownRevision]:
    """The newest revision of each unknown, by id: the state that a log of revisions, in any order, reduces to."""
    found: dict[str, UnknownRevision] = {}
    for revision in revisions:
        name = unknown_id(revision)
        if name not in found or found[name].revision < revision.revision:
            found[name] = revision
    return found


def check_all(
    revisions: Iterable[UnknownRevision], record_of: RecordOf, *, missing: Container[str] = ()
) -> dict[str, UnknownRevision]:
    """Check revisions as a whole; the newest of each unknown, by id.

    Args:
        revisions: all revisions of the unknowns, in any order; equal ones count once.
        record_of: the record of an id, or None when it is not there.
        missing: ids of records and unknowns that are known to be elsewhere: references to them are not followed.

    Raises:
        AffidavitError: the first of `problems`.
    """
    kept = list(revisions)
    for problem in problems(kept, record_of, missing=missing):
        raise problem.as_error()
    return latest(kept)


def problems(
    revisions: Iterable[UnknownRevision], record_of: RecordOf, *, missing: Container[str] = ()
) -> Iterator[UnknownProblem]:
    """Everything that does not hold; see `check_all`."""
    chains: dict[str, dict[str, UnknownRevision]] = {}
    for revision in revisions:
        chains.setdefault(unknown_id(revision), {})[revision_digest(revision)] = revision
    current: dict[str, UnknownRevision] = {}
    for name, chain in sorted(chains.items()):
        ordered = sorted(chain.values(), key=lambda one: one.revision)
        current[name] = ordered[-1]
        yield from _chain_problems(name, ordered)
        for revision in ordered:
            yield from _problems_of(name, revision, record_of, chains, missing)
    cycle = dependency_cycle(current)
    if cycle:
        shown = " -> ".join([*cycle, cycle[0]])
        yield _problem(cycle[0], current[cycle[0]], f"it depends on itself: {shown}")


def qualifies(revision: UnknownRevision, record: Record) -> bool:
    """Whether a record can verify the unknown: its authority, its confidence, and that its end was seen."""
    if isinstance(record.outcome, Unfinished):
        return False
    if revision.required_authority not in (None, record.authority):
        return False
    least = revision.required_confidence
    return least is None or CONFIDENCE_RANK[record.confidence] >= CONFIDENCE_RANK[least]


def dependency_cycle(current: Mapping[str, UnknownRevision], start: str | None = None) -> list[str]:
    """The ids of a cycle of `depends-on`, each depending on the next; empty when there is none.

    Args:
        current: the newest revision of each unknown, by id.
        start: look only at what this one depends on, near and far; at all by default.
    """
    waiting = sorted(current) if start is None else [start]
    needs: dict[str, list[str]] = {}
    while waiting:
        name = waiting.pop()
        if name in needs or name not in current:
            continue
        needs[name] = [one.unknown for one in current[name].relations if one.kind == "depends-on"]
        waiting += needs[name]
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]  # the first stands at the end again, each before what depends on it
        return found[:0:-1]
    return []


def _chain_problems(name: str, ordered: Sequence[UnknownRevision]) -> Iterator[UnknownProblem]:
    before: UnknownRevision | None = None
    for revision in ordered:
        expected = 1 if before is None else before.revision + 1
        if before is not None and revision.revision == before.revision:
            message = (
                f"two revisions have this number: {revision_digest(before)} and {revision_digest(revision)}"
            )
            yield _problem(name, revision, message, "revision-conflict")
        elif revision.revision != expected:
            yield _problem(name, revision, f"revision {expected} is missing before it")
        elif before is not None and revision.previous != revision_digest(before):
            yield _problem(name, revision, f"it follows {revision.previous}, not {revision_digest(before)}")
        before = revision


def _problems_of(
    name: str,
    revision: UnknownRevision,
    record_of: RecordOf,
    unknowns: Container[str],
    missing: Container[str],
) -> Iterator[UnknownProblem]:
    """What does not hold of one revision, its chain aside."""
    try:
        check(revision)
    except UsageError as error:
        yield _problem(name, revision, error.message)
        return
    for relation in revision.relations:
        if relation.unknown not in unknowns and relation.unknown not in missing:
            message = f"it is related to {relation.unknown}, which is not there"
            yield _problem(name, revision, message, "unknown-not-found")
    for one in (*revision.supports, *revision.contradicts):
        if one not in missing and record_of(one) is None:
            yield _problem(name, revision, f"it names {one}, which is not there", "evidence-not-found")
    if revision.resolution == "verified" and not _is_verified(revision, record_of, missing):
        yield _problem(name, revision, unqualified(revision))


def _is_verified(revision: UnknownRevision, record_of: RecordOf, missing: Container[str]) -> bool:
    for one in revision.supports:
        record = None if one in missing else record_of(one)
        if one in missing or (record is not None and qualifies(revision, record)):
            return True
    return False


def unqualified(revision: UnknownRevision) -> str:
    """What a revision that claims to be verified lacks."""
    authority = revision.required_authority or "any authority"
    confidence = f"confidence {revision.required_confidence or 'inferred'} or better"
    return f"verified, and no support has {authority} with {confidence} and an end that was seen"


def _problem(
    name: str, revision: UnknownRevision, message: str, code: str = "unknown-invalid"
) -> UnknownProblem:
    return UnknownProblem(code=code, unknown=name, revision=revision.revision, message=message)
