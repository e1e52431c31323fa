"""Values, answers, errors and findings as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.interfaces.cli.output import harmless, lines

__all__ = ["answer_text", "diagnostics_text", "error_text", "value_text"]


def value_text(value: JsonValue) -> str:
    """A value: a list of like mappings as a table, a flat mapping as two columns, anything else as JSON."""
    shown: Any = values.plain(value)
    if isinstance(shown, dict) and len(cast("dict[str, Any]", shown)) == 1:
        [(tag, inner)] = cast("dict[str, Any]", shown).items()
        if tag.startswith("$") and not tag.startswith("$$"):
            return harmless(str(inner))  # a date, a number beyond JSON: its text says it
    if isinstance(shown, list) and shown and all(map(_flat, cast("list[Any]", shown))):
        rows = cast("list[dict[str, Any]]", shown)
        return lines(rows, list(dict.fromkeys(name for row in rows for name in row)))
    if _flat(cast("object", shown)) and shown:
        pairs = cast("dict[str, Any]", shown).items()
        return lines([{"name": name, "value": item} for name, item in pairs], ["name", "value"])
    return orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()


def _flat(value: object) -> bool:
    return isinstance(value, dict) and not any(
        isinstance(item, dict | list) for item in cast("dict[str, Any]", value).values()
    )


def answer_text(answer: Mapping[str, Any]) -> str:
    """An answer with what it rests on."""
    parts = [f"answer: {answer['status']}", value_text(answer["value"])]
    if answer["derivation"]:
        parts.append(f"derived: {answer['derivation']}")
    if answer["reason"]:
        parts.append(f"reason: {answer['reason']}")
    parts += [f"missing: {item}" for item in answer["missing"]]
    coverage = answer["coverage"]
    parts.append(f"coverage: {coverage['state']} ({coverage['cited']} records cited)")
    parts += [f"  {_citation(citation)}" for citation in answer["evidence"]]
    if answer["evidence_id"]:
        parts.append(f"this answer: {answer['evidence_id']}")
    parts += [f"warning: {warning}" for warning in answer["quality_warnings"]]
    return harmless("\n".join(parts))


def _citation(citation: Any) -> str:
    if not isinstance(citation, dict):
        return str(citation)
    fields = cast("dict[str, Any]", citation)
    stated = [
        f"{name} {orjson.dumps(value).decode()}" for name, value in fields.items() if name != "evidence"
    ]
    return f"{fields['evidence']}: {', '.join(stated)}"


def diagnostics_text(found: Sequence[Mapping[str, Any]]) -> str:
    """Findings of the check, one line each and one for the suggestion."""
    parts: list[str] = []
    for item in found:
        kind = "error" if item["blocking"] else "advice"
        parts.append(f"{item['line']}:{item['column']}: {kind}[{item['rule']}]: {item['message']}")
        if item.get("suggestion"):
            parts.append(f"  hint: {item['suggestion']}")
    return harmless("".join(part + "\n" for part in parts))


def error_text(error: Mapping[str, Any]) -> str:
    """An error of a run with its place and next step."""
    parts: list[str] = []
    if error.get("traceback"):
        parts.append(str(error["traceback"]).rstrip("\n"))
    parts.append(f"error[{error['code']}]: {error['message']}")
    if error.get("hint"):
        parts.append(f"  hint: {error['hint']}")
    return harmless("\n".join(parts))
