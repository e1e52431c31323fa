"""What `run` and `check_only` answer: the run's document within bounds, and a text that says the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.interfaces.mcp.preview import Preview, preview, size_of
from affidavit.interfaces.mcp.reply import Reply, call_text, clipped, json_text
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.run import Run
from affidavit.runtime.typecheck import Verdict

__all__ = ["checked", "ran"]

_STDOUT: Final = 4000
_CALLS: Final = 20
_FINDINGS: Final = 20
_NOTES: Final = 10
_WORDS: Final = 2000


def ran(run: Run) -> Reply:
    """The reply of a run. Fields are those of `affidavit run --json`; what is cut is named."""
    whole = run.as_json()
    value = values.plain(run.value)
    seen = preview(value)
    stdout, hidden = clipped(run.stdout, _STDOUT)
    answer = preview(whole["answer"], pointer="")
    following = _next(run, seen, hidden)
    document: dict[str, JsonValue] = whole | {
        "value": seen.value,
        "value_bytes": size_of(value) if run.has_value else 0,
        "cuts": [cut.as_json() for cut in seen.cuts],
        "more_cuts": seen.more_cuts,
        "answer": answer.value,
        "stdout": stdout,
        "stdout_cut": run.stdout_cut + hidden,
        "error": _bounded(run.error),
        "diagnostics": [_bounded(one) for one in run.diagnostics[:_FINDINGS]],
        "diagnostics_total": len(run.diagnostics),
        "calls": [entry.as_json() for entry in run.calls[:_CALLS]],
        "calls_total": len(run.calls),
        "notes": list(run.notes[:_NOTES]),
        "next": following,
    }
    lines = [_title(run)]
    lines += [f"note: {note}" for note in run.notes[:_NOTES]]
    lines += _findings(run.diagnostics)
    lines += _value_lines(run, seen, document["value_bytes"])
    if run.has_value:
        large = len(orjson.dumps(run.value)) > INLINE_BYTES
        whole = "await results[0].load()" if large else "results[0].data"
        lines.append(f"the next script has it as {whole}, any later one by results.by_run({run.number})")
    if run.answer is not None:
        lines.append(f"answer: {json_text(answer.value)}")
        lines += [_cut_line(run.run_id, "answer", cut.pointer) for cut in answer.cuts[:1]]
    lines += _stdout_lines(run, stdout, hidden)
    if run.error is not None and run.status != "rejected":
        lines += _error_lines(run.error)
    lines += _call_lines(run)
    return Reply(
        document=document, text="\n".join([*lines, f"next: {following}"]), is_error=run.status != "succeeded"
    )


def checked(verdict: Verdict) -> Reply:
    """The reply of a check alone: a rejected script is what was asked about, not an error of the call."""
    found = [diagnostic.as_json() for diagnostic in verdict.diagnostics]
    if verdict.status == "rejected":
        following = "correct what blocks and call run; nothing ran"
    else:
        following = "call run with the same code, without check_only"
    document: dict[str, JsonValue] = {
        "status": verdict.status,
        "reason": verdict.reason,
        "diagnostics": [_bounded(one) for one in found[:_FINDINGS]],
        "diagnostics_total": len(found),
        "next": following,
    }
    title = f"check: {verdict.status}" + (f" ({verdict.reason})" if verdict.reason else "")
    return Reply(document=document, text="\n".join([title, *_findings(found), f"next: {following}"]))


def _title(run: Run) -> str:
    title = f"{run.status}: run {run.number}, {run.run_id}"
    if run.status == "rejected":
        return f"{title}. Rejected before running: nothing of it ran, and no call was made."
    title += f", in {run.engine}"
    if run.check == "unchecked":
        title += f". Not checked before: {run.check_reason}"
    return title


def _value_lines(run: Run, seen: Preview, size: int) -> list[str]:
    if not run.has_value and run.answer is not None:
        return []
    if not run.has_value:
        return (
            ["no value: end the script with an expression to return one"] if run.status == "succeeded" else []
        )
    if not (seen.cuts or seen.more_cuts):
        return [f"value: {json_text(seen.value)}"]
    lines = [f"value ({size} bytes, shown in part): {json_text(seen.value)}"]
    lines += [
        f"cut: {cut.pointer or 'the whole'}: {cut.shown} of {cut.total} {cut.unit}" for cut in seen.cuts[:5]
    ]
    more = seen.more_cuts + max(0, len(seen.cuts) - 5)
    return [*lines, f"cut: {more} more places"] if more else lines


def _stdout_lines(run: Run, stdout: str, hidden: int) -> list[str]:
    if not stdout:
        return []
    lines = ["stdout:", stdout.rstrip("\n")]
    if hidden:
        lines.append(
            f"{hidden} more characters: {call_text('read', ref=run.run_id, part='stdout', offset=len(stdout))}"
        )
    if run.stdout_cut:
        lines.append(f"{run.stdout_cut} characters beyond the limit of output were dropped")
    return lines


def _error_lines(error: Mapping[str, Any]) -> list[str]:
    place = f"line {error['line']}: " if error.get("line") else ""
    kind = f"{error['type']}: " if error.get("type") else ""
    lines = [f"error[{error['code']}]: {place}{kind}{str(error['message'])[:_WORDS]}"]
    trace = str(error.get("traceback") or "").strip()
    if trace.count('File "') > 1:  # one frame says no more than the line above
        lines.append(trace[-_WORDS:])
    if error.get("hint"):
        lines.append(f"hint: {str(error['hint'])[:_WORDS]}")
    return lines


def _call_lines(run: Run) -> list[str]:
    if not run.calls:
        return []
    lines = ["calls:"]
    for entry in run.calls[:_CALLS]:
        outcome = f"failed {entry.code}" if entry.status == "failed" else entry.status
        lines.append(f"  line {entry.line} {entry.operation} {outcome} {entry.evidence_id}")
    if len(run.calls) > _CALLS:
        following = call_text("read", ref=run.run_id, part="calls", offset=_CALLS)
        lines.append(f"  {len(run.calls) - _CALLS} more: {following}")
    return lines


def _findings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for one in sorted(found, key=lambda one: not one["blocking"])[:_FINDINGS]:
        kind = "error" if one["blocking"] else "advice"
        lines.append(f"{one['line']}:{one['column']}: {kind}[{one['rule']}]: {str(one['message'])[:_WORDS]}")
        if one.get("suggestion"):
            lines.append(f"  did you mean {str(one['suggestion'])[:_WORDS]}?")
    if len(found) > _FINDINGS:
        lines.append(f"{len(found) - _FINDINGS} more findings")
    return lines


def _next(run: Run, seen: Preview, hidden: int) -> str:
    match run.status:
        case "succeeded":
            return _after_success(run, seen, hidden)
        case "rejected":
            return _after_rejection(run)
        case "timed-out":
            return "run again with less to do: ask for fewer rows, or split it into several scripts"
        case _:
            made = f"; {len(run.calls)} calls were made and are recorded" if run.calls else ""
            refused = (run.error or {}).get("code") == "call-refused"
            if refused:
                return f"the person who started this server can permit it with --grant; do without it{made}"
            return f"correct the script and call run again{made}"


def _after_success(run: Run, seen: Preview, hidden: int) -> str:
    if seen.cuts:
        cut = seen.cuts[0]
        place: dict[str, JsonValue] = {"pointer": cut.pointer} if cut.pointer else {}
        place |= {"offset": cut.shown} if cut.shown else {}
        return f"{call_text('read', ref=run.run_id, **place)} reads the rest; or return less"
    if hidden:
        return (
            f"{call_text('read', ref=run.run_id, part='stdout', offset=_STDOUT)} reads the rest of the output"
        )
    if run.calls:
        following = call_text("read", ref=run.calls[-1].evidence_id)
        return f"{following} shows what the last call saw; or run the next script"
    return "run the next script, or search for operations to call"


def _after_rejection(run: Run) -> str:
    blocking = next((one for one in run.diagnostics if one["blocking"]), None)
    if blocking is None:
        return "correct the script and call run again"
    line = f"correct line {blocking['line']} and call run again"
    if str(blocking["rule"]).startswith("monty:"):
        return f'{line}, or with "engine": "cpython"'
    if "df" in str(blocking["message"]) and not blocking.get("suggestion"):
        return f'{line}; search {{"words": "..."}} finds operations'
    return line


def _cut_line(run_id: str, part: str, pointer: str) -> str:
    return f"cut: {call_text('read', ref=run_id, part=part, pointer=pointer)}"


def _bounded(value: Mapping[str, JsonValue] | None) -> JsonValue:
    """An error or a finding, its long texts cut; their structure stays."""
    if value is None:
        return None
    return {name: _short(item) for name, item in value.items()}


def _short(item: JsonValue) -> JsonValue:
    if isinstance(item, str):
        return item if len(item) <= 2 * _WORDS else item[: 2 * _WORDS] + "…"
    return preview(item).value if isinstance(item, dict | list) else item
