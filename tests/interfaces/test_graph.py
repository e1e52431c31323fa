"""`affidavit graph`: a function of any dataset that has some, as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.interfaces.cli import run
from tests.analyzers.graph.exports import exported, guarded, write
from tests.analyzers.native.binaries import compiled
from tests.analyzers.native.programs import MARKED


class Cli:
    """Runs `affidavit graph` in this process."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = run(["graph", *words, "--workspace", str(self.root / "workspace")])
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *words: str) -> tuple[int, Any]:
        code, out, _ = self(*words, "--json")
        return code, json.loads(out)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, capsys)


@pytest.fixture
def mount(tmp_path: Path) -> str:
    refused: dict[str, Any] = {"id": "broken", "entry": "x", "blocks": [], "edges": []}
    twice = [guarded() | {"id": name, "name": "twin"} for name in ("one", "two")]
    return f"fw=graph:{write(tmp_path, exported(guarded(), refused, *twice))}"


def test_the_same_picture_each_time_in_each_language(cli: Cli, mount: str) -> None:
    for language, begins in (("--svg", "<?xml"), ("--dot", "digraph"), ("--mermaid", "flowchart TD")):
        code, first, _ = cli("guarded", language, "--mount", mount)
        assert code == 0
        assert first.startswith(begins)
        assert "guarded/check" in first
        assert cli("guarded", language, "--mount", mount)[1] == first


def test_a_path_is_marked_and_rests_on_a_record(cli: Cli, mount: str) -> None:
    words = ("--path", "guarded/start", "exit:return", "--avoid", "guarded/check", "--dot", "--mount", mount)
    code, document = cli.json("guarded", *words)
    assert code == 0
    [path] = document["paths"]
    assert (path["status"], path["edges"]) == ("found", ["guarded/start#0"])
    assert path["evidence"][0].startswith("ev1_")
    assert document["function"] == {"id": "guarded", "name": "guarded"}
    assert (document["blocks"], document["boxes"], document["outlined"]) == (3, 3, False)
    [arrow] = [line for line in document["picture"].splitlines() if "penwidth=3" in line]
    assert arrow.startswith("  n0 -> n1")
    [box] = [line for line in document["picture"].splitlines() if "dashed" in line and "->" not in line]
    assert "guarded/check" in box


def test_that_there_is_no_path_is_said(cli: Cli, mount: str) -> None:
    words = ("--path", "guarded/check", "exit", "--avoid", "guarded/end", "--mermaid", "--mount", mount)
    code, out, err = cli("guarded", *words)
    assert code == 0
    assert "no path from guarded/check to exit without the 1 excluded" in out
    assert "no path" in err


def test_it_is_written_to_a_file(cli: Cli, mount: str, tmp_path: Path) -> None:
    target = tmp_path / "guarded.svg"
    code, document = cli.json("guarded", "--output", str(target), "--mount", mount)
    assert (code, document["picture"], document["output"]) == (0, None, str(target))
    assert target.read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize(
    ("words", "code", "exit_code", "said"),
    [
        (("gone",), "item-not-found", 3, "functions.page"),
        (("broken",), "graph-invalid", 1, "functions.get"),
        (("twin",), "usage", 2, "one, two"),
        (("guarded", "--of", "bin"), "mount-not-found", 3, "fw"),
        (("guarded", "--path", "guarded/stat", "exit"), "item-not-found", 3, "without --path"),
        (("guarded", "--path", "guarded/start", "exit:done"), "arguments-invalid", 2, ""),
        (("guarded", "--avoid", "guarded/check"), "usage", 2, "--path"),
        (("guarded", "--dot", "--mermaid"), "usage", 2, "one of them"),
        (("guarded", "--dot", "--output", "gone/x.dot"), "store-unwritable", 1, "folder"),
    ],
)
def test_mistakes_name_the_next_step(
    cli: Cli, mount: str, words: tuple[str, ...], code: str, exit_code: int, said: str
) -> None:
    found, document = cli.json(*words, "--mount", mount)
    assert (found, document["error"]["code"]) == (exit_code, code)
    assert said in document["error"]["hint"]


def test_which_of_several_mounts_is_asked(cli: Cli, mount: str) -> None:
    assert cli.json("guarded")[1]["error"]["hint"].startswith("add --mount")
    other = mount.replace("fw=", "other=")
    assert cli.json("guarded", "--mount", mount, "--mount", other)[1]["error"]["hint"] == "add --of fw"
    assert cli("guarded", "--dot", "--of", "other", "--mount", mount, "--mount", other)[0] == 0


def test_native_code(cli: Cli, tmp_path: Path) -> None:
    binary = compiled(tmp_path, "marked.c", MARKED, "gcc", ("-O2", "-w"))
    code, out, _ = cli("main", "--mermaid", "--mount", f"bin={binary}")
    assert code == 0
    assert "main (0x" in out
    assert "exit: return" in out
