"""The main job on real applications, against an independent reader: which external packages, and how often?

The oracle parses with acorn and analyses scopes with eslint-scope; what is external is decided here by Node's own list
of builtins and by looking for `node_modules` folders on the disk.
"""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from affidavit import Workspace
from tests import real_inputs


@dataclass(frozen=True)
class Case:
    """A file of a real application, and the form in which the product reads the application."""

    application: str
    path: str
    form: str

    def __str__(self) -> str:
        return f"{self.application}-{self.form}"

    @property
    def artifact(self) -> Path:
        return (
            real_inputs.packed_asar(self.application)
            if self.form == "asar"
            else real_inputs.tarball(self.application)
        )


CASES = [
    Case("k8slens", "static/build/library/main.js", "tarball"),
    Case("lvce", "dist/mainProcessMain.js", "tarball"),
    Case("theia", "lib/electron-main/electron-main-application.js", "tarball"),
    Case("nightmare", "lib/nightmare.js", "asar"),
    Case("vue-devtools", "dist/app.cjs", "asar"),
]

ASKED_BY_PAGES = """
counts = {}
async for page in df.db.app.modules.pages(where={"path": main, "kind": "javascript-module"}, limit=7):
    for row in page.rows:
        identity = row["identity"]
        if identity["strategy"] == "unresolved-module" and identity["key"].startswith("external:"):
            name = identity["key"].removeprefix("external:")
            counts[name] = counts.get(name, 0) + row["sites"]
counts
"""

ASKED_BY_BATCH = """
ids = []
async for page in df.db.app.modules.pages(where={"path": main, "status": "external"}):
    ids += [row["node_id"] for row in page.rows]
counts = {}
for reply in await df.db.app.modules.get_many(ids=ids):
    if reply["status"] == "found":
        item = reply["item"]
        counts[item["identity"]["key"].removeprefix("external:")] = len(item["references"])
counts
"""


def builtins() -> set[str]:
    code = "console.log(JSON.stringify(require('module').builtinModules))"
    shown = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    return set(json.loads(shown.stdout))


def package_of(specifier: str) -> str:
    parts = specifier.split("/")
    return "/".join(parts[:2]) if specifier.startswith("@") else parts[0]


def expected(case: Case) -> Counter[str]:
    """External packages of the file with their reference expressions, as the oracle reads it."""
    root = real_inputs.application(case.application)
    file = root / case.path
    [answer] = real_inputs.oracle_answers([("javascript", file)])
    counts: Counter[str] = Counter()
    for reference in answer["references"]:
        specifier = reference["specifier"]
        if specifier is None or specifier.startswith((".", "/", "#")) or reference["kind"] == "asset-url":
            continue
        name = package_of(specifier.removeprefix("node:"))
        folders = [folder for folder in file.parents if folder.is_relative_to(root)]
        inside = any((folder / "node_modules" / name).exists() for folder in folders)
        if not (specifier.startswith("node:") or specifier in builtins() or inside):
            counts[name] += 1
    return counts


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_answer_equals_the_oracles(case: Case, tmp_path: Path) -> None:
    wanted = expected(case)
    assert wanted, "a case without external packages tells nothing"
    async with Workspace.open(tmp_path / "workspace") as workspace:
        session = await workspace.session("s", mounts=[f"app={case.artifact}"])
        paged = await session.run(ASKED_BY_PAGES, inputs={"main": case.path})
        batched = await session.run(ASKED_BY_BATCH, inputs={"main": case.path})
    assert paged.status == batched.status == "succeeded", (paged.error, batched.error)
    assert paged.data == batched.data == dict(wanted)
