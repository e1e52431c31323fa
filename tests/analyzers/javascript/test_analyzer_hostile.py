"""Artifacts that are broken or hostile: each bad place costs itself, and nothing is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript import analyzer as analyzer_module
from affidavit.analyzers.javascript.analyzer import JavaScriptAnalyzer
from affidavit.analyzers.javascript.parsing.pool import Allowance
from affidavit.errors import CODES, NotFoundError, VerificationError
from tests.analyzers.javascript.analysed import analyse
from tests.analyzers.javascript.builders import asar, integrity, packed, write_tree

BROKEN: dict[str, bytes] = {
    "good.js": b"require('good-dep');",
    "empty.js": b"",
    "bom.js": b"\xef\xbb\xbfrequire('bom-dep');",
    "crlf.js": b"require('one');\r\nrequire('two');\r\n",
    "shebang.js": b"#!/usr/bin/env node\nrequire('shebang-dep');",
    "bin/tool": b"#!/usr/bin/env node\nrequire('tool-dep');",
    "bin/shell": b"#!/bin/sh\nrequire('no-dep')",
    "latin1.js": b"// caf\xe9\nrequire('latin-dep');",
    "utf16.js": "require('x')".encode("utf-16"),
    "syntax.js": b"require('before'); ]]] (( ; require('after');",
    "__proto__.js": b"require('proto-dep');",
    "constructor/__proto__/index.js": b"require('../../good');",
    "deep.js": b"[" * 50_000 + b"]" * 50_000,
    "calls.js": b"f(" * 20_000 + b"require('inner')" + b")" * 20_000,
    "text.js": b"just some words, not a program \x00\x01\x02",
    "package.json": b"{ broken",
    "surrogate.js": b"require('\\ud800');",
}


def test_odd_sources_cost_themselves_alone(tmp_path: Path) -> None:
    found = analyse(write_tree(tmp_path / "app", BROKEN), tmp_path / "work")
    assert {row["path"] for row in found.files} == BROKEN.keys()
    externals = {row["identity"]["key"] for row in found.modules if row["status"] == "external"}
    expected = "good-dep bom-dep one two shebang-dep tool-dep latin-dep before after proto-dep inner"
    assert externals >= {f"external:{name}" for name in expected.split()}
    assert "external:no-dep" not in externals
    assert found.counts("crlf.js") == {"external:one": 1, "external:two": 1}
    lines = {
        row["specifier"]: row["line"] for row in found.references if row["path"] in {"crlf.js", "shebang.js"}
    }
    assert lines == {"one": 1, "two": 2, "shebang-dep": 2}
    (bom,) = [row for row in found.references if row["path"] == "bom.js"]
    assert (bom["start"], bom["line"]) == (3, 1)
    assert found.counts("surrogate.js", "rejected") == {"rejected:\\ud800": 1}
    assert found.codes["latin1.js"] == "encoding"
    assert found.codes["utf16.js"] == "encoding"
    assert found.codes["syntax.js"] == "parse-error"
    statuses = {row["path"]: row["status"] for row in found.files}
    assert (statuses["syntax.js"], statuses["utf16.js"], statuses["empty.js"]) == (
        "partial",
        "limited",
        "parsed",
    )
    assert statuses["bin/tool"] == "parsed"
    assert statuses["bin/shell"] == "listed"
    assert found.analysis.coverage.state == "partial"
    assert set(found.codes.values()) <= set(CODES)
    (problem, *_) = found.items["syntax.js"]["problems"]
    assert (problem["line"], problem["reason"]) == (1, "unexpected")


def test_no_code_of_the_application_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Any] = []
    start = subprocess.Popen.__init__

    def watched(self: Any, command: Any, *rest: Any, **options: Any) -> None:
        commands.append(command)
        start(self, command, *rest, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", watched)
    mark = tmp_path / "was-run"
    run = f"require('fs').writeFileSync({json.dumps(str(mark))}, '1');"
    scripts = dict.fromkeys(
        ("preinstall", "install", "postinstall", "prepare", "start", "test"), f"touch {mark}"
    )
    files = {
        "package.json": json.dumps({"name": "trap", "main": "main.js", "scripts": scripts, "bin": "main.js"}),
        "main.js": run,
        ".npmrc": f"node-options=--require={tmp_path}/app/main.js",
        "node_modules/trap/index.js": run,
        "node_modules/trap/package.json": json.dumps({"scripts": scripts}),
        "bin/tool": f"#!/usr/bin/env node\n{run}",
    }
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work")
    assert found.counts("main.js", "builtin") == {"builtin:fs": 1}
    assert not mark.exists()
    assert commands
    assert {command[0] for command in commands} == {sys.executable}
    assert not any(str(tmp_path / "app") in part for command in commands for part in command)


def test_a_broken_package_json_is_said_where_it_matters(tmp_path: Path) -> None:
    files = {"main.js": b"require('p')", "node_modules/p/package.json": b"{", "node_modules/p/index.js": b""}
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work")
    assert found.codes == {"node_modules/p/package.json": "json-invalid"}
    assert [row["target"] for row in found.references] == ["node_modules/p/index.js"]


def test_a_file_that_takes_too_long_is_unknown_and_the_rest_is_there(tmp_path: Path) -> None:
    slow = b"({[(`" * 100_000
    files = {"main.js": b"require('dep')", "slow.js": slow}
    analyzer = JavaScriptAnalyzer(allowance=Allowance(base=0.05, per_mebibyte=0))
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work", analyzer=analyzer)
    assert found.counts("main.js") == {"external:dep": 1}
    assert found.codes == {"slow.js": "parse-timed-out"}
    assert found.file("slow.js")["status"] == "limited"
    assert found.file("slow.js")["sha256"] == integrity(slow)["hash"]
    coverage = found.analysis.coverage
    assert (coverage.state, coverage.examined, coverage.unknown) == ("partial", 1, 1)


def test_a_source_above_the_bound_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer_module, "MAX_SOURCE", 100)
    files = {"main.js": b"require('dep')", "huge.js": b"1;" * 51}
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work")
    assert found.codes == {"huge.js": "entry-too-large"}
    assert found.file("huge.js")["sha256"] == integrity(files["huge.js"])["hash"]
    assert (found.analysis.coverage.omitted, found.analysis.coverage.unknown) == (1, 0)


def test_what_is_no_part_of_the_artifact_does_not_make_coverage_partial(tmp_path: Path) -> None:
    files = {"main.js": b"require('dep')", ".git/hooks/x.js": b"require('no')", "latin1.js": b"// \xe9"}
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work")
    assert found.codes == {".git": "entry-skipped", "latin1.js": "encoding"}
    coverage = found.analysis.coverage
    assert (coverage.state, coverage.examined, coverage.omitted, coverage.unknown) == ("complete", 2, 0, 0)


def test_bad_entries_of_an_archive_do_not_stop_the_rest(tmp_path: Path) -> None:
    data = b"require('dep')"
    header = {
        "files": {
            "main.js": packed(0, len(data), integrity=integrity(data)),
            "tampered.js": packed(0, len(data), integrity=integrity(b"other")),
            "end.js": packed(0, 1000),
            "negative.js": packed(0, -5),
            "..": {"files": {"up.js": packed(0, 1)}},
            "loop": {"link": "loop"},
            "out": {"link": "../../etc/passwd"},
            "alias.js": {"link": "main.js"},
            "gone.node": {"size": 3, "unpacked": True},
            "script": packed(0, 4, executable=True),
        }
    }
    path = tmp_path / "app.asar"
    path.write_bytes(asar(header, data))
    found = analyse(path, tmp_path / "work")
    assert found.codes == {
        "tampered.js": "entry-damaged",
        "end.js": "entry-damaged",
        "negative.js": "entry-damaged",
        "..": "entry-unsafe",
        "loop": "entry-unsafe",
        "out": "entry-unsafe",
        "gone.node": "entry-missing",
    }
    assert found.counts("main.js") == found.counts("tampered.js") == {"external:dep": 1}
    files = {row["path"]: row for row in found.files}
    assert files["main.js"]["integrity"] == "verified"
    assert files["tampered.js"]["integrity"] == "mismatch"
    assert files["alias.js"]["link"] == "main.js"
    assert files["out"]["link"] is None
    assert (files["gone.node"]["unpacked"], files["gone.node"]["sha256"], files["gone.node"]["status"]) == (
        True, None, "limited",
    )  # fmt: skip
    assert files["script"]["executable"] is True
    assert found.analysis.coverage.unknown == 7


def test_limitations_are_bounded_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyzer_module, "MAX_LIMITATIONS", 3)
    path = tmp_path / "app.asar"
    path.write_bytes(asar({"files": {f"{n}.js": packed(0, 1) for n in range(9)}}))
    found = analyse(path, tmp_path / "work")
    assert len(found.analysis.limitations) == 3
    assert "7 more" in found.analysis.limitations[-1].message
    assert found.analysis.coverage.unknown == 9


@pytest.mark.parametrize("archive", [b"", b"not an archive", asar(b"{}")])
def test_an_archive_that_cannot_be_read_is_one_refusal(tmp_path: Path, archive: bytes) -> None:
    path = tmp_path / "app.asar"
    path.write_bytes(archive)
    with pytest.raises(VerificationError) as caught:
        JavaScriptAnalyzer().identify(path)
    assert caught.value.code == "artifact-damaged"


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        JavaScriptAnalyzer().identify(tmp_path / "none.asar")
    with pytest.raises(NotFoundError):
        JavaScriptAnalyzer().signature(tmp_path / "none.asar")
