"""The product and the verifier that shares nothing with it say the same of every lie, however well it is made."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from affidavit.errors import VerificationError
from affidavit.evidence.verification import check_bundle
from affidavit.store.journal import verify
from tests.vectors.check_vectors import CHECKS
from tests.vectors.mutations import mutated_bundle, mutated_journal

HERE = Path(__file__).parent
EACH = 250  # of each kind; more by hand: python -m tests.vectors.test_differential 20000
WRONG = CHECKS["WrongError"]


def said_of_bundle(data: bytes) -> tuple[str, str]:
    """What each of the two finds first; empty where it holds."""
    try:
        problems = check_bundle(io.BytesIO(data)).problems
        ours = f"{problems[0].place}: {problems[0].message}" if problems else ""
    except VerificationError as error:
        ours = error.message
    return ours, _theirs("check_bundle", data)


def said_of_journal(path: Path, data: bytes) -> tuple[str, str]:
    path.write_bytes(data)
    try:
        problems = verify(path).problems
        ours = problems[0].message if problems else ""
    except VerificationError as error:
        ours = error.message
    return ours, _theirs("check_journal", [data])


def _theirs(check: str, data: Any) -> str:
    try:
        CHECKS[check](data)
    except WRONG as error:
        return str(error)
    return ""


def valid(name: str) -> list[bytes]:
    vectors = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return [it[name].encode() for it in vectors["valid"] if len(it[name]) < 200_000]


def bundles(count: int) -> Iterator[tuple[str, str, str]]:
    chance, good = random.Random(1), [it for it in valid("bundle") if b'"records":[]' not in it]
    for _ in range(count):
        if (lie := mutated_bundle(chance, chance.choice(good))) is not None:
            yield (lie[0], *said_of_bundle(lie[1]))


def journals(count: int, path: Path) -> Iterator[tuple[str, str, str]]:
    chance, good = random.Random(2), valid("journal")
    for _ in range(count):
        if (lie := mutated_journal(chance, chance.choice(good))) is not None:
            yield (lie[0], *said_of_journal(path, lie[1]))


def agree(found: Iterator[tuple[str, str, str]]) -> tuple[int, int]:
    """See that both agree; how many held, and how many did not."""
    counts = [0, 0]
    for lie, ours, theirs in found:
        assert bool(ours) == bool(theirs), (lie, ours, theirs)
        counts[bool(ours)] += 1
    return counts[0], counts[1]


def test_of_bundles_and_answers() -> None:
    held, refused = agree(bundles(EACH))
    assert held > 20
    assert refused > EACH // 2


def test_of_journals(tmp_path: Path) -> None:
    held, refused = agree(journals(EACH, tmp_path / "vector.none.jsonl"))
    assert held > 20
    assert refused > EACH // 2


if __name__ == "__main__":
    import tempfile

    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        different, held = 0, 0
        for lie in [*bundles(count), *journals(count, Path(folder) / "vector.none.jsonl")]:
            held += not lie[1]
            if bool(lie[1]) != bool(lie[2]):
                different += 1
                sys.stdout.write(f"{lie}\n")
        sys.stdout.write(f"{different} differ, {held} hold\n")
    sys.exit(bool(different))
