"""A mounted binary: found by its bytes, asked by scripts, refused with the next step where the extra is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

import affidavit
from affidavit.analyzers.native import analyzer as analyzer_module
from affidavit.analyzers.native.analyzer import DECODERS, NativeAnalyzer
from affidavit.errors import FailedError
from tests.analyzers.native.binaries import compiled
from tests.analyzers.native.programs import MARKED


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(
        tmp_path_factory.mktemp("mounted"), "marked.c", MARKED, "gcc", ("-O2", "-w", "-fno-inline")
    )


async def test_a_script_asks_for_functions_paths_and_calls(binary: Path, tmp_path: Path) -> None:
    async with affidavit.Workspace.open(tmp_path / "workspace") as workspace:
        mounted = workspace.mount(f"bin={binary}")
        assert (mounted.kind, mounted.format) == ("native", "elf")
        session = await workspace.session()
        run = await session.run(
            """
async def named(name):
    return (await df.db.bin.functions.page(where={"name": name, "kind": "function"})).rows[0]["id"]

checked = await named("checked")
last = await named("last")
dying = (await df.db.bin.calls.page(where={"function": checked, "name": "dying"})).rows[0]
entry = (await df.db.bin.blocks.page(where={"function": checked, "entry": True})).rows[0]["id"]
through = await df.db.bin.path(checked, dying["block"], {"kind": "exit", "exit": ["return"]})
around = await df.db.bin.path(checked, entry, {"kind": "exit", "exit": ["return"]}, avoid=[dying["block"]])
program = await df.db.bin.calls.path(await named("main"), {"kind": "block", "id": await named("die")})
[through.status, around.status, [row["name"] for row in program.rows]]
"""
        )
        assert run.error is None, (run.error, run.diagnostics)
        assert run.data == ["not-found", "found", ["checked", "dying", "die"]]


def test_without_the_extra_the_next_step_is_told(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> object | None:
        return None if name == "pypcode" else object()

    monkeypatch.setattr(analyzer_module, "find_spec", found)
    analyzer = NativeAnalyzer()
    assert analyzer.detect(binary, binary.read_bytes()[:4096])
    with pytest.raises(FailedError) as caught:
        analyzer.identify(binary)
    assert caught.value.code == "extra-missing"
    assert "pypcode" in caught.value.message
    assert caught.value.hint == "pip install 'affidavit[native]'"


def test_the_decoders_are_those_that_are_installed() -> None:
    from importlib.metadata import version

    assert {name: version(name) for name in DECODERS} == DECODERS
    assert all(f"{name}={number}" in NativeAnalyzer.version for name, number in DECODERS.items())
