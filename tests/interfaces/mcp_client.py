"""A real client of the official SDK against `python -m affidavit mcp`, and a raw one that can send anything."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

__all__ = ["APP", "Agent", "Answer", "Raw", "command", "connect", "text"]

APP = f"app={Path(__file__).parents[2] / 'examples' / 'small_app'}"


class Agent:
    """What a model does with tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert result.structured_content["next"], "every result names the next call"
        assert f"next: {result.structured_content['next']}" in text(result)
        return result

    async def run(self, code: str, **arguments: Any) -> dict[str, Any]:
        """Run a script that succeeds; its structured result."""
        result = await self.call("run", code=code, **arguments)
        assert not result.is_error, text(result)
        return result.structured_content

    async def read(self, ref: str, **arguments: Any) -> dict[str, Any]:
        """Read something that is there; the structured result."""
        result = await self.call("read", ref=ref, **arguments)
        assert not result.is_error, text(result)
        return result.structured_content


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "affidavit", "mcp", "--workspace", str(root), *words]


@asynccontextmanager
async def connect(root: Path, *words: str, mode: str = "legacy") -> AsyncGenerator[Agent]:
    """Start a server on the workspace and connect to it."""
    first, *rest = command(root, *words)
    with (root.parent / "stderr.txt").open("a") as log:
        server = StdioServerParameters(command=first, args=rest, cwd=root.parent)
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield Agent(client)


class Raw:
    """Speaks to the server line by line."""

    def __init__(self, root: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            command(root, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._last = 0
        self._schemas: dict[str, Draft202012Validator] = {}
        self.request("initialize", **_HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def send(self, message: object) -> None:
        self.line(json.dumps(message).encode())

    def line(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next line, which must be a JSON-RPC message."""
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def request(self, method: str, **params: Any) -> Any:
        """Send a request and receive its answer, which must come next."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self._last
        return answer

    def call(self, tool: str, **arguments: Any) -> "Answer":
        """Call a tool; its structured result must fit the schema that the catalogue declares."""
        if not self._schemas:
            tools = self.request("tools/list")["result"]["tools"]
            self._schemas = {tool["name"]: Draft202012Validator(tool["outputSchema"]) for tool in tools}
        result = self.request("tools/call", name=tool, arguments=arguments)["result"]
        document = result["structuredContent"]
        self._schemas[tool].validate(document)  # pyright: ignore[reportUnknownMemberType]
        (content,) = result["content"]
        assert f"next: {document['next']}" in content["text"]
        return Answer(document=document, text=content["text"], is_error=result["isError"])

    def run(self, code: str, **arguments: Any) -> dict[str, Any]:
        """Run a script that succeeds; its structured result."""
        answer = self.call("run", code=code, **arguments)
        assert not answer.is_error, answer.text
        return answer.document

    def read(self, ref: str, **arguments: Any) -> dict[str, Any]:
        """Read something that is there; the structured result."""
        answer = self.call("read", ref=ref, **arguments)
        assert not answer.is_error, answer.text
        return answer.document


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool answered."""

    document: dict[str, Any]
    text: str
    is_error: bool


_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
