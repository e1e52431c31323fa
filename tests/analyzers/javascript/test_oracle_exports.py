"""Exported names, and names asked for, equal what independent readers say of real files.

They are es-module-lexer and acorn for modules of ECMAScript, cjs-module-lexer and a reader on acorn with eslint-scope
for CommonJS, and the binder of the TypeScript compiler for TypeScript and JSX.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.references import FileFacts, extract
from tests.analyzers.javascript.test_oracle_references import named, sources
from tests.real_inputs import application, oracle_answers, unpacked

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]

Files = list[tuple[LanguageName, Path]]

CORPORA: dict[str, Callable[[], Files]] = {
    "k8slens": lambda: named(
        unpacked("k8slens"), "static/build/library/main.js", "static/build/library/renderer.js"
    ),
    "k8slens-types": lambda: sources(unpacked("k8slens"), ".d.ts"),
    "lvce": lambda: sources(application("lvce")),
    "nightmare": lambda: sources(application("nightmare")),
    "pdfjs-worker": lambda: named(unpacked("pdfjs"), "build/pdf.worker.min.mjs", "build/pdf.worker.mjs"),
    "typescript": lambda: named(unpacked("typescript"), "lib/typescript.js"),
    "babel": lambda: named(unpacked("babel"), "babel.min.js"),
    "vue-devtools": lambda: sources(application("vue-devtools"), ".js", ".mjs", ".cjs"),
    "vue-devtools-types": lambda: sources(application("vue-devtools"), ".ts", ".mts", ".cts"),
    "theia-sources": lambda: sources(unpacked("theia") / "src", ".ts", ".tsx"),
    "theia-compiled": lambda: sources(unpacked("theia") / "lib", ".js"),
    "kobalte": lambda: sources(unpacked("kobalte")),
    "solid-router": lambda: sources(unpacked("solid-router")),
}


@dataclass(slots=True)
class Comparison:
    """Two readings of many files side by side."""

    unread: list[str] = field(default_factory=list[str])
    systems: Counter[str] = field(default_factory=Counter[str])
    names: int = 0
    different: list[str] = field(default_factory=list[str])

    def equal(self, path: Path, what: str, mine: Any, theirs: Any) -> None:
        if mine != theirs:
            self.different.append(f"{path} {what}: {mine} is not {theirs}")


def compare(files: Files) -> Comparison:
    result = Comparison()
    for (language, path), answer in zip(files, oracle_answers(files, "exports.mjs"), strict=True):
        if "error" in answer:
            result.unread.append(f"{path}: {answer['error']}")
            continue
        facts = extract(path.read_bytes(), language)
        result.systems[answer["system"]] += 1
        result.names += len(answer["names"])
        mine = sorted({one.name for one in facts.exports})
        result.equal(path, "names", mine, answer["names"])
        if answer["system"] != "typescript":
            result.equal(path, "stars", stars(facts), answer["stars"])
        if answer["system"] == "esm":
            result.equal(path, "asked", asked(facts), answer["asked"])
        elif answer["system"] == "commonjs":
            # What the lexer sees and the product does not would be a miss; the product sees more.
            result.equal(path, "lexed", sorted(set(answer["lexed"]) - set(mine)), [])
            relexed = set(answer["relexed"]) - set(stars(facts)) - partly_required(facts, path)
            result.equal(path, "relexed", sorted(relexed), [])
    return result


def partly_required(facts: FileFacts, path: Path) -> set[str]:
    """Modules of which `module.exports = require("m").a` takes a part: to the lexer that is the whole of it."""
    data = path.read_bytes()
    values = [one.span for one in facts.exports if one.form == "value"]
    texts = [data[span.start.offset : span.end.offset].decode() for span in values]
    found = [re.search(r"=\s*require\(['\"]([^'\"]+)['\"]\)\s*[.(\[]", text) for text in texts]
    return {match[1] for match in found if match}


def stars(facts: FileFacts) -> list[str]:
    return sorted({one.specifier for one in facts.exports if one.name == "*" and one.specifier is not None})


def asked(facts: FileFacts) -> list[list[Any]]:
    """What the declarations of a file ask for, by specifier and name."""
    found: dict[tuple[str, str], list[str]] = {}
    for site in facts.references:
        if site.kind in {"import", "export-from"} and site.specifier is not None:
            for name, locals_ in site.names:
                found.setdefault((site.specifier, name), []).extend(locals_)
    return sorted([specifier, name, sorted(bound)] for (specifier, name), bound in found.items())


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_exported_name_equals_the_oracle(corpus: str) -> None:
    files = CORPORA[corpus]()
    result = compare(files)
    assert result.different == []
    assert result.systems.total() + len(result.unread) == len(files) > 0
    assert len(result.unread) <= len(files) // 100, result.unread
