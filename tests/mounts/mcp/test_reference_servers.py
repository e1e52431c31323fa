"""The reference MCP servers, as they are published, over stdio and streamable HTTP."""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, UsageError
from affidavit.mounts.mcp.adapter import McpAdapter
from tests.mounts.echoing import echoing
from tests.mounts.sources import opened
from tests.real_inputs import reference_servers

pytestmark = pytest.mark.oracle


def everything() -> str:
    return f"node '{reference_servers()}/server-everything/dist/index.js'"


@asynccontextmanager
async def over_http() -> AsyncGenerator[tuple[str, "asyncio.subprocess.Process"]]:
    """The `everything` server on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    yield_to = await started(port)
    try:
        yield f"mcp+http://127.0.0.1:{port}/mcp", yield_to
    finally:
        if yield_to.returncode is None:
            yield_to.kill()
        await yield_to.wait()


async def started(port: int) -> "asyncio.subprocess.Process":
    program = str(reference_servers() / "server-everything/dist/index.js")
    process = await asyncio.create_subprocess_exec(
        "node", "--experimental-global-webcrypto", program, "streamableHttp",  # without it Node 18 has no `crypto`
        env={"PORT": str(port), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    said = b""
    while b"listening" not in said.lower():
        line = await process.stderr.readline()
        assert line, said
        said += line
    return process


async def test_everything_over_stdio(tmp_path: Path) -> None:
    async with opened(McpAdapter(), f"mcp+stdio:{everything()}", tmp_path) as mount:
        await everything_is_called(mount)


async def test_everything_over_http(tmp_path: Path) -> None:
    async with over_http() as (uri, _), opened(McpAdapter(), uri, tmp_path) as mount:
        await everything_is_called(mount)


async def everything_is_called(mount: Any) -> None:
    assert len(mount.namespace.operations) >= 10
    assert await mount.call("echo", message="é 漢") == "Echo: é 漢"
    assert "5" in await mount.call("get_sum", a=2, b=3)
    image: list[Any] = await mount.call("get_tiny_image")
    assert [it["data"][:4] for it in image if not isinstance(it, str)] == [b"\x89PNG"]
    weather = await mount.call("get_structured_content", location="New York")
    assert isinstance(weather["temperature"], int | float)
    with pytest.raises(FailedError) as caught:
        await mount.call("get_resource_reference", resourceType="Text", resourceId=-1)
    assert caught.value.code == "tool-failed"
    slow = mount.call("trigger_long_running_operation", duration=1, steps=2)
    long, *short = await asyncio.gather(slow, *(mount.call("echo", message=str(n)) for n in range(20)))
    assert "completed" in long.lower()
    assert short == [f"Echo: {n}" for n in range(20)]


async def test_an_http_server_that_was_restarted_is_connected_anew(tmp_path: Path) -> None:
    async with over_http() as (uri, first), opened(McpAdapter(), uri, tmp_path) as mount:
        assert await mount.call("echo", message="a") == "Echo: a"
        first.kill()
        await first.wait()
        for _ in range(2):
            with pytest.raises(FailedError) as caught:
                await mount.call("echo", message="b")
            assert caught.value.retryable
        port = int(re.findall(r":(\d+)/", uri)[0])
        second = await started(port)
        try:
            assert await mount.call("echo", message="c") == "Echo: c"
            second.kill()
            await second.wait()
            third = await started(port)
            try:
                # the server lost the session: that call fails, the next one has a session of its own
                with pytest.raises(FailedError) as caught:
                    await mount.call("echo", message="d")
                assert caught.value.retryable
                assert await mount.call("echo", message="e") == "Echo: e"
            finally:
                third.kill()
                await third.wait()
        finally:
            if second.returncode is None:
                second.kill()


async def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("one\ntwo\n")
    uri = f"mcp+stdio:node '{reference_servers()}/server-filesystem/dist/index.js' files"
    async with opened(McpAdapter(), uri, tmp_path) as mount:
        path = str(tmp_path / "files" / "a.txt")
        read = await mount.call("read_text_file", path=path)
        assert read == {"content": "one\ntwo\n"}
        assert mount.operation("read_text_file").effect == "read"
        assert mount.operation("write_file").effect == "write"
        with pytest.raises(FailedError, match="outside allowed"):
            await mount.call("read_text_file", path="/etc/hosts")


async def test_time(tmp_path: Path) -> None:
    async with opened(McpAdapter(), f"mcp+stdio:'{sys.executable}' -m mcp_server_time", tmp_path) as mount:
        said = await mount.call(
            "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert "+9.0h" in str(said)
        with pytest.raises(FailedError):
            await mount.call("get_current_time", timezone="Nowhere/Land")


async def test_git(tmp_path: Path) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first words"],
    ):
        git = await asyncio.create_subprocess_exec("git", *words, cwd=tmp_path)
        assert await git.wait() == 0
    uri = f"mcp+stdio:'{sys.executable}' -m mcp_server_git --repository ."
    async with opened(McpAdapter(), uri, tmp_path) as mount:
        assert "first words" in str(await mount.call("git_log", repo_path=str(tmp_path)))


async def test_fetch_on_loopback(tmp_path: Path) -> None:
    with echoing() as site:
        site.answer = lambda asked: (
            200,
            {"Content-Type": "text/html"},
            "<html><body><article><h1>Fjord</h1><p>The <b>deep</b> water, 漢.</p></article></body></html>".encode(),
        )
        uri = f"mcp+stdio:'{sys.executable}' -m mcp_server_fetch --ignore-robots-txt --allow-private-ips"
        async with opened(McpAdapter(), uri, tmp_path) as mount:
            said = str(await mount.call("fetch", url=f"{site.url}/page", raw=True))
            assert "<b>deep</b> water, 漢" in said
            assert [asked.path for asked in site.asked] == ["/page"]
            cut = str(
                await mount.call("fetch", url=f"{site.url}/page", raw=True, max_length=6, start_index=12)
            )
            assert "<artic" in cut
            assert "deep" not in cut
            with pytest.raises(UsageError):
                await mount.call("fetch", url=f"{site.url}/page", max_length=-1)
            with pytest.raises(FailedError) as caught:
                await mount.call("fetch", url="http://127.0.0.1:9/")
            assert caught.value.code == "tool-failed"
