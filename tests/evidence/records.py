"""Records for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from affidavit.evidence.record import Coverage, Limitation, Producer, Record, Subject, Success

ARTIFACT = "sha256:" + "ab" * 32
PARENT = "ev1_" + "cd" * 32


def observation(result: Any = None, **changes: Any) -> Record:
    """A small observation whose result is given."""
    record = Record(
        kind="observation",
        operation="javascript.modules.page/1",
        parameters={"where": {"path": "main.js"}, "limit": 64},
        outcome=Success(result={"rows": []} if result is None else result),
        producer=Producer(name="javascript", version="1"),
        authority="static-analysis",
        confidence="observed",
    )
    return replace(record, **changes)


def full(**changes: Any) -> Record:
    """An observation with every field set."""
    return observation(
        {"rows": [{"path": "main.js", "size": {"$float": "1.0"}, "score": 0.5}]},
        **{
            "subject": Subject(digest=ARTIFACT, format="asar"),
            "parents": (PARENT,),
            "coverage": Coverage(
                state="partial",
                selection="all files",
                examined=3,
                omitted=1,
                unknown=1,
                bounds={"bytes": 1024},
            ),
            "limitations": (
                Limitation(code="parse-error", place="b.js:3", message="unexpected token"),
                Limitation(code="encoding", place="a.js", message="not UTF-8"),
            ),
            **changes,
        },
    )
