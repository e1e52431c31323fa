"""A warm process that runs one script in a session whose last twenty scripts returned 17 KB each.

Requests are {"case"}; before each, the session is made anew and is not timed:

- `empty`: a script that names nothing, in a session without results;
- `unnamed`: the same below twenty results;
- `warm`: a script that reads all twenty, in a session that read them before;
- `cold`: the same in a session that another workspace wrote, and that was opened just now;
- `pasted`: the same script with the values as literals, in a session without results.
"""

import asyncio
import itertools
import json
import sys
import tempfile
import time

from affidavit import Workspace
from affidavit.runtime.run import Run
from affidavit.runtime.session import Session

RESULTS = 20
SIZE = 17_000
MADE = """\
rows = [
    {{"id": i, "name": f"item {{i}}", "score": i * 1.5, "tags": ["a", "b"], "of{n}": {{"x": i, "y": None}}}}
    for i in range(195)
]
{{"rows": rows, "total": {n}}}"""
READ = "t = {k}\n" + "".join(f't += (await results[{i}].load())["total"]\n' for i in range(RESULTS)) + "t"
EMPTY = "k = {k}\nk + 1"
PAUSE = 0.03  # until the sandboxes of the next runs are ready


async def step(session: Session, source: str) -> Run:
    run = await session.run(source)
    assert run.status == "succeeded", run.error
    await asyncio.sleep(PAUSE)
    return run


async def filled(session: Session) -> list[object]:
    made = [await step(session, MADE.format(n=n)) for n in range(RESULTS)]
    assert all(row.size > SIZE for row in session.results())
    return [run.data for run in made]


async def prepared(case: str, workspace: Workspace, other: Workspace, number: int) -> tuple[Session, str]:
    """A session, and the script to be timed in it."""
    session = await workspace.session(f"s{number}")
    empty = EMPTY.replace("{k}", str(number))
    if case == "empty":
        await step(session, "1")
        return session, empty
    if case == "cold":
        await filled(await other.session(session.id))
        return session, READ.replace("{k}", str(number))
    values = await filled(session)
    if case == "unnamed":
        return session, empty
    if case == "warm":
        await step(session, READ.replace("{k}", "-1") + "\n" + MADE.format(n=0))
        return session, READ.replace("{k}", str(number))
    texts = (f't += {value!r}["total"]\n' for value in values)
    return await workspace.session(f"p{number}"), f"t = {number}\n" + "".join(texts) + "t"


async def main() -> None:
    loop = asyncio.get_running_loop()
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace.open(folder) as workspace, Workspace.open(folder) as other:
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                session, source = await prepared(json.loads(line)["case"], workspace, other, next(numbers))
                started = time.perf_counter()
                run = await session.run(source)
                seconds = time.perf_counter() - started
                assert run.status == "succeeded", run.error
                sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
                sys.stdout.flush()


asyncio.run(main())
