"""A journal that was cut anywhere opens, reports, is gone on with and verifies; it costs at most the torn line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.store import Store
from affidavit.store.journal import Journal, JournalSettings, restore, verify
from tests.store.journal.samples import journalled, kept, lines, written
from tests.store.samples import event, record

SEPARATORS = [
    "A\u2028B",
    "tab\tand\\n",
    "\U0001f680",
    "ends with backslash \\",
    "\u0085\u2029\x0b\x0c\x1c\r\n",
]


def whole_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(it) for it in data.split(b"\n")[:-1]]


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """The workspace has one event more than the journal: the one that is added after the tear."""
    path = written(tmp_path, 3)
    good = path.read_bytes()
    settings = JournalSettings(folder=path.parent, fsync="never")
    with Store.open(tmp_path / "w") as store:
        store.append(event(data={"n": "new"}), record=record(100))
        expected = kept(store)
        for at in range(len(good)):
            path.write_bytes(good[:at])
            ends = good[:at].count(b"\n")
            missing_end = good[at : at + 1] == b"\n"  # a line is whole, only its end is not there
            tail = 0 if missing_end else at - (good[:at].rfind(b"\n") + 1)

            before = verify(path)
            assert before.status == ("holds" if at and good[at - 1 : at] == b"\n" else "torn")
            assert before.lines == ends + missing_end
            assert sum(it.length for it in before.problems) == tail

            with Journal.open(store, "s1", settings):
                pass
            after = verify(path)
            assert after.status == "holds", (at, after.problems)
            assert (after.events, after.records, after.closed) == (4, 4, True)
            left = at - (good[:at].rfind(b"\n") + 1)
            assert [(it["place"], it["length"], it["cut"]) for it in after.losses] == (
                [(at - left, left, True)] if left else []
            )
            # No byte that was whole before was touched, and every line is one document.
            data = path.read_bytes()
            assert data.startswith(good[: at - left])
            told = [it["event"]["data"] for it in whole_lines(data) if "event" in it]
            assert told == [it[-1] for it in expected]


def test_a_tear_is_reported_once_and_never_glued(tmp_path: Path) -> None:
    path = written(tmp_path, 5)
    path.write_bytes(path.read_bytes()[:-7])
    for _ in range(3):
        written(tmp_path, 1)
    found = verify(path)
    assert (found.status, found.events, len(found.losses)) == ("holds", 8, 1)


def test_zeros_at_the_end_are_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, 5)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(5000))
    written(tmp_path, 1)
    found = verify(path)
    assert (found.status, found.events) == ("holds", 6)
    assert [(it["place"], it["length"]) for it in found.losses] == [(size, 5000)]


def test_a_damaged_last_line_is_kept_and_gone_on_behind(tmp_path: Path) -> None:
    """It has its end, so no tear left it: it stays for examination, and its event is written again."""
    path = written(tmp_path, 5)
    data = b"".join(lines(path)[:-1])
    path.write_bytes(data[:-140] + b"#" + data[-139:])
    written(tmp_path, 1)
    found = verify(path)
    assert (found.status, found.events, found.records) == ("damaged", 6, 5)
    assert [it.kind for it in found.problems] == ["edited-line"]
    assert [it["cut"] for it in found.losses] == [False]
    assert path.read_bytes().startswith(data[:-140] + b"#")


def test_damage_in_the_middle_does_not_hold_the_journal_up(tmp_path: Path) -> None:
    path = written(tmp_path, 5)
    whole = lines(path)
    path.write_bytes(b"".join([*whole[:2], b"\0" * 500 + b"\n", *whole[3:]]))
    written(tmp_path, 3)
    found = verify(path)
    assert (found.status, found.events, [it.kind for it in found.problems]) == ("damaged", 7, ["zero-filled"])


def test_a_blob_that_was_torn_is_written_again(tmp_path: Path) -> None:
    with journalled(tmp_path) as (store, journal):
        store.append(event(data={"n": 0}), record=record(0))
        store.append(event(data={"n": 1}), record=record(1, ["x" * 1000] * 600))
        path = journal.path
    pieces = [index for index, line in enumerate(lines(path)) if b'"blob":{"at"' in line]
    assert len(pieces) == 4
    whole = lines(path)
    for kept_pieces in range(5):
        path.write_bytes(b"".join(whole[: pieces[0] + kept_pieces]) + whole[pieces[0] + kept_pieces][:100])
        with journalled(tmp_path):
            pass
        found = verify(path)
        assert (found.status, found.events, found.records, found.blobs) == ("holds", 2, 2, 1)
        with Store.open(tmp_path / f"back{kept_pieces}") as store:
            restore(path, store)
            assert len(store.evidence.result(store.evidence.list(1)[0][1])) == 600


@pytest.mark.parametrize("place", ["data", "result", "key"])
def test_text_with_line_ends_of_all_kinds_is_one_line(tmp_path: Path, place: str) -> None:
    with journalled(tmp_path) as (store, journal):
        for number, text in enumerate(SEPARATORS):
            data = {"n": number, "text": text} if place == "data" else {"n": number}
            data |= {text: 1} if place == "key" else {}
            store.append(
                event(data=data), record=record(number, {"text": text} if place == "result" else None)
            )
        told = kept(store)
    raw = lines(journal.path)
    assert len(raw) == len(SEPARATORS) + 2
    assert verify(journal.path).status == "holds"
    with Store.open(tmp_path / "back") as store:
        restore(journal.path, store)
        assert kept(store) == told
        if place == "result":
            results = [store.evidence.result(it)["text"] for _, it in store.evidence.list()]
            assert results[::-1] == SEPARATORS
