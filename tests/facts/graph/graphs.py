"""Small graphs, and what queries over them must find, by definition and without any cleverness."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st
from typing_extensions import TypedDict

from affidavit.evidence.record import Coverage, Subject
from affidavit.facts.collection import Answer, ParentRef
from affidavit.facts.graph.model import Block, Bounds, Edge, ExitKind, Graph
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.spec import GraphSpec
from affidavit.facts.spec import CollectionSpec


class BlocksRow(TypedDict):
    """One block."""

    block_id: str
    function: str
    exit: str | None


# `from` is no identifier that a class body could hold.
EdgesRow = TypedDict(
    "EdgesRow",
    {
        "edge_id": str,
        "function": str,
        "from": str,
        "to": str | None,
        "ordinal": int,
        "kind": Literal["taken", "fallthrough", "jump", "case"],
        "condition": str | None,
        "polarity": bool | None,
        "operation": str,
    },
)

BLOCKS = CollectionSpec(
    name="blocks",
    contract="sample.blocks",
    version=1,
    doc="One block.",
    row=BlocksRow,
    item=BlocksRow,
    key="block_id",
    where=("function", "block_id"),
)
EDGES = CollectionSpec(
    name="edges",
    contract="sample.edges",
    version=1,
    doc="One edge.",
    row=EdgesRow,
    item=EdgesRow,
    key="edge_id",
    where=("function", "edge_id"),
)
FLOW = GraphSpec(contract="sample", version=1, blocks=BLOCKS, edges=EDGES, owner="function")

PARENT = ParentRef(
    evidence_id="ev1_" + "0" * 64,
    subject=Subject(digest="sha256:" + "a" * 64, format="elf"),
    coverage=Coverage(state="complete", selection="all functions", examined=1),
)

Link = tuple[int, int] | tuple[int, int, int]


def edge_row(at: int, source: int, target: int | None, ordinal: int, function: str = "f") -> dict[str, Any]:
    """A native row of an edge between numbered blocks."""
    return {
        "edge_id": f"e{at}",
        "function": function,
        "from": f"b{source}",
        "to": None if target is None else f"b{target}",
        "ordinal": ordinal,
        "kind": "jump",
        "condition": None,
        "polarity": None,
        "operation": f"{at:#x}:jmp",
    }


def graph(
    blocks: int,
    links: Iterable[Link],
    exits: dict[int, ExitKind] | None = None,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - a frozen value
) -> Graph:
    """A graph of blocks `b0`, `b1`, ... and edges `e0`, `e1`, ...; a third number of a link is its ordinal.

    Blocks without edges out of them return, unless `exits` says otherwise.
    """
    whole = [(link[0], link[1], link[2] if len(link) == 3 else 0) for link in links]
    leading = {source for source, _, _ in whole}
    kinds: dict[int, ExitKind] = {at: "return" for at in range(blocks) if at not in leading}
    kinds |= exits or {}
    return Graph.build(
        [Block(f"b{at}", kinds.get(at)) for at in range(blocks)],
        [
            Edge(f"e{at}", f"b{source}", f"b{target}", ordinal, edge_row(at, source, target, ordinal))
            for at, (source, target, ordinal) in enumerate(whole)
        ],
        owner="f",
        bounds=bounds,
    )


def queries(one: Graph, spec: GraphSpec = FLOW) -> GraphQueries:
    """The queries over a graph."""
    return GraphQueries(spec, one, PARENT, None if spec.owner is None else "f")


def asked(blocks: int, links: Iterable[Link], exits: dict[int, ExitKind] | None = None) -> GraphQueries:
    """The queries over a graph made of numbers."""
    return queries(graph(blocks, links, exits))


def to(block: str) -> dict[str, Any]:
    """A block as target."""
    return {"kind": "block", "id": block}


EXIT: dict[str, Any] = {"kind": "exit"}


def steps(answer: Answer) -> list[str]:
    """The edges of a path."""
    return [row["edge_id"] for row in answer.value["rows"]]


def reached(
    one: Graph, starts: Iterable[int], gone: Collection[int] = (), cut: Collection[int] = ()
) -> set[int]:
    """Everything that can be reached, blocks and edges in `gone` and `cut` aside."""
    found = set(starts) - set(gone)
    while True:
        more = {
            one.targets[edge]
            for edge in range(len(one.edges))
            if edge not in cut and one.sources[edge] in found and one.targets[edge] not in gone
        }
        if more <= found:
            return found
        found |= more


def simple_paths(
    one: Graph, start: int, goals: Collection[int], gone: Collection[int] = (), cut: Collection[int] = ()
) -> list[tuple[int, ...]]:
    """Every path that passes no block twice, as edges: by length, then edge by edge in native order."""
    found: list[tuple[int, ...]] = []

    def walk(block: int, seen: frozenset[int], edges: tuple[int, ...]) -> None:
        if block in goals:
            found.append(edges)
        for edge in range(len(one.edges)):
            after = one.targets[edge]
            if one.sources[edge] == block and edge not in cut and after not in seen and after not in gone:
                walk(after, seen | {after}, (*edges, edge))

    if start not in gone:
        walk(start, frozenset({start}), ())
    return sorted(found, key=lambda edges: (len(edges), [rank(one, edge) for edge in edges]))


def rank(one: Graph, edge: int) -> tuple[int, int]:
    """What orders the edges out of one block: ordinal, then place."""
    return one.rows[edge]["ordinal"], edge


@dataclass(frozen=True)
class Case:
    """A graph and a question about it, all as places."""

    graph: Graph
    start: int
    goals: tuple[int, ...]
    gone: tuple[int, ...]
    cut: tuple[int, ...]


@st.composite
def cases(draw: st.DrawFn, *, blocks: int = 6, edges: int = 11) -> Case:
    """Small graphs with loops and parallel edges, and questions about them."""
    number = draw(st.integers(1, blocks))
    place = st.integers(0, number - 1)
    links = draw(st.lists(st.tuples(place, place, st.integers(0, 2)), max_size=edges))
    made = graph(number, links)
    return Case(
        graph=made,
        start=draw(place),
        goals=tuple(draw(st.sets(place, min_size=1, max_size=3))),
        gone=tuple(draw(st.sets(place, max_size=2))),
        cut=tuple(draw(st.sets(st.integers(0, len(links) - 1), max_size=3))) if links else (),
    )


def ids(names: Sequence[str], places: Iterable[int]) -> list[str]:
    """The ids of places."""
    return [names[at] for at in places]
