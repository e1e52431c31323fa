"""A warm smolagents executor of Python code, which interprets a script inside its own process. Its calls are sync."""

import json
import sys
import time

from smolagents.local_python_executor import LocalPythonExecutor

SCRIPTS = {
    "none": "k = {k}\nk + 1",
    "one": "k = {k}\nx = ok(n=k)\nx",
    "sequential": "t = 0\nfor i in range(100):\n    t += ok(n=i + {k})\nt",
    "gathered": "r = [ok(n=i + {k}) for i in range(100)]\nsum(r)",
}


def ok(n: int) -> int:
    """Returns n."""
    return n


def main() -> None:
    executor = LocalPythonExecutor([])
    executor.send_tools({"ok": ok})
    numbers = iter(range(1, 1 << 30))
    for line in sys.stdin:
        request = json.loads(line)
        number = next(numbers) if request["fresh"] else 0
        source = SCRIPTS[request["case"]].replace("{k}", str(number))
        started = time.perf_counter()
        result = executor(source)
        seconds = time.perf_counter() - started
        assert isinstance(result.output, int)
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()


main()
