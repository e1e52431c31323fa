"""From a run to a file that a stranger checks: answers, bundles and journals on the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit import Run, Workspace
from affidavit.errors import VerificationError
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.record import BlobRef, Success
from affidavit.interfaces.cli import run as command
from affidavit.mounts.python import functions_namespace
from affidavit.store import Event, Store
from affidavit.store.exporting import export_bundle, import_bundle
from tests.evidence.bundles import check
from tests.evidence.records import observation

ROOT = Path(__file__).parents[2]
APP = ROOT / "examples" / "small_app"
VERIFIER = ROOT / "docs" / "verify_independently.py"
SCRIPT = """```python
page = await df.db.app.modules.page(where={"status": "external", "path": "main.js"})
df.answer(
    status="answered",
    value={row["identity"]["key"]: row["sites"] for row in page.rows},
    evidence=[
        f"{page.evidence_id}#/rows/1",
        {"evidence": f"{page.evidence_id}#/rows", "count": len(page.rows)},
        {"evidence": f"{page.evidence_id}#/rows", "count": 1, "where": {"sites": 1}},
        {"evidence": f"{page.evidence_id}#/rows/0/sites", "equals": page.rows[0]["sites"]},
        {"evidence": page.evidence_id, "quote": "lodash"},
    ],
    derivation="external modules of main.js",
)
```"""  # the fences are a repair: the script that ran is not the text that was given


class Cli:
    """Runs command lines in this process, in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, Any]:
        code = command([*words, "--json"])
        return code, json.loads(self._capsys.readouterr().out)

    def text(self, *words: str) -> tuple[int, str]:
        code = command(list(words))
        return code, self._capsys.readouterr().out


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    return Cli(tmp_path, capsys)


@pytest.fixture
def answer(cli: Cli) -> Any:
    """The answer of a run, also kept in `run.json` as the command printed it; its session has a journal."""
    words = ("run", "script.py", "--mount", f"app={APP}", "--session", "s", "--journal", "journals")
    code, document = cli(*words)
    assert code == 0, document
    (cli.folder / "run.json").write_text(json.dumps(document, indent=2))
    return document["answer"]


def cut_in_half(blob: Path) -> None:
    """The damage that was reported: a stored blob has half its length and its right name."""
    blob.chmod(0o644)
    os.truncate(blob, blob.stat().st_size // 2)


def places(document: Any) -> list[str]:
    return [problem["place"] for problem in document["problems"]]


def test_a_stranger_checks_an_answer_with_one_file(cli: Cli, answer: Any) -> None:
    code, made = cli("bundle", "export", "a.json", "--answer", answer["evidence_id"][:16])
    assert (code, made["answers"], made["missing"], made["scripts_missing"]) == (0, 1, 0, [])
    assert oct((cli.folder / "a.json").stat().st_mode & 0o777) == "0o600"
    # Nothing but the file and plain Python.
    alone = subprocess.run(
        [sys.executable, "-I", "-S", str(VERIFIER), "a.json"], cwd=cli.folder, capture_output=True, text=True
    )
    assert alone.returncode == 0, alone.stdout
    # Nothing but the file and the product, in a place without a workspace.
    code, report = cli("verify", "a.json", "--workspace", "nowhere")
    assert (code, report["holds"], report["kind"], report["notes"]) == (0, True, "bundle", [])
    assert not (cli.folder / "nowhere").exists()
    assert any("not who recorded" in text for text in report["not_proven"])
    code, text = cli.text("verify", "a.json")
    assert (code, "holds" in text, "not proven" in text) == (0, True, True)


def test_an_answer_as_printed_is_checked_against_the_workspace_or_a_bundle(cli: Cli, answer: Any) -> None:
    assert cli("verify", "run.json")[1]["holds"]
    cli("bundle", "export", "a.json")
    code, report = cli("verify", "run.json", "--evidence", "a.json", "--workspace", "nowhere")
    assert (code, report["holds"], report["counts"]["citations"]) == (0, True, 5)
    code, document = cli("verify", "run.json", "--workspace", "nowhere")
    assert (code, document["error"]["code"]) == (2, "usage")
    assert "--evidence" in document["error"]["hint"]
    changed = json.loads((cli.folder / "run.json").read_text())
    changed["answer"]["value"]["external:electron"] = 3
    (cli.folder / "run.json").write_text(json.dumps(changed))
    code, report = cli("verify", "run.json")
    assert (code, places(report)) == (4, ["$.answer.value"])


def test_a_changed_file_is_refused_everywhere_with_its_place(cli: Cli, answer: Any) -> None:
    cli("bundle", "export", "a.json")
    data = (cli.folder / "a.json").read_bytes()
    at = data.index(b"lodash")
    (cli.folder / "bad.json").write_bytes(data[:at] + b"m" + data[at + 1 :])
    code, report = cli("verify", "bad.json")
    assert code == 4
    assert places(report)[0].startswith("$.records[")
    assert report["problems"][0]["offset"] < at
    code, text = cli.text("verify", "bad.json")
    assert "DOES NOT HOLD" in text
    for words in (("bundle", "import"), ("bundle", "show"), ("verify", "run.json", "--evidence")):
        code, document = cli(*words, "bad.json", "--workspace", "other")
        assert (code, document["error"]["code"]) == (4, "bundle-damaged")
        assert document["error"]["details"]["problems"]
    (cli.folder / "new.json").write_bytes(data.replace(b"bundle/1", b"bundle/2"))
    code, report = cli("verify", "new.json")
    assert (code, report["holds"], places(report)) == (4, False, ["$.affidavit"])
    assert report["problems"][0]["code"] == "format-unknown"
    assert "bundle/2" in report["problems"][0]["message"]


def test_journals_are_checked_by_the_same_command(cli: Cli, answer: Any) -> None:
    [journal] = (cli.folder / "journals").iterdir()
    code, report = cli("verify", str(journal))
    assert (code, report["kind"], report["holds"]) == (0, "journal", True)
    assert report["counts"]["records"] >= 3
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b"main.js", b"gain.js", 1))
    code, report = cli("verify", str(journal))
    assert code == 4
    assert "line" in places(report)[0]


