"""`affidavit session list|show`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from affidavit.errors import NotFoundError
from affidavit.interfaces.cli.output import Common, emit, lines
from affidavit.runtime.run import RunView, runs_of
from affidavit.store import Store

__all__ = ["show", "show_all"]


def show_all(*, common: Common = Common()) -> int:  # noqa: B008
    """List sessions with what they did."""
    with Store.open(common.workspace, tenant=common.tenant) as store:
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
    """Show the runs of a session.

    Args:
        session_id: Its id.
        events: Show every event instead.
    """
    with Store.open(common.workspace, tenant=common.tenant) as store:
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
    runs = [_run(view) for view in runs_of(log)]
    if common.json:
        emit({"session_id": session_id, "runs": runs})
    else:
        sys.stdout.write((lines(runs, ["number", "run_id", "status", "engine", "calls"]) or "no runs") + "\n")
    return 0


def _session(store: Store, session: str) -> dict[str, Any]:
    log = list(store.events.of_session(session))
    opened = datetime.fromtimestamp(log[0].at, UTC).isoformat(timespec="seconds")
    return {"session_id": session, "opened": opened, "runs": len(runs_of(log)), "events": len(log)}


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
