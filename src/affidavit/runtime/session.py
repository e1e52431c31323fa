"""A session: one agent's runs, in order, kept as a log of events.

State is a reduction of the log (`run.runs_of`); a session therefore resumes by id from any process. One script runs
at a time in a session; many sessions run at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path
from typing import Any, cast

import orjson
from filelock import FileLock, Timeout

from affidavit.errors import FailedError, NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import JsonValue, Producer, Record, Unfinished
from affidavit.namespaces.infer import input_stub
from affidavit.policy import Budget, Grant
from affidavit.runtime.answer import Answer
from affidavit.runtime.broker import Broker
from affidavit.runtime.catalogue import Catalogue
from affidavit.runtime.desk import Aside, Desk
from affidavit.runtime.engines.engine import Choice, Engines, Refusal, without_memory
from affidavit.runtime.ledger import Ledger
from affidavit.runtime.memory.preamble import Preamble, Trial
from affidavit.runtime.memory.result_types import TypesOfResults, as_type, type_of
from affidavit.runtime.memory.results import INLINE_BYTES, ResultRow, Results
from affidavit.runtime.program import (
    RESULTS,
    CallResult,
    Earlier,
    Limits,
    PreambleEntry,
    Program,
    RunOutcome,
    ScriptCall,
)
from affidavit.runtime.repair import repair
from affidavit.runtime.run import (
    Run,
    RunStatus,
    RunView,
    refused,
    rejection,
    runs_of,
    script_error,
    unsupported,
)
from affidavit.runtime.typecheck import Checker, Verdict
from affidavit.runtime.typecheck.surroundings import Surroundings
from affidavit.runtime.unknowns import Inquiry
from affidavit.store import Event, Store
from affidavit.store.unknowns import Unknowns

__all__ = ["Parts", "Session"]

_RESERVED = ("df", "__builtins__", "__name__")

_STATUS: Mapping[str, RunStatus] = {
    "finished": "succeeded",
    "timed-out": "timed-out",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a session works with; the workspace wires it."""

    store: Store
    catalogue: Catalogue
    engines: Engines
    checker: Checker
    locks: Path
    grants: tuple[Grant, ...] = ()
    now: Callable[[], float] = time.time


