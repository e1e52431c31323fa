"""Parser processes: killable, replaced, bounded, and gone when they are not needed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript.languages import LANGUAGES
from affidavit.analyzers.javascript.parsing import pool
from affidavit.analyzers.javascript.parsing.pool import Allowance, Job, Outcome, parse_all
from affidavit.analyzers.javascript.parsing.wire import decode
from affidavit.errors import FailedError

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


def job(index: int, source: bytes | None, *, size: int | None = None, language: str = "javascript") -> Job:
    stated = len(source or b"") if size is None else size
    return Job(index=index, language=LANGUAGES.index(language), size=stated, load=lambda _: source)  # type: ignore[arg-type]


def specifiers(outcome: Outcome) -> list[str | None]:
    assert outcome.state == "facts"
    return [site.specifier for site in decode(outcome.body).sites]


def noise(size: int) -> bytes:
    """Text that a grammar spends long on: brackets and operators without order."""
    rng = random.Random(1)
    return "".join(rng.choices("(){}[];,.+-*/=<>abc \n'\"`$", k=size)).encode()


LONG_AND_SHORT = [job(0, noise(3_000_000)), job(1, noise(3_000_000)), job(2, b"1")]
"""Too much for two processes at once: one is busy with the first file when the other has answered the last."""


def parsers() -> set[int]:
    """The parser processes that this process has now."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z" and b"parsing.worker" in command:
                found.add(int(entry.name))
    return found


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_file_has_one_outcome(processes: int) -> None:
    sizes = [0, 1, 10, 100_000, 3, 70_000, 2, 2, 300_000]
    jobs = [job(n, b'import "m%d";' % n + b" " * size) for n, size in enumerate(sizes)]
    outcomes = list(parse_all(jobs, processes=processes))
    assert sorted(outcome.index for outcome in outcomes) == list(range(len(jobs)))
    for outcome in outcomes:
        assert specifiers(outcome) == [f"m{outcome.index}"]


def test_nothing_to_do_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(pool.subprocess, "Popen", start)
    assert list(parse_all([])) == []


def test_files_that_cannot_be_had_have_no_outcome() -> None:
    jobs = [job(0, None, size=10), job(1, b'import "x"'), job(2, None, size=900_000)]
    assert [outcome.index for outcome in parse_all(jobs)] == [1]
    assert list(parse_all([job(0, None, size=1)])) == []


def test_each_language_is_parsed_as_such() -> None:
    source = b'import type { A } from "x"; const a = <T,>(b: T) => b;'
    outcomes = parse_all(
        [job(n, source, language=name) for n, name in enumerate(("typescript", "tsx", "javascript"))]
    )
    problems = {outcome.index: bool(decode(outcome.body).problems) for outcome in outcomes}
    assert problems == {0: False, 1: False, 2: True}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_that_takes_too_long_is_given_up_and_the_rest_goes_on(processes: int) -> None:
    jobs = [job(0, noise(3_000_000)), *(job(n, b'import "m"') for n in range(1, 200))]
    allowance = Allowance(base=1.0, per_mebibyte=0.0)
    outcomes = {
        outcome.index: outcome for outcome in parse_all(jobs, processes=processes, allowance=allowance)
    }
    assert sorted(outcomes) == list(range(200))
    assert outcomes[0].state == "timed-out"
    assert "CPU" in outcomes[0].reason
    assert all(specifiers(outcomes[n]) == ["m"] for n in range(1, 200))


def test_a_file_queued_behind_one_that_takes_too_long_is_not_blamed() -> None:
    # Small enough that both wait in one process.
    jobs = [job(0, noise(40_000)), *(job(n, b'import "m"') for n in range(1, 20))]
    allowance = Allowance(base=0.06, per_mebibyte=0.0)
    outcomes = {outcome.index: outcome.state for outcome in parse_all(jobs, processes=1, allowance=allowance)}
    assert outcomes == {0: "timed-out", **dict.fromkeys(range(1, 20), "facts")}


