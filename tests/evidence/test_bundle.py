"""Bundles: the same content has the same bytes, and every byte counts."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.errors import UsageError, VerificationError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.bundles.merging import OpenBundle, diff, merge_bundles
from affidavit.evidence.canonical import canonical, digest, freeze, parse
from affidavit.evidence.identity import Sealed, body_id, record_id, seal
from affidavit.evidence.record import (
    Coverage,
    Failure,
    Limitation,
    Producer,
    Record,
    Subject,
    Success,
    Unfinished,
)
from affidavit.evidence.unknowns import UnknownRevision, opened, revised, unknown_id
from affidavit.evidence.values import encode
from affidavit.evidence.verification import BundleCheck, check_bundle

from .bundles import SCRIPT, answer, bundle, check, page, raw_bundle
from .records import ARTIFACT, PARENT, full, observation
from .strategies import VALUES

FAILURE = observation(
    outcome=Failure(code="tool-failed", details={"n": 1}, message="h\u00e9, no", hint="try 2")
)
LARGE = observation(["x" * 65_600])


def unknown(**given: Any) -> UnknownRevision:
    return opened({"question": "Who calls the worker?", "domain": "javascript", **given})


def small() -> bytes:
    """A bundle with some of everything, of a few KB."""
    cited = page()
    made = answer([f"{record_id(cited)}#/rows/0"], [cited])
    first = unknown(supports=[record_id(cited)])
    return bundle(
        cited,
        FAILURE,
        full(),
        observation(outcome=Unfinished()),
        observation(encode({"big": 2**80, "\ud800": "\udfff", "f": 1e300, "nan": float("nan"), "€": "😀"})),
        made,
        scripts=[SCRIPT],
        unknowns=[first, revised(first, {"status": "blocked"})],
    )


def test_the_form_is_what_the_page_says() -> None:
    data = small()
    json: Any = parse(data)
    assert data == canonical(json, max_depth=120)
    assert list(json) == ["affidavit", "answers", "blobs", "missing", "records", "unknowns", "whole"]
    assert json["affidavit"] == "bundle/1"
    whole = json.pop("whole")
    assert whole == digest(canonical(json, max_depth=120))
    assert json["missing"] == [PARENT]
    assert [it["id"] for it in json["records"]] == sorted(it["id"] for it in json["records"])
    assert json["blobs"].keys() == {digest(SCRIPT)}
    with_words = [it for it in json["records"] if "notes" in it]
    assert len(with_words) == 2
    assert check(data).holds


def test_an_empty_bundle_holds() -> None:
    data = bundle()
    assert check(data).holds
    assert data.startswith(
        b'{"affidavit":"bundle/1","answers":[],"blobs":{},"missing":[],"records":[],"unknowns":[],'
    )


def first_place(data: bytes) -> str:
    """The first place of a bundle that does not hold; empty where all of it does."""
    try:
        report = check(data)
    except VerificationError as error:
        return error.details["place"]
    return "" if report.holds else report.problems[0].place


SECTIONS = ("affidavit", "answers", "blobs", "missing", "records", "unknowns", "whole")


def test_every_byte_changed_is_found_in_its_section() -> None:
    data = small()
    starts = [0, *(data.index(f',"{name}":'.encode()) for name in SECTIONS[1:])]
    for offset in range(len(data)):
        changed = bytearray(data)
        changed[offset] ^= 1 + offset % 255
        expected = [name for name, start in zip(SECTIONS, starts, strict=True) if start <= offset][-1]
        place = first_place(bytes(changed))
        found = re.match(r"\$\.?([a-z]*)", place)
        assert found is not None
        last = len(data) - 1  # the brace that ends the document
        assert found[1] == expected or (offset == last and place == "$"), (offset, place)


def test_every_cut_and_everything_behind_is_found() -> None:
    data = small()
    for length in range(0, len(data), 7):
        assert not check(data[:length]).holds
    for more in (b" ", b"\n", b"\0", b"{}", data):
        [problem] = check(data + more).problems
        assert problem.place == "$"


REFORMATS: dict[str, Callable[[bytes], bytes]] = {
    "space": lambda data: data.replace(b",", b", ", 1),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "space before": lambda data: b" " + data,
    "escapes": lambda data: data.replace(b"\xc3\xa9", b"\\u00e9"),
    "escaped slash": lambda data: data.replace(b'"bundle/1"', b'"bundle\\/1"'),
    "a key twice": lambda data: data.replace(b'{"affidavit":', b'{"affidavit":"bundle/1","affidavit":', 1),
}


@pytest.mark.parametrize("name", REFORMATS)
def test_another_spelling_is_refused(name: str) -> None:
    changed = REFORMATS[name](small())
    assert changed != small()
    assert not check(changed).holds


def test_other_versions_and_formats_are_refused_by_name() -> None:
    for name in ("bundle/2", "bundle/99", "ledger/1"):
        with pytest.raises(VerificationError, match=re.escape(name)) as caught:
            check(small().replace(b"bundle/1", name.encode(), 1))
        assert caught.value.code == "format-unknown"
        assert "bundle/1" in caught.value.message


def sealed(record: Record, **changes: Any) -> Sealed:
    return replace(seal(record), spilled=None, **changes)


def test_parts_that_do_not_fit_each_other_are_found() -> None:
    """Well-formed lies: each part has the right digest, and they do not belong together."""
    one, two = sorted([sealed(observation()), sealed(page())], key=lambda it: it.id)
    large = seal(LARGE)
    assert large.spilled is not None
    spilled = digest(large.spilled)
    kept = sealed(LARGE)
    notes = sealed(FAILURE, notes={"other": 1})
    cases: dict[str, tuple[bytes, str]] = {
        "twice": (raw_bundle([one, one], [], {}, []), "second time"),
        "order": (raw_bundle([two, one], [], {}, []), "behind a greater"),
        "foreign id": (raw_bundle([sealed(page(), id=PARENT)], [], {}, []), "has the id"),
        "parent": (raw_bundle([sealed(full())], [], {}, []), "neither here nor"),
        "missing here": (raw_bundle([one], [], {}, [one.id]), "is here"),
        "missing unused": (raw_bundle([one], [], {}, [PARENT]), "not referred to"),
        "answers": (raw_bundle([one], [one.id], {}, []), "is not an answer"),
        "no blob": (raw_bundle([kept], [], {}, []), "is not here"),
        "blob unused": (raw_bundle([one], [], {digest(b"x"): b"x"}, []), "no record refers"),
        "other blob": (raw_bundle([kept], [], {spilled: b"x" * len(large.spilled)}, []), "has the digest"),
        "notes": (raw_bundle([notes], [], {}, []), "do not fit"),
        "fields": (
            raw_bundle([sealed(observation(), body=b"{}", id=body_id(b"{}"))], [], {}, []),
            "field",
        ),
    }
    for name, (data, words) in cases.items():
        problems = check(data).problems
        assert problems, name
        assert words in problems[0].message, (name, problems[0])


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "unknown field": lambda it: it | {"extra": 1},
    "missing field": lambda it: {key: value for key, value in it.items() if key != "coverage"},
    "parent twice": lambda it: it | {"parents": [PARENT, PARENT]},
    "parents in disorder": lambda it: it | {"parents": ["ev1_" + "ff" * 32, PARENT]},
    "kind": lambda it: it | {"kind": "rumour"},
    "two outcomes": lambda it: it | {"outcome": {"result": 1, "unfinished": True}},
    "small blob": lambda it: it | {"outcome": {"blob": {"digest": ARTIFACT, "size": 3}}},
    "large result inline": lambda it: it | {"outcome": {"result": "x" * 70_000}},
    "script of an observation": lambda it: it | {"script": None},
    "limitations in disorder": lambda it: (
        it | {"limitations": [{"code": "b", "place": ""}, {"code": "a", "place": ""}]}
    ),
    "hashed words": lambda it: it | {"limitations": [{"code": "a", "place": "", "message": "hashed?"}]},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_projection_that_is_not_one_is_refused_though_its_id_is_right(name: str) -> None:
    body = canonical(CHANGES[name](parse(seal(observation()).body)))
    made = Sealed(id=body_id(body), body=body, notes=None, operation="x", spilled=None)
    report = check(raw_bundle([made], [], {}, []))
    assert report.problems
    assert report.problems[0].place == "$.records[0]"


def test_bounds_are_kept() -> None:
    data = small()
    for bounds in (Bounds(file_bytes=200), Bounds(element_bytes=100), Bounds(records=3)):
        problems = check_bundle(io.BytesIO(data), bounds).problems
        assert problems[0].code == "value-too-large"
    deep = b'{"body":' + b'{"a":' * 100_000
    start = small().partition(b'"records":[')[0] + b'"records":['
    assert not check(start + deep).holds
    digits = start + b'{"body":' + b"9" * 10_000 + b"}"
    assert not check(digits).holds


def test_large_results_travel_as_blobs() -> None:
    data = bundle(LARGE)
    report = check(data)
    assert (report.holds, report.counts["blobs"]) == (True, 1)
    at = data.index(b"eHh4") + 3000
    changed = data[:at] + b"A" + data[at + 1 :]
    [blob, *_] = check(changed).problems
    assert blob.place.startswith("$.blobs[sha256:")
    assert blob.code == "blob-damaged"


# ---- any records ----

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
RECORDS = st.builds(
    Record,
    kind=st.sampled_from(["observation", "derivation", "assertion"]),
    operation=TEXTS,
    parameters=VALUES.map(freeze),
    outcome=st.one_of(
        VALUES.map(lambda value: Success(result=freeze(value))),
        st.builds(
            Failure,
            code=TEXTS,
            details=st.dictionaries(TEXTS, st.integers(-9, 9)).map(encode),
            message=TEXTS,
            hint=TEXTS,
        ),
        st.just(Unfinished()),
    ),
    producer=st.builds(Producer, name=TEXTS, version=TEXTS),
    authority=st.sampled_from(["artifact-bytes", "inference", "live-source"]),
    confidence=st.sampled_from(["observed", "derived", "inferred"]),
    subject=st.none() | st.just(Subject(digest=ARTIFACT, format="asar")),
    parents=st.lists(st.sampled_from([PARENT, "ev1_" + "00" * 32]), max_size=3).map(tuple),
    coverage=st.none()
    | st.builds(
        Coverage, state=st.sampled_from(["complete", "partial"]), selection=TEXTS, examined=st.integers(0, 9)
    ),
    limitations=st.lists(
        st.builds(
            Limitation,
            code=TEXTS,
            place=st.text(st.characters(exclude_categories=()), max_size=6),
            message=st.text(st.characters(exclude_categories=()), max_size=6),
        ),
        max_size=3,
    ).map(tuple),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, max_size=6), st.randoms())
def test_any_records_hold_and_their_order_does_not_matter(records: list[Record], random: Any) -> None:
    data = bundle(*records)
    report = check(data)
    assert report.problems == ()
    assert report.counts["records"] == len({record_id(it) for it in records})
    shuffled = list(records)
    random.shuffle(shuffled)
    assert bundle(*shuffled) == data
    seen: dict[str, Record] = {}
    checking = BundleCheck(on_record=lambda kept, record: seen.update({kept.id: record}))
    checking.run(io.BytesIO(data))
    assert {record_id(record) for record in seen.values()} == set(seen) == {record_id(it) for it in records}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_any_byte_of_any_bundle_counts(records: list[Record], data: st.DataObject) -> None:
    whole = bundle(*records)
    offset = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = whole[:offset] + bytes([whole[offset] ^ flip]) + whole[offset + 1 :]
    assert first_place(changed).startswith("$")


# ---- several bundles ----


def opened_bundle(data: bytes) -> OpenBundle:
    return OpenBundle.read("it", io.BytesIO(data))


def merged(*parts: bytes) -> bytes:
    out = io.BytesIO()
    merge_bundles([opened_bundle(it) for it in parts], out.write)
    return out.getvalue()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, max_size=4), st.lists(RECORDS, max_size=4), st.lists(RECORDS, max_size=4))
def test_merging_is_a_union(one: list[Record], two: list[Record], three: list[Record]) -> None:
    a, b, c = bundle(*one, FAILURE), bundle(*two, FAILURE), bundle(*three)
    assert merged(a, a) == merged(a) == a
    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c)) == merged(c, a, b)
    assert check(merged(a, b)).holds
    ids = {record_id(it) for it in [*one, *two, FAILURE]}
    assert set(opened_bundle(merged(a, b)).contents.records) == ids


def test_what_one_bundle_misses_another_brings() -> None:
    parent = observation()
    child = observation(parents=(record_id(parent),), operation="child/1")
    assert check(bundle(child)).counts["missing"] == 1
    both = merged(bundle(child), bundle(parent), bundle(LARGE))
    assert both == bundle(parent, child, LARGE)
    assert check(both).counts["missing"] == 0


def test_words_beside_a_record_do_not_make_a_conflict() -> None:
    silent = observation(outcome=Failure(code="tool-failed", details={"n": 1}))
    other = observation(outcome=Failure(code="tool-failed", details={"n": 1}, message="a", hint=""))
    assert record_id(silent) == record_id(other) == record_id(FAILURE)
    expected = bundle(other)
    assert merged(bundle(silent), bundle(FAILURE), bundle(other)) == expected
    assert merged(bundle(other), bundle(FAILURE), bundle(silent)) == expected


def test_difference() -> None:
    a, b = bundle(observation(), page()), bundle(page(), LARGE)
    found = diff(opened_bundle(a), opened_bundle(b))
    assert found.records == ([record_id(observation())], [record_id(LARGE)], 1)
    assert [len(side) for side in found.blobs[:2]] == [0, 1]
    assert not found.equal
    assert diff(opened_bundle(a), opened_bundle(a)).equal


def test_a_damaged_bundle_is_not_merged() -> None:
    changed = small().replace(b"main.js", b"gain.js", 1)
    with pytest.raises(VerificationError, match="records") as caught:
        merged(bundle(page()), changed)
    assert caught.value.code == "bundle-damaged"
    assert caught.value.details["problems"]


# ---- unknowns ----


def test_revisions_are_checked_alone_and_together() -> None:
    first = unknown()
    second = revised(first, {"status": "investigating"})
    other = unknown(
        question="And who else?", relations=[{"kind": "related-to", "unknown": unknown_id(first)}]
    )
    assert check(bundle(unknowns=[first, second, other])).holds
    assert check(bundle(unknowns=[other])).counts["missing"] == 1
    [gap] = check(bundle(unknowns=[second])).problems
    assert unknown_id(first) in gap.place
    fork = revised(first, {"status": "blocked"})
    assert check(bundle(unknowns=[first, second, fork])).problems[0].code == "revision-conflict"
    changed = bundle(unknowns=[first]).replace(b"calls", b"kills")
    assert check(changed).problems[0].place == "$.unknowns[0]"
    with pytest.raises(Exception, match="two revisions"):
        merged(bundle(unknowns=[first, second]), bundle(unknowns=[first, fork]))
    assert merged(bundle(unknowns=[first]), bundle(unknowns=[first, second])) == bundle(
        unknowns=[first, second]
    )


def test_verified_needs_a_record_that_is_there() -> None:
    support = page()
    verified = unknown(status="resolved", resolution="verified", supports=[record_id(support)])
    assert check(bundle(support, unknowns=[verified])).holds
    strict = unknown(
        status="resolved", resolution="verified", supports=[record_id(support)], required_authority="analyst"
    )
    assert not check(bundle(support, unknowns=[strict])).holds


def test_open_unknown_needs_question() -> None:
    with pytest.raises(UsageError):
        opened({"domain": "x"})
