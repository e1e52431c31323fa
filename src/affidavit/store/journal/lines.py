r"""One line of a journal: how it is written, chained and read.

```
{"n":12,"prev":"<64 hex>",  ...content...  ,"sum":"<64 hex>"}\n
```

`n` counts lines from 0 through all parts. `sum` is the SHA-256 of the line's bytes before `,"sum":`; `prev` is the
`sum` of the line before (64 zeros in the first). A line can be checked alone, and its place in the chain by its
neighbours. The content is one JSON object in canonical form (RFC 8785) without its braces; so a line has no line end
inside, and exactly one spelling. What it may hold:

| content                                    | says                                                                  |
|--------------------------------------------|-----------------------------------------------------------------------|
| `journal`                                  | head of a part: format, version, session, subjects, policy, part      |
| `count`, `event`                           | an event; `count` is its place among the events of the session, from 1 |
| `adds`, `count`, `event`, `record`         | an event and the record that it is about, seen first                  |
| `adds`, `record`                           | a record that a later line refers to and that no event here is about  |
| `blob`                                     | a piece of a blob, base64: `{"at", "data", "digest", "size"}`         |
| `loss`                                     | bytes that a killed writer left, cut off: `{"cut", "length", "place"}` |
| `continued`                                | the journal goes on in the next part; the last line of this one       |
| `truncated`                                | the size bound was reached; nothing follows                           |
| `opened`                                   | a writer with another policy or version than the head's goes on       |
| `closed`                                   | a writer closed the journal                                           |

`record` is `{"body": projection, "notes"?: words beside it}`; `adds` is its id.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, cast

import orjson

from affidavit.errors import AffidavitError, VerificationError
from affidavit.evidence.canonical import MAX_DOCUMENT_DEPTH, canonical
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue
from affidavit.store.events import Event, StoredEvent

__all__ = [
    "FORMAT", "GENESIS", "HEAD", "TAIL_BYTES", "VERSION", "Line", "blob_length", "blob_payloads", "check_version",
    "event_payload", "make", "payload", "read_line", "record_payload", "refuse_newer", "sum_holds", "tells",
]  # fmt: skip

FORMAT: Final = "affidavit-journal"
VERSION: Final = 1
GENESIS: Final = "0" * 64
CHUNK: Final = 192 << 10
"""Bytes of a blob in one line; a multiple of three, so that pieces have no padding inside."""

HEAD: Final = re.compile(
    rb'\{"n":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",'
    rb'(?:"adds":"(ev1_[0-9a-f]{64})",)?(?:"count":([0-9]{1,15}),)?"([a-z]{1,16})":'
)
"""How every line begins: number, sum before, id of the record in it, count of the event in it, first other field."""
TAIL_BYTES: Final = 74
_TAIL: Final = re.compile(rb',"sum":"([0-9a-f]{64})"\}')
_LINE_OVERHEAD: Final = 320  # more than any line has around a piece of a blob
_DEPTH: Final = MAX_DOCUMENT_DEPTH + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line whose sum and spelling hold.

    Attributes:
        n: its number.
        prev: the sum of the line before, as this line has it.
        sum: its own sum.
        content: everything between, as JSON.
    """

    n: int
    prev: str
    sum: str
    content: Mapping[str, Any]


def make(n: int, prev: str, content: bytes) -> tuple[bytes, str]:
    """The bytes of a line, its line end included, and its sum. `content` is canonical JSON without braces."""
    start = b'{"n":%d,"prev":"%b",%b' % (n, prev.encode(), content)
    mark = sha256(start).hexdigest()
    return b'%b,"sum":"%b"}\n' % (start, mark.encode()), mark


def payload(content: Mapping[str, JsonValue]) -> bytes:
    """Content of a line as canonical bytes without braces."""
    return canonical(dict(content), max_depth=_DEPTH)[1:-1]