def test_a_journal_restores_to_the_same_bundle(cli: Cli, answer: Any) -> None:
    """journal -> workspace -> bundle -> other workspace -> bundle."""
    [journal] = (cli.folder / "journals").iterdir()
    assert cli("journal", "restore", str(journal), "--workspace", "restored")[0] == 0
    assert cli("bundle", "export", "a.json", "--answer", answer["evidence_id"])[0] == 0
    assert cli("bundle", "export", "b.json", "--workspace", "restored")[0] == 0
    assert cli("bundle", "import", "b.json", "--workspace", "third")[0] == 0
    assert cli("bundle", "export", "c.json", "--workspace", "third")[0] == 0
    a, b, c = ((cli.folder / f"{name}.json").read_bytes() for name in "abc")
    assert a == b == c
    assert check(a).holds


def test_bundles_are_shown_merged_and_compared(cli: Cli, answer: Any) -> None:
    (cli.folder / "second.py").write_text("await df.db.app.files.count()")
    cli("run", "second.py", "--mount", f"app={APP}", "--session", "t")
    cli("bundle", "export", "s.json", "--session", "s")
    cli("bundle", "export", "t.json", "--session", "t")
    cli("bundle", "export", "all.json")
    _, shown = cli("bundle", "show", "s.json")
    assert shown["operations"] == {"answer/1": 1, "javascript.analyze/1": 1, "javascript.modules.page/1": 1}
    assert [it["evidence_id"] for it in shown["answers"]] == [answer["evidence_id"]]
    assert shown["answers"][0] == answer
    assert "digest sha256:" in cli.text("bundle", "show", "s.json")[1]
    code, _ = cli("bundle", "merge", "t.json", "s.json", "-o", "m.json")
    assert code == 0
    assert (cli.folder / "m.json").read_bytes() == (cli.folder / "all.json").read_bytes()
    _, found = cli("bundle", "diff", "s.json", "t.json")
    assert [len(found["records"][side]) for side in ("only_first", "only_second")] == [2, 1]
    assert found["records"]["common"] == 1
    assert cli("bundle", "diff", "m.json", "all.json")[1]["equal"]
    code, document = cli("bundle", "merge", "s.json", "-o", "m.json")
    assert (code, document["error"]["code"]) == (2, "file-exists")
    assert cli("bundle", "merge", "s.json", "-o", "m.json", "--force")[0] == 0


def test_imported_records_may_be_cited(cli: Cli, answer: Any) -> None:
    cli("bundle", "export", "a.json")
    _, made = cli("bundle", "import", "a.json", "--workspace", "other")
    assert (made["records"], made["repeated"]) == ({"added": 3, "present": 0}, False)
    assert cli("bundle", "import", "a.json", "--workspace", "other")[1]["repeated"]
    cited = answer["evidence"][0].partition("#")[0]
    (cli.folder / "cite.py").write_text(f"df.answer(status='answered', value=1, evidence=['{cited}'])")
    code, document = cli("run", "cite.py", "--workspace", "other")
    assert (code, document["answer"]["evidence"]) == (0, [cited])
    code, document = cli("run", "cite.py", "--workspace", "third")
    assert (code, document["error"]["code"]) == (1, "answer-invalid")


