"""Analysing something for a test, and looking at all that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from affidavit.analyzers.javascript.analyzer import JavaScriptAnalyzer
from affidavit.evidence.record import Subject
from affidavit.extensions import Analysis, Progress
from affidavit.facts.factfile import FactFile, FactFileWriter

Row = Mapping[str, Any]


def ignore(done: int, total: int, what: str) -> None:
    """A progress callback that shows nothing."""


@dataclass(frozen=True, kw_only=True)
class Analysed:
    """Every row of a dataset, and the full items by their keys."""

    subject: Subject
    analysis: Analysis
    digest: str
    files: list[Row]
    modules: list[Row]
    references: list[Row]
    items: Mapping[str, Row]

    @property
    def codes(self) -> dict[str, str]:
        """The code of each limitation by its place."""
        return {one.place: one.code for one in self.analysis.limitations}

    def file(self, path: str) -> Row:
        return next(row for row in self.files if row["path"] == path)

    def counts(self, path: str, status: str = "external") -> dict[str, int]:
        """How often a file refers to each module of a status."""
        return {
            row["identity"]["key"]: row["sites"]
            for row in self.modules
            if row["path"] == path and row["status"] == status
        }


def analyse(
    path: Path, work: Path, *, analyzer: JavaScriptAnalyzer | None = None, progress: Progress = ignore
) -> Analysed:
    """Identify and analyse a file or folder; the fact file goes into `work`."""
    analyzer = analyzer or JavaScriptAnalyzer()
    artifact = analyzer.identify(path)
    work.mkdir(exist_ok=True)
    place = work / f"{len(list(work.iterdir()))}.facts"
    writer = FactFileWriter(place, analyzer.collections)
    try:
        analysis = analyzer.analyze(artifact, writer, progress)
        with writer.finish({}) as facts:
            rows = {spec.name: all_rows(facts, spec.name) for spec in analyzer.collections}
            items: dict[str, Row] = {}
            for spec in analyzer.collections:
                for row in rows[spec.name]:
                    (body,) = facts.items(spec.name, [row[spec.key]]).values()
                    items[row[spec.key]] = facts.decode([body])[0]
            return Analysed(
                subject=artifact.subject, analysis=analysis, digest=facts.digest, items=items, **rows
            )  # fmt: skip
    finally:
        writer.abort()


def all_rows(facts: FactFile, collection: str) -> list[Row]:
    return facts.decode(facts.rows(collection, range(facts.total(collection))))
