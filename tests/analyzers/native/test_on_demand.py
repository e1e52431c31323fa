"""What is said of a function when it is asked for is what the analysis of everything says of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.analyzers.datasets import Datasets
from affidavit.analyzers.native.analyzer import NativeAnalyzer
from affidavit.extensions import Analysis
from affidavit.facts.factfile import FactFile, FactFileWriter
from tests.analyzers.native.binaries import compiled, sqlite_library, stripped
from tests.analyzers.native.programs import MARKED

DETAILED = ("blocks", "edges", "calls", "references")
ASK = """
async def named(name):
    return (await df.db.bin.functions.page(where={"name": name, "kind": "function"})).rows[0]["id"]

checked = await named("checked")
blocks = await df.db.bin.blocks.page(where={"function": checked}, limit=2)
more = [row async for page in df.db.bin.blocks.pages(where={"function": checked}, limit=2) for row in page.rows]
edge = (await df.db.bin.edges.page(where={"source": blocks.rows[0]["id"]})).rows[0]
record = await df.db.bin.functions.get(checked)
one = await df.db.bin.blocks.get(blocks.rows[0]["id"])
many = await df.db.bin.edges.get_many([edge["id"], "0x1+0x0#0", "nonsense"])
path = await df.db.bin.path(checked, blocks.rows[0]["id"], {"kind": "exit"})
calls = await df.db.bin.calls.count(where={"function": checked})
[len(more), record["block_count"], blocks.page.total, one in record["blocks"], edge in record["edges"],
 [end["status"] for end in many], path.status, calls.count == record["call_count"],
 (await df.db.bin.blocks.count(where={"function": "0x1"})).count]
"""


def _written(folder: Path, name: str, fill: Callable[[FactFileWriter], Any]) -> tuple[Any, FactFile]:
    writer = FactFileWriter(folder / f"{name}.facts", NativeAnalyzer.collections)
    try:
        return fill(writer), writer.finish({})
    finally:
        writer.abort()


def _never(analyzer: NativeAnalyzer, summary: object) -> bool:
    return False


def _silent(done: int, total: int, what: str) -> None: ...


def _rows(facts: FactFile, collection: str) -> list[dict[str, Any]]:
    return facts.decode(facts.rows(collection, range(facts.total(collection))))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("which", ["marked", "stripped", "sqlite"])
def test_a_part_says_what_the_whole_says(tmp_path: Path, which: str) -> None:
    if which == "sqlite":
        path = sqlite_library("gcc")
    else:
        path = compiled(tmp_path, "marked.c", MARKED, "gcc", ("-O2", "-w"))
        path = stripped(path) if which == "stripped" else path
    analyzer = NativeAnalyzer(processes=1)
    artifact = analyzer.identify(path)
    outline: Analysis
    outline, outlined = _written(tmp_path, "outline", lambda it: analyzer.outline(artifact, it, _silent))
    everything, whole = _written(tmp_path, "whole", lambda it: analyzer.analyze(artifact, it, _silent))
    assert (outline.summary, outline.coverage) == (everything.summary, everything.coverage)
    assert outline.limitations == everything.limitations
    for name in ("functions", "strings"):
        assert _rows(outlined, name) == _rows(whole, name)
    ids = [row["id"] for row in _rows(whole, "functions")]
    asked = sorted(random.Random(1).sample(ids, min(200, len(ids))), key=lambda one: int(one, 16))
    _, part = _written(
        tmp_path, "part", lambda it: analyzer.detail(artifact, outline.kept, asked, it, _silent)
    )
    assert [row["id"] for row in _rows(part, "functions")] == asked
    assert part.items("functions", asked) == whole.items("functions", asked)
    for name in DETAILED:
        assert _rows(part, name) == [row for row in _rows(whole, name) if row["function"] in set(asked)]
    for facts in (outlined, whole, part):
        facts.close()


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("on-demand")
    return compiled(folder, "marked.c", MARKED, "gcc", ("-O2", "-w", "-fno-inline"))


def _files(workspace: Path) -> set[Path]:
    return set((workspace / "facts").glob("*.facts"))


async def test_questions_about_one_function_need_no_whole(binary: Path, tmp_path: Path) -> None:
    async with affidavit.Workspace.open(tmp_path / "workspace") as workspace:
        workspace.mount(f"bin={binary}")
        (outline,) = _files(tmp_path / "workspace")
        session = await workspace.session()
        run = await session.run(ASK)
        assert run.error is None, (run.error, run.diagnostics)
        total = run.data[0]
        expected = [total, total, total, True, True, ["found", "failed", "failed"], "found", True, 0]
        assert run.data == expected
        (part,) = _files(tmp_path / "workspace") - {outline}
        assert part.stat().st_size < 200_000
        everything = await session.run("(await df.db.bin.blocks.page()).page.total")
        assert everything.error is None
        assert everything.data > total
        assert len(_files(tmp_path / "workspace")) == 3
        again = await session.run(ASK)
        assert again.data == expected
        records = [[call.evidence_id for call in one.calls] for one in (run, again)]
        assert records[0] == records[1]
        assert records[0]


async def test_a_question_about_all_of_a_large_binary_names_the_command(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NativeAnalyzer, "at_once", _never)
    async with affidavit.Workspace.open(tmp_path / "workspace") as workspace:
        workspace.mount(f"bin={binary}")
        session = await workspace.session()
        refused = await session.run("await df.db.bin.blocks.page()")
        assert refused.error is not None
        assert refused.error["code"] == "analysis-needed"
        assert "affidavit analyze bin --all" in refused.error["hint"]
        summary = workspace.analyze("bin")
        done = await session.run("(await df.db.bin.blocks.page()).page.total")
        assert done.data == summary["blocks"]


async def test_deleted_facts_are_made_again(binary: Path, tmp_path: Path) -> None:
    for count in (1, 2):
        async with affidavit.Workspace.open(tmp_path / "workspace") as workspace:
            if count == 1:
                workspace.mount(f"bin={binary}")
            session = await workspace.session()
            run = await session.run(ASK)
            assert run.error is None
        for path in _files(tmp_path / "workspace"):
            path.unlink()


def test_both_stages_say_they_are_interrupted(binary: Path, tmp_path: Path) -> None:
    def interrupted(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    datasets = Datasets(tmp_path / "facts")
    with pytest.raises(KeyboardInterrupt):
        datasets.analyse(binary, progress=interrupted)
    assert not list((tmp_path / "facts").glob("*"))
    datasets.close()
