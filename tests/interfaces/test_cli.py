"""The command line: one document with `--json`, errors included; stable exit codes; data on stdout, talk on stderr."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from affidavit.interfaces.cli import COMMANDS, run
from affidavit.store import Store

EXAMPLES = Path(__file__).parents[2] / "examples"
APP = f"app={EXAMPLES / 'small_app'}"
TOOLS = '''
def greet(name: str, times: int = 1) -> str:
    """Greets."""
    return f"hello {name} " * times

def fail(text: str) -> None:
    """Fails."""
    raise ValueError(text)
'''


class Cli:
    """Runs command lines in this process and reads what they print."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = run([*words, "--workspace", str(self.root)])
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *words: str) -> tuple[int, Any]:
        """Run with `--json`: stdout must hold exactly one document."""
        code, out, _ = self(*words, "--json")
        return code, json.loads(out)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path / "workspace", capsys)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.py"
    path.write_text(TOOLS)
    return f"t=python:{path}"


def test_run_prints_the_documented_fields(cli: Cli, script: Path) -> None:
    script.write_text("print('hi')\np = await df.db.app.files.page(limit=2)\nlen(p.rows)")
    code, document = cli.json("run", str(script), "--mount", APP)
    assert code == 0
    fields = {
        "run_id",
        "session_id",
        "status",
        "engine",
        "value",
        "answer",
        "stdout",
        "error",
        "diagnostics",
        "calls",
    }
    assert fields <= set(document)
    assert (document["status"], document["value"], document["stdout"]) == ("succeeded", 2, "hi\n")
    (call,) = document["calls"]
    assert {"operation", "evidence_id", "status", "line", "duration_ms"} <= set(call)
    assert (call["operation"], call["line"], call["status"]) == ("db.app.files.page", 2, "ok")


def test_run_reads_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"40 + 2")))
    assert cli.json("run", "-")[1]["value"] == 42


def test_data_goes_to_stdout_and_talk_to_stderr(cli: Cli, script: Path) -> None:
    script.write_text("print('hi')\n[{'a': 1, 'b': 'x'}, {'a': 22, 'b': 'y'}]")
    code, out, err = cli("run", str(script))
    assert code == 0
    assert out == "hi\na   b\n1   x\n22  y\n"
    assert "succeeded" in err


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ("1/0", "failed", 1),
        ("unknown_name", "rejected", 1),
        ("x = (", "rejected", 1),
        ("import sys; sys.exit(3)", "failed", 1),
    ],
)
def test_a_run_that_does_not_succeed_exits_with_one(
    cli: Cli, script: Path, source: str, status: str, code: int
) -> None:
    script.write_text(source)
    exit_code, document = cli.json("run", str(script))
    assert (document["status"], exit_code) == (status, code)
    assert document["error"]["message"]


def test_errors_are_documents_with_code_and_hint(cli: Cli, script: Path) -> None:
    cases: list[tuple[int, str, tuple[str, ...]]] = [
        (2, "usage", ("run",)),
        (2, "usage", ("rum",)),
        (2, "usage", ("run", str(script), "--engine", "fast")),
        (2, "usage", ("run", str(script), "--no-such-option")),
        (3, "artifact-not-found", ("run", str(script))),
        (3, "artifact-not-found", ("mount", "add", "app=/no/such/file.asar")),
        (2, "mount-invalid", ("mount", "add", "app")),
        (2, "mount-invalid", ("mount", "add", "class=./x")),
        (3, "mount-not-found", ("mount", "remove", "nothing")),
        (3, "evidence-not-found", ("evidence", "show", "ev1_" + "0" * 64)),
        (3, "session-not-found", ("session", "show", "nothing")),
        (3, "operation-unknown", ("call", "db.nothing.page")),
        (3, "operation-unknown", ("describe", "db.nothing.page")),
    ]
    for expected, code, words in cases:
        exit_code, document = cli.json(*words)
        assert (exit_code, document["error"]["code"]) == (expected, code), words
        assert document["error"]["message"]
        assert document["error"]["hint"], words
        assert set(document["error"]) == {"code", "message", "hint", "retryable", "details"}


