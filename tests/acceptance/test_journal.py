"""Journals of whole sessions: killed at any moment, out of room, restored elsewhere; without one nothing changes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from affidavit.evidence.record import Success, Unfinished
from affidavit.interfaces.cli import run as command_line
from affidavit.runtime.run import runs_of
from affidavit.store import Store
from affidavit.store.journal import restore, verify
from affidavit.workspace import Workspace

APP = f"app={Path(__file__).parents[2] / 'examples' / 'small_app'}"

# Runs scripts in one to four sessions at once and says each value that a script received, with its record's id.
WORKER = """
import asyncio, json, sys
from pathlib import Path
from affidavit import Workspace
from affidavit.mounts.python import functions_namespace
from affidavit.store.journal import JournalSettings

root, sessions, runs = Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3])
settings = JournalSettings(folder=root / "j", fsync="always", part_bytes=1 << 17)

def ok(session: str, n: int) -> dict[str, str | int]:
    '''Returns what it was given, more of it every now and then.'''
    return {"session": session, "n": n, "text": "x" * (100_000 if n % 7 == 0 else 500)}

def said(line: str) -> None:
    '''Tells the world that the script received a value.'''
    print(line, flush=True)

async def work(workspace, name):
    session = await workspace.session(name)
    for number in range(runs):
        run = await session.run(f'''
import asyncio
import json
for i in range(5):
    value = await df.tool.t.ok(session={name!r}, n={number} * 5 + i)
    await df.tool.t.said(line=json.dumps([{name!r}, value["n"], df.calls()[-1]["evidence_id"]]))
''')
        assert run.status == "succeeded", run.error

async def main():
    async with Workspace.open(root / "w", journal=settings) as workspace:
        workspace.use(functions_namespace("t", [ok, said]))
        await asyncio.gather(*(work(workspace, name) for name in sessions))

asyncio.run(main())
"""


def worker(root: Path, sessions: list[str], runs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(root), ",".join(sessions), str(runs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def first_part(root: Path, session: str) -> Path:
    return root / "j" / f"{session}.none.jsonl"


def added(root: Path, session: str) -> set[str]:
    """Ids of the records in a journal's whole lines, read without the product."""
    found: set[str] = set()
    for part in (root / "j").glob(f"{session}.none*.jsonl"):
        data = part.read_bytes()
        found |= {
            document["adds"] for document in map(json.loads, data.split(b"\n")[:-1]) if "adds" in document
        }
    return found


