"""`affidavit results`, `affidavit preamble` and `run --brief` as a person uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.interfaces.cli import run
from affidavit.runtime.run import Request
from affidavit.store import Event, Store


class Shell:
    """Runs commands in a folder of their own and keeps what they printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *words: str) -> tuple[int, str]:
        code = run(list(words))
        shown = self._capsys.readouterr()
        self.err = shown.err
        return code, shown.out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json")[1])


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text("{'rows': list(range(9000)), 'last': 'END'}", "utf-8")
    Path("helper.py").write_text("def twice(x: int) -> int:\n    return 2 * x\n", "utf-8")
    Path("broken.py").write_text("def f(x):\n    return (x\n", "utf-8")
    Path("two.py").write_text("twice(len((await results[0].load())['rows']))", "utf-8")
    return Shell(capsys)


def test_a_conversation_of_commands(shell: Shell) -> None:
    code, text = shell("run", "one.py", "--session", "s", "--brief")
    assert code == 0
    assert 'cut: 8,997 of 9,000 items of (await results[0].load())["rows"]' in text
    assert '"last": "END"' in text
    assert shell("preamble", "set", "h", "helper.py", "--session", "s")[0] == 0
    assert shell("preamble", "set", "b", "broken.py", "--session", "s")[0] == 1
    assert "preamble b:2: '(' was never closed" in shell.err
    assert [entry["key"] for entry in shell.json("preamble", "show", "--session", "s")["preamble"]] == ["h"]
    assert shell.json("run", "two.py", "--session", "s")["value"] == 18_000
    rows = shell.json("results", "--session", "s")["results"]
    assert [(row["number"], row["kind"]) for row in rows] == [(2, "data"), (1, "large")]
    assert shell.json("results", "1", "--session", "s")["value"]["last"] == "END"
    assert shell("preamble", "remove", "h", "--session", "s")[0] == 0
    assert shell("preamble", "remove", "h", "--session", "s")[0] == 3


def test_only_sessions_that_are_there(shell: Shell) -> None:
    assert shell("results", "--session", "nothing")[0] == 3
    assert shell("preamble", "show", "--session", "nothing")[0] == 3
    shell("run", "one.py", "--session", "s")
    assert shell("results", "9", "--session", "s")[0] == 3
    assert "affidavit results --session s" in shell.err


def test_looking_at_a_session_settles_what_lost_its_process(shell: Shell) -> None:
    with Store.open(Path(".affidavit")) as store:
        asked = Request(source="1 + 1").as_event(1)
        store.append(Event(kind="session-opened", session="s", at=0.0, data={"version": "0"}))
        store.append(Event(kind="run-requested", session="s", run="run_1", at=0.0, data=asked, key="run:1"))
    [shown] = shell.json("session", "show", "s")["runs"]
    assert (shown["status"], shown["error"]["code"]) == ("orphaned", "run-orphaned")
    events = shell.json("session", "show", "s", "--events")["events"]
    assert [event["kind"] for event in events] == ["session-opened", "run-requested", "run-settled"]
    assert shell.json("session", "show", "s", "--events")["events"] == events
