"""Queries over one graph: `path`, `paths`, `reachable`, `must_pass`, `dominators`, `loops`.

Each returns an `Answer`, as the queries over a collection do: the value that is hashed, what is shown beside it, and
the parameters in normal form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, freeze
from affidavit.facts.arguments import page_start, whole
from affidavit.facts.collection import DEFAULT_LIMIT, MAX_LIMIT, MAX_PAGE_BYTES, Answer, ParentRef
from affidavit.facts.cursor import issue_cursor
from affidavit.facts.graph.alternatives import Edges, alternatives
from affidavit.facts.graph.asked import Asked, read_choice, read_exits, refused
from affidavit.facts.graph.dominance import dominators
from affidavit.facts.graph.loops import Irreducible, Loop, Loops, find_loops, roots
from affidavit.facts.graph.model import EXIT_KINDS, Graph
from affidavit.facts.graph.passing import must_pass
from affidavit.facts.graph.search import Frontier, closure, frontier, shortest, witness
from affidavit.facts.graph.spec import GraphSpec

__all__ = ["DEFAULT_PATHS", "MAX_PATHS", "MAX_SHOWN_UNRESOLVED", "GraphQueries"]

DEFAULT_PATHS = 8
MAX_PATHS = 1000
MAX_SHOWN_UNRESOLVED = 100

Direction: TypeAlias = Literal["forward", "backward"]
_DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What a query found, whatever page of it is shown: `row` makes the row at a place anew."""

    status: Literal["found", "not-found", "unknown"]
    listed: int = 0
    total: int | None = 0
    row: Callable[[int], Mapping[str, Any]] = lambda _: {}
    certificate: Frontier | None = None


