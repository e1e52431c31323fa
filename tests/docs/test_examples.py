"""Every example of README and docs runs: scripts against a real dataset, SDK code as it stands, commands as shown."""

import ast
import asyncio
import doctest
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from affidavit import Workspace

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([a-z]+)( rejected)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    rejected: bool
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            yield Example(page, line, match[1], bool(match[2]), match[3])


EXAMPLES = list(examples())
SCRIPTS = [item for item in EXAMPLES if item.language == "python" and "import affidavit" not in item.text]
PROGRAMS = [item for item in EXAMPLES if item.language == "python" and "import affidavit" in item.text]
COMMANDS = [item for item in EXAMPLES if item.language == "console"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples" / "small_app", tmp_path / "small_app")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_examples_of_each_kind() -> None:
    assert len(SCRIPTS) > 8
    assert len(PROGRAMS) >= 2
    assert len(COMMANDS) >= 1


@pytest.mark.parametrize("example", SCRIPTS, ids=str)
async def test_script(example: Example, place: Path) -> None:
    async with Workspace.open(place / "workspace") as workspace:
        mounts = ["app=small_app", *([f"bin={_binary(place)}"] if "df.db.bin" in example.text else [])]
        mounts += ["fw=graph:examples/exports/login.json"] if "df.db.fw" in example.text else []
        session = await workspace.session(mounts=mounts)
        run = await session.run(example.text)
    if example.rejected:
        assert run.status == "rejected"
        assert run.error is not None
    else:
        assert run.status == "succeeded", (run.error, run.diagnostics)
        assert [item for item in run.diagnostics if item["blocking"]] == []
        assert run.has_value or run.answer is not None


def _binary(place: Path) -> Path:
    """A small program for the page on native code."""
    from tests.analyzers.native.binaries import compiled
    from tests.analyzers.native.programs import MARKED

    return compiled(place, "marked.c", MARKED, "gcc", ("-O2", "-w"))


@pytest.mark.parametrize("example", PROGRAMS, ids=str)
def test_program(example: Example, place: Path) -> None:
    code = compile(example.text, str(example), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(code, {"__name__": "example"})
    if inspect.iscoroutine(made):
        asyncio.run(made)


@pytest.mark.parametrize("page", sorted({item.page for item in COMMANDS}), ids=lambda page: page.name)
def test_commands(page: Path, place: Path) -> None:
    """Each `$ command` of a page, in order, prints what stands below it; `...` stands for anything."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for example in [item for item in COMMANDS if item.page == page]:
        for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            words = shlex.split(command, comments=True)
            shown = subprocess.run(words, capture_output=True, text=True, env=environment)
            matches = checker.check_output(expected, shown.stdout + "\n", flags)
            assert matches, (command, shown.stdout, shown.stderr)
