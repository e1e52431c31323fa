"""Part: four questions for paths under exclusions, against graph libraries that keep neither edges nor their order."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from benchmarks.flowgraphs import Shape, shapes
from benchmarks.measure import PEERS, ROOT, Contestant, probe, rounds
from benchmarks.report import Comparison, Section

ROUNDS = 15
GOAL = 1.0
PYTHON = ROOT / ".cache" / "bench-venv" / "bin" / "python"
LIBRARIES = ("networkx", "rustworkx")


def measure() -> list[Section]:
    ours = Contestant(probe("paths"))
    peers = {
        name: Contestant([str(PYTHON), str(PEERS / f"paths_{name}.py")]) for name in LIBRARIES if _has(name)
    }
    try:
        sections = [_section(shape, ours, peers) for shape in shapes()]
    finally:
        for one in (ours, *peers.values()):
            one.close()
    if not peers:
        sections[0].notes.append("networkx and rustworkx were left out: `make bench` installs them.")
    sections[-1].notes.append(
        "The search gives edges by identity, the first path in native order; the libraries"
    )
    sections[-1].notes.append(
        "give nodes of any shortest path. A reply adds the recorded rows and normal form."
    )
    return sections


def _section(shape: Shape, ours: Contestant, peers: dict[str, Contestant]) -> Section:
    graph = {"blocks": shape.blocks, "edges": shape.edges}

    def ask(one: Contestant, how: str) -> Any:
        return one.ask(ask=how, questions=shape.questions)

    def cold() -> float:
        ours.ask(graph=graph)
        return ask(ours, "reply")["seconds"]

    for one in (ours, *peers.values()):
        one.ask(graph=graph)
    for name, peer in peers.items():
        found, expected = ask(peer, "search")["lengths"], ask(ours, "search")["lengths"]
        if found != expected:
            raise SystemExit(f"{shape.title}: {name} finds paths of {found} edges, not of {expected}")
    turns: dict[str, Callable[[], float]] = {
        "search": lambda: ask(ours, "search")["seconds"],
        "cold": cold,
        "reply": lambda: ask(ours, "reply")["seconds"],
        "page": lambda: ask(ours, "page")["seconds"],
    }
    turns |= {name: lambda one=one: ask(one, "search")["seconds"] for name, one in peers.items()}
    taken = rounds(turns, ROUNDS)
    section = Section(f"Four paths: {shape.title}")
    for what, column, goal in (
        ("search", "search", GOAL),
        ("whole replies, each asked anew", "reply", None),
    ):
        section.comparisons += [
            Comparison(what=what, ours=taken[column], against=name, theirs=taken[name], goal=goal)
            for name in peers
        ]
    section.comparisons += [
        Comparison(
            what="whole replies, each asked anew",
            ours=taken["reply"],
            against="a new graph's",
            theirs=taken["cold"],
        ),
        Comparison(
            what="one reply four times", ours=taken["page"], against="four replies", theirs=taken["reply"]
        ),
    ]
    return section


def _has(library: str) -> bool:
    if not os.access(PYTHON, os.X_OK):
        return False
    return (
        subprocess.run(
            [str(PYTHON), "-c", f"import {library}"], check=False, stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )
