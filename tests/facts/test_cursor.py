"""Cursors are opaque, bound, and have one spelling."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.facts.cursor import binding, issue_cursor, read_cursor
from affidavit.facts.selector import Selector

from .samples import THINGS

BOUND = hashlib.sha256(b"query").digest()
offsets = st.integers(0, 2**64 - 1)


def code_of(cursor: object, bound: bytes = BOUND) -> str:
    with pytest.raises(UsageError) as caught:
        read_cursor(cursor, bound)
    return caught.value.code


@given(offsets)
def test_reads_what_it_issued(offset: int) -> None:
    cursor = issue_cursor(BOUND, offset)
    assert re.fullmatch(r"[A-Za-z0-9_-]{39}", cursor)
    assert read_cursor(cursor, BOUND) == offset


@given(offsets, st.binary(min_size=32, max_size=32).filter(lambda bound: bound[:16] != BOUND[:16]))
def test_belongs_to_one_query(offset: int, other: bytes) -> None:
    assert code_of(issue_cursor(other, offset)) == "cursor-mismatch"


@given(offsets, st.integers(0, 38), st.characters(codec="ascii"))
def test_no_changed_character_is_accepted(offset: int, place: int, char: str) -> None:
    cursor = issue_cursor(BOUND, offset)
    changed = cursor[:place] + char + cursor[place + 1 :]
    if changed != cursor:
        assert code_of(changed) == "cursor-invalid"


@given(st.text())
def test_no_text_crashes(text: str) -> None:
    assert code_of(text) == "cursor-invalid"


def test_padding_and_blanks_are_not_accepted() -> None:
    cursor = issue_cursor(BOUND, 7)
    for changed in [cursor + "=", cursor + "\n", " " + cursor, cursor + "A", cursor[:-1], cursor * 2]:
        assert code_of(changed) == "cursor-invalid"


def test_a_later_format_is_not_misread() -> None:
    data = bytearray(base64.urlsafe_b64decode(issue_cursor(BOUND, 7) + "="))
    data[0] = 2
    assert code_of(base64.urlsafe_b64encode(bytes(data)).rstrip(b"=").decode()) == "cursor-invalid"


def test_the_binding_is_the_same_everywhere() -> None:
    selector = Selector(terms=(("kind", ("asset",)), ("path", (None, "\ud800"))))
    assert (
        binding(THINGS, "ev1_0", selector).hex()
        == "708436ae73b52db42b7aaba37da54e7396a1fd02ff011a69013c70cf236db60b"
    )
