"""A server that misbehaves: each call gets its own error, every other call its own value."""

import asyncio
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.mounts.mcp import stdio
from affidavit.mounts.mcp.adapter import McpAdapter
from affidavit.namespaces.operation import Operation
from tests.mounts.sources import Opened, opened

SERVER = Path(__file__).with_name("odd_server.py")


def odd(
    folder: Path, options: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[Opened]:
    uri = f"mcp+stdio:'{sys.executable}' '{SERVER}'"
    return opened(McpAdapter(), uri, folder, options, environment=environment or {})


async def fails(mount: Opened, tool: str, **arguments: Any) -> AffidavitError:
    with pytest.raises(AffidavitError) as caught:
        await mount.call(tool, **arguments)
    return caught.value


@asynccontextmanager
async def usable(folder: Path) -> AsyncGenerator[Opened]:
    """The server, which must still answer when the test is over."""
    async with odd(folder) as mount:
        yield mount
        assert await mount.call("next") == "next"


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ("invalid_utf8", "result-invalid", "not UTF-8 at byte 80"),
        ("infinite", "result-invalid", r"at \$.rows\[1\]"),
        ("deep", "result-invalid", "no JSON-RPC message"),
        ("no_base64", "result-invalid", r"no base64, at \$.content\[0\].data"),
    ],
)
async def test_what_cannot_be_read_is_an_error_of_its_call(
    tmp_path: Path, tool: str, code: str, words: str
) -> None:
    async with usable(tmp_path) as mount:
        with pytest.raises(FailedError, match=words) as caught:
            await mount.call(tool)
        assert caught.value.code == code


