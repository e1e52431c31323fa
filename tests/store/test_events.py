"""The log: order, filters, idempotency keys, hostile names."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import NotFoundError, UsageError, VerificationError
from affidavit.evidence.canonical import CanonicalJson, freeze
from affidavit.evidence.identity import record_id
from affidavit.store import Event, Store, StoredEvent

from .samples import event, record, sightings


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "w") as opened:
        yield opened


def test_an_event_comes_back_as_it_was_appended(store: Store) -> None:
    given = event(data={"a": [1, 1.5, None, {"$int": "9007199254740992"}], "é": "😀"}, run="r1", key="k1")
    stored = store.append(given)
    assert stored == StoredEvent(
        seq=stored.seq, kind=given.kind, session="s1", data=given.data, at=1.5, run="r1", key="k1"
    )
    assert store.events.of_session("s1") == [stored]
    assert store.events.of_run("r1") == [stored]
    assert not stored.repeated


def test_canonical_parts_of_data_come_back_as_values(store: Store) -> None:
    store.append(event(data={"parameters": freeze({"x": 1.0}), "line": 3}))
    assert store.events.of_session("s1")[0].data == {"parameters": {"x": {"$float": "1.0"}}, "line": 3}
    store.append(event(session="s2", data=CanonicalJson(b"[1]")))
    assert store.events.of_session("s2")[0].data == [1]


def test_order_filters_and_last(store: Store) -> None:
    one = store.append(event("run-requested", "s1", run="r1"))
    two = store.append(event("run-requested", "s2", run="r2"))
    three = store.append(event("run-settled", "s1", run="r1"))
    assert one.seq < two.seq < three.seq
    assert store.events.of_session("s1") == [one, three]
    assert store.events.of_session("s1", after=one.seq) == [three]
    assert store.events.of_run("r1") == [one, three]
    assert store.events.of_session("nobody") == []
    assert store.events.after() == [one, two, three]
    assert store.events.after(one.seq, limit=1) == [two]
    assert store.events.last() == three
    assert store.events.last("s2") == two
    assert store.events.last(kind="run-requested") == two
    assert store.events.last("s1", kind="run-requested", run="r1") == one
    assert store.events.last("s2", kind="run-settled") is None
    assert store.events.sessions() == ["s1", "s2"]


@pytest.mark.parametrize("page", [1, 2, 500])
def test_walking_by_kind_goes_through_all_sessions_of_the_tenant(store: Store, page: int) -> None:
    kinds = ("run-requested", "run-started")
    added = [store.append(event(kind, f"s{n % 2}")) for n, kind in enumerate([*kinds, "run-settled", *kinds])]
    with Store.open(store.root, tenant="other") as other:
        other.append(event("run-requested"))
    assert list(store.events.walk(kinds, page=page)) == [it for it in added if it.kind in kinds]
    assert list(store.events.walk(["nothing"])) == []


def test_reading_on_in_the_log_needs_no_sorting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any]] = []
    read = store.database.read

    def asking(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, parameters))
        return read(sql, parameters)

    monkeypatch.setattr(store.database, "read", asking)
    store.events.after(5, limit=1)
    assert list(store.events.walk(["run-requested"])) == []
    plans = [str(read(f"EXPLAIN QUERY PLAN {sql}", parameters)) for sql, parameters in asked]
    assert len(plans) == 2
    assert all("USING INTEGER PRIMARY KEY" in plan and "TEMP B-TREE" not in plan for plan in plans)


def test_rare_events_are_found_without_reading_the_calls_between(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Any]] = []
    read = store.database.read

    def asking(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, parameters))
        return read(sql, parameters)

    monkeypatch.setattr(store.database, "read", asking)
    store.events.of_kinds("s1", ("run-requested",), newest=4)
    store.events.last("s1", kind="run-requested")
    store.events.last("s1", kind="run-settled", run="run_1")
    plans = [str(read(f"EXPLAIN QUERY PLAN {sql}", parameters)) for sql, parameters in asked]
    assert all("events_by_kind" in plan and "TEMP B-TREE" not in plan for plan in plans)
    store.events.of_kinds("s1", ("call-recorded", "run-settled"))
    assert "events_by_kind" not in str(read(f"EXPLAIN QUERY PLAN {asked[-1][0]}", asked[-1][1]))


def test_a_key_makes_an_append_idempotent_in_its_session(store: Store) -> None:
    first = store.append(event(key="k", data={"n": 1}), record=record(1))
    again = store.append(event(key="k", data={"n": 2}), record=record(2))
    assert again == first
    assert again.repeated
    assert store.evidence.has([record_id(record(2))]) == set()
    other = store.append(event(session="s2", key="k"))
    assert other.seq != first.seq
    assert store.events.by_key("s1", "k") == first
    assert store.events.by_key("s1", "absent") is None
    assert len(store.events.of_session("s1")) == 1


def test_many_events_are_one_transaction(store: Store) -> None:
    stored = store.append_many([event("a"), (event("b"), record()), (event("c"), None)])
    assert [it.kind for it in stored] == ["a", "b", "c"]
    assert stored[1].evidence_id == record_id(record())
    with pytest.raises(NotFoundError):
        store.append_many([event("d"), (event("e"), record(7)), event("f", evidence_id="ev1_" + "0" * 64)])
    assert store.events.after() == stored
    assert store.evidence.has([record_id(record(7))]) == set()


def test_an_event_may_refer_to_a_record_that_is_there(store: Store) -> None:
    store.append(event(), record=record())
    evidence_id = record_id(record())
    cited = store.append(event("answer-given", evidence_id=evidence_id))
    assert cited.evidence_id == evidence_id
    assert [it.kind for it in sightings(store, evidence_id)] == ["noted", "answer-given"]
    assert sightings(store, "ev1_" + "0" * 64) == []
    with pytest.raises(NotFoundError, match="evidence-not-found"):
        store.append(event(evidence_id="ev1_" + "0" * 64))
    with pytest.raises(UsageError, match="comes with the record"):
        store.append(event(evidence_id="ev1_" + "0" * 64), record=record(1))


def test_the_log_cannot_be_changed_even_from_outside(store: Store, tmp_path: Path) -> None:
    store.append(event(), record=record())
    outside = sqlite3.connect(tmp_path / "w" / "store.sqlite", isolation_level=None)
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'x'", "DELETE FROM records"):
        with pytest.raises(sqlite3.IntegrityError):
            outside.execute(statement)
    outside.close()
    assert len(store.events.of_session("s1")) == 1


HOSTILE = [
    "'; DROP TABLE events; --",
    "../../etc/passwd",
    "a b\n\t",
    "%_*?",
    "é😀",
    "\u202e\u2028",
    "x" * 256,
    "NULL",
    "\x01",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_just_names(store: Store, name: str) -> None:
    stored = store.append(event(session=name, run=name, key=name, kind=name))
    store.append(event(session="other"))
    assert store.events.of_session(name) == [stored]
    assert store.events.of_run(name) == [stored]
    assert store.events.by_key(name, name) == stored
    assert store.events.sessions() == [name, "other"]


@pytest.mark.parametrize("field", ["kind", "session", "run", "key"])
@pytest.mark.parametrize("name", ["", "x" * 257, "a\0b", "\ud800"])
def test_names_that_cannot_be_kept_are_refused(store: Store, field: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        store.append(event(**{field: name}))
    assert caught.value.code == "name-invalid"
    assert field in caught.value.message
    assert store.events.after() == []
    if field == "session":
        assert store.events.of_session(name) == []


@pytest.mark.parametrize(
    "data", [{"x": float("nan")}, {"x": 2**53}, {"x": "\ud800"}, {"x": object()}, {1: 2}]
)
def test_data_that_is_not_json_is_refused(store: Store, data: Any) -> None:
    with pytest.raises(UsageError, match="value-unsupported"):
        store.append(event(data=data))
    assert store.events.after() == []


def test_damaged_data_is_an_error_that_names_the_event(store: Store, tmp_path: Path) -> None:
    stored = store.append(event())
    outside = sqlite3.connect(tmp_path / "w" / "store.sqlite", isolation_level=None)
    outside.execute("DROP TRIGGER events_are_not_changed")
    outside.execute("UPDATE events SET data = '{' WHERE seq = ?", (stored.seq,))
    outside.close()
    with pytest.raises(VerificationError, match="store-damaged") as caught:
        store.events.of_session("s1")
    assert caught.value.details["seq"] == stored.seq


def test_events_are_values() -> None:
    assert Event(kind="a", session="s", data={}, at=1.0) == Event(kind="a", session="s", data={}, at=1.0)
