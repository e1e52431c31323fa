"""Mount an artifact in a workspace, as a program of the SDK does: `analyse.py WORKSPACE ARTIFACT`."""

import asyncio
import json
import sys
import time

from affidavit import Workspace


async def main(root: str, artifact: str) -> None:
    async with Workspace.open(root) as workspace:
        started = time.perf_counter()
        workspace.mount(f"app={artifact}")
        seconds = time.perf_counter() - started
    sys.stdout.write(json.dumps({"mount": seconds}))


asyncio.run(main(*sys.argv[1:]))
