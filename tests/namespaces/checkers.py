"""Type checkers over whole sets of small files, one start of the checker for all of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path


def ty(folder: Path, files: Mapping[str, str]) -> dict[str, list[str]]:
    """File -> what ty finds in it (`rule: message`), for each of the given files."""
    _write(folder, files)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ty")),
            "check",
            "--output-format",
            "concise",
            "--color",
            "never",
            ".",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        parts = re.match(r"(.+?):(\d+):(\d+): (?:error|warning)\[([\w-]+)\] (.*)", line)
        if parts:
            found[parts[1]].append(f"{parts[2]}: {parts[4]}: {parts[5]}")
    return {name: found[name] for name in files}


def pyright(folder: Path, files: Mapping[str, str]) -> dict[str, list[str]]:
    """File -> the errors that pyright finds in it."""
    _write(folder, files)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("pyright")), "--outputjson", *files],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, list[str]] = defaultdict(list)
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            found[Path(one["file"]).name].append(f"{line}: {one.get('rule', 'syntax')}: {one['message']}")
    return {name: found[name] for name in files}


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
