"""Part 2: opening what was analysed before, asking it again, and the size of what comes back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.inputs import real
from benchmarks.measure import Contestant, cost, probe, rounds
from benchmarks.report import Comparison, Section

ROUNDS = 5
ROWS = 64
MAIN = "static/build/library/main.js"
ASKED: dict[str, tuple[str, dict[str, str] | None]] = {
    "references": ("references", None),
    "modules": ("modules", None),
    "what main.js lacks": ("modules", {"path": MAIN, "strategy": "unresolved-module"}),
}
"""The goal for bytes is that of the last: what a file refers to and how often, a row each, against their items."""


def measure() -> list[Section]:
    subject = real()[0]
    with tempfile.TemporaryDirectory() as folder:
        fresh = (Path(folder) / str(number) for number in range(1 << 30))
        kept = Path(folder) / "kept"
        cost(probe("analyse", kept, subject.artifact))
        opened = rounds(
            {
                "first": lambda: cost(probe("analyse", next(fresh), subject.artifact)),
                "again": lambda: cost(probe("analyse", kept, subject.artifact)),
            },
            2,
        )
        asked = _ask(kept)
    again, first = ([one.output["mount"] for one in opened[name]] for name in ("again", "first"))
    section = Section(f"Opening and asking {subject.name} (each reply is a recorded call)")
    section.comparisons += [
        Comparison(what="mount, analysed before", ours=again, against="first mount", theirs=first, unit="s"),
        Comparison(
            what="the same as a whole process, CPU",
            ours=[one.cpu for one in opened["again"]],
            against="first",
            theirs=[one.cpu for one in opened["first"]],
            unit="s",
        ),
    ]
    for name, replies in asked.items():
        section.comparisons += _compared(name, replies)
    section.notes.append(
        "A page holds source, coverage and evidence id once; an item has them in the record of its call."
    )
    return [section]


def _ask(workspace: Path) -> dict[str, list[Any]]:
    client = Contestant(probe("query", workspace))
    try:
        return rounds(
            {
                name: lambda collection=collection, where=where: client.ask(
                    collection=collection, where=where, limit=ROWS
                )
                for name, (collection, where) in ASKED.items()
            },
            ROUNDS,
        )
    finally:
        client.close()


def _compared(name: str, replies: list[Any]) -> list[Comparison]:
    rows = replies[0]["rows"]
    where = ASKED[name][1]

    def column(key: str) -> list[float]:
        return [reply[key] for reply in replies]

    def compare(what: str, ours: str, against: str, theirs: str, **more: Any) -> Comparison:
        return Comparison(
            what=f"{name}: {what}", ours=column(ours), against=against, theirs=column(theirs), **more
        )

    return [
        compare("the same page again", "again", "first page, dataset opened anew", "first"),
        compare("the next page", "following", "first page", "first"),
        compare(f"a page of {rows} rows", "first", f"{rows} items by get", "gets"),
        compare(
            f"bytes of a page of {rows} rows",
            "page_bytes",
            f"{rows} items, each with its evidence",
            "complete_bytes",
            unit="B",
            goal=0.05 if where else None,
        ),
        compare("bytes of the same page", "page_bytes", f"{rows} bare items by get", "gets_bytes", unit="B"),
        compare("bytes of the same page", "page_bytes", "the items by one get_many", "many_bytes", unit="B"),
    ]
