"""`affidavit unknown open|revise|list|show`: documents, text, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.evidence.identity import record_id
from affidavit.evidence.unknowns import from_json, opened, to_json, unknown_id
from affidavit.interfaces.cli import run
from affidavit.store import Event, Store
from affidavit.store.unknowns import KIND
from tests.evidence.records import observation

SEEN = observation({"n": 1})
OTHER = observation({"n": 2}, confidence="inferred")
QUESTION = "Which library parses dates?"
ASK = ("unknown", "open", QUESTION, "--domain", "javascript")


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

    def revise(self, unknown: str, expect: int, *words: str) -> tuple[int, Any]:
        return self.json("unknown", "revise", unknown, "--expect", str(expect), *words)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    with Store.open(tmp_path / "workspace") as store:
        for record in (SEEN, OTHER):
            store.append(Event(kind="call-recorded", session="s0", data={}, at=1.0), record=record)
    return Cli(tmp_path / "workspace", capsys)


def test_open_prints_the_unknown(cli: Cli) -> None:
    code, document = cli.json(
        *ASK,
        "--severity",
        "high",
        "--support",
        record_id(SEEN)[:16],
        "--probe",
        "read it",
        "--note",
        "so far",
    )
    assert code == 0
    expected = opened(
        {
            "question": QUESTION,
            "domain": "javascript",
            "severity": "high",
            "supports": [record_id(SEEN)],
            "probes": ["read it"],
            "note": "so far",
        }
    )
    whole = to_json(expected)
    for name in ("previous", "unknown_id"):
        del whole[name]
    assert document == whole | {"id": unknown_id(expected), "made": True}


def test_opening_again_finds_it_and_says_so(cli: Cli) -> None:
    first = cli.json(*ASK)[1]
    code, out, err = cli("unknown", "open", f" {QUESTION} ", "--domain", "javascript", "--severity", "low")
    assert code == 0
    assert first["id"] in out
    assert "medium" in out
    assert "nothing was changed: it stands so at revision 1" in err
    assert cli.json(*ASK)[1] == first | {"made": False}


def test_revise_changes_what_is_given(cli: Cli) -> None:
    name = cli.json(*ASK, "--required-confidence", "observed", "--probe", "a")[1]["id"]
    other = cli.json("unknown", "open", "Is it used?", "--domain", "javascript")[1]["id"]
    code, document = cli.revise(
        name[:14],
        1,
        "--status",
        "blocked",
        "--relation",
        f"depends-on={other[:12]}",
        "--contradict",
        record_id(OTHER),
    )
    assert (code, document["revision"], document["made"]) == (0, 2, True)
    assert document["relations"] == [{"kind": "depends-on", "unknown": other}]
    assert (document["probes"], document["required_confidence"]) == (["a"], "observed")
    code, document = cli.revise(
        name, 2, "--no-contradict", "--no-relation", "--no-probe", "--note", "", "--required-confidence", "any",
        "--support", record_id(OTHER), "--status", "resolved", "--resolution", "verified",
    )  # fmt: skip
    assert code == 0
    assert (document["contradicts"], document["relations"], document["probes"]) == ([], [], [])
    assert (document["required_confidence"], document["resolution"]) == (None, "verified")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("--expect", "2", "--status", "blocked"), 1, "revision-conflict"),
        (("--status", "blocked"), 2, "usage"),
        (("--expect", "x"), 2, "usage"),
        (("--expect", "1", "--status", "done"), 2, "usage"),
        (("--expect", "1", "--relation", "depends-on"), 2, "usage"),
        (("--expect", "1", "--relation", "blocks=NAME"), 2, "unknown-invalid"),
        (("--expect", "1", "--relation", "depends-on=NAME"), 2, "unknown-invalid"),
        (("--expect", "1", "--relation", "depends-on=unk1_0000"), 3, "unknown-not-found"),
        (("--expect", "1", "--support", "ev1_0000"), 3, "evidence-not-found"),
        (("--expect", "1", "--status", "resolved"), 2, "unknown-invalid"),
        (("--expect", "1", "--status", "resolved", "--resolution", "verified"), 2, "unknown-invalid"),
        (("--expect", "1", "--note", "x" * 1001), 2, "unknown-invalid"),
    ],
)
def test_exit_codes_of_revise(cli: Cli, words: tuple[str, ...], code: int, error: str) -> None:
    name = cli.json(*ASK)[1]["id"]
    found, document = cli.json("unknown", "revise", name, *(word.replace("NAME", name) for word in words))
    assert (found, document["error"]["code"]) == (code, error)
    assert document["error"]["hint"]
    assert cli.json("unknown", "show", name)[1]["revision"] == 1


def test_a_conflict_names_the_revision_in_force(cli: Cli) -> None:
    name = cli.json(*ASK)[1]["id"]
    current = cli.revise(name, 1, "--status", "blocked")[1]
    code, document = cli.revise(name, 1, "--status", "open")
    assert code == 1
    details = document["error"]["details"]
    assert (details["revision"], details["digest"], details["expected"]) == (2, current["digest"], 1)
    code, _, err = cli("unknown", "revise", name, "--expect", "1", "--status", "open")
    assert code == 1
    assert f"{name} is at revision 2, not 1" in err


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("open", "", "--domain", "d"), 2, "unknown-invalid"),
        (("open", "q"), 2, "usage"),
        (("open", "q", "--domain", "d", "--scope", "app"), 2, "unknown-invalid"),
        (("open", "q", "--domain", "d", "--session", "@unknowns"), 2, "usage"),
        (("show", "unk1_0000"), 3, "unknown-not-found"),
        (("show", "ev1_0000"), 3, "unknown-not-found"),
        (("revise", "unk1_0000", "--expect", "1"), 3, "unknown-not-found"),
        (("list", "--status", "done"), 2, "usage"),
    ],
)
def test_exit_codes_of_the_others(cli: Cli, words: tuple[str, ...], code: int, error: str) -> None:
    found, document = cli.json("unknown", *words)
    assert (found, document["error"]["code"]) == (code, error)


def test_list_has_the_most_severe_first_and_filters(cli: Cli) -> None:
    for question, severity in (("a", "low"), ("b", "critical"), ("c", "medium")):
        cli.json("unknown", "open", question, "--domain", f"d{question}", "--severity", severity)
    name = cli.json("unknown", "list", "--domain", "da")[1]["unknowns"][0]["id"]
    cli.revise(name, 1, "--status", "blocked")

    def listed(*words: str) -> list[str]:
        code, document = cli.json("unknown", "list", *words)
        assert code == 0
        return [it["question"] for it in document["unknowns"]]

    assert listed() == ["b", "c", "a"]
    assert listed("--status", "blocked") == ["a"]
    assert listed("--status", "blocked", "--status", "open", "--severity", "low") == ["a"]
    assert listed("--domain", "dc") == ["c"]
    assert listed("--limit", "1") == ["b"]
    assert cli.json("unknown", "list", "--limit", "1")[1]["omitted"] == 2
    code, out, err = cli("unknown", "list", "--limit", "2")
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()] == ["question", "b", "c"]
    assert "1 more" in err


def test_an_empty_list_is_no_error(cli: Cli) -> None:
    assert cli("unknown", "list")[:2] == (0, "no unknowns\n")
    assert cli.json("unknown", "list") == (0, {"unknowns": [], "omitted": 0})


def test_show_tells_the_whole_chain(cli: Cli) -> None:
    name = cli.json(*ASK)[1]["id"]
    cli.revise(name, 1, "--status", "blocked", "--session", "s7")
    code, document = cli.json("unknown", "show", name[:12])
    assert code == 0
    first, second = document["revisions"]
    assert (first["status"], second["status"], document["status"]) == ("open", "blocked", "blocked")
    assert second["previous"] == first["digest"]
    assert (first["session"], second["session"]) == (None, "s7")
    for revision in (first, second):
        stated = {k: v for k, v in revision.items() if k not in ("id", "at", "session", "run")}
        assert unknown_id(from_json(stated | {"unknown_id": name})) == name
    code, out, _ = cli("unknown", "show", name)
    assert code == 0
    assert QUESTION in out
    assert out.splitlines()[-1].split()[::3] == ["2", "status"]


def test_a_session_and_its_journal_are_told(cli: Cli, tmp_path: Path) -> None:
    code, _ = cli.json(*ASK, "--session", "s7", "--journal", str(tmp_path / "journals"))
    assert code == 0
    with Store.open(cli.root) as store:
        assert [event.kind for event in store.events.of_session("s7")] == ["session-opened", KIND]
    [journal] = (tmp_path / "journals").glob("*.jsonl")
    assert KIND in journal.read_text()
    assert cli.json("session", "show", "s7") == (0, {"session_id": "s7", "runs": []})


def test_control_characters_do_not_reach_the_terminal(cli: Cli) -> None:
    name = cli.json("unknown", "open", "q\x1b[31mred", "--domain", "d", "--probe", "\x9b2J")[1]["id"]
    for words in (("list",), ("show", name)):
        code, out, _ = cli("unknown", *words)
        assert code == 0
        assert "\x1b" not in out
        assert "\x9b" not in out
