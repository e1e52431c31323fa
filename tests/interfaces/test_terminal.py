"""What strangers' files say is shown, and never steers the terminal or passes for a line of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from affidavit.evidence.record import JsonValue
from affidavit.interfaces.cli import run
from affidavit.store.journal.lines import GENESIS, make, payload

STEERING = "\x1b[31mX\x07\x9b2J\u202e\r\nstranger.jsonl: holds"
HEAD: Mapping[str, Any] = {
    "format": "affidavit-journal",
    "version": 1,
    "product": "1",
    "session": "s",
    "subjects": [],
    "fsync": "never",
    "part": 1,
}
EVENT: Mapping[str, Any] = {"at": 1.5, "data": {}, "kind": "noted", "session": "s"}


def journal(path: Path, head: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """A journal whose chain holds, whatever it says."""
    contents: list[dict[str, JsonValue]] = [
        {"journal": dict(head)},
        {"count": 1, "event": dict(event)},
    ]
    before, lines = GENESIS, b""
    for number, content in enumerate(contents):
        line, before = make(number, before, payload(content))
        lines += line
    path.write_bytes(lines)


@pytest.mark.parametrize(
    ("head", "event"),
    [
        ({}, {"kind": STEERING}),
        ({}, {"run": STEERING}),
        ({}, {"key": STEERING}),
        ({}, {"evidence": STEERING}),
        ({}, {"data": {STEERING: STEERING}}),
        ({}, {STEERING: 1}),
        ({"session": STEERING}, {"session": STEERING}),
        ({"product": STEERING}, {}),
        ({"format": STEERING}, {}),
        ({"version": STEERING}, {}),
        ({"fsync": STEERING}, {}),
        ({"subjects": [{"name": STEERING, "digest": "sha256:" + "0" * 64, "format": STEERING}]}, {}),
    ],
)
def test_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], head: dict[str, Any], event: dict[str, Any]
) -> None:
    path = tmp_path / "s.none.jsonl"
    journal(path, {**HEAD, **head}, {**EVENT, **event})
    workspace = ["--workspace", str(tmp_path / "w")]
    for words in (
        ["journal", "verify", str(path)],
        ["journal", "tail", str(path)],
        ["journal", "restore", str(path), "--partial", *workspace],
        ["verify", str(path)],
        ["session", "list", *workspace],
        ["session", "show", STEERING, "--events", *workspace],
        ["doctor", "--store", *workspace],
    ):
        assert run(words) in (0, 1, 3, 4)
        told = "".join(capsys.readouterr())
        assert told
        assert not [it for it in told if not it.isprintable() and it != "\n"]
        assert not any(line.startswith("stranger.jsonl") for line in told.splitlines())
