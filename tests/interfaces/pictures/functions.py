"""Functions for pictures: records as a dataset gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["function"]


def function(
    total: int,
    edges: Iterable[tuple[int, int]],
    exits: Mapping[int, str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A function of blocks `f/b0`, ... and edges by places; of two edges of a block the first is `taken`."""
    leaves = exits or {}
    out: dict[int, int] = {}
    listed = list(edges)
    rows: list[dict[str, Any]] = []
    for source, target in listed:
        ordinal = out.get(source, 0)
        out[source] = ordinal + 1
        branch = sum(1 for one, _ in listed if one == source) == 2
        kind = ("taken" if ordinal == 0 else "fallthrough") if branch else "jump"
        rows.append(
            {
                "id": f"f/b{source}#{ordinal}",
                "source": f"f/b{source}",
                "target": f"f/b{target}",
                "ordinal": ordinal,
                "kind": kind,
                "condition": f"c{source}" if branch else None,
                "polarity": ordinal == 0 if branch else None,
                "case": None,
                "operation": f"0x{source:x} jcc",
            }
        )
    blocks = [
        {
            "id": f"f/b{at}",
            "entry": at == 0,
            "exit": leaves.get(at),
            "text": [f"{hex(16 * at + line)} op{line}" for line in range(3 + at % 9)],
        }
        for at in range(total)
    ]
    return {"id": "f", "name": "guarded", "blocks": blocks, "edges": rows} | changes
