"""The checker as a service: it may be killed, stalled or lied to, and never says "clean" of what it did not see."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from affidavit.runtime.typecheck import Checker, Verdict
from affidavit.runtime.typecheck.rules import own
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.server import find_binary
from affidavit.runtime.typecheck.verdict import Diagnostic
from tests.runtime.typecheck import host

_STUBS = "class Df:\n    def one(self) -> int: ...\ndf: Df\n"
_GOOD = "df.one() + 1"
_BAD = "df.one() + totl"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary folders of checkers go here, so that what stays behind is seen."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("affidavit-check-*")) == []


def _with_checker(work: Callable[[Checker], Awaitable[None]], **options: float) -> None:
    async def run() -> None:
        patient = {"timeout": 30.0, "start_timeout": 60.0} | options
        async with Checker(**patient) as checker:  # pyright: ignore[reportArgumentType]
            await work(checker)

    asyncio.run(run())


def _fake(folder: Path, body: str) -> str:
    """A program that stands in for the type checker."""
    path = folder / "fake"
    path.write_text(f"#!{sys.executable}\n{_FAKE}\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


_FAKE = """
import json, sys, time

def read():
    size = 0
    while (line := sys.stdin.buffer.readline().strip()):
        size = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(size)) if size else sys.exit()

def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()

def serve(items, encoding="utf-8", count=10**9):
    while True:
        message = read()
        if message["method"] == "initialize":
            send({"id": message["id"], "result": {"capabilities": {"positionEncoding": encoding}}})
        elif "id" in message:
            count -= 1
            if count < 0:
                time.sleep(60)
            send({"id": message["id"], "result": {"items": items}})
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit(1)", "ended or broke the protocol"),
        ("print('hello' * 1000)", "ended or broke the protocol"),
        ("sys.stdout.write('Content-Length: 99999999999\\r\\n\\r\\n')", "ended or broke the protocol"),
        (
            "sys.stdout.write('Content-Length: 2\\r\\n\\r\\n[]'); sys.stdout.flush(); time.sleep(60)",
            "broke the protocol",
        ),
        ("serve([], encoding='utf-16')", "does not count columns in bytes"),
        ("serve([{'no': 'range'}])", "unknown form"),
        ("serve([], count=2)", "took longer than"),
    ],
)
def test_a_broken_type_checker_means_unchecked(folder: Path, body: str, reason: str) -> None:
    async def run() -> Verdict:
        async with Checker(binary=_fake(folder, body), timeout=1.0, start_timeout=30.0) as checker:
            return await checker.check(_GOOD, stubs=_STUBS)

    verdict = asyncio.run(run())
    assert verdict.status == "unchecked"
    assert reason in verdict.reason


def test_a_rule_that_breaks_means_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case) -> list[Diagnostic]:
        raise ZeroDivisionError("a fault of a rule")

    monkeypatch.setattr(own, "examine", broken)

    async def work(checker: Checker) -> None:
        verdict = await checker.check(_GOOD, stubs=_STUBS)
        assert verdict.status == "unchecked"
        assert "a fault of a rule" in verdict.reason
        monkeypatch.undo()
        assert (await checker.check(_GOOD, stubs=_STUBS)).status == "clean"

    _with_checker(work)


def test_a_type_checker_that_does_not_start_means_unchecked(folder: Path) -> None:
    async def run() -> Verdict:
        async with Checker(binary=_fake(folder, "time.sleep(60)"), start_timeout=0.3) as checker:
            return await checker.check(_GOOD, stubs=_STUBS)

    verdict = asyncio.run(run())
    assert verdict.status == "unchecked"
    assert "did not start within" in verdict.reason


def test_own_rules_hold_without_a_type_checker() -> None:
    async def run() -> tuple[Verdict, Verdict]:
        async with Checker(binary="/nonexistent/ty") as checker:
            return await checker.check("df.oen()", stubs=_STUBS), await checker.check("1 +", stubs=_STUBS)

    unknown, syntax = asyncio.run(run())
    assert unknown.status == "rejected"
    assert "cannot be started" in unknown.reason
    assert unknown.blocking[0].suggestion == "one"
    assert syntax.status == "rejected"


def test_a_dirty_host_cell_is_never_silently_clean(folder: Path) -> None:
    finding = {
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
        "severity": 1,
        "code": "import-not-found",
        "message": "Cannot resolve imported module",
    }

    async def run() -> Verdict:
        async with Checker(binary=_fake(folder, f"serve([{finding!r}])")) as checker:
            return await checker.check(_GOOD, stubs=_STUBS)

    verdict = asyncio.run(run())
    assert verdict.status == "unchecked"
    assert "host's" in verdict.reason


@pytest.mark.parametrize(
    ("stubs", "reason"),
    [
        ("class Df(", "not Python"),
        ("class Df:\n    def one(self) -> Nothing: ...\ndf: Df\n", "have errors"),
        ("from nowhere import Df\ndf: Df\n", "have errors"),
    ],
)
def test_stubs_that_say_nothing_mean_unchecked(stubs: str, reason: str) -> None:
    async def work(checker: Checker) -> None:
        for _ in range(2):  # the second time the module is there already
            verdict = await checker.check(_GOOD, stubs=stubs)
            assert verdict.status == "unchecked"
            assert reason in verdict.reason
        assert (await checker.check(_GOOD, stubs=_STUBS)).status == "clean"

    _with_checker(work)


