"""Sessions: how runs are checked, executed, settled and recovered."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from affidavit import Limits, Workspace
from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.record import Unfinished
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.program import ScriptCall
from affidavit.runtime.run import runs_of
from affidavit.runtime.session import Session
from affidavit.store import Store


def ok(n: int) -> int:
    """Returns n."""
    return n


def boom(text: str) -> int:
    """Always fails."""
    raise ValueError(text)


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        opened.use(functions_namespace("t", [ok, boom]))
        yield opened


@pytest.fixture
async def session(workspace: Workspace) -> Session:
    return await workspace.session("s1")


async def test_a_run_has_a_value_its_output_and_its_calls(session: Session) -> None:
    run = await session.run("print('one')\nx = await df.tool.t.ok(n=41)\nx + 1")
    assert (run.status, run.data, run.stdout, run.number) == ("succeeded", 42, "one\n", 1)
    assert [(call.operation, call.line, call.status) for call in run.calls] == [("tool.t.ok", 2, "ok")]


async def test_output_of_an_earlier_script_never_shows_up_later(session: Session) -> None:
    await session.run("print('one')\n{'n': 1}")
    broken = await session.run("print('two'\n")
    assert (broken.status, broken.stdout) == ("rejected", "")
    assert broken.error is not None
    assert (broken.error["code"], broken.error["line"]) == ("script-syntax", 1)


async def test_a_trailing_assignment_is_the_value(session: Session) -> None:
    run = await session.run("x = await df.tool.t.ok(n=41) + 1")
    assert (run.status, run.has_value, run.data) == ("succeeded", True, 42)


async def test_an_error_keeps_output_and_calls(session: Session) -> None:
    run = await session.run("print('part')\nawait df.tool.t.boom(text='late')\n'never'")
    assert (run.status, run.stdout, run.has_value) == ("failed", "part\n", False)
    assert run.error is not None
    assert (run.error["code"], run.error["line"]) == ("tool-failed", 2)
    assert [call.status for call in run.calls] == ["failed"]


async def test_a_tool_error_can_be_caught(session: Session) -> None:
    run = await session.run(
        "out = []\n"
        "for i in range(3):\n"
        "    try:\n"
        "        out.append(await df.tool.t.ok(n=i))\n"
        "        if i == 1:\n"
        "            await df.tool.t.boom(text='row 1')\n"
        "    except df.Error as e:\n"
        "        out.append('caught ' + e.code)\n"
        "out"
    )
    assert run.data == [0, 1, "caught tool-failed", 2]
    assert [call.status for call in run.calls] == ["ok", "ok", "failed", "ok"]


async def test_what_the_check_proves_wrong_does_not_run(session: Session) -> None:
    run = await session.run("await df.tool.t.ok(n=1)\nawait df.tool.t.okk(n=2)")
    assert (run.status, run.engine, run.calls) == ("rejected", "", ())
    (finding,) = [item for item in run.diagnostics if item["blocking"]]
    assert (finding["line"], finding["suggestion"]) == (2, "ok")


@pytest.mark.parametrize("engine", ["cpython", "monty"])
async def test_nothing_of_a_script_runs_that_the_check_refuses(session: Session, engine: str) -> None:
    """Also where a sandbox is ready and takes the script in meanwhile."""
    assert (await session.run("1", engine=engine)).status == "succeeded"
    asked: list[ScriptCall] = []
    wrong = "await df.tool.t.ok(n=1)\nawait df.tool.t.okay(n=1)"
    runs = [await session.run(wrong, engine=engine, on_call=asked.append) for _ in range(4)]
    assert {(run.status, run.engine, run.calls) for run in runs} == {("rejected", "", ())}
    assert asked == []
    right = await session.run("await df.tool.t.ok(n=1)", engine=engine, on_call=asked.append)
    assert (right.data, right.engine, len(asked)) == (1, engine, 1)


async def test_an_operation_that_is_not_awaited_does_not_run(session: Session) -> None:
    source = "made = [df.tool.t.ok(n=1)]\nlen(made)"
    run = await session.run(source)
    assert run.calls == ()
    assert run.status in ("rejected", "failed")
    assert run.error is not None
    assert run.error["line"] == 1


@pytest.mark.parametrize("engine", ["cpython", "monty"])
async def test_an_answer_may_hold_what_a_value_may(session: Session, engine: str) -> None:
    source = "pairs = [('a', 1)]\ndf.answer(status='answered', value={1: pairs}, evidence=[])"
    run = await session.run(source, engine=engine)
    assert run.status == "succeeded", run.error
    assert run.answer is not None
    assert run.answer["value"] == {"1": [["a", 1]]}


@pytest.mark.parametrize("name", ["df", "class", "two words", ""])
async def test_an_input_needs_a_name_that_scripts_can_read(session: Session, name: str) -> None:
    with pytest.raises(AffidavitError) as refused:
        await session.run("1", inputs={name: 1})
    assert refused.value.code == "arguments-invalid"


@pytest.mark.parametrize(
    "bound", [{"wall_seconds": 0}, {"cpu_seconds": -1.0}, {"memory_bytes": 1}, {"calls": -1}]
)
def test_limits_that_bound_nothing_are_refused(bound: dict[str, Any]) -> None:
    with pytest.raises(AffidavitError) as refused:
        Limits(**bound)
    assert refused.value.exit_code == 2


async def test_a_timed_out_run_keeps_what_it_did(session: Session) -> None:
    source = "print('before')\nawait df.tool.t.ok(n=1)\nwhile True: pass"
    run = await session.run(source, limits=Limits(wall_seconds=1.0))
    assert (run.status, run.stdout) == ("timed-out", "before\n")
    assert run.error is not None
    assert run.error["code"] == "timed-out"
    assert [call.status for call in run.calls] == ["ok"]
    assert (await session.run("1 + 1")).data == 2


async def test_a_key_that_is_missing_at_run_time_names_the_nearest(session: Session) -> None:
    run = await session.run("def f(rows):\n    return [r['nmae'] for r in rows]\nf([{'name': 1, 'size': 2}])")
    assert run.status == "failed"
    assert run.error is not None
    assert (run.error["type"], run.error["hint"]) == ("KeyError", "did you mean 'name'?")


async def test_inputs_are_typed_globals(session: Session) -> None:
    assert (await session.run("r['n'] + 1", inputs={"r": {"n": 1}})).data == 2
    wrong = await session.run("r['m'] + 1", inputs={"r": {"n": 1}})
    assert wrong.status == "rejected"


async def test_names_of_an_earlier_script_are_gone(session: Session) -> None:
    await session.run("kept = 1")
    run = await session.run("kept + 1")
    assert run.status == "rejected"


async def test_a_cancelled_run_is_settled_and_its_calls_are_kept(workspace: Workspace) -> None:
    entered = asyncio.Event()

    async def hang() -> None:
        """Waits for ever."""
        entered.set()
        await asyncio.Event().wait()

    workspace.use(functions_namespace("slow", [hang]))
    session = await workspace.session("s2")
    task = asyncio.create_task(session.run("await df.tool.slow.hang()"))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (view,) = session.runs()
    assert view.status == "cancelled"
    assert [cast("dict[str, Any]", event.data)["status"] for event in view.calls] == ["unfinished"]
    assert (await session.run("1 + 1")).data == 2


async def test_the_log_reduces_to_the_same_runs_every_time(workspace: Workspace, session: Session) -> None:
    await session.run("await df.tool.t.ok(n=1)")
    await session.run("nonsense(")
    events = workspace.store.events.of_session("s1")
    assert runs_of(events) == runs_of(events)
    assert [(view.number, view.status) for view in session.runs()] == [(1, "succeeded"), (2, "rejected")]
    assert workspace.store.events.of_session("s1") == events


async def test_a_session_goes_on_in_another_workspace_object(workspace: Workspace, session: Session) -> None:
    await session.run("1")
    async with Workspace.open(workspace.root) as again:
        resumed = await again.session("s1")
        assert (await resumed.run("2")).number == 2


@pytest.mark.parametrize("name", ["", "../x", "a/b", "workspace", "x" * 101, "a\nb"])
async def test_a_malformed_session_id_is_refused(workspace: Workspace, name: str) -> None:
    with pytest.raises(AffidavitError) as refused:
        await workspace.session(name)
    assert refused.value.exit_code == 2


async def test_a_direct_call_is_recorded_like_a_scripts(workspace: Workspace, session: Session) -> None:
    direct = await session.call("tool.t.ok", {"n": 1})
    run = await session.run("await df.tool.t.ok(n=1)")
    recorded = [event for event in workspace.store.events.of_session("s1") if event.kind == "call-recorded"]
    assert [event.evidence_id for event in recorded] == [run.calls[0].evidence_id] * 2
    assert json.loads(direct.json if hasattr(direct, "json") else b"null") == 1  # type: ignore[union-attr]


KILLED = """
import asyncio, sys, time
from affidavit import Workspace
from affidavit.mounts.python import functions_namespace

