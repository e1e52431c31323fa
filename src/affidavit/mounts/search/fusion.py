"""One ranking of several: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

__all__ = ["RRF_K", "fused"]

RRF_K: Final = 60
"""The constant of the method: how little the first places differ."""

Item = TypeVar("Item", bound=Hashable)


def fused(rankings: Sequence[Sequence[Item]], limit: int) -> list[tuple[Item, float]]:
    """The best `limit` items over all rankings, each with its score, best first.

    An item's score is the sum of `1 / (60 + rank)` over the rankings that it is in (Cormack, Clarke and Büttcher:
    Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009). Items of equal
    score stand in the order in which the rankings first name them.

    >>> fused([["a", "b"], ["b", "c"]], 2)
    [('b', 0.032522), ('a', 0.016393)]
    """
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (RRF_K + rank)
    best = sorted(scores.items(), key=lambda scored: -scored[1])[:limit]
    return [(item, round(score, 6)) for item, score in best]
