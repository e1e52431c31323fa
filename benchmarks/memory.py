"""Part 4: memory for large archives, whatever their scripts are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.inputs import large_asars
from benchmarks.measure import peak_memory, probe
from benchmarks.report import Comparison, Section

LIMIT = 400 << 20


def measure() -> list[Section]:
    section = Section("Memory for an ASAR of 80 MB whose largest script has 4 MB (peak of the process tree)")
    for name, write in large_asars().items():
        with tempfile.TemporaryDirectory() as folder:
            archive = write(Path(folder) / "large.asar")
            peak = peak_memory(probe("analyse", Path(folder) / "workspace", archive))
        section.comparisons.append(
            Comparison(what=name, ours=[peak], against="limit", theirs=[LIMIT], unit="MB", goal=1.0)
        )
    section.notes += [
        "The sum of PSS over all processes, sampled every 50 ms.",
        "A byte of minified code as it is here has 58 bytes of syntax tree, of the others 190 to 290.",
    ]
    return [section]
