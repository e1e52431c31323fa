"""Bundles out of a workspace and into another one: all or nothing, the same bytes again, damage named."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.canonical import digest
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Record
from affidavit.evidence.unknowns import unknown_id
from affidavit.evidence.verification import BundleCheck, check_bundle
from affidavit.store import Store
from affidavit.store.exporting import Exported, Selection, export_bundle, import_bundle
from affidavit.store.unknowns import Unknowns
from tests.evidence.bundles import SCRIPT, answer, bundle, page
from tests.evidence.records import ARTIFACT, PARENT, full, observation
from tests.evidence.test_bundle import FAILURE, LARGE, RECORDS

from .samples import event, record


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "a") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "b") as opened:
        yield opened


def keep(store: Store, *records: Record, session: str = "s1", run: str | None = None) -> list[str]:
    for one in records:
        store.append(event(session=session, run=run), record=one)
    return [record_id(one) for one in records]


def exported(store: Store, selection: Selection | None = None) -> bytes:
    out = io.BytesIO()
    export_bundle(store, out.write, selection)
    return out.getvalue()


def ids(data: bytes) -> list[str]:
    check = BundleCheck()
    check.run(io.BytesIO(data))
    assert check.problems == []
    return list(check.contents.records)


def answered(store: Store) -> tuple[Record, Record]:
    """A page and an answer about it, as a run leaves them."""
    seen = page(parents=tuple(keep(store, observation(operation="analyze/1"))))
    keep(store, seen, run="run_1")
    store.append(event("run-requested", run="run_1", data={"source": SCRIPT.decode(), "number": 1}))
    made = answer([f"{record_id(seen)}#/rows/0"], [seen])
    store.append(event("answer-given", run="run_1"), record=made)
    return seen, made


def test_the_same_bytes_again_from_another_workspace(store: Store, other: Store) -> None:
    keep(store, full(), FAILURE, LARGE, *map(record, range(5)))
    answered(store)
    seen = record_id(page(parents=(record_id(observation(operation="analyze/1")),)))
    unknowns = Unknowns(store)
    opened, _ = unknowns.open({"question": "Why?", "domain": "test", "supports": [seen]}, session="s1")
    unknowns.revise(unknown_id(opened), 1, {"status": "resolved", "resolution": "verified"})
    data = exported(store)
    assert data == exported(store)
    done = import_bundle(other, io.BytesIO(data))
    assert (done.added, done.records, done.blobs, done.unknown_revisions) == (11, 11, 2, 2)
    assert exported(other) == data
    assert check_bundle(io.BytesIO(data)).holds
    # Every record has its old id, an event of the import, and its result.
    assert [it.evidence_id for it in other.events.of_session(done.session) if it.evidence_id] == ids(data)
    assert other.evidence.result(other.evidence.get(record_id(LARGE))) == ["x" * 65_600]
    assert other.evidence.get(record_id(FAILURE)).outcome == FAILURE.outcome
    assert Unknowns(other).get(unknown_id(opened)).resolution == "verified"


def test_importing_again_changes_nothing(store: Store, other: Store) -> None:
    keep(store, LARGE, record())
    data = exported(store)
    first = import_bundle(other, io.BytesIO(data))
    before = other.events.after(0)
    again = import_bundle(other, io.BytesIO(data))
    assert (first.added, first.repeated) == (2, False)
    assert (again.added, again.repeated, again.session) == (0, True, first.session)
    assert other.events.after(0) == before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, max_size=5))
def test_any_records_come_back_with_the_same_bytes(tmp_path_factory: Any, records: list[Record]) -> None:
    root = tmp_path_factory.mktemp("any")
    with Store.open(root / "a") as store, Store.open(root / "b") as other:
        keep(store, *records)
        data = exported(store)
        import_bundle(other, io.BytesIO(data))
        assert exported(other) == data
        assert ids(data) == sorted({record_id(it) for it in records})


def test_selections(store: Store) -> None:
    base = observation(operation="analyze/1")
    about = observation(operation="page/1", subject=full().subject, parents=(record_id(base),))
    keep(store, base, session="first")
    keep(store, about, session="second")
    keep(store, record(1), session="second")
    everything = sorted([record_id(base), record_id(about), record_id(record(1))])
    closure = sorted([record_id(base), record_id(about)])
    cases: list[tuple[Selection, list[str]]] = [
        (Selection(), everything),
        (Selection(session="first"), [record_id(base)]),
        (Selection(session="second"), everything),
        (Selection(subject=ARTIFACT), closure),
        (Selection(operation="page/1"), closure),
        (Selection(session="second", operation="weather.forecast/1"), [record_id(record(1))]),
        (Selection(ids=(record_id(about)[:14],)), closure),
        (
            Selection(ids=(record_id(base),), operation="weather.forecast/1"),
            sorted([record_id(base), record_id(record(1))]),
        ),
    ]  # fmt: skip
    for selection, expected in cases:
        assert ids(exported(store, selection)) == expected, selection
    # A record seen in two sessions belongs to both.
    keep(store, base, session="second")
    assert ids(exported(store, Selection(session="first"))) == [record_id(base)]


def test_an_answer_brings_what_it_rests_on_and_its_script(store: Store, other: Store) -> None:
    keep(store, *map(record, range(3)))
    seen, made = answered(store)
    out = io.BytesIO()
    done = export_bundle(store, out.write, Selection(answers=(record_id(made)[:20],)))
    assert done == Exported(
        whole=done.whole, records=3, answers=1, blobs=1, unknown_revisions=0, missing=0, scripts_missing=()
    )
    report = check_bundle(out)
    assert (report.holds, report.notes) == (True, ())
    import_bundle(other, out)
    assert other.blobs.get(digest(SCRIPT)) == SCRIPT
    assert exported(other) == out.getvalue()
    with pytest.raises(UsageError, match="not an answer"):
        exported(store, Selection(answers=(record_id(seen),)))


def test_a_script_that_is_not_here_is_told(store: Store) -> None:
    seen = page()
    keep(store, seen, answer([record_id(seen)], [seen]))
    done = export_bundle(store, lambda _: None)
    assert done.scripts_missing == (digest(SCRIPT),)


def test_scripts_are_found_in_the_events_of_runs(store: Store) -> None:
    seen = page()
    sources = [f"{number} + 1" for number in range(4)]
    answers = [answer([record_id(seen)], [seen], script=digest(source.encode())) for source in sources]
    store.append(event("run-requested", session="s1", run="r1", data={"source": sources[0]}))
    store.append(event("run-started", session="s2", run="r2", data={"source": sources[1]}))
    store.append(event("run-requested", session="s3", run="r3", data={"source": None, "other": sources[2]}))
    store.append(event("run-started", session="s3", run="r3", data=[sources[3]]))
    keep(store, seen, *answers, session="answers")
    out = io.BytesIO()
    done = export_bundle(store, out.write)
    assert (done.answers, done.blobs) == (4, 2)
    assert done.scripts_missing == tuple(sorted(digest(it.encode()) for it in sources[2:]))
    assert check_bundle(out).holds


def test_unknowns_come_with_the_records_that_speak_for_them(store: Store) -> None:
    one, two = keep(store, record(1), record(2))
    keep(store, record(3))
    unknowns = Unknowns(store)
    unknowns.open({"question": "A?", "domain": "t", "supports": [one], "contradicts": [two]})
    unknowns.open({"question": "B?", "domain": "t"})
    alone = check_bundle(io.BytesIO(exported(store, Selection(ids=(one,)))))
    assert (alone.counts["records"], alone.counts["unknown_revisions"]) == (2, 1)
    assert check_bundle(io.BytesIO(exported(store))).counts["unknown_revisions"] == 2


def test_an_unknown_that_was_revised_otherwise_here_is_a_conflict(store: Store, other: Store) -> None:
    given = {"question": "A?", "domain": "t"}
    for where, status in ((store, "blocked"), (other, "investigating")):
        keep(where, record(1))
        unknowns = Unknowns(where)
        opened, _ = unknowns.open(given)
        unknowns.revise(unknown_id(opened), 1, {"status": status})
    keep(store, record(2))
    before = other.events.after(0)
    with pytest.raises(AffidavitError) as caught:
        import_bundle(other, io.BytesIO(exported(store)))
    assert caught.value.code == "revision-conflict"
    assert other.events.after(0) == before
    assert not other.evidence.has([record_id(record(2))])


def test_parents_that_are_not_here_are_said_to_be_missing(store: Store, other: Store) -> None:
    keep(store, full())
    data = exported(store)
    assert check_bundle(io.BytesIO(data)).counts["missing"] == 1
    import_bundle(other, io.BytesIO(data))
    assert exported(other) == data
    assert exported(other, Selection(ids=(record_id(full()),))) == data
    assert PARENT.encode() in data


def test_nothing_to_export_is_told(store: Store) -> None:
    keep(store, record())
    for selection, code in (
        (Selection(session="nothing"), "session-not-found"),
        (Selection(operation="nothing/1"), "item-not-found"),
        (Selection(subject=ARTIFACT), "item-not-found"),
        (Selection(ids=("ev1_0000",)), "evidence-not-found"),
    ):
        with pytest.raises(NotFoundError) as caught:
            exported(store, selection)
        assert caught.value.code == code
        assert caught.value.hint


def test_a_damaged_bundle_changes_nothing(store: Store, other: Store) -> None:
    keep(store, *map(record, range(20)), LARGE)
    keep(other, record(99))
    data = exported(store)
    before = other.events.after(0)
    for at in range(100, len(data), len(data) // 23):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(VerificationError) as caught:
            import_bundle(other, io.BytesIO(changed))
        assert caught.value.code == "bundle-damaged"
        assert caught.value.details["problems"][0]["place"].startswith("$")
    for bounds in (Bounds(file_bytes=1000), Bounds(records=5)):
        with pytest.raises(VerificationError):
            import_bundle(other, io.BytesIO(data), bounds=bounds)
    assert other.events.after(0) == before
    assert list(other.blobs.addresses()) == []
    assert exported(other) == bundle(record(99))


def test_a_bundle_that_changes_while_it_is_read_changes_nothing(store: Store, other: Store) -> None:
    keep(store, *map(record, range(3)))
    data = exported(store)

    class Changing(io.BytesIO):
        """Another content from the second time on that it is read from the beginning."""

        reads = 0

        def seek(self, offset: int, whence: int = 0, /) -> int:
            place = super().seek(offset, whence)
            if offset == whence == 0:
                self.reads += 1
                if self.reads == 3:  # once to see its version and once to read it, then again
                    self.getbuffer()[:] = data.replace(b'"number":1', b'"number":7', 1)
                    return super().seek(0)
            return place

    file = Changing(data)
    with pytest.raises(VerificationError, match="changed while"):
        import_bundle(other, file)
    assert other.events.after(0) == []
    assert exported(other) == bundle()


def test_damage_in_the_workspace_stops_an_export_naming_it(store: Store) -> None:
    [large, small] = keep(store, LARGE, record())
    [address] = store.blobs.addresses()
    path = store.blobs.path(address)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(VerificationError, match=address) as caught:
        exported(store)
    assert caught.value.code == "blob-damaged"
    assert ids(exported(store, Selection(ids=(small,)))) == [small]
    with sqlite3.connect(store.root / "store.sqlite") as raw:
        raw.execute("UPDATE records SET body = ? WHERE id = ?", (b"{}", small))
    raw.close()
    with pytest.raises(VerificationError, match=small):
        exported(store, Selection(ids=(small,)))
    assert large


def test_importing_repairs_what_is_damaged(store: Store, other: Store) -> None:
    [_, small] = keep(store, LARGE, record())
    data = exported(store)
    import_bundle(other, io.BytesIO(data))
    [address] = other.blobs.addresses()
    other.blobs.path(address).write_bytes(b"cut")
    with sqlite3.connect(other.root / "store.sqlite") as raw:
        raw.execute("UPDATE records SET body = ? WHERE id = ?", (b"{}", small))
    raw.close()
    import_bundle(other, io.BytesIO(data))
    assert exported(other) == data


def test_tenants_do_not_see_each_other(tmp_path: Path, store: Store) -> None:
    keep(store, record())
    with Store.open(tmp_path / "a", tenant="second") as second:
        assert ids(exported(second)) == []
        import_bundle(second, io.BytesIO(exported(store)))
        assert ids(exported(second)) == [record_id(record())]


def test_an_export_leaves_out_what_is_added_meanwhile(store: Store) -> None:
    keep(store, *map(record, range(3)))
    before = exported(store)
    added = iter(range(100, 200))
    out = io.BytesIO()

    def write(data: bytes) -> None:
        keep(store, record(next(added)))
        out.write(data)

    export_bundle(store, write)
    assert out.getvalue() == before


def test_large_selections_walk_instead_of_looking_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, *map(record, range(30)), session="many")
    keep(store, *map(record, range(100, 110)), session="few")
    looked_up = exported(store, Selection(session="many"))
    monkeypatch.setattr("affidavit.store.exporting.selection._MANY", 5)
    assert exported(store, Selection(session="many")) == looked_up
    assert len(ids(looked_up)) == 30
