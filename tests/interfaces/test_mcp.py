"""Agents over MCP: conversations of scripts, the catalogue, resuming, concurrency, cancelling, hostile messages."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp import MCPError

from affidavit.interfaces.cli import run as run_cli
from affidavit.runtime.run import runs_of
from affidavit.store import Store
from tests.interfaces.mcp_client import APP, Raw, command, connect, text

TOOLS = '''
import asyncio
print("imported")

def greet(name: str, times: int = 1) -> str:
    """Greets."""
    print("greeting")
    return f"hello {name} " * times

async def wait_forever() -> None:
    """Never returns."""
    await asyncio.Event().wait()
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    return f"t=python:{path}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    """One connection for many tests; its first run returned a small value."""
    root = tmp_path_factory.mktemp("shared") / "workspace"
    with Raw(root, "--mount", APP, "--cpu-seconds", "1") as raw:
        assert raw.run('{"list": [1, 2, 3]}')["number"] == 1
        yield raw


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_conversation_of_scripts(root: Path, mode: str) -> None:
    """Every step follows from what the step before said."""
    async with connect(root, "--mount", APP, mode=mode) as agent:
        found = await agent.call("search", words="page of references")
        assert "df.db.app.references.page" in text(found)
        assert "describe" in found.structured_content["next"]

        described = await agent.call("describe", path="db.app.references.page")
        assert described.structured_content["effect"] == "read"
        assert "resolution: NotRequired" in text(described)
        assert described.structured_content["example"] in text(described)

        wrong = await agent.call(
            "run", code='page = await df.db.app.references.page(where={"resolutoin": "computed"})\npage.rows'
        )
        assert wrong.is_error
        assert wrong.structured_content["status"] == "rejected"
        assert "did you mean resolution?" in text(wrong)
        assert "correct line 1" in wrong.structured_content["next"]
        assert wrong.structured_content["calls"] == []

        right = await agent.run(
            'page = await df.db.app.references.page(where={"resolution": "computed"})\n[r["path"] for r in page.rows]'
        )
        assert right["value"] == ["lib/settings.js"]
        (call,) = right["calls"]
        assert call["evidence_id"] in right["next"]

        kept = await agent.read(call["evidence_id"], pointer="/rows/0/path")
        assert (kept["value"], kept["kind"], kept["part"]) == ("lib/settings.js", "record", "result")
        assert kept["about"]["operation"] == "javascript.references.page/1"
        same = await agent.read(f"{call['evidence_id'][:12]}#/rows/0/path")
        assert same["value"] == "lib/settings.js"


def test_the_next_script_finds_the_value_of_the_last_by_the_expression_that_was_told(server: Raw) -> None:
    for code, expression in (
        ("[1, 2, 3]", "results[0].data"),
        ("list(range(9000))", "await results[0].load()"),
    ):
        answer = server.call("run", code=code)
        assert f"whole: {expression} in the next script" in answer.text
        assert server.run(f"({expression})[2]")["value"] == answer.document["value"][2]


async def test_a_session_is_resumed_by_its_id(root: Path) -> None:
    async with connect(root, "--mount", APP, "--session", "s-1") as agent:
        first = await agent.run("len((await df.db.app.files.page()).rows)")
        assert (first["session_id"], first["number"]) == ("s-1", 1)
    async with connect(root, "--session", "s-1") as agent:
        assert (await agent.read("1"))["value"] == first["value"]
        second = await agent.run("len((await df.db.app.files.page()).rows)")
        assert (second["session_id"], second["number"]) == ("s-1", 2)
        assert second["calls"][0]["evidence_id"] == first["calls"][0]["evidence_id"]


async def test_requests_of_one_client_wait_for_each_other(root: Path) -> None:
    async with connect(root, "--mount", APP) as agent:
        runs = [agent.run(f"{number} * 10") for number in range(6)]
        done, found = await asyncio.gather(asyncio.gather(*runs), agent.call("search", words="files"))
        assert [one["value"] for one in done] == [0, 10, 20, 30, 40, 50]
        assert sorted(one["number"] for one in done) == [1, 2, 3, 4, 5, 6]
        assert "df.db.app.files" in text(found)


async def test_two_clients_of_one_session_take_turns(root: Path, tools: str) -> None:
    started = asyncio.Event()

    async def told(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    words = ("--mount", tools, "--session", "s-1")
    async with connect(root, *words) as one, connect(root, "--session", "s-1") as other:
        code = {"code": "await df.tool.t.wait_forever()"}
        waiting = asyncio.create_task(one.client.call_tool("run", code, progress_callback=told))
        await started.wait()
        behind = asyncio.create_task(other.run("1"))
        waiting.cancel()
        await asyncio.wait([waiting])
        assert (await behind)["number"] == 2


async def test_a_request_sent_again_is_run_once(root: Path) -> None:
    async with connect(root, "--session", "s-1") as agent:
        first = await agent.run("import random\nrandom.random()", idempotency_key="k")
        assert await agent.run("import random\nrandom.random()", idempotency_key="k") == first
        other = await agent.call("run", code="2", idempotency_key="k")
        assert other.structured_content["error"]["code"] == "key-reused"
        assert "new idempotency_key" in other.structured_content["next"]


async def test_a_cancelled_request_kills_its_run(root: Path, tools: str) -> None:
    started = asyncio.Event()
    said: list[str | None] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        said.append(message)
        started.set()

    async with connect(root, "--mount", tools, "--session", "s-1") as agent:
        code = {"code": "await df.tool.t.wait_forever()"}
        waiting = asyncio.create_task(agent.client.call_tool("run", code, progress_callback=told))
        await started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert said == ["call 1: tool.t.wait_forever"]
        assert (await agent.run("1 + 1"))["value"] == 2  # waits until the cancelled run is settled
        kept = await agent.read("1")
        assert kept["about"]["status"] == "cancelled"
        (call,) = (await agent.read("1", part="calls"))["value"]
        assert call["status"] == "unfinished"


def test_a_client_that_goes_away_cancels_its_run(root: Path, tools: str) -> None:
    with Raw(root, "--mount", tools, "--session", "s-1") as raw:
        params = {"name": "run", "arguments": {"code": "await df.tool.t.wait_forever()"}}
        params["_meta"] = {"progressToken": "p"}
        raw.send({"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params})
        progress = raw.receive()
        assert progress["params"]["message"] == "call 1: tool.t.wait_forever"
    assert raw.process.returncode == 0
    with Store.open(root) as store:
        (view,) = runs_of(store.events.of_session("s-1"))
    assert view.status == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_scripts_and_settles_them(root: Path, tools: str, number: signal.Signals) -> None:
    with Raw(root, "--mount", tools, "--session", "s-1") as raw:
        params = {"name": "run", "arguments": {"code": "await df.tool.t.wait_forever()"}}
        params["_meta"] = {"progressToken": "p"}
        raw.send({"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params})
        assert raw.receive()["params"]["message"] == "call 1: tool.t.wait_forever"
        raw.process.send_signal(number)
        assert raw.process.wait(timeout=60) == 128 + number
    with Store.open(root) as store:
        (view,) = runs_of(store.events.of_session("s-1"))
    assert view.status == "cancelled"


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "says"),
    [
        ("run", {}, "arguments-invalid", "code: Field required"),
        ("run", {"code": 5}, "arguments-invalid", "code: Input should be a valid string"),
        ("run", {"code": ""}, "arguments-invalid", "code: String should have at least 1 character"),
        (
            "run",
            {"code": "1", "engin": "auto"},
            "arguments-invalid",
            "no argument engin; did you mean engine?",
        ),
        ("run", {"code": "1", "engine": "fast"}, "arguments-invalid", "'auto', 'cpython' or 'monty'"),
        ("run", {"code": "1", "check_only": "yes"}, "arguments-invalid", "check_only"),
        (
            "run",
            {"code": "1", "inputs": [1]},
            "arguments-invalid",
            "inputs: Input should be a valid dictionary",
        ),
        ("run", {"code": "1", "inputs": {"a b": 1}}, "arguments-invalid", "'a b' is not a name"),
        ("run", {"code": "1", "inputs": {"a": {"$what": 1}}}, "value-unsupported", "$what"),
        ("run", {"code": "1", "inputs": {"a": "x" * (5 << 20)}}, "value-too-large", "bytes of JSON"),
        ("run", {"code": "#" * (2 << 20)}, "arguments-invalid", "at most 1048576 characters"),
        ("search", {"words": "x" * 2000}, "arguments-invalid", "at most 1000 characters"),
        ("describe", {"path": "db.app.file.page"}, "operation-unknown", "df.db.app.files.page"),
        ("read", {"ref": "what"}, "arguments-invalid", "neither an evidence id nor a run"),
        ("read", {"ref": "ev1_00000000"}, "evidence-not-found", "ev1_00000000"),
        ("read", {"ref": "run_none"}, "run-not-found", "run_none"),
        ("read", {"ref": "7"}, "run-not-found", "'7'"),
        ("read", {"ref": "1", "part": "result"}, "arguments-invalid", "no part 'result'"),
        ("read", {"ref": "1", "pointer": "a"}, "arguments-invalid", "not a JSON Pointer"),
        ("read", {"ref": "1", "pointer": "/lis"}, "item-not-found", "list"),
        ("read", {"ref": "1", "pointer": "/list/3"}, "item-not-found", "3 items and no '3'"),
        ("read", {"ref": "1", "pointer": "/list/0/x"}, "item-not-found", "has no parts"),
        ("read", {"ref": "1", "pointer": "/list", "offset": 4}, "limit-invalid", "beyond the 3 items"),
        ("read", {"ref": "1", "offset": -1}, "arguments-invalid", "offset"),
        ("read", {"ref": "1#/list", "pointer": "/list"}, "arguments-invalid", "give one of them"),
    ],
)
def test_a_wrong_call_is_a_result_that_says_what_to_do(
    server: Raw, tool: str, arguments: dict[str, Any], code: str, says: str
) -> None:
    answer = server.call(tool, **arguments)
    assert answer.is_error
    assert answer.document["error"]["code"] == code
    assert says in answer.text
    assert answer.document["next"]


def test_what_is_no_message_is_answered_and_the_connection_goes_on(server: Raw) -> None:
    deep = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for line in (b"what", b"[]", b'{"jsonrpc":"2.0"}', b'{"id": 1, "method"', b"\xff\xfe", deep):
        server.line(line)
        answer = server.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert server.request("tools/call", name=5)["error"]["code"] == -32602
    assert server.request("no/such")["error"]["code"] == -32601
    assert server.run("1")["value"] == 1


def depth(schema: object) -> int:
    if isinstance(schema, dict):
        return 1 + max(map(depth, schema.values()), default=0)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(schema, list):
        return max(map(depth, schema), default=0)  # pyright: ignore[reportUnknownArgumentType]
    return 0


async def test_the_catalogue_is_small_flat_and_annotated(root: Path) -> None:
    async with connect(root, "--mount", APP) as agent:
        tools = (await agent.client.list_tools()).tools
        with pytest.raises(MCPError, match="search, describe, run, read") as caught:
            await agent.client.call_tool("execute", {})
        assert caught.value.code == -32602
    assert [tool.name for tool in tools] == ["search", "describe", "run", "read"]
    whole = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
    assert len(whole.encode()) <= 15_000
    for tool in tools:
        assert tool.title
        assert tool.description
        assert tool.output_schema is not None
        assert max(depth(tool.input_schema), depth(tool.output_schema)) <= 6
        assert not any(
            word in json.dumps([tool.input_schema, tool.output_schema]) for word in ("$ref", "$defs", "?=")
        )
        assert tool.annotations is not None
        hints = tool.annotations.model_dump()
        assert None not in hints.values()
        assert hints["read_only_hint"] is (tool.name != "run")
        assert not hints["destructive_hint"]
        assert not hints["open_world_hint"]


async def test_annotations_follow_what_is_granted(root: Path, tools: str) -> None:
    async with connect(root, "--mount", tools, "--grant", "write:tool.t.*") as agent:
        found = {tool.name: tool.annotations for tool in (await agent.client.list_tools()).tools}
    assert found["run"] is not None
    assert found["run"].destructive_hint
    assert found["run"].open_world_hint
    assert found["read"] is not None
    assert not found["read"].open_world_hint


def test_large_values_are_previewed_and_read_whole(server: Raw) -> None:
    code = 'print("p" * 10_000)\n[{"i": i, "text": "x" * (i * 9), "deep": {"a": [[i]]}} for i in range(500)]'
    answer = server.call("run", code=code)
    run = answer.document
    assert len(orjson.dumps(run["value"])) <= 8 << 10
    assert run["value"][0] == {"i": 0, "text": "", "deep": {"a": [[0]]}}
    assert run["cuts"][0] == {"pointer": "", "shown": 3, "total": 500, "unit": "items"}
    assert run["next"].startswith(f'read {{"ref": "{run["run_id"]}", "offset": 3}}')
    assert (len(run["stdout"]), run["stdout_cut"]) == (4000, 6001)
    assert len(answer.text) <= 20_000
    assert len(orjson.dumps(run)) <= 20_000

    items, offset = list[Any](), 0
    while offset is not None:
        part = server.read(run["run_id"], offset=offset)
        assert part["total"] == 500
        assert part["cuts"] == []
        items += part["value"]
        offset = part["next_offset"]
    assert items == [{"i": i, "text": "x" * (i * 9), "deep": {"a": [[i]]}} for i in range(500)]
    out, offset = "", 0
    while offset is not None:
        part = server.read(run["run_id"], part="stdout", offset=offset)
        out, offset = out + part["value"], part["next_offset"]
    assert out == "p" * 10_000 + "\n"
    assert server.read(run["run_id"], part="source")["value"] == code


def test_an_item_too_large_for_one_reply_is_reached_by_its_pointer(server: Raw) -> None:
    run = server.run('[{"rows": [[n, "y" * 50] for n in range(2000)]}, 7]')
    part = server.read(run["run_id"])
    assert (part["returned"], part["next_offset"]) == (1, 1)
    assert part["cuts"][0] == {"pointer": "/0/rows", "shown": 3, "total": 2000, "unit": "items"}
    assert '"pointer": "/0/rows"' in part["next"]
    inside = server.read(run["run_id"], pointer="/0/rows", offset=1999)
    assert (inside["value"], inside["next_offset"]) == ([[1999, "y" * 50]], None)
    assert server.read(run["run_id"], offset=1)["value"] == [7]


def test_many_calls_are_listed_in_part_and_read_whole(server: Raw) -> None:
    answer = server.call("run", code="for n in range(60): await df.db.app.files.page(limit=n + 1)\n1")
    run = answer.document
    assert (len(run["calls"]), run["calls_total"]) == (20, 60)
    assert f'read {{"ref": "{run["run_id"]}", "part": "calls", "offset": 20}}' in answer.text
    ids: list[str] = [call["evidence_id"] for call in run["calls"]]
    offset = 20
    while offset is not None:
        part = server.read(run["run_id"], part="calls", offset=offset)
        ids += [call["evidence_id"] for call in part["value"]]
        offset = part["next_offset"]
    assert len(set(ids)) == 60


def test_failures_tell_the_line_and_what_was_done(server: Raw) -> None:
    failed = server.call("run", code="await df.db.app.files.page()\n\n1 / 0")
    assert failed.is_error
    assert "line 3: [script-error] ZeroDivisionError: division by zero" in failed.text
    assert "1 calls were made and are recorded" in failed.document["next"]
    endless = server.call("run", code="while True: pass")
    assert endless.is_error
    assert endless.document["status"] == "timed-out"
    missing = server.call("run", code='await df.db.app.files.get(id="no/such")')
    assert missing.is_error
    assert "item-not-found" in missing.text


def test_a_check_alone_runs_nothing_and_a_rejection_is_its_result(server: Raw) -> None:
    before = server.run("1")["number"]
    checked = server.call("run", code="nme = 1\nname", check_only=True)
    assert not checked.is_error
    assert checked.document["status"] == "rejected"
    assert checked.document["diagnostics"][0]["line"] == 2
    assert server.call("run", code="1", check_only=True).document["status"] == "clean"
    assert server.run("1")["number"] == before + 1


def test_nulls_stand_for_what_is_not_given(server: Raw) -> None:
    assert server.run("1", inputs=None, engine=None, check_only=None)["value"] == 1
    assert server.run("x", inputs={"x": 1.0, "y": {"$int": str(2**70)}})["value"] == 1.0


def test_text_that_is_no_unicode_does_not_end_the_connection(server: Raw) -> None:
    run = server.run('print("\\ud800")\n{"a": "\\ud800"}')
    assert run["value"] == {"a": {"$text": "7aCA"}}
    assert run["stdout"] == "\\ud800\n"
    assert server.run("1")["value"] == 1


async def test_a_mount_that_fails_is_told_by_every_tool(root: Path) -> None:
    async with connect(root, "--mount", "app=./no/such/file.asar") as agent:
        for tool, arguments in (("search", {"words": "x"}), ("run", {"code": "1"})):
            result = await agent.call(tool, **arguments)
            assert result.is_error
            assert result.structured_content["error"]["code"] == "artifact-not-found"
            assert "--mount" in result.structured_content["next"]


def test_standard_output_belongs_to_the_protocol(root: Path, tools: str) -> None:
    """A mounted module prints when it is imported and called, and every line the client gets is a message."""
    with Raw(root, "--mount", tools) as raw:
        assert raw.run('await df.tool.t.greet(name="you")')["value"] == "hello you "


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (("--session", "../x"), 2, "cannot be a session's id"),
        (("--mount", "app"), 2, "is not NAME=URI"),
        (("--grant", "everything"), 2, "no such effect"),
    ],
)
def test_what_a_person_got_wrong_is_told_at_once(
    root: Path, words: tuple[str, ...], exit_code: int, says: str
) -> None:
    ended = subprocess.run(command(root, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert says in ended.stderr


VALUES = """\
import datetime, decimal
{
    "whole": 1.0, "zero": -0.0, "nan": float("nan"), "big": 2**70, "edge": 2**53 - 1, "bytes": b"hi",
    "when": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), "money": decimal.Decimal("1.10"),
    "$key": None, "surrogate": "\\ud800", "text": "\\u2028 \\u00e9 \\U0001f600", "tiny": 5e-324, "huge": 1.5e300,
}"""


@pytest.mark.parametrize(
    "code",
    [
        VALUES,
        'await df.db.app.files.page(where={"language": "javascript"}, limit=3)',
        'await df.db.app.modules.count(by="kind")',
        "print('x')\n1/0",
        "unknown_name",
    ],
)
def test_the_command_line_gives_the_same_bytes(
    server: Raw, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(code)
    run_cli(["run", str(script), "--mount", APP, "--workspace", str(tmp_path / "other"), "--json"])
    here = json.loads(capsys.readouterr().out)
    there = server.call("run", code=code).document
    changing = ("run_id", "number", "session_id", "calls")
    assert orjson.dumps([here[name] for name in sorted(here) if name not in changing]) == orjson.dumps(
        [there[name] for name in sorted(here) if name not in changing]
    )
    assert [call["evidence_id"] for call in here["calls"]] == [call["evidence_id"] for call in there["calls"]]


def test_a_direct_call_and_kept_evidence_are_the_same_bytes(
    server: Raw, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "other")
    run_cli(["call", "db.app.files.page", "limit=2", "--mount", APP, "--workspace", root, "--json"])
    called = json.loads(capsys.readouterr().out)
    run_cli(["evidence", "show", called["evidence_id"], "--workspace", root, "--json"])
    shown = json.loads(capsys.readouterr().out)
    run = server.run("await df.db.app.files.page(limit=2)")
    assert orjson.dumps(run["value"]) == orjson.dumps(called)
    kept = server.read(called["evidence_id"])
    assert orjson.dumps(kept["value"]) == orjson.dumps(shown["result"])
    record = server.read(called["evidence_id"], part="record")
    assert orjson.dumps(record["value"]) == orjson.dumps(shown["record"])


def test_without_the_extra_the_command_says_what_to_install(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "affidavit.interfaces.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run_cli(["mcp", "--workspace", str(root)]) == 1
    assert "pip install 'affidavit[mcp]'" in capsys.readouterr().err


def test_only_the_command_loads_the_sdk() -> None:
    code = (
        "import sys\nfrom affidavit.interfaces.cli import run\nrun(['--help'])\nrun(['run', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('mcp', 'mcp_types', 'anyio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
