"""Queries over directed graphs of facts: control flow of a function, calls between functions.

An analyzer declares which of its collections hold blocks and edges, and gives graphs of their rows:

```python
FLOW = GraphSpec(contract="native", version=1, blocks=BLOCKS, edges=EDGES, owner="function")
CALLS = GraphSpec(contract="native.calls", version=1, blocks=FUNCTIONS, edges=CALL_ROWS, owner=None,
                  source="caller", target="callee", ordinal=None, exit=None)

graph = graph_of_rows(FLOW, function, block_rows, edge_rows)   # or graph_of_facts(FLOW, fact_file, function)
```

`namespaces.datasets.graphs.graph_operations(spec, source, producer=..., resident=...)` makes the operations `path`,
`paths`, `reachable`, `must_pass`, `dominators` and `loops` of it. `source` is a `GraphSource`: `parent(owner)` gives
the record that graphs rest on, before each query, and `load(owner)` a graph that is not resident, in a thread.
`FactGraphs(spec, opened)` is one over a fact file. Beneath:

```python
queries = GraphQueries(FLOW, graph, parent, function)      # or ResidentGraphs().queries(source, function, parent)
answer = queries.path("b0", {"kind": "exit"}, avoid=["b7"])
answer.value["status"], answer.value["rows"], answer.value["certificate"]
```

- The order of rows is the native order; the first block is the entry. Edges of one block go by ordinal, then in order.
- A block's `exit` says how control leaves there (`return`, `noreturn`, `tail-call`, `trap`, `unresolved`), beside edges
  or without. A block without edges and without a kind is `unresolved`; so is one with an edge whose target is None.
- Of several shortest paths the witness is the one whose edges come first, compared edge by edge from the source.
- `not-found` carries its certificate: the avoided blocks and edges that the search met, and reached blocks that are
  unresolved. An id that is not there makes the whole reply `unknown`, names it, and counts nothing.
"""

from affidavit.facts.graph.model import DEFAULT_EXITS, EXIT_KINDS, Block, Bounds, Edge, ExitKind, Graph
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.resident import ResidentGraphs
from affidavit.facts.graph.spec import FactGraphs, GraphSource, GraphSpec, graph_of_facts, graph_of_rows

__all__ = [
    "DEFAULT_EXITS",
    "EXIT_KINDS",
    "Block",
    "Bounds",
    "Edge",
    "ExitKind",
    "FactGraphs",
    "Graph",
    "GraphQueries",
    "GraphSource",
    "GraphSpec",
    "ResidentGraphs",
    "graph_of_facts",
    "graph_of_rows",
]
