"""One event that no session writes costs what it would have said, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.interfaces.cli import run as command
from affidavit.store import Event, Store

ODD: list[tuple[str, Any, dict[str, Any]]] = [
    ("preamble-set", {"code": "x = 1"}, {}),
    ("preamble-removed", [], {}),
    ("mount-added", {"name": "app"}, {}),
    ("run-requested", {"source": "1"}, {"run": "run_odd"}),
    ("run-settled", {"status": "succeeded", "number": "first", "has_value": True}, {"run": "run_odd"}),
    ("run-settled", {"status": "failed", "number": 1, "has_value": True, "value": {"$date": "soon"}}, {"run": "run_a"}),
    ("call-recorded", {"call": 1}, {"run": "run_a"}),
    ("session-opened", {"version": "1"}, {"at": 1e300}),
    ("unknown-revised", None, {}),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("1 + 1\n")
    assert command(["run", "a.py", "--session", "good"]) == 0
    with Store.open(tmp_path / ".affidavit") as store:
        for session in ("good", "odd"):
            for kind, data, more in ODD:
                store.append(replace(Event(kind=kind, session=session, data=data, at=2e9), **more))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    code = command([*words, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_sessions_are_listed_shown_and_gone_on_with(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = said(capsys, "session", "list")
    assert code == 0
    assert {it["session_id"]: (it["runs"], it["odd_events"]) for it in document["sessions"]} == {
        "good": (1, len(ODD)),
        "odd": (0, len(ODD)),
    }
    assert err.count("affidavit doctor --store") == 2
    code, document, err = said(capsys, "session", "show", "good")
    assert (code, len(document["runs"])) == (0, 1)
    assert f"{len(ODD)} events of session good are left out" in err
    for session in ("good", "odd"):
        code, document, err = said(capsys, "run", "a.py", "--session", session)
        assert (code, document["status"], document["value"]) == (0, "succeeded", 2), document
        assert "events of session" in err
    code, document, _ = said(capsys, "results", "--session", "good")
    assert (code, [row["number"] for row in document["results"]]) == (0, [2, 1])
    assert said(capsys, "preamble", "show", "--session", "odd")[:2] == (
        0,
        {"session_id": "odd", "preamble": []},
    )


def test_the_check_names_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, _ = said(capsys, "doctor", "--store")
    assert code == 4
    assert len([it for it in document["damage"] if it["kind"] == "event"]) == 2 * len(ODD)


def test_a_mount_whose_analyzer_is_not_here_stops_only_what_uses_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = "sha256:" + "1" * 64
    mounted: dict[str, Any] = {
        "name": "app", "kind": "martian", "uri": digest, "path": None, "artifact": digest, "format": "rover",
        "signature": "", "limitations": [],
    }  # fmt: skip
    with Store.open(folder / ".affidavit") as store:
        store.append(Event(kind="mount-added", session="good", data=mounted, at=2e9))
    for words in (["results"], ["preamble", "show"]):
        code, document, _ = said(capsys, *words, "--session", "good")
        assert code == 0, document
    code, document, err = said(capsys, "run", "a.py", "--session", "good")
    assert (code, document["value"]) == (0, 2)
    assert "martian, which is not installed" in err
    (folder / "b.py").write_text("await df.db.app.files.count()\n")
    code, document, _ = said(capsys, "run", "b.py", "--session", "good")
    assert (code, document["status"]) == (1, "rejected")
