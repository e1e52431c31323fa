"""What a refusal says, where it says it, and that it leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from affidavit.evidence.identity import record_id
from affidavit.interfaces.cli import run as command
from affidavit.store import Store
from affidavit.store.journal import verify
from tests.store.journal.samples import journalled, written
from tests.store.samples import event, record

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command in an empty folder: exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_refused_import_or_restore_makes_no_workspace(tmp_path: Path, say: Say) -> None:
    (tmp_path / "bad.json").write_text('{"affidavit":"bundle/1","answers":[]')
    (tmp_path / "new.json").write_text('{"affidavit":"bundle/2","answers":[]}')
    path = written(tmp_path, 3)
    path.write_bytes(path.read_bytes().replace(b'"n":1}', b'"n":9}', 1))
    for words in (
        ("bundle", "import", "bad.json"),
        ("bundle", "import", "new.json"),
        ("journal", "restore", str(path)),
    ):
        code, _, err = say(*words, "--workspace", "fresh")
        assert code == 4, err
        assert not (tmp_path / "fresh").exists()


def test_another_version_is_told_alike_of_every_kind_of_file(tmp_path: Path, say: Say) -> None:
    path = written(tmp_path, 1)
    head = b'{"journal":{"format":"affidavit-journal","version":2},"n":0'
    path.write_bytes(head + b',"sum":"' + sha256(head).hexdigest().encode() + b'"}\n')
    (tmp_path / "b.json").write_text('{"affidavit":"bundle/2","answers":[]}')
    (tmp_path / "a.json").write_text('{"affidavit_answer": 2}')
    for name in (str(path), "b.json", "a.json"):
        code, out, _ = say("verify", name, "--json")
        document: Any = json.loads(out)
        assert (code, document["holds"]) == (4, False), name
        assert document["problems"][0]["code"] in ("journal-version", "format-unknown")
    assert say("journal", "verify", str(path))[0] == 4


def test_a_changed_byte_in_a_head_is_an_edited_line(tmp_path: Path, say: Say) -> None:
    path = written(tmp_path, 2)
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":3', 1))
    code, _, err = say("journal", "verify", str(path))
    assert code == 4
    assert "edited-line" in err
    assert "line 1, byte 0" in err


def test_a_journal_that_is_gone_on_with_though_it_does_not_hold_is_told(tmp_path: Path, say: Say) -> None:
    (tmp_path / "a.py").write_text("1 + 1\n")
    assert say("run", "a.py", "--session", "s", "--journal", "j")[0] == 0
    [path] = (tmp_path / "j").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"kind":"run-requested"', b'"kind":"run-requestet"', 1))
    code, out, err = say("run", "a.py", "--session", "s", "--journal", "j", "--json")
    notes = json.loads(out)["notes"]
    assert code == 0
    assert any("does not hold, and is gone on with" in note for note in notes)
    assert "does not hold, and is gone on with" in err
    path.write_bytes(path.read_bytes()[:-5])
    _, out, err = say("run", "a.py", "--session", "s", "--journal", "j", "--json")
    assert any("torn line" in note for note in json.loads(out)["notes"])
    assert "torn line" in err


def test_converted_line_ends_are_named_when_a_journal_is_gone_on_with(tmp_path: Path, say: Say) -> None:
    (tmp_path / "a.py").write_text("1 + 1\n")
    say("run", "a.py", "--session", "s", "--journal", "j")
    [path] = (tmp_path / "j").iterdir()
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    code, _, err = say("run", "a.py", "--session", "s", "--journal", "j")
    assert code == 4
    assert "CR LF" in err


def test_the_bound_that_was_reached_is_the_one_that_was_set(tmp_path: Path, say: Say) -> None:
    with journalled(tmp_path, max_bytes=70_000, part_bytes=70_000) as (store, journal):
        for number in range(100):
            store.append(event(data={"n": number}), record=record(number, "x" * 900))
        assert journal.truncated
        assert [note for note in journal.notices() if "its bound of 70000 bytes" in note]
    code, out, _ = say("journal", "verify", str(journal.path))
    assert code == 0
    assert "its bound of 70000 bytes" in out


def test_a_record_that_others_rest_on_and_that_is_not_there_is_a_loss_with_its_place(
    tmp_path: Path, say: Say
) -> None:
    absent = record_id(record(7))
    with journalled(tmp_path) as (store, journal):
        store.append(event(), record=replace(record(1), parents=(absent,)))
    assert verify(journal.path).status == "holds"
    for words in (("journal", "verify"), ("verify",)):
        code, out, _ = say(*words, str(journal.path))
        assert code == 0
        assert f"{absent} is not in it, and line 2 of s1.none.jsonl rests on it" in out
    with Store.open(tmp_path / "w") as store:
        assert len(store.events.of_session("s1")) == 1