def test_a_refused_effect_exits_with_five(cli: Cli, script: Path, tools: str) -> None:
    code, document = cli.json("call", "tool.t.greet", "name=Ann", "--mount", tools)
    assert (code, document) == (0, "hello Ann ")
    script.write_text("await df.tool.t.greet(name='Ann', times=2)")
    assert cli.json("run", str(script), "--mount", tools, "--calls", "0")[0] == 5


def test_a_foreign_text_cannot_reach_the_terminals_controls(cli: Cli, script: Path) -> None:
    script.write_text("text = chr(27) + '[31mred' + chr(7)\nprint(text)\nraise ValueError(text)")
    code, out, err = cli("run", str(script))
    assert code == 1
    assert "\\x1b[31mred" in out
    assert "\x1b" not in out + err
    assert "\x07" not in out + err


def test_a_file_whose_name_is_no_text_is_named_all_the_same(cli: Cli, tmp_path: Path) -> None:
    odd = os.fsdecode(bytes(tmp_path / "x") + b"\xff.json")
    code, document = cli.json("verify", odd)
    assert (code, document["error"]["code"]) == (3, "artifact-not-found")
    assert document["error"]["message"] == f"no file {odd}"
    Path(odd).write_text("{}")
    code, document = cli.json("verify", odd)
    assert (code, document["file"]) == (4, odd)
    code, out, _ = cli("verify", odd)
    assert (code, "x\\udcff.json: answer DOES NOT HOLD" in out) == (4, True)


def test_an_interrupted_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("await df.db.app.files.count()\nimport time\ntime.sleep(60)")
    root = str(tmp_path / "workspace")
    words = ["run", str(tmp_path / "slow.py"), "--mount", APP, "--workspace", root, "--json"]
    process = subprocess.Popen([sys.executable, "-m", "affidavit", *words], stdout=subprocess.PIPE, text=True)
    with Store.open(Path(root)) as store:
        while not any(event.kind == "call-recorded" for event in store.events.after(0)):
            assert process.poll() is None
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 130
    assert json.loads(out)["error"]["code"] == "interrupted"


def test_call_shows_the_result_and_records_it(cli: Cli) -> None:
    cli("mount", "add", APP)
    code, refused = cli.json("call", "db.app.files.page", "limit=1", 'where={"knid": "source"}')
    assert (code, refused["error"]["code"]) == (2, "selector-invalid")
    code, page = cli.json("call", "db.app.files.page", "limit=1")
    assert (code, len(page["rows"]), page["page"]["returned"]) == (0, 1, 1)
    code, shown = cli.json("evidence", "show", page["evidence_id"])
    assert code == 0
    assert shown["record"]["operation"] == "javascript.files.page/1"
    assert shown["result"]["rows"] == page["rows"]


def test_a_failed_call_is_an_error_document(cli: Cli, tools: str) -> None:
    code, document = cli.json("call", "tool.t.fail", "text=no", "--mount", tools)
    assert (code, document["error"]["code"]) == (1, "tool-failed")
    assert document["error"]["details"]["evidence_id"].startswith("ev1_")


def test_mounts_are_listed_shown_and_removed(cli: Cli) -> None:
    assert cli.json("mount", "list")[1] == {"mounts": []}
    code, added = cli.json("mount", "add", APP)
    assert code == 0
    shown = cli.json("mount", "show", "app")[1]
    assert {name: shown[name] for name in added} == added
    assert (shown["summary"]["entries"], shown["coverage"]["state"]) == (5, "complete")
    assert [mount["name"] for mount in cli.json("mount", "list")[1]["mounts"]] == ["app"]
    assert cli.json("mount", "remove", "app") == (0, {"removed": "app"})
    assert cli.json("mount", "list")[1] == {"mounts": []}
    assert cli.json("evidence", "show", added["evidence_id"])[0] == 0


def test_a_module_that_is_gone_stops_only_what_uses_it(cli: Cli, tools: str, script: Path) -> None:
    assert cli.json("mount", "add", tools)[0] == 0
    Path(tools.partition(":")[2]).unlink()
    script.write_text("1 + 1")
    code, out, err = cli("run", str(script))
    assert (code, out) == (0, "2\n")
    assert "mount remove t" in err
    script.write_text("await df.tool.t.greet(name='Ann')")
    assert cli.json("run", str(script))[1]["status"] == "rejected"


