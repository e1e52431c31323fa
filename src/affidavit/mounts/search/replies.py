"""What every search returns, whatever it searched."""

from __future__ import annotations

from typing import Generic, TypeVar

from typing_extensions import TypedDict

from affidavit.facts.page import CoverageDict, LimitationDict, Source

__all__ = ["Hit", "Hits"]

Row = TypeVar("Row")


class Hit(TypedDict, Generic[Row]):
    """One thing that was found: its place in the ranking from 1, its score (more is better), and its row."""

    rank: int
    score: float
    row: Row


class Hits(TypedDict, Generic[Row]):
    """What a search found, best first.

    `terms` are the words that were looked for; what shares none of them is not found. `matched` counts all that share
    one, or that were compared.
    """

    hits: list[Hit[Row]]
    matched: int
    terms: list[str]
    evidence_id: str
    source: Source
    source_coverage: CoverageDict
    limitations: list[LimitationDict]
