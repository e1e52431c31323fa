"""Checking a journal with nothing but its files: the chain, ids, digests, references, answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.errors import NotFoundError, VerificationError
from affidavit.evidence.record import JsonValue
from affidavit.store.journal.contents import Contents, Status
from affidavit.store.journal.lines import FORMAT
from affidavit.store.journal.names import parts_of
from affidavit.store.journal.reader import Problem, Walk

__all__ = ["Report", "open_walk", "report", "verify"]

_SHOWN: Final = 20  # missing records that are named


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
        bound: the size bound that it reached, so that later events are not in it; 0 when it did not.
        losses: torn lines that were cut off when it was gone on with, each `place`, `length`, `part`.
        outside: ids of records that something here rests on and that are not here, each with the first line that
            says so (`evidence_id`, `file`, `line`): their writer did not have them, or somebody took them out.
        unread: how many events of each kind that this version does not know: they are kept as they are.
        unchecked: ids of answers that cite records that are not here, so that nobody can check them.
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
    bound: int
    losses: tuple[Mapping[str, JsonValue], ...]
    outside: tuple[Mapping[str, JsonValue], ...]
    unread: Mapping[str, int]
    unchecked: tuple[str, ...]
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
            "truncated": bool(self.bound),
            "bound": self.bound,
            "losses": [dict(it) for it in self.losses],
            "outside": [dict(it) for it in self.outside],
            "unread": dict(self.unread),
            "unchecked": list(self.unchecked),
            "problems": [it.as_json() for it in self.problems],
        }

    def notes(self) -> list[str]:
        """What a reader should know although it holds: what it does not have, and who wrote it."""
        found = [] if self.closed else ["it is not closed: it is being written, or its writer ended early"]
        if self.bound:
            found.append(f"it reached its bound of {self.bound} bytes: later events are not in it")
        if self.unread:
            kinds = ", ".join(self.unread)
            found.append(f"events of kinds that this version does not know are kept as they are: {kinds}")
        found += map(_loss, self.losses)
        found += (
            f"{one['evidence_id']} is not in it, and line {one['line']} of {one['file']} rests on it"
            for one in self.outside[:_SHOWN]
        )
        if len(self.outside) > _SHOWN:
            found.append(f"{len(self.outside) - _SHOWN} more records that others rest on are not in it")
        found += (
            f"the answer {it} was not checked: it cites records that are not in it"
            for it in self.unchecked[:_SHOWN]
        )
        if len(self.unchecked) > _SHOWN:
            found.append(f"{len(self.unchecked) - _SHOWN} more answers were not checked")
        return found


def verify(path: Path) -> Report:
    """Check the journal that a file is a part of. Needs no workspace and changes nothing.

    Raises:
        NotFoundError: `artifact-not-found`: there is no such file.
        VerificationError: `journal-version`: written by a newer version, or no journal.
        FailedError: `journal-failed`: not readable.
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
        VerificationError: `journal-version`: none of it is a journal.
    """
    if not contents.lines and contents.walk.bytes and not contents.walk.torn:
        raise VerificationError(
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
        bound=contents.bound,
        losses=tuple(contents.losses),
        outside=tuple(
            {"evidence_id": it, "file": placed.file, "line": placed.number}
            for it, placed in contents.outside.items()
        ),
        unread=dict(sorted(contents.unread.items())),
        unchecked=tuple(contents.unchecked),
        problems=tuple(contents.walk.problems),
    )


def _loss(loss: Mapping[str, JsonValue]) -> str:
    where = f"{loss['length']} bytes at {loss['place']} of part {loss['part']}"
    return (
        f"a writer was killed once: {where} were lost" if loss["cut"] else f"a writer went on behind {where}"
    )
