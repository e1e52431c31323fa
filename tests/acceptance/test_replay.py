"""From the command line: a run again from its workspace or from a journal alone, and with other values."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

APP = Path(__file__).parents[2] / "examples" / "small_app"
COMMAND = [sys.executable, "-m", "affidavit"]
SCRIPT = """
import random, time
resolution = "computed"
page = await df.db.app.references.page(where={"resolution": resolution}, limit=3)
print(random.random())
{"rows": [row["path"] for row in page.rows], "at": time.time(), "drawn": random.random(), "evidence": page.evidence_id}
"""


def affidavit(place: Path, *words: str, code: int = 0) -> Any:
    """Run a command in a folder and read its document."""
    done = subprocess.run(
        [*COMMAND, *words, "--json"], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder with a workspace, a journal, and one run in them."""
    place = tmp_path_factory.mktemp("place")
    (place / "script.py").write_text(SCRIPT, "utf-8")
    shutil.copytree(APP, place / "app")
    words = ("run", "script.py", "--mount", "app=app", "--session", "s1", "--journal", "journals")
    return place, affidavit(place, *words)


def test_a_run_comes_out_the_same(recorded: tuple[Path, Any]) -> None:
    place, run = recorded
    for name in (("1", "--session", "s1"), (run["run_id"],), (run["run_id"], "--engine", run["engine"])):
        found = affidavit(place, "replay", *name)
        assert (found["same"], found["divergence"], found["same_output"]) == (True, None, True)
        assert found["value"]["recorded"] == found["value"]["replayed"]
        assert found["calls"] == {"recorded": 1, "replayed": 1}


def test_a_journal_alone_is_replayed_elsewhere(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    place, run = recorded
    [journal] = (place / "journals").iterdir()
    shutil.copy(journal, tmp_path / "kept.jsonl")
    for name in ("1", run["run_id"]):
        assert affidavit(tmp_path, "replay", name, "--journal", "kept.jsonl")["same"]
    assert os.listdir(tmp_path) == ["kept.jsonl"]
    missing = affidavit(tmp_path, "replay", "2", "--journal", "kept.jsonl", code=3)
    assert missing["error"]["code"] == "run-not-found"
    data = journal.read_bytes()
    (tmp_path / "bad.jsonl").write_bytes(data.replace(b"computed", b"external", 1))
    assert (
        affidavit(tmp_path, "replay", "1", "--journal", "bad.jsonl", code=4)["error"]["code"]
        == "journal-damaged"
    )
    affidavit(tmp_path, "replay", "1", "--journal", "none.jsonl", code=3)


def test_a_changed_record_ends_a_replay_with_exit_code_4(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    place, run = recorded
    copy = tmp_path / "copy"
    shutil.copytree(place / ".affidavit", copy)
    with sqlite3.connect(copy / "store.sqlite") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        sql = (
            "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'lib/', 'bin/') AS BLOB) WHERE id = ?"
        )
        assert database.execute(sql, (run["calls"][0]["evidence_id"],)).rowcount == 1
    database.close()
    found = affidavit(tmp_path, "replay", run["run_id"], "--workspace", "copy", code=4)
    assert found["error"]["code"] == "store-damaged"


def test_a_changed_script_is_told_with_exit_code_4(recorded: tuple[Path, Any], tmp_path: Path) -> None:
    place, run = recorded
    copy = tmp_path / "copy"
    shutil.copytree(place / ".affidavit", copy)
    with sqlite3.connect(copy / "store.sqlite") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        sql = "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'limit=3', 'limit=2') AS BLOB) WHERE kind = ?"
        database.execute(sql, ("run-requested",))
    database.close()
    words = ("replay", run["run_id"], "--workspace", "copy")
    found = affidavit(tmp_path, *words, code=4)
    assert (found["same"], found["divergence"]["what"], found["divergence"]["line"]) == (
        False,
        "arguments",
        4,
    )
    plain = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stdout.startswith("diverged: df.db.app.references.page on line 4")) == (
        4,
        True,
    )


def test_an_earlier_script_runs_with_other_values(recorded: tuple[Path, Any]) -> None:
    place, run = recorded
    again = affidavit(place, "run", "--reuse", "1", "--session", "s1", "--vary", "resolution=external")
    assert (again["status"], again["session_id"], again["number"]) == ("succeeded", "s1", 2)
    assert again["value"]["rows"] != run["value"]["rows"]
    assert affidavit(place, "replay", again["run_id"])["same"]
    fewer = affidavit(place, "run", "--reuse", again["run_id"], "--vary", "most=1", "--was", "most=3")
    assert len(fewer["value"]["rows"]) == 1 < len(again["value"]["rows"])
    once_more = affidavit(place, "run", "--reuse", fewer["run_id"], "--vary", "resolution=computed")
    assert len(once_more["value"]["rows"]) == 1
    assert once_more["value"]["rows"][0] in run["value"]["rows"]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("run", "--reuse", "1", "--session", "s1", "--vary", "page=33"), 2, "reuse-invalid"),
        (("run", "--reuse", "1", "--session", "s1", "--vary", "limit=x"), 2, "reuse-invalid"),
        (("run", "--reuse", "99", "--session", "s1", "--vary", "limit=2"), 3, "run-not-found"),
        (("run", "script.py", "--reuse", "1"), 2, "usage"),
        (("run",), 2, "usage"),
        (("run", "--reuse", "1", "--input", "a=1"), 2, "usage"),
        (("run", "script.py", "--vary", "a=1"), 2, "usage"),
        (("replay", "nothing"), 3, "run-not-found"),
        (("replay", "1"), 3, "run-not-found"),
        (("replay",), 2, "usage"),
    ],
)
def test_what_cannot_be_is_an_error_document(
    recorded: tuple[Path, Any], words: tuple[str, ...], code: int, error: str
) -> None:
    assert affidavit(recorded[0], *words, code=code)["error"]["code"] == error
