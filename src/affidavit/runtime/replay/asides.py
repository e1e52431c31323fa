"""What the session itself answered in a run: it is no evidence, and a replay must say the same again.

`df.answer`, `df.unknown`, `df.calls`, `df.budget` and `df.session` depend on the moment and on what others do. A script
waits for each of them before it goes on, so their order is the script's own. The settlement of the run keeps them as
`asides`, one object a call:

| member                                | what it is                                                            |
|---------------------------------------|-----------------------------------------------------------------------|
| `path`, `line`, `column`, `iteration` | what was called, and where                                            |
| `given`                               | digest of the arguments, as in `call-recorded`                        |
| `reply`                               | `{"value"}`, `{"failure"}`, or `{"entries"}`: how many calls were     |
|                                       | listed; absent where it is the same as that of the path's call before |

What a row of `results` holds is not among them: it follows from the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import orjson

from affidavit.evidence import values
from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import JsonValue
from affidavit.runtime.ledger import given
from affidavit.runtime.program import CallFailed, CallResult, CallReturned, ScriptCall

__all__ = ["CALLS", "MAX_ASIDES", "Asides", "Said", "asides_of"]

CALLS: Final = "calls"
"""The path of `df.calls`, whose reply follows from the calls that were recorded before."""

MAX_ASIDES: Final = 50_000
"""A run that asks the session more often is not kept in full, and cannot be replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One call that the session answered, and its reply (see the table above)."""

    path: str
    line: int
    column: int
    iteration: int
    given: str
    reply: Mapping[str, JsonValue]

    def result(self, entries: Sequence[Mapping[str, JsonValue]]) -> CallResult:
        """The reply as the script got it; `entries` are the run's recorded calls in order."""
        reply = cast("dict[str, Any]", self.reply)
        if "entries" in reply:
            return CallReturned(json=canonical(list(entries[: reply["entries"]])), completed=0.0)
        if "failure" in reply:
            failure: dict[str, Any] = reply["failure"]
            return CallFailed(
                code=failure["code"],
                message=values.decode(failure["message"]),
                hint=values.decode(failure["hint"]),
                retryable=failure["retryable"],
                details=failure["details"],
                completed=0.0,
            )
        return CallReturned(json=canonical(reply["value"]), completed=0.0)


class Asides:
    """The asides of a run that is under way."""

    def __init__(self) -> None:
        self._kept: list[JsonValue] = []
        self._last: dict[str, Mapping[str, JsonValue]] = {}
        self._many = 0

    def keep(self, call: ScriptCall, result: CallResult, *, entries: int) -> CallResult:
        """Take note of a reply; returns it as the script is to have it.

        The script's clock does not move, and mappings have their keys in the order in which a log has them.

        Args:
            call: what was called.
            result: what the session said.
            entries: how many calls of the run are recorded.
        """
        reply: dict[str, JsonValue]
        if isinstance(result, CallFailed):
            result = replace(result, completed=0.0)
            told = values.encode([result.message, result.hint])
            failure: dict[str, JsonValue] = {"code": result.code, "message": told[0], "hint": told[1]}
            reply = {"failure": failure | {"retryable": result.retryable, "details": dict(result.details)}}
        else:
            value = orjson.loads(result.json)
            result = CallReturned(json=canonical(value), completed=0.0)
            reply = {"entries": entries} if call.path == CALLS else {"value": value}
        self._many += 1
        if self._many <= MAX_ASIDES:
            self._kept.append(self._entry(call, reply))
        return result

    def as_json(self) -> list[JsonValue] | None:
        """What the settlement keeps; None where there were too many."""
        return self._kept if self._many <= MAX_ASIDES else None

    def _entry(self, call: ScriptCall, reply: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        entry: dict[str, JsonValue] = {
            "path": call.path,
            "line": call.line,
            "column": call.column,
            "iteration": call.iteration,
            "given": given(call.arguments),
        }
        if self._last.get(call.path) != reply:
            self._last[call.path] = reply
            entry["reply"] = dict(reply)
        return entry


def asides_of(kept: Sequence[Mapping[str, Any]]) -> list[Said]:
    """Read what a settlement kept."""
    last: dict[str, Mapping[str, JsonValue]] = {}
    found: list[Said] = []
    for entry in kept:
        reply = entry["reply"] if "reply" in entry else last[entry["path"]]
        last[entry["path"]] = reply
        found.append(
            Said(
                path=entry["path"],
                line=entry["line"],
                column=entry["column"],
                iteration=entry["iteration"],
                given=entry["given"],
                reply=reply,
            )
        )
    return found
