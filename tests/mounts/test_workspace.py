"""Mounts as a person and a script meet them: one line, then typed calls, each of them evidence."""

import json
import logging
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, NotFoundError, UsageError
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.interfaces.cli import run as run_cli
from affidavit.mounts.python import PythonAdapter
from affidavit.policy import Grant
from affidavit.store.journal import JournalSettings
from affidavit.workspace import Workspace

SERVER = Path(__file__).parent / "mcp" / "odd_server.py"
ODD = f"mcp+stdio:'{sys.executable}' '{SERVER}'"
SECRET = "s3cr3t/value+of=the test"
TOOLS = "def double(n: int) -> int:\n    return n * 2\n"


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(TOOLS)


async def test_a_script_calls_what_is_mounted(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        mounted = workspace.mount(f"odd={ODD}")
        assert (mounted.kind, mounted.place, mounted.about) == ("mcp", "tool", "odd server 1: 26 tools")
        workspace.mount("py=python:tools.py")
        session = await workspace.session()
        run = await session.run(
            "said = await df.tool.odd.echo(class_=await df.tool.py.double(n=4))\nsaid['given']"
        )
        assert (run.status, run.data) == ("succeeded", {"class": 8}), run.error
        assert [call.contract for call in run.calls] == ["python.tools.double/1", "mcp.odd%20server.echo/1"]


async def test_the_alias_is_in_no_record(tmp_path: Path) -> None:
    ids: list[list[str]] = []
    for name in ("one", "two"):
        async with Workspace.open(tmp_path / name) as workspace:
            workspace.mount(f"{name}={ODD}")
            session = await workspace.session()
            run = await session.run(f"await df.tool.{name}.echo(class_=1)")
            ids.append([call.evidence_id for call in run.calls])
    assert ids[0] == ids[1]
    assert len(ids[0]) == 1


async def test_a_session_opens_without_the_server_and_has_the_same_stubs(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER.read_text())
    async with Workspace.open("w") as workspace:
        workspace.mount(f"odd=mcp+stdio:'{sys.executable}' server.py")
        before = (await workspace.session()).catalogue.stubs
    server.unlink()
    async with Workspace.open("w") as workspace:
        session = await workspace.session()
        assert session.catalogue.stubs == before
        run = await session.run(
            "try:\n    said = await df.tool.odd.next()\n"
            "except df.Error as error:\n    said = [error.code, error.retryable]\nsaid"
        )
        assert run.data == ["mount-failed", True]


async def test_mounting_grants_reading_and_calling_and_no_writing(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount(f"odd={ODD}")
        session = await workspace.session()
        for tool, status in (("next", "succeeded"), ("seen", "succeeded"), ("die", "failed")):
            run = await session.run(f"await df.tool.odd.{tool}()")
            assert run.status == status
        assert run.error is not None
        assert run.error["code"] == "call-refused"
    async with Workspace.open("w", grants=[Grant(effect="write", pattern="tool.odd.*")]) as workspace:
        run = await (await workspace.session()).run("await df.tool.odd.die()")
        assert run.error is not None
        assert run.error["code"] == "tool-failed"


async def test_nothing_crosses_from_tenant_to_tenant_or_session_to_session(tmp_path: Path) -> None:
    async with Workspace.open("w", tenant="a") as workspace:
        workspace.mount(f"odd={ODD}")
        own = await workspace.session("own", mounts=[f"mine={ODD}"])
        other = await workspace.session("other")
        assert "tool.mine.next" in own.catalogue.operations
        assert "tool.mine.next" not in other.catalogue.operations
        assert "tool.odd.next" in other.catalogue.operations
        # what the session mounted for itself has a server of its own
        for session, path in ((own, "mine"), (own, "odd"), (other, "odd")):
            run = await session.run(f"len((await df.tool.{path}.seen())['seen'])")
            assert run.status == "succeeded", run.error
        counts = [
            (await session.run(f"len((await df.tool.{path}.seen())['seen'])")).data
            for session, path in ((own, "mine"), (other, "odd"))
        ]
        assert counts[0] < counts[1]
    async with Workspace.open("w", tenant="b") as workspace:
        assert workspace.mounts() == []
        assert not (await workspace.session()).catalogue.operations


@pytest.mark.parametrize("length", [20, 100_000])
async def test_a_secret_is_in_no_file_no_reply_and_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    """Small values stand in the log, large ones in blobs."""
    monkeypatch.setenv("TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)
    script = (
        "said = await df.tool.odd.secret()\nprint(said)\n"
        "try:\n    await df.tool.api.find()\nexcept df.Error as error:\n    print(error, error.details)\n"
        f"[said, await df.tool.odd.echo(class_=said * {length // 20})]"
    )
    (tmp_path / "api.json").write_text(json.dumps({
        "openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9/"}],
        "paths": {"/find": {"get": {"operationId": "find", "responses": {}}}},
    }))  # fmt: skip
    journal = JournalSettings(folder=tmp_path / "journal")
    async with Workspace.open("w", journal=journal) as workspace:
        workspace.mount(f"odd={ODD}", options={"env": ["TOKEN"]})
        workspace.mount(
            "api=openapi:api.json", options={"headers": {"Authorization": "Bearer env:TOKEN"}, "retries": 0}
        )
        session = await workspace.session()
        run = await session.run(script)
        assert run.status == "succeeded", run.error
        shown = json.dumps(run.as_json())
        assert "[TOKEN]" in shown
        shown += json.dumps([mounted.as_json() for mounted in workspace.mounts()]) + caplog.text
    files = [path for folder in ("w", "journal") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert len(files) > 3
    everything = shown.encode() + b"".join(path.read_bytes() for path in files)
    for form in (SECRET, "s3cr3t%2Fvalue", "s3cr3t/value", "czNjcjN0L3ZhbHVl"):
        assert form.encode() not in everything


async def test_the_host_is_not_in_a_journal(tmp_path: Path) -> None:
    journal = JournalSettings(folder=tmp_path / "journal")
    async with Workspace.open("w", journal=journal) as workspace:
        await workspace.session("s", mounts=[f"odd={ODD}"])
    text = "".join(path.read_text() for path in (tmp_path / "journal").iterdir())
    assert "odd server" in text
    assert str(tmp_path) not in text
    assert str(SERVER.parent) not in text


async def test_a_run_is_replayed_without_the_server(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount(f"odd={ODD}")
        run = await (await workspace.session()).run("await df.tool.odd.wide()")
    async with Workspace.open("w") as workspace:
        workspace.unmount("odd")
        replay = await workspace.replay(run.run_id)
        assert replay.same


async def test_the_name_alone_mounts_again(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        first = workspace.mount("py=python:tools.py")
        (tmp_path / "tools.py").write_text(TOOLS.replace("double", "twice"))
        again = workspace.mount("py")
        assert first.snapshot is not None
        assert again.snapshot is not None
        assert first.snapshot.identity != again.snapshot.identity
        assert list((await workspace.session()).catalogue.operations) == ["tool.py.twice"]
        assert await workspace.snapshot("py") == again.snapshot
        with pytest.raises(UsageError):
            workspace.mount("nothing")
        with pytest.raises(NotFoundError):
            await workspace.snapshot("nothing")


PROJECT = f"""
[mounts]
py = "python:tools.py"

[mounts.odd]
uri = '''{ODD}'''
timeout = 20

[mounts.hidden]
uri = "python:tools.py"
tenants = ["other"]

[[grants]]
effect = "write"
pattern = "tool.odd.*"
"""


async def test_a_project_file(tmp_path: Path) -> None:
    project = tmp_path / "affidavit.toml"
    project.write_text(PROJECT)
    async with Workspace.open("w") as workspace:
        session = await workspace.session()
        assert [(it.name, it.project) for it in workspace.mounts()] == [("odd", True), ("py", True)]
        run = await session.run("await df.tool.odd.die()")
        assert run.error is not None
        assert run.error["code"] == "tool-failed"  # granted, so it was called
        added = list(workspace.store.events.of_session("workspace"))
        await workspace.session()
        assert len(list(workspace.store.events.of_session("workspace"))) == len(added)
        # changed, and one gone
        project.write_text('[mounts]\nodd = "python:tools.py"\n')
        assert list((await workspace.session()).catalogue.operations) == ["tool.odd.double"]
        # by hand
        workspace.mount("odd=python:tools.py")
        project.write_text('[mounts]\nodd = "python:other.py"\nno = "python:none.py"\n')
        assert list((await workspace.session()).catalogue.operations) == ["tool.odd.double"]
        notices = " ".join(workspace.notices())
        assert "odd is mounted by hand" in notices
        assert "no cannot be mounted" in notices
        project.unlink()
        await workspace.session()
        assert [it.name for it in workspace.mounts()] == ["odd"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mounts", "is not TOML"),
        ("mount = 1", "mount is neither"),
        ("mounts = 1", "mounts is not a table"),
        ("[mounts]\na = 1", "mounts.a is not a table"),
        ("[mounts.a]\nx = 1", "mounts.a.uri is not text"),
        ("[mounts]\n'a b' = 'x'", "mounts.a b cannot be"),
        ("[mounts]\na = 'https://u:p@host/'", "user or password"),
        ("[mounts.a]\nuri = 'x'\nt = 2020-01-01", "mounts.a.t is a date"),
        ("[mounts.a]\nuri = 'x'\ntenants = 'b'", "mounts.a.tenants is not a list"),
        ("[[grants]]\npattern = '*'", r"grants\[0\] needs an effect"),
        ("[[grants]]\neffect = 'all'", r"grants\[0\] cannot be"),
        ("[[grants]]\neffect = 'write'\nto = 'x'", r"grants\[0\].to is neither"),
        ("a = '" + "x" * (1 << 20) + "'", "more than"),
        ('a = "\\ud800"', "is not TOML"),
    ],
)
async def test_a_project_file_that_is_malformed_is_refused_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "affidavit.toml").write_text(text)
    async with Workspace.open("w") as workspace:
        with pytest.raises(UsageError, match=words) as caught:
            await workspace.session()
        assert caught.value.code == "project-invalid"


class Broken:
    """An adapter of someone else that does nothing right."""

    name = "broken"
    version = "1"
    place = "tool"

    def probe(self, uri: str, head: bytes) -> bool:
        if uri.startswith("claims:"):
            return True
        raise RuntimeError("cannot look")

    async def describe(self, source: Source) -> Description:
        if source.uri == "claims:describe":
            raise RuntimeError("cannot describe")
        return Description(contents={"a": 1}, summary="x", snapshot=Snapshot(identity="", basis="none"))

    def open(self, source: Source, contents: Any) -> Mount:
        raise RuntimeError(f"cannot open {contents}")


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("absent", "no_such_module_here:Adapter", "affidavit.mounts"),
        EntryPoint("broken", f"{__name__}:Broken", "affidavit.mounts"),
        EntryPoint("python", "affidavit.mounts.python:PythonAdapter", "affidavit.mounts"),
    ]

    def found(group: str, name: str | None = None) -> list[EntryPoint]:
        return [it for it in points if it.group == group and name in (None, it.name)]

    monkeypatch.setattr("affidavit.extensions.entry_points", found)


async def test_adapters_that_are_broken_stop_no_other(tmp_path: Path, strangers: None) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount("py=python:tools.py")
        workspace.mount("it=claims:open")
        with pytest.raises(AffidavitError, match="cannot describe") as caught:
            workspace.mount("no=claims:describe")
        assert caught.value.code == "mount-failed"
        with pytest.raises(UsageError, match="absent cannot be loaded: ModuleNotFoundError"):
            workspace.mount("no=other:thing")
        session = await workspace.session()
        assert list(session.catalogue.operations) == ["tool.py.double"]
        assert any("cannot open {'a': 1}" in notice for notice in workspace.notices())
        findings = {it.name: it for it in await workspace.doctor()}
        assert not findings["mount absent"].ok
        assert not findings["mount absent"].decisive
        assert findings["mount python"].detail == f"contract version {PythonAdapter.version}"


async def test_a_mount_of_an_adapter_that_is_gone_is_told(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount(f"odd={ODD}")
    request.getfixturevalue("strangers")
    async with Workspace.open("w") as workspace:
        await workspace.session()
        assert any("no mount adapter 'mcp'" in notice for notice in workspace.notices())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("x=nope:thing", "no mount adapter takes nope:"),
        ("x", "is not NAME=URI"),
        ("x=python:none.py", "cannot be imported"),
        ("class=python:tools.py", "cannot be a mount's name"),
    ],
)
async def test_what_cannot_be_mounted_is_said(tmp_path: Path, spec: str, words: str) -> None:
    async with Workspace.open("w") as workspace:
        with pytest.raises(UsageError, match=words) as caught:
            workspace.mount(spec)
        assert caught.value.code == "mount-invalid"
        assert caught.value.hint


