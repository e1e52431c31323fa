"""What a secret held stands nowhere, whatever the far side does with it: replies, errors, noise, logs, files."""

import json
import logging
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError
from affidavit.mounts.secrets import Secrets
from affidavit.policy import Grant
from affidavit.store.journal import JournalSettings
from affidavit.workspace import Workspace
from tests.mounts.echoing import Answer, Asked, Echo, echoing
from tests.mounts.mcp.test_http import EVENTS, JSON, REPLY, serving

SECRET = "s3cr3t/value+of=the test"
FORMS = (SECRET, "s3cr3t%2Fvalue", "s3cr3t/value", "czNjcjN0L3ZhbHVl")
SERVER = Path(__file__).parent / "mcp" / "odd_server.py"

PROGRAM = """
import os, sys
if sys.argv[1] == "say":
    print("it is", os.environ["TOKEN"])
else:
    sys.stderr.write("failed with " + os.environ["TOKEN"])
    sys.exit(3)
"""


@pytest.fixture
def echo() -> Generator[Echo]:
    with echoing() as server:
        yield server


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)


async def shown_by(tmp_path: Path, mounts: dict[str, dict[str, Any]], script: str) -> str:
    """Everything that is printed, returned, told or written while a script runs."""
    journal = JournalSettings(folder=tmp_path / "journal")
    grants = [Grant(effect="write", pattern="*", origin="test")]
    async with Workspace.open(tmp_path / "w", journal=journal, grants=grants) as workspace:
        for spec, options in mounts.items():
            workspace.mount(spec, options=options)
        session = await workspace.session()
        run = await session.run(script)
        assert run.status == "succeeded", run.error
        shown = json.dumps([run.as_json(), workspace.notices(), [it.as_json() for it in workspace.mounts()]])
    files = [path for name in ("w", "journal") for path in (tmp_path / name).rglob("*") if path.is_file()]
    return shown + "".join(path.read_bytes().decode("latin-1") for path in files)


def calls(*paths: str) -> str:
    """A script that makes each call and prints what comes of it."""
    each = "try:\n    print(await df.tool.{})\nexcept df.Error as error:\n    print(error, error.details)\n"
    return "".join(each.format(path) for path in paths)


async def test_of_a_server_on_standard_streams(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = f"mcp+stdio:'{sys.executable}' '{SERVER}'"
    shown = await shown_by(tmp_path, {f"odd={uri}": {"env": ["TOKEN"]}}, calls("odd.leaks()", "odd.secret()"))
    assert "[TOKEN]" in shown
    assert "a line that is no message was ignored" in caplog.text
    assert [form for form in FORMS if form in shown + caplog.text] == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (REPLY % SECRET.encode(), JSON),
        (b"event: message\ndata: " + REPLY % SECRET.encode() + b"\n\n", EVENTS),
        (b"not json but " + SECRET.encode(), JSON),
        (b'{"jsonrpc": "2.0", "id": ID, "result": "' + SECRET.encode() + b'"}', JSON),
        (b'{"jsonrpc": "2.0", "id": ID, "result": {"content": "' + SECRET.encode() + b'"}}', JSON),
        (b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -1, "message": "' + SECRET.encode() + b'"}}', JSON),
        (b"event: message\ndata: " + SECRET.encode() + b"\n\n", EVENTS),
        (b"event: " + SECRET.encode() + b"\ndata: x\n\n", EVENTS),
        (b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": "' + SECRET.encode() + b'"}\n\n'
         b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "'
         + SECRET.encode() + b'"}}\n\n', EVENTS),
        (b"<html>" + SECRET.encode(), {"Content-Type": "text/html"}),
    ],
    ids=lambda value: "",
)  # fmt: skip
async def test_of_a_server_behind_a_url(
    tmp_path: Path, echo: Echo, caplog: pytest.LogCaptureFixture, body: bytes, headers: dict[str, str]
) -> None:
    answer = serving(body, headers)

    def leaking(asked: Asked) -> Answer:
        status, said, content = answer(asked)
        return status, said | {"X-Echo": SECRET}, content

    echo.answer = leaking
    options = {"headers": {"Authorization": "Bearer env:TOKEN"}}
    shown = await shown_by(tmp_path, {f"h=mcp+{echo.url}/mcp": options}, calls("h.odd()", "h.fine()"))
    assert any(asked.headers["authorization"].endswith(SECRET) for asked in echo.asked)
    assert [form for form in FORMS if form in shown + caplog.text] == []


