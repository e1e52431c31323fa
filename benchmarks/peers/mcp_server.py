"""The server that calls are measured with: one tool that answers at once, one that waits first."""

import asyncio

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", version="1")


@server.tool()
async def ok(n: int) -> int:
    """Returns n."""
    return n


@server.tool()
async def wait(seconds: float) -> float:
    """Returns after that time."""
    await asyncio.sleep(seconds)
    return seconds


server.run()