async def test_values_are_exact(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        wide = await mount.call("wide")
        assert wide == {"id": 2**63 + 1, "x": 1.0}
        assert type(wide["x"]) is float
        assert await mount.call("half_surrogate") == {"t": "\ud800"}
        assert await mount.call("image") == [
            "a",
            {"type": "image", "data": b"\0\1\2", "mimeType": "image/png"},
        ]
        assert await mount.call("nothing") is None


async def test_what_stands_beside_structured_content_is_told(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        reply = await mount.reply("beside")
        assert reply.value == {"n": 1}
        assert [(it.code, it.place) for it in reply.limitations] == [("content-left-out", "content[0]")]


async def test_noise_is_no_reply(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        assert await mount.call("noisy") == "noisy"


async def test_a_late_reply_answers_nobody(tmp_path: Path) -> None:
    async with odd(tmp_path, {"timeout": 0.4}) as mount:
        late = await fails(mount, "hold")
        assert (late.code, late.retryable, late.details) == ("tool-failed", True, {"reason": "timed-out"})
        # the server sends the late reply right before this one
        assert await mount.call("next") == "next"
        assert await mount.call("next") == "next"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        await mount.call("next")
        held = asyncio.create_task(mount.call("hold"))
        while ["tools/call", "hold"] not in (seen := (await mount.call("seen"))["seen"]):
            pass
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        seen = (await mount.call("seen"))["seen"]
        cancelled = [what for method, what in seen if method == "notifications/cancelled"]
        assert len(cancelled) == 1


async def test_progress_gives_the_time_again(tmp_path: Path) -> None:
    async with odd(tmp_path, {"timeout": 0.5}) as mount:
        assert await mount.call("slowly") == "slowly"


async def test_a_server_that_dies_fails_that_call_and_is_started_again(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        died = await fails(mount, "die")
        assert (died.code, died.retryable) == ("tool-failed", True)
        assert died.details == {"reason": "connection-ended"}
        assert "last words of the server" in died.message
        assert await mount.call("next") == "next"


async def test_a_message_without_end_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE", 1 << 20)
    async with odd(tmp_path, {"env": ["FLOOD"]}, {"FLOOD": str(3 << 20)}) as mount:
        assert (await fails(mount, "flood")).details == {"reason": "connection-ended"}
        assert await mount.call("next") == "next"


async def test_a_storm_of_notifications_is_bounded_and_blocks_no_other_mount(tmp_path: Path) -> None:
    async with odd(tmp_path, {"env": ["STORM"]}, {"STORM": "1500"}) as stormy, odd(tmp_path) as calm:
        assert await calm.call("next") == "next"
        await stormy.call("next")
        tracemalloc.start()
        try:
            storm = asyncio.create_task(stormy.call("storm"))
            answered = 0
            while not storm.done():
                assert await calm.call("next") == "next"
                answered += 1
            assert await storm == "storm"
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()
        assert answered > 1


async def test_calls_at_once_get_their_own_values(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        found = await asyncio.gather(*(mount.call("echo", **{"class": n}) for n in range(60)))
        assert [it["given"] for it in found] == [{"class": n} for n in range(60)]


async def test_names_and_arguments_travel_unchanged(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        given = {"class": None, "per-page": 2, "self": {"$ref": [1.5, None, 2**70, "\ud800"]}, "more": True}
        assert (await mount.call("echo", **given))["given"] == given
        assert {p.original: p.name for p in mount.operation("echo").parameters} == {
            "class": "class_", "per-page": "per_page", "self": "self_"
        }  # fmt: skip
        assert await mount.call("class_") == "class"
        pair = {(await mount.call(name), name) for name in mount.namespace.operations if name[:3] == "a_b"}
        assert {said for said, _ in pair} == {"a-b", "a_b"}


@pytest.mark.parametrize("value", [b"x", float("inf"), {"a": [float("nan")]}])
async def test_what_json_cannot_say_does_not_leave(tmp_path: Path, value: Any) -> None:
    async with usable(tmp_path) as mount:
        with pytest.raises(UsageError, match=r"takes JSON.* at \$.class") as caught:
            await mount.call("echo", **{"class": value})
        assert caught.value.code == "arguments-invalid"


async def test_schemas_are_held(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        good = {"root": {"child": {"child": {"n": 2**60}}}, "mode": None}
        assert await mount.call("tree", **good) == good
        invalid: list[dict[str, Any]] = [
            {},
            {"root": {"child": {"n": "1"}}},
            {"root": {}, "mode": "slow"},
        ]
        for bad in invalid:
            assert (await fails(mount, "tree", **bad)).code == "arguments-invalid"


async def test_tools_that_cannot_be_offered_are_told_and_stop_no_other(tmp_path: Path) -> None:
    async with usable(tmp_path) as mount:
        told = {(it.place, it.code) for it in mount.description.limitations}
        assert told == {("tool elsewhere", "schema-unsupported")}
        assert "looped" in mount.namespace.operations


async def test_a_tool_that_is_none_of_the_protocol_is_left_out_alone(tmp_path: Path) -> None:
    async with odd(tmp_path, {"env": ["BREACH"]}, {"BREACH": "1"}) as mount:
        told = {it.place: it.message for it in mount.description.limitations}
        assert told.keys() == {
            "tool elsewhere", "tool breach", "tool number 29", "tool number 30", "tool wordless", "tool number 32",
            "tool hints", "tool out", "tool torn too ?",
        }  # fmt: skip
        assert "at $.inputSchema.type" in told["tool breach"]
        assert "at $.annotations.readOnlyHint" in told["tool hints"]
        assert "at $.inputSchema" in told["tool wordless"]
        assert await mount.call("after") == "after"
        assert await mount.call("next") == "next"


async def test_three_hundred_tools(tmp_path: Path) -> None:
    async with odd(tmp_path, {"env": ["MANY"]}, {"MANY": "300"}) as mount:
        assert len(mount.namespace.operations) > 300
        assert await mount.call("tool_299", root={}) == "tool-299"


async def test_effects_and_names_for_records(tmp_path: Path) -> None:
    async with odd(tmp_path) as mount:
        found: dict[str, Operation] = dict(mount.namespace.operations)
        assert {name: found[name].effect for name in ("next", "die", "seen", "echo")} == {
            "next": "read", "die": "write", "seen": "external", "echo": "external"
        }  # fmt: skip
        assert found["class_"].contract == "mcp.odd%20server.class/1"
        assert (found["next"].producer.name, found["next"].producer.version) == ("mcp.odd%20server", "1/1")


async def test_other_tools_are_a_notice(tmp_path: Path) -> None:
    async with odd(tmp_path) as mount:
        await mount.call("changed")
        await mount.call("next")
        assert mount.notices == ["the server offers other tools now; mount it again to see them"]


async def test_the_environment_is_what_was_named_and_what_it_held_is_not_shown(tmp_path: Path) -> None:
    environment = {"TOKEN": "s3cr3t-value", "OTHER": "not for it"}
    async with odd(tmp_path, {"env": ["TOKEN"]}, environment) as mount:
        said = await mount.call("secret")
        assert said.startswith("it is [TOKEN] and")
        assert "OTHER" not in said
    with pytest.raises(UsageError, match="TOKEN is not set") as caught:
        async with odd(tmp_path, {"env": ["TOKEN"]}):
            pass
    assert caught.value.code == "secret-missing"


async def test_the_identity_is_that_of_what_is_offered(tmp_path: Path) -> None:
    async with odd(tmp_path) as first, odd(tmp_path, {"env": ["MANY"]}, {"MANY": "1"}) as other:
        assert await first.mount.snapshot() == first.description.snapshot
        assert first.description.snapshot.identity != other.description.snapshot.identity


@pytest.mark.parametrize(
    ("uri", "code", "words"),
    [
        ("mcp+stdio:", "mount-invalid", "names no command"),
        ("mcp+stdio:python 'a", "mount-invalid", "cannot be split"),
        ("mcp+stdio:no-such-program-here", "mount-failed", "No such file"),
        (f"mcp+stdio:'{sys.executable}' -c pass", "mount-failed", "does not answer"),
        ("mcp+http://user:pass@127.0.0.1:9/mcp", "mount-invalid", "user or password"),
        ("mcp+http://127.0.0.1:9/mcp", "mount-failed", "does not answer"),
    ],
)
async def test_what_is_no_server_is_said(tmp_path: Path, uri: str, code: str, words: str) -> None:
    with pytest.raises(AffidavitError, match=words) as caught:
        async with opened(McpAdapter(), uri, tmp_path):
            pass
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tmeout": 3}, "tmeout"),
        ({"timeout": 0}, "timeout"),
        ({"headers": {"Authorization": "Bearer abc"}}, "Authorization"),
    ],
)
async def test_options_that_cannot_be_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        async with odd(tmp_path, options):
            pass
    assert caught.value.code == "mount-invalid"
