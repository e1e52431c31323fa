"""From a request whose turn has come to its settlement: repair, check, choose an engine, run, settle."""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from affidavit.errors import AffidavitError
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.infer import input_stub
from affidavit.policy import Budget
from affidavit.runtime.answer import Answer
from affidavit.runtime.broker import Broker
from affidavit.runtime.catalogue import Catalogue
from affidavit.runtime.desk import Desk
from affidavit.runtime.engines.engine import Choice, Engines, Refusal, without_memory
from affidavit.runtime.ledger import Ledger
from affidavit.runtime.memory.memory import Memory
from affidavit.runtime.memory.preamble import digest_of
from affidavit.runtime.memory.result_types import TYPED_BYTES, as_type, type_of
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.program import RESULTS, Program, RunOutcome, ScriptCall
from affidavit.runtime.replay.asides import Asides
from affidavit.runtime.replay.rerun import Rows
from affidavit.runtime.run import (
    Request,
    Run,
    ending,
    refused,
    rejection,
    script_digest,
    settlement,
    unsupported,
)
from affidavit.runtime.turns import Turn
from affidavit.runtime.typecheck import Checker, Verdict
from affidavit.runtime.typecheck.repair import repair
from affidavit.runtime.typecheck.surroundings import Surroundings
from affidavit.runtime.unknowns import Inquiry
from affidavit.store import Event, Store
from affidavit.store.unknowns import Unknowns

