"""What `run` and `check_only` answer: the run's document within bounds, and a text that says the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.interfaces.mcp.reply import Reply, call_text, clipped
from affidavit.runtime.rendering.preview import Preview, preview, size_of
from affidavit.runtime.rendering.settlement import findings, settlement
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
    lines = [settlement(run)]
    if len(run.calls) > _CALLS:
        lines.append(
            f"{call_text('read', ref=run.run_id, part='calls', offset=_CALLS)} lists the other calls"
        )
    lines.append(f"next: {following}")
    return Reply(document=document, text="\n".join(lines), is_error=run.status != "succeeded")


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
    return Reply(document=document, text="\n".join([title, *findings(found), f"next: {following}"]))


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


def _bounded(value: Mapping[str, JsonValue] | None) -> JsonValue:
    """An error or a finding, its long texts cut; their structure stays."""
    if value is None:
        return None
    return {name: _short(item) for name, item in value.items()}


def _short(item: JsonValue) -> JsonValue:
    if isinstance(item, str):
        return item if len(item) <= 2 * _WORDS else item[: 2 * _WORDS] + "…"
    return preview(item).value if isinstance(item, dict | list) else item
