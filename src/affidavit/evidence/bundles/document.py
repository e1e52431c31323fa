"""A bundle: records, what they rest on and their blobs, in one file that anyone can check.

The file is one canonical JSON document (RFC 8785) on one line, without a line end:

| field       | value                                                                                            |
|-------------|--------------------------------------------------------------------------------------------------|
| `affidavit` | `bundle/1`: the format and its version. The file therefore begins `{"affidavit":"bundle/1"`        |
| `answers`   | ids of the records in it that are answers, ascending                                             |
| `blobs`     | object: address (`sha256:` + hex) -> base64 of the bytes. Results kept apart, and scripts         |
| `missing`   | ids that records or unknowns refer to and that are not in it, ascending                          |
| `records`   | `{"body", "id"}` each, ascending by id; `notes` and `notes_digest` where there are words beside    |
| `unknowns`  | revisions of unknowns, ascending by their canonical bytes                                        |
| `whole`     | `sha256:` + hex over the canonical bytes of the document without this field                      |

`body` is the projection that the id is computed over (`identity`); `notes` are messages and hints, which no id covers,
and `notes_digest` is the digest of their canonical bytes. Every list is strictly ascending, so that the same content
always has the same bytes, and nothing stands in it that its records do not call for.

Writing and reading go record by record: neither needs the whole document in memory.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.identity import Sealed
from affidavit.evidence.record import JsonValue

__all__ = [
    "FORMAT",
    "KIND",
    "MAX_ELEMENT_DEPTH",
    "START",
    "VERSION",
    "Bounds",
    "entry",
    "notes_digest",
    "write_bundle",
]

KIND: Final = "bundle"
VERSION: Final = 1
FORMAT: Final = f"{KIND}/{VERSION}"
START: Final = b'{"affidavit":"' + FORMAT.encode() + b'"'
MAX_ELEMENT_DEPTH: Final = 120
"""Levels of one record with its envelope: more than any value that a record may hold needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large a bundle may be that is read.

    Attributes:
        file_bytes: of the whole document, unpacked.
        element_bytes: of one record, blob or revision as it stands in the file.
        records: how many.
    """

    file_bytes: int = 1 << 30
    element_bytes: int = 128 << 20
    records: int = 1_000_000


def write_bundle(
    write: Callable[[bytes], object],
    *,
    answers: Iterable[str],
    blobs: Iterable[tuple[str, bytes]],
    missing: Iterable[str],
    records: Iterable[Sealed],
    unknowns: Iterable[bytes] = (),
) -> str:
    """Write a bundle piece by piece; everything must come in ascending order, each once.

    Args:
        write: takes the next bytes of the file.
        answers: ids of the records that are answers.
        blobs: address and bytes of each blob.
        missing: ids that are referred to and not in the bundle.
        records: the records.
        unknowns: canonical bytes of revisions.

    Returns:
        The digest that `whole` holds: it names this content.
    """
    hashed = sha256()

    def put(data: bytes) -> None:
        hashed.update(data)
        write(data)

    put(START)
    sections: list[tuple[bytes, bytes, bytes, Iterable[bytes]]] = [
        (b"answers", b"[", b"]", map(_quoted, answers)),
        (b"blobs", b"{", b"}", (b'%b:"%b"' % (_quoted(name), _base64(data)) for name, data in blobs)),
        (b"missing", b"[", b"]", map(_quoted, missing)),
        (b"records", b"[", b"]", map(entry, records)),
        (b"unknowns", b"[", b"]", unknowns),
    ]
    for name, opening, closing, items in sections:
        put(b',"%b":%b' % (name, opening))
        for item in _separated(items):
            put(item)
        put(closing)
    hashed.update(b"}")
    whole = "sha256:" + hashed.hexdigest()
    write(b',"whole":"%b"}' % whole.encode())
    return whole


def entry(sealed: Sealed) -> bytes:
    """A record as it stands in a bundle."""
    if sealed.notes is None:
        return b'{"body":%b,"id":"%b"}' % (sealed.body, sealed.id.encode())
    notes = canonical(sealed.notes)
    return b'{"body":%b,"id":"%b","notes":%b,"notes_digest":"%b"}' % (
        sealed.body,
        sealed.id.encode(),
        notes,
        digest(notes).encode(),
    )


def notes_digest(notes: JsonValue) -> str:
    """The digest of the words beside a record."""
    return digest(canonical(notes))


def _separated(items: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for item in items:
        if not first:
            yield b","
        first = False
        yield item


def _quoted(name: str) -> bytes:
    return b'"%b"' % name.encode()  # ids and addresses need no escapes


def _base64(data: bytes) -> bytes:
    return b2a_base64(data, newline=False)