def test_a_killed_type_checker_is_replaced() -> None:
    async def work(checker: Checker) -> None:
        assert (await checker.check(_GOOD, stubs=_STUBS)).status == "clean"
        for round_ in range(3):
            before = checker.pid
            assert before is not None
            os.kill(before, signal.SIGKILL)
            assert (await checker.check(f"{_BAD}  # {round_}", stubs=_STUBS)).status == "rejected"
            assert checker.pid not in {before, None}

    _with_checker(work)


def test_a_slow_check_is_stopped_and_costs_no_other(folder: Path) -> None:
    # Answers the handshake, the warm-up and one check with its stubs, then stalls; a new process starts afresh.
    async def run() -> list[Verdict]:
        async with Checker(
            binary=_fake(folder, "serve([], count=5)"), timeout=2.0, start_timeout=30.0
        ) as checker:
            return [await checker.check(f"{_GOOD} + {number}", stubs=_STUBS) for number in range(3)]

    first, second, third = asyncio.run(run())
    assert first.status == "clean"
    assert second.status == "unchecked"
    assert "longer than 2 s" in second.reason
    assert third.status == "clean"


def test_many_at_once_get_their_own_verdicts() -> None:
    async def work(checker: Checker) -> None:
        sources = [f"missing_{number}" if number % 3 else f"{_GOOD} + {number}" for number in range(60)]
        verdicts = await asyncio.gather(*[checker.check(source, stubs=_STUBS) for source in sources])
        for source, verdict in zip(sources, verdicts, strict=True):
            if source.startswith("missing"):
                assert [found.message for found in verdict.blocking] == [f"`{source}` is not defined"]
            else:
                assert verdict.status == "clean"

    _with_checker(work)


def test_a_cancelled_check_harms_no_other() -> None:
    async def work(checker: Checker) -> None:
        for number in range(5):
            task = asyncio.create_task(checker.check(f"{_GOOD} + {number}", stubs=_STUBS))
            for _ in range(number):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await checker.check(f"{_BAD} + {number}", stubs=_STUBS)).status == "rejected"

    _with_checker(work)


def test_verdicts_are_remembered_by_everything_that_matters() -> None:
    async def work(checker: Checker) -> None:
        first = await checker.check("df.one() + extra", stubs=_STUBS, inputs_stub="extra: int\n")
        assert first.status == "clean"
        assert await checker.check("df.one() + extra", stubs=_STUBS, inputs_stub="extra: int\n") is first
        assert (await checker.check("df.one() + extra", stubs=_STUBS)).status == "rejected"
        other = _STUBS.replace("one", "two")
        assert (
            await checker.check("df.one() + extra", stubs=other, inputs_stub="extra: int\n")
        ).status == "rejected"

    _with_checker(work)


def test_memory_and_modules_stay_bounded() -> None:
    async def work(checker: Checker) -> None:
        pids: set[int | None] = set()
        for number in range(300):
            inputs = f"class Row{number}:\n    name_{number}: str\nrow: Row{number}\n"
            source = f"row.name_{number}.upper() + str(df.one())"
            assert (await checker.check(source, stubs=_STUBS, inputs_stub=inputs)).status == "clean"
            assert checker.pid is not None
            assert _resident(checker.pid) < 300 << 20
            pids.add(checker.pid)
        assert len(pids) == 4

    _with_checker(work, recycle_modules=80)


def test_it_is_recycled_after_some_checks() -> None:
    async def work(checker: Checker) -> None:
        pids: list[int | None] = []
        for number in range(30):
            assert (await checker.check(f"{_GOOD} + {number}", stubs=_STUBS)).status == "clean"
            pids.append(checker.pid)
        assert len(set(pids)) == 3

    _with_checker(work, recycle_checks=11)


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/statm")
    return (
        int(status.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        if status.exists()
        else 0
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = [\n" + '    {"name": "value", "list": [1, 2, 3]},\n' * 25_000 + "]",
        "x = 1" + " + 1" * 5_000,
        "x = 1" + " + 1" * 700,
        "f" + "()" * 900,
        "x = 0\nif x: pass\n" + "".join(f"elif x == {number}: pass\n" for number in range(600)),
    ],
    ids=["megabyte", "5000 terms", "700 terms", "calls", "branches"],
)
def test_hostile_sources_never_reach_the_type_checker(source: str) -> None:
    async def work(checker: Checker) -> None:
        await checker.start()
        before = checker.pid
        verdict = await checker.check(source, stubs=_STUBS)
        assert verdict.status == "unchecked"
        assert verdict.reason
        assert checker.pid == before

    _with_checker(work)


