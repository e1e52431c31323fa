"""What events say, kind by kind: the one table of it.

A new kind is one entry of `KINDS`, and its shape one of `events` in `docs/format.schema.json`, which strangers read: a
test holds the two against each other. Whoever reads events that may come from elsewhere (a journal, a database that was
edited) asks `fault` first and leaves out what has one: so no odd event reaches a reader that trusts its members.

Kinds and members only ever get more. A kind that is not in the table, and a member that its kind does not name, was
written by a later version: it is kept, restored and handed on as it is, and nothing here reads it. So a new member
must be one without which the others are still true; what changes the meaning of another one is a new kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast, get_args

from affidavit.errors import AffidavitError
from affidavit.evidence import unknowns
from affidavit.evidence.reader import Reader
from affidavit.evidence.record import Authority, BlobRef, Confidence, JsonValue
from affidavit.store.events import Event, StoredEvent, prepare

__all__ = ["KINDS", "Kind", "Story", "blobs_of", "fault", "sound"]

Shape: TypeAlias = Callable[[Reader], object]
"""Reads a member, and refuses what it may not be."""


_EARLIEST: Final = -62_135_596_800  # the beginning of the year 1
_LATEST: Final = 253_402_300_800  # the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How the events of one kind look.

    Attributes:
        data: the members of its data by name; one whose name ends with `?` may be absent.
        run: whether it belongs to a run; None where it may.
        evidence: whether it is about a record; None where it may be.
        blobs: the members of its data that name a blob by digest and size.
        rule: tells what else does not hold between members that are each as they should be; empty when all does.
    """

    data: Mapping[str, Shape]
    run: bool | None = False
    evidence: bool | None = False
    blobs: tuple[str, ...] = ()
    rule: Callable[[Mapping[str, Any], Event], str] | None = None

    def check(self, event: Event, *steps: str) -> None:
        """See that an event is of this kind.

        Args:
            event: the event.
            steps: the way to the event in the document that holds it.

        Raises:
            AffidavitError: naming the member.
        """
        for name, wanted, found in (
            ("run", self.run, event.run), ("evidence", self.evidence, event.evidence_id)
        ):  # fmt: skip
            if wanted is not None and wanted != (found is not None):
                raise Reader(found, (*steps, name)).refuse("one" if wanted else "none")
        members = Reader(event.data, (*steps, "data")).members()
        for name, shape in self.data.items():
            if name[-1] != "?":
                if name not in members:
                    raise Reader(event.data, (*steps, "data")).refuse(f"a member {name!r}")
                shape(members[name])
            elif (member := members.get(name[:-1])) is not None:
                shape(member)
        problem = self.rule(cast("dict[str, Any]", event.data), event) if self.rule else ""
        if problem:
            raise Reader(event.data, (*steps, "data")).refuse(problem)


# ---- shapes ----


def _place(reader: Reader) -> None:
    if not reader.count():
        raise reader.refuse("a number from 1")


def _choice(*choices: str) -> Shape:
    known = frozenset(choices)
    return lambda reader: reader.choice(known)


def _or_null(shape: Shape) -> Shape:
    return lambda reader: None if reader.json is None else shape(reader)


def _list(shape: Shape) -> Shape:
    def read(reader: Reader) -> None:
        for item in reader.items():
            shape(item)

    return read


def _object(**shapes: Shape) -> Shape:
    """An object with at least these members."""

    def read(reader: Reader) -> None:
        members = reader.members()
        for name, shape in shapes.items():
            if name not in members:
                raise reader.refuse(f"a member {name!r}")
            shape(members[name])

    return read


def _values(reader: Reader) -> None:
    """An object of values by name."""
    for member in reader.members().values():
        member.value()


def _producer(reader: Reader) -> None:
    if len([item.text() for item in reader.items()]) != 2:
        raise reader.refuse("a name and a version")


def _decision(reader: Reader) -> None:
    if type(reader.json) is not int:
        raise reader.refuse("a whole number")


def _revision(reader: Reader) -> None:
    unknowns.from_json(reader.json)


_text, _count, _number, _flag, _digest, _value = (
    Reader.text, Reader.count, Reader.number, Reader.flag, Reader.digest, Reader.value
)  # fmt: skip
_texts = _list(_text)
_engine = _choice("auto", "cpython", "monty")
_error = _object(code=_text, message=_text)
_blob = _object(digest=_digest, size=_count)
_aside = _object(path=_text, line=_count, column=_count, iteration=_count, given=_digest)
_limitation = _object(code=_text, place=_text, message=_text)


# ---- rules ----


def _own_evidence(data: Mapping[str, Any], event: Event) -> str:
    return "" if data.get("evidence_id", event.evidence_id) == event.evidence_id else "its own evidence_id"


def _numbered(data: Mapping[str, Any], _: Event) -> str:
    return "" if "number" in data or data["status"] == "orphaned" else "a member 'number'"


# ---- the table ----

