"""The promises of README and docs and the tests that hold them name each other."""

import ast
import re
from pathlib import Path

from tests.claims import CLAIMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKED = re.compile(r"^(?:[-*] )?(.+?)\s*<!-- claim: ([a-z0-9-]+) -->", re.MULTILINE)


def marked() -> dict[str, tuple[str, str]]:
    """Marker id -> (page, sentence)."""
    found: dict[str, tuple[str, str]] = {}
    for page in PAGES:
        for match in MARKED.finditer(page.read_text("utf-8")):
            assert match[2] not in found, f"{match[2]} is marked twice"
            found[match[2]] = (str(page.relative_to(ROOT)), match[1])
    return found


def names_of(path: Path) -> set[str]:
    functions = (
        node for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )  # fmt: skip
    return {function.name for function in functions if function.name.startswith("test")}


def test_every_marked_sentence_is_a_claim_with_the_same_words() -> None:
    assert marked() == {claim.id: (claim.page, claim.sentence) for claim in CLAIMS}


def test_every_claim_names_tests_that_exist() -> None:
    missing: list[str] = []
    for claim in CLAIMS:
        if not claim.tests:
            missing.append(f"{claim.id} names no test")
        for test in claim.tests:
            path, _, name = test.partition("::")
            file = ROOT / "tests" / path
            if not file.is_file() or name not in names_of(file):
                missing.append(f"{claim.id}: {test}")
    assert missing == []
