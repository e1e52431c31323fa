"""The analyzer as a whole: from bytes to rows."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import get_type_hints

from affidavit.analyzers.javascript import dataset
from affidavit.analyzers.javascript.analyzer import DECODERS, JavaScriptAnalyzer
from affidavit.analyzers.javascript.rows import COLLECTIONS
from affidavit.errors import FailedError
from affidavit.facts.factfile import FactFileWriter
from tests.analyzers.javascript.analysed import Analysed, analyse, ignore
from tests.analyzers.javascript.builders import asar_of, integrity, tgz_of, write_tree

MAIN = b"""\
const { app, BrowserWindow } = require("electron"), fs = require("node:fs");
const again = require('electron');
import React, { useState as state } from "react";
import "./style.css";
import("./locale/" + name + ".js");
export * from "./lib";
const helper = require("./lib/helper");
const data = require("./data.json"), addon = require("./native.node");
require("lodash/fp"); require("@scope/pkg/deep");
require("./gone"); require("../../etc/passwd"); require("fs/promises");
new Worker(new URL("./worker.js", import.meta.url));
const text = "require('nothing')"; // require("nothing")
"""
APP: dict[str, bytes] = {
    "package.json": b'{"name": "demo", "main": "main.js", "imports": {"#lib": "./lib/index.js"}}',
    "main.js": MAIN,
    "style.css": b"body {}",
    "picture.png": b"\x89PNG",
    "index.html": b"<html>",
    "data.json": b"{}",
    "native.node": b"\x7fELF",
    "worker.js": b"",
    "lib/index.js": b"module.exports = require('./helper');",
    "lib/helper.ts": b"import type { A } from 'types-only'; export const a: A = 1;",
    "node_modules/shared/index.js": b"exports.x = require('demo-peer');",
}


@pytest.fixture
def app(tmp_path: Path) -> Analysed:
    return analyse(write_tree(tmp_path / "app", APP), tmp_path / "work")


def test_the_question_which_external_packages_and_how_often(app: Analysed) -> None:
    assert app.counts("main.js") == {
        "external:@scope/pkg": 1, "external:electron": 2, "external:lodash": 1, "external:react": 1,
    }  # fmt: skip
    assert app.counts("main.js", "builtin") == {"builtin:fs": 1, "builtin:fs/promises": 1}
    assert app.counts("main.js", "missing") == {"missing:./gone": 1}
    assert app.counts("main.js", "rejected") == {"rejected:../../etc/passwd": 1}


def test_sites_ranges_and_bindings_are_three_counts(app: Analysed) -> None:
    rows = {row["identity"]["key"]: row for row in app.modules if row["path"] == "main.js"}
    counts = {key: (row["sites"], row["ranges"], row["bindings"]) for key, row in rows.items()}
    assert counts["external:electron"] == (2, 2, 3)
    assert counts["external:react"] == (1, 1, 2)
    assert counts["external:lodash"] == (1, 1, 0)
    # One statement, two references to two modules: a range of each.
    assert counts["builtin:fs"] == (1, 1, 1)


def test_two_sites_in_one_statement_are_one_range(tmp_path: Path) -> None:
    source = write_tree(tmp_path, {"a.js": 'const x = require("m"), y = require("m");'}) / "a.js"
    (row,) = [row for row in analyse(source, tmp_path / "work").modules if row["status"] == "external"]
    assert (row["sites"], row["ranges"], row["bindings"]) == (2, 1, 2)


def test_references_have_every_site_in_source_order(app: Analysed) -> None:
    rows = [row for row in app.references if row["path"] == "main.js"]
    assert [(row["kind"], row["specifier"], row["resolution"], row["target"]) for row in rows] == [
        ("require", "electron", "external", None),
        ("require", "node:fs", "builtin", None),
        ("require", "electron", "external", None),
        ("import", "react", "external", None),
        ("side-effect-import", "./style.css", "resolved", "style.css"),
        ("dynamic-import", None, "computed", None),
        ("export-from", "./lib", "resolved", "lib/index.js"),
        ("require", "./lib/helper", "resolved", "lib/helper.ts"),
        ("require", "./data.json", "resolved", "data.json"),
        ("require", "./native.node", "resolved", "native.node"),
        ("require", "lodash/fp", "external", None),
        ("require", "@scope/pkg/deep", "external", None),
        ("require", "./gone", "missing", None),
        ("require", "../../etc/passwd", "rejected", None),
        ("require", "fs/promises", "builtin", None),
        ("worker", "./worker.js", "resolved", "worker.js"),
    ]
    for row in rows:
        item = app.items[row["reference_id"]]
        assert MAIN[row["start"] : row["end"]].decode() == item["source"]
        assert row["line"] == MAIN[: row["start"]].count(b"\n") + 1
        assert row["column"] == row["start"] - (MAIN.rfind(b"\n", 0, row["start"]) + 1)
        assert item["statement"]["start"] <= row["start"] <= row["end"] <= item["statement"]["end"]
        assert {name: item[name] for name in row} == row


def test_references_point_at_their_modules(app: Analysed) -> None:
    modules = {row["node_id"]: row for row in app.modules}
    for row in app.references:
        item = app.items[row["reference_id"]]
        if row["resolution"] == "computed":
            assert item["module"] is None
        else:
            module = modules[item["module"]]
            assert module["path"] == (row["target"] or row["path"])
            assert row["reference_id"] in {
                site["reference_id"] for site in app.items[item["module"]]["references"]
            }
    assert sum(row["sites"] for row in app.modules if row["strategy"] != "module-export") == sum(
        row["resolution"] != "computed" for row in app.references
    )


def test_modules_are_the_files_and_what_they_lack(app: Analysed) -> None:
    files = [row for row in app.modules if row["strategy"] == "source-module"]
    present = {row["path"]: (row["kind"], row["sites"]) for row in files}
    assert present == {
        "data.json": ("json-module", 1),
        "index.html": ("html", 0),
        "lib/helper.ts": ("javascript-module", 2),
        "lib/index.js": ("javascript-module", 1),
        "main.js": ("javascript-module", 0),
        "native.node": ("native-addon", 1),
        "node_modules/shared/index.js": ("javascript-module", 0),
        "package.json": ("json-module", 0),
        "style.css": ("asset", 1),
        "worker.js": ("javascript-module", 1),
    }
    order = [(row["status"] == "present", row["path"], row["identity"]["key"]) for row in app.modules]
    assert order == sorted(order)
    assert len({row["node_id"] for row in app.modules}) == len(app.modules)


def test_files(app: Analysed) -> None:
    assert [row["path"] for row in app.files] == sorted(APP)
    main = app.file("main.js")
    assert main == {
        "path": "main.js", "kind": "javascript-module", "language": "javascript", "status": "parsed",
        "size": len(MAIN), "sha256": integrity(MAIN)["hash"], "executable": False, "unpacked": False, "link": None,
        "integrity": "undeclared",
    }  # fmt: skip
    statuses = {row["path"]: (row["kind"], row["language"], row["status"]) for row in app.files}
    assert statuses["lib/helper.ts"] == ("javascript-module", "typescript", "parsed")
    assert statuses["picture.png"] == ("asset", None, "listed")
    assert statuses["native.node"] == ("native-addon", None, "listed")


def test_coverage_of_a_clean_artifact_is_complete(app: Analysed) -> None:
    coverage = app.analysis.coverage
    assert (coverage.state, coverage.examined, coverage.omitted, coverage.unknown) == ("complete", 5, 0, 0)
    assert app.analysis.limitations == ()
    assert app.analysis.summary["references"] == len(app.references)
    assert app.analysis.summary["modules"] == len(app.modules)


def test_what_rows_rest_on(app: Analysed) -> None:
    bases = {row["identity"]["key"]: row["basis"] for row in app.modules if row["path"] == "main.js"}
    assert bases["external:react"] == [
        {"authority": "static-analysis", "state": "complete", "confidence": "observed"}
    ]
    assert bases["external:electron"] == [
        {"authority": "static-analysis", "state": "complete", "confidence": "derived"}
    ]
    assert bases["main.js"] == [
        {"authority": "artifact-bytes", "state": "complete", "confidence": "observed"}
    ]
    helper = next(row for row in app.modules if row["path"] == "lib/helper.ts" and row["status"] == "present")
    # `require("./lib/helper")` finding `helper.ts` is a rule of bundlers, not of Node.js.
    assert {"authority": "static-analysis", "state": "complete", "confidence": "inferred"} in helper["basis"]


def test_rows_have_the_declared_fields(app: Analysed) -> None:
    for spec in COLLECTIONS:
        rows = getattr(app, spec.name)
        assert rows
        for row in rows:
            assert row.keys() == get_type_hints(spec.row).keys()
        full = [app.items[row[spec.key]] for row in rows]
        assert any(item.keys() == get_type_hints(spec.item).keys() for item in full) or spec.name == "files"


@pytest.mark.parametrize("packed_as", ["asar", "tgz"])
def test_one_application_has_one_set_of_facts_in_every_container(
    app: Analysed, tmp_path: Path, packed_as: str
) -> None:
    path = tmp_path / f"app.{packed_as}"
    path.write_bytes(asar_of(APP) if packed_as == "asar" else tgz_of(APP))
    other = analyse(path, tmp_path / "work")

    def plain(rows: list[Any]) -> list[Any]:
        drop = {"node_id", "reference_id", "integrity"}
        return [{name: value for name, value in row.items() if name not in drop} for row in rows]

    assert plain(other.files) == plain(app.files)
    assert plain(other.modules) == plain(app.modules)
    assert plain(other.references) == plain(app.references)
    if packed_as == "asar":
        assert {row["integrity"] for row in other.files} == {"verified"}


@pytest.mark.parametrize("processes", [1, 2])
def test_equal_bytes_give_equal_facts_wherever_and_however(tmp_path: Path, processes: int) -> None:
    one = analyse(write_tree(tmp_path / "one", APP), tmp_path / "work")
    two = analyse(
        write_tree(tmp_path / "other" / "two", dict(reversed(APP.items()))),
        tmp_path / "work",
        analyzer=JavaScriptAnalyzer(processes=processes),
    )
    assert (two.subject, two.digest, two.analysis) == (one.subject, one.digest, one.analysis)
    three = analyse(write_tree(tmp_path / "three", {**APP, "main.js": MAIN + b"\n"}), tmp_path / "work")
    assert three.subject != one.subject
    assert not {row["node_id"] for row in three.modules} & {row["node_id"] for row in one.modules}


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_an_artifact_that_changed_is_refused(tmp_path: Path, when: str) -> None:
    root = write_tree(tmp_path / "app", APP)
    analyzer = JavaScriptAnalyzer()
    artifact = analyzer.identify(root)
    writer = FactFileWriter(tmp_path / "facts", analyzer.collections)

    def change(done: int, total: int, what: str) -> None:
        if done == total:
            (root / "main.js").write_bytes(b"// other")

    if when == "before":
        change(0, 0, "")
    with pytest.raises(FailedError) as caught:
        analyzer.analyze(artifact, writer, change if when == "meanwhile" else ignore)
    writer.abort()
    assert caught.value.code == "artifact-changed"


def test_progress_is_told_and_can_interrupt(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "app", APP)
    seen: list[tuple[int, int]] = []
    analyse(root, tmp_path / "work", progress=lambda done, total, what: seen.append((done, total)))
    assert seen[0] == (0, 5)
    assert seen[-1] == (5, 5)
    assert seen == sorted(seen)

    def interrupt(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analyse(root, tmp_path / "work", progress=interrupt)


def test_single_files(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {"main.ts": "import x from 'dep'; import './gone.js';", "data.json": "{}", "gone.ts": ""}
    )
    found = analyse(tmp_path / "main.ts", tmp_path / "work")
    assert (found.subject.format, found.counts("main.ts")) == ("source-file", {"external:dep": 1})
    # What lies beside a single file is not part of the artifact.
    assert found.counts("main.ts", "missing") == {"missing:./gone.js": 1}
    data = analyse(tmp_path / "data.json", tmp_path / "work")
    assert [(row["path"], row["kind"]) for row in data.modules] == [("data.json", "json-module")]


def test_links_and_packages_of_a_workspace(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "app", {"main.js": "require('b')", "packages/b/index.js": "require('../../main')"}
    )
    (root / "node_modules").mkdir()
    (root / "node_modules" / "b").symlink_to("../packages/b")
    found = analyse(root, tmp_path / "work")
    assert [(row["path"], row["target"]) for row in found.references] == [
        ("main.js", "packages/b/index.js"),
        ("packages/b/index.js", "main.js"),
    ]
    link = found.file("node_modules/b")
    assert (link["kind"], link["link"], link["status"]) == ("link", "packages/b", "listed")
    shutil.copytree(root, tmp_path / "copy", symlinks=True)
    assert analyse(tmp_path / "copy", tmp_path / "work").digest == found.digest


def test_what_is_relative_to_the_unknown_is_unknown(tmp_path: Path) -> None:
    source = b"""