KINDS: Final[Mapping[str, Kind]] = {
    "session-opened": Kind(data={"version": _text}),
    "mount-added": Kind(
        evidence=None,
        blobs=("contents",),
        data={
            "name": _text, "kind": _text, "uri": _text, "path": _or_null(_text), "artifact": _or_null(_digest),
            "format": _or_null(_text), "signature": _text, "limitations": _list(_limitation),
            "place?": _choice("db", "tool"), "folder?": _or_null(_text), "options?": _object(),
            "contents?": _or_null(_blob), "about?": _or_null(_text), "project?": _flag,
            "helpers?": _list(_object(key=_text, code=_text)),
            "snapshot?": _or_null(_object(identity=_text, basis=_text)),
        },
    ),
    "mount-removed": Kind(data={"name": _text}),
    "preamble-set": Kind(data={"key": _text, "code": _text}),
    "preamble-removed": Kind(data={"key": _text}),
    "run-requested": Kind(
        run=True,
        data={
            "number": _place, "source": _text, "script": _digest, "inputs": _values, "engine": _text,
            "limits?": _object(), "derived_from?": _object(run=_text),
        },
    ),
    "run-started": Kind(
        run=True,
        blobs=("tree",),
        data={
            "engine": _text, "reason": _text, "clock": _number, "seed": _count, "source?": _text,
            "python?": _text, "tree?": _blob, "preamble?": _digest,
        },
    ),
    "call-started": Kind(
        run=None,
        data={
            "call": _place, "operation": _text, "line": _count, "column": _count, "iteration": _count,
            "parameters": _value, "contract": _text, "producer": _producer,
            "authority": _choice(*get_args(Authority)), "confidence": _choice(*get_args(Confidence)),
            "effect?": _choice("read", "write", "external"),
        },
    ),
    "call-recorded": Kind(
        run=None,
        evidence=True,
        rule=_own_evidence,
        data={
            "call": _count, "operation": _text, "line": _count, "column": _count, "iteration": _count,
            "contract": _text, "status": _choice("ok", "failed", "unfinished"), "code": _text,
            "duration_ms": _or_null(_number), "evidence_id?": _text, "given?": _digest, "delivery?": _object(),
        },
    ),
    "answer-given": Kind(
        run=True, evidence=True, data={"status": _choice("answered", "partial", "unsupported")}
    ),
    "run-settled": Kind(
        run=True,
        blobs=("value_blob",),
        rule=_numbered,
        data={
            "status": _choice("succeeded", "failed", "rejected", "timed-out", "cancelled", "orphaned"),
            "has_value": _flag, "number?": _place, "engine?": _text, "engine_reason?": _text, "value?": _value,
            "value_blob?": _blob, "type?": _or_null(_object(annotation=_text, declarations=_texts)),
            "answer?": _or_null(_object()), "error?": _or_null(_error), "stdout?": _text, "stdout_cut?": _count,
            "check?": _text, "check_reason?": _text, "diagnostics?": _list(_object()), "notes?": _texts,
            "asides?": _or_null(_list(_aside)), "timers?": _list(_decision),
            "reruns?": _list(_object(run=_text)),
        },
    ),
    "unknown-revised": Kind(
        run=None,
        data={"revision": _revision, "session?": _or_null(_text), "run?": _or_null(_text)},
    ),
    "bundle-imported": Kind(data={"bundle": _digest}),
    "evidence-imported": Kind(evidence=True, data={"bundle": _digest}),
}  # fmt: skip
"""Every kind of event that this version writes, and what it says."""


def fault(event: Event, *steps: str) -> str:
    """What keeps an event from being one that a session writes, naming the member; empty when nothing does.

    Args:
        event: the event.
        steps: the way to the event in the document that holds it.
    """
    try:
        for name in ("kind", "session", "run", "key"):
            text = getattr(event, name)
            if text is not None or name in ("kind", "session"):
                Reader(text, (*steps, name)).text()
        if not _EARLIEST <= Reader(event.at, (*steps, "at")).number() < _LATEST:
            raise Reader(event.at, (*steps, "at")).refuse("seconds since the epoch, of the years 1 to 9999")
        prepare(event)
        Reader(event.data, (*steps, "data")).mapping()
        if event.kind in KINDS:
            KINDS[event.kind].check(event, *steps)
    except AffidavitError as error:
        return error.message
    return ""


def sound(events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """The events that have no fault: one that was edited or restored from elsewhere must not stop whoever reads a log.

    `affidavit doctor --store` lists the others, and `session list` counts them.
    """
    return (event for event in events if not fault(event))


def blobs_of(event: Event) -> list[BlobRef]:
    """The blobs that an event without a fault refers to."""
    kind = KINDS.get(event.kind)
    found = [event.data.get(name) for name in kind.blobs] if kind else []
    return [BlobRef(digest=it["digest"], size=it["size"]) for it in found if it is not None]


@dataclass(slots=True)
class Story:
    """What the events of one session must say of each other, told one after the other.

    A run is requested before anything else is said of it, and a call starts before its end is recorded.
    """

    _runs: set[str] = field(default_factory=set[str])
    _open: Counter[tuple[str | None, int]] = field(default_factory=Counter[tuple[str | None, int]])

    def tell(self, event: Event) -> tuple[str, str]:
        """What is missing before an event that has no fault: a kind of problem and a sentence, or two empty texts."""
        if event.kind not in KINDS:
            return "", ""
        data = cast("dict[str, JsonValue]", event.data)
        if event.kind == "run-requested":
            self._runs.add(event.run or "")
        elif event.run is not None and event.run not in self._runs:
            return "run-missing", f"{event.kind} of the run {event.run}, which was not requested before it"
        if event.kind == "call-started":
            self._open[event.run, data["call"]] += 1
        elif event.kind == "call-recorded" and data["call"]:
            call = (event.run, data["call"])
            if not self._open[call]:
                del self._open[call]
                of = f" of {event.run}" if event.run else ""
                return "call-missing", f"the end of call {call[1]}{of}, whose start is not before it"
            self._open[call] -= 1
        return "", ""
