"""A replay: a run once more, from its log alone, and whether it comes out the same."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from affidavit.errors import RejectedError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.engine import Engines, Refusal, without_memory
from affidavit.runtime.replay.player import DivergedError, Divergence, Player
from affidavit.runtime.replay.recording import Recording, read_recording
from affidavit.runtime.run import Ending, ending, refused, unsupported
from affidavit.store import Store

__all__ = ["Replay", "replay"]

_COMPARED: Final = ("code", "type", "message", "line")
_COMPARED_ACROSS: Final = (
    "code",
    "type",
)  # each engine has words and places of its own for what Python raises


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a replay.

    Attributes:
        run_id: the run.
        number: its number in its session.
        session_id: its session.
        engine: the engine that replayed it, and `recorded_engine` the one that ran it.
        python: version of Python here, and `recorded_python` that of the run.
        status: status of the run, which is that of the replay where they are the same.
        value: digest of its value (SHA-256 of the canonical form), or None where it has none.
        replayed_value: that of the replay.
        calls: how many calls the run made, and `replayed_calls` the replay up to where it diverged.
        same_output: whether it printed the same; not part of `same`, since printed text may name addresses.
        divergence: the first difference, or None.
    """

    run_id: str
    number: int
    session_id: str
    engine: str
    recorded_engine: str
    python: str
    recorded_python: str
    status: str
    value: str | None
    replayed_value: str | None
    calls: int
    replayed_calls: int
    same_output: bool
    divergence: Divergence | None

    @property
    def same(self) -> bool:
        """Whether it made the same calls, ended the same way, and has the same value."""
        return self.divergence is None

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit replay --json`."""
        return {
            "run_id": self.run_id,
            "number": self.number,
            "session_id": self.session_id,
            "same": self.same,
            "status": self.status,
            "engine": {"recorded": self.recorded_engine, "replayed": self.engine},
            "python": {"recorded": self.recorded_python, "replayed": self.python},
            "value": {"recorded": self.value, "replayed": self.replayed_value},
            "calls": {"recorded": self.calls, "replayed": self.replayed_calls},
            "same_output": self.same_output,
            "divergence": self.divergence.as_json() if self.divergence is not None else None,
        }


async def replay(store: Store, engines: Engines, run_id: str, *, engine: str | None = None) -> Replay:
    """Run a recorded run again, from the log alone. Nothing outside is called, and nothing is written.

    Args:
        store: where its log is.
        engines: where to run it.
        run_id: the run's whole id.
        engine: another engine than the one that ran it.

    Raises:
        NotFoundError: `run-not-found`.
        FailedError: `replay-impossible`, when it did not end by itself; `engine-unavailable`.
        RejectedError: `engine-unsupported`, when the asked engine cannot run this script.
        VerificationError: what was recorded does not hold any more.
    """
    recording = read_recording(store, run_id)
    program, view = recording.program, recording.view
    choice = await engines.choose(engine or recording.engine)
    refusals: Sequence[Refusal] = choice.engine.unsupported(program.source, program.tree)
    if not choice.engine.has_memory:
        uses = program.results is not None
        refusals = [*refusals, *without_memory(program.source, program.preamble, uses_results=uses)]
    if refusals:
        found = refused(choice, refusals[0], program.source)
        error = unsupported(choice, found)
        raise RejectedError("engine-unsupported", str(error["message"]), hint=str(error["hint"]))
    player = Player(recording, store)
    value = view.value(store)
    ended: Ending | None = None
    same_output = False
    try:
        outcome = await choice.engine.run(program, player.handle)
    except DivergedError as diverged:
        divergence: Divergence | None = diverged.divergence
    else:
        ended = ending(outcome, program.source)
        same_engine = choice.engine.name == recording.engine
        divergence = player.finish() or _difference(recording, value, ended, same_engine=same_engine)
        printed = view.settled.get("stdout"), view.settled.get("stdout_cut")
        same_output = printed == (outcome.stdout, outcome.stdout_cut)
    return Replay(
        run_id=run_id,
        number=view.number,
        session_id=recording.session,
        engine=choice.engine.name,
        recorded_engine=recording.engine,
        python=platform.python_version(),
        recorded_python=recording.python,
        status=view.status,
        value=_digest(value),
        replayed_value=_digest(ended.value) if ended is not None else None,
        calls=len(recording.calls),
        replayed_calls=player.calls,
        same_output=same_output,
        divergence=divergence,
    )


def _digest(value: JsonValue) -> str | None:
    return None if value is None else digest(canonical(value))


def _difference(
    recording: Recording, value: JsonValue, ended: Ending, *, same_engine: bool
) -> Divergence | None:
    """How a run and its replay ended differently, after the same calls."""
    settled = recording.view.settled
    compared = _COMPARED if same_engine else _COMPARED_ACROSS
    before, now = _error(settled.get("error"), compared), _error(ended.error, compared)
    if before != now:
        line = cast("dict[str, Any]", ended.error or settled["error"]).get("line")
        message = f"the run ended with {_named(before)}, the replay with {_named(now)}"
        return Divergence(what="error", message=message, line=line, recorded=before, replayed=now)
    if settled["status"] != ended.status:
        message = f"the run {settled['status']}, the replay {ended.status}"
        return Divergence(what="status", message=message, recorded=settled["status"], replayed=ended.status)
    if _digest(value) == _digest(ended.value):
        return None
    place, was, became = _first(value, ended.value, "$")
    message = f"after the same calls the value is another, first at {place}"
    return Divergence(
        what="value", message=message, recorded=values.plain(was), replayed=values.plain(became)
    )


def _error(error: Any, members: Sequence[str]) -> dict[str, JsonValue] | None:
    return None if error is None else {name: error.get(name) for name in members}


def _named(error: Mapping[str, JsonValue] | None) -> str:
    if error is None:
        return "no error"
    name = str(error["type"] or error["code"])
    return f"{name}: {error['message']}" if "message" in error else name


def _first(was: JsonValue, became: JsonValue, place: str) -> tuple[str, JsonValue, JsonValue]:
    """The first place at which two values differ, and what each has there. No recursion: values may be deep."""
    while True:
        one, other = _members(was), _members(became)
        if type(was) is not type(became) or one.keys() != other.keys():
            return place, was, became
        step = next((name for name in one if canonical(one[name]) != canonical(other[name])), None)
        if step is None:
            return place, was, became
        place, was, became = place + step, one[step], other[step]


def _members(value: JsonValue) -> dict[str, JsonValue]:
    """What a container holds, by the step that leads to it, in order."""
    if isinstance(value, dict):
        mapping = cast("dict[str, JsonValue]", value)
        return {f".{name}": mapping[name] for name in sorted(mapping)}
    if isinstance(value, list):
        return {f"[{at}]": item for at, item in enumerate(cast("list[JsonValue]", value))}
    return {}
