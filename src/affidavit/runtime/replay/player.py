"""Answers the calls of a replayed script from the log. Nothing is called, and nothing is written."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.ledger import given
from affidavit.runtime.program import RESULTS, CallResult, ScriptCall
from affidavit.runtime.replay.recording import Recording, Site, Taken, site_of
from affidavit.runtime.replay.rerun import Rows
from affidavit.store import Store

__all__ = ["DivergedError", "Divergence", "Player"]

What: TypeAlias = Literal["call", "arguments", "order", "missing", "session", "status", "error", "value"]

_PATIENCE: Final = 5.0  # seconds that a script may take for what took it no time then
_SLOWER: Final = 10.0  # and how many times as long for what did


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a replay first does something else than the run did.

    Attributes:
        what: `call` (one that the run did not make), `arguments`, `order` (of ends), `missing` (a call that the run
            made), `session` (a call that the session answers itself), `status`, `error` or `value`.
        message: what it is, one line.
        operation: path of the call, or empty.
        line: line of the script, or None.
        recorded: what the run had there.
        replayed: what the replay has.
    """

    what: What
    message: str
    operation: str = ""
    line: int | None = None
    recorded: JsonValue = None
    replayed: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        """The divergence as every door shows it."""
        return {
            "what": self.what,
            "message": self.message,
            "operation": self.operation or None,
            "line": self.line,
            "recorded": self.recorded,
            "replayed": self.replayed,
        }


class DivergedError(Exception):
    """Ends a replay at its first divergence."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.message)
        self.divergence = divergence


class Player:
    """Serves one replay.

    Calls are matched by site and iteration, and their ends are told in the order in which the run was told of them.
    """

    def __init__(self, recording: Recording, store: Store) -> None:
        self._recording = recording
        self._store = store
        self._rows = Rows(recording.results, store, recording.program.preamble)
        self._own = frozenset(_answered_by_session(recording.program.tree))
        self._open: dict[Site, deque[Taken]] = defaultdict(deque)
        for call in recording.calls:
            self._open[call.site].append(call)
        ends = [call for call in recording.calls if call.finished]
        self._places = {id(call): place for place, call in enumerate(ends)}
        self._ends = ends
        self._next = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._asides = 0
        self._progress = 0

    @property
    def calls(self) -> int:
        """How many operations the script has called so far."""
        return len(self._recording.calls) - sum(map(len, self._open.values()))

    async def handle(self, call: ScriptCall) -> CallResult:
        """Answer one call as the run was answered.

        Raises:
            DivergedError: the run made no such call there.
            VerificationError: what was recorded does not hold any more.
        """
        self._progress += 1
        if call.path == RESULTS:
            return await self._rows.serve(call.arguments)
        if call.path in self._own:
            return self._aside(call)
        taken = self._match(call)
        if not taken.finished:
            await asyncio.get_running_loop().create_future()  # until the run ends, as it was then
        await self._turn(self._places[id(taken)], call)
        return taken.result(self._store)

    def finish(self) -> Divergence | None:
        """What the run did that the script, which has ended, did not do."""
        left = [call for calls in self._open.values() for call in calls]
        if left:
            first = min(left, key=lambda call: call.number)
            path, line, _, iteration = first.site
            message = f"the run called df.{path} on line {line} (iteration {iteration}), the replay did not"
            return Divergence(
                what="missing", message=message, operation=path, line=line, recorded=self._parameters(first)
            )
        asides = self._recording.asides
        if self._asides < len(asides):
            said = asides[self._asides]
            message = f"the run called df.{said.path} on line {said.line}, the replay did not"
            return Divergence(what="missing", message=message, operation=said.path, line=said.line)
        return None

    # ---- matching ----

    def _match(self, call: ScriptCall) -> Taken:
        site = site_of(call)
        path, line, _, iteration = site
        known = self._open.get(site)
        if not known:
            message = (
                f"df.{path} on line {line} (iteration {iteration}) is called, the run did not call it there"
            )
            raise self._diverged("call", message, call)
        taken = known.popleft()
        if taken.given != given(call.arguments):
            message = f"df.{path} on line {line} (iteration {iteration}) is called with other arguments"
            raise self._diverged("arguments", message, call, recorded=self._parameters(taken))
        return taken

    def _aside(self, call: ScriptCall) -> CallResult:
        asides = self._recording.asides
        said = asides[self._asides] if self._asides < len(asides) else None
        if said is None or (said.path, said.line, said.column, said.iteration) != site_of(call):
            there = (
                f"df.{said.path} on line {said.line}" if said is not None else "nothing more of the session"
            )
            message = f"df.{call.path} on line {call.line} is called where the run called {there}"
            raise self._diverged("session", message, call)
        if said.given != given(call.arguments):
            message = f"df.{call.path} on line {call.line} is called with other arguments"
            raise self._diverged("session", message, call)
        self._asides += 1
        return said.result([taken.entry for taken in self._recording.calls])

    def _diverged(
        self, what: What, message: str, call: ScriptCall, recorded: JsonValue = None
    ) -> DivergedError:
        return DivergedError(
            Divergence(
                what=what,
                message=message,
                operation=call.path,
                line=call.line,
                recorded=recorded,
                replayed=values.plain(dict(call.arguments)),
            )
        )

    def _parameters(self, taken: Taken) -> JsonValue:
        return values.plain(self._store.evidence.get(taken.evidence_id).parameters)

    # ---- order ----

    async def _turn(self, place: int, call: ScriptCall) -> None:
        """Wait until everything that the run was told before this has been told."""
        if place != self._next:
            turn = self._waiting[place] = asyncio.get_running_loop().create_future()
            await self._patiently(turn, call)
        self._progress += 1
        self._next = place + 1
        following = self._waiting.pop(self._next, None)
        if following is not None:
            following.set_result(None)  # it goes on in a later turn of the loop, after this end is on its way

    async def _patiently(self, turn: asyncio.Future[None], call: ScriptCall) -> None:
        """Wait for a turn, as long as the script could still be on its way to the call whose end is due.

        In the run that call was made before any later end was told, some time after the end before.
        """
        while not turn.done():
            seen, due = self._progress, self._next
            before = self._ends[due - 1].at if due else self._recording.program.clock
            took = max(0.0, self._ends[due].started - before)
            await asyncio.wait({turn}, timeout=_PATIENCE + _SLOWER * took)
            if not turn.done() and seen == self._progress:
                path, line, _, iteration = self._ends[due].site
                message = (
                    f"df.{call.path} on line {call.line} is waited for, where the run was first told of"
                    f" df.{path} on line {line} (iteration {iteration})"
                )
                raise self._diverged("order", message, call, recorded={"operation": path, "line": line})


def _answered_by_session(tree: Mapping[str, JsonValue]) -> Iterator[str]:
    for branch in tree.values():
        leaf: Any = branch
        if "$call" not in leaf:
            yield from _answered_by_session(leaf)
        elif leaf["kind"] == "sync":
            yield leaf["$call"]
