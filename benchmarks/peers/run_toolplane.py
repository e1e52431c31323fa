"""A warm toolplane runtime on its sandboxed backend, with the session that it keeps by default."""

import asyncio
import json
import sys
import time

from toolplane import Toolplane

SCRIPTS = {
    "none": "k = {k}\nreturn k + 1",
    "one": "k = {k}\nx = await ok(n=k)\nreturn x",
    "sequential": "t = 0\nfor i in range(100):\n    t += await ok(n=i + {k})\nreturn t",
    "gathered": (
        "import asyncio\nr = await asyncio.gather(*[ok(n=i + {k}) for i in range(100)])\nreturn sum(r)"
    ),
}


async def main() -> None:
    plane = Toolplane(default_backend="monty", ambient_cli=False)

    @plane.tool
    def ok(n: int) -> int:
        """Returns n."""
        return n

    numbers = iter(range(1, 1 << 30))
    for line in sys.stdin:
        request = json.loads(line)
        number = next(numbers) if request["fresh"] else 0
        source = SCRIPTS[request["case"]].replace("{k}", str(number))
        started = time.perf_counter()
        result = await plane.execute(source)
        seconds = time.perf_counter() - started
        assert result.error is None, result.error
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()


asyncio.run(main())
