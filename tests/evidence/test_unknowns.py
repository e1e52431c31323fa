"""Unknowns: their ids, their chain of revisions, and what must hold of one and between several."""

import copy
import json
import re
import sys
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.canonical import canonical, parse
from affidavit.evidence.record import Record, Unfinished
from affidavit.evidence.unknown_checks import check_all, dependency_cycle, latest, problems, qualifies
from affidavit.evidence.unknowns import (
    FIELDS,
    Relation,
    UnknownRevision,
    check,
    from_json,
    opened,
    revised,
    revision_digest,
    to_json,
    unknown_id,
)
from tests.evidence.records import observation

ONE, TWO = "ev1_" + "1" * 64, "ev1_" + "2" * 64
OTHER = "unk1_" + "ab" * 32
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
WORDS = TEXTS.filter(lambda text: bool(text.strip()))
IDS = st.lists(st.sampled_from([f"ev1_{n:064x}" for n in range(6)]), max_size=4)


def ask(question: str = "which library parses dates?", **fields: Any) -> UnknownRevision:
    return opened({"question": question, "domain": "javascript", **fields})


def depends(*others: UnknownRevision | str) -> list[dict[str, str]]:
    names = [one if isinstance(one, str) else unknown_id(one) for one in others]
    return [{"kind": "depends-on", "unknown": name} for name in names]


def nothing(evidence_id: str) -> Record | None:
    return None


def anything(evidence_id: str) -> Record | None:
    return observation()


# ---- identity ----


