"""What the lines of a journal hold, each against what a line of its kind may say, and against the lines before it."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson

from affidavit.errors import AffidavitError, NotFoundError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed, body_id, open_foreign
from affidavit.evidence.reader import Reader
from affidavit.evidence.record import BlobRef, JsonValue, Record, Success
from affidavit.evidence.verification.answer import check_answer
from affidavit.evidence.verification.bundle import misspelt
from affidavit.store._names import check_name
from affidavit.store.event_kinds import KINDS, Story, blobs_of, fault
from affidavit.store.events import Event
from affidavit.store.journal.lines import check_version
from affidavit.store.journal.reader import Placed, Problem, Walk
from affidavit.store.journal.settings import Fsync

__all__ = ["Contents", "Status"]

Status: TypeAlias = Literal["holds", "torn", "damaged"]

_DEPTH: Final = 204
_POLICIES: Final = frozenset(get_args(Fsync))
_MAX_SUBJECTS: Final = 20
_PART: Final = 1 << 48  # more bytes than a part has
_LINES: Final = {
    frozenset({"journal"}): "journal",
    frozenset({"count", "event"}): "event",
    frozenset({"adds", "count", "event", "record"}): "event",
    frozenset({"adds", "record"}): "record",
    **{frozenset({it}): it for it in ("blob", "loss", "opened", "continued", "truncated", "closed")},
}
"""What a line may hold, by the names that stand in it."""


class Contents:
    """Takes the whole lines of a journal one by one and gives out what they hold.

    Args:
        walk: where the lines come from; problems with what they hold are added to its own.
        on_blob: told of each blob whose digest holds.

    Attributes:
        head: of the first part that has one; `session` is its session.
        lines: whole lines so far; `events` likewise.
        records: ids of the records, 32 bytes each, with the place of the line: its part and byte, in one number.
        blobs: address of each whole blob, with its size.
        closed: whether the last line is a closing line.
        bound: the bound that was reached, or 0.
        losses: torn lines that were cut off, as their lines tell them.
        outside: ids of records that something here rests on and that are not here, each with the line that says so.
        unread: how many events of each kind that this version does not know.
        unchecked: ids of answers that cite records that are not here, so that they cannot be checked.
    """

    def __init__(self, walk: Walk, *, on_blob: Callable[[str, bytes], None] | None = None) -> None:
        self.walk = walk
        self.head: dict[str, Any] = {}
        self.session = ""
        self.lines = self.events = self.bound = 0
        self.records: dict[bytes, int] = {}
        self.blobs: dict[str, int] = {}
        self.closed = False
        self.losses: list[Mapping[str, Any]] = []
        self.outside: dict[str, Placed] = {}
        self.unread: Counter[str] = Counter()
        self.unchecked: list[str] = []
        self._on_blob = on_blob
        self._pieces: dict[str, _Pieces] = {}
        self._blob_places: dict[str, list[int]] = {}
        self._answers: list[tuple[str, Problem]] = []
        self._no_results: dict[str, str] = {}
        self._unresolved: list[tuple[Placed, str, str]] = []
        self._found: list[Event | Sealed] = []
        self._count = 0
        self._story = Story()
        self._continued: Placed | None = None
        self._readers: dict[str, Callable[[Placed, Mapping[str, Any]], None]] = {
            "journal": self._head, "event": self._event, "record": self._record_line, "blob": self._blob,
            "loss": self._loss, "truncated": self._truncated, "closed": self._closed, "opened": self._opened,
            "continued": self._goes_on,
        }  # fmt: skip

    def items(self) -> Generator[Event | Sealed]:
        """Read everything: each record whose id holds and each event that a session writes, in order.

        Raises:
            VerificationError: `journal-version`.
            FailedError: `journal-failed`.
        """
        for placed in self.walk.lines():
            self.lines += 1
            try:
                self._read(placed)
            except (AffidavitError, ValueError) as error:
                if isinstance(error, AffidavitError) and error.code == "journal-version":
                    raise
                words = error.message if isinstance(error, AffidavitError) else str(error)
                self._problem("malformed-line", placed, f"line {placed.line.n}: {words}")
            yield from self._found
            self._found.clear()
        self._resolve()

    def read(self) -> None:
        """Read everything for the report alone.

        Raises:
            AffidavitError: as `items`.
        """
        for _ in self.items():
            pass

    def has(self, evidence_id: str) -> bool:
        """Whether the record of an id was read."""
        return _raw(evidence_id) in self.records

    def status(self) -> Status:
        """How the journal stands, after `read`."""
        if not self.walk.problems:
            return "holds"
        return "torn" if self.walk.torn and len(self.walk.problems) == 1 else "damaged"

    # ---- lines ----

    def _read(self, placed: Placed) -> None:
        content = placed.line.content
        kind = _LINES.get(frozenset(content))
        before, self._continued = self._continued, None
        self.closed = False
        if kind is None:
            raise ValueError(f"{', '.join(content)} together are no line of this version")
        if not self.walk.problems:
            if self.bound:
                raise ValueError("it stands behind the line that says that the bound was reached")
            if before is not None and before.file == placed.file:
                raise ValueError("it stands behind the line that says that another part follows")
            if (placed.number == 1) != (kind == "journal"):
                raise ValueError("the first line of a part is its head, and no other line is one")
        self._readers[kind](placed, content)

    def _head(self, placed: Placed, content: Mapping[str, Any]) -> None:
        reader = Reader(content["journal"], ("journal",))
        check_version(reader.mapping(), placed.file)
        head = reader.object(
            required=("format", "fsync", "part", "product", "session", "subjects", "version")
        )
        head["product"].text()
        head["fsync"].choice(_POLICIES)
        subjects = head["subjects"].items()
        if len(subjects) > _MAX_SUBJECTS:
            raise head["subjects"].refuse(f"at most {_MAX_SUBJECTS} subjects")
        for subject in subjects:
            fields = subject.object(required=("digest",), optional=("format", "name"))
            fields.pop("digest").digest()
            for field_ in fields.values():
                field_.text()
        session = head["session"].text()
        check_name("session", session)
        if head["part"].count() != placed.part:
            raise head["part"].refuse(f"part {placed.part}")
        if not self.session:
            self.head, self.session = content["journal"], session
        elif session != self.session:
            raise ValueError(f"a part of session {session!a} in the journal of {self.session!a}")

    def _event(self, placed: Placed, content: Mapping[str, Any]) -> None:
        fields = Reader(content["event"], ("event",)).object(
            required=("at", "data", "kind", "session"), optional=("evidence", "key", "run")
        )
        about = {name: fields[name].text() for name in ("evidence", "key", "run") if name in fields}
        event = Event(
            kind=fields["kind"].text(), session=fields["session"].text(), data=fields["data"].json,
            at=float(fields["at"].number()), run=about.get("run"), key=about.get("key"),
            evidence_id=about.get("evidence"),
        )  # fmt: skip
        count = Reader(content["count"], ("count",)).count()
        if event.evidence_id is not None:
            fields["evidence"].evidence_id()
        if "adds" in content:
            if event.evidence_id != content["adds"]:
                raise fields.get("evidence", Reader(None, ("event", "evidence"))).refuse(
                    "the id that it adds"
                )
            self._record(placed, content)
        problem = fault(event, "event")
        if problem:
            raise ValueError(problem)
        if self.session and event.session != self.session:
            raise ValueError(f"an event of session {event.session!a} in the journal of {self.session!a}")
        if count != self._count + 1 and not self.walk.problems:
            self._problem("event-missing", placed, f"event {count} follows event {self._count}")
        self._count = max(self._count, count)
        self._look_back(placed, event)
        self.events += 1
        self._found.append(event)

    def _look_back(self, placed: Placed, event: Event) -> None:
        """What an event says of what came before it."""
        kind, message = self._story.tell(event)
        if kind:
            self._miss(placed, kind, message)
        if event.evidence_id is not None and not self.has(event.evidence_id):
            self._miss(
                placed, "record-missing", f"{event.evidence_id}, which is not in the journal before it"
            )
        if event.kind not in KINDS:
            self.unread[event.kind] += 1
        elif event.kind == "unknown-revised":
            revision: dict[str, Any] = event.data["revision"]
            self._rests_on(placed, [*revision["supports"], *revision["contradicts"]])
        for ref in blobs_of(event):
            self._look_for(placed, ref)

    def _record_line(self, placed: Placed, content: Mapping[str, Any]) -> None:
        self._record(placed, content)

    def _record(self, placed: Placed, content: Mapping[str, Any]) -> None:
        evidence_id = Reader(content["adds"], ("adds",)).evidence_id()
        kept = Reader(content["record"], ("record",)).object(required=("body",), optional=("notes",))
        body = canonical(kept["body"].json, max_depth=_DEPTH)
        if body_id(body) != evidence_id:
            raise ValueError(f"the record kept as {evidence_id} has the id {body_id(body)}")
        notes: JsonValue = kept["notes"].json if "notes" in kept else None
        if "notes" in kept and notes is None:
            raise kept["notes"].refuse("notes, or no such member")
        record = open_foreign(body, notes)
        self._references(placed, record)
        self.records[_raw(evidence_id)] = _packed(placed)
        if record.kind == "derivation" and record.operation == ANSWER:
            self._answers.append((evidence_id, _problem_at("false-answer", placed, "")))
        self._found.append(
            Sealed(id=evidence_id, body=body, notes=notes, operation=record.operation, spilled=None)
        )

    def _references(self, placed: Placed, record: Record) -> None:
        ref = record.outcome.result if isinstance(record.outcome, Success) else None
        if isinstance(ref, BlobRef):
            self._look_for(placed, ref)
            if self._no_results.get(ref.digest):
                raise ValueError(f"the blob {ref.digest} is no result: {self._no_results[ref.digest]}")
        self._rests_on(placed, record.parents)

    def _blob(self, placed: Placed, content: Mapping[str, Any]) -> None:
        piece = Reader(content["blob"], ("blob",)).object(required=("at", "data", "digest", "size"))
        digest, at, size = piece["digest"].digest(), piece["at"].count(), piece["size"].count()
        data = _from_base64(piece["data"])
        if at == 0:
            self._pieces[digest] = _Pieces()
        pieces = self._pieces.get(digest)
        if pieces is None or pieces.length != at:
            self._pieces.pop(digest, None)
            if self.walk.problems:
                return  # what stood before it is lost; whoever refers to the blob is told
            raise piece["at"].refuse("the end of the piece before")
        pieces.add(data, _packed(placed))
        if pieces.length < size:
            return
        del self._pieces[digest]
        if pieces.length != size or pieces.digest() != digest:
            raise ValueError(f"the pieces of the blob {digest} have the digest {pieces.digest()}")
        whole = b"".join(pieces.kept)
        self.blobs[digest] = size
        self._blob_places[digest] = pieces.places
        self._no_results[digest] = misspelt(whole)
        if self._on_blob is not None:
            self._on_blob(digest, whole)

    def _loss(self, placed: Placed, content: Mapping[str, Any]) -> None:
        loss = Reader(content["loss"], ("loss",)).object(
            required=("cut", "length", "part", "place"), optional=("digest",)
        )
        cut, length, place = loss["cut"].flag(), loss["length"].count(), loss["place"].count()
        if cut != ("digest" in loss):
            raise loss["cut"].refuse("a digest of what was cut off, and only of that")
        if cut:
            loss["digest"].digest()
        if not length:
            raise loss["length"].refuse("some bytes")
        part = loss["part"].count()
        if not 1 <= part <= placed.part:
            raise loss["part"].refuse("this part or one before")
        if part == placed.part and place + (0 if cut else length) > placed.place:
            raise loss["place"].refuse("a place before this line")
        self.losses.append(content["loss"])

    def _opened(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        opened = Reader(content["opened"], ("opened",)).object(required=("fsync", "product"))
        opened["fsync"].choice(_POLICIES)
        opened["product"].text()

    def _truncated(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        truncated = Reader(content["truncated"], ("truncated",)).object(required=("bound", "count"))
        self._counted(truncated["count"])
        self.bound = truncated["bound"].count()
        if not self.bound:
            raise truncated["bound"].refuse("a bound above 0")

    def _closed(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        self._counted(Reader(content["closed"], ("closed",)).object(required=("count",))["count"])
        self.closed = True

    def _goes_on(self, placed: Placed, content: Mapping[str, Any]) -> None:
        following = Reader(content["continued"], ("continued",)).object(required=("part",))["part"]
        if following.count() != placed.part + 1:
            raise following.refuse(f"part {placed.part + 1}")
        self._continued = placed

    def _counted(self, count: Reader) -> None:
        if count.count() != self._count and not self.walk.problems:
            raise count.refuse(f"{self._count}, the events so far")

    # ---- references ----

    def _rests_on(self, placed: Placed, ids: tuple[str, ...] | list[str]) -> None:
        for evidence_id in ids:
            if not self.has(evidence_id):
                self.outside.setdefault(evidence_id, placed)

    def _look_for(self, placed: Placed, ref: BlobRef) -> None:
        size = self.blobs.get(ref.digest)
        if size is None:
            self._miss(placed, "blob-missing", f"{ref.digest}, which is not in the journal before it")
        elif size != ref.size:
            raise ValueError(f"the blob {ref.digest} has {size} bytes, not {ref.size}")

    def _miss(self, placed: Placed, kind: str, message: str) -> None:
        self._unresolved.append((placed, kind, f"line {placed.line.n} is about {message}"))

    def _resolve(self) -> None:
        """References that nothing answered. Lines that are lost answer for them: then they are not told again.

        A torn end answers for nothing: what a line refers to stands before it.
        """
        explained = bool(self.walk.problems) and not self.walk.torn
        before = len(self.walk.problems)
        if self._continued is not None and self._continued.file == self.walk.last_file and not explained:
            self._problem("missing-part", self._continued, "the part that this line announces is not there")
            self.walk.torn = True  # a writer that is killed between the two leaves it like this
        for placed, kind, message in self._unresolved:
            if not explained:
                self._problem(kind, placed, message)
        self.outside = {it: placed for it, placed in self.outside.items() if not self.has(it)}
        if not explained and len(self.walk.problems) == before:
            self._check_answers()

    def _check_answers(self) -> None:
        """Whether answers say what stands in the records that they cite. A damaged journal cannot tell."""
        lookup = _Lookup(self.walk, self.records, self._blob_places)
        for evidence_id, place in self._answers:
            record = lookup.get(evidence_id)
            if not all(map(self.has, record.parents)):
                self.unchecked.append(evidence_id)
                continue
            self.walk.problems += (
                replace(place, message=it.message) for it in check_answer(evidence_id, record, lookup)
            )

    def _problem(self, kind: str, placed: Placed, message: str) -> None:
        self.walk.problems.append(_problem_at(kind, placed, message))


class _Lookup:
    """The records of a journal that was read, from its files again when they are asked for."""

    def __init__(self, walk: Walk, records: Mapping[bytes, int], blobs: Mapping[str, Sequence[int]]) -> None:
        self._walk = walk
        self._records = records
        self._blobs = blobs

    def get(self, evidence_id: str) -> Record:
        """The record of a whole id."""
        place = self._records.get(_raw(evidence_id))
        if place is None:
            raise NotFoundError("evidence-not-found", f"{evidence_id} is not in the journal")
        kept = self._line(place)["record"]
        return open_foreign(canonical(kept["body"], max_depth=_DEPTH), kept.get("notes"))

    def result(self, record: Record) -> JsonValue:
        """The encoded result of a record."""
        if not isinstance(record.outcome, Success):
            raise NotFoundError(
                "item-not-found", f"this call of {record.operation} did not return, so it has no result"
            )
        ref = record.outcome.result
        if not isinstance(ref, BlobRef):
            return ref
        pieces = [a2b_base64(self._line(place)["blob"]["data"]) for place in self._blobs[ref.digest]]
        return orjson.loads(b"".join(pieces))

    def _line(self, packed: int) -> Mapping[str, Any]:
        part, place = divmod(packed, _PART)
        return self._walk.line_at(part, place).content


@dataclass(slots=True)
class _Pieces:
    """A blob that is being put together."""

    length: int = 0
    kept: list[bytes] = field(default_factory=list[bytes])
    hashed: Any = field(default_factory=sha256)
    places: list[int] = field(default_factory=list[int])

    def add(self, data: bytes, place: int) -> None:
        self.places.append(place)
        self.length += len(data)
        self.hashed.update(data)
        self.kept.append(data)

    def digest(self) -> str:
        return f"sha256:{self.hashed.hexdigest()}"


def _from_base64(reader: Reader) -> bytes:
    text = reader.text()
    try:
        data = a2b_base64(text, strict_mode=True) if text else b""
    except (Base64Error, ValueError):
        raise reader.refuse("base64") from None
    if b2a_base64(data, newline=False).decode() != text:
        raise reader.refuse("base64 without stray bits")
    return data


def _problem_at(kind: str, placed: Placed, message: str) -> Problem:
    return Problem(
        kind=kind,
        file=placed.file,
        line=placed.number,
        place=placed.place,
        length=placed.length,
        message=message,
    )


def _packed(placed: Placed) -> int:
    """Where a line stands, as one number: journals have many lines."""
    return placed.part * _PART + placed.place


def _raw(evidence_id: str) -> bytes:
    return bytes.fromhex(evidence_id[4:])
