"""The register of unknowns: its log, several processes at once, and revisions from elsewhere."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from affidavit.errors import AffidavitError, FailedError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Record
from affidavit.evidence.unknown_checks import check_all
from affidavit.evidence.unknowns import UnknownRevision, opened, revised, unknown_id
from affidavit.store import Event, Store
from affidavit.store.unknowns import KIND, REGISTER, Unknowns, read_revision
from tests.evidence.records import observation
from tests.store.samples import adopt, finish, start_together
from tests.store.seen import EVIDENCE, RECORDS, keep


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "workspace") as opened_store:
        keep(opened_store)
        yield opened_store


# ---- ids ----


def test_a_prefix_that_one_unknown_has_names_it(store: Store) -> None:
    unknowns = Unknowns(store)
    revision, _ = unknowns.open({"question": "a", "domain": "x"})
    name = unknown_id(revision)
    assert unknowns.get(name[:12]) == unknowns.get(name[5:9]) == unknowns.get(name) == revision
    for wrong in (name[:8], name.upper(), name + "0", "unk1_" + "00" * 32, "", "ev1_" + "00" * 32, "\0"):
        with pytest.raises(NotFoundError) as raised:
            unknowns.get(wrong)
        assert raised.value.code == "unknown-not-found"


def test_a_prefix_that_several_have_is_told_with_them(store: Store) -> None:
    unknowns = Unknowns(store)
    by_start: dict[str, UnknownRevision] = {}
    start = ""
    for n in itertools.count():
        one = opened({"question": str(n), "domain": "x"})
        start = unknown_id(one)[5:9]
        if start in by_start:
            adopt(store, [one, by_start[start]])
            break
        by_start[start] = one
    with pytest.raises(UsageError) as raised:
        unknowns.get(start)
    assert raised.value.code == "unknown-ambiguous"
    assert len(raised.value.details["candidates"]) == 2


# ---- the log ----


def test_a_revision_stands_in_the_register_and_in_its_session(store: Store) -> None:
    unknowns = Unknowns(store, now=lambda: 12.5)
    first, _ = unknowns.open({"question": "a", "domain": "x"}, session="s1", run="r1")
    second, _ = unknowns.revise(unknown_id(first), 1, {"status": "blocked"})
    [told] = store.events.of_session("s1")
    assert (told.kind, told.run, told.at, read_revision(told)) == (KIND, "r1", 12.5, first)
    entries = unknowns.history(unknown_id(first))
    assert [(it.revision, it.at, it.session, it.run) for it in entries] == [
        (first, 12.5, "s1", "r1"),
        (second, 12.5, None, None),
    ]


def test_asking_again_and_losing_add_nothing(store: Store) -> None:
    unknowns = Unknowns(store)
    first, _ = unknowns.open({"question": "a", "domain": "x"}, session="s1")
    before = len(store.events.of_session(REGISTER)), len(store.events.of_session("s1"))
    assert unknowns.open({"question": " a", "domain": "x", "severity": "low"}, session="s1") == (first, False)
    assert unknowns.revise(unknown_id(first), 1, {"severity": "medium"}, session="s1") == (first, False)
    for wrong in (0, 2, -1):
        with pytest.raises(FailedError, match="at revision 1, not"):
            unknowns.revise(unknown_id(first), wrong, {"severity": "medium"}, session="s1")
    assert before == (len(store.events.of_session(REGISTER)), len(store.events.of_session("s1")))


def test_tenants_do_not_see_each_other(store: Store) -> None:
    Unknowns(store).open({"question": "a", "domain": "x"})
    with Store.open(store.root, tenant="other") as other:
        assert Unknowns(other).all() == []
        assert Unknowns(other).open({"question": "a", "domain": "x"})[1] is True
        with pytest.raises(NotFoundError, match="was never recorded here"):
            Unknowns(other).open({"question": "b", "domain": "x", "supports": [EVIDENCE[0]]})


@pytest.mark.parametrize("data", [None, [], {}, {"revision": {}}, {"revision": {"revision": 1}}])
def test_a_damaged_entry_is_named(store: Store, data: Any) -> None:
    stored = store.append(Event(kind=KIND, session=REGISTER, data=data, at=1.0, key="1"))
    with pytest.raises(VerificationError, match=f"event {stored.seq}") as raised:
        Unknowns(store).all()
    assert raised.value.code == "store-damaged"


def test_the_events_of_a_lost_append_are_all_absent(store: Store) -> None:
    store.append(Event(kind="x", session="a", data={"n": 1}, at=1.0, key="k"))
    events = [
        Event(kind="x", session="b", data={}, at=1.0),
        Event(kind="x", session="a", data={}, at=1.0, key="k"),
    ]
    taken = store.append_new(events)
    assert taken is not None
    assert (taken.key, taken.data) == ("k", {"n": 1})
    assert store.events.of_session("b") == []
    assert store.append_new(events[:1]) is None
    assert len(store.events.of_session("b")) == 1


# ---- several processes ----

REVISE = """
from affidavit.errors import AffidavitError
from affidavit.store.unknowns import Unknowns
unknowns, status = Unknowns(Store.open(root)), sys.argv[2]
[one] = unknowns.all()
from affidavit.evidence.unknowns import unknown_id
print("ready", flush=True)
sys.stdin.readline()
try:
    made = unknowns.revise(unknown_id(one), 1, {"status": status}, session=status)[1]
    print("made", made)
