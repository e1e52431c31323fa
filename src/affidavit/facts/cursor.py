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

__all__ = ["binding", "issue_cursor", "read_cursor"]

_FORMAT = b"\x01"
_BOUND = 16
_OFFSET = 8
_CHECK = 4
_SIZE = len(_FORMAT) + _BOUND + _OFFSET + _CHECK


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
    body = _FORMAT + bound[:_BOUND] + offset.to_bytes(_OFFSET, "big")
    return base64.urlsafe_b64encode(body + _check(body)).rstrip(b"=").decode("ascii")


def read_cursor(cursor: object, bound: bytes) -> int:
    """The offset that a cursor stands for.

    Raises:
        UsageError: `cursor-invalid` where this product did not issue it, `cursor-mismatch` where it belongs to
            another snapshot or query.
    """
    body = _body(cursor)
    if body is None:
        raise UsageError(
            "cursor-invalid",
            "the cursor is not one that a page returned",
            hint="pass page.next_cursor unchanged, or leave the cursor out to start at the first row",
        )
    if body[len(_FORMAT) : len(_FORMAT) + _BOUND] != bound[:_BOUND]:
        raise UsageError(
            "cursor-mismatch",
            "the cursor belongs to another snapshot, `where`, collection or contract version",
            hint="repeat the query that returned it with the same `where`, or start again without a cursor",
        )
    return int.from_bytes(body[-_OFFSET:], "big")


def _check(body: bytes) -> bytes:
    return hashlib.sha256(b"affidavit/cursor\n" + body).digest()[:_CHECK]


def _body(cursor: object) -> bytes | None:
    """What the cursor carries, or None for anything that `issue_cursor` does not write."""
    if not isinstance(cursor, str) or not cursor.isascii():
        return None
    text = cursor.encode("ascii")
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    body, check = data[:-_CHECK], data[-_CHECK:]
    # Base64 has several spellings of the same bytes; only the issued one counts.
    spelled = base64.urlsafe_b64encode(data).rstrip(b"=")
    if len(data) != _SIZE or data[: len(_FORMAT)] != _FORMAT or check != _check(body) or spelled != text:
        return None
    return body