def event_payload(
    event: Event, data: bytes, count: int, evidence_id: str | None, sealed: Sealed | None
) -> bytes:
    """Content for an event whose `data` is canonical bytes already, with the record that it brings, if any.

    The members are put together by hand: a serialiser takes two and a half times as long, for every event.
    """
    at = event.at
    # In this range orjson spells numbers as RFC 8785 does.
    time = orjson.dumps(at) if 1e-3 <= at < 1e15 and not float(at).is_integer() else canonical(at)
    content = b'"count":%d,"event":{"at":%b,"data":%b%b%b,"kind":%b%b,"session":%b}' % (
        count, time, data,
        b"" if evidence_id is None else b',"evidence":"%b"' % evidence_id.encode(),
        b"" if event.key is None else b',"key":%b' % orjson.dumps(event.key),
        orjson.dumps(event.kind),
        b"" if event.run is None else b',"run":%b' % orjson.dumps(event.run),
        orjson.dumps(event.session),
    )  # fmt: skip
    if sealed is None:
        return content
    return b'"adds":"%b",%b,"record":%b' % (sealed.id.encode(), content, _record(sealed))


def record_payload(sealed: Sealed) -> bytes:
    """Content for a record that no event of the session is about."""
    return b'"adds":"%b","record":%b' % (sealed.id.encode(), _record(sealed))


def blob_payloads(digest: str, data: bytes) -> Iterator[bytes]:
    """Contents for the pieces of a blob."""
    for at in range(0, max(len(data), 1), CHUNK):
        piece = b2a_base64(data[at : at + CHUNK], newline=False)
        yield b'"blob":{"at":%d,"data":"%b","digest":"%b","size":%d}' % (
            at,
            piece,
            digest.encode(),
            len(data),
        )


def blob_length(size: int) -> int:
    """No fewer bytes than the lines of a blob of this size take."""
    pieces = size // CHUNK + 1
    return size // 3 * 4 + 4 + pieces * _LINE_OVERHEAD


def sum_holds(raw: bytes) -> str | None:
    """The sum of a line (without its line end) whose bytes have it, else None."""
    match = _TAIL.fullmatch(raw, len(raw) - TAIL_BYTES) if len(raw) > TAIL_BYTES else None
    if match is None or sha256(raw[:-TAIL_BYTES]).hexdigest().encode() != match[1]:
        return None
    return match[1].decode()


def read_line(raw: bytes) -> Line | None:
    """The line of these bytes (without its line end), or None when they are not exactly a line."""
    head = HEAD.match(raw)
    mark = sum_holds(raw)
    if head is None or mark is None:
        return None
    start = len(b'{"n":,"prev":"",') + len(head[1]) + 64
    try:
        content = b"{" + raw[start:-TAIL_BYTES] + b"}"
        json = orjson.loads(content)
        # One spelling: no repeated keys, no spaces, nothing that two readers could read as two things.
        if canonical(json, max_depth=_DEPTH) != content:
            return None
    except (orjson.JSONDecodeError, AffidavitError):
        return None
    return Line(n=int(head[1]), prev=head[2].decode(), sum=mark, content=json)


def tells(line: Line, event: StoredEvent) -> bool:
    """Whether a line of the journal and an event of the log tell the same."""
    found = line.content["event"]
    names = (("kind", event.kind), ("at", event.at), ("run", event.run), ("key", event.key))
    return found.get("evidence") == event.evidence_id and all(found.get(name) == own for name, own in names)


def check_version(head: Mapping[str, Any], name: str) -> None:
    """See that the head of a part is of a format and version that this product reads.

    Raises:
        VerificationError: `journal-version`.
    """
    known, version = head.get("format"), head.get("version")
    if known != FORMAT or type(version) is not int or not 1 <= version <= VERSION:
        raise VerificationError(
            "journal-version",
            f"{name} is of format {known!a} version {version!a}; this affidavit knows {FORMAT} version {VERSION}",
            hint="use a newer affidavit for this file",
            details={"format": known, "found": version, "supported": VERSION},
        )


def refuse_newer(raw: bytes, name: str) -> None:
    """Look whether a first line that is none of ours is the head of another version.

    Whatever else another version does, its head ends with its `sum`; where that does not hold, the head was changed.

    Raises:
        VerificationError: `journal-version`.
    """
    if sum_holds(raw) is None:
        return
    try:
        found: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return
    head: Any = cast("dict[str, Any]", found).get("journal") if isinstance(found, dict) else None
    if isinstance(head, dict) and "format" in head and "version" in head:
        check_version(cast("dict[str, Any]", head), name)


def _record(sealed: Sealed) -> bytes:
    if sealed.notes is None:
        return b'{"body":%b}' % sealed.body
    return b'{"body":%b,"notes":%b}' % (sealed.body, canonical(sealed.notes))