def test_what_cannot_be_offered_is_told_by_show_describe_and_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BREACH", "1")
    assert run_cli(["mount", "add", f"odd={ODD}", "--env", "BREACH"]) == 0
    capsys.readouterr()
    for words, kept in (
        (["mount", "show", "odd"], "tool breach"),
        (["describe", "df.tool.odd"], "# left out: tool breach: it is no tool of the protocol"),
        (["describe", "df.tool.odd", "--json"], '"left_out":'),
        (["describe"], "# left out: tool.odd tool breach: it is no tool of the protocol"),
        (["mount", "show", "odd"], "tool torn too ?"),
        (["describe", "half"], "half ?"),
        (["doctor"], "left out: tool breach: it is no tool of the protocol"),
    ):
        run_cli(words)
        assert kept in capsys.readouterr().out, words


async def test_half_a_surrogate_pair_in_what_a_server_says_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREACH", "1")
    async with Workspace.open("w") as workspace:
        workspace.mount(f"odd={ODD}", options={"env": ["BREACH"]})
        session = await workspace.session()
        torn = next(
            name
            for name in session.catalogue.root.children["tool"].children["odd"].operations
            if "torn" in name
        )
        run = await session.run(f"await df.tool.odd.{torn}()")
        assert (run.status, run.check) == ("succeeded", "clean"), run.error
        assert run.data == "torn \ud800"
