"""A journal with a line of every kind, and events of every kind that the product writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from affidavit.evidence.identity import record_id, seal
from affidavit.evidence.record import Failure, Limitation
from affidavit.evidence.values import encode
from affidavit.store import Event, Store
from affidavit.store.journal import Journal, JournalSettings
from affidavit.store.unknowns import Unknowns
from tests.evidence.bundles import answer, page
from tests.evidence.records import observation

__all__ = ["EVENTS", "rich"]

SESSION = "vector"
RUN = "run_1"
DIGEST = "sha256:" + "1" * 64
LARGE = observation(["x" * 1000] * 70)
FAILED = observation(
    outcome=Failure(code="tool-failed", details={"n": 1}, message="no", hint="try 2"),
    limitations=(Limitation(code="entry-damaged", place="a\ud800", message="cut"),),
)
PAGE = page()
ANSWER = answer([f"{record_id(PAGE)}#/rows/1"], [PAGE])
VALUES = [encode(it) for it in (1.0, 2**80, b"\0", "\ud800", {"$x": float("nan")})]
CALL: dict[str, Any] = {
    "operation": "db.app.modules.page",
    "contract": "x/1",
    "line": 3,
    "column": 4,
    "iteration": 0,
}
STARTED = CALL | {
    "parameters": {"values": VALUES}, "producer": ["x", "1"], "authority": "live-source", "confidence": "observed",
}  # fmt: skip


def ended(call: int, status: str = "ok", code: str = "") -> dict[str, Any]:
    return CALL | {"call": call, "status": status, "code": code, "duration_ms": 0.5}


def settled(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number, "status": "succeeded", "engine": "cpython", "engine_reason": "", "has_value": True,
        "answer": None, "stdout": "", "stdout_cut": 0, "error": None, "check": "clean", "check_reason": "",
        "diagnostics": [], "notes": [], **more,
    }  # fmt: skip


def requested(number: int) -> dict[str, Any]:
    script = "sha256:" + "2" * 64
    return {"number": number, "source": "1", "script": script, "inputs": {"a": VALUES[0]}, "engine": "auto"}


# kind, data, run, record
EVENTS: list[tuple[str, dict[str, Any], str | None, Any]] = [
    ("session-opened", {"version": "0.1.0"}, None, None),
    ("mount-added", {
        "name": "app", "kind": "javascript", "uri": DIGEST, "path": None, "artifact": DIGEST, "format": "asar",
        "signature": "", "limitations": [{"code": "entry-damaged", "place": "a", "message": "cut"}],
    }, None, observation()),
    ("mount-added", {
        "name": "f", "kind": "python", "uri": "python:f", "path": None, "artifact": None, "format": None,
        "signature": "", "limitations": [],
    }, None, None),
    ("mount-removed", {"name": "f"}, None, None),
    ("preamble-set", {"key": "a", "code": "x = 1"}, None, None),
    ("preamble-removed", {"key": "a"}, None, None),
    ("run-requested", requested(1), RUN, None),
    ("run-started", {"engine": "cpython", "reason": "", "clock": 1.5, "seed": 7}, RUN, None),
    ("call-recorded", ended(0, "failed", "arguments-invalid"), RUN, FAILED),
    ("call-started", STARTED | {"call": 1}, RUN, None),
    ("call-started", STARTED | {"call": 2}, RUN, None),
    ("call-recorded", ended(2), RUN, LARGE),
    ("call-recorded", ended(1) | {"evidence_id": record_id(PAGE)}, RUN, PAGE),
    ("unknown-revised", {}, RUN, None),
    ("answer-given", {"status": "answered"}, RUN, ANSWER),
    ("run-settled", settled(1, value=VALUES[2]), RUN, None),
    ("run-requested", requested(2), "run_2", None),
    ("run-settled", settled(2, type={"annotation": "list[str]", "declarations": []}), "run_2", None),
    ("run-requested", requested(3), "run_3", None),
    ("run-settled", {"status": "orphaned", "has_value": False}, "run_3", None),
    ("call-started", STARTED | {"call": 1}, None, None),
    ("call-recorded", ended(1), None, observation(VALUES)),
    ("bundle-imported", {"bundle": DIGEST}, None, None),
    ("evidence-imported", {"bundle": DIGEST}, None, observation({"imported": True})),
    ("of-a-later-version", {"anything": [1, {"more": None}]}, None, None),
]  # fmt: skip


def rich(root: Path, *, large: bool = True) -> Path:
    """The journal, written by the product; its one file. Without what is large it has no blobs."""
    with Store.open(root / "w") as store:
        settings = JournalSettings(folder=root / "j", fsync="never")
        subjects = [{"name": "app", "digest": DIGEST, "format": "asar"}]
        journal = Journal.open(store, SESSION, settings, product="0.1.0", subjects=subjects)
        store.follow(SESSION, journal)
        for number, (kind, data, run, record) in enumerate(EVENTS):
            if kind == "unknown-revised":
                given = {"question": "Why?", "domain": "x", "supports": [record_id(PAGE)], "probes": ["look"]}
                Unknowns(store, now=lambda: 13.25).open(given, session=SESSION, run=run)
                continue
            if not large and (
                record is LARGE or "type" in data or (kind, data.get("call")) == ("call-started", 2)
            ):
                continue
            said = dict(data)
            if kind == "run-settled" and "type" in data:
                blob = store.blobs.put(orjson.dumps(["y" * 20_000]))
                said["value_blob"] = {"digest": blob.digest, "size": blob.size}
            sealed = None if record is None else seal(record)
            key = kind if kind == "session-opened" else None
            store.append(
                Event(kind=kind, session=SESSION, run=run, data=said, at=number + 0.25, key=key),
                record=sealed,
            )
    [path] = (root / "j").iterdir()
    return path
