"""Records: once each, found by prefix, checked on each read."""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import NotFoundError, UsageError, VerificationError
from affidavit.evidence.canonical import canonical, digest, freeze
from affidavit.evidence.identity import record_id, seal
from affidavit.evidence.record import BlobRef, Failure, Limitation, Success, Unfinished
from affidavit.store import Store

from .samples import event, record, sightings

LARGE = {"rows": ["x" * 1000] * 100}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path) as opened:
        yield opened


def tamper(root: Path, statement: str, *parameters: Any) -> None:
    outside = sqlite3.connect(root / "store.sqlite", isolation_level=None)
    outside.execute(statement, parameters)
    outside.close()


def test_one_record_and_as_many_events_as_it_was_seen(store: Store) -> None:
    first = store.append(event(), record=record())
    second = store.append(event(session="s2"), record=record())
    third = store.append(event(session="s3"), record=seal(record()))
    assert first.evidence_id == second.evidence_id == third.evidence_id == record_id(record())
    assert first.seq != second.seq
    assert store.evidence.list() == [(record_id(record()), record())]
    assert len(sightings(store, record_id(record()))) == 3


def test_a_record_comes_back_whole(store: Store) -> None:
    kept = [
        record(1),
        replace(record(2), outcome=Failure(code="tool-failed", details={"n": 1}, message="m", hint="h")),
        replace(record(3), outcome=Unfinished()),
        replace(record(4), limitations=(Limitation(code="encoding", place="a", message="said"),)),
    ]
    for it in kept:
        stored = store.append(event(), record=it)
        assert stored.evidence_id is not None
        assert store.evidence.get(stored.evidence_id) == it
    assert [it for _, it in store.evidence.list()] == kept[::-1]


def test_a_sealed_and_frozen_record_is_the_same_record(store: Store) -> None:
    frozen = replace(
        record(), parameters=freeze({"number": 0}), outcome=Success(result=freeze({"sunny": True}))
    )
    stored = store.append(event(), record=seal(frozen))
    assert stored.evidence_id == record_id(record())
    assert store.evidence.get(record_id(record())) == record()


def test_large_results_become_blobs_first(store: Store) -> None:
    stored = store.append(event(), record=record(1, LARGE))
    assert stored.evidence_id is not None
    kept = store.evidence.get(stored.evidence_id)
    data = canonical(LARGE)
    assert kept.outcome == Success(result=BlobRef(digest=digest(data), size=len(data)))
    assert store.evidence.result(kept) == LARGE
    assert record_id(kept) == stored.evidence_id == record_id(record(1, LARGE))


def test_results_of_small_and_failed_calls(store: Store) -> None:
    assert store.evidence.result(record()) == {"sunny": True}
    with pytest.raises(NotFoundError, match="item-not-found"):
        store.evidence.result(replace(record(), outcome=Unfinished()))


def test_prefixes_resolve_when_one_record_has_them(store: Store) -> None:
    ids = sorted(record_id(record(number)) for number in range(600))
    store.append_many((event(), record(number)) for number in range(600))
    whole = ids[0]
    assert store.evidence.resolve(whole) == whole
    assert store.evidence.resolve(whole[4:]) == whole
    assert store.evidence.resolve(whole[:24]) == whole
    assert store.evidence.get(whole[:24]) == store.evidence.get(whole)
    shared = next(one[:8] for one, two in itertools.pairwise(ids) if one[:8] == two[:8])
    with pytest.raises(UsageError) as caught:
        store.evidence.resolve(shared)
    assert caught.value.code == "evidence-ambiguous"
    assert set(caught.value.details["candidates"]) <= {it for it in ids if it.startswith(shared)}
    assert len(caught.value.details["candidates"]) > 1
    assert store.evidence.has([*ids, "ev1_" + "0" * 64, "\ud800", "'", ""]) == set(ids)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ev1_",
        "ev1_abc",
        "abc",
        "ev1_" + "A" * 64,
        "ev1_%",
        "'; --",
        "\ud800",
        "ev1_" + "0" * 65,
        "ev1_" + "0" * 64,
    ],
)
def test_ids_that_no_record_has(store: Store, name: str) -> None:
    store.append(event(), record=record())
    for look in (store.evidence.get, store.evidence.resolve):
        with pytest.raises(NotFoundError) as caught:
            look(name)
        assert caught.value.code == "evidence-not-found"
        assert caught.value.hint


