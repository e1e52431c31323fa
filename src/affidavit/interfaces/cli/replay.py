"""`affidavit replay`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Literal

import orjson

from affidavit.interfaces.cli.output import Common, emit, harmless, say
from affidavit.runtime.replay.replay import Replay
from affidavit.store.journal import restore
from affidavit.store.journal import verify as verify_journal
from affidavit.workspace import Workspace

__all__ = ["replay"]

_DIVERGED = 4
_SHOWN = 400


def replay(
    run: str,
    *,
    engine: Literal["cpython", "monty"] | None = None,
    session: str | None = None,
    journal: Path | None = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Run a recorded run again, offline: same calls, same clock, same seed. Exit code 4 when it comes out otherwise.

    Args:
        run: Its id, a prefix of it, or its number in the session or journal.
        engine: Another sandbox than the one that ran it.
        session: Session to look in.
        journal: Read the run from this journal instead of the workspace; its other parts are looked for beside it.
    """
    if journal is not None and not journal.is_file():
        verify_journal(journal)  # refuses
    done = asyncio.run(
        _from_journal(run, journal, engine) if journal else _replayed(run, session, engine, common)
    )
    if common.json:
        emit(done.as_json())
    else:
        _print(done)
    return 0 if done.same else _DIVERGED


async def _replayed(run: str, session: str | None, engine: str | None, common: Common) -> Replay:
    async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
        return await workspace.replay(run, session=session, engine=engine)


async def _from_journal(run: str, journal: Path, engine: str | None) -> Replay:
    """Replay from a journal alone, in a workspace that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="affidavit-replay-") as folder:
        async with Workspace.open(folder) as workspace:
            found = restore(journal, workspace.store)
            return await workspace.replay(run, session=found.report.session, engine=engine)


def _print(done: Replay) -> None:
    engine = (
        done.engine
        if done.engine == done.recorded_engine
        else f"{done.engine} (ran in {done.recorded_engine})"
    )
    where = f"session {done.session_id}, run {done.number}"
    if done.divergence is None:
        value = f"value {done.value}" if done.value else "no value"
        sys.stdout.write(f"same: {done.calls} call{'s' * (done.calls != 1)}, {done.status}, {value}\n")
    else:
        sys.stdout.write(f"diverged: {harmless(done.divergence.message)}\n")
        for name, value in (("recorded", done.divergence.recorded), ("replayed", done.divergence.replayed)):
            if value is not None:
                sys.stdout.write(f"  {name}: {_short(value)}\n")
    sys.stdout.flush()
    if done.python != done.recorded_python:
        say(f"note: Python {done.python} here, {done.recorded_python} then")
    if done.divergence is None and not done.same_output:
        say("note: it printed something else")
    say(f"replayed in {engine}, without any call outside ({where})")


def _short(value: object) -> str:
    text = harmless(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text) - _SHOWN} more characters)"
