"""Cursors: opaque places in one query over one snapshot.

A cursor holds the digest of what it belongs to (see `binding`) and an offset, nothing else: it names no path and no
host, and it cannot be taken to another snapshot, selector, order or contract version. It is no secret and no
permission; whoever forges one only asks for another offset of a query that they may make anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from affidavit.errors import UsageError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical
from affidavit.facts.selector import Selector
from affidavit.facts.spec import CollectionSpec

__all__ = ["binding", "invalid_cursor", "issue_cursor", "open_cursor", "read_cursor", "seal_cursor"]

_FORMAT = b"\x01"
_BOUND = 16
_OFFSET = 8
_CHECK = 4
_LONGEST = 1 << 20


def binding(spec: CollectionSpec, parent: str, selector: Selector) -> bytes:
    """Digest (32 bytes) of all that decides which rows a query has and in which order.

    Args:
        spec: the collection; its contract and version count.
        parent: evidence id of the analysis whose facts are asked.
        selector: the normalised `where`.
    """
    question = {
        "contract": spec.contract,
        "version": spec.version,
        "projection": "row",
        "order": "ordinal",
        "parent": parent,
        "where": values.encode(selector.as_json()),
    }
    return hashlib.sha256(canonical(question)).digest()


def issue_cursor(bound: bytes, offset: int) -> str:
    """The cursor of the page that starts at `offset` of the query that `bound` (see `binding`) stands for."""
    return seal_cursor(_FORMAT, bound, offset.to_bytes(_OFFSET, "big"))


def read_cursor(cursor: object, bound: bytes) -> int:
    """The offset that a cursor stands for.

    Raises:
        UsageError: `cursor-invalid` where this product did not issue it, `cursor-mismatch` where it belongs to
            another snapshot or query.
    """
    place = open_cursor(_FORMAT, cursor, bound, belongs="another snapshot, `where`, collection")
    if len(place) != _OFFSET:
        raise invalid_cursor()
    return int.from_bytes(place, "big")


def seal_cursor(form: bytes, bound: bytes, place: bytes) -> str:
    """A cursor: one byte of form, what it belongs to, a place in the bytes of that form, and a check of all.

    Args:
        form: one byte, which tells the kinds of cursors apart.
        bound: digest of what the cursor belongs to; 16 bytes of it count.
        place: the place.
    """
    body = form + bound[:_BOUND] + place
    return base64.urlsafe_b64encode(body + _check(body)).rstrip(b"=").decode("ascii")


def open_cursor(form: bytes, cursor: object, bound: bytes, *, belongs: str) -> bytes:
    """The place in a cursor of this form.

    Args:
        form: as for `seal_cursor`.
        cursor: what the caller gave.
        bound: as for `seal_cursor`.
        belongs: what a cursor of something else belongs to, for the message.

    Raises:
        UsageError: `cursor-invalid` where this product did not issue it, `cursor-mismatch` where it belongs to
            something else.
    """
    body = _body(form, cursor)
    if body is None:
        raise invalid_cursor()
    if body[len(form) : len(form) + _BOUND] != bound[:_BOUND]:
        raise UsageError(
            "cursor-mismatch",
            f"the cursor belongs to {belongs} or contract version",
            hint="repeat the query that returned it with the same `where`, or start again without a cursor",
        )
    return body[len(form) + _BOUND :]


def invalid_cursor() -> UsageError:
    """The error of a cursor that this product did not issue."""
    return UsageError(
        "cursor-invalid",
        "the cursor is not one that a page returned",
        hint="pass page.next_cursor unchanged, or leave the cursor out to start at the first row",
    )


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"affidavit/cursor\n" + body).digest()[:_CHECK]


def _body(form: bytes, cursor: object) -> bytes | None:
    """What the cursor carries, or None for anything that `seal_cursor` does not write."""
    if not isinstance(cursor, str) or not cursor.isascii() or len(cursor) > _LONGEST:
        return None
    text = cursor.encode("ascii")
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    body, check = data[:-_CHECK], data[-_CHECK:]
    # Base64 has several spellings of the same bytes; only the issued one counts.
    spelled = base64.urlsafe_b64encode(data).rstrip(b"=")
    if (
        body[: len(form)] != form
        or len(body) < len(form) + _BOUND
        or check != _check(body)
        or spelled != text
    ):
        return None
    return body
