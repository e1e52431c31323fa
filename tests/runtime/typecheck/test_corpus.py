"""Scripts as agents write them, on a small application: the correct ones run, the wrong ones are stopped before.

Each file of `corpus/` holds scripts between lines of three dashes. In `correct/sessions.txt` the steps of one session
stand between lines of `>>>`. In `wrong/` a `§` marks the wrong place, and a last line `#= ...` the suggestion.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from affidavit import Workspace
from affidavit.mounts.python import functions_namespace

ROOT = Path(__file__).parents[3]
CORPUS = Path(__file__).parent / "corpus"


class Person(TypedDict):
    """Someone."""

    name: str
    tags: list[str]


def score(text: str) -> int:
    """How long a text is."""
    return len(text)


def lookup(name: str) -> Person:
    """Finds someone."""
    return {"name": name, "tags": ["first", "second"]}


def texts(folder: str) -> Iterator[tuple[str, str]]:
    for file in sorted((CORPUS / folder).glob("*.txt")):
        for number, text in enumerate(file.read_text("utf-8").strip("\n").split("\n---\n")):
            yield f"{file.stem}-{number}", text


CORRECT = {name: tuple(text.split("\n>>>\n")) for name, text in texts("correct")}
WRONG = dict(texts("wrong"))


def test_there_are_many() -> None:
    scripts = [step for steps in CORRECT.values() for step in steps]
    assert len(set(scripts)) == len(scripts) >= 240
    assert len(set(WRONG.values())) == len(WRONG) >= 90


async def test_every_correct_script_runs(tmp_path: Path) -> None:
    failed: dict[str, Any] = {}
    async with Workspace.open(tmp_path / "workspace") as workspace:
        workspace.use(functions_namespace("desk", [score, lookup]))
        for name, steps in CORRECT.items():
            session = await workspace.session(mounts=[f"app={ROOT / 'examples' / 'small_app'}"])
            for step in steps:
                run = await session.run(step)
                if run.status != "succeeded" or run.check not in {"clean", "advised"}:
                    failed[name] = (step, run.error, run.diagnostics, run.check_reason)
    assert failed == {}


async def test_every_wrong_script_is_refused_at_the_place(tmp_path: Path) -> None:
    failed: dict[str, Any] = {}
    async with Workspace.open(tmp_path / "workspace") as workspace:
        workspace.use(functions_namespace("desk", [score, lookup]))
        session = await workspace.session(mounts=[f"app={ROOT / 'examples' / 'small_app'}"])
        for name, text in WRONG.items():
            marked, _, suggestion = text.partition("\n#= ")
            before, _, after = marked.partition("§")
            run = await session.run(before + after)
            wanted = {
                "line": before.count("\n") + 1,
                "column": len(before) - before.rfind("\n"),
                "blocking": True,
            } | ({"suggestion": suggestion} if suggestion else {})
            blocking = [found for found in run.diagnostics if found["blocking"]]
            if run.status != "rejected" or not wanted.items() <= blocking[0].items() or len(run.calls):
                failed[name] = (text, blocking)
    assert failed == {}


async def test_the_wrong_keys_would_have_failed(tmp_path: Path) -> None:
    """What is refused for a key fails with that key where nothing checks it: the oracle is Python itself."""
    async with Workspace.open(tmp_path / "workspace") as workspace:
        session = await workspace.session(mounts=[f"app={ROOT / 'examples' / 'small_app'}"])
        for name, text in WRONG.items():
            if not name.startswith("keys-") or "df.tool" in text or "get" in text or "df.calls" in text:
                continue
            script = text.partition("\n#= ")[0].replace("§", "")
            body = "".join(f"    {line}\n" for line in script.splitlines())
            run = await session.run(
                f"try:\n{body}except Exception as error:\n    kind = type(error).__name__\nkind"
            )
            assert run.data in {"KeyError", "AttributeError"}, (name, run.error, run.diagnostics)


@pytest.mark.parametrize("name", [name for name in WRONG if name.startswith("keys-")])
def test_wrong_scripts_have_one_mark(name: str) -> None:
    assert WRONG[name].count("§") == 1


async def test_check_run_and_engine_count_columns_alike(tmp_path: Path) -> None:
    """From 1, in characters: characters of two bytes before the place show any other way of counting."""
    async with Workspace.open(tmp_path / "workspace") as workspace:
        session = await workspace.session()
        checked = await session.run('x = "éé" + str(totl)')
        ran = await session.run('x = "éé" + str(1 / 0)')
        refused = await session.run('x = "éé"; exec("1")', engine="monty")
    places = [
        (run.error["line"], run.error["column"]) for run in (checked, ran, refused) if run.error is not None
    ]
    assert places == [(1, 16), (1, 16), (1, 11)]
    assert [found["column"] for found in refused.diagnostics if found["blocking"]] == [11]
