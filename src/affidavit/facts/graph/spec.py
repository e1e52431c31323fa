"""Which collections hold the blocks and edges of graphs, and how their rows become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, get_type_hints

from affidavit.errors import NotFoundError, VerificationError
from affidavit.facts.collection import ParentRef
from affidavit.facts.factfile import FactFile
from affidavit.facts.graph.model import Block, Bounds, Edge, Graph, too_large
from affidavit.facts.selector import Selector
from affidavit.facts.spec import CollectionSpec

__all__ = ["FactGraphs", "GraphSource", "GraphSpec", "graph_of_facts", "graph_of_rows"]

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSpec:
    """Two collections as graphs, declared once by their analyzer.

    The order of the rows is the native order of blocks and edges; the first block of a graph is its entry.

    Attributes:
        contract: prefix of the operations without verb and version: `native` gives `native.path/1`.
        version: contract version of the operations.
        blocks: the collection whose rows are the blocks, under their key.
        edges: the collection whose rows are the edges, under their key.
        owner: field of both that says which graph a row belongs to, and name of the argument that selects it
            (`function`); None where all rows are one graph.
        source: field of an edge with its source block.
        target: field of an edge with its target block, None in a row whose target is not known.
        ordinal: field of an edge that orders the edges out of one block, or None: they stand in the order of the facts.
        exit: field of a block with its kind of exit or None. None here: a block without edges is a `return`.
        bounds: how large one graph may be.
        owners: the collection whose items are the owners, or None; needed for `problem` alone.
        problem: field of an owner that says why its graph was refused, or None where none is.
    """

    contract: str
    version: int
    blocks: CollectionSpec
    edges: CollectionSpec
    owner: str | None
    source: str = "from"
    target: str = "to"
    ordinal: str | None = "ordinal"
    exit: str | None = "exit"
    bounds: Bounds = field(default_factory=Bounds)
    owners: CollectionSpec | None = None
    problem: str | None = None

    def __post_init__(self) -> None:
        for spec, names in (
            (self.blocks, (self.owner, self.exit)),
            (self.edges, (self.owner, self.source, self.target, self.ordinal)),
        ):
            there = get_type_hints(spec.row)
            for name in names:
                if name is not None and name not in there:
                    raise TypeError(f"graph {self.contract}: {spec.row.__name__} has no field {name!r}")
        if "step_index" in get_type_hints(self.edges.row):
            raise TypeError(f"graph {self.contract}: steps of a path add the field 'step_index' to its edges")


class GraphSource(Protocol):
    """What gives the graphs of one kind in one dataset."""

    @property
    def spec(self) -> GraphSpec:
        """What they are made of."""
        ...

    def parent(self, owner: str | None) -> ParentRef:
        """The record that a graph rests on. Asked before each query; raises where the artifact has changed."""
        ...

    def load(self, owner: str | None) -> Graph:
        """The graph. Called in a thread, and only while it is not resident.

        Raises:
            NotFoundError: `item-not-found`: there is no such owner.
            FailedError: `graph-too-large`.
            VerificationError: `graph-invalid`.
        """
        ...


@dataclass(frozen=True, slots=True)
class FactGraphs:
    """The graphs in a fact file that holds both collections: a `GraphSource`.

    Attributes:
        spec: what they are made of.
        opened: gives the open file and the record that it rests on, at each query; it may raise `AffidavitError`.
    """

    spec: GraphSpec
    opened: Callable[[], tuple[FactFile, ParentRef]]

    def parent(self, owner: str | None) -> ParentRef:  # noqa: ARG002 - all graphs of a file rest on one record
        """The record that the file rests on."""
        return self.opened()[1]

    def load(self, owner: str | None) -> Graph:
        """The graph of an owner; see `graph_of_facts`."""
        return graph_of_facts(self.spec, self.opened()[0], owner)


def graph_of_rows(
    spec: GraphSpec,
    owner: str | None,
    blocks: Iterable[Mapping[str, Any]],
    edges: Iterable[Mapping[str, Any]],
) -> Graph:
    """The graph of these rows. They are its own from then on and must not be changed.

    Raises:
        FailedError: `graph-too-large`.
        VerificationError: `graph-invalid`: also for a row that lacks a field or has one of another type.
    """
    try:
        found = [
            Block(_text(row[spec.blocks.key]), None if spec.exit is None else row[spec.exit])
            for row in blocks
        ]
        links = [
            Edge(
                _text(row[spec.edges.key]),
                _text(row[spec.source]),
                None if row[spec.target] is None else _text(row[spec.target]),
                0 if spec.ordinal is None else _number(row[spec.ordinal]),
                row,
            )
            for row in edges
        ]
    except (KeyError, TypeError) as error:
        raise VerificationError(
            "graph-invalid",
            f"a row of {spec.blocks.contract} or {spec.edges.contract} is no such row: "
            + (f"{error} is missing" if isinstance(error, KeyError) else str(error)),
            hint="the facts of this graph do not hold together; analyse or export it anew",
            details={"owner": owner},
        ) from error
    leaf = "unresolved" if spec.exit is not None else "return"
    return Graph.build(found, links, owner=owner, bounds=spec.bounds, leaf=leaf)


def graph_of_facts(spec: GraphSpec, facts: FactFile, owner: str | None) -> Graph:
    """A graph from a fact file that holds both collections. Its size is checked before rows are read.

    Raises:
        NotFoundError: `item-not-found`: no block has this owner.
        FailedError: `graph-too-large`.
        VerificationError: `graph-invalid`, `facts-damaged`.
    """
    selector = Selector() if spec.owner is None else Selector(terms=((spec.owner, (owner,)),))
    blocks = facts.ordinals(spec.blocks.name, selector)
    edges = facts.ordinals(spec.edges.name, selector)
    if not blocks and spec.owner is not None:
        _check_refused(spec, facts, owner)
        raise NotFoundError(
            "item-not-found",
            f"{spec.blocks.contract} has no block whose {spec.owner} is {ascii(owner)[:200]}",
            hint=f"give a {spec.owner} that rows of {spec.blocks.name} name",
            details={"collection": spec.blocks.contract, "id": owner},
        )
    for what, found, most in (("blocks", blocks, spec.bounds.blocks), ("edges", edges, spec.bounds.edges)):
        if len(found) > most:
            raise too_large(what, len(found), most, owner)
    return graph_of_rows(
        spec, owner, _rows(facts, spec.blocks.name, blocks), _rows(facts, spec.edges.name, edges)
    )


def _check_refused(spec: GraphSpec, facts: FactFile, owner: str | None) -> None:
    """Tell an owner whose graph was refused from one that is not there."""
    if spec.owners is None or spec.problem is None or owner is None:
        return
    found = facts.items(spec.owners.name, [owner])
    if owner not in found:
        return
    problem = facts.decode([found[owner]])[0][spec.problem]
    raise VerificationError(
        "graph-invalid",
        f"{spec.owner} {ascii(owner)[:200]} has no graph: {problem or 'nothing is known of its blocks'}",
        hint=f"{spec.owners.name}.get shows what is kept of it; correct the export and mount it again",
        details={"owner": owner},
    )


def _rows(facts: FactFile, collection: str, ordinals: Sequence[int]) -> Iterable[Mapping[str, Any]]:
    for at in range(0, len(ordinals), _AT_ONCE):
        yield from facts.decode(facts.rows(collection, ordinals[at : at + _AT_ONCE]))


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(f"{ascii(value)[:80]} is no text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{ascii(value)[:80]} is no whole number")
    return value