except AffidavitError as error:
    print(error.code, error.details["revision"])
"""
APPEND = """
from affidavit.errors import AffidavitError
from affidavit.store.unknowns import Unknowns
unknowns, me = Unknowns(Store.open(root)), sys.argv[2]
name = sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
for n in range(20):
    unknowns.open({"question": f"{me} {n}", "domain": "x"}, session=me)
    while True:
        now = unknowns.get(name)
        try:
            probes = [*now.probes[-19:], f"{me} {n}"]
            unknowns.revise(name, now.revision, {"probes": probes, "note": f"{me} {n}"}, session=me)
            break
        except AffidavitError as error:
            assert error.code == "revision-conflict", error
"""
RELATE = """
from affidavit.errors import AffidavitError
from affidavit.store.unknowns import Unknowns
unknowns = Unknowns(Store.open(root))
me, other = sys.argv[2:]
print("ready", flush=True)
sys.stdin.readline()
try:
    relations = [{"kind": "depends-on", "unknown": other}]
    unknowns.revise(me, 1, {"relations": relations})
    print("made")
except AffidavitError as error:
    print(error.code)
"""


def test_of_two_processes_that_revise_at_once_one_wins(store: Store) -> None:
    Unknowns(store).open({"question": "a", "domain": "x"})
    outs = finish(*start_together(REVISE, [(store.root, "blocked"), (store.root, "investigating")]))
    assert sorted(out.splitlines()[-1] for out in outs) == ["made True", "revision-conflict 2"]
    [one] = Unknowns(store).all()
    assert one.revision == 2
    winner = "blocked" if outs[0].startswith("made") else "investigating"
    assert one.status == winner
    assert [len(store.events.of_session(it)) for it in ("blocked", "investigating")] == [
        int(winner == "blocked"),
        int(winner == "investigating"),
    ]


def test_no_revision_of_many_processes_is_lost(store: Store) -> None:
    one, _ = Unknowns(store).open({"question": "a", "domain": "x"})
    name = unknown_id(one)
    finish(*start_together(APPEND, [(store.root, f"p{n}", name) for n in range(3)]))
    unknowns = Unknowns(store)
    assert unknowns.get(name).revision == 61
    assert len(unknowns.all()) == 61
    notes = [entry.revision.note for entry in unknowns.history(name)[1:]]
    assert sorted(notes) == sorted(f"p{p} {n}" for p in range(3) for n in range(20))
    check_all([entry.revision for entry in unknowns.history(name)], RECORDS.get)


def test_two_processes_cannot_make_a_cycle_together(store: Store) -> None:
    names = [unknown_id(Unknowns(store).open({"question": one, "domain": "x"})[0]) for one in "ab"]
    outs = finish(*start_together(RELATE, [(store.root, *names), (store.root, *names[::-1])]))
    assert sorted(out.splitlines()[-1] for out in outs) == ["made", "unknown-invalid"]


Meanwhile: TypeAlias = Callable[[Callable[[Unknowns], Any]], None]


@pytest.fixture
def meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meanwhile]:
    """Lets another process, with a connection of its own, write between the next check and its append."""
    with Store.open(store.root) as other:
        waiting: list[Callable[[Unknowns], Any]] = []
        append = store.append_new

        def interrupted(events: Any) -> Any:
            if waiting:
                waiting.pop()(Unknowns(other))
            return append(events)

        monkeypatch.setattr(store, "append_new", interrupted)
        yield waiting.append


def test_a_cycle_that_closes_meanwhile_is_refused(store: Store, meanwhile: Meanwhile) -> None:
    unknowns = Unknowns(store)
    a, b = (unknown_id(unknowns.open({"question": one, "domain": "x"})[0]) for one in "ab")
    meanwhile(lambda it: it.revise(a, 1, {"relations": [{"kind": "depends-on", "unknown": b}]}))
    with pytest.raises(UsageError, match="depend on itself"):
        unknowns.revise(b, 1, {"relations": [{"kind": "depends-on", "unknown": a}]})


def test_a_revision_that_comes_meanwhile_is_a_conflict(store: Store, meanwhile: Meanwhile) -> None:
    unknowns = Unknowns(store)
    name = unknown_id(unknowns.open({"question": "a", "domain": "x"})[0])
    meanwhile(lambda it: it.revise(name, 1, {"status": "blocked"}))
    with pytest.raises(FailedError, match="at revision 2, not 1"):
        unknowns.revise(name, 1, {"status": "blocked"}, session="s1")
    assert store.events.of_session("s1") == []


def test_another_unknown_that_changes_meanwhile_is_in_nobodys_way(store: Store, meanwhile: Meanwhile) -> None:
    unknowns = Unknowns(store)
    name = unknown_id(unknowns.open({"question": "a", "domain": "x"})[0])
    meanwhile(lambda it: it.open({"question": "b", "domain": "x"}))
    revision, made = unknowns.revise(name, 1, {"status": "blocked"}, session="s1")
    assert (revision.revision, made) == (2, True)
    assert len(store.events.of_session("s1")) == 1
    assert [event.key for event in store.events.of_session(REGISTER)] == ["1", "2", "3"]


def test_what_is_opened_meanwhile_is_found(store: Store, meanwhile: Meanwhile) -> None:
    meanwhile(lambda it: it.open({"question": "a", "domain": "x", "severity": "high"}))
    revision, made = Unknowns(store).open({"question": "a", "domain": "x"})
    assert (revision.severity, made) == ("high", False)


# ---- from elsewhere ----


def chain(*statuses: str, question: str = "a", **given: Any) -> list[UnknownRevision]:
    made = [opened({"question": question, "domain": "x", **given})]
    for status in statuses:
        made.append(revised(made[-1], {"status": status}))
    return made


def test_revisions_are_adopted_once(store: Store) -> None:
    unknowns, revisions = Unknowns(store), chain("blocked", "open", supports=[EVIDENCE[0]])
    assert adopt(store, reversed(revisions)) == 3
    assert adopt(store, revisions) == 0
    assert [it.revision for it in unknowns.history(unknown_id(revisions[0]))] == revisions
    assert unknowns.revise(unknown_id(revisions[0]), 3, {"status": "blocked"})[0].revision == 4


@pytest.mark.parametrize(
    "other",
    [
        chain("blocked", "blocked")[:1] + chain("investigating")[1:],
        chain(severity="low"),
        [chain("investigating", "open")[2]],
    ],
    ids=["revision 2", "revision 1", "what follows another"],
)
def test_a_fork_is_refused_as_a_whole_or_left_out(store: Store, other: list[UnknownRevision]) -> None:
    unknowns, here = Unknowns(store), chain("blocked")
    adopt(store, here)
    beside = chain(question="b")
    with pytest.raises(FailedError, match="revised in two places") as raised:
        adopt(store, [*other, *beside], whole=False)
    assert raised.value.code == "revision-conflict"
    assert [it.revision for it in unknowns.history(unknown_id(here[0]))] == here
    told: list[FailedError] = []
    events = list(unknowns.adopting([*other, *beside], whole=False, on_conflict=told.append))
    assert [read_revision(event) for event in events] == beside
    assert len(told) == 1


def test_what_fills_a_gap_must_be_what_was_there(store: Store) -> None:
    adopt(store, chain("blocked")[1:], whole=False)
    with pytest.raises(FailedError, match="revision 2 here follows another one"):
        adopt(store, chain(severity="low"), whole=False)
    assert adopt(store, chain("blocked")[:1]) == 1


def test_what_does_not_hold_is_adopted_only_in_parts(store: Store) -> None:
    unknowns, revisions = Unknowns(store), chain("blocked", "open", supports=[EVIDENCE[-1]])
    with pytest.raises(AffidavitError, match="missing before it"):
        adopt(store, revisions[1:])
    with pytest.raises(AffidavitError, match="not there"):
        adopt(store, revisions)
    assert adopt(store, revisions[1:], whole=False) == 2
    name = unknown_id(revisions[0])
    assert unknowns.get(name).revision == 3
    with pytest.raises(UsageError, match=r"revision 1 of .* is not here"):
        unknowns.revise(name, 3, {"supports": []})
    assert adopt(store, revisions[:1], whole=False) == 1
    assert unknowns.revise(name, 3, {"supports": []})[1] is True


def test_records_may_come_along(store: Store) -> None:
    record = observation({"n": 9})

    def along(evidence_id: str) -> Record | None:
        return record if evidence_id == record_id(record) else None

    revisions = chain(supports=[record_id(record), EVIDENCE[0]])
    assert len(list(Unknowns(store).adopting(revisions, record_of=along))) == 1


def test_adopting_cannot_make_a_cycle(store: Store) -> None:
    unknowns = Unknowns(store)
    a, b = chain(question="a"), chain(question="b")
    adopt(store, a + b)
    needs = [{"kind": "depends-on", "unknown": unknown_id(b[0])}]
    unknowns.revise(unknown_id(a[0]), 1, {"relations": needs})
    back = revised(b[0], {"relations": [{"kind": "depends-on", "unknown": unknown_id(a[0])}]})
    with pytest.raises(UsageError, match="depend on itself"):
        adopt(store, [back])