async def main(root):
    async def slow(tag: str) -> str:
        '''Says that it started, then waits.'''
        print("started", flush=True)
        await asyncio.sleep(60)
        return tag
    def ok(n: int) -> int:
        '''Returns n.'''
        return n
    async with Workspace.open(root) as workspace:
        workspace.use(functions_namespace("t", [slow, ok]))
        session = await workspace.session("killed")
        await session.run("await df.tool.t.ok(n=1)\\nawait df.tool.t.slow(tag='x')")

asyncio.run(main(sys.argv[1]))
"""


def kill_during_a_call(root: Path) -> None:
    """Run a script in another process and kill that while an operation is under way."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


async def test_a_killed_process_leaves_its_call_as_unfinished_and_is_never_run_again(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    kill_during_a_call(root)
    async with Workspace.open(root) as workspace:
        workspace.use(functions_namespace("t", [ok]))
        session = await workspace.session("killed")
        assert [view.status for view in session.runs()] == ["orphaned"]
        after = await session.run("await df.tool.t.ok(n=2)")
        assert after.number == 2
        orphan, _ = session.runs()
    assert orphan.status == "orphaned"
    assert [cast("dict[str, Any]", event.data)["status"] for event in orphan.calls] == ["ok", "unfinished"]
    with Store.open(root) as store:
        record = store.evidence.get(orphan.calls[1].evidence_id or "")
        assert isinstance(record.outcome, Unfinished)
        assert record.parameters == {"tag": "x"}


async def test_a_script_that_is_no_unicode_is_refused_with_the_place(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path / "workspace") as workspace:
        session = await workspace.session()
        with pytest.raises(
            UsageError, match="line 2: the script cannot hold the lone surrogate U\\+D83D"
        ) as refused:
            await session.run("x = 1\ny = '\ud83d'")
        assert (refused.value.details, refused.value.hint[:30]) == (
            {"line": 2, "column": 6},
            "write it as the escape \\ud83d,",
        )
        assert session.runs() == []
        assert (await session.run("'\\ud83d'")).data == "\ud83d"
