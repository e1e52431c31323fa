"""Every question about every graph of three blocks: 49,152 of them, against Floyd and Warshall's algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from affidavit.facts.graph.queries import GraphQueries
from tests.facts.graph.graphs import EXIT, asked, to

BLOCKS = range(3)
PAIRS = tuple(product(BLOCKS, BLOCKS))
FAR = 99


def distances(edges: set[tuple[int, int]], gone: tuple[int, ...]) -> list[list[int]]:
    """The number of edges between any two blocks, excluded ones aside."""
    far = [
        [0 if a == b else 1 if (a, b) in edges and a not in gone and b not in gone else FAR for b in BLOCKS]
        for a in BLOCKS
    ]
    for by, a, b in product(BLOCKS, BLOCKS, BLOCKS):
        far[a][b] = min(far[a][b], far[a][by] + far[by][b])
    return far


def graphs() -> Iterator[tuple[GraphQueries, set[tuple[int, int]]]]:
    for chosen in range(512):
        # Ordinals against the order of the facts, so that the two cannot be confused.
        links = [pair for at, pair in enumerate(PAIRS) if chosen >> at & 1]
        yield asked(3, [(a, b, -b) for a, b in links]), set(links)


def expected(
    edges: set[tuple[int, int]], start: int, goals: list[int], gone: tuple[int, ...]
) -> list[int] | None:
    """The blocks of the first shortest path: among all of that length, the first by ordinals."""
    if start in gone:
        return None
    far = distances(edges, gone)
    length = min((far[start][goal] for goal in goals if goal not in gone), default=FAR)
    if length >= FAR:
        return None
    ways = [
        [start, *rest]
        for rest in product(BLOCKS, repeat=length)
        if all(pair in edges for pair in zip([start, *rest], rest, strict=False))
        and not set(rest) & set(gone)
        and [start, *rest][-1] in goals
    ]
    return min(ways, key=lambda blocks: [-block for block in blocks])


def check(
    answer: dict[str, Any], edges: set[tuple[int, int]], start: int, goals: list[int], gone: tuple[int, ...]
) -> None:
    path = expected(edges, start, goals, gone)
    if path is None:
        far = distances(edges, gone)
        there = [b for b in BLOCKS if start not in gone and b not in gone and far[start][b] < FAR]
        met = [b for b in gone if b == start or any((a, b) in edges for a in there)]
        assert (answer["status"], answer["rows"], answer["page"]["total"]) == ("not-found", [], 0)
        assert answer["certificate"]["reached"] == len(there)
        assert answer["certificate"]["blocks"] == [f"b{at}" for at in met]
        return
    rows = answer["rows"]
    assert (answer["status"], answer["certificate"]) == ("found", None)
    assert [row["to"] for row in rows] == [f"b{at}" for at in path[1:]]
    assert [row["from"] for row in rows] == [f"b{at}" for at in path[:-1]]
    assert (
        [row["step_index"] for row in rows]
        == list(range(len(path) - 1))
        == list(range(answer["page"]["total"]))
    )


def test_all_questions_about_all_graphs_of_three_blocks() -> None:
    exclusions = [gone for number in range(4) for gone in combinations(BLOCKS, number)]
    checked = 0
    for one, edges in graphs():
        exits = [block for block in BLOCKS if not any(source == block for source, _ in edges)]
        for gone, start in product(exclusions, BLOCKS):
            avoid = [f"b{at}" for at in gone]
            for goal in BLOCKS:
                check(one.path(f"b{start}", to(f"b{goal}"), avoid).value, edges, start, [goal], gone)
            check(one.path(f"b{start}", EXIT, avoid).value, edges, start, exits, gone)
            checked += 4
    assert checked == 49_152
