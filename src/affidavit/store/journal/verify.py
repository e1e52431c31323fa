"""Checking a journal with nothing but its files: the chain, each record's id, each blob's digest, each reference."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from affidavit.errors import AffidavitError, FailedError, NotFoundError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.identity import Sealed, body_id, open_sealed
from affidavit.evidence.record import BlobRef, JsonValue, Record, Success
from affidavit.store.events import Event, prepare
from affidavit.store.journal.lines import FORMAT, check_version
from affidavit.store.journal.names import parts_of
from affidavit.store.journal.reader import Placed, Problem, Walk

__all__ = ["Contents", "Report", "Status", "open_walk", "report", "verify"]

Status: TypeAlias = Literal["holds", "torn", "damaged"]

_LATEST: Final = 253_402_300_800  # the year 10,000: beyond what dates can say
_DEPTH: Final = 204
_NOTES: Final = 100  # things of a kind that a report lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a journal holds, and whether it holds.

    Attributes:
        status: `holds`; `torn`: only its end is missing, as a killed writer leaves it; `damaged`.
        session: the session's id, or empty where no head is readable.
        head: the head of its first readable part.
        parts: names of the files, in order.
        size: bytes of all parts.
        lines: whole lines.
        events: events, `records` and `blobs` likewise.
        closed: whether its last line is a closing line: nothing was written after it.
        truncated: whether it reached its size bound: later events are not in it.
        losses: torn lines that were cut off when it was gone on with, each `place`, `length`, `part`.
        outside: ids of records that records here rest on and that are not here; their writer did not have them.
        problems: what does not hold, in order.
    """

    status: Status
    session: str
    head: Mapping[str, JsonValue]
    parts: tuple[str, ...]
    size: int
    lines: int
    events: int
    records: int
    blobs: int
    closed: bool
    truncated: bool
    losses: tuple[Mapping[str, JsonValue], ...]
    outside: tuple[str, ...]
    problems: tuple[Problem, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit journal verify --json`."""
        return {
            "status": self.status,
            "format": FORMAT,
            "version": self.head.get("version"),
            "session": self.session,
            "product": self.head.get("product"),
            "fsync": self.head.get("fsync"),
            "subjects": self.head.get("subjects", []),
            "parts": list(self.parts),
            "size": self.size,
            "lines": self.lines,
            "events": self.events,
            "records": self.records,
            "blobs": self.blobs,
            "closed": self.closed,
            "truncated": self.truncated,
            "losses": [dict(it) for it in self.losses],
            "outside": list(self.outside),
            "problems": [it.as_json() for it in self.problems],
        }


class Contents:
    """Takes the whole lines of a journal one by one and gives out what they hold.

    Args:
        walk: where the lines come from; problems with what they hold are added to its own.
        on_blob: told of each blob whose digest holds; without it blobs are hashed and not kept.
    """

    def __init__(self, walk: Walk, *, on_blob: Callable[[str, bytes], None] | None = None) -> None:
        self.walk = walk
        self.head: dict[str, Any] = {}
        self.session = ""
        self.lines = self.events = 0
        self.records: set[bytes] = set()
        self.blobs: set[str] = set()
        self.closed = self.truncated = False
        self._continued: Placed | None = None
        self.losses: list[Mapping[str, Any]] = []
        self.outside: dict[str, None] = {}
        self._on_blob = on_blob
        self._pieces: dict[str, _Pieces] = {}
        self._unresolved: list[tuple[Placed, str, str]] = []
        self._found: list[Event | Sealed] = []
        self._parents: dict[str, None] = {}
        self._count = 0

    def items(self) -> Generator[Event | Sealed]:
        """Read everything: each record whose id holds and each event that is well-formed, in order.

        Raises:
            FailedError: `journal-version`, `journal-failed`.
        """
        readers = {
            "journal": self._head, "event": self._event, "record": self._record_line, "blob": self._blob,
            "loss": self._loss, "truncated": self._truncated, "closed": self._closed, "opened": _ignored,
            "continued": self._goes_on,
        }  # fmt: skip
        for placed in self.walk.lines():
            self.lines += 1
            content = placed.line.content
            self.closed = False
            self._continued = None
            reader = next((readers[key] for key in readers if key in content), None)
            try:
                if reader is None:
                    raise ValueError("what it holds is unknown to this version")
                reader(placed, content)
            except (AffidavitError, LookupError, TypeError, ValueError) as error:
                if isinstance(error, FailedError):
                    raise
                words = (
                    error.message if isinstance(error, AffidavitError) else str(error) or type(error).__name__
                )
                self._problem("malformed-line", placed, f"line {placed.line.n}: {words}")
            yield from self._found
            self._found.clear()
        self._resolve()

    def read(self) -> None:
        """Read everything for the report alone.

        Raises:
            FailedError: as `items`.
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

    # ---- lines by kind ----

    def _head(self, placed: Placed, content: Mapping[str, Any]) -> None:
        head = content["journal"]
        check_version(head, placed.file)
        if not self.session:
            self.head, self.session = head, head["session"]
        elif head["session"] != self.session:
            raise ValueError(f"a part of session {head['session']!a} in the journal of {self.session!a}")

    def _event(self, placed: Placed, content: Mapping[str, Any]) -> None:
        if "adds" in content:
            self._record(placed, content)
        found = content["event"]
        _check_shape(found)
        event = Event(
            kind=found["kind"], session=found["session"], data=found["data"], at=float(found["at"]),
            run=found.get("run"), key=found.get("key"), evidence_id=found.get("evidence"),
        )  # fmt: skip
        prepare(event)
        if self.session and event.session != self.session:
            raise ValueError(f"an event of session {event.session!a} in the journal of {self.session!a}")
        if event.evidence_id is not None and _raw(event.evidence_id) not in self.records:
            message = (
                f"line {placed.line.n} is about {event.evidence_id}, which is not in the journal before it"
            )
            self._unresolved.append((placed, "record-missing", message))
        count = content["count"]
        if count != self._count + 1 and not self.walk.problems:
            self._problem("event-missing", placed, f"event {count} follows event {self._count}")
        self._count = max(self._count, count)
        self.events += 1
        self._found.append(event)

    def _record_line(self, placed: Placed, content: Mapping[str, Any]) -> None:
        self._record(placed, content)

    def _record(self, placed: Placed, content: Mapping[str, Any]) -> None:
        evidence_id, kept = content["adds"], content["record"]
        body = canonical(kept["body"], max_depth=_DEPTH)
        if body_id(body) != evidence_id:
            raise ValueError(f"the record kept as {evidence_id} has the id {body_id(body)}")
        notes = kept.get("notes")
        record = open_sealed(body, notes)
        self._references(placed, record)
        self.records.add(_raw(evidence_id))
        self._found.append(
            Sealed(id=evidence_id, body=body, notes=notes, operation=record.operation, spilled=None)
        )

    def _references(self, placed: Placed, record: Record) -> None:
        ref = record.outcome.result if isinstance(record.outcome, Success) else None
        if isinstance(ref, BlobRef) and ref.digest not in self.blobs:
            message = (
                f"line {placed.line.n} has a record whose result {ref.digest} is not in the journal before it"
            )
            self._unresolved.append((placed, "blob-missing", message))
        for parent in record.parents:
            if _raw(parent) not in self.records:
                self._parents[parent] = None

    def _blob(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        piece = content["blob"]
        digest, at, size = piece["digest"], piece["at"], piece["size"]
        try:
            data = a2b_base64(piece["data"], strict_mode=True) if piece["data"] else b""
        except Base64Error as error:
            raise ValueError(f"a piece of {digest}: {error}") from None
        if at == 0:
            self._pieces[digest] = _Pieces(keep=self._on_blob is not None)
        pieces = self._pieces.get(digest)
        if pieces is None or pieces.length != at:
            self._pieces.pop(digest, None)
            return  # what stood before it is lost; whoever refers to the blob is told
        pieces.add(data)
        if pieces.length < size:
            return
        del self._pieces[digest]
        if pieces.length != size or pieces.digest() != digest:
            raise ValueError(f"the pieces of the blob {digest} have the digest {pieces.digest()}")
        self.blobs.add(digest)
        if self._on_blob is not None:
            self._on_blob(digest, b"".join(pieces.kept))

    def _loss(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        self.losses.append(content["loss"])

    def _truncated(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        self.truncated = bool(content["truncated"])

    def _closed(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del placed
        self.closed = "count" in content["closed"]

    def _goes_on(self, placed: Placed, content: Mapping[str, Any]) -> None:
        del content
        self._continued = placed

    # ---- after the last line ----

    def _resolve(self) -> None:
        """References that nothing answered. Lines that are lost answer for them: then they are not told again."""
        explained = bool(self.walk.problems)
        if self._continued is not None and self._continued.file == self.walk.last_file and not explained:
            self._problem("missing-part", self._continued, "the part that this line announces is not there")
            self.walk.torn = True  # a writer that is killed between the two leaves it like this
        for placed, kind, message in self._unresolved:
            if not explained:
                self._problem(kind, placed, message)
        self.outside = {it: None for it in self._parents if _raw(it) not in self.records}

    def _problem(self, kind: str, placed: Placed, message: str) -> None:
        self.walk.problems.append(
            Problem(
                kind=kind,
                file=placed.file,
                line=placed.number,
                place=placed.place,
                length=placed.length,
                message=message,
            )
        )


@dataclass(slots=True)
class _Pieces:
    """A blob that is being put together."""

    keep: bool
    length: int = 0
    kept: list[bytes] = field(default_factory=list[bytes])
    hashed: Any = field(default_factory=sha256)

    def add(self, data: bytes) -> None:
        self.length += len(data)
        self.hashed.update(data)
        if self.keep:
            self.kept.append(data)

    def digest(self) -> str:
        return f"sha256:{self.hashed.hexdigest()}"


def verify(path: Path) -> Report:
    """Check the journal that a file is a part of. Needs no workspace and changes nothing.

    Raises:
        NotFoundError: `artifact-not-found`: there is no such file.
        FailedError: `journal-version`: written by a newer version, or no journal; `journal-failed`: not readable.
    """
    contents = Contents(open_walk(path))
    contents.read()
    return report(contents, path)


def open_walk(path: Path) -> Walk:
    """The walk over the parts of the journal that a file belongs to.

    Raises:
        NotFoundError: `artifact-not-found`.
    """
    if not path.is_file():
        raise NotFoundError("artifact-not-found", f"no file {path}", hint="check the path")
    return Walk(parts_of(path))


def report(contents: Contents, path: Path) -> Report:
    """What was found in a journal that was read.

    Raises:
        FailedError: `journal-version`: none of it is a journal.
    """
    if not contents.lines and contents.walk.bytes and not contents.walk.torn:
        raise FailedError(
            "journal-version",
            f"{path} has no line of a journal",
            hint="name a file that `--journal` wrote",
            details={"path": str(path)},
        )
    return Report(
        status=contents.status(),
        session=contents.session,
        head=contents.head,
        parts=tuple(it.name for it in parts_of(path).values()),
        size=contents.walk.bytes,
        lines=contents.lines,
        events=contents.events,
        records=len(contents.records),
        blobs=len(contents.blobs),
        closed=contents.closed,
        truncated=contents.truncated,
        losses=tuple(contents.losses),
        outside=tuple(contents.outside)[:_NOTES],
        problems=tuple(contents.walk.problems),
    )


def _raw(evidence_id: str) -> bytes:
    return bytes.fromhex(evidence_id[4:])


def _ignored(placed: Placed, content: Mapping[str, Any]) -> None:
    """A line that is for people."""


def _check_shape(found: Mapping[str, Any]) -> None:
    """Refuse an event that no session writes: whoever can rewrite a chain can put anything there."""
    for name in ("run", "key", "evidence"):
        if not isinstance(found.get(name), str | None):
            raise ValueError(f"the {name} of an event is text, not {type(found[name]).__name__}")
    at = found["at"]
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < _LATEST:
        raise ValueError("the time of an event is in seconds since the epoch")
    if not isinstance(found["data"], dict):
        raise ValueError(f"the data of an event is an object, not {type(found['data']).__name__}")
