"""A session: one agent's runs, in order, kept as a log of events.

State is a reduction of the log (`run.runs_of`, `memory/`); a session therefore resumes by id from any process. One
script runs at a time in a session, in the order of the requests (`turns`); many sessions run at once.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any

import orjson

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.policy import Budget, Grant
from affidavit.runtime.broker import Broker
from affidavit.runtime.catalogue import Catalogue
from affidavit.runtime.engines.engine import Engines
from affidavit.runtime.execution import Execution
from affidavit.runtime.ledger import Ledger
from affidavit.runtime.memory.memory import Memory
from affidavit.runtime.memory.preamble import Trial
from affidavit.runtime.memory.results import ResultRow
from affidavit.runtime.program import CallResult, Limits, PreambleEntry, ScriptCall
from affidavit.runtime.replay.recording import find_run
from affidavit.runtime.replay.reuse import reused
from affidavit.runtime.run import Request, Run, RunView, runs_of
from affidavit.runtime.turns import Turns
from affidavit.runtime.typecheck import Checker, Verdict
from affidavit.store import Store

__all__ = ["Parts", "Session"]

_RESERVED = ("df", "__builtins__", "__name__")


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
        self.catalogue = parts.catalogue
        """What scripts of this session may call."""
        self._store = parts.store
        self._now = parts.now
        judge = Trial(parts.checker, parts.engines, stubs=parts.catalogue.stubs, now=parts.now)
        self._memory = Memory(parts.store, session_id, now=parts.now, judge=judge.problems)
        self._broker = Broker(
            parts.store,
            session=session_id,
            operations=parts.catalogue.operations,
            grants=parts.grants,
            now=parts.now,
        )
        self._turns = Turns(parts.store, session_id, folder=parts.locks, now=parts.now)
        self._execution = Execution(
            session=session_id,
            store=parts.store,
            catalogue=parts.catalogue,
            engines=parts.engines,
            checker=parts.checker,
            broker=self._broker,
            memory=self._memory,
            now=parts.now,
        )

    def runs(self) -> list[RunView]:
        """Every run of this session as its log tells it, oldest first."""
        return runs_of(self._store.events.of_session(self.id))

    def recover(self) -> list[str]:
        """Settle runs whose process is gone as `orphaned`; their ids. Nothing is run again."""
        return self._turns.recover()

    def results(self) -> tuple[ResultRow, ...]:
        """The rows that the next script finds as `results`, newest first."""
        return self._memory.results.rows()

    def result(self, number: int) -> Any:
        """The value of an earlier run by its number, as Python sees it.

        Raises:
            NotFoundError: `run-not-found`.
            UsageError: `result-unavailable`, when the run failed or its value is no longer kept.
        """
        row = self._memory.results.by_run(number)
        if row is None:
            hint = f"`affidavit results --session {self.id}` lists them"
            raise NotFoundError("run-not-found", f"no result of run {number}", hint=hint)
        return values.decode(orjson.loads(self._memory.results.content(row)))

    async def set_preamble(self, *, key: str, code: str) -> None:
        """Pin code above every later script of this session; the same key replaces it.

        Raises:
            RejectedError: `preamble-invalid`, with key and line of what the entry would break.
            UsageError: `preamble-invalid`, for a malformed key or too much code.
        """
        await self._memory.preamble.set(key, code)

    def remove_preamble(self, key: str) -> None:
        """Remove an entry of the preamble; possible whatever is wrong with it.

        Raises:
            NotFoundError: `preamble-not-found`.
        """
        self._memory.preamble.remove(key)

    def get_preamble(self) -> tuple[PreambleEntry, ...]:
        """The entries of the preamble, in the order in which their keys were first set."""
        return self._memory.preamble.entries()

    async def check(self, source: str, *, inputs: Mapping[str, Any] | None = None) -> Verdict:
        """Check a script without running it; inputs are Python values by name."""
        return await self._execution.check(source, _encoded(inputs or {}))

    async def run(
        self,
        source: str,
        *,
        engine: str = "auto",
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_call: Callable[[ScriptCall], None] | None = None,
        idempotency_key: str | None = None,
        wait_seconds: float | None = None,
    ) -> Run:
        """Repair, check and run a script; whatever happens to it is a `Run`, not an exception.

        Scripts of a session run one at a time, in the order in which they were requested, whoever requests them: each
        sees what those before it returned.

        Args:
            source: the script.
            engine: `auto`, `cpython` or `monty`.
            inputs: Python values that the script finds under these global names, typed from the values.
            limits: bounds of the run; the defaults are those of `Limits`.
            on_call: told of each call before it is made, for progress displays.
            idempotency_key: the same request again under the same key is not run again: what came of the first is
                returned, also when that was in another process.
            wait_seconds: how long to wait for those before it; as long as it takes by default.

        Raises:
            FailedError: `session-busy`, when its turn did not come in time; `engine-unavailable`.
            UsageError: `value-unsupported`, when an input cannot cross into the sandbox, or the script itself is no
                text that can be kept; `key-reused`, when the idempotency key was given with another request.
        """
        _refuse_halves(source)
        request = Request(
            source=source, inputs=_encoded(inputs or {}), engine=engine, limits=limits or Limits()
        )
        return await self._requested(request, on_call, idempotency_key, wait_seconds)

    async def reuse(
        self,
        run: str | int,
        *,
        vary: Mapping[str, Any],
        was: Mapping[str, Any] | None = None,
        engine: str = "auto",
        limits: Limits | None = None,
        on_call: Callable[[ScriptCall], None] | None = None,
        idempotency_key: str | None = None,
        wait_seconds: float | None = None,
    ) -> Run:
        """Run the script of an earlier run with other values; the new run is recorded as derived from it.

        Args:
            run: the earlier run: its number in this session, or its id in any. It succeeded.
            vary: new values by name: of an input of that run, or of what a literal of its script stands under
                (`city = "London"`, `city="London"`, `{"city": "London"}`). Each is found at exactly one place.
            was: for names that stand nowhere, or at several places: the value that is meant, found at exactly one.
            engine: as for `run`.
            limits: as for `run`.
            on_call: as for `run`.
            idempotency_key: as for `run`.
            wait_seconds: as for `run`.

        Raises:
            UsageError: `reuse-invalid`, listing the places.
            NotFoundError: `run-not-found`.
            FailedError: as for `run`.
        """
        run_id = find_run(self._store, str(run), session=self.id if isinstance(run, int) else None)
        request = reused(
            self._store,
            run_id,
            vary=vary,
            was=was or {},
            preamble=self.get_preamble(),
            engine=engine,
            limits=limits or Limits(),
        )
        return await self._requested(request, on_call, idempotency_key, wait_seconds)

    async def _requested(
        self,
        request: Request,
        on_call: Callable[[ScriptCall], None] | None,
        key: str | None,
        wait_seconds: float | None,
    ) -> Run:
        run_id = f"run_{secrets.token_hex(8)}"
        async with self._turns.take(run_id, request, key=key, wait_seconds=wait_seconds) as turn:
            if not turn.repeated:
                return await self._execution.carry_out(turn, request, on_call)
        await self._turns.settled(turn.run_id)
        [view] = runs_of(self._store.events.of_run(turn.run_id))
        return Run.of(view, session=self.id, store=self._store)

    async def call(self, path: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call one operation directly, by its path below `df`. Recorded like a script's call."""
        ledger = Ledger(run=None, budget=Budget(), started=self._now())
        encoded = {name: values.encode(value) for name, value in arguments.items()}
        return await self._broker.call(ScriptCall(path=path, arguments=encoded, line=0), ledger)


def _refuse_halves(source: str) -> None:
    """A text with half a surrogate pair is no Unicode: nothing can keep it, and Python does not run it."""
    found = re.search("[\ud800-\udfff]", source)
    if found is None:
        return
    line = source.count("\n", 0, found.start()) + 1
    column = found.start() - source.rfind("\n", 0, found.start())
    raise UsageError(
        "value-unsupported",
        f"line {line}: the script cannot hold the lone surrogate U+{ord(found[0]):04X}",
        hint=f"write it as the escape \\u{ord(found[0]):04x}, or send the whole character",
        details={"line": line, "column": column},
    )


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