class GraphQueries:
    """The queries over one graph. Safe to use from several threads; what they return is made anew each time.

    What the last query found is kept, whatever page of it was asked for, so that its other pages cost no search. A
    query that names ids which are not there is not kept.

    Args:
        spec: what the graph is made of.
        graph: the graph.
        parent: the record that it rests on.
        owner: what it is the graph of; None where `spec` has no owner.
    """

    def __init__(self, spec: GraphSpec, graph: Graph, parent: ParentRef, owner: str | None = None) -> None:
        self.spec = spec
        self.owner = owner
        self.graph = graph
        self.parent = parent
        self._last: tuple[bytes, _Result] | None = None

    def path(
        self,
        source: str,
        target: Mapping[str, Any],
        avoid: Sequence[str] | None = None,
        avoid_edges: Sequence[str] | None = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """One path of fewest edges; of several the one whose edges come first in native order, from the source on.

        Args:
            source: id of the block where it begins.
            target: `{"kind": "block", "id": ...}`, or `{"kind": "exit", "exit": [kinds]}`; without kinds any exit
                but `unresolved`.
            avoid: ids of blocks that it must not pass, begin or end at.
            avoid_edges: ids of edges that it must not take.
            cursor: where an earlier page ended.
            offset: number of the first row, from 0. Not together with `cursor`.
            limit: rows at most, 1 to 1,000.

        Raises:
            UsageError: `arguments-invalid`, `limit-invalid`, `cursor-invalid`, `cursor-mismatch`.
        """
        asked = Asked(graph=self.graph)
        start, goals = asked.block("source", source), asked.goals(target)
        left = asked.ways(avoid, avoid_edges)

        def find() -> _Result:
            blocks = shortest(left, start, goals)
            if blocks is None:
                return _Result(status="not-found", certificate=frontier(left, [start]))
            return self._steps(witness(left, blocks))

        return self._answer("path", asked, find, cursor, offset, limit)

    def paths(
        self,
        source: str,
        target: Mapping[str, Any],
        avoid: Sequence[str] | None = None,
        avoid_edges: Sequence[str] | None = None,
        k: int = DEFAULT_PATHS,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """The first `k` paths that pass no block twice, by their lengths, then as for `path`.

        Paths that differ in parallel edges are different. `page.total` is None where there may be more than `k`.

        Args:
            source: as for `path`, and so are the other arguments.
            k: how many paths, 1 to 1,000.
        """
        asked = Asked(graph=self.graph)
        start, goals = asked.block("source", source), asked.goals(target)
        left = asked.ways(avoid, avoid_edges)
        most = whole("k", k, 1, MAX_PATHS)
        asked.parameters["k"] = most

        def find() -> _Result:
            found = alternatives(left, start, goals, most)
            if not found.paths:
                return _Result(status="not-found", certificate=frontier(left, [start]))
            listed = len(found.paths)
            return _Result(
                status="found",
                listed=listed,
                total=listed if found.complete else None,
                row=lambda at: self._path_row(at, start, found.paths[at]),
            )

        return self._answer("paths", asked, find, cursor, offset, limit)

    def reachable(
        self,
        block: str,
        direction: Direction = "forward",
        avoid: Sequence[str] | None = None,
        avoid_edges: Sequence[str] | None = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """The blocks that a block reaches (`forward`), or that reach it (`backward`), itself included, nearest first.

        Blocks of one distance stand in native order. The certificate holds for every block that is no row.
        """
        asked = Asked(graph=self.graph)
        start = asked.block("block", block)
        left = asked.ways(avoid, avoid_edges)
        backward = read_choice("direction", direction, _DIRECTIONS) == "backward"
        asked.parameters["direction"] = direction

        def find() -> _Result:
            adjacency = left.predecessors if backward else left.successors
            levels = closure(adjacency, [start], left.blocks)
            found = [(at, steps) for steps, level in enumerate(levels) for at in sorted(level)]
            return _Result(
                status="found" if found else "not-found",
                listed=len(found),
                total=len(found),
                row=lambda at: {"block": self.graph.blocks[found[at][0]], "distance": found[at][1]},
                certificate=frontier(left, [start], backward=backward),
            )

        return self._answer("reachable", asked, find, cursor, offset, limit)

    def must_pass(
        self,
        source: str,
        target: Mapping[str, Any],
        avoid: Sequence[str] | None = None,
        avoid_edges: Sequence[str] | None = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """The blocks and edges that every path from the source to the target passes, in the order of passing.

        The source is among them, and so is the target where it is one block. Arguments are as for `path`.
        """
        asked = Asked(graph=self.graph)
        start, goals = asked.block("source", source), asked.goals(target)
        left = asked.ways(avoid, avoid_edges)

        def find() -> _Result:
            found = must_pass(left, start, goals)
            if found is None:
                return _Result(status="not-found", certificate=frontier(left, [start]))

            def row(at: int) -> Mapping[str, Any]:
                one = found[at]
                ids = self.graph.edges if one.is_edge else self.graph.blocks
                return {"kind": "edge" if one.is_edge else "block", "id": ids[one.at], "step_index": one.step}

            return _Result(status="found", listed=len(found), total=len(found), row=row)

        return self._answer("must_pass", asked, find, cursor, offset, limit)

    def dominators(
        self,
        block: str | None = None,
        direction: Direction = "forward",
        source: str | None = None,
        exit: Sequence[str] | None = None,  # noqa: A002 - the name that scripts use
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """The dominators of one block, itself first and outwards; without `block` each block's nearest one.

        A block is dominated by those that are on every way to it.

        Args:
            block: id of the block whose dominators are asked for.
            direction: `backward` for post-dominators: blocks that are on every way from a block to an exit.
            source: where the ways begin; omitted, at the entry. Only `forward`.
            exit: the kinds of exits where the ways end; omitted, at any, `unresolved` ones included. Only `backward`.
        """
        asked = Asked(graph=self.graph)
        backward = read_choice("direction", direction, _DIRECTIONS) == "backward"
        asked.parameters["direction"] = direction
        at = None if block is None else asked.block("block", block)
        begins = self._begins(asked, source, exit, backward=backward)

        def find() -> _Result:
            graph = self.graph
            ahead, behind = graph.successors, graph.predecessors
            tree = dominators(behind, ahead, begins) if backward else dominators(ahead, behind, begins)
            found = sorted(tree.order) if at is None else tree.chain(at)

            def row(number: int) -> Mapping[str, Any]:
                one = found[number]
                above = tree.immediate[one]
                return {
                    "block": graph.blocks[one],
                    "immediate": graph.blocks[above] if above >= 0 else None,
                    "depth": tree.depth[one],
                }

            return _Result(
                status="found" if found else "not-found", listed=len(found), total=len(found), row=row
            )

        return self._answer("dominators", asked, find, cursor, offset, limit)

    def loops(
        self,
        source: str | None = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """The natural loops in the native order of their headers, then the parts that are cyclic and no such loop.

        Args:
            source: only what this block reaches, as if it were the entry. Omitted: the whole graph, entered at its
                entry, at every block that nothing leads to, and at the first block of each cycle that is left then.
        """
        asked = Asked(graph=self.graph)
        start = None if source is None else asked.block("source", source)

        def find() -> _Result:
            found = find_loops(self.graph, roots(self.graph) if start is None else [start])
            every = [*found.natural, *found.irreducible]
            return _Result(
                status="found" if every else "not-found",
                listed=len(every),
                total=len(every),
                row=lambda at: self._loop_row(found, every[at]),
            )

        return self._answer("loops", asked, find, cursor, offset, limit)

    def _begins(self, asked: Asked, source: str | None, exits: object, *, backward: bool) -> list[int]:
        """Where the ways begin that dominators are about."""
        if backward:
            if source is not None:
                raise refused("`source` is for dominators, not for post-dominators", "$.source")
            kinds = read_exits("exit", exits, EXIT_KINDS)
            asked.parameters["exit"] = list(kinds)
            return self.graph.exits_of(kinds)
        if exits is not None:
            raise refused("`exit` is for post-dominators, not for dominators", "$.exit")
        if source is not None:
            return [asked.block("source", source)]
        if self.spec.owner is None:
            raise refused("a graph of everything has no entry", "$.source", hint="give a `source`")
        return [0] if self.graph.blocks else []

    def _steps(self, edges: Edges) -> _Result:
        rows = self.graph.rows
        return _Result(
            status="found",
            listed=len(edges),
            total=len(edges),
            row=lambda at: {**rows[edges[at]], "step_index": at},
        )

    def _path_row(self, number: int, start: int, edges: Edges) -> Mapping[str, Any]:
        graph = self.graph
        blocks = [start, *(graph.targets[edge] for edge in edges)]
        return {
            "number": number,
            "length": len(edges),
            "blocks": [graph.blocks[at] for at in blocks],
            "edges": [graph.edges[at] for at in edges],
        }

    def _loop_row(self, loops: Loops, one: Loop | Irreducible) -> Mapping[str, Any]:
        blocks, edges = self.graph.blocks, self.graph.edges
        if isinstance(one, Irreducible):
            return {
                "kind": "irreducible",
                "header": None,
                "entries": [blocks[at] for at in one.entries],
                "blocks": [blocks[at] for at in one.blocks],
                "back_edges": [],
                "parent": None,
                "depth": None,
            }
        return {
            "kind": "natural",
            "header": blocks[one.header],
            "entries": [blocks[one.header]],
            "blocks": [blocks[at] for at in loops.body(one.header)],
            "back_edges": [edges[at] for at in one.back_edges],
            "parent": None if one.parent is None else blocks[one.parent],
            "depth": one.depth,
        }

    def _answer(
        self,
        verb: str,
        asked: Asked,
        find: Callable[[], _Result],
        cursor: str | None,
        offset: int | None,
        limit: int,
    ) -> Answer:
        limit = whole("limit", limit, 1, MAX_LIMIT)
        owner = {} if self.spec.owner is None else {self.spec.owner: self.owner}
        question = owner | asked.parameters
        bound = self._binding(verb, question)
        start = page_start(cursor, offset, bound)
        result = _Result(status="unknown", total=None) if asked.missing else self._found(bound, find)
        wanted = range(start, min(start + limit, result.listed))
        rows = _fitting(result, wanted)
        end = start + len(rows)
        exhausted = end >= result.listed
        value = {
            "status": result.status,
            "rows": rows,
            "source": {
                "evidence_id": self.parent.evidence_id,
                "artifact": self.parent.subject.digest,
                "format": self.parent.subject.format,
            },
            "coverage": self.graph.coverage.as_json(),
            "certificate": self._certificate(result.certificate),
            "missing": [{"argument": argument, "id": one} for argument, one in asked.missing],
            "page": {
                "offset": start,
                "returned": len(rows),
                "total": result.total,
                "exhausted": exhausted,
                "shortened": len(rows) < len(wanted),
            },
        }
        return Answer(
            value=value,
            parameters=question | {"offset": start, "limit": limit},
            outside={"page.next_cursor": None if exhausted else issue_cursor(bound, end)},
        )

    def _binding(self, verb: str, question: dict[str, Any]) -> bytes:
        """Digest of all that decides which rows a query has and in which order."""
        whole_question = {
            "contract": f"{self.spec.contract}.{verb}",
            "version": self.spec.version,
            "parent": self.parent.evidence_id,
            "question": values.encode(question),
        }
        return hashlib.sha256(canonical(whole_question)).digest()

    def _found(self, bound: bytes, find: Callable[[], _Result]) -> _Result:
        last = self._last  # one reference: another thread may put in another query's at any moment
        if last is not None and last[0] == bound:
            return last[1]
        result = find()
        self._last = (bound, result)
        return result

    def _certificate(self, end: Frontier | None) -> dict[str, Any] | None:
        if end is None:
            return None
        blocks, edges = self.graph.blocks, self.graph.edges
        return {
            "reached": end.reached,
            "blocks": [blocks[at] for at in end.blocks],
            "edges": [edges[at] for at in end.edges],
            "unresolved": [blocks[at] for at in end.unresolved[:MAX_SHOWN_UNRESOLVED]],
            "unresolved_omitted": max(0, len(end.unresolved) - MAX_SHOWN_UNRESOLVED),
        }


def _fitting(result: _Result, wanted: Sequence[int]) -> list[Any]:
    """The rows at these places as far as they fit a page, made anew from their canonical bytes; at least one."""
    bodies: list[bytes] = []
    room = MAX_PAGE_BYTES
    for at in wanted:
        body = freeze(dict(result.row(at))).data
        room -= len(body)
        if room < 0 and bodies:
            break
        bodies.append(body)
    return [values.decode(orjson.loads(body)) for body in bodies]
