"""Part 4: memory for a large archive."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.inputs import large_asar
from benchmarks.measure import peak_memory, probe
from benchmarks.report import Comparison, Section

LIMIT = 400 << 20


def measure() -> list[Section]:
    with tempfile.TemporaryDirectory() as folder:
        archive = large_asar(Path(folder) / "large.asar")
        peak = peak_memory(probe("analyse", Path(folder) / "workspace", archive))
    section = Section("Memory for an ASAR of 80 MB whose largest script has 4 MB")
    section.comparisons.append(
        Comparison(
            what="peak of the process tree", ours=[peak], against="limit", theirs=[LIMIT], unit="MB", goal=1.0
        )
    )
    section.notes.append(
        "The sum of PSS over all processes, sampled every 50 ms; four fifths of the archive are scripts."
    )
    return [section]
