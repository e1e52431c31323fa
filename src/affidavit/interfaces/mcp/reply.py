"""What a tool answers: one structured document and one text, and in both the next call to make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from affidavit.errors import AffidavitError
from affidavit.evidence.record import JsonValue

__all__ = ["Reply", "call_text", "clipped", "failure"]

_NEXT: Final[Mapping[str, str]] = {
    "operation-unknown": 'search {"words": "..."} finds operations',
    "evidence-not-found": 'read {"ref": "run_...", "part": "calls"} lists the evidence ids of a run',
    "evidence-ambiguous": "read with more digits of the id",
    "run-not-found": "read with the run_id that run reported",
    "item-not-found": 'read again with "pointer": "" to see what there is',
    "arguments-invalid": "call the tool again with corrected arguments",
    "value-unsupported": "call the tool again with JSON values",
    "value-too-large": "call the tool again with less",
    "session-busy": "call run again when the other client's script has ended",
    "key-reused": "call run again with a new idempotency_key, or without one",
    "artifact-changed": "the person who started this server must start it again",
    "artifact-not-found": "the person who started this server must correct --mount",
    "mount-invalid": "the person who started this server must correct --mount",
    "analysis-failed": "the person who started this server must correct --mount",
    "artifact-unsupported": "the person who started this server must correct --mount",
    "artifact-damaged": "the person who started this server must correct --mount",
    "engine-unavailable": 'run again with "engine": "auto"',
}
_OTHERWISE: Final = "correct the call and make it again"
_RETRY: Final = "make the same call again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of one tool call.

    Attributes:
        document: the structured result; it has `next`.
        text: the same for a model to read.
        is_error: whether the caller should have done otherwise.
    """

    document: Mapping[str, JsonValue]
    text: str
    is_error: bool = False

    def sendable(self) -> Reply:
        """The reply with nothing that JSON text cannot carry: lone surrogates become escapes."""
        try:
            orjson.dumps(self.document)
            self.text.encode()
        except (TypeError, UnicodeEncodeError):
            return Reply(document=_scrubbed(self.document), text=_text(self.text), is_error=self.is_error)
        return self


def failure(error: AffidavitError) -> Reply:
    """An error as a result that a model can act on."""
    after = _RETRY if error.retryable else _OTHERWISE
    following = _NEXT.get(error.code, after)
    document = {"error": error.as_json(), "next": following}
    lines = [f"error[{error.code}]: {error.message}"]
    if error.hint and "`affidavit " not in error.hint:  # that would be for a person at a terminal
        lines.append(f"hint: {error.hint}")
    return Reply(document=document, text="\n".join([*lines, f"next: {following}"]), is_error=True)


def call_text(tool: str, **arguments: JsonValue) -> str:
    """A tool call as replies name it: `read {"ref": "run_1", "offset": 3}`."""
    return f"{tool} {json.dumps(arguments, ensure_ascii=False)}"


def clipped(text: str, characters: int) -> tuple[str, int]:
    """The start of a text, and how many characters it lacks."""
    return text[:characters], max(0, len(text) - characters)


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _scrubbed(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in cast("Sequence[Any]", value)]
    return value


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
