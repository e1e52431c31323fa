"""Every abuse is contained, as the user who runs the tests and as an ordinary user."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

import affidavit

from . import abuses
from .abuses import ABUSES, commit_all
from .bench import Bench

_NAMES = [abuse.name for abuse in ABUSES]
_NOBODY = 65534


def _here(names: list[str]) -> list[str]:
    """Raw system calls are numbered for one architecture."""
    return [name for name in names if platform.machine() == "x86_64" or not name.startswith("raw")]


@pytest.fixture(scope="module")
def problems(bench: Bench) -> Mapping[str, list[str]]:
    """What went wrong, by abuse. Several run at once, as in life."""
    return bench.wait(commit_all(bench.engine))


@pytest.mark.parametrize("name", _here(_NAMES))
def test_abuse_is_contained(problems: Mapping[str, list[str]], name: str) -> None:
    assert problems[name] == []


@pytest.fixture(scope="module")
def as_nobody() -> Iterator[Mapping[str, list[str]]]:
    """The same list, run as another user in a process of its own.

    An interpreter below a private home cannot be read by others; the system's own of the same version can.
    """
    python = _readable_python()
    if os.getuid() != 0 or python is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, setpriv and an interpreter of this version that others may read")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o755)
        source = Path(affidavit.__file__).parent
        shutil.copytree(source, folder / "affidavit", ignore=shutil.ignore_patterns("__pycache__"))
        orjson = find_spec("orjson")
        assert orjson is not None
        assert orjson.origin is not None
        shutil.copytree(Path(orjson.origin).parent, folder / "orjson")
        shutil.copy(Path(abuses.__file__), folder / "abuses.py")
        subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
        code = (
            f"import sys; sys.path.insert(0, {str(folder)!r})\nimport asyncio, json, os, abuses\n"
            "assert os.getuid() == 65534\nprint(json.dumps(asyncio.run(abuses.main())))"
        )
        drop = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--"]
        done = subprocess.run(
            [*drop, python, "-I", "-c", code], capture_output=True, text=True, cwd="/", env={}, timeout=110
        )
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)
    finally:
        shutil.rmtree(folder)


def _readable_python() -> str | None:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        if Path(candidate).exists():
            return candidate
    return None


@pytest.mark.parametrize("name", _here(_NAMES))
def test_abuse_is_contained_for_an_ordinary_user(as_nobody: Mapping[str, list[str]], name: str) -> None:
    assert as_nobody[name] == []


def test_the_layers_hold_for_an_ordinary_user(as_nobody: Mapping[str, list[str]]) -> None:
    assert as_nobody["(probe)"] == []
    assert as_nobody["(left behind)"] == []


def test_names_are_unique() -> None:
    assert len(set(_NAMES)) == len(_NAMES)


def test_every_problem_would_be_seen(bench: Bench) -> None:
    """The runner of the list reports what is wrong: an abuse that gets through would not pass unseen."""
    wrong = abuses.Abuse(name="reaches", source="1", value=2)
    assert bench.wait(abuses.commit(bench.engine, wrong)) != []
