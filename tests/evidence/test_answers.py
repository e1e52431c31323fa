"""Answers: a hundred true ones hold, a hundred changed ones do not, and each place is named."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from affidavit.errors import UsageError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.bundles.merging import OpenBundle
from affidavit.evidence.citations import read_citation
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Coverage, JsonValue, Record, Success
from affidavit.evidence.values import encode
from affidavit.evidence.verification import check_answer, check_envelope
from affidavit.evidence.verification.answer import envelope_of
from affidavit.evidence.verification.files import Lookups, check_answer_file, check_file, kind_of

from .bundles import COMPLETE, SCRIPT, answer, bundle, check, page
from .records import PARENT, observation

PARTIAL = Coverage(state="partial", selection="all files", examined=2, unknown=1)
WORDS = ["electron", "lodash", "worker", "ébène", "a\u0000b", "😀"]


class World:
    """Some records and answers about them, different for every seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        coverages = [COMPLETE, COMPLETE, PARTIAL, None]
        self.records = [
            observation(
                encode({"rows": self.rows(), "page": {"total": n}, "share": 0.5 + n, "raw": b"\x00" * n}),
                operation=f"things.page{n}/1",
                coverage=self.random.choice(coverages),
                confidence=self.random.choice(["observed", "derived"]),
            )
            for n in range(1, 4)
        ]
        # One whose result is kept apart.
        self.records.append(
            observation({"rows": self.rows(), "text": "x" * 70_000 + "needle"}, coverage=COMPLETE)
        )
        self.evidence = self.citations()
        value = encode({"n": self.random.randint(0, 9), "share": 1.0, "big": 2**70, "words": WORDS})
        self.answer = answer(self.evidence, self.records, outcome=Success(result=value))

    def rows(self) -> list[dict[str, Any]]:
        count = self.random.randint(2, 6)
        return [
            {"name": self.random.choice(WORDS), "sites": self.random.randint(1, 3), "kind": "ab"[n % 2]}
            for n in range(count)
        ]

    def citations(self) -> list[Any]:
        found: list[Any] = []
        for record in self.records:
            assert isinstance(record.outcome, Success)
            result: Any = record.outcome.result
            rows = result["rows"]
            at = self.random.randrange(len(rows))
            name = record_id(record)
            kind = self.random.choice("ab")
            found += [
                f"{name}#/rows/{at}",
                {"evidence": f"{name}#/rows/{at}/sites", "equals": rows[at]["sites"]},
                {"evidence": f"{name}#/rows", "count": len(rows)},
                {
                    "evidence": f"{name}#/rows",
                    "count": sum(r["kind"] == kind for r in rows),
                    "where": {"kind": kind},
                },
                {"evidence": f"{name}#/rows/{at}", "quote": rows[at]["name"]},
            ]
        found.append({"evidence": record_id(self.records[-1]), "quote": "needle"})
        return found

    def bundle(self, made: Record | None = None) -> bytes:
        return bundle(*self.records, made or self.answer, scripts=[SCRIPT])

    def lookup(self, made: Record | None = None) -> Any:
        return OpenBundle.read("it", io.BytesIO(self.bundle(made))).lookup

    def envelope(self) -> Any:
        shown = envelope_of(record_id(self.answer), self.answer, self.lookup())
        return json.loads(json.dumps(shown))


@pytest.mark.parametrize("seed", range(100))
def test_true_answers_hold(seed: int) -> None:
    world = World(seed)
    assert check(world.bundle()).problems == ()
    assert check_envelope(world.envelope(), world.lookup()) == []


def cited(world: World, key: str) -> Any:
    """A citation of the answer that states this."""
    stating: list[Any] = [it for it in world.evidence if isinstance(it, dict) and key in it]
    return world.random.choice(stating)


def wrong_row(world: World) -> None:
    at = world.random.choice([n for n, it in enumerate(world.evidence) if isinstance(it, str)])
    world.evidence[at] = world.evidence[at].rpartition("/")[0] + f"/{world.random.randint(6, 99)}"