def hashed(preamble: bytes, document: Any) -> str:
    """As the module's docstring tells it, without the product's code; the texts of these tests are ASCII."""
    return sha256(preamble + json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_ids_and_digests_are_frozen() -> None:
    first = ask(scope="sha256:" + "cd" * 32, supports=[ONE], probes=["read package.json"])
    second = revised(first, {"status": "blocked", "relations": [{"kind": "related-to", "unknown": OTHER}]})
    content = {
        "contradicts": [],
        "domain": "javascript",
        "note": "",
        "previous": None,
        "probes": ["read package.json"],
        "question": "which library parses dates?",
        "relations": [],
        "required_authority": None,
        "required_confidence": None,
        "resolution": None,
        "revision": 1,
        "scope": "sha256:" + "cd" * 32,
        "severity": "medium",
        "status": "open",
        "supports": [ONE],
    }
    name = {key: content[key] for key in ("domain", "question", "scope")}
    assert unknown_id(first) == unknown_id(second) == "unk1_" + hashed(b"affidavit/unknown/1\n", name)
    digest = "sha256:" + hashed(b"affidavit/unknown-revision/1\n", content)
    assert to_json(first) == content | {"digest": digest, "unknown_id": unknown_id(first)}
    content |= {"status": "blocked", "relations": [{"kind": "related-to", "unknown": OTHER}]}
    content |= {"revision": 2, "previous": digest}
    digest = "sha256:" + hashed(b"affidavit/unknown-revision/1\n", content)
    assert to_json(second) == content | {"digest": digest, "unknown_id": unknown_id(first)}
    assert unknown_id(first) == "unk1_26ea3acdb64dad0526df1fadcd49b45425f47462cb73999b307141e79afd1f84"
    assert (
        revision_digest(second) == "sha256:75af522283c3bd5c95aa1dd04c9a2cba26411a14d77e9795cc907d39814eeafd"
    )


def test_white_space_is_what_python_calls_so() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if character.isspace():
            assert ask(f"a{character}b").question == "a b", hex(number)
        elif re.match(r"\s", character):
            raise AssertionError(hex(number))


@given(WORDS, WORDS)
def test_spelling_of_white_space_does_not_matter(first: str, second: str) -> None:
    one = ask(f"{first} {second}")
    assert unknown_id(ask(f" \n{first}\t\u2003{second}\u3000")) == unknown_id(one)
    assert ask(one.question) == one


@pytest.mark.parametrize("field", ["question", "domain", "scope"])
def test_question_domain_and_scope_make_the_unknown(field: str) -> None:
    fields: dict[str, Any] = {"question": "a", "domain": "b", "scope": None}
    other = fields | {field: "sha256:" + "00" * 32 if field == "scope" else "c"}
    assert unknown_id(opened(fields)) != unknown_id(opened(other))
    with pytest.raises(UsageError, match=f"{field}: another {field} makes another unknown"):
        revised(opened(fields), {field: other[field]})


def test_whatever_else_changes_the_id_stays() -> None:
    first = ask()
    second = revised(first, {"severity": "critical", "question": " which library  parses dates?"})
    assert (unknown_id(second), second.revision, second.previous) == (
        unknown_id(first),
        2,
        revision_digest(first),
    )


def test_a_revision_that_changes_nothing_is_none() -> None:
    first = ask(supports=[TWO, ONE, TWO], probes=["b", "a", "b"])
    assert (first.supports, first.probes) == ((ONE, TWO), ("b", "a"))
    assert revised(first, {"supports": [ONE, TWO], "severity": None, "note": ""}) is first


# ---- the document ----


@st.composite
def revisions(draw: st.DrawFn) -> UnknownRevision:
    supports = draw(IDS)
    fields: dict[str, Any] = {
        "question": draw(WORDS),
        "domain": draw(WORDS),
        "scope": draw(st.none() | st.just("sha256:" + "ef" * 32)),
        "severity": draw(st.sampled_from(["low", "medium", "high", "critical"])),
        "supports": supports,
        "contradicts": [one for one in draw(IDS) if one not in supports],
        "required_authority": draw(st.none() | st.just("static-analysis")),
        "required_confidence": draw(st.none() | st.sampled_from(["observed", "derived", "inferred"])),
        "relations": [
            {"kind": draw(st.sampled_from(["depends-on", "related-to", "contradicts"])), "unknown": OTHER}
            for _ in range(draw(st.integers(0, 3)))
        ],
        "probes": draw(st.lists(WORDS, max_size=3)),
        "note": draw(TEXTS),
    }
    revision = opened(fields)
    for status in draw(
        st.lists(st.sampled_from(["open", "investigating", "blocked", "contradicted"]), max_size=3)
    ):
        revision = revised(revision, {"status": status})
    return revision


@given(revisions())
def test_a_revision_survives_its_document(revision: UnknownRevision) -> None:
    document = to_json(revision)
    assert from_json(parse(canonical(document))) == revision
    check(revision)


@given(revisions(), st.data())
def test_a_changed_document_is_refused(revision: UnknownRevision, data: st.DataObject) -> None:
    document = to_json(revision)
    changed = copy.deepcopy(document)
    name = data.draw(st.sampled_from(sorted(document)))
    others: list[Any] = [
        None,
        0,
        1,
        2,
        True,
        1.5,
        "",
        "x",
        [],
        ["x"],
        [ONE],
        {},
        "open",
        "low",
        "sha256:" + "0" * 64,
    ]
    other = data.draw(st.sampled_from(others))
    changed[name] = other
    if type(other) is type(document[name]) and other == document[name]:
        return
    with pytest.raises(UsageError) as raised:
        from_json(changed)
    assert raised.value.code == "unknown-invalid"
    assert raised.value.details["field"] in {
        name,
        "digest",
        "unknown_id",
        "resolution",
        "previous",
        "contradicts",
    }


@pytest.mark.parametrize("change", ["missing", "extra"])
@pytest.mark.parametrize("field", [*FIELDS, "revision", "digest", "unknown_id"])
def test_a_document_has_its_fields_and_no_others(change: str, field: str) -> None:
    document = to_json(ask())
    if change == "missing":
        del document[field]
    else:
        document[field + "s_"] = 1
    with pytest.raises(UsageError, match="unknown-invalid"):
        from_json(document)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"revision": 1}])
def test_what_is_no_document_is_refused(document: Any) -> None:
    with pytest.raises(UsageError, match="unknown-invalid"):
        from_json(document)


def test_lists_have_one_spelling() -> None:
    document = to_json(ask(supports=[ONE, TWO]))
    document["supports"].reverse()
    with pytest.raises(UsageError, match="supports: not each once and ascending"):
        from_json(document)


