"""The frozen vectors, checked by the product and by a verifier that shares nothing with it."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.canonical import canonical, digest, parse
from affidavit.evidence.identity import body_id, open_sealed, seal
from affidavit.evidence.values import check_encoded, decode, encode
from affidavit.store.journal import verify as verify_journal
from tests.evidence.bundles import check
from tests.evidence.strategies import VALUES
from tests.evidence.test_bundle import RECORDS, first_place, small
from tests.store.journal.samples import written
from tests.vectors.check_vectors import CHECKS

HERE = Path(__file__).parent
VERIFIER = HERE.parents[1] / "docs" / "verify_independently.py"
PLAIN_PYTHON = [sys.executable, "-I", "-S"]

# Frozen for ever: identity profile 1 is what these vectors say. A change needs a second profile and its own vectors.
COUNTS = {
    "canonical": {"valid": 48, "invalid": 23},
    "values": {"valid": 40, "invalid": 37},
    "identity": {"records": 8, "invalid": 11},
    "encodings": {"valid": 33, "invalid": 54},
    "bundle": {"valid": 6, "invalid": 40},
    "journal": {"valid": 5, "invalid": 36},
}


# The bytes of those that define identity profile 1.
FROZEN = {
    "canonical": "sha256:d42d6a55fae948a3f0ed4027135caacf4e1ff4fe7a9bff11071c3645c5213f7b",
    "values": "sha256:15ca6c030919c6c384208d3b5a1f91cea373957a016a59b2bea457125848de30",
    "identity": "sha256:48e58cc4356bd41484600253d526c9f5f2684bf4a40387d932fda80a3ea8fe59",
}


def load(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


def test_no_vector_was_lost() -> None:
    found = {
        name: {part: len(items) for part, items in load(name).items() if part != "about"} for name in COUNTS
    }
    assert found == COUNTS
    assert {name: digest((HERE / f"{name}.json").read_bytes()) for name in FROZEN} == FROZEN


def test_canonical_forms() -> None:
    vectors = load("canonical")
    for it in vectors["valid"]:
        assert canonical(parse(it["json"])).decode() == it["canonical"], it
    for it in vectors["invalid"]:
        with pytest.raises(UsageError):
            canonical(parse(it["json"]))


def test_values() -> None:
    vectors = load("values")
    for it in vectors["valid"]:
        assert canonical(it["json"]).decode() == it["canonical"], it
        value = decode(it["json"])
        assert encode(value) == it["json"], it
        assert ascii(value) == it["python"], it
    for it in vectors["invalid"]:
        with pytest.raises(UsageError):
            decode(it)


def test_a_value_has_one_encoding() -> None:
    vectors = load("encodings")
    for it in vectors["valid"]:
        check_encoded(it)
        assert encode(decode(it)) == it
    for it in vectors["invalid"]:
        with pytest.raises(UsageError):
            check_encoded(it)


def test_identity_profile_1() -> None:
    vectors = load("identity")
    for it in vectors["records"]:
        body = it["canonical"].encode()
        assert canonical(it["body"], max_depth=120) == body, it["name"]
        assert body_id(body) == it["id"], it["name"]
        again = seal(open_sealed(body, it["notes"]))
        assert (again.id, again.body, again.notes) == (it["id"], body, it["notes"]), it["name"]
    for it in vectors["invalid"]:
        body = canonical(it["body"], max_depth=120)
        with pytest.raises(AffidavitError):
            open_or_refuse(body)


def open_or_refuse(body: bytes) -> None:
    """Open a body as a bundle does: it must also be spelt as the product spells it."""
    if seal(open_sealed(body, None)).body != body:
        raise UsageError("value-unsupported", "spelt otherwise")


def test_bundles() -> None:
    vectors = load("bundle")
    for it in vectors["valid"]:
        assert check(it["bundle"].encode()).problems == (), it["name"]
    for it in vectors["invalid"]:
        assert first_place(it["bundle"].encode()).startswith("$"), it["name"]


def test_journals(tmp_path: Path) -> None:
    vectors = load("journal")
    path = tmp_path / "session.none.jsonl"
    for it in vectors["valid"]:
        path.write_bytes(it["journal"].encode())
        assert verify_journal(path).status == "holds", it["name"]
    for it in vectors["invalid"]:
        path.write_bytes(it["journal"].encode())
        try:
            status = verify_journal(path).status
        except AffidavitError as error:
            status = error.code
        assert status != "holds", it["name"]


# ---- the verifier that shares nothing with the product ----


def test_the_independent_verifier_holds_all_vectors() -> None:
    done = subprocess.run(
        [*PLAIN_PYTHON, str(HERE / "check_vectors.py")], capture_output=True, text=True, check=True
    )
    total = sum(count for parts in COUNTS.values() for count in parts.values())
    assert done.stdout == f"{total} vectors hold\n"


def test_the_independent_verifier_finds_every_kind_of_change(tmp_path: Path) -> None:
    data = small()
    journal = load("journal")["valid"][0]["journal"].encode()
    good = {"bundle.json": data, "journal.jsonl": journal}
    bad: dict[str, bytes] = {}
    for name, whole in good.items():
        for at in range(0, len(whole), 37):
            bad[f"{at}-{name}"] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for name, content in (good | bad).items():
        (tmp_path / name).write_bytes(content)
    assert run_verifier(tmp_path, list(good)) == dict.fromkeys(good, True)
    assert run_verifier(tmp_path, list(bad)) == dict.fromkeys(bad, False)


def run_verifier(folder: Path, names: list[str]) -> dict[str, bool]:
    """What the verifier says of each file."""
    done = subprocess.run([*PLAIN_PYTHON, str(VERIFIER), *names], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    verdicts: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, _, verdicts[name] = line.partition(": ")
    assert done.returncode == (0 if all(it.startswith("holds") for it in verdicts.values()) else 4)
    return {name: verdict.startswith("holds") for name, verdict in verdicts.items()}


@settings(deadline=None)
@given(VALUES)
def test_both_agree_on_any_value(value: Any) -> None:
    json_value = encode(value)
    assert CHECKS["canonical"](json_value).encode() == canonical(json_value)
    CHECKS["check_value"](json_value)


@settings(deadline=None)
@given(RECORDS)
def test_both_agree_on_any_record(record: Any) -> None:
    sealed = seal(record)
    assert CHECKS["record_id"](sealed.body) == sealed.id
    CHECKS["check_record"](parse(sealed.body), sealed.notes)


TAGS = ("$int", "$float", "$bytes", "$text", "$datetime", "$date", "$decimal", "$uuid")


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(TAGS),
    st.text("0123456789", min_size=1, max_size=24)
    | st.text("0123456789+-.:TZWenaif EAx=/_\n\u0661", max_size=36)
    | st.datetimes().map(str)
    | st.dates().map(str)
    | st.decimals().map(str)
    | st.floats().map(repr)
    | st.uuids().map(str)
    | st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode()),
)
def test_both_agree_on_any_tag(tag: str, text: str) -> None:
    for value in ({tag: text}, [{tag: text, "beside": 1}], {f"$text:{text}": 1}):
        try:
            check_encoded(value)
            ours = True
        except UsageError:
            ours = False
        try:
            CHECKS["check_value"](value)
            theirs = True
        except CHECKS["WrongError"]:
            theirs = False
        assert ours == theirs, value


def test_a_packed_bundle_is_to_be_unpacked_first(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes(20)
    sealed = frame + b"\x50\x2a\x4d\x18\x20\0\0\0" + hashlib.sha256(frame).digest()
    for content, said in ((sealed, "unpack it first"), (frame, "its seal"), (sealed[:-1] + b"x", "its seal")):
        (tmp_path / "a.json.zst").write_bytes(content)
        done = subprocess.run(
            [*PLAIN_PYTHON, str(VERIFIER), str(tmp_path / "a.json.zst")], capture_output=True, text=True
        )
        assert (done.returncode, said in done.stdout) == (4, True)


def test_parts_of_a_journal_are_read_together(tmp_path: Path) -> None:
    first = written(tmp_path, 250, part_bytes=64 << 10)
    folder, parts = first.parent, sorted(it.name for it in first.parent.iterdir())
    assert len(parts) >= 3
    assert run_verifier(folder, parts) == dict.fromkeys(parts, True)
    (folder / parts[-1]).unlink()
    assert run_verifier(folder, parts[:-1]) == dict.fromkeys(parts[:-1], False)
    assert verify_journal(first).status != "holds"