def test_the_clock_backs_up_the_cpu_time() -> None:
    class Impatient(Allowance):
        def wall(self, size: int) -> float:
            return 0.2

    jobs = [job(0, noise(3_000_000)), job(1, b'import "m"')]
    outcomes = {outcome.index: outcome for outcome in parse_all(jobs, processes=1, allowance=Impatient())}
    assert outcomes[0].state == "timed-out"
    assert "clock" in outcomes[0].reason
    assert outcomes[1].state == "facts"


@LINUX
def test_a_process_that_is_killed_is_replaced_and_its_file_tried_again() -> None:
    jobs = [job(n, b'import "m";' * 20_000) for n in range(6)]
    outcomes: list[Outcome] = []
    with closing(parse_all(jobs, processes=1)) as results:
        for outcome in results:
            outcomes.append(outcome)
            if len(outcomes) == 1:
                (pid,) = parsers()
                os.kill(pid, signal.SIGKILL)
    assert sorted(outcome.index for outcome in outcomes) == list(range(6))
    assert {outcome.state for outcome in outcomes} == {"facts"}


DYING = """
import os, signal
def extract(data, language, *, thinned=False):
    if data == b"die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"exit":
        os._exit(3)
    if data == b"raise":
        raise RecursionError("deep")
    if data == b"print":
        print("noise on standard output", flush=True)
        os.write(1, b"more")
    from affidavit.analyzers.javascript._facts import FileFacts
    return FileFacts(language=language, encoding="utf-8", size=len(data))
"""


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parser processes whose parser does to them what the source says."""
    (tmp_path / "dying.py").write_text(DYING)
    boot = (
        "import sys; sys.path[:] = sys.argv[1:]; import dying; "
        "import affidavit.analyzers.javascript.references as r; r.extract = dying.extract; "
        "from affidavit.analyzers.javascript.parsing.worker import main; main()"
    )
    monkeypatch.setattr(pool, "_BOOT", boot)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("dying")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_that_ends_its_parser_is_given_up_after_two_tries(processes: int) -> None:
    sources = [b"die", b"ok", b"exit", b"raise", b"print", b"ok"]
    jobs = [job(n, source) for n, source in enumerate(sources)]
    outcomes = {outcome.index: outcome for outcome in parse_all(jobs, processes=processes)}
    states = [outcomes[n].state for n in range(len(sources))]
    assert states == ["failed", "facts", "failed", "failed", "facts", "facts"]
    assert "SIGSEGV" in outcomes[0].reason
    assert "status 3" in outcomes[2].reason
    assert outcomes[3].reason == "RecursionError"


def test_a_parser_that_cannot_start_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BOOT", "raise SystemExit('no grammar here')")
    with pytest.raises(FailedError, match="no grammar here") as caught:
        list(parse_all([job(0, b"1")]))
    assert caught.value.code == "analysis-failed"
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(FailedError, match="cannot be started"):
        list(parse_all([job(0, b"1")]))


@LINUX
def test_no_process_is_left_after_the_end() -> None:
    assert len(list(parse_all([job(0, b"1")]))) == 1
    assert parsers() == set()


@LINUX
def test_no_process_is_left_after_an_early_end() -> None:
    with closing(parse_all(LONG_AND_SHORT, processes=2)) as results:
        next(results)
        assert len(parsers()) == 2
    assert parsers() == set()


@LINUX
def test_no_process_is_left_after_an_interrupt() -> None:
    def interrupted() -> Iterator[None]:
        with closing(parse_all(LONG_AND_SHORT, processes=2)) as results:
            for _ in results:
                raise KeyboardInterrupt
            yield

    with pytest.raises(KeyboardInterrupt):
        next(interrupted())
    assert parsers() == set()


SCRIPT = """
import sys
from affidavit.analyzers.javascript.parsing.pool import Job, parse_all
from pathlib import Path
source = Path(sys.argv[1]).read_bytes()
jobs = [Job(index=0, language=0, size=1, load=lambda _: b"1")]
jobs += [Job(index=n, language=0, size=len(source), load=lambda _: source) for n in range(1, 5)]
try:
    for outcome in parse_all(jobs, processes=2):
        print("one", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(130)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """A program in the middle of parsing, and its parser processes."""
    source = tmp_path / "noise.js"
    source.write_bytes(noise(3_000_000))
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"one\n"
        yield program, children(program.pid)
        program.kill()


def children(parent: int) -> set[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {int(pid) for pid in listed}


def ended(pids: set[int]) -> bool:
    """Wait until none of these processes is left; a thread gives up after a while."""
    late = threading.Event()
    timer = threading.Timer(20, late.set)
    timer.start()
    try:
        while not late.is_set():
            if not any(alive(pid) for pid in pids):
                return True
            late.wait(0.01)
        return False
    finally:
        timer.cancel()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


@LINUX
def test_ctrl_c_ends_the_program_and_its_parsers(running: tuple[subprocess.Popen[bytes], set[int]]) -> None:
    program, parsing = running
    assert len(parsing) == 2
    os.killpg(program.pid, signal.SIGINT)
    assert program.stdout is not None
    assert program.stdout.read() == b"interrupted\n"
    assert program.wait() == 130
    assert ended(parsing)


@LINUX
def test_parsers_die_with_their_parent(running: tuple[subprocess.Popen[bytes], set[int]]) -> None:
    program, parsing = running
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert ended(parsing)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little memory for a syntax tree that 600 KB of dense source are too much."""
    monkeypatch.setattr(pool, "_SHARE", 40 << 20)
    monkeypatch.setattr(pool, "_ROOM", 80 << 20)
    monkeypatch.setattr(pool, "_USUAL", 20)


@LINUX
@pytest.mark.usefixtures("little_memory")
def test_a_file_whose_tree_is_too_large_is_read_in_the_way_that_takes_less() -> None:
    dense = b"require('first');" + b"a(b,c);" * 90_000 + b"require('last');"
    jobs = [job(0, b"require('other')"), job(1, dense), job(2, dense, language="typescript")]
    outcomes = {outcome.index: outcome for outcome in parse_all(jobs, processes=2)}
    assert specifiers(outcomes[0]) == ["other"]
    assert all(specifiers(outcomes[n]) == ["first", "last"] for n in (1, 2))


@LINUX
def test_what_the_list_of_files_takes_is_not_there_for_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = b"require('first');" + b"a(b,c);" * 60_000 + b"require('last');"
    jobs = [job(0, dense), job(1, b"require('other')")]
    again: list[int] = []
    try_again = pool._Pool._try_again  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, one: Any, *, thinned: bool) -> None:
        again.append(one.job.index)
        try_again(self, one, thinned=thinned)

    monkeypatch.setattr(pool._Pool, "_try_again", noted)  # pyright: ignore[reportPrivateUsage]
    for held, expected in ((300, []), (90 << 20, [0])):
        monkeypatch.setattr(pool, "_HELD", held)
        outcomes = {outcome.index: outcome for outcome in parse_all(jobs, processes=2)}
        assert specifiers(outcomes[0]) == ["first", "last"]
        assert again == expected


@LINUX
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("source", [b"[" * 300_000 + b"]" * 300_000, b"a(b,c);" * 90_000 + b"= = 1"])
def test_a_file_that_cannot_be_read_in_less_memory_is_given_up_and_says_so(source: bytes) -> None:
    outcomes = {
        outcome.index: outcome for outcome in parse_all([job(0, source), job(1, b"require('other')")])
    }
    assert outcomes[0].state == "failed"
    assert "memory" in outcomes[0].reason
    assert specifiers(outcomes[1]) == ["other"]


@LINUX
@pytest.mark.usefixtures("little_memory")
def test_very_many_references_are_bounded_as_well() -> None:
    outcomes = {
        outcome.index: outcome for outcome in parse_all([job(0, b"require('a');" * 60_000), job(1, b"1")])
    }
    assert (outcomes[0].state, outcomes[1].state) == ("failed", "facts")
    assert "memory" in outcomes[0].reason