__all__ = ["Execution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A program in a sandbox, which starts when `starts` is set."""

    choice: Choice
    program: Program
    desk: Desk
    rows: Rows
    starts: asyncio.Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Carries out the requests of one session, whose turns `Turns` hands out.

    Attributes:
        session: the session's id.
        store: where its events and records go.
        catalogue: what its scripts may call.
        engines: the sandboxes.
        checker: the type checker.
        broker: where the calls go.
        memory: its earlier results and its preamble.
        now: the time, seconds since the epoch.
    """

    session: str
    store: Store
    catalogue: Catalogue
    engines: Engines
    checker: Checker
    broker: Broker
    memory: Memory
    now: Callable[[], float]

    async def check(self, source: str, inputs: Mapping[str, JsonValue]) -> Verdict:
        """Check a script as it would be run."""
        script = repair(source).source
        return await self._verdict(script, inputs, self.memory.around(script, inputs)[0])

    async def carry_out(
        self, turn: Turn, request: Request, on_call: Callable[[ScriptCall], None] | None
    ) -> Run:
        """Run a request whose turn it is, and settle it; whatever happens to it is a `Run`.

        Raises:
            FailedError: `engine-unavailable`, or what else an engine raises that cannot run it.
            asyncio.CancelledError: the caller's task was cancelled.
        """
        repaired = repair(request.source)
        run = Run(
            run_id=turn.run_id,
            number=turn.number,
            session_id=self.session,
            status="rejected",
            notes=tuple(repaired.notes),
        )
        try:
            return await self._checked(run, repaired.source, request, on_call)
        except asyncio.CancelledError:
            self._settle(replace(run, status="cancelled"))  # does nothing where it was settled with more
            raise
        except AffidavitError as error:
            self._settle(replace(run, status="failed"), error=error.as_json())
            raise

    async def _checked(
        self, run: Run, source: str, request: Request, on_call: Callable[[ScriptCall], None] | None
    ) -> Run:
        around, earlier = self.memory.around(source, request.inputs)
        program = Program(
            source=source,
            tree=self.catalogue.tree,
            inputs=request.inputs,
            clock=self.now(),
            seed=secrets.randbits(32),
            limits=request.limits,
            preamble=around.preamble,
            results=earlier,
        )
        # A sandbox that is there takes the program in while it is checked; nothing of it runs before that.
        choice = self.engines.ready(request.engine)
        refusals = self._refusals(choice, program) if choice else []
        attempt = self._attempt(run, choice, program, on_call) if choice and not refusals else None
        try:
            verdict = await self._verdict(source, request.inputs, around)
            run = replace(
                run,
                check=verdict.status,
                check_reason=verdict.reason,
                diagnostics=tuple(diagnostic.as_json() for diagnostic in verdict.diagnostics),
            )
            if verdict.status == "rejected":
                return self._settle(run, error=rejection(run))
            if choice is None:
                choice = await self.engines.choose(request.engine)
                refusals = self._refusals(choice, program)
            run = replace(run, engine=choice.engine.name, engine_reason=choice.reason)
            if refusals:
                found = [refused(choice, refusal, source) for refusal in refusals]
                run = replace(run, diagnostics=run.diagnostics + tuple(found))
                return self._settle(run, error=unsupported(choice, found[0]))
            attempt = attempt or self._attempt(run, choice, program, on_call)
            return await self._run(run, attempt)
        finally:
            if attempt is not None:
                await attempt.desk.close()

    def _refusals(self, choice: Choice, program: Program) -> list[Refusal]:
        """What of a program an engine cannot run."""
        found = list(choice.engine.unsupported(program.source, program.tree))
        if not choice.engine.has_memory:
            uses = program.results is not None
            found += without_memory(program.source, program.preamble, uses_results=uses)
        return found

    def _attempt(
        self, run: Run, choice: Choice, program: Program, on_call: Callable[[ScriptCall], None] | None
    ) -> _Attempt:
        """Give a program to an engine, which waits for the start."""
        rows = Rows(self.memory.results, self.store, program.preamble)
        budget = Budget(calls=program.limits.calls, seconds=program.limits.wall_seconds)
        desk = Desk(
            self.broker,
            Ledger(run=run.run_id, budget=budget, started=program.clock),
            store=self.store,
            script=script_digest(program.source),
            inquiry=Inquiry(Unknowns(self.store, now=self.now), session=self.session, run=run.run_id),
            now=self.now,
            on_call=on_call,
            own={**self.memory.calls(), RESULTS: rows.serve},
        )
        starts = asyncio.Event()
        desk.begin(choice.engine.run(program, desk.handle, starts=starts))
        return _Attempt(choice=choice, program=program, desk=desk, rows=rows, starts=starts)

    async def _run(self, run: Run, attempt: _Attempt) -> Run:
        """Let the script start, and settle what comes of it."""
        choice, program, desk = attempt.choice, attempt.program, attempt.desk
        started: dict[str, JsonValue] = {
            "engine": choice.engine.name,
            "reason": choice.reason,
            "clock": program.clock,
            "seed": program.seed,
            "python": platform.python_version(),
            "tree": self._kept(self.catalogue.surface),
        }
        if program.preamble:
            started["preamble"] = digest_of(program.preamble)
        if run.notes:  # the script as it is run: its digest is the one that an answer names
            started["source"] = program.source
        self.store.append(
            Event(kind="run-started", session=self.session, run=run.run_id, at=self.now(), data=started)
        )
        desk.ledger.started = self.now()
        attempt.starts.set()
        try:
            outcome = await desk.outcome()
        except asyncio.CancelledError:
            self._settle(replace(run, status="cancelled", calls=tuple(desk.ledger.entries)))
            raise
        return self._settled(run, outcome, desk, program.source, attempt.rows.reruns)

    def _settled(
        self, run: Run, outcome: RunOutcome, desk: Desk, source: str, reruns: Sequence[JsonValue]
    ) -> Run:
        ended = ending(outcome, source, fatal=desk.fatal)
        stale = [note for note in outcome.notes if note.startswith("preamble ")]
        if stale and run.check in ("clean", "advised"):
            run = replace(run, check="unchecked", check_reason=stale[0])
        run = replace(
            run,
            status=ended.status,
            has_value=ended.value is not None,
            value=ended.value,
            stdout=outcome.stdout,
            stdout_cut=outcome.stdout_cut,
            calls=tuple(desk.ledger.entries),
            notes=run.notes + tuple(outcome.notes),
        )
        if desk.answer is not None:
            run = replace(run, answer=self._keep_answer(run, desk.answer))
        return self._settle(run, error=ended.error, asides=desk.asides, timers=outcome.timers, reruns=reruns)

    def _keep_answer(self, run: Run, answer: Answer) -> dict[str, JsonValue]:
        """Record the answer of a run that succeeded; that of a failed run is shown and not recorded."""
        if run.status != "succeeded":
            return answer.as_json(None)
        sealed: Sealed = seal(answer.record())
        event = Event(
            kind="answer-given",
            session=self.session,
            run=run.run_id,
            at=self.now(),
            data={"status": answer.status},
        )
        self.store.append(event, record=sealed)
        return answer.as_json(sealed.id)

    def _settle(
        self,
        run: Run,
        *,
        error: Mapping[str, JsonValue] | None = None,
        asides: Asides | None = None,
        timers: Sequence[int] = (),
        reruns: Sequence[JsonValue] = (),
    ) -> Run:
        run = replace(run, error=error)
        data = replace(run, value=None, calls=()).as_json()
        for known in ("run_id", "session_id", "calls", "value"):
            del data[known]
        body = orjson.dumps(run.value)
        if len(body) > TYPED_BYTES:
            data["type"] = as_type(type_of(run.value, run.number, len(body)))
        if len(body) > INLINE_BYTES:
            data["value_blob"] = self._kept(body)
        else:
            data["value"] = run.value
        if (
            asides is not None and (kept := asides.as_json()) != []
        ):  # null says that they were too many to keep
            data["asides"] = kept
        if timers:
            data["timers"] = list(timers)
        if reruns:
            data["reruns"] = list(reruns)
        settled = self.store.append(settlement(self.session, run.run_id, data, self.now()))
        if not settled.repeated:
            self.memory.results.wrote(settled)
        return run

    def _kept(self, data: bytes) -> dict[str, JsonValue]:
        """Keep bytes as a blob; what an event says of it."""
        blob = self.store.blobs.put(data)
        return {"digest": blob.digest, "size": blob.size}

    async def _verdict(self, source: str, inputs: Mapping[str, JsonValue], around: Surroundings) -> Verdict:
        around = replace(around, schemas=self.catalogue.schemas)
        return await self.checker.check(
            source, stubs=self.catalogue.stubs, inputs_stub=input_stub(inputs), around=around
        )