async def test_of_an_api(tmp_path: Path, echo: Echo, caplog: pytest.LogCaptureFixture) -> None:
    def answer(asked: Asked) -> Answer:
        said = {"Content-Type": "application/json", "X-Echo": SECRET}
        match asked.path.partition("?")[0]:
            case "/bad":
                return 400, said, json.dumps({"you sent": asked.headers, "query": asked.path}).encode()
            case "/away":
                return 302, said | {"Location": f"http://elsewhere.example/{SECRET.replace(' ', '')}"}, b""
            case "/broken":
                return 200, said, b"{" + SECRET.encode()
            case _:
                return 200, said, json.dumps([asked.headers, asked.path]).encode()

    echo.answer = answer
    paths: dict[str, Any] = {
        f"/{name}": {"get": {"operationId": name, "responses": {}}}
        for name in ("good", "bad", "away", "broken")
    }
    schemes = {
        "key": {"type": "apiKey", "in": "query", "name": "k"},
        "basic": {"type": "http", "scheme": "basic"},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "servers": [{"url": echo.url}], "paths": paths,
        "components": {"securitySchemes": schemes}, "security": [{"key": [], "basic": []}],
    }  # fmt: skip
    (tmp_path / "api.json").write_text(json.dumps(document))
    options = {"auth": {"key": "env:TOKEN", "basic": "user:env:TOKEN"}, "envelope": True, "retries": 0}
    shown = await shown_by(
        tmp_path, {"api=openapi:api.json": options}, calls(*(f"api.{path[1:]}()" for path in paths))
    )
    assert "[TOKEN]" in shown
    assert [form for form in FORMS if form in shown + caplog.text] == []


async def test_of_a_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    tools = [{"name": name, "words": [name]} for name in ("say", "fail")]
    uri = f"command:'{sys.executable}' program.py"
    shown = await shown_by(
        tmp_path, {f"p={uri}": {"tools": tools, "env": ["TOKEN"]}}, calls("p.say()", "p.fail()")
    )
    assert "[TOKEN]" in shown
    assert [form for form in FORMS if form in shown + caplog.text] == []


def test_no_half_of_one_is_left_where_an_excerpt_was_cut() -> None:
    secrets = Secrets({"TOKEN": SECRET})
    secrets.get("TOKEN")
    said = f"<{SECRET}>"
    for at in range(len(said) + 1):
        for part in (said[:at], said[at:]):
            error = secrets.error(FailedError("tool-failed", part, details={"text": [part]}))
            halves = {SECRET[:length] for length in range(6, len(SECRET))}
            halves |= {SECRET[-length:] for length in range(6, len(SECRET))}
            assert not [half for half in halves if half in error.message + str(error.details)], part


@pytest.mark.parametrize("uri", ["mcp+{}/mcp", "openapi:{}/api.json"])
async def test_where_mounting_fails(
    tmp_path: Path, echo: Echo, caplog: pytest.LogCaptureFixture, uri: str
) -> None:
    echo.answer = lambda asked: (403, {"X-Echo": SECRET}, f"no entry with {asked.headers}".encode())
    options = {"headers": {"Authorization": "Bearer env:TOKEN"}}
    with pytest.raises(Exception, match="m") as caught:
        await shown_by(tmp_path, {f"m={uri.format(echo.url)}": options}, "1")
    assert [form for form in FORMS if form in repr(caught.value) + str(caught.value) + caplog.text] == []