class Session:
    """Runs scripts and direct calls, and records them.

    Args:
        session_id: the session's id; its log may already hold events.
        parts: what the workspace wired.
    """

    def __init__(self, session_id: str, parts: Parts) -> None:
        self.id = session_id
        self._parts = parts
        self._store = parts.store
        self._results = Results(parts.store, session_id)
        self._result_types = TypesOfResults(self._results)
        judge = Trial(parts.checker, parts.engines, stubs=parts.catalogue.stubs, now=parts.now)
        self._preamble = Preamble(parts.store, session_id, now=parts.now, judge=judge.problems)
        self._own: Mapping[str, Aside] = {
            RESULTS: self._results.serve,
            "session.set_preamble": self._preamble.serve_set,
            "session.remove_preamble": self._preamble.serve_remove,
            "session.get_preamble": self._preamble.serve_get,
        }
        self._unknowns = Unknowns(parts.store, now=parts.now)
        self._broker = Broker(
            parts.store,
            session=session_id,
            operations=parts.catalogue.operations,
            grants=parts.grants,
            now=parts.now,
        )

    @property
    def catalogue(self) -> Catalogue:
        """What scripts of this session may call."""
        return self._parts.catalogue

    def runs(self) -> list[RunView]:
        """Every run of this session as its log tells it, oldest first."""
        return runs_of(self._store.events.of_session(self.id))

    def results(self) -> tuple[ResultRow, ...]:
        """The rows that the next script finds as `results`, newest first."""
        return self._results.rows()

    def result(self, number: int) -> Any:
        """The value of an earlier run by its number, as Python sees it.

        Raises:
            NotFoundError: `run-not-found`.
            UsageError: `result-unavailable`, when the run failed or its value is no longer kept.
        """
        row = self._results.by_run(number)
        if row is None:
            raise NotFoundError("run-not-found", f"no result of run {number}", hint="`affidavit results`")
        return values.decode(orjson.loads(self._results.content(row)))

    async def set_preamble(self, *, key: str, code: str) -> None:
        """Pin code above every later script of this session; the same key replaces it.

        Raises:
            RejectedError: `preamble-invalid`, with key and line of what the entry would break.
            UsageError: `preamble-invalid`, for a malformed key or too much code.
        """
        await self._preamble.set(key, code)

    def remove_preamble(self, key: str) -> None:
        """Remove an entry of the preamble; possible whatever is wrong with it.

        Raises:
            NotFoundError: `preamble-not-found`.
        """
        self._preamble.remove(key)

    def get_preamble(self) -> tuple[PreambleEntry, ...]:
        """The entries of the preamble, in the order in which their keys were first set."""
        return self._preamble.entries()

    async def check(self, source: str, *, inputs: Mapping[str, Any] | None = None) -> Verdict:
        """Check a script without running it; inputs are Python values by name."""
        encoded = _encoded(inputs or {})
        script = repair(source).source
        return await self._check(script, encoded, self._around(script, encoded)[0])

    async def run(
        self,
        source: str,
        *,
        engine: str = "auto",
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_call: Callable[[ScriptCall], None] | None = None,
    ) -> Run:
        """Repair, check and run a script; whatever happens to it is a `Run`, not an exception.

        Args:
            source: the script.
            engine: `auto`, `cpython` or `monty`.
            inputs: Python values that the script finds under these global names, typed from the values.
            limits: bounds of the run; the defaults are those of `Limits`.
            on_call: told of each call before it is made, for progress displays.

        Raises:
            FailedError: `session-busy`, when the session runs a script already; `engine-unavailable`.
            UsageError: `value-unsupported`, when an input cannot cross into the sandbox.
        """
        encoded = _encoded(inputs or {})
        async with self._alone():
            return await self._run(source, engine, encoded, limits or Limits(), on_call)

    async def call(self, path: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call one operation directly, by its path below `df`. Recorded like a script's call."""
        ledger = Ledger(run=None, budget=Budget(), started=self._parts.now())
        encoded = {name: values.encode(value) for name, value in arguments.items()}
        return await self._broker.call(ScriptCall(path=path, arguments=encoded, line=0), ledger)

    def recover(self) -> str | None:
        """Settle the last run as `orphaned` when its worker is gone; returns its id. Nothing is run again.

        Only to be called with the session's lock held: a run that is not settled while nobody holds the lock is lost.
        Runs go one at a time and each start recovers first, so only the last can be open.
        """
        last = self._store.events.last(self.id, kind="run-requested")
        if last is None or self._store.events.last(self.id, run=last.run, kind="run-settled") is not None:
            return None
        [view] = runs_of(self._store.events.of_run(last.run or ""))
        for started in view.started:
            self._unfinished(view, cast("dict[str, Any]", started.data))
        self._log("run-settled", {"status": "orphaned", "has_value": False}, run=view.run_id)
        return view.run_id

    def _unfinished(self, view: RunView, data: dict[str, Any]) -> None:
        name, version = data["producer"]
        record = Record(
            kind="observation",
            operation=data["contract"],
            parameters=data["parameters"],
            outcome=Unfinished(),
            producer=Producer(name=name, version=version),
            authority=data["authority"],
            confidence=data["confidence"],
        )
        kept = {key: data[key] for key in ("operation", "line", "column", "iteration", "call", "contract")}
        kept |= {"status": "unfinished", "code": "", "duration_ms": None}
        self._log("call-recorded", kept, run=view.run_id, record=record)

    def _next_number(self) -> int:
        last = self._store.events.last(self.id, kind="run-requested")
        return 1 if last is None else int(cast("dict[str, Any]", last.data)["number"]) + 1

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Hold the session's lock: across tasks and processes, and released by the kernel when a process dies."""
        lock = FileLock(self._parts.locks / f"{hashlib.sha256(self.id.encode()).hexdigest()[:32]}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise FailedError(
                "session-busy",
                f"session {self.id} is running a script already",
                hint="wait for it, or use another session",
                retryable=True,
            ) from error
        try:
            self.recover()
            yield
        finally:
            lock.release()

    async def _run(
        self,
        source: str,
        wanted: str,
        inputs: Mapping[str, JsonValue],
        limits: Limits,
        on_call: Callable[[ScriptCall], None] | None,
    ) -> Run:
        repaired = repair(source)
        run = Run(
            run_id=f"run_{secrets.token_hex(8)}",
            number=self._next_number(),
            session_id=self.id,
            status="rejected",
            notes=tuple(repaired.notes),
        )
        self._log(
            "run-requested",
            {
                "source": source,
                "script": _digest(source),
                "inputs": dict(inputs),
                "engine": wanted,
                "number": run.number,
            },
            run=run.run_id,
        )
        around, earlier = self._around(repaired.source, inputs)
        verdict = await self._check(repaired.source, inputs, around)
        run = replace(
            run,
            check=verdict.status,
            check_reason=verdict.reason,
            diagnostics=tuple(diagnostic.as_json() for diagnostic in verdict.diagnostics),
        )
        if verdict.status == "rejected":
            return self._settle(run, error=rejection(run))
        choice = await self._parts.engines.choose(wanted)
        run = replace(run, engine=choice.engine.name, engine_reason=choice.reason)
        refusals: Sequence[Refusal] = choice.engine.unsupported(repaired.source, self.catalogue.tree)
        if not choice.engine.has_memory:
            refusals = [
                *refusals,
                *without_memory(repaired.source, around.preamble, uses_results=earlier is not None),
            ]
        if refusals:
            found = [refused(choice, refusal) for refusal in refusals]
            run = replace(run, diagnostics=run.diagnostics + tuple(found))
            return self._settle(run, error=unsupported(choice, found[0]))
        program = Program(
            source=repaired.source,
            tree=self.catalogue.tree,
            inputs=inputs,
            clock=self._parts.now(),
            seed=secrets.randbits(32),
            limits=limits,
            preamble=around.preamble,
            results=earlier,
        )
        return await self._execute(run, choice, program, on_call)

    async def _execute(
        self,
        run: Run,
        choice: Choice,
        program: Program,
        on_call: Callable[[ScriptCall], None] | None,
    ) -> Run:
        clock, limits = program.clock, program.limits
        budget = Budget(calls=limits.calls, seconds=limits.wall_seconds)
        desk = Desk(
            self._broker,
            Ledger(run=run.run_id, budget=budget, started=clock),
            store=self._store,
            script=_digest(program.source),
            inquiry=Inquiry(self._unknowns, session=self.id, run=run.run_id),
            now=self._parts.now,
            on_call=on_call,
            own=self._own,
        )
        started: dict[str, JsonValue] = {
            "engine": choice.engine.name,
            "reason": choice.reason,
            "clock": clock,
            "seed": program.seed,
        }
        if run.notes:
            started["source"] = (
                program.source
            )  # the script as it is run: its digest is the one that an answer names
        self._log("run-started", started, run=run.run_id)
        try:
            outcome = await desk.serve(lambda: choice.engine.run(program, desk.handle))
        except asyncio.CancelledError:
            self._settle(replace(run, status="cancelled", calls=tuple(desk.ledger.entries)))
            raise
        return self._settled(run, outcome, desk)

    def _settled(self, run: Run, outcome: RunOutcome, desk: Desk) -> Run:
        status: RunStatus = _STATUS.get(outcome.reason, "failed")
        error = desk.fatal.as_json() if desk.fatal else script_error(outcome)
        if error is None and outcome.unawaited:
            path, line = outcome.unawaited[0]
            called = "results[...].load" if path == RESULTS else f"df.{path}"
            message = f"{called} on line {line} was called and never awaited, so it did not run"
            error = FailedError("call-not-awaited", message, hint=f"await {called}(...)").as_json() | {
                "line": line
            }
        if error is not None and status == "succeeded":
            status = "failed"
        stale = [note for note in outcome.notes if note.startswith("preamble ")]
        if stale and run.check in ("clean", "advised"):
            run = replace(run, check="unchecked", check_reason=stale[0])
        value = orjson.loads(outcome.value) if outcome.value and status == "succeeded" else None
        run = replace(
            run,
            status=status,
            # A last expression that is None, such as that of a call for its effect, is no value.
            has_value=value is not None,
            value=value,
            stdout=outcome.stdout,
            stdout_cut=outcome.stdout_cut,
            calls=tuple(desk.ledger.entries),
            notes=run.notes + tuple(outcome.notes),
        )
        if desk.answer is not None:
            run = replace(run, answer=self._keep_answer(run, desk.answer))
        return self._settle(run, error=error)

    def _keep_answer(self, run: Run, answer: Answer) -> dict[str, JsonValue]:
        """Record the answer of a run that succeeded; that of a failed run is shown and not recorded."""
        if run.status != "succeeded":
            return answer.as_json(None)
        sealed = seal(answer.record())
        self._log("answer-given", {"status": answer.status}, run=run.run_id, record=sealed)
        return answer.as_json(sealed.id)

    def _settle(self, run: Run, *, error: Mapping[str, JsonValue] | None = None) -> Run:
        run = replace(run, error=error)
        body = orjson.dumps(run.value)
        if len(body) > INLINE_BYTES:
            blob = self._store.blobs.put(body)
            value: dict[str, JsonValue] = {
                "value_blob": {"digest": blob.digest, "size": blob.size},
                "type": as_type(type_of(run.value, run.number, len(body))),
            }
        else:
            value = {"value": run.value}
        data = run.as_json() | value
        if "value_blob" in value:
            del data["value"]
        for known in ("run_id", "session_id", "calls"):
            del data[known]
        self._log("run-settled", data, run=run.run_id)
        return run

    async def _check(self, source: str, inputs: Mapping[str, JsonValue], around: Surroundings) -> Verdict:
        return await self._parts.checker.check(
            source,
            stubs=self.catalogue.stubs,
            inputs_stub=input_stub(inputs),
            around=around,
        )

    def _around(
        self, source: str, inputs: Mapping[str, JsonValue]
    ) -> tuple[Surroundings, tuple[Earlier, ...] | None]:
        """What a script finds beside `df` and its inputs: for the check, and the rows for its run."""
        entries = self._preamble.entries()
        if "results" in inputs:
            return Surroundings(preamble=entries), None
        types, rows = self._result_types.of(source, *(entry.code for entry in entries))
        return Surroundings(preamble=entries, results=types), rows

    def _log(
        self,
        kind: str,
        data: Mapping[str, JsonValue],
        *,
        run: str | None = None,
        record: Record | Sealed | None = None,
    ) -> None:
        event = Event(kind=kind, session=self.id, run=run, at=self._parts.now(), data=dict(data))
        self._store.append(event, record=record)


def _encoded(inputs: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Inputs as they cross into the sandbox; a name must be one that a script can write and does not lose by it."""
    for name in inputs:
        if not name.isidentifier() or iskeyword(name) or name in _RESERVED:
            raise UsageError(
                "arguments-invalid",
                f"an input cannot be called {name!r}",
                hint="scripts read it under that name: take a Python name other than df",
                details={"path": f"$.{name}"},
            )
    return {name: values.encode(value) for name, value in inputs.items()}


def _digest(source: str) -> str:
    return "sha256:" + hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
