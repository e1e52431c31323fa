"""A warm FastMCP server with its code mode: `execute` is called on the server object, which spares it the transport."""

import asyncio
import json
import logging
import sys
import time

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode

SCRIPTS = {
    "none": "k = {k}\nreturn k + 1",
    "one": "k = {k}\nx = await call_tool('ok', {'n': k})\nreturn x['result']",
    "sequential": (
        "t = 0\nfor i in range(100):\n    r = await call_tool('ok', {'n': i + {k}})\n    t += r['result']\nreturn t"
    ),
    "gathered": (
        "import asyncio\n"
        "r = await asyncio.gather(*[call_tool('ok', {'n': i + {k}}) for i in range(100)])\n"
        "return sum([x['result'] for x in r])"
    ),
}


async def main() -> None:
    logging.disable(logging.CRITICAL)
    server = FastMCP("bench", transforms=[CodeMode(max_tool_calls=None)])

    @server.tool
    def ok(n: int) -> int:
        """Returns n."""
        return n

    numbers = iter(range(1, 1 << 30))
    for line in sys.stdin:
        request = json.loads(line)
        number = next(numbers) if request["fresh"] else 0
        source = SCRIPTS[request["case"]].replace("{k}", str(number))
        started = time.perf_counter()
        result = await server.call_tool("execute", {"code": source})
        seconds = time.perf_counter() - started
        assert not result.is_error
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()


asyncio.run(main())
