"""How a run that did not finish ended, in the caller's words and coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_monty import (
    Frame,
    MontyConversionError,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
)

from affidavit.runtime.engines.monty._results import Refusal, read_refusal
from affidavit.runtime.engines.monty._rewrite import Origins, Place, Rewritten
from affidavit.runtime.program import CallFailed, Limits, Reason, ScriptError

__all__ = ["explain", "timed_out"]

_SCRIPT = "<python-input-1>"
_MAX_FRAMES = 20
_CARRIER = "binascii.Incomplete"


def timed_out(limits: Limits) -> ScriptError:
    """The error of a run that passed its wall limit."""
    return ScriptError(
        code="timed-out",
        type="TimeoutError",
        message=f"the run passed its limit of {limits.wall_seconds:g} s and was stopped",
        hint="do less in one script, or raise the wall limit",
    )


def explain(
    error: MontyError, script: Rewritten, source: str, failures: Mapping[str, CallFailed], limits: Limits
) -> tuple[Reason, ScriptError]:
    """Why the run ended and the error to show.

    Args:
        error: what monty raised.
        script: the rewritten script that ran.
        source: the caller's script.
        failures: failed calls by the text of their exception.
        limits: the bounds of the run.
    """
    if isinstance(error, MontyCrashedError):
        return _crashed(error, limits)
    if isinstance(error, MontyConversionError):
        return "error", ScriptError(
            code="value-unsupported",
            type="TypeError",
            message=f"a value cannot enter this engine: {error}",
            hint="use --engine cpython",
        )
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return "error", ScriptError(code="engine-unsupported", type="NotImplementedError", message=str(error))
    return _raised(error, script, source, failures, limits)


def _crashed(error: MontyCrashedError, limits: Limits) -> tuple[Reason, ScriptError]:
    if error.timed_out:
        return "timed-out", _cpu(limits)
    return "lost", ScriptError(
        code="engine-lost",
        type="MontyCrashedError",
        message="the sandbox process ended without an answer",
        hint="run it again; the calls that were made are recorded",
    )


def _cpu(limits: Limits) -> ScriptError:
    return ScriptError(
        code="timed-out",
        type="TimeoutError",
        message=f"the run passed its limit of {limits.cpu_seconds:g} s of CPU and was stopped",
        hint="do less in one script, or raise the CPU limit",
    )


def _raised(
    error: MontyRuntimeError | MontySyntaxError,
    script: Rewritten,
    source: str,
    failures: Mapping[str, CallFailed],
    limits: Limits,
) -> tuple[Reason, ScriptError]:
    name, _, message = error.display("type-msg").partition(": ")
    frames = error.traceback()
    if not frames and name == "TimeoutError" and "time limit exceeded" in message:
        return "timed-out", _cpu(limits)
    if name == "MemoryError" and message.startswith("memory limit exceeded"):
        name, message = "MemoryError", f"the run passed its limit of {limits.memory_bytes} bytes of memory"
    reason, details = _classify(name, message, failures)
    # The value as a whole has no place: no frames then.
    shown = _Traceback(
        [] if "path" in details.get("details", {}) and name == "ValueError" else frames, script, source
    )
    if "message" in details:
        message = details.pop("message")
    last = message
    if name == _CARRIER:
        details["type"] = "df.Error"
    if "shown" in details:
        message = details.pop("shown")
    kind = details.pop("type", name)
    return reason, ScriptError(
        type=kind,
        message=message,
        line=shown.place.line if shown.place else None,
        column=shown.place.column if shown.place else None,
        traceback=shown.text(f"{kind}: {last}" if last else kind),
        **details,
    )


def _classify(name: str, message: str, failures: Mapping[str, CallFailed]) -> tuple[Reason, dict[str, Any]]:
    """The reason, and the fields of the error that follow from the exception's type and text."""
    refusal = read_refusal(message) if name == "ValueError" else None
    if refusal is not None:
        return _refused(refusal)
    if name == _CARRIER and message in failures:
        failure = failures[message]
        return "error", {
            "code": failure.code,
            "shown": failure.message,
            "hint": failure.hint,
            "details": dict(failure.details),
        }
    match name:
        case "MemoryError":
            return "memory", {
                "code": "memory-exceeded",
                "hint": "hold less at once, or raise the memory limit",
            }
        case "RecursionError":
            return "error", {"code": "recursion", "hint": "use a loop, or recurse less deeply"}
        case "SystemExit":
            return "exit", {
                "code": "script-exit",
                "message": f"the script called exit({message})",
                "hint": "end the script by reaching its end, or with a top-level return",
            }
        case "NotImplementedError" if "monty" in message:
            return "error", {"code": "engine-unsupported", "hint": "use --engine cpython"}
        case "RuntimeError" if message.startswith("Internal error in monty"):
            return "error", {"code": "engine-unsupported", "hint": "use --engine cpython"}
        case _:
            return "error", {"code": "script-error"}


def _refused(refusal: Refusal) -> tuple[Reason, dict[str, Any]]:
    fields: dict[str, Any] = {
        "code": refusal.code,
        "type": "df.Error",
        "message": f"the script's value: {refusal.problem} at {refusal.path}",
        "hint": refusal.hint,
        "details": {"path": refusal.path},
    }
    if refusal.code == "value-too-large":
        return "output", fields | {
            "code": "output-exceeded",
            "hint": "return less: filter, aggregate, or page",
        }
    return "error", fields


class _Traceback:
    """Frames of the script, none of the host or the prelude, in the caller's coordinates."""

    def __init__(self, frames: list[Frame], script: Rewritten, source: str) -> None:
        self._lines = source.split("\n")
        self._frames: list[tuple[Place, str]] = []
        origins: Origins | None = None
        for frame in frames:
            if frame.filename != _SCRIPT:
                continue
            origins = origins or script.origins()
            place = origins.place((frame.line, frame.column - 1), (frame.end_line, frame.end_column - 1))
            if place is not None:
                self._frames.append((place, frame.function_name or "<module>"))

    @property
    def place(self) -> Place | None:
        """Where the error arose."""
        return self._frames[-1][0] if self._frames else None

    def text(self, last: str) -> str:
        """The traceback as Python prints it, long ones cut in the middle."""
        out = ["Traceback (most recent call last):"]
        frames = self._frames
        if len(frames) > _MAX_FRAMES:
            half = _MAX_FRAMES // 2
            shown = [*frames[:half], None, *frames[-half:]]
        else:
            shown = cast("list[tuple[Place, str] | None]", frames)
        for frame in shown:
            if frame is None:
                out.append(f"  [{len(frames) - _MAX_FRAMES} frames]")
                continue
            place, function = frame
            out.append(f'  File "<script>", line {place.line}, in {function}')
            if place.line <= len(self._lines):
                out.append(f"    {self._lines[place.line - 1].strip()}")
        return "\n".join([*out, last])
