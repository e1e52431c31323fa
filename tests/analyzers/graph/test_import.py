"""Exports from file to answer: what is taken in, what is refused and where, and what stays of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from affidavit import Workspace
from affidavit.analyzers.graph import reading
from affidavit.analyzers.graph.analyzer import ExportAnalyzer
from affidavit.analyzers.graph.form import Export
from affidavit.errors import AffidavitError
from affidavit.runtime.run import Run
from tests.analyzers.graph.exports import exported, guarded, radare2_function, write

ROOT = Path(__file__).parents[3]

QUESTION = """
around = await df.db.fw.path("guarded", "guarded/start", {"kind": "exit"}, avoid=["guarded/check"])
both = await df.db.fw.must_pass("guarded", "guarded/check", {"kind": "exit"})
calls = await df.db.fw.calls.path("guarded", {"kind": "block", "id": "checker"})
[around.status, [[r["id"], r["condition"], r["polarity"], r["step_index"]] for r in around.rows],
 [r["id"] for r in both.rows], [r["name"] for r in calls.rows]]
"""


async def asked(folder: Path, file: Path, script: str) -> Run:
    async with Workspace.open(folder / "workspace") as workspace:
        session = await workspace.session(mounts=[f"fw=graph:{file}"])
        return await session.run(script)


async def test_an_export_answers_the_same_queries(tmp_path: Path) -> None:
    checker: dict[str, Any] = {"id": "checker", "name": "checker", "entry": None, "blocks": [], "edges": []}
    file = write(tmp_path, exported(guarded(), checker))
    run = await asked(tmp_path, file, QUESTION)
    assert run.error is None, run.diagnostics
    assert run.data == [
        "found",
        [["guarded/start#0", "e after test rdi, rdi", True, 0]],
        ["guarded/check", "guarded/check#0", "guarded/end"],
        ["checker"],
    ]


async def test_the_entry_comes_first_and_numbers_of_64_bits_stay(tmp_path: Path) -> None:
    file = write(tmp_path, exported(guarded()))
    script = '[(r["id"], r["address"], r["entry"]) for r in (await df.db.fw.blocks.page()).rows]'
    run = await asked(tmp_path, file, script)
    assert [tuple(row) for row in run.data] == [
        ("guarded/start", "0xffffffff81000000", True),
        ("guarded/end", None, False),
        ("guarded/check", None, False),
    ]


async def test_who_made_it_is_recorded_and_that_it_was_imported(tmp_path: Path) -> None:
    file = write(tmp_path, exported(guarded()))
    async with Workspace.open(tmp_path / "workspace") as workspace:
        mounted = workspace.mount(f"fw=graph:{file}")
        record = workspace.store.evidence.get(mounted.evidence_id)
        session = await workspace.session()
        run = await session.run('(await df.db.fw.functions.get("guarded"))["basis"]')
        again = workspace.mount("fw")
        called = workspace.store.evidence.get(run.calls[0].evidence_id or "")
    assert record.authority == called.authority == "imported"
    assert run.data == ["imported"]
    assert (again.kind, again.uri, again.artifact) == ("graph", mounted.uri, mounted.artifact)


def test_files_are_known_by_their_bytes(tmp_path: Path) -> None:
    analyzer = ExportAnalyzer()
    for value in (exported(guarded()), [radare2_function()], {"agfj": [radare2_function()]}):
        file = write(tmp_path, value)
        assert analyzer.detect(file, file.read_bytes()[:4096])
    other = write(tmp_path, {"name": "package", "version": "1"}, "package.json")
    assert not analyzer.detect(other, other.read_bytes())


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(function: dict[str, Any]) -> None:
        at: Any = function
        for part in path[:-1]:
            at = at[part]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to

    return apply


REFUSED = {
    "an edge to nowhere": (change("edges", 1, "target", to="gone"), "edges[1].target: names 'gone'"),
    "an edge from nowhere": (change("edges", 1, "source", to="gone"), "edges[1].source: names 'gone'"),
    "a block twice": (change("blocks", 0, "id", to="check"), "blocks: 2 have the id 'check'"),
    "an edge twice": (change("edges", 2, "id", to="start#0"), "edges: 2 have the id 'start#0'"),
    "no entry": (change("entry", to=None), "entry: is missing"),
    "an entry that is no block": (change("entry", to="main"), "entry: names 'main'"),
    "an edge without order": (change("edges", 0, "ordinal", to=None), "edges[0].ordinal: is missing"),
    "two edges of one order": (
        change("edges", 0, "ordinal", to=0),
        "have the ordinal 0, so they have no order",
    ),
    "a wrong type": (change("blocks", 1, "size", to="8"), "blocks[1].size:"),
    "a number that lost bits": (
        change("blocks", 1, "address", to=1.8446744071578845e19),
        "blocks[1].address:",
    ),
    "a misspelt field": (change("edges", 1, "conditon", to="e"), "edges[1].conditon: is no field"),
    "an unknown exit": (change("blocks", 0, "exit", to="done"), "blocks[0].exit:"),
    "a call from nowhere": (change("calls", 0, "block", to="gone"), "calls[0].block: names 'gone'"),
    "no blocks": (change("blocks", to=None), "blocks: is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_function_that_makes_no_graph_is_refused_and_its_record_kept(
    case: str, tmp_path: Path
) -> None:
    breaking, said = REFUSED[case]
    broken = guarded() | {"id": "broken"}
    breaking(broken)
    file = write(tmp_path, exported(guarded(), broken))
    run = await asked(
        tmp_path,
        file,
        """
