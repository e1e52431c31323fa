"""Every script of the corpora comes out the same, on each engine that accepts it; so do generated programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from affidavit import Workspace
from affidavit.errors import RejectedError
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.session import Session
from tests.conformance.programs import programs
from tests.conformance.snippets import SNIPPETS
from tests.runtime.typecheck import test_corpus as agents

from .bench import ENGINES


def ten(x: Any) -> Any:
    """Ten times x."""
    return x * 10


def fail(text: str, code: str = "tool-failed") -> Any:
    """Always fails."""
    raise ValueError(f"{code}: {text}")


async def differences(workspace: Workspace, session: Session, source: str, engine: str) -> list[Any]:
    """Run a script, replay it on both engines, and tell what differs; nothing where the engine refuses it."""
    run = await session.run(source, engine=engine)
    if run.status == "rejected":
        return []
    found: list[Any] = []
    for other in ENGINES:
        try:
            replay = await workspace.replay(run.run_id, engine=other)
        except RejectedError:
            if other == engine:
                found.append((source, engine, "refused"))
            continue
        if not replay.same or (other == engine and not replay.same_output):
            found.append((source, engine, other, replay.divergence))
    return found


async def test_ordinary_scripts_come_out_the_same(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path / "workspace") as workspace:
        workspace.use(functions_namespace("math", [ten, fail]))
        session = await workspace.session()
        fitting = [snippet.source for snippet in SNIPPETS if sys.version_info >= (3, snippet.since)]
        found = [
            await differences(workspace, session, source, engine) for source in fitting for engine in ENGINES
        ]
        assert len(session.runs()) > 200
        assert [one for some in found for one in some] == []


async def test_scripts_as_agents_write_them_come_out_the_same(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path / "workspace") as workspace:
        workspace.use(functions_namespace("desk", [agents.score, agents.lookup]))
        found: list[Any] = []
        session = await workspace.session(mounts=[f"app={agents.ROOT / 'examples' / 'small_app'}"])
        for steps in agents.CORRECT.values():
            if len(steps) > 1:  # each of these sessions begins without results
                session = await workspace.session(mounts=[f"app={agents.ROOT / 'examples' / 'small_app'}"])
            for step in steps:
                found += await differences(workspace, session, step, "cpython")
        assert found == []


class Runs:
    """A session on an event loop of its own, for tests that are not coroutines."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.workspace = Workspace.open(folder)
        self.workspace.use(functions_namespace("math", [ten, fail]))
        self.session = self.runner.run(self.workspace.session())

    def differences(self, source: str, engine: str) -> list[Any]:
        return self.runner.run(differences(self.workspace, self.session, source, engine))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    made = Runs(tmp_path_factory.mktemp("replay") / "workspace")
    yield made
    made.runner.run(made.workspace.close())
    made.runner.close()


_RELAXED = settings(
    max_examples=25,
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_RELAXED
@given(source=programs())
def test_a_program_comes_out_the_same(runs: Runs, source: str) -> None:
    assert runs.differences(source, "cpython") == []


@st.composite
def weaves(draw: st.DrawFn) -> str:
    """Several coroutines that call, sleep, yield and note what they see and when."""
    steps = st.sampled_from(
        [
            "note(await df.tool.math.ten(x=len(seen)))",
            "await asyncio.sleep(0)",
            "await asyncio.sleep(0.001)",
            "await asyncio.sleep(0.002 * (1 + len(seen) % 2))",
            "note(time.time())",
            "note(time.monotonic())",
            "note(random.random())",
            "note(len(df.calls()))",
            "note(df.budget()['calls_left'])",
            "await failing()",
        ]
    )
    bodies = draw(st.lists(st.lists(steps, min_size=1, max_size=5), min_size=1, max_size=5))
    lines = ["import asyncio, random, time", "seen = []", "def note(value):", "    seen.append(value)"]
    lines += ["async def failing():", "    try:", "        await df.tool.math.fail(text=str(len(seen)))"]
    lines += ["    except df.Error as error:", "        note([error.message, error.details])"]
    for number, body in enumerate(bodies):
        lines += [f"async def work{number}():", f"    note('{number}')", *(f"    {step}" for step in body)]
    calls = ", ".join(f"work{number}()" for number in range(len(bodies)))
    return "\n".join([*lines, f"await asyncio.gather({calls})", "seen"]) + "\n"


@_RELAXED
@given(source=weaves(), engine=st.sampled_from(ENGINES))
def test_whatever_is_woven_comes_out_the_same(runs: Runs, source: str, engine: str) -> None:
    assert runs.differences(source, engine) == []
