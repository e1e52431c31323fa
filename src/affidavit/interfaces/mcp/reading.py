"""`read`: what is kept of a call or a run, whole or in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.identity import PREFIX, to_json
from affidavit.evidence.pointer import NowhereError, is_pointer, resolve
from affidavit.evidence.record import Failure, JsonValue, Record, Success
from affidavit.interfaces.mcp.paging import Page, page
from affidavit.interfaces.mcp.reply import Reply, call_text
from affidavit.interfaces.mcp.tools import ReadArguments
from affidavit.namespaces.names import suggestion
from affidavit.runtime.rendering.settlement import json_text
from affidavit.runtime.run import RunView, resolve_run, runs_of
from affidavit.runtime.session import Session
from affidavit.store import Store

__all__ = ["READ_BYTES", "read"]

READ_BYTES: Final = 16 << 10
"""Bytes of JSON that one reply of `read` shows at most, but for a page's cuts."""

_SMALL: Final = 1000
_RUN_NUMBER_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Something that can be read: its whole id, what is said of it, and its parts by name, made when asked for."""

    ref: str
    kind: str
    about: Mapping[str, JsonValue]
    parts: Mapping[str, Callable[[], JsonValue]]
    default: str


def read(store: Store, session: Session, asked: ReadArguments) -> Reply:
    """Answer one call of `read`.

    Raises:
        NotFoundError: `evidence-not-found`, `run-not-found`, `item-not-found` for a pointer to nothing.
        UsageError: `evidence-ambiguous`, `arguments-invalid`, `limit-invalid`.
        VerificationError: what is kept is damaged.
    """
    ref, mark, place = asked.ref.partition("#")
    if mark and asked.pointer:
        raise UsageError(
            "arguments-invalid",
            "read: ref has a pointer after #, and pointer is given",
            hint="give one of them",
        )
    pointer = place or asked.pointer
    kept = _find(store, session, ref.strip())
    part = asked.part or kept.default
    if part not in kept.parts:
        raise UsageError(
            "arguments-invalid",
            f"read: a {kept.kind} has no part {part!r}",
            hint=f"it has {', '.join(kept.parts)}",
        )
    value = _at(kept.parts[part](), pointer)
    shown = page(value, pointer=pointer, offset=asked.offset, limit=asked.limit, max_bytes=READ_BYTES)
    if shown.unit and asked.offset > shown.total:
        raise UsageError(
            "limit-invalid",
            f"read: offset {asked.offset} is beyond the {shown.total} {shown.unit}",
            hint="next_offset of the reply before says where to go on",
        )
    return _reply(kept, part, pointer, shown)


def _reply(kept: _Kept, part: str, pointer: str, shown: Page) -> Reply:
    where: dict[str, JsonValue] = {"ref": kept.ref}
    where |= {"part": part} if part != kept.default else {}
    if shown.cuts:
        following = call_text("read", **where, pointer=shown.cuts[0].pointer)
        following += " reads what is cut"
        if shown.next_offset is not None:
            following += f'; "pointer": {json_text(pointer)}, "offset": {shown.next_offset} goes on'
    elif shown.next_offset is not None:
        place = {"pointer": pointer} if pointer else {}
        following = call_text("read", **where, **place, offset=shown.next_offset) + " goes on"
    else:
        following = "this is the end of it; run a script, or state the answer"
    document: dict[str, JsonValue] = {
        "ref": kept.ref,
        "kind": kept.kind,
        "part": part,
        "pointer": pointer,
        "about": dict(kept.about),
        "value": shown.value,
        "unit": shown.unit,
        "total": shown.total,
        "offset": shown.offset,
        "returned": shown.returned,
        "next_offset": shown.next_offset,
        "cuts": [cut.as_json() for cut in shown.cuts],
        "more_cuts": shown.more_cuts,
        "next": following,
    }
    title = f"{kept.ref} {part}{' ' + pointer if pointer else ''}"
    if shown.unit and (shown.offset or shown.next_offset is not None):
        last = shown.offset + shown.returned
        title += f", {shown.unit} {shown.offset} to {last} of {shown.total}"
    body = shown.value if isinstance(shown.value, str) else json_text(shown.value)
    lines = [title, json_text(kept.about), body]
    lines += [f"cut: {cut.pointer}: {cut.shown} of {cut.total} {cut.unit}" for cut in shown.cuts]
    lines += [f"cut: {shown.more_cuts} more places"] if shown.more_cuts else []
    return Reply(document=document, text="\n".join([*lines, f"next: {following}"]))


def _at(value: JsonValue, pointer: str) -> JsonValue:
    """The value at an RFC 6901 pointer."""
    if not is_pointer(pointer):
        raise UsageError(
            "arguments-invalid",
            f"read: {_brief(pointer)} is not a JSON Pointer",
            hint="for example /rows/0/path",
        )
    try:
        return resolve(pointer, value)
    except NowhereError as error:
        raise _nothing(error) from None


def _nothing(error: NowhereError) -> NotFoundError:
    above, missing = error.above[-200:] or "the whole", _brief(error.token)
    found: Any = error.found
    if isinstance(found, list):
        count = len(cast("list[JsonValue]", found))
        hint = f"0 to {count - 1}" if count else "it is empty"
        return NotFoundError("item-not-found", f"{above} has {count} items and no {missing}", hint=hint)
    if isinstance(found, dict):
        names = list(cast("dict[str, JsonValue]", found))
        hint = suggestion(error.token, names[:200], otherwise="It has")
        return NotFoundError("item-not-found", f"{above} has no {missing}", hint=hint)
    return NotFoundError("item-not-found", f"{above} has no parts, so no {missing}")


def _brief(text: str) -> str:
    return repr(text[:80]) + ("..." if len(text) > 80 else "")


def _find(store: Store, session: Session, ref: str) -> _Kept:
    if ref.startswith("run_") or (ref.isdecimal() and len(ref) <= _RUN_NUMBER_DIGITS):
        return _of_run(store, session, ref)
    if not ref.startswith(PREFIX) and not set(ref) <= set("0123456789abcdef"):
        raise UsageError(
            "arguments-invalid",
            f"read: {_brief(ref)} is neither an evidence id nor a run",
            hint="evidence ids begin with ev1_, run ids with run_",
        )
    whole = store.evidence.resolve(ref)
    record = store.evidence.get(whole)
    parts: dict[str, Callable[[], JsonValue]] = {
        "result": lambda: _result(store, record),
        "parameters": lambda: values.plain(to_json(record)["parameters"]),
        "record": lambda: to_json(record),
    }
    return _Kept(ref=whole, kind="record", about=_about(record), parts=parts, default="result")


def _result(store: Store, record: Record) -> JsonValue:
    return values.plain(store.evidence.result(record)) if isinstance(record.outcome, Success) else None


def _about(record: Record) -> dict[str, JsonValue]:
    about: dict[str, JsonValue] = {
        "operation": record.operation,
        "outcome": "ok",
        "artifact": record.subject.digest if record.subject else None,
        "authority": record.authority,
        "confidence": record.confidence,
        "coverage": record.coverage.state if record.coverage else None,
        "limitations": len(record.limitations),
        "parents": len(record.parents),
    }
    parameters = values.plain(to_json(record)["parameters"])
    if len(orjson.dumps(parameters)) <= _SMALL:
        about["parameters"] = parameters
    if isinstance(record.outcome, Failure):
        message = record.outcome.message[:_SMALL]
        about |= {"outcome": "failed", "code": record.outcome.code, "message": message}
    elif not isinstance(record.outcome, Success):
        about["outcome"] = "unfinished"
    return about


def _of_run(store: Store, session: Session, ref: str) -> _Kept:
    # A whole id is found in any session of the tenant; numbers and prefixes are those of this one.
    events = store.events.of_run(ref) if ref.startswith("run_") else []
    found = runs_of(events)
    view = found[0] if found else resolve_run(session.runs(), ref)
    events = events if found else store.events.of_run(view.run_id)
    requested = next(event for event in events if event.kind == "run-requested")
    settled = view.settled
    error = cast("Mapping[str, Any]", settled.get("error") or {})
    about: dict[str, JsonValue] = {
        "number": view.number,
        "session_id": requested.session,
        "status": view.status,
        "engine": view.engine,
        "calls": len(view.calls),
        "error": error.get("code"),
    }
    parts: dict[str, Callable[[], JsonValue]] = {
        "value": lambda: values.plain(view.value(store)),
        "stdout": lambda: settled.get("stdout", ""),
        "error": lambda: settled.get("error"),
        "diagnostics": lambda: settled.get("diagnostics", []),
        "answer": lambda: settled.get("answer"),
        "calls": lambda: _calls(view),
        "source": lambda: cast("Mapping[str, Any]", requested.data)["source"],
    }
    return _Kept(ref=view.run_id, kind="run", about=about, parts=parts, default="value")


def _calls(view: RunView) -> list[JsonValue]:
    kept = ("operation", "contract", "status", "line", "duration_ms", "code")
    calls: list[JsonValue] = []
    for event in view.calls:
        data = cast("Mapping[str, Any]", event.data)
        calls.append({"evidence_id": event.evidence_id} | {name: data.get(name) for name in kept})
    return calls
