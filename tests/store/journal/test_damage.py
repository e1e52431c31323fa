"""Every kind of damage is told apart and located, and hides nothing around it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import NotFoundError, VerificationError
from affidavit.store import Store
from affidavit.store.journal import Report, verify
from affidavit.store.journal.names import parts_of
from tests.store.journal.samples import journalled, lines, written
from tests.store.samples import event, record

EVENTS = 6


def damaged(tmp_path: Path, change: Callable[[list[bytes]], list[bytes] | bytes]) -> Report:
    """The report of a journal of six events after a change; its lines are the head, the events and the end."""
    path = written(tmp_path / f"d{len(list(tmp_path.iterdir()))}", EVENTS)
    changed = change(lines(path))
    path.write_bytes(changed if isinstance(changed, bytes) else b"".join(changed))
    return verify(path)


def only(report: Report) -> tuple[str, int, int, int]:
    [problem] = report.problems
    assert problem.message
    return problem.kind, problem.line, problem.place, problem.length


def verified(path: Path) -> Report | None:
    """The report, or None when none of it is a journal."""
    try:
        return verify(path)
    except VerificationError:
        return None


def size(found: list[bytes], upto: int) -> int:
    return sum(map(len, found[:upto]))


def test_an_untouched_journal_holds(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: it)
    assert (found.status, found.problems, found.events, found.records, found.closed) == (
        "holds",
        (),
        6,
        6,
        True,
    )


def test_a_torn_tail_is_one_loss_with_its_place(tmp_path: Path) -> None:
    whole = lines(written(tmp_path / "a"))
    found = damaged(tmp_path, lambda it: b"".join(it)[:-7])
    assert found.status == "torn"
    assert only(found) == ("torn-tail", 8, size(whole, 7), len(whole[7]) - 7)
    assert (found.events, found.records) == (6, 6)


def test_a_missing_last_line_end_costs_nothing(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: b"".join(it)[:-1])
    assert found.status == "torn"
    assert only(found)[0] == "torn-tail"
    assert (found.lines, found.events, found.closed) == (8, 6, True)


@pytest.mark.parametrize("zeroed", [0, 20])
def test_zeros_at_the_end(tmp_path: Path, zeroed: int) -> None:
    def change(it: list[bytes]) -> bytes:
        data = b"".join(it)
        return data[: len(data) - zeroed] + bytes(zeroed or 4096)

    found = damaged(tmp_path, change)
    assert found.status == "torn"
    assert only(found)[0] == "zero-filled-tail"
    assert found.records == 6


def test_zeros_in_the_middle(tmp_path: Path) -> None:
    whole = lines(written(tmp_path / "a"))
    start = size(whole, 3) + 100

    def change(it: list[bytes]) -> bytes:
        data = b"".join(it)
        return data[:start] + bytes(800) + data[start + 800 :]

    found = damaged(tmp_path, change)
    assert found.status == "damaged"
    assert only(found) == ("zero-filled", 4, start, 800)
    assert (found.events, found.records) == (4, 4)


def test_a_removed_line(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: it[:3] + it[5:])
    assert only(found)[:2] == ("removed-lines", 4)
    assert "3 to 4" in found.problems[0].message
    assert (found.status, found.events) == ("damaged", 4)


def test_a_removed_head(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: it[1:])
    assert only(found)[:2] == ("removed-lines", 1)
    assert found.records == 6


def test_a_moved_line(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], it[4], it[3], *it[5:]])
    assert only(found)[:2] == ("reordered-line", 5)
    assert (found.status, found.events, found.records) == ("damaged", 6, 6)


def test_a_duplicated_line(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:4], it[3], *it[4:]])
    assert only(found)[:2] == ("duplicated-line", 5)
    assert (found.status, found.events) == ("damaged", 6)


def test_an_edited_line(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], it[3].replace(b"true", b"null"), *it[4:]])
    assert only(found)[:2] == ("edited-line", 4)
    assert (found.status, found.events, found.records) == ("damaged", 5, 5)


def resummed(line: bytes) -> bytes:
    start = line[:-75]
    return start + b',"sum":"' + sha256(start).hexdigest().encode() + b'"}\n'


def test_an_edited_line_with_a_new_sum_breaks_the_chain(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], resummed(it[3].replace(b'"n":2', b'"n":9')), *it[4:]])
    assert only(found)[:2] == ("chain-broken", 5)
    assert found.status == "damaged"


def rechained(it: list[bytes], edit: Callable[[bytes], bytes]) -> list[bytes]:
    """The lines with the fourth edited, and every sum and link behind it made anew."""
    out, mark = it[:3], b""
    for line in [edit(it[3]), *it[4:]]:
        start = line[:-75]
        if mark:
            head = start.index(b'"prev":"') + 8
            start = start[:head] + mark + start[head + 64 :]
        mark = sha256(start).hexdigest().encode()
        out.append(start + b',"sum":"' + mark + b'"}\n')
    return out


@pytest.mark.parametrize(
    ("wanted", "put"),
    [(rb'"at":[0-9.]+', b'"at":1e+300'), (rb'"kind":', b'"key":5,"kind":')],
    ids=["at", "key"],
)
def test_an_event_that_no_session_writes_is_located_though_the_chain_holds(
    tmp_path: Path, wanted: bytes, put: bytes
) -> None:
    def edit(line: bytes) -> bytes:
        edited, count = re.subn(wanted, put, line, count=1)
        assert count == 1
        return edited

    found = damaged(tmp_path, lambda it: rechained(it, edit))
    assert found.problems[0].kind == "malformed-line"
    assert (found.problems[0].line, found.status, found.events) == (4, "damaged", 5)


def test_a_changed_record_with_new_sums_to_the_end_has_another_id(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: rechained(it, lambda line: line.replace(b"true", b"null")))
    assert only(found)[:2] == ("malformed-line", 4)
    assert "has the id ev1_" in found.problems[0].message
    assert (found.events, found.records) == (5, 5)


def test_glued_lines(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], it[3][:-1], *it[4:]])
    assert only(found)[:2] == ("glued-lines", 4)
    assert (found.status, found.events) == ("damaged", 6)


def test_a_line_glued_to_a_torn_one(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], it[3][:-40], *it[4:]])
    assert only(found)[:2] == ("glued-lines", 4)
    assert "of a torn line" in found.problems[0].message
    assert (found.status, found.events, found.records) == ("damaged", 5, 5)


def test_a_byte_order_mark(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: b"\xef\xbb\xbf" + b"".join(it))
    assert only(found) == ("byte-order-mark", 1, 0, 3)
    assert (found.status, found.session, found.events) == ("damaged", "s1", 6)


def test_converted_line_ends(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: b"".join(it).replace(b"\n", b"\r\n"))
    assert only(found)[0] == "line-ends"
    assert (found.status, found.events, found.records) == ("damaged", 6, 6)


@pytest.mark.parametrize("extra", [b"\n", b"\xff\xfe\n", b"{}\n", b"null\n"])
def test_an_empty_line_and_foreign_bytes(tmp_path: Path, extra: bytes) -> None:
    found = damaged(tmp_path, lambda it: [*it[:3], extra, *it[3:]])
    assert only(found)[:2] == ("damaged-line", 4)
    assert found.events == 6


def test_another_spelling_of_the_same_content(tmp_path: Path) -> None:
    """Two readers must never read two things: repeated keys, spaces and escapes are not a line."""
    for old, new in (
        (b'"data":{"n":2}', b'"data":{"n":9,"n":2}'), (b'"data":{"n":2}', b'"data":{"n": 2}'),
        (b'"kind":"n', b'"kind":"\\u006e'), (b'"n":2}', b'"n":2.0}'),
    ):  # fmt: skip

        def change(it: list[bytes], old: bytes = old, new: bytes = new) -> list[bytes]:
            assert old in it[3]
            return [*it[:3], resummed(it[3].replace(old, new)), *it[4:]]

        found = damaged(tmp_path, change)
        assert found.status == "damaged"
        assert found.problems[0].line == 4
        assert found.events == 5


def test_an_event_whose_record_is_not_there(tmp_path: Path) -> None:
    def change(it: list[bytes]) -> list[bytes]:
        content = json.loads(it[-2])
        del content["adds"], content["record"]
        text = json.dumps(content, separators=(",", ":")).encode() + b"\n"
        return [*it[:-2], resummed(text)]

    found = damaged(tmp_path, change)
    assert only(found)[:2] == ("record-missing", 7)


def test_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path)
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    newer = data[:first].replace(b'"version":1}', b'"version":2}')
    other = b'{"journal":{"format":"affidavit-journal","version":7},"more":0'
    for head in (resummed(newer), other + b',"sum":"' + sha256(other).hexdigest().encode() + b'"}\n'):
        path.write_bytes(head + data[first:])
        for use in (lambda: verify(path), lambda: written(tmp_path)):
            with pytest.raises(VerificationError, match=r"affidavit-journal. version") as caught:
                use()
            assert caught.value.code == "journal-version"
        assert path.read_bytes() == head + data[first:]


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for text in ('{"a":1}\n{"b":2}\n', "hello", "\n"):
        path.write_text(text)
        with pytest.raises(VerificationError) as caught:
            verify(path)
        assert caught.value.code == "journal-version"
    with pytest.raises(NotFoundError):
        verify(tmp_path / "absent.jsonl")
    path.write_bytes(b"")
    assert verify(path).status == "torn"


def parts(tmp_path: Path) -> dict[int, Path]:
    found = parts_of(written(tmp_path, 250, part_bytes=64 << 10))
    assert len(found) >= 3
    return found


def test_a_missing_part(tmp_path: Path) -> None:
    found = parts(tmp_path)
    found[2].unlink()
    report = verify(found[1])
    assert only(report)[0] == "missing-part"
    assert "part 2" in report.problems[0].message
    assert (report.status, report.events > 20) == ("damaged", True)
    found[1].unlink()
    assert [it.kind for it in verify(found[3]).problems] == ["missing-part"]


def test_a_missing_last_part_is_announced_by_the_one_before(tmp_path: Path) -> None:
    found = parts(tmp_path)
    found[len(found)].unlink()
    report = verify(found[1])
    assert only(report)[0] == "missing-part"
    assert report.status == "torn"
    # Killed right after the announcement, before or within the head: the journal goes on all the same.
    for begin in (b"", b'{"n":'):
        found[len(found)].write_bytes(begin)
        assert verify(found[1]).status == ("torn" if begin else "holds")
    written(tmp_path, 1, part_bytes=64 << 10)
    assert verify(found[1]).status == "holds"
    assert verify(found[1]).events == 251


def test_a_truncated_part(tmp_path: Path) -> None:
    found = parts(tmp_path)
    data = found[1].read_bytes()
    found[1].write_bytes(data[:-300])
    report = verify(found[1])
    assert report.status == "damaged"
    assert {it.kind for it in report.problems} >= {"truncated-part"}
    assert {it.file for it in report.problems} == {found[1].name}
    # Cut at a line end: only the chain tells.
    found[1].write_bytes(data[: data[:-1].rindex(b"\n") + 1])
    report = verify(found[1])
    assert report.status == "damaged"
    assert [it.kind for it in report.problems] == ["removed-lines"]


def test_records_of_two_megabytes_and_lines_longer_than_a_block(tmp_path: Path) -> None:
    big = "\u2028" * 700_000
    with journalled(tmp_path) as (store, journal):
        store.append(event(data={"text": big}), record=record(1, big))
        store.append(event(data={"n": 2}))
    found = verify(journal.path)
    assert (found.status, found.events, found.blobs) == ("holds", 2, 1)
    assert max(map(len, lines(journal.path))) > 2 << 20
    data = journal.path.read_bytes()
    middle = data.index(b'"text":') + (1 << 20)
    journal.path.write_bytes(data[:middle] + b"x" + data[middle + 1 :])
    assert only(verify(journal.path))[0] == "edited-line"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A journal of four events, and its bytes when it was sound."""
    path = written(tmp_path_factory.mktemp("sound"), 4)
    return path, path.read_bytes()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_found(data: st.DataObject, sound: tuple[Path, bytes]) -> None:
    path, good = sound
    at = data.draw(st.integers(0, len(good) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda it: it != good[at]))
    path.write_bytes(good[:at] + bytes([other]) + good[at + 1 :])
    report = verified(path)
    if report is not None:
        assert report.status != "holds"
        assert report.problems[0].file == path.name
        assert report.problems[0].place <= at
        assert report.records >= 3


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_damage_crashes_the_reader(seed: int, sound: tuple[Path, bytes]) -> None:
    chance = random.Random(seed)
    path, good = sound
    data = bytearray(good)
    for _ in range(chance.randrange(1, 6)):
        at, length = chance.randrange(len(data)), chance.randrange(0, 400)
        new = chance.choice([b"", bytes(length), b"\n", b"\r\n", bytes(data[at : at + length]) * 2, b"\x80"])
        data[at : at + length] = new
        if not data:
            data = bytearray(b"\n")
    path.write_bytes(data)
    report = verified(path)
    if report is not None:
        assert report.events <= 4
        assert report.records <= 4


def test_problems_are_shown_as_json(tmp_path: Path) -> None:
    found = damaged(tmp_path, lambda it: it[:3] + it[4:])
    shown: dict[str, Any] = found.as_json()
    assert shown["status"] == "damaged"
    assert shown["problems"][0]["kind"] == "removed-lines"
    assert json.loads(json.dumps(shown)) == shown


def test_verification_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    path.chmod(0o400)
    verify(path)
    assert path.read_bytes() == before
    assert [it.name for it in path.parent.iterdir()] == [path.name]
    with Store.open(tmp_path / "w") as store:
        assert len(store.events.of_session("s1")) == EVENTS


def test_a_line_whose_sum_was_made_anew_over_what_is_no_canonical_json(tmp_path: Path) -> None:
    found = damaged(
        tmp_path, lambda it: [*it[:-1], resummed(it[-1].replace(b'"count":', b'"count":6,"count":'))]
    )
    assert only(found)[:2] == ("malformed-line", 8)
    assert "canonical" in found.problems[0].message
