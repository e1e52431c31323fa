"""A script's questions about control flow, from its check to the records that stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from affidavit import Workspace
from affidavit.evidence.record import Producer
from affidavit.facts.collection import ParentRef
from affidavit.facts.graph import Graph, GraphSpec
from affidavit.namespaces.datasets.graphs import graph_operations
from affidavit.namespaces.operation import Namespace
from affidavit.runtime.session import Session
from tests.facts.graph.graphs import FLOW, PARENT, graph


class Functions:
    """`guarded` returns only over its check at `b2`; a jump leads from `b1` to where nobody knows."""

    spec: GraphSpec = FLOW

    def parent(self, owner: str | None) -> ParentRef:
        return PARENT

    def load(self, owner: str | None) -> Graph:
        return graph(
            5, [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4)], {1: "unresolved", 3: "return", 4: "noreturn"}
        )


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with Workspace.open(tmp_path) as workspace:
        operations = graph_operations(FLOW, Functions(), producer=Producer(name="sample", version="1"))
        workspace.use(Namespace(name="bin", operations=operations))
        yield await workspace.session()


async def test_can_it_return_without_passing_the_check(session: Session) -> None:
    run = await session.run(
        """
there = await df.tool.bin.path("guarded", "b0", {"kind": "exit", "exit": ["return"]})
around = await df.tool.bin.path("guarded", "b0", {"kind": "exit", "exit": ["return"]}, avoid=["b2"])
always = await df.tool.bin.must_pass("guarded", "b0", {"kind": "exit"})
{
    "path": [row["operation"] for row in there.rows],
    "around": around.status,
    "cut": around.certificate.blocks if around.certificate else None,
    "open": around.certificate.unresolved if around.certificate else None,
    "coverage": around.coverage.state,
    "always": [row["id"] for row in always.rows],
    "evidence": [there.evidence_id, around.evidence_id, always.evidence_id],
}
"""
    )
    assert run.status == "succeeded", (run.error, run.diagnostics)
    assert run.data["path"] == ["0x1:jmp", "0x3:jmp"]
    assert (run.data["around"], run.data["cut"], run.data["open"]) == ("not-found", ["b2"], ["b1"])
    assert run.data["coverage"] == "partial"
    assert run.data["always"] == ["b0", "b2"]
    assert run.data["evidence"] == [call.evidence_id for call in run.calls]
    assert [call.contract for call in run.calls] == ["sample.path/1", "sample.path/1", "sample.must_pass/1"]


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ('(await df.tool.bin.path("f", "b0", {"kind": "exit"})).row', "rows"),
        ('(await df.tool.bin.path("f", "b0", {"kind": "exit"})).rows[0]["edge"]', "edge_id"),
        ('await df.tool.bin.path("f", "b0", "b3")', "BlockTarget"),
        ('df.tool.bin.loops("f")', "await"),
    ],
)
async def test_mistakes_are_found_before_anything_runs(session: Session, script: str, named: str) -> None:
    run = await session.run(script)
    assert run.status == "rejected"
    assert run.error is not None
    assert named in str(run.error) + str(run.diagnostics)
    assert list(run.calls) == []


async def test_a_misspelt_exclusion_is_named(session: Session) -> None:
    run = await session.run('await df.tool.bin.path("f", "b0", {"kind": "exit"}, avoid=["check"])')
    assert run.data["status"] == "unknown"
    assert run.data["missing"] == [{"argument": "avoid", "id": "check"}]
    assert run.data["page"]["total"] is None
