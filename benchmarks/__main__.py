"""`python -m benchmarks [NAME ...]`: all parts, or those named."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib import import_module

from benchmarks.report import Section, show, verdict

PARTS = (
    "analysis",
    "queries",
    "paths",
    "runs",
    "memory",
    "journal",
    "ledger",
    "calls",
    "tables",
    "search",
    "results",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"one of {', '.join(PARTS)}; all by default")
    names = parser.parse_args().parts or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, ", end="")
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians, the least in brackets\n", flush=True
    )
    sections: list[Section] = []
    for name in names:
        started = time.monotonic()
        for section in import_module(f"benchmarks.{name}").measure():
            sections.append(section)
            print(show(section), flush=True)
        print(f"[{name}: {time.monotonic() - started:.0f} s]\n", file=sys.stderr)
    print(verdict(sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