def wrong_value(world: World) -> None:
    cited(world, "equals")["equals"] += world.random.randint(1, 3)


def wrong_count(world: World) -> None:
    it = cited(world, "count")
    it["count"] = it["count"] + 1 if world.random.random() < 0.5 or not it["count"] else it["count"] - 1


def wrong_filter(world: World) -> None:
    it = cited(world, "where")
    it["where"] = {"kind": "c"} if it["count"] else {}


def wrong_quote(world: World) -> None:
    it = cited(world, "quote")
    it["quote"] = it["quote"][:-1] + "\u2603"


def wrong_id(world: World) -> None:
    at = world.random.randrange(len(world.evidence))
    digit = world.random.choice("0123456789abcdef")
    text = json.dumps(world.evidence[at])
    old = read_citation(world.evidence[at]).evidence_id
    place = world.random.randrange(4, len(old))
    new = old[:place] + (digit if digit != old[place] else "0" if digit != "0" else "1") + old[place + 1 :]
    world.evidence[at] = json.loads(text.replace(old, new))


MUTATIONS: list[tuple[str, Callable[[World], None]]] = [
    ("row", wrong_row),
    ("value", wrong_value),
    ("count", wrong_count),
    ("filter", wrong_filter),
    ("quotation", wrong_quote),
    ("id", wrong_id),
]


@pytest.mark.parametrize("seed", range(100))
def test_changed_answers_with_an_id_of_their_own_are_found(seed: int) -> None:
    """Well-formed lies: the answer is hashed again, so only its citations betray it."""
    name, change = MUTATIONS[seed % len(MUTATIONS)]
    world = World(seed)
    before = copy.deepcopy(world.evidence)
    change(world)
    assert world.evidence != before, name
    made = replace(world.answer, parameters={**parameters(world.answer), "evidence": world.evidence})
    problems = check(world.bundle(made)).problems
    assert problems
    [changed] = [n for n, (old, new) in enumerate(zip(before, world.evidence, strict=True)) if old != new]
    assert problems[0].place == f"$.answers ({record_id(made)}).evidence[{changed}]"


CLAIMS: dict[str, Callable[[Record], Record]] = {
    "coverage": lambda it: replace(it, coverage=replace(it.coverage or COMPLETE, state="complete")),
    "records": lambda it: replace(it, coverage=replace(it.coverage or COMPLETE, examined=9)),
    "incomplete": lambda it: replace(it, coverage=replace(it.coverage or COMPLETE, unknown=0)),
    "no coverage": lambda it: replace(it, coverage=None),
    "confidence": lambda it: replace(it, confidence="observed"),
    "parents": lambda it: replace(it, parents=it.parents[1:]),
    "foreign parents": lambda it: replace(it, parents=(*it.parents, PARENT)),
    "no parameters": lambda it: replace(it, parameters=None),
    "status": lambda it: replace(it, parameters={**parameters(it), "status": "certain"}),
    "extra": lambda it: replace(it, parameters={**parameters(it), "proof": True}),
    "kind": lambda it: replace(it, kind="observation", script=None),
}


def parameters(record: Record) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", record.parameters)


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_beyond_what_is_cited_are_found(claim: str) -> None:
    records = [page(coverage=PARTIAL), observation(confidence="inferred")]
    true = answer([record_id(it) for it in records], records)
    made = CLAIMS[claim](true)
    lookup = OpenBundle.read("it", io.BytesIO(bundle(*records, true, scripts=[SCRIPT]))).lookup
    assert check_answer(record_id(true), true, lookup) == []
    problems = check_answer(record_id(made), made, lookup)
    assert problems
    assert problems[0].code == "answer-invalid"


def test_a_narrower_claim_is_fine() -> None:
    cited_page = page()
    made = answer([record_id(cited_page)], [cited_page])
    assert made.coverage is not None
    for state in ("partial", "unknown"):
        assert check(
            bundle(cited_page, replace(made, coverage=replace(made.coverage, state=state)), scripts=[SCRIPT])
        ).holds