def test_sessions_and_their_events_are_shown(cli: Cli, script: Path) -> None:
    script.write_text("await df.db.app.files.count()")
    cli("run", str(script), "--mount", APP, "--session", "mine")
    assert [session["session_id"] for session in cli.json("session", "list")[1]["sessions"]] == ["mine"]
    runs = cli.json("session", "show", "mine")[1]["runs"]
    assert [(found["number"], found["status"], found["calls"]) for found in runs] == [(1, "succeeded", 1)]
    kinds = [event["kind"] for event in cli.json("session", "show", "mine", "--events")[1]["events"]]
    assert kinds == [
        "session-opened", "mount-added", "run-requested", "run-started", "call-started", "call-recorded", "run-settled"
    ]  # fmt: skip


def test_evidence_is_listed_newest_first_and_filtered(cli: Cli) -> None:
    cli("mount", "add", APP)
    cli("call", "db.app.files.count")
    found = cli.json("evidence", "list")[1]["evidence"]
    assert [item["operation"] for item in found] == ["javascript.files.count/1", "javascript.analyze/1"]
    only = cli.json("evidence", "list", "--operation", "javascript.analyze/1")[1]["evidence"]
    assert [item["operation"] for item in only] == ["javascript.analyze/1"]


def test_describe_finds_by_words_and_shows_one_in_full(cli: Cli) -> None:
    code, out, _ = cli("describe", "references", "--mount", APP)
    assert code == 0
    assert "db.app.references.page" in out
    assert len(out) < 4000
    code, out, _ = cli("describe", "db.app.modules.page", "--mount", APP)
    assert code == 0
    assert "where" in out
    assert cli.json("describe", "db.app.modules.page", "--mount", APP)[0] == 0


def test_check_does_not_run(cli: Cli, script: Path) -> None:
    script.write_text("await df.db.app.files.pge()")
    code, document = cli.json("check", str(script), "--mount", APP)
    assert (code, document["status"]) == (1, "rejected")
    assert document["diagnostics"][0]["suggestion"] == "page"


def test_doctor_tries_each_layer(cli: Cli) -> None:
    code, document = cli.json("doctor")
    names = {finding["name"] for finding in document["findings"]}
    assert {"engine auto", "type check", "analyzer javascript", "workspace"} <= names
    assert code == (0 if document["healthy"] else 1)
    assert document["healthy"]


def test_the_demo_answers_with_evidence(cli: Cli) -> None:
    code, document = cli.json("demo", "--offline")
    assert code == 0
    assert document["answer"]["status"] == "answered"
    rows = document["answer"]["value"]
    assert [(row["package"], row["sites"]) for row in rows] == [("electron", 2), ("lodash", 1)]
    for row in rows:
        evidence_id, _, pointer = row["evidence"].partition("#/rows/")
        shown = cli.json("evidence", "show", evidence_id)[1]
        assert shown["result"]["rows"][int(pointer)]["identity"]["key"] == f"external:{row['package']}"


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_command_has_help_and_json(cli: Cli, words: tuple[str, ...]) -> None:
    code, out, _ = cli(*words, "--help")
    assert code == 0
    assert "--json" in out
    assert COMMANDS[words][1].split(";")[0].split(",")[0].split(":")[0] in out or "Usage" in out


def test_help_costs_little_cpu_and_version_is_told() -> None:
    """At most a quarter second of CPU, the best of three: the bound is the product's, not a benchmark."""
    code = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)"
    assert code
    best = min(_cpu("--help") for _ in range(3))
    assert best <= 0.25
    shown = subprocess.run([sys.executable, "-m", "affidavit", "--version"], capture_output=True, text=True)
    assert shown.stdout.startswith("affidavit ")


def _cpu(*words: str) -> float:
    measured = (
        "import resource, subprocess, sys\n"
        f"subprocess.run([sys.executable, '-m', 'affidavit', *{words!r}], stdout=subprocess.DEVNULL, check=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime)"
    )
    return float(
        subprocess.run([sys.executable, "-c", measured], capture_output=True, text=True, check=True).stdout
    )
