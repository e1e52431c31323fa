"""Files that no adapter claims load no adapter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.errors import UsageError
from affidavit.extensions import load_mounts
from affidavit.mounts.opened import OpenMounts
from affidavit.store import Store

LOADED = """
import sys
from affidavit import Workspace

Workspace.open("w").mount("app=a.js")
print([name for name in sys.modules if name.startswith("affidavit.mounts.") and name.endswith("adapter")])
"""


def test_mounting_a_source_file_loads_no_adapter(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("require('b');")
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.js", b"1;"),
        ("a.json", b"{}"),
        ("rows.json", b' [{"a": 1}]'),
        ("rows.csv", b"a,b\n1,2\n"),
        ("rows.PARQUET", b"PAR1"),
        ("x", b"SQLite format 3\0"),
        ("x.asar", b"12345678DUCK"),
        ("x.tgz", b"\x1f\x8b"),
        ("empty.js", b""),
        ("empty.csv", b""),
        ("python:tools.py", b"def f(): pass"),
        ("tool_manifest.json", b"{}"),
    ],
)
def test_the_same_files_are_claimed_as_by_asking_every_adapter(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with Store.open(tmp_path / "w") as store:
        asked = [
            one for _, one in load_mounts() if not isinstance(one, Exception) and one.probe(name, content)
        ]
        try:
            found = OpenMounts(tmp_path / "cache", store).adapter_for(name, tmp_path)
        except UsageError:
            assert len(asked) > 1
        else:
            assert [it.name for it in asked] == ([] if found is None else [found.name])
