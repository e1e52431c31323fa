"""`affidavit journal verify|restore|tail`, and the options of commands that write one."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from affidavit.errors import UsageError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical
from affidavit.interfaces.cli.output import Common, emit, harmless, lines, say
from affidavit.store import Store
from affidavit.store.events import Event
from affidavit.store.journal import JournalSettings, Problem, Report
from affidavit.store.journal import restore as restore_journal
from affidavit.store.journal import verify as verify_journal
from affidavit.store.journal.contents import Contents
from affidavit.store.journal.restore import restorable
from affidavit.store.journal.verify import open_walk, report

__all__ = ["Journalling", "restore", "tail", "verify"]

_DOES_NOT_HOLD = 4
_SHOWN = 20


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Journalling:
    """Options of commands that run something in a session."""

    journal: Annotated[Path | None, Parameter(env_var="AFFIDAVIT_JOURNAL")] = None
    "Folder in which to keep a journal of the session: a file that can be checked and restored by itself."
    journal_fsync: Annotated[
        Literal["always", "batch", "never"], Parameter(env_var="AFFIDAVIT_JOURNAL_FSYNC")
    ] = "batch"
    "When its lines are forced to the disk: each at once, every second or 8 MiB, or when the system likes."
    journal_bytes: Annotated[int, Parameter(env_var="AFFIDAVIT_JOURNAL_BYTES")] = 1 << 30
    "Bound of the journal's size. At the bound a line says so, and the session goes on without it."

    def settings(self) -> JournalSettings | None:
        """What was asked for, or None when no journal was."""
        if self.journal is None:
            return None
        part_bytes = min(256 << 20, self.journal_bytes)
        return JournalSettings(
            folder=self.journal.absolute(),
            fsync=self.journal_fsync,
            max_bytes=self.journal_bytes,
            part_bytes=part_bytes,
        )


def verify(file: Path, *, common: Common = Common()) -> int:  # noqa: B008
    """Check a journal with nothing but its files. Exit code 4 when it does not hold.

    Args:
        file: The journal; its other parts are looked for beside it.
    """
    found = verify_journal(file)
    if common.json:
        emit(found.as_json())
    else:
        sys.stdout.write(_verdict(file, found))
        _print_problems(found.problems)
    return 0 if found.status == "holds" else _DOES_NOT_HOLD


def restore(
    file: Path,
    *,
    partial: Annotated[bool, Parameter(negative="")] = False,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Bring the records and events of a journal back into a workspace, each record under its old id.

    Args:
        file: The journal; its other parts are looked for beside it.
        partial: Restore what is readable of a damaged journal.
    """
    checked = restorable(file, partial=partial)  # refuses before a workspace is made
    with Store.open(common.workspace, tenant=common.tenant) as store:
        done = restore_journal(file, store, partial=partial, checked=checked)
    if common.json:
        emit(done.as_json())
        return 0
    sys.stdout.write(
        f"session {harmless(done.report.session, keep='')}: {done.events} events and {done.records} records restored,"
        f" {done.report.events - done.events} events and {done.report.records - done.records} records were there\n"
    )
    for conflict in done.conflicts:
        say(harmless(f"not in force: {conflict}", keep=""))
    _print_problems(done.report.problems)
    return 0


def tail(file: Path, *, count: int = _SHOWN, common: Common = Common()) -> int:  # noqa: B008
    """Show the last events of a journal.

    Args:
        file: The journal; its other parts are looked for beside it.
        count: How many events.
    """
    if count < 1:
        raise UsageError("usage", f"--count {count} shows nothing", hint="give a number above 0")
    contents = Contents(open_walk(file))
    kept: deque[Event] = deque(maxlen=count)
    kept.extend(item for item in contents.items() if isinstance(item, Event))
    found = report(contents, file)
    if common.json:
        events = [_event(item) | {"data": values.plain(item.data)} for item in kept]
        emit({"session": found.session, "status": found.status, "events": events})
        return 0
    rows = [_event(item) | {"data": _short(item.data)} for item in kept]
    sys.stdout.write((lines(rows, ["at", "kind", "run", "evidence_id", "data"]) or "no events") + "\n")
    if found.status != "holds":
        say(f"this journal is {found.status}: `affidavit journal verify {file}` says where")
    return 0


def _event(event: Event) -> dict[str, Any]:
    return {
        "at": datetime.fromtimestamp(event.at, UTC).isoformat(timespec="milliseconds"),
        "kind": event.kind,
        "run": event.run,
        "evidence_id": event.evidence_id,
    }


def _short(data: Any) -> str:
    text = canonical(data, max_depth=204).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _verdict(file: Path, found: Report) -> str:
    words = {"holds": "holds", "torn": "holds up to its torn end", "damaged": "does not hold"}
    size = f"{found.events} events, {found.records} records, {found.blobs} blobs in {found.lines} lines"
    end = "; closed" if found.closed else ""
    session = harmless(found.session or "unknown", keep="")
    text = f"{file}: {words[found.status]}\n  session {session}: {size}{end}\n"
    return text + "".join(f"  {harmless(note, keep='')}\n" for note in found.notes())


def _print_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        place = f"{problem.file}, line {problem.line}, byte {problem.place}"
        say(harmless(f"{problem.kind} at {place}: {problem.message}", keep=""))
