"""Part 6: a workspace with a million records: opening it, getting one of them, exporting them all."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import cost, peak_memory, probe
from benchmarks.report import Comparison, Section

RECORDS = "AFFIDAVIT_BENCH_RECORDS"
BUILD_SECONDS = 600
OPENINGS = 7
OPEN_LIMIT = 0.1
GET_LIMIT = 0.001
EXPORT_LIMIT = 200 << 20


def measure() -> list[Section]:
    wanted = int(os.environ.get(RECORDS, "1000000"))
    with tempfile.TemporaryDirectory() as folder:
        root, bundle = Path(folder) / "workspace", Path(folder) / "everything.json"
        built: dict[str, Any] = cost(probe("ledger", "build", root, str(wanted), str(BUILD_SECONDS))).output
        asked = [cost(probe("ledger", "ask", root, *built["ids"])).output for _ in range(OPENINGS)]
        command = [
            sys.executable,
            "-m",
            "affidavit",
            "bundle",
            "export",
            str(bundle),
            "--workspace",
            str(root),
        ]
        started = time.monotonic()
        peak = peak_memory(command)
        seconds = time.monotonic() - started
        size = bundle.stat().st_size
    section = Section(f"A ledger of {built['records']:,} records, in a fresh process each time")
    if built["records"] < wanted:
        section.notes.append(f"{wanted:,} were wanted; building stopped after {BUILD_SECONDS} seconds.")

    def limit(what: str, ours: list[float], limit: float, unit: str) -> None:
        section.comparisons.append(
            Comparison(what=what, ours=ours, against="limit", theirs=[limit], unit=unit, goal=1.0)
        )

    limit("opening the store", [it["open"] for it in asked], OPEN_LIMIT, "ms")
    limit("getting a record by id, median", [statistics.median(it["gets"]) for it in asked], GET_LIMIT, "ms")
    limit(
        "getting a record by id, 95 of 100",
        [statistics.quantiles(it["gets"], n=20)[-1] for it in asked],
        GET_LIMIT,
        "ms",
    )
    limit("memory of `bundle export` of everything", [peak], EXPORT_LIMIT, "MB")
    pace = built["records"] / built["seconds"]
    section.notes += [
        f"Built in {built['seconds']:.0f} s, {pace:,.0f} records a second, a thousand in one transaction;",
        f"the database has {built['bytes'] / 1e6:,.0f} MB.",
        f"The bundle has {size / 1e6:,.0f} MB and took {seconds:.0f} s.",
        "Memory is the sum of PSS over the process tree, sampled every 50 ms. Every tenth record is an answer that",
        "rests on the nine before it and names a script of its own.",
        f"Each process gets {len(built['ids']):,} records once, in random order; the system's cache is warm.",
    ]
    return [section]
