"""Commands that only read, in a workspace that may not be written: they say what they say where it may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit.interfaces.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"

LOOK = """
import contextlib, io, json, os, sys
from pathlib import Path
from affidavit.interfaces.cli import run

root, outputs, given = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])

def told(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*words, "--workspace", str(root)])
    return code, out.getvalue(), err.getvalue()

def look(number):
    seen = [told(words) for words in given]
    seen.append(told(["bundle", "export", "--output", str(outputs / f"{number}.json"), "--json"])[0])
    seen.append((outputs / f"{number}.json").read_text())
    seen.append(told(["backup", str(outputs / f"copy-{number}")])[0])
    return seen

first = look(1)
for folder, _, files in os.walk(root):
    for name in files:
        os.chmod(Path(folder, name), 0o444)
    os.chmod(folder, 0o555)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
assert not os.access(root, os.W_OK)
second = look(2)
print(json.dumps([first, second, told(["unknown", "open", "Why?", "--domain", "x", "--json"])]))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter, which `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)
        for found, _, _ in os.walk(folder):
            os.chmod(found, 0o755)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="files have no rights here")
def test_what_only_reads_says_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = place / "ws"

    def cli(*words: str) -> Any:
        assert run([*words, "--workspace", str(root), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    cli("mount", "add", f"app={EXAMPLES / 'small_app'}")
    cli("run", str(EXAMPLES / "computed_references.py"), "--session", "audit")
    unknown: str = cli("unknown", "open", "Who calls it?", "--domain", "code")["id"]
    evidence: str = cli("evidence", "list")["evidence"][0]["evidence_id"]
    commands = [
        ["evidence", "list"],
        ["evidence", "show", evidence],
        ["session", "list"],
        ["session", "show", "audit"],
        ["session", "show", "audit", "--events"],
        ["unknown", "list"],
        ["unknown", "show", unknown],
        ["doctor", "--store"],
    ]
    child = subprocess.run(
        [sys.executable, "-c", LOOK, str(root), str(place), json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    first, second, written = json.loads(child.stdout)
    assert [it[0] for it in first[: len(commands)]] == [0] * len(commands)
    assert first == second
    code, out, _ = written
    assert (code, json.loads(out)["error"]["code"]) == (1, "store-unwritable")
