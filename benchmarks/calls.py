"""Calls of an MCP server: a script through `df.tool`, each recorded, beside the client alone and FastMCP's proxy."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from affidavit.runtime.session import Session
from affidavit.workspace import Workspace
from benchmarks.measure import PEERS, ROOT
from benchmarks.report import Comparison, Section

SERVER = PEERS / "mcp_server.py"
PROXY = ROOT / ".cache" / "bench-venv" / "bin" / "python"
COUNT = 100
ROUNDS = 9
WAIT = 1.0
ONE_BY_ONE = f"for n in range({COUNT}):\n    await df.tool.bench.ok(n=n)"
AT_ONCE = f"import asyncio\nawait asyncio.gather(*[df.tool.bench.wait(seconds={WAIT}) for _ in range({COUNT})])\nNone"

Turn = Callable[[], Awaitable[float]]


def measure() -> list[Section]:
    return asyncio.run(_measure())


async def _measure() -> list[Section]:
    section = Section(f"{COUNT} calls of an MCP server over standard streams")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        session = await stack.enter_async_context(_session(folder))
        bare = await stack.enter_async_context(_client(sys.executable, [str(SERVER)]))
        turns: dict[str, Turn] = {
            "ours": lambda: _script(session, ONE_BY_ONE),
            "ours at once": lambda: _script(session, AT_ONCE),
            "client": lambda: _direct(bare),
            "client at once": lambda: _gathered(bare),
        }
        if os.access(PROXY, os.X_OK):
            words = [str(PEERS / "proxy_fastmcp.py"), sys.executable, str(SERVER)]
            proxied = await stack.enter_async_context(_client(str(PROXY), words))
            turns["proxy"] = lambda: _direct(proxied)
        else:
            section.notes.append("FastMCP is not installed here: it is left out")
        for turn in turns.values():
            await turn()
        taken: dict[str, list[float]] = {name: [] for name in turns}
        for _ in range(ROUNDS):
            for name, turn in turns.items():
                taken[name].append(await turn())
    what = "one after the other, recorded"
    section.comparisons.append(
        Comparison(what=what, ours=taken["ours"], against="the MCP client alone", theirs=taken["client"])
    )
    if "proxy" in taken:
        section.comparisons.append(
            Comparison(
                what=what, ours=taken["ours"], against="FastMCP's proxy", theirs=taken["proxy"], goal=1.0
            )
        )
    for against, theirs, goal in (
        ("the slowest of them", [WAIT], 1.3),
        ("the MCP client alone", taken["client at once"], None),
    ):
        what, ours = "at once, recorded", taken["ours at once"]
        section.comparisons.append(
            Comparison(what=what, ours=ours, against=against, theirs=theirs, goal=goal)
        )
    return [section]


@asynccontextmanager
async def _session(folder: Path) -> AsyncGenerator[Session]:
    async with Workspace.open(folder / "workspace") as workspace:
        workspace.mount(f"bench=mcp+stdio:'{sys.executable}' '{SERVER}'")
        yield await workspace.session()


@asynccontextmanager
async def _client(program: str, words: list[str]) -> AsyncGenerator[Client]:
    async with Client(StdioServerParameters(command=program, args=words)) as client:
        yield client


async def _script(session: Session, source: str) -> float:
    started = time.perf_counter()
    run = await session.run(source)
    seconds = time.perf_counter() - started
    assert run.status == "succeeded", run.error
    assert len(run.calls) == COUNT
    return seconds


async def _direct(client: Client) -> float:
    started = time.perf_counter()
    for n in range(COUNT):
        result = await client.call_tool("ok", {"n": n})
        assert not result.is_error
    return time.perf_counter() - started


async def _gathered(client: Client) -> float:
    started = time.perf_counter()
    await asyncio.gather(*(client.call_tool("wait", {"seconds": WAIT}) for _ in range(COUNT)))
    return time.perf_counter() - started
