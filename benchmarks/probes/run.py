"""A warm process that runs scripts: `run.py ENGINE bare|session`.

`bare` is the engine alone with a handler that returns its argument: no check, no store. `session` is the whole
product: type check, broker, records. Requests are {"case", "fresh"}: with `fresh` the script is one that was not seen
before.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

import orjson

from affidavit import Workspace
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.engines.cpython import CPythonEngine
from affidavit.runtime.engines.monty import MontyEngine
from affidavit.runtime.program import CallReturned, Program, ScriptCall
from affidavit.runtime.session import Session

SCRIPTS = {
    "none": "k = {k}\nk + 1",
    "one": "k = {k}\nx = await df.tool.t.ok(n=k)\nx",
    "sequential": "t = 0\nfor i in range(100):\n    t += await df.tool.t.ok(n=i + {k})\nt",
    "gathered": (
        "import asyncio\nr = await asyncio.gather(*[df.tool.t.ok(n=i + {k}) for i in range(100)])\nsum(r)"
    ),
}
EXPECTED = {"none": (1, 1), "one": (1, 0), "sequential": (100, 4950), "gathered": (100, 4950)}


def ok(n: int) -> int:
    """Returns n."""
    return n


def bare(engine: CPythonEngine | MontyEngine, session: Session) -> Callable[[str], Awaitable[object]]:
    async def handle(call: ScriptCall) -> CallReturned:
        return CallReturned(json=orjson.dumps(call.arguments["n"]), completed=time.time())

    async def run(source: str) -> object:
        outcome = await engine.run(Program(source=source, tree=session.catalogue.tree), handle)
        return orjson.loads(outcome.value or b"null")

    return run


def whole(name: str, session: Session) -> Callable[[str], Awaitable[object]]:
    async def run(source: str) -> object:
        return (await session.run(source, engine=name)).data

    return run


async def main(name: str, mode: str) -> None:
    loop = asyncio.get_running_loop()
    numbers = iter(range(1, 1 << 30))
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace.open(folder) as workspace:
            workspace.use(functions_namespace("t", [ok]))
            session = await workspace.session()
            engine = CPythonEngine() if name == "cpython" else MontyEngine()
            run = whole(name, session) if mode == "session" else bare(engine, session)
            if mode == "bare":
                await engine.start()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                request = json.loads(line)
                number = next(numbers) if request["fresh"] else 0
                source = SCRIPTS[request["case"]].replace("{k}", str(number))
                started = time.perf_counter()
                value = await run(source)
                seconds = time.perf_counter() - started
                factor, base = EXPECTED[request["case"]]
                assert value == factor * number + base, value
                sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
                sys.stdout.flush()
            await engine.close()


asyncio.run(main(*sys.argv[1:]))
