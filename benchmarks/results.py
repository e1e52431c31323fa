"""Part 11: a script that reads twenty earlier results of 17 KB, against one that reads none and one with literals."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Contestant, probe, rounds
from benchmarks.report import Comparison, Section

CASES = ("empty", "unnamed", "warm", "cold")
ROUNDS = 21
PASTED_ROUNDS = 3
SLOWED = 2.0
WARM_LIMIT = 0.010
COLD_LIMIT = 0.050


def measure() -> list[Section]:
    contestant = Contestant(probe("results"))

    def turns(*cases: str) -> dict[str, Callable[[], float]]:
        return {case: lambda case=case: contestant.ask(case=case)["seconds"] for case in cases}

    try:
        rounds(turns(*CASES), 2)
        taken = rounds(turns(*CASES), ROUNDS)
        pasted = rounds(turns("pasted", "warm"), PASTED_ROUNDS)
    finally:
        contestant.close()
    section = Section("Twenty earlier results of 17 KB, in a session that is warm unless said otherwise")

    def overhead(case: str) -> list[float]:
        """Least above least, ..., longest above longest: two runs of one round need not have the same luck."""
        pairs = zip(sorted(taken[case]), sorted(taken["empty"]), strict=True)
        return [max(full - bare, 1e-9) for full, bare in pairs]

    section.comparisons = [
        Comparison(
            what="script that names none of them",
            ours=taken["unnamed"],
            against="no results",
            theirs=taken["empty"],
            goal=SLOWED,
        ),
        Comparison(what="all read", ours=taken["warm"], against="no results", theirs=taken["empty"]),
        Comparison(
            what="all read: what it adds",
            ours=overhead("warm"),
            against="limit",
            theirs=[WARM_LIMIT],
            goal=1.0,
        ),
        Comparison(
            what="all read in a session just opened: what it adds",
            ours=overhead("cold"),
            against="limit",
            theirs=[COLD_LIMIT],
            goal=1.0,
        ),
        Comparison(
            what="all read", ours=pasted["warm"], against="pasted as literals", theirs=pasted["pasted"]
        ),
    ]
    section.notes.append(
        "What reading them adds is the time above that of the script without results, both in order of length."
    )
    return [section]