@pytest.mark.parametrize(
    "citation",
    [
        '"ev1_" + "0" * 64',
        'page.evidence_id + "#/rows/2"',
        '{"evidence": page.evidence_id + "#/rows", "count": 3}',
        '{"evidence": page.evidence_id + "#/rows/0/sites", "equals": 7}',
        '{"evidence": page.evidence_id, "quote": "Lodash"}',
        '{"evidence": page.evidence_id}',
        "7",
    ],
)
async def test_what_does_not_stand_in_a_record_cannot_be_answered(tmp_path: Path, citation: str) -> None:
    source = (
        'page = await df.db.app.modules.page(where={"status": "external", "path": "main.js"})\n'
        "try:\n"
        f"    df.answer(status='answered', value=1, evidence=[{citation}])\n"
        "except df.Error as error:\n"
        "    caught = [error.code, error.message]\n"
        "caught"
    )
    async with Workspace.open(tmp_path) as workspace:
        session = await workspace.session(mounts=[f"app={APP}"])
        for engine in ("cpython", "monty"):
            done: Run = await session.run(source, engine=engine)
            if done.status == "rejected":  # a citation that no type allows
                assert citation == "7"
                continue
            assert done.data[0] == "answer-invalid", done.data
            assert "evidence" in done.data[1]
            assert done.answer is None


# ---- damage in a workspace ----


async def test_a_cut_blob_is_named_not_served_and_repaired_by_its_content(tmp_path: Path) -> None:
    """Three results kept as blobs, one of them cut to half its length under its right name."""

    def text(n: int) -> str:
        """A long text."""
        return f"{n}" * 70_000

    async with Workspace.open(tmp_path / "a") as workspace:
        workspace.use(functions_namespace("t", [text]))
        session = await workspace.session("s")
        done = await session.run("for n in range(1, 4):\n    await df.tool.t.text(n=n)")
        assert done.status == "succeeded", done.error
        store = workspace.store
        addresses = sorted(blob_of(store, call.evidence_id) for call in done.calls)
        assert len(addresses) == 3
        cut = addresses[1]
        cut_in_half(store.blobs.path(cut))
        # Read and export fail and name the address; the others are served.
        [bad] = [call.evidence_id for call in done.calls if blob_of(store, call.evidence_id) == cut]
        with pytest.raises(VerificationError, match=cut):
            store.evidence.result(store.evidence.get(bad))
        with pytest.raises(VerificationError, match=cut):
            export_bundle(store, io.BytesIO().write)
        assert (
            command(["bundle", "export", str(tmp_path / "x.json"), "--workspace", str(tmp_path / "a")]) == 4
        )
        assert not (tmp_path / "x.json").exists()
        # The check lists exactly it.
        assert store.blobs.damaged() == [cut]
        # The same content again repairs it.
        await session.run("for n in range(1, 4):\n    await df.tool.t.text(n=n)")
        assert store.blobs.damaged() == []
        out = io.BytesIO()
        export_bundle(store, out.write)
    with Store.open(tmp_path / "b") as other:
        import_bundle(other, out)
        for evidence_id, record in other.evidence.list():
            assert len(other.evidence.result(record)) == 70_000, evidence_id
        again = io.BytesIO()
        export_bundle(other, again.write)
        assert again.getvalue() == out.getvalue()


def blob_of(store: Store, evidence_id: str) -> str:
    outcome = store.evidence.get(evidence_id).outcome
    assert isinstance(outcome, Success)
    assert isinstance(outcome.result, BlobRef)
    return outcome.result.digest


def test_doctor_lists_exactly_what_is_damaged(cli: Cli, answer: Any) -> None:
    with Store.open(Path(".affidavit")) as store:
        large = [observation(["x" * 66_000, n]) for n in range(3)]
        for one in large:
            store.append(Event(kind="test", session="s", data={}, at=1.0), record=one)
        code, health = cli("doctor", "--store")
        assert (code, health["holds"], health["damage"]) == (0, True, [])
        blobs = health["blobs"]
        cut = digest(canonical(["x" * 66_000, 1]))
        cut_in_half(store.blobs.path(cut))
        code, health = cli("doctor", "--store", "--repair")
        assert (code, [it["name"] for it in health["damage"]]) == (4, [cut])
        assert not health["damage"][0]["repaired"]
        code, text = cli.text("doctor", "--store")
        assert (code, text.count("FAIL"), "analysed again" in text) == (4, 2, True)
        code, document = cli("backup", "copy")
        assert (code, document["damaged_blobs"]) == (4, [cut])
        for one in large:
            store.append(Event(kind="test", session="s", data={}, at=1.0), record=one)
    assert cli("doctor", "--store")[0] == 0
    assert cli("backup", "whole")[0] == 0
    code, health = cli("doctor", "--store", "--workspace", "whole")
    assert (code, health["blobs"]) == (0, blobs)
