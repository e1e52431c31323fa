"""Graphs of the shapes that control flow has, and questions about them: the same for every contestant."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A graph of `blocks` blocks whose edges are pairs of numbers, in native order, and four questions about it."""

    title: str
    blocks: int
    edges: list[tuple[int, int]]
    questions: list[dict[str, Any]]


def shapes() -> list[Shape]:
    return [
        _interpreter(),
        _bounded("12,000 blocks, 50,000 edges at random, 1,000 avoided", None),
        _bounded("the same sizes, edges to near blocks", 30.0),
        _chain(),
    ]


def _interpreter() -> Shape:
    """A loop around one large switch, as an interpreter's: 187 entries to 154 cases, most of them short."""
    chance = random.Random(SEED)
    blocks = 1_916
    cases = sorted(chance.sample(range(40, blocks - 20), 154))
    edges = [(at, at + 1) for at in range(blocks - 1)]
    edges += [(10, chance.choice(cases)) for _ in range(187 - len(cases))] + [(10, case) for case in cases]
    while len(edges) < 3_164:
        at = chance.randrange(blocks)
        far = chance.random()
        edges.append(
            (at, 5 if far < 0.1 else blocks - 1 if far < 0.15 else min(blocks - 1, at + chance.randrange(40)))
        )
    questions = [
        {"start": 0, "goal": blocks - 1, "avoid": []},
        {"start": 0, "goal": cases[100], "avoid": []},
        {"start": cases[20], "goal": blocks - 1, "avoid": [cases[21]]},
        {"start": 0, "goal": cases[100], "avoid": [cases[99], cases[98]]},
    ]
    return Shape(
        title="1,916 blocks, 3,164 edges, as an interpreter", blocks=blocks, edges=edges, questions=questions
    )


def _bounded(title: str, near: float | None) -> Shape:
    chance = random.Random(SEED)
    blocks = 12_000
    edges = [(at, at + 1) for at in range(blocks - 1)]
    while len(edges) < 50_000:
        at = chance.randrange(blocks)
        to = chance.randrange(blocks) if near is None else (at + round(chance.gauss(0, near))) % blocks
        edges.append((at, to))
    questions: list[dict[str, Any]] = []
    for _ in range(4):
        start, goal, *avoid = chance.sample(range(blocks), 1_002)
        questions.append({"start": start, "goal": goal, "avoid": avoid})
    return Shape(title=title, blocks=blocks, edges=edges, questions=questions)


def _chain() -> Shape:
    blocks = 12_000
    questions = [{"start": at, "goal": blocks - 1, "avoid": []} for at in range(4)]
    edges = [(at, at + 1) for at in range(blocks - 1)]
    return Shape(title="a chain of 12,000 blocks", blocks=blocks, edges=edges, questions=questions)
