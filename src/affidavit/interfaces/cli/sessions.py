"""`affidavit session list|show`, `affidavit results`, `affidavit preamble set|remove|show`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from affidavit.errors import NotFoundError
from affidavit.evidence import values
from affidavit.interfaces.cli.arguments import read_source
from affidavit.interfaces.cli.output import Common, emit, harmless, lines, say
from affidavit.interfaces.cli.show import value_text
from affidavit.runtime.memory.results import ResultRow
from affidavit.runtime.run import RunView, runs_of
from affidavit.runtime.session import Session
from affidavit.runtime.turns import Turns
from affidavit.store import Store
from affidavit.store.event_kinds import sound
from affidavit.workspace import Workspace

__all__ = ["preamble_remove", "preamble_set", "preamble_show", "results", "show", "show_all"]


def show_all(*, common: Common = Common()) -> int:  # noqa: B008
    """List sessions with what they did."""
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        found = [_session(store, session) for session in store.events.sessions()]
    if common.json:
        emit({"sessions": found})
    else:
        sys.stdout.write(
            (lines(found, ["session_id", "opened", "runs", "events"]) or "no sessions yet") + "\n"
        )
    return 0


def show(
    session_id: str,
    *,
    events: Annotated[bool, Parameter(negative="")] = False,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Show the runs of a session. Those whose process is gone are settled as orphaned first, where that can be written.

    Args:
        session_id: Its id.
        events: Show every event instead.
    """
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        log = list(store.events.of_session(session_id))
        if store.writable and any(view.status == "running" for view in runs_of(log)):
            locks = common.workspace / "locks"
            locks.mkdir(exist_ok=True)
            Turns(store, session_id, folder=locks, now=time.time).recover()
            log = list(store.events.of_session(session_id))
    if not log:
        raise NotFoundError(
            "session-not-found", f"no session {session_id!r}", hint="`affidavit session list`"
        )
    if events:
        found = [asdict(event) for event in log]
        if common.json:
            emit({"session_id": session_id, "events": found})
        else:
            sys.stdout.write(lines(found, ["seq", "at", "kind", "run", "evidence_id"]) + "\n")
        return 0
    _tell_odd(session_id, len(log) - len([*sound(log)]))
    runs = [_run(view) for view in runs_of(log)]
    if common.json:
        emit({"session_id": session_id, "runs": runs})
    else:
        sys.stdout.write((lines(runs, ["number", "run_id", "status", "engine", "calls"]) or "no runs") + "\n")
    return 0


def results(
    number: int | None = None,
    *,
    session: str,
    common: Common = Common(),  # noqa: B008
) -> int:
    """List what the next script of a session finds as `results`, newest first; or show one value in full.

    Args:
        number: Number of a run, to show the value that it returned.
        session: The session.
    """

    async def body(opened: Session) -> Any:
        if number is None:
            return [_row(row) for row in opened.results()]
        return values.plain(values.encode(opened.result(number)))

    found = _in_session(session, common, body)
    if number is not None:
        if common.json:
            emit({"session_id": session, "number": number, "value": found})
        else:
            sys.stdout.write(value_text(found) + "\n")
    elif common.json:
        emit({"session_id": session, "results": found})
    else:
        columns = ["position", "number", "kind", "size", "run_id"]
        shown = [{"position": f"results[{at}]", **row} for at, row in enumerate(found)]
        sys.stdout.write((lines(shown, columns) or "no results yet") + "\n")
    return 0


def preamble_set(
    key: str,
    file: str,
    *,
    session: str,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Pin code above every later script of a session; the same key replaces it.

    Args:
        key: Name of the entry: letters, digits, dot, dash, underscore.
        file: File with the code, or - for standard input.
        session: The session.
    """
    code = read_source(file)

    async def body(opened: Session) -> None:
        await opened.set_preamble(key=key, code=code)

    _in_session(session, common, body)
    if common.json:
        emit({"session_id": session, "key": key, "set": True})
    else:
        say(f"set {key}: every later script of {session} finds it")
    return 0


def preamble_remove(key: str, *, session: str, common: Common = Common()) -> int:  # noqa: B008
    """Remove an entry of a session's preamble; always possible.

    Args:
        key: Name of the entry.
        session: The session.
    """

    async def body(opened: Session) -> None:
        opened.remove_preamble(key)

    _in_session(session, common, body)
    if common.json:
        emit({"session_id": session, "key": key, "removed": True})
    else:
        say(f"removed {key}")
    return 0


def preamble_show(*, session: str, common: Common = Common()) -> int:  # noqa: B008
    """Show a session's preamble.

    Args:
        session: The session.
    """

    async def body(opened: Session) -> Any:
        return [{"key": entry.key, "code": entry.code} for entry in opened.get_preamble()]

    found = _in_session(session, common, body)
    if common.json:
        emit({"session_id": session, "preamble": found})
    else:
        text = "\n".join(f"# {entry['key']}\n{entry['code'].rstrip()}\n" for entry in found)
        sys.stdout.write(harmless(text) or "no preamble\n")
    return 0


def _in_session(session: str, common: Common, body: Callable[[Session], Awaitable[Any]]) -> Any:
    """Do something with a session that is there already."""

    async def opened() -> Any:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            if workspace.store.events.last(session) is None:
                raise NotFoundError(
                    "session-not-found", f"no session {session!r}", hint="`affidavit session list`"
                )
            return await body(await workspace.session(session))

    return asyncio.run(opened())


def _row(row: ResultRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "run_id": row.run_id,
        "kind": row.kind,
        "size": row.size,
        "error": row.error,
    }


def _session(store: Store, session: str) -> dict[str, Any]:
    log = store.events.of_session(session)
    good = [*sound(log)]
    opened = datetime.fromtimestamp(good[0].at, UTC).isoformat(timespec="seconds") if good else None
    _tell_odd(session, len(log) - len(good))
    return {
        "session_id": session,
        "opened": opened,
        "runs": len(runs_of(good)),
        "events": len(log),
        "odd_events": len(log) - len(good),
    }


def _tell_odd(session: str, count: int) -> None:
    """Say that a log holds what no session writes: it was edited, or restored from elsewhere."""
    if count:
        say(f"note: {count} events of session {session} are left out: `affidavit doctor --store` says why")


def _run(view: RunView) -> dict[str, Any]:
    return {
        "number": view.number,
        "run_id": view.run_id,
        "status": view.status,
        "engine": view.engine or None,
        "calls": len(view.calls),
        "evidence": [event.evidence_id for event in view.calls],
        "error": view.settled.get("error"),
        "answer": view.settled.get("answer"),
    }