@pytest.mark.parametrize("seed", range(6))
def test_sessions_killed_at_any_moment_have_every_received_call_in_their_journals(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    sessions = [f"k{number}" for number in range(chance.randrange(1, 5))]
    process = worker(tmp_path, sessions, 1000)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
    os.kill(process.pid, signal.SIGKILL)
    lines += process.communicate()[0].split("\n")[:-1]
    assert process.returncode == -signal.SIGKILL
    received = [json.loads(line) for line in lines if line]
    for session in sessions:
        report = verify(first_part(tmp_path, session))
        assert report.status in ("holds", "torn"), report.problems
        assert {evidence_id for name, _, evidence_id in received if name == session} <= added(
            tmp_path, session
        )
    # The journals are gone on with, the lost run is settled, and all of it comes back elsewhere.
    again = worker(tmp_path, sessions, 1)
    again.communicate()
    assert again.returncode == 0
    for session in sessions:
        path = first_part(tmp_path, session)
        assert verify(path).status == "holds"
        assert verify(path).closed
        with Store.open(tmp_path / "w") as store, Store.open(tmp_path / "back") as back:
            restore(path, back)
            assert [(it.kind, it.at, it.evidence_id) for it in back.events.of_session(session)] == [
                (it.kind, it.at, it.evidence_id) for it in store.events.of_session(session)
            ]
            statuses = [view.status for view in runs_of(back.events.of_session(session))]
            assert statuses[-1] == "succeeded"
            assert set(statuses) <= {"succeeded", "orphaned"}
            for name, number, evidence_id in received:
                if name == session:
                    record = back.evidence.get(evidence_id)
                    assert isinstance(record.outcome, Success)
                    assert back.evidence.result(record)["n"] == number


class Cli:
    """Runs command lines in this process, with a workspace and a journal folder below `root`."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def __call__(self, *words: object, workspace: str = "w") -> tuple[int, str, str]:
        code = command_line([*map(str, words), "--workspace", str(self.root / workspace)])
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *words: object, workspace: str = "w") -> tuple[int, Any]:
        code, out, _ = self(*words, "--json", workspace=workspace)
        return code, json.loads(out)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, capsys)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(
        "page = await df.db.app.files.page()\n"
        "df.answer(status='answered', value=len(page.rows), evidence=[page.evidence_id], derivation='counted')\n"
        "[dict(row) for row in page.rows]\n"
    )
    return path


def test_a_session_goes_from_journal_to_another_workspace(cli: Cli, script: Path) -> None:
    folder = cli.root / "j"
    code, run = cli.json("run", script, "--mount", APP, "--session", "s1", "--journal", folder)
    assert (code, run["status"]) == (0, "succeeded"), run
    [path] = folder.iterdir()
    assert path.name.startswith("s1.")
    code, report = cli.json("journal", "verify", path, workspace="none")
    assert (code, report["status"], report["closed"], report["session"]) == (0, "holds", True, "s1")
    assert report["subjects"][0]["digest"].removeprefix("sha256:").startswith(path.name.split(".")[1])
    assert not (cli.root / "none").exists()
    code, done = cli.json("journal", "restore", path, workspace="back")
    assert (code, done["events"]["present"], done["records"]["present"]) == (0, 0, 0)
    assert done["records"]["added"] == report["records"]
    for shown in (("evidence", "list"), ("session", "show", "s1"), ("session", "show", "s1")):
        here, there = cli.json(*shown)[1], cli.json(*shown, workspace="back")[1]
        if "evidence" in here:
            here, there = ({it["evidence_id"] for it in found["evidence"]} for found in (here, there))
        assert here == there
    code, done = cli.json("journal", "restore", path, workspace="back")
    assert (code, done["events"]["added"], done["records"]["added"]) == (0, 0, 0)
    code, out, _ = cli("journal", "tail", path, "--count", "2", workspace="none")
    assert code == 0
    assert "run-settled" in out
    assert len(out.splitlines()) == 3


def test_the_journal_names_no_path(cli: Cli, script: Path) -> None:
    assert cli("run", script, "--mount", APP, "--session", "s1", "--journal", cli.root / "j")[0] == 0
    [path] = (cli.root / "j").iterdir()
    text = path.read_text("utf-8")
    assert str(cli.root) not in text
    assert str(Path(__file__).parents[2]) not in text
    assert "small_app" not in text


def test_exit_codes_and_words_for_damage(cli: Cli, script: Path) -> None:
    assert cli("run", script, "--mount", APP, "--session", "s1", "--journal", cli.root / "j")[0] == 0
    [path] = (cli.root / "j").iterdir()
    good = path.read_bytes()
    path.write_bytes(good[:-7])
    code, out, err = cli("journal", "verify", path)
    assert code == 4
    assert "holds up to its torn end" in out
    assert "torn-tail" in err
    assert cli("journal", "restore", path, workspace="torn")[0] == 0
    path.write_bytes(good.replace(b'"examined"', b'"examinee"', 1))
    code, out, err = cli("journal", "verify", path)
    assert code == 4
    assert "does not hold" in out
    assert "edited-line at" in err
    code, error = cli.json("journal", "restore", path, workspace="damaged")
    assert (code, error["error"]["code"]) == (4, "journal-damaged")
    assert cli("journal", "restore", path, "--partial", workspace="damaged")[0] == 0
    assert cli.json("journal", "verify", cli.root / "absent.jsonl")[0] == 3
    code, error = cli.json("journal", "restore", cli.root / "absent.jsonl", workspace="never")
    assert (code, (cli.root / "never").exists()) == (3, False)


def test_the_environment_turns_it_on(cli: Cli, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFFIDAVIT_JOURNAL", str(cli.root / "j"))
    monkeypatch.setenv("AFFIDAVIT_JOURNAL_FSYNC", "always")
    assert cli("run", script, "--mount", APP, "--session", "s1")[0] == 0
    assert cli("call", "db.app.files.count", "--mount", APP, "--session", "s2")[0] == 0
    reports = {found.session: found for found in map(verify, (cli.root / "j").iterdir())}
    assert set(reports) == {"s1", "s2"}
    assert {found.head["fsync"] for found in reports.values()} == {"always"}


def test_without_a_journal_nothing_changes(cli: Cli, script: Path) -> None:
    plain, kept = ("w", ()), ("x", ("--journal", cli.root / "j"))
    documents: list[Any] = []
    for workspace, options in (plain, kept):
        code, run = cli.json("run", script, "--mount", APP, "--session", "s1", *options, workspace=workspace)
        assert code == 0
        for name in ("run_id", "calls"):
            run[name] = [it["evidence_id"] for it in run[name]] if name == "calls" else None
        documents.append(run)
    assert documents[0] == documents[1]
    files = [sorted(it.name for it in (cli.root / workspace).iterdir()) for workspace, _ in (plain, kept)]
    assert files[0] == files[1]
    assert "j" not in files[0]


def test_at_its_bound_the_run_goes_on_and_says_so(cli: Cli, script: Path) -> None:
    script.write_text("[await df.tool.t.text(n=5000 + i) for i in range(30)][-1][:3]")
    (cli.root / "tools.py").write_text('def text(n: int) -> str:\n    "Text."\n    return "x" * n\n')
    code, out, err = cli(
        "run", script, "--mount", f"t=python:{cli.root / 'tools.py'}", "--session", "s1",
        "--journal", cli.root / "j", "--journal-bytes", 1 << 16,
    )  # fmt: skip
    assert (code, out) == (0, '"xxx"\n'), err
    assert "reached its bound" in err
    [path] = (cli.root / "j").iterdir()
    found = verify(path)
    assert (found.status, found.bound > 0) == ("holds", True)
    assert found.size <= 1 << 16


@pytest.mark.parametrize("engine", ["cpython", "monty"])
async def test_a_full_disk_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The third value never reaches the script, since its record could not be journalled."""
    from affidavit.errors import AffidavitError
    from affidavit.mounts.python import functions_namespace

    received: list[int] = []
    real = os.write
    full = False

    def write(handle: int, data: bytes) -> int:
        if full and data.startswith(b'{"n":'):
            raise OSError(28, "No space left on device")
        return real(handle, data)

    def give(n: int) -> int:
        """Gives."""
        nonlocal full
        full = n == 3
        return n

    def got(n: int) -> None:
        """What the script received."""
        received.append(n)

    monkeypatch.setattr(os, "write", write)
    async with Workspace.open(tmp_path / "w", journal=tmp_path / "j") as workspace:
        workspace.use(functions_namespace("t", [give, got]))
        session = await workspace.session("s1")
        source = "for n in range(1, 9):\n    v = await df.tool.t.give(n=n)\n    await df.tool.t.got(n=v)\n"
        with pytest.raises(AffidavitError) as caught:
            await session.run(source, engine=engine)
        assert caught.value.code == "journal-failed"
        assert received == [1, 2]
        full = False
        # With room again the session goes on, and its journal has what was missing.
        assert (await session.run("1 + 1", engine=engine)).value == 2
    [path] = (tmp_path / "j").iterdir()
    found = verify(path)
    with Store.open(tmp_path / "w") as store:
        assert (found.status, found.closed) == ("holds", True)
        assert found.events == len(store.events.of_session("s1"))


SLOW = """
import os, sys, time

def act(tag: str) -> str:
    "Acts at once, then takes its time."
    with open({log!r}, "a") as log:
        log.write(tag + "\\n")
    time.sleep(60)
    return "done"
"""


def test_a_call_that_was_cut_off_is_unfinished_and_never_repeated(cli: Cli, script: Path) -> None:
    log = cli.root / "log"
    (cli.root / "slow.py").write_text(SLOW.format(log=str(log)))
    script.write_text("await df.tool.t.act(tag='TAG')")
    command = [
        sys.executable, "-m", "affidavit", "run", str(script), "--mount", f"t=python:{cli.root / 'slow.py'}",
        "--session", "s1", "--journal", str(cli.root / "j"), "--workspace", str(cli.root / "w"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (log.exists() and log.read_text() == "TAG\n"):
        assert process.poll() is None
        os.sched_yield()
    process.kill()
    process.wait()
    script.write_text("1 + 1")
    code, run = cli.json("run", script, "--session", "s1", "--journal", cli.root / "j")
    assert (code, run["value"]) == (0, 2)
    assert log.read_text() == "TAG\n"
    [path] = (cli.root / "j").iterdir()
    assert verify(path).status == "holds"
    with Store.open(cli.root / "back") as store:
        restore(path, store)
        lost, settled = runs_of(store.events.of_session("s1"))
        assert (lost.status, settled.status) == ("orphaned", "succeeded")
        record = store.evidence.get(lost.calls[0].evidence_id or "")
        assert record.outcome == Unfinished()
        assert record.parameters == {"tag": "TAG"}


async def test_sessions_wait_for_the_disk_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `always` a session that waits for the disk holds no other up: both syncs are under way at once."""
    from affidavit.mounts.python import functions_namespace
    from affidavit.store.journal import JournalSettings

    real = os.fdatasync
    inside = 0
    both = asyncio.Event()
    meeting = threading.Barrier(2)
    met: list[int] = []

    async def meet() -> None:
        """Comes back when both sessions are here."""
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        await both.wait()

    def sync(handle: int) -> None:
        if both.is_set() and len(met) < 2:
            met.append(meeting.wait(30))
        real(handle)

    monkeypatch.setattr(os, "fdatasync", sync)
    settings = JournalSettings(folder=tmp_path / "j", fsync="always")
    async with Workspace.open(tmp_path / "w", journal=settings) as workspace:
        workspace.use(functions_namespace("t", [meet]))
        sessions = [await workspace.session(name) for name in ("a", "b")]
        runs = await asyncio.gather(*(it.run("await df.tool.t.meet()\n1") for it in sessions))
    assert [run.status for run in runs] == ["succeeded", "succeeded"], [run.error for run in runs]
    assert sorted(met) == [0, 1]
    assert {verify(path).status for path in (tmp_path / "j").iterdir()} == {"holds"}
