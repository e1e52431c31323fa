"""How things are measured: interleaved rounds, the CPU time and the memory of a whole process tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
PROBES = Path(__file__).parent / "probes"
PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process and all that it started and waited for took: seconds by the clock and of CPU."""

    wall: float
    cpu: float
    output: Any


def rounds(contestants: Mapping[str, Callable[[], T]], count: int) -> dict[str, list[T]]:
    """Let each have its turn, `count` times over: A B C A B C ... so that a busy moment hits all alike."""
    results: dict[str, list[T]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, turn in contestants.items():
            results[name].append(turn())
    return results


def cost(command: Sequence[str]) -> Cost:
    """Run a command to its end. Its output is one JSON document, or nothing."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ... {command[-1]} ended with {process.returncode}")
    return Cost(wall=wall, cpu=usage.ru_utime + usage.ru_stime, output=json.loads(output) if output else None)


def peak_memory(command: Sequence[str], *, every: float = 0.05) -> float:
    """The largest sum of PSS over the process tree while a command runs, in bytes, sampled from /proc.

    PSS counts a page that several processes share once in all. Peaks shorter than the interval may be missed.
    """
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_pss, _tree(process.pid))))
        time.sleep(every)
    if process.returncode:
        raise SystemExit(f"{command[0]} ... {command[-1]} ended with {process.returncode}")
    return float(peak)


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                found += map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split())
    return found


def _pss(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


@dataclass(slots=True)
class Contestant:
    """A warm process that does one piece of work when asked and says how long it took.

    It reads JSON lines from its standard input and answers each with one.
    """

    command: Sequence[str]
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, **request: Any) -> Any:
        """Its answer to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self.command)} ended with {self.process.wait()} at {request}")
        return json.loads(answer)

    def close(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def probe(name: str, *arguments: str | Path) -> list[str]:
    """The command of one of our own measured programs."""
    return [sys.executable, str(PROBES / f"{name}.py"), *map(str, arguments)]
