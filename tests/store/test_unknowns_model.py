"""The register of unknowns under any sequence of revisions, against a model."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import AffidavitError
from affidavit.evidence.record import Unfinished
from affidavit.evidence.unknown_checks import check_all, latest
from affidavit.evidence.unknowns import UnknownRevision, opened, revision_digest, unknown_id
from affidavit.store import Store
from affidavit.store.unknowns import REGISTER, Unknowns, read_revision
from tests.store.seen import EVIDENCE, RECORDS, keep

QUESTIONS = ["a", "b", "c", "d"]
NAMES = {one: unknown_id(opened({"question": one, "domain": "x"})) for one in [*QUESTIONS, "e"]}
NUMBERS = itertools.count()
RANK = {"inferred": 1, "derived": 2, "observed": 3}


def fields() -> st.SearchStrategy[dict[str, Any]]:
    """One to three things to say of an unknown; most can be said, some cannot."""
    ids = st.lists(st.sampled_from([*list(RECORDS) * 3, *EVIDENCE]), max_size=2, unique=True)
    kinds = st.sampled_from(["depends-on", "depends-on", "depends-on", "related-to", "contradicts"])
    others = st.sampled_from([*list(NAMES.values())[:3] * 3, *NAMES.values()])
    choices: dict[str, st.SearchStrategy[Any]] = {
        "severity": st.sampled_from(["low", "medium", "high", "critical"]),
        "status": st.sampled_from(["open", "investigating", "blocked", "contradicted"]),
        "supports": ids,
        "contradicts": st.just([]) | ids,
        "required_authority": st.sampled_from([None, "artifact-bytes", "static-analysis"]),
        "required_confidence": st.sampled_from([None, "observed", "derived", "inferred"]),
        "relations": st.lists(st.fixed_dictionaries({"kind": kinds, "unknown": others}), max_size=2),
        "probes": st.lists(st.sampled_from(["p", "q"]), max_size=2),
    }
    single = st.one_of([choice.map(lambda it, name=name: {name: it}) for name, choice in choices.items()])
    verified = ids.map(lambda it: {"status": "resolved", "resolution": "verified", "supports": it})
    resolved = st.sampled_from(
        [
            {"status": "resolved", "resolution": "verified"},
            {"status": "resolved", "resolution": "withdrawn"},
            {"status": "resolved", "resolution": "out-of-scope"},
            {"status": "resolved"},
            {"resolution": "verified"},
            {"resolution": None},
        ]
    )
    return st.lists(st.one_of(single, single, single, resolved, verified), min_size=1, max_size=3).map(merged)


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


class Model:
    """Opens and revises in a store of its own, and tells by plain states of its own what must come of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.unknowns = Unknowns(store)
        self.model: dict[str, dict[str, Any]] = {}
        self.revisions: dict[str, int] = {}

    def open(self, question: str, given: dict[str, Any]) -> None:
        name = NAMES[question]
        after = BLANK | spelled(given)
        wrong = set[str]() if name in self.model else self.faults(name, after)

        def act() -> tuple[UnknownRevision, bool]:
            return self.unknowns.open(given | {"question": question, "domain": "x"}, session="s1")

        # The same question is found whatever else is said, as long as it can be said at all.
        if name in self.model and "unknown-invalid" in self.faults(name, after, alone=True):
            wrong = {"unknown-invalid"}
        self.expect(act, name, after, wrong, made=name not in self.model)

    def revise(self, question: str, given: dict[str, Any], off: int) -> None:
        name = NAMES[question]
        expect = self.revisions.get(name, 1) + off
        before = self.model.get(name, BLANK)
        after = before | spelled(given)
        if given.get("status", "resolved") != "resolved" and given.get("resolution") is None:
            after["resolution"] = None
        if name not in self.model:
            wrong = {"unknown-not-found"}
        elif off:
            wrong = {"revision-conflict"}
        else:
            wrong = set[str]() if after == before else self.faults(name, after)

        def act() -> tuple[UnknownRevision, bool]:
            return self.unknowns.revise(name, expect, given, session="s2")

        self.expect(act, name, after, wrong, made=after != before)

    def expect(
        self,
        act: Callable[[], tuple[UnknownRevision, bool]],
        name: str,
        after: dict[str, Any],
        wrong: set[str],
        *,
        made: bool,
    ) -> None:
        """Do it; it must fail with one of the codes of what is wrong, or leave the model's state."""
        if wrong:
            with pytest.raises(AffidavitError) as raised:
                act()
            assert raised.value.code in wrong
            if raised.value.code == "revision-conflict":
                assert raised.value.details["revision"] == self.revisions[name]
            return
        revision, was_made = act()
        assert was_made == made
        if made:
            self.model[name] = after
            self.revisions[name] = self.revisions.get(name, 0) + 1
        self.same(name, revision)

    def faults(self, name: str, after: dict[str, Any], *, alone: bool = False) -> set[str]:
        """The codes of everything that is wrong with a state; `alone`: of what can be seen without the others."""
        wrong: set[str] = set()
        named = [*after["supports"], *after["contradicts"]]
        related = [it["unknown"] for it in after["relations"]]
        if (after["status"] == "resolved") != (after["resolution"] is not None):
            wrong.add("unknown-invalid")
        if len(set(named)) < len(named) or name in related:
            wrong.add("unknown-invalid")
        verified = after["resolution"] == "verified"
        if verified and (after["contradicts"] or not after["supports"]):
            wrong.add("unknown-invalid")
        if alone:
            return wrong
        if verified and not any(qualified(after, one) for one in after["supports"]):
            wrong.add("unknown-invalid")
        if any(one not in RECORDS for one in named):
            wrong.add("evidence-not-found")
        if any(one not in self.model and one != name for one in related):
            wrong.add("unknown-not-found")
        if reaches(self.model | {name: after}, name, name, set()):
            wrong.add("unknown-invalid")
        return wrong

    def same(self, name: str, revision: UnknownRevision) -> None:
        for field, value in self.model[name].items():
            found: Any = getattr(revision, field)
            if field == "relations":
                found = [{"kind": it.kind, "unknown": it.unknown} for it in found]
            assert found == (tuple(value) if field in ("supports", "contradicts", "probes") else value), field
        assert revision.revision == self.revisions[name]

    def check(self) -> None:
        """The log reduces to the model, and everything in it holds."""
        events = self.store.events.of_session(REGISTER)
        whole = [read_revision(event) for event in events]
        assert check_all(whole, RECORDS.get) == latest(whole[::-1])
        for unknowns in (self.unknowns, Unknowns(self.store)):  # as it went along, and from the log alone
            assert {unknown_id(one) for one in unknowns.all()} == set(self.model)
            for one in unknowns.all():
                self.same(unknown_id(one), one)
        told = [it for s in ("s1", "s2") for it in self.store.events.of_session(s)]
        assert sorted(map(revision_digest, map(read_revision, told))) == sorted(map(revision_digest, whole))


