"""What stands around a script beside the host's names: results of earlier scripts, and the preamble."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from affidavit.evidence.record import JsonValue
from affidavit.runtime.program import PreambleEntry
from affidavit.runtime.typecheck.verdict import Problem

__all__ = ["ResultTypes", "Schema", "Surroundings", "module_name"]

Schema: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTypes:
    """The types of `results`.

    Attributes:
        session: stub source that declares `results`; it imports each row's stub by its `module_name`.
        rows: the stub of each row that the script names.
        length: how many rows there are.
        numbers: the run numbers of the rows, newest first.
        unknown: run numbers that the script names and that have no row at all.
        has_last: whether any of the rows is a success.
    """

    session: str
    rows: tuple[str, ...] = ()
    length: int = 0
    numbers: tuple[int, ...] = ()
    unknown: frozenset[int] = frozenset()
    has_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a script of a session finds, beside `df` and its inputs.

    Attributes:
        preamble: entries that run before it, in order.
        clashes: names that two of them bind. Nothing sets such an entry, but a log may hold it.
        results: the types of `results`, or None where the script does not mention it.
        schemas: by the path below `df` that calls an operation (`db.app.modules.page`), the JSON Schema of each of its
            arguments: their bounds are in no stub.
    """

    preamble: tuple[PreambleEntry, ...] = ()
    clashes: tuple[Problem, ...] = ()
    results: ResultTypes | None = None
    schemas: Mapping[str, Schema] = field(default_factory=dict[str, "Schema"])


def module_name(text: str) -> str:
    """The module that holds a stub: named by its content, so that it never changes once it is written."""
    return "stub_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
