"""Which unproven findings are worth telling: correct code has many that say nothing."""

from __future__ import annotations

import ast
import re
from typing import Final

from affidavit.runtime.typecheck.rules import keys, types
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.server import Finding

__all__ = ["is_noise"]

_NOISE: Final = frozenset({
    "redundant-condition", "no-matching-overload", "unresolved-global", "invalid-assignment", "invalid-return-type",
    "unknown-typed-dict-constructor-key", "invalid-parameter-default", "unsupported-operator", "not-subscriptable",
    "not-iterable", "invalid-method-override", "invalid-yield",
})  # fmt: skip
"""Findings about types that a script wrote or the checker guessed: nothing that happens when it runs."""


def is_noise(case: Case, finding: Finding, node: ast.expr | ast.keyword | None) -> bool:
    """Whether an unproven finding tells nothing."""
    if finding.rule == "invalid-argument-type":
        found = re.search(r"Expected `([^`]+)`, found `([^`]+)`", finding.message)
        return found is None or not types.disjoint(found[2], found[1], case.catalogue)
    if finding.rule == "invalid-typed-dict-key" and isinstance(node, ast.Constant):
        return keys.may_exist(case, str(node.value))
    return finding.rule in _NOISE
