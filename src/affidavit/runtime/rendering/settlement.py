"""A settlement as an agent reads it: what came of a script, bounded, and the expression that reaches the whole.

What is cut is said where it is cut and by how much. The recipe goes by what the row really is: the same bound decides
whether a value is `data` or must be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.memory.result_types import type_of
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.rendering.preview import Cut, preview, subscripts
from affidavit.runtime.run import Run

__all__ = ["findings", "json_text", "settlement"]

_OUTPUT: Final = 4_000
_MESSAGE: Final = 2_000
_CUTS: Final = 5
_CALLS: Final = 20
_FINDINGS: Final = 20
_NOTES: Final = 10


def settlement(run: Run) -> str:
    """What came of a script, for an agent: status, type, preview, what was cut, and how to reach the whole."""
    return "\n".join(_lines(run))


def _lines(run: Run) -> Iterator[str]:
    made = len(run.calls)
    where = f" in {run.engine}" if run.engine else ""
    yield f"run {run.number} {run.status}{where}; {made} call{'s' * (made != 1)} recorded"
    if run.check == "unchecked":
        yield f"not type-checked: {run.check_reason[:_MESSAGE]}"
    yield from (f"note: {note[:_MESSAGE]}" for note in run.notes[:_NOTES] if note != run.check_reason)
    yield from findings(run.diagnostics)
    if run.stdout:
        yield f"printed:\n{_middle_cut(run.stdout, run.stdout_cut)}"
    if run.status == "rejected":
        yield "nothing ran; `results` did not change"
    elif run.error is not None:
        yield from _error(run, run.error)
    elif run.has_value:
        yield from _value(run)
    elif run.status == "succeeded" and run.answer is None:
        yield "it returned nothing: end the script with an expression to return its value"
    if run.answer is not None:
        yield from _answer(run.answer)
    yield from _calls(run)


def findings(found: Sequence[Mapping[str, JsonValue]]) -> Iterator[str]:
    """What a check found, a line each, what blocks first."""
    for one in sorted(found, key=lambda one: not one["blocking"])[:_FINDINGS]:
        kind = "error" if one["blocking"] else "advice"
        hint = f"; did you mean {str(one['suggestion'])[:_MESSAGE]}?" if one.get("suggestion") else ""
        message = str(one["message"])[:_MESSAGE]
        yield f"{kind} at {one['line']}:{one['column']} [{one['rule']}]: {message}{hint}"
    if len(found) > _FINDINGS:
        yield f"{len(found) - _FINDINGS} more findings"


def _error(run: Run, error: Mapping[str, JsonValue]) -> Iterator[str]:
    line = f" at line {error['line']}" if error.get("line") else ""
    kind = f"{error['type']}: " if error.get("type") else ""
    yield f"error{line}: [{error['code']}] {kind}{str(error['message'])[:_MESSAGE]}"
    trace = str(error.get("traceback") or "").strip()
    if trace.count('File "') > 1:  # one frame says no more than the line above
        yield trace[-_MESSAGE:]
    if error.get("hint"):
        yield f"hint: {str(error['hint'])[:_MESSAGE]}"
    if run.status == "failed":
        yield f"the next script finds it as results[0].error, and as results.by_run({run.number}).error"


def _value(run: Run) -> Iterator[str]:
    size = len(orjson.dumps(run.value))
    found = type_of(run.value, run.number, size)
    yield f"value: {size:,} bytes of JSON, of type {found.annotation}"
    yield from (declaration.rstrip("\n") for declaration in found.declarations)
    plain = values.plain(run.value)
    seen = preview(plain)
    yield json_text(seen.value)
    # The shortest place first: a cut inside of something that is cut itself helps less.
    for cut in sorted(seen.cuts, key=lambda cut: len(cut.pointer))[:_CUTS]:
        yield f"cut: {_missing(cut)} of {_expression(size, subscripts(plain, cut.pointer))}"
    more = len(seen.cuts[_CUTS:]) + seen.more_cuts
    if more:
        yield f"cut: {more} more places"
    yield f"whole: {_expression(size, '')} in the next script, results.by_run({run.number}) in any later one"


def _answer(answer: Mapping[str, JsonValue]) -> Iterator[str]:
    kept = answer.get("evidence_id") or "not recorded, since the run failed"
    yield f"answer: {answer['status']}, {kept}"
    yield json_text(preview(answer.get("value")).value)


def _calls(run: Run) -> Iterator[str]:
    for entry in run.calls[:_CALLS]:
        outcome = f"failed {entry.code}" if entry.status == "failed" else entry.status
        yield f"call: line {entry.line} {entry.operation} {outcome} {entry.evidence_id}"
    if len(run.calls) > _CALLS:
        yield f"call: {len(run.calls) - _CALLS} more"


def _missing(cut: Cut) -> str:
    if cut.unit == "levels":
        return f"all {cut.total:,} parts"
    return f"{cut.total - cut.shown:,} of {cut.total:,} {cut.unit}"


def _expression(size: int, path: str) -> str:
    """What reaches a place of the value from the next script, by the bound that makes its row `data` or `large`."""
    if size <= INLINE_BYTES:
        return f"results[0].data{path}"
    return f"(await results[0].load()){path}" if path else "await results[0].load()"


def _middle_cut(text: str, dropped: int) -> str:
    """Output with its middle left out where it is long: the end often holds the answer."""
    lost = f"\n... ({dropped:,} more characters were over the limit and are lost)" if dropped else ""
    over = len(text) - _OUTPUT
    if over <= 0:
        return text.rstrip("\n") + lost
    half = _OUTPUT // 2
    return f"{text[:half]}\n... ({over:,} characters left out here) ...\n{text[-half:].rstrip()}{lost}"


def json_text(value: JsonValue) -> str:
    """A value as compact JSON for a model."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