BLANK: dict[str, Any] = {
    "severity": "medium",
    "status": "open",
    "resolution": None,
    "supports": [],
    "contradicts": [],
    "required_authority": None,
    "required_confidence": None,
    "relations": [],
    "probes": [],
}


def spelled(given: dict[str, Any]) -> dict[str, Any]:
    after = dict(given)
    for name in ("supports", "contradicts"):
        if name in after:
            after[name] = sorted(after[name])
    if "relations" in after:
        pairs = sorted({(it["kind"], it["unknown"]) for it in after["relations"]})
        after["relations"] = [{"kind": kind, "unknown": unknown} for kind, unknown in pairs]
    if "probes" in after:
        after["probes"] = [p for n, p in enumerate(after["probes"]) if p not in after["probes"][:n]]
    return after


def qualified(after: dict[str, Any], evidence_id: str) -> bool:
    record = RECORDS.get(evidence_id)
    if record is None or isinstance(record.outcome, Unfinished):
        return False
    least = RANK[after["required_confidence"] or "inferred"]
    return after["required_authority"] in (None, record.authority) and RANK[record.confidence] >= least


def reaches(states: dict[str, dict[str, Any]], start: str, end: str, seen: set[str]) -> bool:
    needs = {it["unknown"] for it in states.get(start, BLANK)["relations"] if it["kind"] == "depends-on"}
    if end in needs:
        return True
    fresh = needs - seen
    seen |= fresh
    return any(reaches(states, one, end, seen) for one in fresh)


ACTIONS = st.tuples(
    st.sampled_from(["open", *["revise"] * 7]),
    st.sampled_from([*QUESTIONS[:3] * 4, *QUESTIONS]),
    fields(),
    st.sampled_from([*[0] * 10, 1, -1]),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unknowns")


@settings(max_examples=150, deadline=None)
@given(actions=st.lists(ACTIONS, min_size=8, max_size=30))
def test_any_sequence_of_revisions_is_as_the_model_says(place: Path, actions: list[Any]) -> None:
    # Each sequence is a tenant of its own: that is quicker than a workspace of its own.
    with Store.open(place, tenant=f"t{next(NUMBERS)}") as store:
        keep(store)
        model = Model(store)
        for question in QUESTIONS[:3]:
            model.open(question, {})
        for act, question, given_fields, off in actions:
            if act == "open":
                model.open(question, given_fields)
            else:
                model.revise(question, given_fields, off)
        model.check()