# ---- what holds of one revision ----


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"question": ""}, "question"),
        ({"question": " \n"}, "question"),
        ({"question": "x" * 1001}, "question"),
        ({"question": "\ud800"}, "question"),
        ({"question": None}, "question"),
        ({"question": 3}, "question"),
        ({"domain": ""}, "domain"),
        ({"domain": "x" * 101}, "domain"),
        ({"scope": "sha256:12"}, "scope"),
        ({"scope": 1}, "scope"),
        ({"severity": "urgent"}, "severity"),
        ({"severity": ["low"]}, "severity"),
        ({"status": "done"}, "status"),
        ({"status": "resolved"}, "resolution"),
        ({"resolution": "withdrawn"}, "resolution"),
        ({"status": "resolved", "resolution": "solved"}, "resolution"),
        ({"status": "resolved", "resolution": "verified"}, "supports"),
        (
            {"status": "resolved", "resolution": "verified", "supports": [ONE], "contradicts": [TWO]},
            "contradicts",
        ),
        ({"supports": ONE}, "supports"),
        ({"supports": [ONE[:-1]]}, "supports"),
        ({"supports": [f"{ONE}#/rows/3"]}, "supports"),
        ({"supports": [f"ev1_{n:064x}" for n in range(101)]}, "supports"),
        ({"supports": [ONE], "contradicts": [ONE, TWO]}, "contradicts"),
        ({"required_authority": "expert"}, "required_authority"),
        ({"required_confidence": "sure"}, "required_confidence"),
        ({"relations": [OTHER]}, "relations"),
        ({"relations": [{"kind": "blocks", "unknown": OTHER}]}, "relations"),
        ({"relations": [{"kind": "depends-on", "unknown": "unk1_12"}]}, "relations"),
        ({"relations": [{"kind": "depends-on", "unknown": OTHER, "why": ""}]}, "relations"),
        ({"probes": [str(n) for n in range(21)]}, "probes"),
        ({"probes": [""]}, "probes"),
        ({"probes": [" "]}, "probes"),
        ({"probes": ["x" * 1001]}, "probes"),
        ({"note": "x" * 1001}, "note"),
        ({"note": "\udfff"}, "note"),
        ({"revision": 4}, "revision"),
        ({"owner": "me"}, "owner"),
    ],
)
def test_what_cannot_be_said(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as raised:
        opened({"question": "q", "domain": "d"} | fields)
    assert (raised.value.code, raised.value.details["field"]) == ("unknown-invalid", field)


def test_bounds_are_reached() -> None:
    ids = [f"ev1_{n:064x}" for n in range(200)]
    whole = ask(
        "x" * 1000,
        note="y" * 1000,
        supports=ids[:100],
        contradicts=ids[100:],
        probes=[str(n) for n in range(20)],
    )
    assert len(whole.supports) == len(whole.contradicts) == 100


def test_it_is_not_related_to_itself() -> None:
    first = ask()
    with pytest.raises(UsageError, match="related to itself"):
        revised(first, {"relations": depends(first)})


def test_another_status_ends_the_resolution() -> None:
    done = revised(ask(), {"status": "resolved", "resolution": "withdrawn"})
    again = revised(done, {"status": "open"})
    assert (again.status, again.resolution, again.revision) == ("open", None, 3)
    with pytest.raises(UsageError, match="open with resolution withdrawn"):
        revised(done, {"status": "open", "resolution": "withdrawn"})
    assert revised(again, {"severity": "low"}).resolution is None


def test_what_was_required_can_be_waived() -> None:
    first = ask(required_authority="analyst", required_confidence="observed")
    second = revised(first, {"required_authority": None})
    assert (second.required_authority, second.required_confidence) == (None, "observed")


# ---- what holds between revisions ----


def found(*revisions: UnknownRevision, records: Any = anything, missing: Any = ()) -> list[str]:
    return [problem.code for problem in problems(revisions, records, missing=missing)]


def test_a_chain_holds_in_any_order_and_repeated() -> None:
    chain = [ask()]
    for status in ("investigating", "blocked", "open"):
        chain.append(revised(chain[-1], {"status": status}))
    assert found(*chain, *chain[::-1]) == []
    assert check_all(chain[::-1], nothing) == latest(chain) == {unknown_id(chain[0]): chain[-1]}


def test_gaps_forks_and_foreign_predecessors_are_found() -> None:
    first = ask()
    second = revised(first, {"status": "blocked"})
    third = revised(second, {"status": "open"})
    assert found(first, third) == ["unknown-invalid"]
    assert found(second, third) == ["unknown-invalid"]
    assert found(first, second, revised(first, {"status": "investigating"})) == ["revision-conflict"]
    assert found(first, replace(second, previous="sha256:" + "00" * 32)) == ["unknown-invalid"]
    with pytest.raises(AffidavitError, match="revision 2 is missing") as raised:
        check_all([first, third], nothing)
    assert raised.value.details == {"unknown_id": unknown_id(first), "revision": 3}


def test_every_record_and_unknown_that_is_named_is_there() -> None:
    other = ask("another")
    first = ask(supports=[ONE], contradicts=[TWO], relations=depends(other))
    assert found(first, records=nothing) == ["unknown-not-found", "evidence-not-found", "evidence-not-found"]
    assert found(first, other) == []
    assert found(first, records=nothing, missing={ONE, TWO, unknown_id(other)}) == []
    # What an earlier revision named must be there as well.
    assert (
        found(first, revised(first, {"supports": [], "contradicts": []}), other, records=nothing)
        == ["evidence-not-found"] * 2
    )


def test_a_revision_that_was_made_by_hand_is_checked() -> None:
    assert found(replace(ask(), status="resolved")) == ["unknown-invalid"]


@pytest.mark.parametrize(
    ("authority", "confidence", "record", "holds"),
    [
        (None, None, {"authority": "inference", "confidence": "inferred"}, True),
        ("static-analysis", None, {"authority": "static-analysis", "confidence": "inferred"}, True),
        ("static-analysis", None, {"authority": "artifact-bytes", "confidence": "observed"}, False),
        (None, "derived", {"authority": "imported", "confidence": "observed"}, True),
        (None, "derived", {"authority": "imported", "confidence": "derived"}, True),
        (None, "derived", {"authority": "imported", "confidence": "inferred"}, False),
        (None, "observed", {"authority": "imported", "confidence": "derived"}, False),
        (None, "inferred", {"authority": "imported", "confidence": "inferred"}, True),
        ("imported", "observed", {"authority": "imported", "confidence": "observed"}, True),
        (None, None, {"outcome": Unfinished()}, False),
    ],
)
def test_what_verifies(authority: Any, confidence: Any, record: dict[str, Any], holds: bool) -> None:
    seen = observation(**record)
    done = ask(
        required_authority=authority,
        required_confidence=confidence,
        supports=[ONE, TWO],
        status="resolved",
        resolution="verified",
    )
    weak = observation(authority="analyst", outcome=Unfinished())
    assert qualifies(done, seen) is holds
    assert found(done, records={ONE: weak, TWO: seen}.get) == ([] if holds else ["unknown-invalid"])
    # What is elsewhere may be what verifies it.
    assert found(done, records={ONE: weak}.get, missing={TWO}) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_cycles_are_found_and_are_cycles(edges: list[tuple[int, int]]) -> None:
    asked = [ask(str(n)) for n in range(6)]
    needs: dict[int, set[int]] = {n: {b for a, b in edges if a == n and b != n} for n in range(6)}
    current = {
        unknown_id(one): revised(one, {"relations": depends(*(asked[b] for b in needs[n]))})
        for n, one in enumerate(asked)
    }
    reach = {n: set(needs[n]) for n in needs}
    for _ in needs:
        reach = {n: reach[n].union(*(reach[b] for b in reach[n])) for n in reach}
    cycle = dependency_cycle(current)
    assert bool(cycle) == any(n in reach[n] for n in reach)
    for one, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert Relation(kind="depends-on", unknown=following) in current[one].relations


def test_a_cycle_is_a_problem_and_other_relations_are_none() -> None:
    a, b = ask("a"), ask("b")
    assert found(a, b, revised(a, {"relations": depends(b)}), revised(b, {"relations": depends(a)})) == [
        "unknown-invalid"
    ]
    mutual = [{"kind": "contradicts", "unknown": unknown_id(b)}]
    assert found(a, b, revised(a, {"relations": mutual}), revised(b, {"relations": depends(a)})) == []


def test_a_cycle_elsewhere_is_nobody_elses() -> None:
    a, b, c = ask("a"), ask("b"), ask("c")
    current = latest(
        [
            revised(a, {"relations": depends(b)}),
            revised(b, {"relations": depends(a)}),
            revised(c, {"relations": depends(ask("absent"))}),
        ]
    )
    assert dependency_cycle(current, unknown_id(c)) == []
    assert sorted(dependency_cycle(current, unknown_id(a))) == sorted([unknown_id(a), unknown_id(b)])
    assert sorted(dependency_cycle(current)) == sorted([unknown_id(a), unknown_id(b)])
