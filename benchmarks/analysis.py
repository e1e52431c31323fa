"""Part 1: analysing an application against parsing the same files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.inputs import Input, node_modules, real
from benchmarks.measure import PEERS, Cost, cost, peak_memory, probe, rounds
from benchmarks.report import Comparison, Section

ROUNDS = 3
GOAL = 2.0


def measure() -> list[Section]:
    modules = node_modules()
    section = Section("Analysis of an application (a fresh process and workspace each time)")
    for subject in real():
        section.comparisons += _compare(subject, modules)
    section.notes.append(
        "tree-sitter, acorn and Babel parse files and no more; the analysis also reads the container,"
    )
    section.notes.append("digests every file, finds and resolves references, and writes indexed facts.")
    section.notes.append(
        "CPU is that of the whole process tree, start of the interpreter included; memory is PSS of the tree."
    )
    if modules is None:
        section.notes.append("acorn and Babel were left out: npm or Node is not there.")
    return [section]


def _compare(subject: Input, modules: Path | None) -> list[Comparison]:
    commands: dict[str, Callable[[], list[str]]] = {"tree-sitter": lambda: probe("parse", subject.plain)}
    if modules is not None:
        for parser in ("acorn", "babel"):
            commands[parser] = lambda parser=parser: _node(parser, subject, modules)
    with tempfile.TemporaryDirectory() as folder:
        fresh = (Path(folder) / str(number) for number in range(1 << 30))

        def ours() -> list[str]:
            return probe("analyse", next(fresh), subject.artifact)

        turns: dict[str, Callable[[], Cost]] = {
            name: lambda make=make: cost(make()) for name, make in ({"ours": ours} | commands).items()
        }
        taken = rounds(turns, ROUNDS)
        memory = {name: [peak_memory(make())] for name, make in ({"ours": ours} | commands).items()}
    found: list[Comparison] = []
    for name in commands:
        mine, theirs = taken["ours"], taken[name]
        goal = GOAL if name == "tree-sitter" else None
        for unit, what in (("s", "CPU"), ("s", "wall")):
            found.append(
                Comparison(
                    what=f"{subject.name} {what}",
                    ours=[one.cpu if what == "CPU" else one.wall for one in mine],
                    against=name,
                    theirs=[one.cpu if what == "CPU" else one.wall for one in theirs],
                    unit=unit,
                    goal=goal if what == "CPU" else None,
                )
            )
        found.append(
            Comparison(
                what=f"{subject.name} memory",
                ours=memory["ours"],
                against=name,
                theirs=memory[name],
                unit="MB",
            )
        )
    return found


def _node(parser: str, subject: Input, modules: Path) -> list[str]:
    # Real bundles nest deeper than Node's default stack allows.
    return ["node", "--stack-size=4000", str(PEERS / "parse.mjs"), parser, str(subject.plain), str(modules)]
