"""Words of texts and questions, for any text at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import FailedError, VerificationError
from affidavit.mounts.search.index import TextIndex, add_texts, build_index, create_tables, ranked
from affidavit.mounts.search.terms import MAX_TERMS, expanded, read_question


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        yield connection


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_no_question_is_a_mistake_and_a_text_with_words_finds_itself(text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        add_texts(connection, [(1, text), (2, "unrelated")])
        found = ranked(connection, read_question(text), 5)
        assert found.matched == len(found.hits)
        if any(char.isascii() and char.isalnum() for char in text):
            assert 1 in [number for number, _ in found.hits]


def test_words_inside_identifiers_stand_beside_them() -> None:
    assert expanded("parseHTTPHeader, MAX_RETRY x") == ("parseHTTPHeader, MAX_RETRY x", "parse HTTP Header")
    assert expanded("plain words only") == ("plain words only", "")
    plain, inner = expanded("漢字 and kana かな")
    assert plain.split() == ["and", "kana"]
    assert len(inner.split()) == 4  # two pairs, and the last character of each run


def test_terms_are_shown_as_they_were_meant() -> None:
    assert read_question("read-only getHTTPUrl").terms == (
        "read", "only", "read only", "gethttpurl", "get", "http", "url", "get http url",
    )  # fmt: skip
    assert read_question("東京").terms == ("東京",)
    assert read_question("東京都").terms == ("東京", "京都", "東京都")
    assert len(read_question(" ".join(f"w{n}" for n in range(500))).terms) == MAX_TERMS


def test_equal_scores_come_by_number(database: sqlite3.Connection) -> None:
    add_texts(database, [(number, "the same words") for number in (5, 3, 9, 1)] + [(2, "other")])
    assert [number for number, _ in ranked(database, read_question("words"), 3).hits] == [1, 3, 5]


def test_an_index_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.index"

    def fill(connection: sqlite3.Connection) -> None:
        create_tables(connection)
        raise FailedError("cancelled", "in the middle")

    with pytest.raises(FailedError, match="in the middle"):
        build_index(path, fill)
    assert list(path.parent.iterdir()) == []
    build_index(path, create_tables)
    index = TextIndex(path)
    assert index.search(read_question("x"), 1).hits == ()
    index.close()
    path.write_bytes(path.read_bytes()[:-2000])
    damaged = TextIndex(path)
    with pytest.raises(VerificationError, match="facts-damaged"):
        damaged.search(read_question("x"), 1)
    damaged.close()