def test_the_script_in_a_bundle_has_the_digest_that_the_answer_names() -> None:
    cited_page = page()
    made = answer([record_id(cited_page)], [cited_page])
    assert check(bundle(cited_page, made, scripts=[SCRIPT])).notes == ()
    without = check(bundle(cited_page, made))
    assert without.holds
    assert "script" in without.notes[0]
    other = check(bundle(cited_page, made, scripts=[b"other"])).problems
    assert other[0].place.startswith("$.blobs[sha256:")


def test_every_field_of_an_envelope_counts() -> None:
    world = World(7)
    envelope = world.envelope()
    changes: dict[str, Any] = {
        "status": "partial",
        "value": {"n": 1},
        "evidence": envelope["evidence"][1:],
        "implicit": True,
        "derivation": "guessed",
        "coverage": {**envelope["coverage"], "state": "complete", "incomplete": 0, "cited": 9},
        "missing": ["x"],
        "reason": "x",
        "quality_warnings": ["x"],
        "script": "sha256:" + "00" * 32,
        "evidence_id": PARENT,
    }
    assert set(changes) == set(envelope)
    for name, value in changes.items():
        assert envelope[name] != value, name
        problems = check_envelope(envelope | {name: value}, world.lookup())
        assert any(name in problem.place for problem in problems), (name, problems)
    malformed: list[Any] = [
        {key: value for key, value in envelope.items() if key != "reason"},
        envelope | {"extra": 1},
        envelope | {"evidence_id": None},
        envelope | {"evidence_id": envelope["evidence_id"][:20]},
        [],
    ]
    for wrong in malformed:
        assert check_envelope(wrong, world.lookup())


@pytest.mark.parametrize("seed", range(3))
def test_every_byte_of_an_answer_counts(seed: int) -> None:
    world = World(seed)
    lookup = world.lookup()
    data = json.dumps(world.envelope(), separators=(",", ":"), ensure_ascii=bool(seed)).encode()
    assert check_answer_file(data, lookup).holds
    flips = random.Random(seed)
    for offset in range(len(data)):
        changed = data[:offset] + bytes([data[offset] ^ flips.randint(1, 255)]) + data[offset + 1 :]
        if same(changed, data):
            continue
        report = check_answer_file(changed, lookup)
        assert not report.holds, (offset, changed[offset - 20 : offset + 20])
        assert report.problems[0].place.startswith("$")


def same(one: bytes, other: bytes) -> bool:
    """Whether both say the same: an escape in lower or upper case, a space instead of another."""
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def test_documents_of_a_run_and_files_of_other_kinds() -> None:
    world = World(1)
    document = json.dumps({"run_id": "run_1", "answer": world.envelope(), "value": 3}).encode()
    report = check_answer_file(document, world.lookup())
    assert report.holds
    assert report.notes
    assert not check_answer_file(document, Lookups([])).holds
    with pytest.raises(UsageError, match="not the records"):
        check_answer_file(document, None)
    for data in (b"{}", b"[]", b"", b"\xff", b'{"answer":null}', b'{"a":1,"a":2}', b"3"):
        assert not check_answer_file(data, world.lookup()).holds


def test_kinds_are_told_by_content() -> None:
    made = bundle(page())
    line = b'{"n":0,"prev":"' + b"0" * 64 + b'","journal":{}'
    for data, name, kind in (
        (made, "x", "bundle"),
        (b"|" + made[1:], "x.jsonl", "bundle"),
        (line, "x", "journal"),
        (b"\0" + line, "x.jsonl", "journal"),
        (b'{"answer":null}', "x.json", "answer"),
        (b"", "x", "answer"),
    ):
        assert kind_of(io.BytesIO(data), name) == kind
    assert check_file(io.BytesIO(made), "bundle", None, Bounds()).kind == "bundle"
