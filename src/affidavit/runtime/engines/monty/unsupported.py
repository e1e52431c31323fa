"""What of a script monty cannot run as Python means it."""

from __future__ import annotations
import ast
from collections.abc import Mapping
from dataclasses import dataclass
from affidavit.evidence.record import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    line: int
    column: int
    construct: str
    message: str


def unsupported(source: str, tree: Mapping[str, JsonValue]) -> list[Unsupported]:
    return []
