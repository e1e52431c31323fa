"""Every site of real files equals what independent readers say.

They are acorn with eslint-scope, and the TypeScript compiler with the scope manager of typescript-eslint.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript.languages import LanguageName, language_of
from affidavit.analyzers.javascript.references import ErrorRange, FileFacts, extract
from tests.analyzers.javascript.extraction import as_answer
from tests.real_inputs import application, oracle_answers, unpacked

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]


def sources(root: Path, *suffixes: str) -> list[tuple[LanguageName, Path]]:
    """Source files below a folder, in one order; all of them unless suffixes are named."""

    def found() -> Iterator[tuple[LanguageName, Path]]:
        for path in sorted(root.rglob("*")):
            language = language_of(path.name)
            wanted = not suffixes or path.name.endswith(suffixes)
            if language is not None and wanted and path.is_file() and not path.is_symlink():
                yield language, path

    return list(found())


def named(root: Path, *names: str) -> list[tuple[LanguageName, Path]]:
    return [(language_of(name) or "javascript", root / name) for name in names]


CORPORA: dict[str, Callable[[], list[tuple[LanguageName, Path]]]] = {
    "k8slens-main": lambda: named(unpacked("k8slens"), "static/build/library/main.js"),
    "k8slens-renderer": lambda: named(unpacked("k8slens"), "static/build/library/renderer.js"),
    "lvce": lambda: sources(application("lvce")),
    "pdfjs-worker": lambda: named(unpacked("pdfjs"), "build/pdf.worker.min.mjs", "build/pdf.worker.mjs"),
    "babel": lambda: named(unpacked("babel"), "babel.min.js"),
    "mermaid": lambda: named(unpacked("mermaid"), "dist/mermaid.min.js"),
    "typescript": lambda: named(unpacked("typescript"), "lib/typescript.js", "lib/_tsc.js"),
    "nightmare": lambda: sources(application("nightmare")),
    "vue-devtools": lambda: sources(application("vue-devtools"), ".js", ".mjs", ".cjs"),
    "vue-devtools-types": lambda: sources(application("vue-devtools"), ".ts", ".mts", ".cts"),
    "theia-sources": lambda: sources(unpacked("theia") / "src", ".ts", ".tsx"),
    "theia-compiled": lambda: sources(unpacked("theia") / "lib", ".js"),
    "k8slens-types": lambda: sources(unpacked("k8slens"), ".d.ts"),
    "kobalte": lambda: sources(unpacked("kobalte")),
    "solid-router": lambda: sources(unpacked("solid-router")),
}


@dataclass(slots=True)
class Comparison:
    """Two readings of many files side by side."""

    files: int = 0
    unread: list[str] = field(default_factory=list[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    excused: list[str] = field(default_factory=list[str])
    different: list[str] = field(default_factory=list[str])


def compare(files: list[tuple[LanguageName, Path]]) -> Comparison:
    """Compare the product with the oracle, file by file.

    A difference is excused only inside or at the border of a range that the product itself lists as not understood, in
    a file that the oracle understands.
    """
    result = Comparison()
    for (language, path), answer in zip(files, oracle_answers(files), strict=True):
        if "error" in answer:
            result.unread.append(f"{path}: {answer['error']}")
            continue
        facts = extract(path.read_bytes(), language)
        mine = Counter(json.dumps(as_answer(site), sort_keys=True) for site in facts.references)
        theirs = Counter(json.dumps(site, sort_keys=True) for site in answer["references"])
        result.files += 1
        result.kinds.update(site["kind"] for site in answer["references"])
        for sign, site in [
            *(("+", each) for each in mine - theirs),
            *(("-", each) for each in theirs - mine),
        ]:
            excused = _is_in_error(json.loads(site), facts)
            (result.excused if excused else result.different).append(f"{sign} {path} {site}")
    return result


def _is_in_error(site: dict[str, Any], facts: FileFacts) -> bool:
    start, end = site["statement"][0], site["statement"][3]

    def touches(error: ErrorRange) -> bool:
        return error.span.start.offset <= end and start <= error.span.end.offset

    return any(touches(error) for error in facts.errors)


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_site_equals_the_oracle(corpus: str) -> None:
    files = CORPORA[corpus]()
    result = compare(files)
    assert result.different == []
    assert result.excused == []
    assert result.files + len(result.unread) == len(files) > 0
    assert len(result.unread) <= len(files) // 100, result.unread
