"""`affidavit verify`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from affidavit.errors import VerificationError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.bundles.merging import OpenBundle
from affidavit.evidence.files import open_input
from affidavit.evidence.verification.answer import Lookup
from affidavit.evidence.verification.files import Lookups, check_file, kind_of
from affidavit.evidence.verification.report import NOT_PROVEN, Problem, Report, refused
from affidavit.interfaces.cli.output import Common, emit, harmless
from affidavit.store import Store

__all__ = ["verify"]

_MB = 1 << 20
_DOES_NOT_HOLD = 4
_FILE = "store.sqlite"


def verify(
    file: Path,
    *,
    evidence: Annotated[list[Path] | None, Parameter(negative="")] = None,
    max_mb: Annotated[int, Parameter(name="--max-mb")] = 1024,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Check an answer, a bundle or a journal, offline; exits with 4 when it does not hold, naming each place.

    A bundle and a journal need nothing else. An answer as `run --json` prints it is checked against the records of the
    bundles that are named, or else of the workspace.

    Args:
        file: The file.
        evidence: A bundle with the records that an answer cites; repeatable.
        max_mb: Largest size of each file, unpacked.
    """
    report = _report(file, evidence or [], Bounds(file_bytes=max_mb * _MB), common)
    if common.json:
        emit({"file": str(file), **report.as_json()})
    else:
        sys.stdout.write(_text(file, report))
    return 0 if report.holds else _DOES_NOT_HOLD


def _report(file: Path, evidence: list[Path], bounds: Bounds, common: Common) -> Report:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(
                open_input(file, 1 << 40 if file.suffix == ".jsonl" else bounds.file_bytes)
            )
            kind = kind_of(opened, file.name)
            if kind == "journal":
                return _journal(file)
        except VerificationError as error:
            return refused("file", error)
        lookups: list[Lookup] = [
            OpenBundle.read(
                str(path), stack.enter_context(open_input(path, bounds.file_bytes)), bounds
            ).lookup
            for path in evidence
        ]
        if kind == "answer" and not evidence and (common.workspace / _FILE).is_file():
            store = stack.enter_context(
                Store.open(common.workspace, tenant=common.tenant, create=False, to_read=True)
            )
            lookups.append(store.evidence)
        return check_file(opened, kind, Lookups(lookups) if lookups else None, bounds)


def _journal(file: Path) -> Report:
    from affidavit.store.journal.verify import verify as verify_journal

    try:
        found = verify_journal(file)
    except VerificationError as error:
        return refused("journal", error)
    document = found.as_json()
    return Report(
        kind="journal",
        problems=tuple(
            Problem(
                place=f"{it.file} line {it.line}", code="journal-damaged", message=it.message, offset=it.place
            )
            for it in found.problems
        ),
        counts={"lines": found.lines, "events": found.events, "records": found.records, "blobs": found.blobs},
        notes=tuple(found.notes()),
        details={"journal": {name: value for name, value in document.items() if name != "problems"}},
    )


def _text(file: Path, report: Report) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in report.counts.items() if count)
    verdict = "holds" if report.holds else "DOES NOT HOLD"
    out = [f"{file}: {report.kind} {verdict}" + (f" ({counts})" if counts else "")]
    for problem in report.problems:
        where = f" (byte {problem.offset})" if problem.offset is not None else ""
        out.append(f"  {problem.place}{where}: {problem.message} [{problem.code}]")
    out += [f"note: {note}" for note in report.notes]
    out += [f"not proven: {note}" for note in NOT_PROVEN]
    return "".join(harmless(line, keep="") + "\n" for line in out)  # a stranger's file speaks in some of them
