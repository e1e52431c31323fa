"""`affidavit run` and `affidavit check`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from affidavit.errors import UsageError
from affidavit.interfaces.cli.arguments import read_pairs, read_source
from affidavit.interfaces.cli.mounts import progress_on_stderr
from affidavit.interfaces.cli.output import Common, emit, harmless, say
from affidavit.interfaces.cli.records.journal import Journalling
from affidavit.interfaces.cli.show import answer_text, diagnostics_text, error_text, value_text
from affidavit.policy import parse_grant
from affidavit.runtime.program import Limits
from affidavit.runtime.rendering.settlement import settlement
from affidavit.runtime.replay.recording import find_run
from affidavit.runtime.run import Run
from affidavit.workspace import Workspace

__all__ = ["check", "run"]

_REFUSED = ("call-refused", "budget-exceeded")


def run(
    script: str | None = None,
    *,
    reuse: str | None = None,
    vary: Annotated[list[str] | None, Parameter(negative="")] = None,
    was: Annotated[list[str] | None, Parameter(negative="")] = None,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    session: str | None = None,
    engine: Literal["auto", "cpython", "monty"] = "auto",
    input: Annotated[list[str] | None, Parameter(negative="")] = None,  # noqa: A002
    grant: Annotated[list[str] | None, Parameter(negative="")] = None,
    seconds: float = 300.0,
    cpu_seconds: float = 60.0,
    memory_mb: int = 512,
    calls: int = 10_000,
    brief: Annotated[bool, Parameter(negative="")] = False,
    idempotency_key: str | None = None,
    wait: float | None = None,
    journalling: Journalling = Journalling(),  # noqa: B008
    common: Common = Common(),  # noqa: B008
) -> int:
    """Run a script; every call that it makes becomes a record with an evidence id.

    Args:
        script: File with the script, or - for standard input.
        reuse: Instead of a file, the script of this earlier run (id, or number in the session), with other values.
        vary: With --reuse: NAME=VALUE, the new value of an input or of what a literal stands under; repeatable.
        was: With --reuse: NAME=VALUE, the value that varies under this name, where the name alone does not tell.
        mount: NAME=URI to mount for this session; repeatable.
        session: Session to go on with; by default a new one, with --reuse that of the earlier run.
        engine: Which sandbox. auto takes cpython where its isolation is proven, else monty.
        input: NAME=JSON (or NAME=@FILE): a typed global of the script; repeatable.
        grant: EFFECT or EFFECT:PATTERN to allow, for example external:tool.weather.*; repeatable.
        seconds: Wall seconds that the script may take.
        cpu_seconds: CPU seconds that the script may take.
        memory_mb: Megabytes of memory that the script may use.
        calls: How many calls it may make.
        brief: Print a bounded account: status, type, a preview, what was cut, and what reaches the whole.
        idempotency_key: The same request again under the same key is not run again: its first result is shown.
        wait: Seconds to wait for scripts of the session that were requested before; as long as it takes by default.
    """
    misplaced = input if reuse is not None else vary or was
    if (script is None) == (reuse is None) or misplaced:
        hint = "affidavit run FILE [--input NAME=VALUE], or affidavit run --reuse RUN --vary NAME=VALUE"
        raise UsageError("usage", "run takes either a script, or --reuse and the values that vary", hint=hint)
    source = read_source(script) if script is not None else ""
    inputs, varied, meant = read_pairs(input or []), read_pairs(vary or []), read_pairs(was or [])
    limits = Limits(wall_seconds=seconds, cpu_seconds=cpu_seconds, memory_bytes=memory_mb << 20, calls=calls)

    async def body() -> Run:
        async with Workspace.open(
            common.workspace,
            tenant=common.tenant,
            grants=[parse_grant(text) for text in grant or []],
            journal=journalling.settings(),
        ) as workspace:
            into, earlier = (session, "") if reuse is None else _earlier(workspace, reuse, session)
            if into is not None and workspace.store.events.last(into) is None:
                say(f"note: there was no session {into} before")
            opened = await workspace.session(into, mounts=mount or [], progress=progress_on_stderr())
            if earlier:
                finished = await opened.reuse(
                    earlier,
                    vary=varied,
                    was=meant,
                    engine=engine,
                    limits=limits,
                    idempotency_key=idempotency_key,
                    wait_seconds=wait,
                )
            else:
                finished = await opened.run(
                    source,
                    engine=engine,
                    inputs=inputs,
                    limits=limits,
                    idempotency_key=idempotency_key,
                    wait_seconds=wait,
                )
            notices = workspace.notices()
            for note in notices if common.json or brief else ():
                say(f"note: {note}")
            return replace(finished, notes=(*finished.notes, *notices))

    finished = asyncio.run(body())
    if common.json:
        emit(finished.as_json())
    elif brief:
        sys.stdout.write(settlement(finished) + "\n")
    else:
        _print(finished)
    return _exit_code(finished)


def _earlier(workspace: Workspace, run: str, session: str | None) -> tuple[str, str]:
    """The session to run in, and the id of the earlier run."""
    run_id = find_run(workspace.store, run, session=session if run.isdecimal() else None)
    requested = workspace.store.events.last(run=run_id)
    assert requested is not None
    return session or requested.session, run_id


def check(
    script: str,
    *,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    session: str | None = None,
    input: Annotated[list[str] | None, Parameter(negative="")] = None,  # noqa: A002
    common: Common = Common(),  # noqa: B008
) -> int:
    """Check a script as `run` would, without running it.

    Args:
        script: File with the script, or - for standard input.
        mount: NAME=URI to mount for this session; repeatable.
        session: Session whose view to check with.
        input: NAME=JSON (or NAME=@FILE): a typed global of the script; repeatable.
    """
    source = read_source(script)
    inputs = read_pairs(input or [])

    async def body() -> Any:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            opened = await workspace.session(session, mounts=mount or [], progress=progress_on_stderr())
            return await opened.check(source, inputs=inputs)

    verdict = asyncio.run(body())
    found = [diagnostic.as_json() for diagnostic in verdict.diagnostics]
    if common.json:
        emit({"status": verdict.status, "reason": verdict.reason, "diagnostics": found})
    else:
        sys.stdout.write(diagnostics_text(found) + verdict.status + "\n")
    return 1 if verdict.status == "rejected" else 0


def _exit_code(finished: Run) -> int:
    if finished.status == "succeeded":
        return 0
    code = str((finished.error or {}).get("code", ""))
    return 5 if code in _REFUSED else 1


def _print(finished: Run) -> None:
    for note in finished.notes:
        say(f"note: {note}")
    if finished.diagnostics:
        say(diagnostics_text(finished.diagnostics).rstrip("\n"))
    if finished.stdout:
        sys.stdout.write(harmless(finished.stdout.removesuffix("\n")) + "\n")
    if finished.stdout_cut:
        say(f"note: {finished.stdout_cut} more characters of output were dropped")
    if finished.has_value:
        sys.stdout.write(value_text(finished.value) + "\n")
    if finished.answer is not None:
        sys.stdout.write(answer_text(finished.answer) + "\n")
    sys.stdout.flush()
    where = f"session {finished.session_id}, run {finished.number}"
    if finished.status == "rejected":
        say(f"rejected before running; no call was made ({where})")
        return
    if finished.error is not None:
        say(error_text(finished.error))
    made = len(finished.calls)
    say(f"{finished.status} in {finished.engine}: {made} call{'s' * (made != 1)} recorded ({where})")
