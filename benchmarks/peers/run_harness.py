"""pydantic-ai-harness's code mode: `run_code` is called on its toolset, which spares it the model and the agent's loop.

It keeps one interpreter for a conversation and checks types in its first script only.
"""

import asyncio
import json
import sys
import time

from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.code_mode import CodeModeToolset

SCRIPTS = {
    "none": "k = {k}\nk + 1",
    "one": "k = {k}\nx = await ok(n=k)\nx",
    "sequential": "t = 0\nfor i in range(100):\n    t += await ok(n=i + {k})\nt",
    "gathered": "import asyncio\nr = await asyncio.gather(*[ok(n=i + {k}) for i in range(100)])\nsum(r)",
}


def ok(n: int) -> int:
    """Returns n."""
    return n


async def main() -> None:
    # By default an interpreter is used up after a thousand calls.
    toolset = CodeModeToolset(FunctionToolset([ok]), resource_limits={"max_suspensions": 10**9})
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    context.tool_manager = ToolManager(toolset=toolset)
    numbers = iter(range(1, 1 << 30))
    async with toolset:
        tool = (await toolset.get_tools(context))["run_code"]
        for line in sys.stdin:
            request = json.loads(line)
            number = next(numbers) if request["fresh"] else 0
            source = SCRIPTS[request["case"]].replace("{k}", str(number))
            started = time.perf_counter()
            result = await toolset.call_tool("run_code", {"code": source}, context, tool)
            seconds = time.perf_counter() - started
            assert isinstance(result.return_value, int), result
            sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
            sys.stdout.flush()


asyncio.run(main())
