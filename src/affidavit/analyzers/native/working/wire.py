"""What goes to the processes, and what they write back: JSON documents, these each behind its length.

JSON and not pickle: a process that decoded hostile bytes is not trusted to hand objects over.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Final, NamedTuple

import orjson

__all__ = ["BATCH", "LENGTH", "Frames", "Known", "Task"]

LENGTH: Final = struct.Struct("<I")
BATCH: Final = 32
"""Functions whose rows come in one document."""


class Known(NamedTuple):
    """What an exploration of a whole binary leaves to those that look at single functions later.

    Attributes:
        called: functions that calls led to.
        continued: functions that tail calls led to.
        parts: parts of functions that neither a name nor the unwind table tells.
        ending: functions that do not return.
        failed: why functions could not be looked at, by address as decimal text.
        loose: parts that no function led to.
    """

    called: list[int]
    continued: list[int]
    parts: list[int]
    ending: list[int]
    failed: dict[str, str]
    loose: list[int]


class Task(NamedTuple):
    """What the processes do.

    Attributes:
        rows: write everything about functions; else only outline them.
        known: what was found before, so that nothing is explored; or None.
        wanted: addresses of the functions to write; None for all.
    """

    rows: bool
    known: Known | None = None
    wanted: list[int] | None = None


class Frames:
    """Writes documents to a descriptor.

    Args:
        descriptor: open for writing; blocking.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, value: Any) -> None:
        """Write one document."""
        data = orjson.dumps(value)
        view = memoryview(LENGTH.pack(len(data)) + data)
        while view:
            view = view[os.write(self._descriptor, view) :]
