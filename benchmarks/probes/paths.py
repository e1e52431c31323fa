"""A warm process that answers questions for paths.

`{"graph": ...}` builds a graph. `{"ask": how, "questions": [...]}` answers each and says how long all took together and
how many edges each path has: `search` finds the witness edge by edge, `reply` makes the whole reply of `path`, and
`page` makes the reply to the last question once more for each of them, which takes no search.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

from affidavit.evidence.record import Coverage, Subject
from affidavit.facts.collection import CollectionSpec, ParentRef
from affidavit.facts.graph import Block, Edge, Graph, GraphQueries, GraphSpec
from affidavit.facts.graph.search import shortest, ways, witness


class BlocksRow(TypedDict):
    id: str
    exit: str | None


EdgesRow = TypedDict("EdgesRow", {"id": str, "from": str, "to": str, "ordinal": int, "operation": str})

BLOCKS, EDGES = (
    CollectionSpec(
        name=name, contract=f"bench.{name}", version=1, doc="", row=row, item=row, key="id", where=()
    )
    for name, row in (("blocks", BlocksRow), ("edges", EdgesRow))
)
FLOW = GraphSpec(contract="bench", version=1, blocks=BLOCKS, edges=EDGES, owner=None)
PARENT = ParentRef(
    evidence_id="ev1_" + "0" * 64,
    subject=Subject(digest="sha256:" + "0" * 64, format="elf"),
    coverage=Coverage(state="complete", selection="all", examined=1),
)


def build(blocks: int, edges: list[tuple[int, int]]) -> Graph:
    """Edges with rows of the size that native ones have."""
    rows = [
        {"id": f"e{at}", "from": f"b{a}", "to": f"b{b}", "ordinal": at, "operation": f"{at:#010x}:jne"}
        for at, (a, b) in enumerate(edges)
    ]
    links = [Edge(row["id"], row["from"], row["to"], row["ordinal"], row) for row in rows]
    return Graph.build([Block(f"b{at}") for at in range(blocks)], links)


def search(graph: Graph, start: int, goal: int, avoid: list[int]) -> int:
    left = ways(graph, avoid)
    path = shortest(left, start, [goal])
    return -1 if path is None else len(witness(left, path))


def reply(queries: GraphQueries, start: int, goal: int, avoid: list[int]) -> int:
    target = {"kind": "block", "id": f"b{goal}"}
    value = queries.path(f"b{start}", target, [f"b{at}" for at in avoid]).value
    return value["page"]["total"] if value["status"] == "found" else -1


graph = build(1, [])
queries = GraphQueries(FLOW, graph, PARENT)
for line in sys.stdin:
    request = json.loads(line)
    answer: dict[str, Any] = {}
    if "graph" in request:
        graph = build(**request["graph"])
        queries = GraphQueries(FLOW, graph, PARENT)
    else:
        questions = request["questions"]
        asked: Callable[..., int] = search if request["ask"] == "search" else reply
        subject = graph if request["ask"] == "search" else queries
        if request["ask"] == "page":
            questions = questions[-1:] * len(questions)
        started = time.perf_counter()
        lengths = [asked(subject, **one) for one in questions]
        answer = {"seconds": time.perf_counter() - started, "lengths": lengths}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