item = await df.db.fw.functions.get("broken")
try:
    await df.db.fw.path("broken", "broken/start", {"kind": "exit"})
    error = None
except df.Error as caught:
    error = [caught.code, caught.message, caught.hint]
fine = await df.db.fw.path("guarded", "guarded/start", {"kind": "exit"})
page = await df.db.fw.functions.page()
[item["status"], item["problem"], item["record"], error, fine.status, page.source_coverage.state,
 [[it["code"], it["place"]] for it in page.limitations]]
""",
    )
    assert run.error is None, run.error
    status, problem, record, error, fine, state, limitations = run.data
    assert (status, fine, state) == ("refused", "found", "partial")
    assert said in problem
    assert json.loads(record) == broken
    assert error[0] == "graph-invalid"
    assert said in error[1]
    assert "functions.get" in error[2]
    assert limitations == [["graph-invalid", "$.functions[1]"]]


async def test_ids_that_cannot_be_used_are_told_under_their_place(tmp_path: Path) -> None:
    file = write(tmp_path, exported(guarded(), guarded(), {"id": 7}, "text", None))
    run = await asked(
        tmp_path, file, '[[r["id"], r["status"]] for r in (await df.db.fw.functions.page()).rows]'
    )
    assert run.data[0] == ["guarded", "complete"]
    assert run.data[1:] == [[f"$.functions[{at}]", "refused"] for at in (1, 2, 3, 4)]


WHOLE: dict[str, tuple[Any, str, str]] = {
    "truncated": (json.dumps(exported(guarded()))[:-40], "artifact-damaged", "column"),
    "truncated within the first function": (
        '[{"name": "f", "addr": 1, "blocks": [{"ad',
        "artifact-damaged",
        "column",
    ),
    "not a number": ('{"format": "affidavit-graph", "version": NaN}', "artifact-damaged", "NaN"),
    "deep nesting": ("[" * 100_000, "artifact-damaged", ""),
    "a repeated key": ('{"format": "affidavit-graph", "format": "x"}', "artifact-damaged", "format"),
    "no UTF-8": (b'{"format": "affidavit-graph\xff"}', "artifact-damaged", "byte 27"),
    "empty": ("", "artifact-damaged", "empty"),
    "of a later version": (exported(version=2), "format-unknown", "version 2"),
    "of a version that is no number": (exported(version=True), "format-unknown", "True"),
    "no list of functions": (exported() | {"functions": {}}, "artifact-damaged", "$.functions"),
    "without a tool": (exported() | {"tool": None}, "artifact-damaged", "$.tool"),
    "a field too many": (exported(nodes=[]), "artifact-damaged", "$.nodes"),
    "a picture": ('digraph code {\n "0x1" -> "0x2";\n}', "artifact-unsupported", "picture"),
    "a drawing": ("<svg></svg>", "artifact-unsupported", "picture"),
    "a projection": ({"nodes": [{"id": 0}], "edges": [[0, 1]]}, "artifact-unsupported", "projection"),
    "other JSON": ({"log": {}}, "artifact-unsupported", "no form"),
    "a list": ([1, 2], "artifact-unsupported", "no form"),
    "agfj that is none": ({"agfj": {"blocks": []}}, "artifact-damaged", "$.agfj"),
}


@pytest.mark.parametrize("case", WHOLE)
async def test_a_file_that_is_no_export_is_refused_with_place_and_hint(case: str, tmp_path: Path) -> None:
    value, code, said = WHOLE[case]
    file = write(tmp_path, value)
    async with Workspace.open(tmp_path / "workspace") as workspace:
        with pytest.raises(AffidavitError) as caught:
            workspace.mount(f"fw=graph:{file}")
        assert workspace.mounts() == []
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.hint


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 20)
    file = write(tmp_path, b" " * ((1 << 20) + 1))
    with pytest.raises(AffidavitError) as caught:
        ExportAnalyzer().identify(file)
    assert caught.value.code == "value-too-large"


def test_the_schema_that_is_documented_is_the_one_that_is_read() -> None:
    documented = json.loads((ROOT / "docs" / "graph-export.schema.json").read_text())
    assert documented == Export.model_json_schema()