def test_nothing_around_it_has_influence(folder: Path, monkeypatch: pytest.MonkeyPatch, stubs: str) -> None:
    configuration = (
        '[tool.ty.rules]\nunresolved-reference = "ignore"\n[tool.ty.environment]\npython-version = "3.8"\n'
    )
    settings = '[rules]\nunresolved-reference = "ignore"\n'
    (folder / "pyproject.toml").write_text(configuration, encoding="utf-8")
    (folder / "ty.toml").write_text(settings, encoding="utf-8")
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".config" / "ty").mkdir(parents=True)
    (folder / ".config" / "ty" / "ty.toml").write_text(settings, encoding="utf-8")
    (folder / "json.py").write_text("dumps = 1\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)

    async def work(checker: Checker) -> None:
        assert (await checker.check("print(totl)", stubs=stubs)).status == "rejected"
        assert (await checker.check("import json\njson.dumps({})", stubs=stubs)).status == "clean"
        for package in ("pytest", "pydantic", "affidavit"):
            verdict = await checker.check(f"import {package}", stubs=stubs)
            assert verdict.status == "advised"
            assert "standard library only" in verdict.diagnostics[0].message
            assert "/" not in verdict.diagnostics[0].message

    _with_checker(work)


def test_it_works_without_a_usable_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("PATH")

    async def work(checker: Checker) -> None:
        assert (await checker.check(_BAD, stubs=_STUBS)).status == "rejected"

    _with_checker(work)


def test_no_temporary_folder_means_unchecked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "gone"))

    async def work(checker: Checker) -> None:
        verdict = await checker.check(_GOOD, stubs=_STUBS)
        assert verdict.status == "unchecked"
        assert "temporary folder" in verdict.reason

    _with_checker(work)


_PARENT = """
import asyncio, os, tempfile
tempfile.tempdir = {folder!r}
from affidavit.runtime.typecheck import Checker

async def main():
    checker = Checker()
    await checker.check("1", stubs="df: int")
    print(checker.pid, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd")
def test_it_ends_with_its_parent_and_the_next_one_tidies_up(folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PARENT.format(folder=str(folder))], capture_output=True, check=False
    )
    assert run.returncode == -signal.SIGKILL
    pid = int(run.stdout)
    _await_end(pid)
    left = list(folder.glob("affidavit-check-*"))
    assert len(left) == 1
    young = os.stat(left[0]).st_mtime
    os.utime(left[0], (young - 3_600, young - 3_600))

    async def work(checker: Checker) -> None:
        assert (await checker.check(_GOOD, stubs=_STUBS)).status == "clean"
        assert not left[0].exists()

    _with_checker(work)


def _await_end(pid: int) -> None:
    """Block until a process that is not our child is gone (or only its entry is left)."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    try:
        ready, _, _ = select.select([descriptor], [], [], 30)
        assert ready, "the type checker outlived its parent"
    finally:
        os.close(descriptor)


def test_folders_in_use_are_not_swept(folder: Path) -> None:
    with asyncio.Runner() as runner:
        first, second = Checker(), Checker()
        assert runner.run(first.check(_GOOD, stubs=_STUBS)).status == "clean"
        kept = next(folder.glob("affidavit-check-*"))
        os.utime(kept, (1, 1))
        assert runner.run(second.check(_GOOD, stubs=_STUBS)).status == "clean"
        assert kept.exists()
        assert runner.run(first.check(_BAD, stubs=_STUBS)).status == "rejected"
        runner.run(first.close())
        runner.run(second.close())


def test_closing_twice_and_checking_again(stubs: str) -> None:
    async def run() -> None:
        checker = Checker()
        await checker.close()
        await checker.start()
        await checker.close()
        await checker.close()
        assert checker.pid is None
        assert (await checker.check(_BAD, stubs=stubs)).status == "rejected"
        await checker.close()

    asyncio.run(run())


def test_the_executable_is_found() -> None:
    binary = find_binary()
    assert binary is not None
    assert os.access(binary, os.X_OK)


def test_findings_are_shown_as_json() -> None:
    async def work(checker: Checker) -> None:
        verdict = await checker.check("x = 1\ndf.oen()", stubs=_STUBS)
        assert [found.as_json() for found in verdict.diagnostics] == [
            {
                "line": 2,
                "column": 4,
                "rule": "unknown-operation",
                "message": "`df` has no `oen`; it has: one",
                "blocking": True,
                "suggestion": "one",
            }
        ]
        plain = await checker.check("import nothing_such", stubs=_STUBS)
        assert "suggestion" not in plain.diagnostics[0].as_json()

    _with_checker(work)


def test_positions_are_characters_not_bytes(stubs: str) -> None:
    async def work(checker: Checker) -> None:
        verdict = await checker.check("größe = '漢字😀'; print(größe, totl)", stubs=stubs)
        assert [(found.line, found.column) for found in verdict.blocking] == [(1, 29)]

    _with_checker(work)


def test_the_sample_host_is_understood(stubs: str) -> None:
    async def work(checker: Checker) -> None:
        verdict = await checker.check("df.db.app.modules, results", stubs=stubs, inputs_stub=host.RESULTS)
        assert verdict.status == "clean"

    _with_checker(work)
