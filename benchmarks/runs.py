"""Part 3: a warm run, checked and recorded, against the bare engine and against peers that record nothing.

A script that differs each time is one step of a conversation: check, run, settle, commit. There the 95th of 100 is
shown as well as the median.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import PEERS, ROOT, Contestant, probe, rounds
from benchmarks.report import Comparison, Section

ROUNDS = 11
STEPS = 41
WARM = 3
GOAL = 2.0
CASES = {
    "none": "no call",
    "one": "1 call",
    "sequential": "100 calls in sequence",
    "gathered": "100 calls gathered",
}
PYTHON = ROOT / ".cache" / "bench-venv" / "bin" / "python"
NAMES = {
    "fastmcp": "FastMCP",
    "harness": "pydantic-ai-harness",
    "smolagents": "smolagents",
    "toolplane": "toolplane",
}


def measure() -> list[Section]:
    contestants = {
        f"{engine} {mode}": Contestant(probe("run", engine, mode))
        for engine in ("cpython", "monty")
        for mode in ("bare", "session")
    }
    peers = list(NAMES) if _works(PYTHON) else []
    for peer in peers:
        contestants[peer] = Contestant([str(PYTHON), str(PEERS / f"run_{peer}.py")])
    try:
        sections = [
            _section(contestants, peers, fresh=False),
            _section(contestants, peers, fresh=True),
        ]
    finally:
        for one in contestants.values():
            one.close()
    if not peers:
        sections[0].notes.append("The Python peers were left out: `make bench` installs them.")
    sections[-1].notes.append(
        "The product checks types, keeps one locked process per run and records every call durably;"
    )
    sections[-1].notes.append("the bare engine and the peers record nothing and check no later script.")
    return sections


def _section(contestants: dict[str, Contestant], peers: list[str], *, fresh: bool) -> Section:
    which = "a script that differs each time" if fresh else "the same script each time"
    section = Section(f"A warm run, {which}")
    for case, title in CASES.items():
        turns: dict[str, Callable[[], float]] = {
            name: lambda one=one, case=case: one.ask(case=case, fresh=fresh)["seconds"]
            for name, one in contestants.items()
        }
        rounds(turns, WARM)
        taken = rounds(turns, STEPS if fresh else ROUNDS)
        against = [("bare engine", "cpython bare", GOAL), *((NAMES[peer], peer, 1.0) for peer in peers)]
        section.comparisons += [
            Comparison(
                what=title + after,
                ours=taken["cpython session"],
                against=name,
                theirs=taken[other],
                goal=None if case == "none" else goal,
                quantile=quantile,
            )
            for quantile, after in ((0.5, ""), (0.95, ", 95th of 100"))[: 1 + fresh]
            for name, other, goal in against
        ]
        section.comparisons.append(
            Comparison(
                what=f"{title}, monty",
                ours=taken["monty session"],
                against="bare monty",
                theirs=taken["monty bare"],
            )
        )
    return section


def _works(python: Path) -> bool:
    if not os.access(python, os.X_OK):
        return False
    modules = "fastmcp, pydantic_ai_harness, smolagents, toolplane"
    return subprocess.run([str(python), "-c", f"import {modules}"], check=False).returncode == 0
