"""The arguments of graph queries: checked, in one normal form, and as places in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from affidavit.errors import UsageError
from affidavit.facts.arguments import text
from affidavit.facts.graph.model import DEFAULT_EXITS, EXIT_KINDS, ExitKind, Graph
from affidavit.facts.graph.search import Ways, ways

__all__ = ["Asked", "read_choice", "read_exits", "refused"]

_TARGETS: Final = 'a target is {"kind": "block", "id": ...} or {"kind": "exit"}'


@dataclass(slots=True, kw_only=True)
class Asked:
    """The arguments of one query, read one after the other.

    Attributes:
        graph: the graph that they are about.
        parameters: what was asked, in normal form.
        missing: arguments and the ids in them that are not in the graph.
    """

    graph: Graph
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def block(self, argument: str, value: object) -> int:
        """The place of a block, -1 where it is missing."""
        found = text(argument, value)
        self.parameters[argument] = found
        return self._place(argument, found)

    def goals(self, value: object) -> tuple[int, ...]:
        """The places of the target's blocks."""
        if not isinstance(value, Mapping):
            raise refused(
                f"`target` is of type {type(value).__name__}, not a mapping", "$.target", hint=_TARGETS
            )
        target = cast(Mapping[object, object], value)
        kind = target.get("kind")
        if kind == "block" and set(target) == {"kind", "id"}:
            block = text("target.id", target["id"])
            self.parameters["target"] = {"kind": "block", "id": block}
            place = self._place("target", block)
            return () if place < 0 else (place,)
        if kind == "exit" and set(target) <= {"kind", "exit"}:
            kinds = read_exits("target.exit", target.get("exit"), DEFAULT_EXITS)
            self.parameters["target"] = {"kind": "exit", "exit": list(kinds)}
            return tuple(self.graph.exits_of(kinds))
        raise refused("`target` is neither a block nor an exit", "$.target", hint=_TARGETS)

    def ways(self, avoid: object, avoid_edges: object) -> Ways:
        """The graph without these blocks and edges; those that are missing are left out of it.

        Raises:
            UsageError: `arguments-invalid`: no lists of ids, or more of them than blocks in a graph.
        """
        blocks, edges = _ids("avoid", avoid), _ids("avoid_edges", avoid_edges)
        most = self.graph.bounds.blocks
        if len(blocks) + len(edges) > most:
            problem = f"`avoid` and `avoid_edges` hold {len(blocks) + len(edges):,} ids, more than {most:,}"
            raise refused(problem, "$.avoid", hint="avoid fewer blocks and edges")
        self.parameters |= {"avoid": blocks, "avoid_edges": edges}
        gone = [self._place("avoid", one) for one in blocks]
        cut = [self._place("avoid_edges", one) for one in edges]
        return ways(self.graph, [at for at in gone if at >= 0], [at for at in cut if at >= 0])

    def _place(self, argument: str, one: str) -> int:
        found = self.graph.edge(one) if argument == "avoid_edges" else self.graph.block(one)
        if found is None:
            self.missing.append((argument, one))
            return -1
        return found


def read_exits(place: str, value: object, default: Sequence[ExitKind]) -> tuple[ExitKind, ...]:
    """Kinds of exits, each once, in the order of their declaration.

    Raises:
        UsageError: `arguments-invalid`.
    """
    if value is None:
        return tuple(default)
    if isinstance(value, (list, tuple)):
        wanted = cast(Sequence[object], value)
        if all(one in EXIT_KINDS for one in wanted):
            return tuple(kind for kind in EXIT_KINDS if kind in wanted)
    raise refused(f"`{place}` is not a list of kinds of exits: {', '.join(EXIT_KINDS)}", f"$.{place}")


def read_choice(argument: str, value: object, choices: Sequence[str]) -> str:
    """One of a few words.

    Raises:
        UsageError: `arguments-invalid`.
    """
    if isinstance(value, str) and value in choices:
        return value
    raise refused(
        f"`{argument}` is {ascii(value)[:80]}, not {' or '.join(map(repr, choices))}", f"$.{argument}"
    )


def _ids(argument: str, value: object) -> list[str]:
    """The ids of a list, each once, sorted: their order says nothing."""
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise refused(f"`{argument}` is not a list", f"$.{argument}")
    given = cast(Sequence[object], value)
    for at, one in enumerate(given):
        if type(one) is not str:
            text(f"{argument}[{at}]", one)
    return sorted(set(cast(Sequence[str], given)))


def refused(problem: str, path: str, *, hint: str = "`describe` shows what it takes") -> UsageError:
    """The error for an argument that a query does not take."""
    return UsageError("arguments-invalid", problem, hint=hint, details={"path": path})
