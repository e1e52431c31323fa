"""Which records go into a bundle: what was asked for, and everything that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed
from affidavit.store.records import Evidence
from affidavit.store.store import Store

__all__ = ["Chosen", "Selection", "choose", "parents_of"]

_BATCH: Final = 500
_MANY: Final = 20_000  # above that, walking all records is quicker than looking each up


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to export; empty means everything.

    `session`, `subject` and `operation` narrow each other: a record must fulfil all that are given. `answers` and `ids`
    add to that, or stand alone. Whatever a chosen record rests on comes along, through all parents.

    Attributes:
        session: only records that an event of this session is about.
        subject: only records about this artifact, `sha256:` + hex.
        operation: only records of this operation.
        answers: ids or unique prefixes of answers.
        ids: ids or unique prefixes of records.
    """

    session: str | None = None
    subject: str | None = None
    operation: str | None = None
    answers: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether records are chosen by what they are."""
        return not (self.session is None and self.subject is None and self.operation is None)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.filters or self.answers or self.ids)


@dataclass(slots=True)
class Chosen:
    """The records of an export.

    Attributes:
        evidence: where they are kept.
        raw: their ids as 32 bytes each, or None for all of them up to number `up_to`.
        missing: ids that are referred to and not kept here.
    """

    evidence: Evidence
    raw: set[bytes] | None
    up_to: int
    missing: set[str] = field(default_factory=set[str])
    _found: set[str] = field(default_factory=set[str])

    def __contains__(self, evidence_id: str) -> bool:
        return self.raw is None or to_raw(evidence_id) in self.raw

    def records(self) -> Iterator[Sealed]:
        """Each record in the order of ids; memory is bounded.

        Raises:
            VerificationError: `store-damaged`, naming the record.
        """
        if self.raw is None:
            yield from self.evidence.walk(up_to=self.up_to)
        elif len(self.raw) > _MANY:
            for sealed in self.evidence.walk(up_to=self.up_to):
                if to_raw(sealed.id) in self.raw:
                    yield sealed
        else:
            for batch in batches(sorted(self.raw)):
                yield from self.evidence.sealed(to_id(it) for it in batch)

    def add(self, ids: Iterable[str]) -> None:
        """Choose these records, too, and everything that they rest on; those that are not here are missing."""
        if self.raw is None:
            self._look_for(ids)
            return
        for batch in batches(ids):
            self._add(self.raw, {to_raw(it) for it in batch} - self.raw)

    def _add(self, raw: set[bytes], waiting: set[bytes]) -> None:
        """Choose the ids of one batch and, in further rounds, what they rest on."""
        while waiting:
            rest: set[bytes] = set()
            for batch in batches(waiting):
                found = self.evidence.sealed(to_id(it) for it in batch)
                present = {to_raw(sealed.id) for sealed in found}
                raw |= present
                self.missing |= {to_id(it) for it in batch if it not in present}
                for sealed in found:
                    rest |= {to_raw(parent) for parent in parents_of(sealed)} - raw
            waiting = rest - raw - {to_raw(it) for it in self.missing}

    def see_parents(self, parents: set[str]) -> None:
        """Note which of these ids that chosen records rest on are missing, where that is not known by `add` yet."""
        if self.raw is None:
            self._look_for(parents)

    def _look_for(self, ids: Iterable[str]) -> None:
        for batch in batches(set(ids) - self.missing - self._found):
            found = self.evidence.has(batch)
            self.missing |= set(batch) - found
            if len(self._found) > _MANY:
                self._found.clear()  # bounded memory; a few are looked up again
            self._found |= found


def choose(store: Store, selection: Selection) -> Chosen:
    """The records that a selection names, and everything that they rest on.

    Where everything is chosen, what is missing is known only after `Chosen.see_parents` was told of all parents.

    Raises:
        NotFoundError: `evidence-not-found`: an id is not here; `session-not-found`; `item-not-found`:
            nothing is chosen.
        UsageError: `evidence-ambiguous`; `answer-invalid`: a record is not an answer.
        VerificationError: `store-damaged`, naming the record.
    """
    evidence = store.evidence
    up_to = evidence.newest()
    chosen = Chosen(evidence, None if selection.everything else set(), up_to)
    if selection.everything:
        return chosen
    wanted = [evidence.resolve(name) for name in (*selection.ids, *selection.answers)]
    for name, found in zip(selection.answers, wanted[len(selection.ids) :], strict=True):
        if evidence.get(found).operation != ANSWER:
            raise UsageError("answer-invalid", f"{name} is not an answer", hint="`--id` exports any record")
    chosen.add(wanted)
    if selection.filters:
        chosen.add(_filtered(store, selection, up_to))
    if not chosen.raw:
        raise NotFoundError(
            "item-not-found", "no record is like that", hint="`affidavit evidence list` shows them"
        )
    return chosen


def parents_of(sealed: Sealed) -> list[str]:
    """The ids that a record rests on."""
    return orjson.loads(sealed.body)["parents"]


def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    """The items in lists of bounded length."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def to_raw(evidence_id: str) -> bytes:
    """An id as 32 bytes, a third of the memory."""
    return bytes.fromhex(evidence_id[4:])


def to_id(raw: bytes) -> str:
    """The id of `to_raw`."""
    return f"ev1_{raw.hex()}"


def _filtered(store: Store, selection: Selection, up_to: int) -> Iterator[str]:
    if selection.session is not None and store.events.last(selection.session) is None:
        raise NotFoundError(
            "session-not-found", f"no session {selection.session!r}", hint="`affidavit session list`"
        )
    ids = store.evidence.ids(operation=selection.operation, session=selection.session, up_to=up_to)
    if selection.subject is None:
        yield from ids
        return
    for batch in batches(ids):
        for sealed in store.evidence.sealed(batch):
            subject = orjson.loads(sealed.body)["subject"]
            if subject is not None and subject["digest"] == selection.subject:
                yield sealed.id
