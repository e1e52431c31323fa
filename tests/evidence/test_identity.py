"""Identity profile 1: what is in it, what is not, and that it never changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given

from affidavit.errors import UsageError
from affidavit.evidence.canonical import CanonicalJson, canonical, digest, freeze
from affidavit.evidence.identity import (
    INLINE_BYTES,
    from_json,
    open_sealed,
    projection,
    record_id,
    seal,
    to_json,
)
from affidavit.evidence.record import (
    BlobRef,
    Coverage,
    Failure,
    Limitation,
    Producer,
    Record,
    Subject,
    Success,
    Unfinished,
)
from affidavit.evidence.values import encode

from .records import ARTIFACT, PARENT, full, observation
from .strategies import VALUES

FAILURE = Failure(code="tool-failed", details={"type": "KeyError"}, message="no such city", hint="try Paris")
DERIVATION = full(
    kind="derivation", script="sha256:" + "12" * 32, confidence="derived", authority="inference"
)

# Frozen: ids in every workspace, bundle and report depend on these. A change here is a new profile.
VECTORS: dict[str, tuple[Record, str]] = {
    "small": (observation(), "ev1_79d43279daf90ecd37e072bdb3344d595ba78c1108955b9db802b34e9ffefe1f"),
    "full": (full(), "ev1_f39abf19de4914a424dca5222d3afc88b77ac003bcf662393b1f90151c49c979"),
    "failure": (
        observation(outcome=FAILURE),
        "ev1_5ba4156173da34f9481c3a7c1b112cbf7779871717af848ada0d837d2af93628",
    ),
    "unfinished": (
        observation(outcome=Unfinished()),
        "ev1_752b476ecea3b3f0fcddedee8659cf823670fc8345453a49b3291401498450f4",
    ),
    "derivation": (DERIVATION, "ev1_3feddc48842cb4a322505c3151e56852202f55d1778f8d49df19a6daa666bfb2"),
    "large": (
        observation(["x" * 70_000]),
        "ev1_28ac7213f9bac547ca53ff238b3265a1b29aa0e6b24742df2518a63393817ab6",
    ),
    "values": (
        observation(encode({"big": 2**64, "float": 1.0, "bytes": b"\x00", "$k": "\ud800", "€": "😀"})),
        "ev1_262d4dc6bd643513f3b36694d093113b141fde7ee28c4c891a72e03dd008a821",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_frozen_vectors(name: str) -> None:
    record, expected = VECTORS[name]
    assert record_id(record) == expected


def test_the_id_is_what_the_profile_says() -> None:
    """Computed without this product: plain sorted JSON is canonical for such a record."""
    text = json.dumps(
        {
            "kind": "observation",
            "operation": "javascript.modules.page/1",
            "parameters": {"limit": 64, "where": {"path": "main.js"}},
            "outcome": {"result": {"rows": []}},
            "subject": None,
            "parents": [],
            "producer": {"name": "javascript", "version": "1"},
            "authority": "static-analysis",
            "confidence": "observed",
            "coverage": None,
            "limitations": [],
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    assert record_id(observation()) == "ev1_" + sha256(b"affidavit/evidence/1\n" + text.encode()).hexdigest()


CHANGES: dict[str, Callable[[Record], Record]] = {
    "kind": lambda it: replace(it, kind="assertion"),
    "operation": lambda it: replace(it, operation="javascript.modules.page/2"),
    "parameters": lambda it: replace(it, parameters={"limit": 65}),
    "result": lambda it: replace(it, outcome=Success(result={"rows": [1]})),
    "result 1 and true": lambda it: replace(it, outcome=Success(result={"rows": [True]})),
    "failed": lambda it: replace(it, outcome=FAILURE),
    "unfinished": lambda it: replace(it, outcome=Unfinished()),
    "producer": lambda it: replace(it, producer=Producer(name="javascript", version="2")),
    "authority": lambda it: replace(it, authority="inference"),
    "confidence": lambda it: replace(it, confidence="derived"),
    "subject": lambda it: replace(it, subject=None),
    "format": lambda it: replace(it, subject=Subject(digest=ARTIFACT, format="folder")),
    "parents": lambda it: replace(it, parents=()),
    "coverage": lambda it: replace(it, coverage=None),
    "coverage counts": lambda it: replace(
        it, coverage=Coverage(state="partial", selection="all files", examined=3, omitted=1, unknown=2)
    ),
    "limitation code": lambda it: replace(it, limitations=(Limitation(code="encoding", place="b.js:3"),)),
    "limitations": lambda it: replace(it, limitations=it.limitations[:1]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_everything_in_the_projection_changes_the_id(name: str) -> None:
    assert record_id(CHANGES[name](full())) != record_id(full())


def test_all_changes_give_different_ids() -> None:
    assert len({record_id(change(full())) for change in CHANGES.values()}) == len(CHANGES)


def test_words_and_order_do_not_change_the_id() -> None:
    record = full(parents=(PARENT, "ev1_" + "01" * 32))
    said_otherwise = full(
        parents=("ev1_" + "01" * 32, PARENT, PARENT),
        limitations=(
            Limitation(code="encoding", place="a.js", message="other words"),
            Limitation(code="parse-error", place="b.js:3"),
            Limitation(code="parse-error", place="b.js:3", message="said twice"),
        ),
    )
    assert record_id(record) == record_id(said_otherwise)
    failed = observation(outcome=FAILURE)
    assert record_id(failed) == record_id(observation(outcome=replace(FAILURE, message="", hint="x")))
    assert record_id(failed) != record_id(observation(outcome=replace(FAILURE, details={})))
    assert record_id(failed) != record_id(observation(outcome=replace(FAILURE, code="timed-out")))


def test_the_script_counts_in_derivations_only() -> None:
    assert record_id(DERIVATION) != record_id(replace(DERIVATION, script=None))
    assert record_id(full()) == record_id(full(script="sha256:" + "12" * 32))


@given(VALUES)
def test_the_id_does_not_depend_on_key_order_or_form(value: Any) -> None:
    json_value = encode({"a": value, "b": 1, "c": [value]})
    shuffled = {key: json_value[key] for key in ("c", "a", "b")}
    ids = {
        record_id(observation(json_value, parameters={"x": json_value})),
        record_id(observation(shuffled, parameters={"x": shuffled})),
        record_id(
            observation(
                CanonicalJson(canonical(shuffled)), parameters=CanonicalJson(canonical({"x": shuffled}))
            )
        ),
    }
    assert len(ids) == 1


@given(VALUES)
def test_what_is_written_reads_back_with_the_same_id(value: Any) -> None:
    record = full(parameters=encode({"v": value}), outcome=Success(result=encode(value)))
    assert from_json(to_json(record)) == record
    back = from_json(projection(record))
    assert record_id(back) == record_id(record)
    sealed = seal(record)
    assert record_id(open_sealed(sealed.body, sealed.notes)) == sealed.id


@pytest.mark.parametrize(
    "record", [full(), DERIVATION, observation(outcome=FAILURE), observation(outcome=Unfinished())]
)
def test_opening_gives_back_words_too(record: Record) -> None:
    sealed = seal(record)
    opened = open_sealed(sealed.body, sealed.notes)
    assert opened == replace(
        record, limitations=tuple(sorted(record.limitations, key=lambda it: (it.code, it.place)))
    )
    assert from_json(to_json(record)) == record


def test_names_and_words_that_are_not_utf_8() -> None:
    odd = "na\udcefve.js"
    record = full(limitations=(Limitation(code="encoding", place=odd, message="odd \ud800"),))
    assert record_id(record) != record_id(full(limitations=(Limitation(code="encoding", place="naive.js"),)))
    for back in (from_json(to_json(record)), open_sealed(seal(record).body, seal(record).notes)):
        assert back.limitations == (Limitation(code="encoding", place=odd, message="odd ?"),)
        assert record_id(back) == record_id(record)
    failed = observation(outcome=replace(FAILURE, message="\ud800", hint="\udfff"))
    assert record_id(failed) == record_id(observation(outcome=FAILURE))
    assert from_json(to_json(failed)).outcome == replace(FAILURE, message="?", hint="?")


def result_of(size: int) -> str:
    """Text whose canonical form has `size` bytes."""
    return "x" * (size - 2)


def test_the_id_does_not_depend_on_who_spilled_a_large_result() -> None:
    text = result_of(INLINE_BYTES + 1)
    data = canonical(text)
    ids = {
        record_id(observation(text)),
        record_id(observation(freeze(text))),
        record_id(observation(BlobRef(digest=digest(data), size=len(data)))),
    }
    assert len(ids) == 1
    assert seal(observation(text)).spilled == data
    assert projection(observation(text))["outcome"] == {"blob": {"digest": digest(data), "size": len(data)}}
    assert to_json(observation(text))["outcome"] == {"result": text}


def test_a_result_at_the_bound_stands_inline() -> None:
    text = result_of(INLINE_BYTES)
    sealed = seal(observation(text))
    assert sealed.spilled is None
    assert projection(observation(text))["outcome"] == {"result": text}
    small = BlobRef(digest=digest(canonical(text)), size=INLINE_BYTES)
    with pytest.raises(UsageError, match=r"outcome\.blob\.size"):
        record_id(observation(small))


def test_deep_values_that_encode_can_be_recorded() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    record = observation(encode(value), parameters=encode(value))
    assert from_json(to_json(record)) == record


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"kind": "guess"}, "$.kind"),
        ({"authority": "hearsay"}, "$.authority"),
        ({"confidence": "sure"}, "$.confidence"),
        ({"subject": Subject(digest="abc", format="asar")}, "$.subject.digest"),
        ({"parents": (PARENT, "ev1_xyz")}, "$.parents[1]"),
        ({"coverage": Coverage(state="all", selection="", examined=0)}, "$.coverage.state"),  # pyright: ignore[reportArgumentType]
        ({"parameters": {"n": float("nan")}}, "$.parameters.n"),
        ({"parameters": {"n": 2**53}}, "$.parameters.n"),
        ({"operation": "\ud800"}, "$.operation"),
        ({"outcome": Success(result=BlobRef(digest="x", size=10**6))}, "$.outcome.blob.digest"),
    ],
)
def test_a_record_that_could_not_be_read_back_is_refused(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(UsageError) as caught:
        record_id(full(**changes))
    assert caught.value.details["path"] == path


def spoil(path: str, value: Any) -> Any:
    document = to_json(full())
    at = document
    *way, last = path.split(".")
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "guess"),
        ("kind", ["observation"]),
        ("operation", 1),
        ("operation", ...),
        ("outcome", {}),
        ("outcome", {"result": 1, "blob": 2}),
        ("outcome", {"maybe": 1}),
        ("outcome", {"unfinished": False}),
        ("outcome", {"blob": {"digest": ARTIFACT, "size": -1}}),
        ("outcome", {"blob": {"digest": ARTIFACT, "size": True}}),
        ("outcome", {"blob": {"digest": "sha256:x", "size": 10**6}}),
        ("outcome", {"failure": {"code": "x", "details": []}}),
        ("parents", "ev1_"),
        ("parents", [1]),
        ("parents", ["ev1_x"]),
        ("producer", None),
        ("producer.version", 1),
        ("subject.digest", "sha256:"),
        ("coverage.examined", 1.0),
        ("coverage.bounds", {"x": "y"}),
        ("limitations.0.place", None),
        ("limitations.0.place", {"$bytes": "aGk="}),
        ("limitations.0.place", {"$text": "YQ=="}),
        ("id", "ev1_x"),
        ("script", 5),
    ],
)
def test_foreign_documents_are_read_strictly(path: str, value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        from_json(spoil(path, value))
    assert caught.value.code == "value-unsupported"
    assert caught.value.details["path"].startswith("$")


@pytest.mark.parametrize("document", [None, [], "x", 1, {}])
def test_what_is_no_record_is_refused(document: Any) -> None:
    with pytest.raises(UsageError):
        from_json(document)
