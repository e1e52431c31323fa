"""A small MCP server on standard streams, to try mounts with: `python weather_server.py`."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel


class Forecast(BaseModel):
    city: str
    celsius: list[float]


server = MCPServer("weather", version="1.0")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def forecast(city: str, days: int = 3) -> Forecast:
    """The temperatures of the days to come."""
    return Forecast(city=city, celsius=[float(len(city) + day) for day in range(days)])


if __name__ == "__main__":
    server.run()