import { createRequire } from "module";
new Worker("./worker.js");
new Worker("../../up.js");
new Worker("https://x.test/w.js");
const far = createRequire("/somewhere/else.js");
far("./worker.js"); far("dep"); far("fs"); far("electron"); far("/etc/passwd");
"""
    root = write_tree(tmp_path / "app", {"main.mjs": source, "worker.js": b""})
    found = {row["specifier"]: row["resolution"] for row in analyse(root, tmp_path / "work").references}
    assert found.pop("module") == "builtin"
    found.pop(None, None)
    assert found == {
        "./worker.js": "unknown", "../../up.js": "unknown", "https://x.test/w.js": "external", "dep": "unknown",
        "fs": "builtin", "electron": "external", "/etc/passwd": "rejected",
    }  # fmt: skip


def test_the_version_names_the_decoders_that_are_installed() -> None:
    assert {name: version(name) for name in DECODERS} == dict(DECODERS)
    for name, number in DECODERS.items():
        assert f"{name}={number}" in JavaScriptAnalyzer.version


EXPORTING: dict[str, bytes] = {
    "a.js": b"""\
import { b, b as also, c as d } from "./b.mjs"; import whole, { default as again } from "./b.mjs";
export { b as passed } from "./b.mjs";
export default 1;
""",
    "b.mjs": b"export const b = 1; export function c() {}\nexport default 2; export * from './c.js';",
    "c.js": b"exports.x = 1; module.exports.y = 2; exports.x = 3; exports[computed] = 4;",
    "d.ts": b"import type { b } from './b.mjs'; const { x: { z } } = require('./c'), y = require('./c').y;\n"
    b"import * as all from './b.mjs'; all.c; const c = require('./c'); c.x; import { x } from './b.mjs'; export = c;",
}  # fmt: skip


@pytest.fixture
def exporting(tmp_path: Path) -> Analysed:
    return analyse(write_tree(tmp_path / "app", EXPORTING), tmp_path / "work")


def test_exports_are_modules_with_how_often_they_are_asked_for(exporting: Analysed) -> None:
    rows = [row for row in exporting.modules if row["strategy"] == "module-export"]
    counts = {row["identity"]["key"]: (row["sites"], row["ranges"], row["bindings"]) for row in rows}
    assert counts == {
        "a.js:default": (0, 0, 0),
        "a.js:passed": (0, 0, 0),
        "b.mjs:*": (0, 0, 0),
        "b.mjs:b": (3, 3, 3),
        "b.mjs:c": (1, 1, 1),
        "b.mjs:default": (1, 1, 2),
        "c.js:x": (1, 1, 1),
        "c.js:y": (1, 1, 1),
        "d.ts:export=": (0, 0, 0),
    }
    for row in rows:
        assert (row["kind"], row["status"]) == ("javascript-module", "present")
        assert row["identity"] == {"strategy": "module-export", "key": f"{row['path']}:{row['export']}"}
        confidence = "derived" if row["path"] == "c.js" else "observed"
        assert {"authority": "static-analysis", "state": "complete", "confidence": confidence} in row["basis"]


def test_the_item_of_an_export_has_its_places_and_its_references(exporting: Analysed) -> None:
    items = {item["identity"]["key"]: item for item in exporting.items.values() if "identity" in item}
    places = [
        (place["form"], place["source"], place["range"]["start"]) for place in items["c.js:x"]["exports"]
    ]
    assert places == [("property", "exports.x = 1", 0), ("property", "exports.x = 3", 37)]
    (star,) = items["b.mjs:*"]["exports"]
    assert (star["form"], star["specifier"], star["source"]) == ("star", "./c.js", "export * from './c.js';")
    found = [(site["path"], site["kind"], site["bindings"]) for site in items["b.mjs:b"]["references"]]
    assert found == [
        ("a.js", "import", ["b", "also"]),
        ("a.js", "export-from", []),
        ("d.ts", "import-type", ["b"]),
    ]
    # The same site at the file itself binds all of its names.
    whole = [(site["path"], site["bindings"]) for site in items["b.mjs"]["references"]]
    assert whole[0] == ("a.js", ["b", "also", "d"])
    assert items["b.mjs"]["exports"] == []
    names = {row["specifier"]: exporting.items[row["reference_id"]]["names"] for row in exporting.references}
    assert names["./b.mjs"] == ["x"]


def test_an_odd_name_has_an_identity_of_its_own(tmp_path: Path) -> None:
    long = "n" * 5000
    source = f"let a; export {{ a as 'b.js:c', a as '{long}', a as '{long}2', a as '' }}; exports"
    root = write_tree(
        tmp_path / "app", {"a.js": source, "a.js:b.js": "export let c", "l.js": r"exports['\ud800'] = 1"}
    )
    found = [row for row in analyse(root, tmp_path / "work").modules if row["strategy"] == "module-export"]
    assert len({row["node_id"] for row in found}) == len(found) == 6
    # A key may be read in two ways; path and name cannot.
    same = [(row["path"], row["export"]) for row in found if row["identity"]["key"] == "a.js:b.js:c"]
    assert same == [("a.js", "b.js:c"), ("a.js:b.js", "c")]
    assert {row["export"] for row in found if row["path"] == "l.js"} == {"\ud800"}
    assert max(len(row["export"]) for row in found) < 2100


def test_very_many_names_take_room_in_proportion(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(2000)]
    root = write_tree(
        tmp_path / "app",
        {"a.js": f"import {{ {', '.join(names)} }} from './b.js'", "b.js": f"export let {', '.join(names)}"},
    )
    found = analyse(root, tmp_path / "work")
    items = [item for item in found.items.values() if item.get("export")]
    assert len(items) == 2000
    assert all(len(item["references"]) == len(item["references"][0]["bindings"]) == 1 for item in items)


def test_a_module_that_is_referred_to_very_often_lists_the_first_references_and_counts_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "MAX_LISTED", 3)
    files = {"a.js": b"require('./c');" * 2, "b.js": b"require('./c');" * 5, "c.js": b""}
    found = analyse(write_tree(tmp_path / "app", files), tmp_path / "work")
    (item,) = [found.items[row["node_id"]] for row in found.modules if row["path"] == "c.js"]
    assert (item["sites"], item["ranges"]) == (7, 7)
    assert [site["path"] for site in item["references"]] == ["a.js", "a.js", "b.js"]
    assert len(found.references) == 7