def test_lists_are_paged_and_filtered_newest_first(store: Store) -> None:
    ids: list[str] = []
    for number in range(5):
        kept = record(number) if number % 2 else replace(record(number), operation="tides/1")
        stored = store.append(event(session=f"s{number % 2}"), record=kept)
        assert stored.evidence_id is not None
        ids.insert(0, stored.evidence_id)
    assert [it for it, _ in store.evidence.list()] == ids
    assert [it for it, _ in store.evidence.list(2)] == ids[:2]
    assert [it for it, _ in store.evidence.list(2, after=ids[1])] == ids[2:4]
    assert [it for it, _ in store.evidence.list(after=ids[4])] == []
    assert [it for it, _ in store.evidence.list(operation="tides/1")] == ids[::2]
    assert [it for it, _ in store.evidence.list(session="s1")] == ids[1::2]
    assert store.evidence.list(session="s1", operation="tides/1") == []
    assert store.evidence.list(session="\ud800") == []
    assert store.evidence.list(0) == []
    with pytest.raises(NotFoundError):
        store.evidence.list(after="ev1_" + "0" * 64)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = replace(CAST(body AS TEXT), 'true', 'false')",
        "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'true', 'false') AS BLOB)",
        "UPDATE records SET body = x''",
        "UPDATE records SET body = 7",
        "UPDATE records SET operation = 'other/1'",
        "UPDATE records SET notes = '{'",
        'UPDATE records SET notes = \'{"limitations": ["x"]}\'',
        "UPDATE records SET notes = '{\"failure\": {}}'",
        "UPDATE records SET notes = '[1]'",
        "UPDATE records SET notes = '{\"x\": 1}'",
        "UPDATE records SET notes = '7'",
    ],
)
def test_a_damaged_record_is_never_served(store: Store, tmp_path: Path, statement: str) -> None:
    store.append(event(), record=record())
    evidence_id = record_id(record())
    tamper(tmp_path, statement)
    for look in (lambda: store.evidence.get(evidence_id), store.evidence.list):
        with pytest.raises(VerificationError) as caught:
            look()
        assert caught.value.code == "store-damaged"
        assert evidence_id in caught.value.message
    assert store.evidence.damaged() == [evidence_id]


def test_recording_it_again_repairs_a_damaged_record(store: Store, tmp_path: Path) -> None:
    store.append(event(), record=record())
    store.append(event(), record=record(1))
    tamper(tmp_path, "UPDATE records SET body = x'00', operation = 'x', notes = 'x' WHERE number = 1")
    assert store.evidence.damaged() == [record_id(record())]
    store.append(event(), record=record())
    assert store.evidence.get(record_id(record())) == record()
    assert store.evidence.damaged() == []


def test_tenants_see_only_their_own(store: Store, tmp_path: Path) -> None:
    stored = store.append(event(key="k"), record=record(1, LARGE))
    assert stored.evidence_id is not None
    with Store.open(tmp_path, tenant="other") as other:
        assert other.events.after() == []
        assert other.events.sessions() == []
        assert other.events.of_session("s1") == []
        assert other.events.last() is None
        assert other.evidence.list() == []
        assert other.evidence.has([stored.evidence_id]) == set()
        assert sightings(other, stored.evidence_id) == []
        with pytest.raises(NotFoundError):
            other.evidence.get(stored.evidence_id)
        with pytest.raises(NotFoundError):
            other.append(event(evidence_id=stored.evidence_id))
        with pytest.raises(VerificationError, match="blob-missing"):
            other.blobs.get(digest(canonical(LARGE)))
        mine = other.append(event(key="k"), record=record(1, LARGE))
        assert not mine.repeated
        assert mine.evidence_id == stored.evidence_id
        assert len(sightings(other, stored.evidence_id)) == 1
    assert len(store.events.after()) == 1


@pytest.mark.parametrize("tenant", ["", "..", "../x", "A", "a/b", "a.b", "x" * 64, "-a", "é", "a\n", "con\0"])
def test_tenants_are_plain_names(tmp_path: Path, tenant: str) -> None:
    with pytest.raises(UsageError) as caught:
        Store.open(tmp_path / "new", tenant=tenant)
    assert caught.value.code == "name-invalid"
    assert not (tmp_path / "new").exists()
