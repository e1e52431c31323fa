"""The graphs of a dataset as operations: `path`, `paths`, `reachable`, `must_pass`, `dominators`, `loops`.

A dataset declares a `GraphSpec` over two of its collections and gives the graphs through a `GraphSource`; the
operations stand beside its collections:

```python
operations = graph_operations(spec, source, producer=producer, resident=ResidentGraphs())
Namespace(name=place.name, operations=operations, children=collections)
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_type_hints

from typing_extensions import TypedDict

from affidavit.evidence.record import Authority, Confidence, Producer
from affidavit.facts.arguments import text
from affidavit.facts.collection import Answer
from affidavit.facts.graph.model import ExitKind
from affidavit.facts.graph.queries import DEFAULT_PATHS, MAX_PATHS, GraphQueries
from affidavit.facts.graph.replies import (
    BlockTarget,
    Certificate,
    DominatorRow,
    ExitTarget,
    GraphPage,
    GraphReply,
    LoopRow,
    PassedRow,
    PathsRow,
    ReachableRow,
)
from affidavit.facts.graph.resident import ResidentGraphs
from affidavit.facts.graph.spec import GraphSource, GraphSpec
from affidavit.namespaces.datasets.queries import PAGING, Argument, Query, beside_the_loop, operation, reply
from affidavit.namespaces.operation import Handler, Operation, Reply
from affidavit.namespaces.typeddicts import StubTypes

__all__ = ["graph_operations"]

_INLINE_EDGES = 5_000
_INLINE_VERBS = frozenset({"path", "reachable", "must_pass"})
"""Over up to so many edges these take about as long as handing them to a thread and back."""

_Ask: TypeAlias = Callable[[GraphQueries, dict[str, Any]], Answer]

_SOURCE = Argument(
    name="source", type=str, doc="Id of the block to begin at.", required=True, positional=True
)
_TARGET = Argument(
    name="target",
    type=BlockTarget | ExitTarget,
    doc='Where to: {"kind": "block", "id": ...}, or {"kind": "exit"} for any exit but `unresolved` ones; '
    '"exit": [...] names the kinds that count.',
    required=True,
    positional=True,
)
_AVOID = (
    Argument(
        name="avoid", type=list[str] | None, doc="Ids of blocks that must not be passed, begun or ended at."
    ),
    Argument(name="avoid_edges", type=list[str] | None, doc="Ids of edges that must not be taken."),
)
_ROUTE = (_SOURCE, _TARGET, *_AVOID)
_COUNT = Argument(
    name="k",
    type=int,
    doc=f"Paths at most, 1 to {MAX_PATHS}.",
    default=DEFAULT_PATHS,
    bounds={"minimum": 1, "maximum": MAX_PATHS, "default": DEFAULT_PATHS},
)
_BLOCK = Argument(name="block", type=str, doc="Id of the block.", required=True, positional=True)
_DOMINATED = Argument(
    name="block",
    type=str | None,
    doc="Id of the block whose dominators are asked for. Omitted: the nearest dominator of each block.",
    positional=True,
)
_EXIT = Argument(
    name="exit",
    type=list[ExitKind] | None,
    doc="Kinds of exits where ways end; omitted, all, `unresolved` too. Only backward.",
)


def graph_operations(
    spec: GraphSpec,
    source: GraphSource,
    *,
    producer: Producer,
    resident: ResidentGraphs | None = None,
    authority: Authority = "static-analysis",
    confidence: Confidence = "derived",
) -> dict[str, Operation]:
    """The operations over the graphs of one kind in a dataset, by name.

    Args:
        spec: what the graphs are made of; stubs and schemas need nothing else.
        source: what gives the graphs.
        producer: the analyzer, with its contract version.
        resident: where graphs are kept between calls; share one between the datasets of a session. None makes one.
        authority: what the blocks and edges rest on.
        confidence: how strong what follows from them is.
    """
    kept = ResidentGraphs() if resident is None else resident
    stub = StubTypes(structs=frozenset({GraphReply, GraphPage, Certificate}))
    return {
        query.name: operation(
            query,
            _handler(ask, spec, source, kept, quick=query.name in _INLINE_VERBS),
            stub,
            producer=producer,
            authority=authority,
            confidence=confidence,
        )
        for query, ask in _queries(spec)
    }


def _queries(spec: GraphSpec) -> tuple[tuple[Query, _Ask], ...]:
    owned = spec.owner is not None
    owner = (
        Argument(
            name=spec.owner or "",
            type=str,
            doc=f"Id of the {spec.owner} whose graph is asked.",
            required=True,
            positional=True,
        ),
    )
    of = f" in the graph of one {spec.owner}" if owned else ""
    begin = Argument(
        name="source",
        type=str | None if owned else str,
        doc="Id of the block where ways begin"
        + ("; omitted, at the entry." if owned else ".")
        + " Only forward.",
    )

    def query(name: str, doc: str, arguments: tuple[Argument, ...], row: Any) -> Query:
        return Query(
            name=name,
            contract=f"{spec.contract}.{name}/{spec.version}",
            doc=doc,
            arguments=((*owner, *arguments) if owned else arguments) + PAGING,
            returns=GraphReply[row],
            carries_evidence=True,
        )

    return (
        (
            query(
                "path",
                f"A path of fewest edges{of}, under exclusions; its rows are the edges in order, as recorded.",
                _ROUTE,
                _step(spec),
            ),
            lambda asked, given: asked.path(**given),
        ),
        (
            query(
                "paths",
                f"The k shortest paths{of} that pass no block twice, under exclusions; a row is a path.",
                (*_ROUTE, _COUNT),
                PathsRow,
            ),
            lambda asked, given: asked.paths(**given),
        ),
        (
            query(
                "reachable",
                f"The blocks that a block reaches{of}, or that reach it, under exclusions, nearest first.",
                (_BLOCK, _direction("`backward`: the blocks that reach it."), *_AVOID),
                ReachableRow,
            ),
            lambda asked, given: asked.reachable(**given),
        ),
        (
            query(
                "must_pass",
                f"The blocks and edges that every path{of} passes, under exclusions, in the order of passing.",
                _ROUTE,
                PassedRow,
            ),
            lambda asked, given: asked.must_pass(**given),
        ),
        (
            query(
                "dominators",
                f"The blocks that are on every way to a block{of}; backward, on every way from it to an exit.",
                (_DOMINATED, _direction("`backward`: post-dominators."), begin, _EXIT),
                DominatorRow,
            ),
            lambda asked, given: asked.dominators(**given),
        ),
        (
            query(
                "loops",
                f"The natural loops{of} with their nesting, then the irreducible parts.",
                (
                    Argument(
                        name="source", type=str | None, doc="Only what this block reaches, entered at it."
                    ),
                ),
                LoopRow,
            ),
            lambda asked, given: asked.loops(**given),
        ),
    )


def _direction(doc: str) -> Argument:
    return Argument(name="direction", type=Literal["forward", "backward"], doc=doc, default="forward")


def _step(spec: GraphSpec) -> Any:
    """The TypedDict of a path's rows, called after the edges': `EdgesRow` has `EdgesStep`."""
    row = spec.edges.row
    typed_dict: Any = TypedDict  # made at run time from the spec
    fields = {**get_type_hints(row, include_extras=True), "step_index": int}
    step: Any = typed_dict(row.__name__.removesuffix("Row") + "Step", fields)
    step.__doc__ = "An edge as recorded, and its place in the path."
    return step


def _handler(
    ask: _Ask, spec: GraphSpec, source: GraphSource, kept: ResidentGraphs, *, quick: bool
) -> Handler:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        given = dict(arguments)
        owner = None if spec.owner is None else text(spec.owner, given.pop(spec.owner))
        parent = source.parent(owner)
        here = kept.resident(source, owner, parent)
        if here is not None and quick and len(here.graph.edges) <= _INLINE_EDGES:
            return reply(ask(here, given), parent, here.graph.coverage)

        def load_and_ask() -> tuple[GraphQueries, Answer]:
            queries = kept.queries(source, owner, parent)
            return queries, ask(queries, given)

        queries, answer = await beside_the_loop(load_and_ask)
        return reply(answer, parent, queries.graph.coverage)

    return handler
