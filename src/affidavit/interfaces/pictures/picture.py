"""What a picture of a function shows, whatever language it is drawn in.

Made from the function's record alone, so the same facts give the same picture: one box a block with its id, its first
and last instructions and how the flow leaves; one arrow for the edges from a block to another, with what they test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from affidavit.interfaces.pictures.outline import Group, outline

__all__ = ["MAX_DRAWN", "Arrow", "Box", "Marks", "Picture", "draw"]

MAX_DRAWN: Final = 300
"""Boxes of a picture; a function with more blocks is outlined."""

_WHOLE: Final = 6
_FIRST, _LAST = 3, 2
_LINE: Final = 60
_CASES: Final = 4

Row: TypeAlias = Mapping[str, Any]
ArrowKind: TypeAlias = Literal["taken", "else", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What of a function is marked: ids of blocks and edges.

    Attributes:
        path_blocks: on a path that was asked for.
        path_edges: likewise.
        avoided_blocks: excluded from it.
        avoided_edges: likewise.
    """

    path_blocks: frozenset[str] = frozenset()
    path_edges: frozenset[str] = frozenset()
    avoided_blocks: frozenset[str] = frozenset()
    avoided_edges: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A block, or several that are drawn as one.

    Attributes:
        lines: what it says; the first is its id or what it stands for.
        blocks: how many blocks it stands for.
        entry: the function begins in it.
        leaves: the flow leaves the function here.
        on_path: a path goes through it.
        avoided: it was excluded.
    """

    lines: tuple[str, ...]
    blocks: int = 1
    entry: bool = False
    leaves: bool = False
    on_path: bool = False
    avoided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """The edges from one box to another: places of boxes, what they test, how many they are.

    Attributes:
        back: it leads back to where a search in native order came from: it closes a loop.
    """

    source: int
    target: int
    label: str
    kind: ArrowKind = "other"
    edges: int = 1
    back: bool = False
    on_path: bool = False
    avoided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Boxes in native order, arrows by source and order, and what has to be said about them."""

    title: str
    notes: tuple[str, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    outlined: bool


@dataclass(slots=True)
class _Bundle:
    """The edges that one arrow stands for."""

    edges: list[Row] = field(default_factory=list[Row])


def draw(
    function: Row, *, marks: Marks = Marks(), notes: Iterable[str] = (), most: int = MAX_DRAWN
) -> Picture:
    """The picture of a function.

    Args:
        function: its record: `id`, `name`, and `blocks` and `edges` as rows.
        marks: what to mark.
        notes: what the picture says below its title.
        most: how many boxes it may have.
    """
    blocks: Sequence[Row] = function["blocks"]
    places = {block["id"]: at for at, block in enumerate(blocks)}
    edges = [edge for edge in function["edges"] if edge["target"] in places]
    successors = _successors(len(blocks), edges, places)
    entry = next((at for at, block in enumerate(blocks) if block["entry"]), 0)
    marked = marks.path_blocks | marks.avoided_blocks
    kept = {places[one] for one in marked if one in places}
    groups = outline(successors, entry, kept, most)
    of = {block: at for at, group in enumerate(groups) for block in group.blocks}
    bundles: dict[tuple[int, int], _Bundle] = {}
    for edge in edges:
        ends = of[places[edge["source"]]], of[places[edge["target"]]]
        # A loop within a group is told in its words; one of a single block is an arrow.
        if ends[0] != ends[1] or len(groups[ends[0]].blocks) == 1:
            bundles.setdefault(ends, _Bundle()).edges.append(edge)
    back = _back(len(groups), list(bundles), of[entry] if blocks else 0)
    outlined = len(groups) < len(blocks)
    open_ended = {edge["source"] for edge in function["edges"] if edge["target"] is None}
    said = [*notes]
    if outlined:
        said.append(
            f"outlined: {len(blocks):,} blocks in {len(groups):,} boxes; one with a count stands for several"
        )
    name = function["name"]
    return Picture(
        title=f"{name} ({function['id']})" if name and name != function["id"] else str(function["id"]),
        notes=tuple(said),
        boxes=tuple(_box(group, blocks, marks, open_ended) for group in groups),
        arrows=tuple(
            _arrow(ends, bundle.edges, marks, back=ends in back) for ends, bundle in sorted(bundles.items())
        ),
        outlined=outlined,
    )


def _successors(total: int, edges: Iterable[Row], places: Mapping[str, int]) -> list[tuple[int, ...]]:
    found: list[dict[int, None]] = [{} for _ in range(total)]
    for edge in edges:
        found[places[edge["source"]]][places[edge["target"]]] = None
    return [tuple(after) for after in found]


def _back(total: int, arrows: Sequence[tuple[int, int]], entry: int) -> set[tuple[int, int]]:
    """The arrows to a box that a depth-first search from the entry has not left yet."""
    after: list[list[int]] = [[] for _ in range(total)]
    for source, target in arrows:
        after[source].append(target)
    state = [0] * total  # 0 not met, 1 on the way, 2 left
    found: set[tuple[int, int]] = set()
    for root in [entry, *range(total)]:
        if root >= total or state[root]:
            continue
        state[root] = 1
        way = [(root, iter(after[root]))]
        while way:
            box, rest = way[-1]
            target = next(rest, None)
            if target is None:
                state[box] = 2
                way.pop()
            elif state[target] == 1:
                found.add((box, target))
            elif state[target] == 0:
                state[target] = 1
                way.append((target, iter(after[target])))
    return found


def _box(group: Group, blocks: Sequence[Row], marks: Marks, open_ended: Collection[str]) -> Box:
    members = [blocks[at] for at in group.blocks]
    ids = {block["id"] for block in members}
    exits = list(dict.fromkeys(str(block["exit"]) for block in members if block["exit"] is not None))
    lines = _lines(members[0], open_ended) if len(members) == 1 else _summary(group, members, exits)
    return Box(
        lines=tuple(_cut(line) for line in lines),
        blocks=len(members),
        entry=any(block["entry"] for block in members),
        leaves=bool(exits),
        on_path=not ids.isdisjoint(marks.path_blocks),
        avoided=not ids.isdisjoint(marks.avoided_blocks),
    )


def _lines(block: Row, open_ended: Collection[str]) -> list[str]:
    text: Sequence[str] = block["text"]
    if len(text) > _WHOLE:
        text = [*text[:_FIRST], f"... {len(text) - _FIRST - _LAST} more", *text[-_LAST:]]
    lines = [block["id"], *text]
    if block["id"] in open_ended:
        lines.append("it is not known where one edge leads")
    return [*lines, f"exit: {block['exit']}"] if block["exit"] else lines


def _summary(group: Group, members: Sequence[Row], exits: Sequence[str]) -> list[str]:
    loops = f", {group.loops} loops" if group.loops > 1 else ", a loop" if group.loops else ""
    lines = [f"{group.kind} of {len(members):,} blocks{loops}", f"from {members[0]['id']}"]
    if group.kind == "chain":
        lines.append(f"to {members[-1]['id']}")
    return [*lines, f"exit: {', '.join(exits)}"] if exits else lines


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."


def _arrow(ends: tuple[int, int], edges: Sequence[Row], marks: Marks, *, back: bool) -> Arrow:
    kinds: set[ArrowKind] = {_kind(edge) for edge in edges}
    ids = {edge["id"] for edge in edges}
    return Arrow(
        source=ends[0],
        target=ends[1],
        label=_cut(_label(edges)),
        kind=kinds.pop() if len(kinds) == 1 else "other",
        edges=len(edges),
        back=back,
        on_path=not ids.isdisjoint(marks.path_edges),
        avoided=not ids.isdisjoint(marks.avoided_edges),
    )


def _kind(edge: Row) -> ArrowKind:
    if edge["polarity"] is None:
        return "other"
    return "taken" if edge["polarity"] else "else"


def _label(edges: Sequence[Row]) -> str:
    """What the edges test: each once, the cases together."""
    cases = [edge for edge in edges if edge["kind"] == "case"]
    words = list(dict.fromkeys(_words(edge) for edge in edges if edge["kind"] != "case"))
    if cases:
        doubt = "?" if any(edge.get("proven") is False for edge in cases) else ""
        values = ", ".join(str(edge["case"]) for edge in cases[:_CASES])
        more = f", ... ({len(cases)} cases)" if len(cases) > _CASES else ""
        words.append(f"case {values}{more}{doubt}")
    return "; ".join(word for word in words if word)


def _words(edge: Row) -> str:
    if edge["kind"] == "taken":
        operation: str = edge["operation"] or ""
        return edge["condition"] or operation.partition(" ")[2] or "taken"
    if edge["kind"] == "fallthrough":
        return "else" if edge["polarity"] is not None else ""
    return "" if edge["kind"] == "jump" else str(edge["kind"])
