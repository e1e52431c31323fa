"""Streamable HTTP with a server that breaks it: each call gets its own error, and the connection goes on."""

import gzip
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError
from affidavit.mounts.mcp import http
from affidavit.mounts.mcp.adapter import McpAdapter
from tests.mounts.echoing import Answer, Asked, Echo, echoing
from tests.mounts.sources import Opened, opened

JSON = {"Content-Type": "application/json", "Mcp-Session-Id": "s"}
EVENTS = {"Content-Type": "text/event-stream"}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "inputSchema": {"type": "object", "properties": {"text": {}}}} for name in ("fine", "odd")
]


@pytest.fixture
def echo() -> Generator[Echo]:
    with echoing() as server:
        yield server


def serving(body: bytes, headers: dict[str, str], status: int = 200) -> Any:
    """Answers of a server whose tool `odd` answers with that body, in which ID stands for the request's id."""

    def answer(asked: Asked) -> Answer:
        if asked.method != "POST":
            return 405, {}, b""
        message = json.loads(asked.body)
        if "id" not in message:
            return 202, {}, b""
        number, method, params = message["id"], message["method"], message.get("params", {})
        if method == "tools/call" and params["name"] == "odd":
            return status, headers, body.replace(b"ID", str(number).encode())
        result: dict[str, Any] = {"content": [{"type": "text", "text": "fine"}]}
        if method == "initialize":
            result = {
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "h", "version": "1"}
            }  # fmt: skip
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method != "tools/call":
            error = {"code": -32601, "message": "no such method"}
            return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
        return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()

    return answer


@asynccontextmanager
async def server(folder: Path, echo: Echo, options: dict[str, Any] | None = None) -> AsyncGenerator[Opened]:
    uri = f"mcp+{echo.url}/mcp"
    async with opened(McpAdapter(), uri, folder, {"timeout": 10, **(options or {})}) as mount:
        yield mount
        assert await mount.call("fine") == "fine"


REPLY = b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "%s"}]}}'


@pytest.mark.parametrize(
    ("body", "headers", "code", "words"),
    [
        (REPLY % b"caf\xe9", JSON, "result-invalid", "not UTF-8"),
        (b"event: message\ndata: " + REPLY % b"caf\xe9" + b"\n\n", EVENTS, "tool-failed", "not UTF-8"),
        (REPLY % (b"x" * 5000), JSON, "result-invalid", "more than 4000 bytes"),
        (b"event: message\ndata: " + REPLY % (b"x" * 5000) + b"\n\n", EVENTS, "tool-failed", "SSE stream failed"),
        (b"not json", JSON, "result-invalid", "JSON"),
        (b"<html>", {"Content-Type": "text/html"}, "tool-failed", "content type"),
        (b"", EVENTS, "tool-failed", "ended"),
        (gzip.compress(REPLY % b"x"), JSON | {"Content-Encoding": "gzip"}, "result-invalid", "packed"),
        (gzip.compress(REPLY % b"x"), EVENTS | {"Content-Encoding": "gzip"}, "tool-failed", "packed"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)  # fmt: skip
async def test_what_cannot_be_read_is_an_error_of_its_call(
    tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch, body: bytes, headers: dict[str, str],
    code: str, words: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(http, "MAX_REPLY", 4000)
    echo.answer = serving(body, headers)
    async with server(tmp_path, echo) as mount:
        with pytest.raises(FailedError, match=words) as caught:
            await mount.call("odd")
        assert caught.value.code == code
        assert await mount.call("fine") == "fine"


async def test_a_number_too_large_is_an_error(tmp_path: Path, echo: Echo) -> None:
    body = b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [], "structuredContent": {"n": 1e400}}}'
    echo.answer = serving(body, JSON)
    async with server(tmp_path, echo) as mount:
        with pytest.raises(FailedError, match=r"at \$.n") as caught:
            await mount.call("odd")
        assert caught.value.code == "result-invalid"


async def test_headers_are_read_from_the_environment_at_each_request(
    tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "first-token")
    echo.answer = serving(REPLY % b"the first-token is fine", JSON)
    async with server(tmp_path, echo, {"headers": {"Authorization": "Bearer env:TOKEN"}}) as mount:
        assert await mount.call("odd") == "the [TOKEN] is fine"
        assert {asked.headers["authorization"] for asked in echo.asked} == {"Bearer first-token"}
        monkeypatch.setenv("TOKEN", "second-token")
        await mount.call("fine")
        assert echo.asked[-1].headers["authorization"] == "Bearer second-token"


async def test_a_redirect_leads_nowhere_else(tmp_path: Path, echo: Echo) -> None:
    with echoing() as other:
        echo.answer = serving(b"", {"Location": f"{other.url}/mcp"}, status=307)
        async with server(tmp_path, echo) as mount:
            with pytest.raises(FailedError, match="Redirect"):
                await mount.call("odd")
        assert other.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "where", ["{}/mcp", "file:///etc/hostname", "http://127.1:1/", "//elsewhere.example/mcp"]
)
async def test_a_redirect_while_mounting_leads_nowhere(
    tmp_path: Path, echo: Echo, status: int, where: str
) -> None:
    with echoing() as other:
        echo.answer = lambda asked: (status, {"Location": where.format(other.url)}, b"")
        with pytest.raises(FailedError) as caught:
            async with opened(McpAdapter(), f"mcp+{echo.url}/mcp", tmp_path):
                pass
        assert caught.value.code == "mount-failed"
        assert other.asked == []


async def test_half_a_surrogate_pair_is_an_error_of_its_call(tmp_path: Path, echo: Echo) -> None:
    echo.answer = serving(REPLY % b"odd", JSON)
    async with server(tmp_path, echo, {"timeout": 2}) as mount:
        with pytest.raises(AffidavitError) as caught:
            await mount.call("odd", text="\ud800")
        assert caught.value.code == "arguments-invalid"
