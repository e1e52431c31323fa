"""Comparisons and how they are printed: what was measured, against what, the ratio, the goal and whether it was met."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two things measured in the same rounds.

    `goal` bounds the ratio of the medians from above; None is information without a goal. `unit` is `ms`, `s`, `MB`,
    `B` or `/s`; the numbers are in seconds or bytes. Under `/s` they are seconds each and shown as how many a second.
    `quantile` is 0.5 for medians; another one takes their place in all that is shown.
    """

    what: str
    ours: Sequence[float]
    against: str
    theirs: Sequence[float]
    unit: str = "ms"
    goal: float | None = None
    quantile: float = 0.5

    @property
    def ratio(self) -> float:
        return self.typical(self.ours) / self.typical(self.theirs)

    @property
    def least_ratio(self) -> float:
        return min(self.ours) / min(self.theirs)

    def typical(self, values: Sequence[float]) -> float:
        """The median, or the quantile asked for."""
        if self.quantile == 0.5:
            return statistics.median(values)
        return sorted(values)[min(int(self.quantile * len(values)), len(values) - 1)]

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.ratio <= self.goal


@dataclass(slots=True)
class Section:
    """One part of the run: its comparisons, and what has to be said beside them."""

    title: str
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


_SCALES = {"ms": 1e3, "s": 1.0, "MB": 1 / (1 << 20), "B": 1.0}
_HEADER = ("what", "ours", "against", "theirs", "ratio", "of minima", "goal", "")


def show(section: Section) -> str:
    """The section as text: medians, with the least value in brackets."""
    lines = [_HEADER, *(_cells(one) for one in section.comparisons)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([section.title, "", *table, *("  " + note for note in section.notes), ""])


def verdict(sections: Sequence[Section]) -> str:
    """One line for all goals, and the names of those that were missed."""
    judged = [one for section in sections for one in section.comparisons if one.met is not None]
    missed = [
        f"{one.what} against {one.against}: {one.ratio:.2f}, goal {one.goal:g}"
        for one in judged
        if not one.met
    ]
    head = f"{len(judged) - len(missed)} of {len(judged)} goals met"
    return "\n".join([head, *("  missed: " + line for line in missed)])


def _cells(one: Comparison) -> tuple[str, ...]:
    goal = "" if one.goal is None else f"<= {one.goal:g}"
    mark = {True: "met", False: "MISSED", None: ""}[one.met]
    return (
        one.what,
        _amount(one, one.ours),
        one.against,
        _amount(one, one.theirs),
        f"{one.ratio:.3g}",
        f"{one.least_ratio:.3g}",
        goal,
        mark,
    )


def _amount(one: Comparison, values: Sequence[float]) -> str:
    if one.unit == "/s":
        return f"{1 / one.typical(values):,.0f} /s ({1 / min(values):,.0f})"
    scale = _SCALES[one.unit]
    typical, least = one.typical(values) * scale, min(values) * scale
    shown = f"{typical:,.0f}" if one.unit == "B" else f"{typical:,.4g}"
    return f"{shown} {one.unit}" + (f" ({least:,.4g})" if len(values) > 1 else "")
