"""What a child is told, as the bodies of frames: its program, and what came of its calls."""

from __future__ import annotations

import functools
import json
import marshal
import re
from collections.abc import Sequence
from typing import Final

import orjson

from affidavit.runtime.engines.cpython.wire import FAILED, RETURNED, SECTIONS, SETTLED
from affidavit.runtime.program import CallResult, CallReturned, Earlier, Program

__all__ = ["packed", "program_body", "settled_frame", "untagged"]

_PACKED_BYTES: Final = (
    64 << 10
)  # longer rows take longer to pack than a script that may not read them should wait
_PACKED_ROWS: Final = 64  # kept for the next scripts: a session sends the same rows again
_TAG: Final = b'"$'
_FLOAT: Final = b'"$float"'
# At most fifteen digits: such a decimal is one float, and `repr` writes it so.
_WHOLE_FLOAT: Final = re.compile(rb'\{"\$float":"(-?(?:0|[1-9][0-9]{0,14})\.0)"\}')


def untagged(body: bytes) -> bytes:
    """Encoded JSON with its whole floats as plain numbers.

    They have tags since JSON at large does not tell 1.0 from 1. A child's reader does, and a value without tags is read
    there in a tenth of the time. Nothing but a tag looks like one: in a text, each quotation mark has a backslash.
    """
    return b"".join(_WHOLE_FLOAT.split(body)) if _FLOAT in body else body


@functools.lru_cache(maxsize=_PACKED_ROWS)
def packed(body: bytes) -> bytes | None:
    """Encoded JSON as `marshal` writes what it holds; None where that needs tags, or is nested too deeply.

    It is read in half the time. Host and child are the same interpreter, and nothing is read so that came from a child.
    """
    plain = untagged(body)
    if _TAG in plain:
        return None
    try:
        return marshal.dumps(orjson.loads(plain))
    except ValueError:
        return None


def program_body(program: Program) -> bytes:
    """The body of `PROGRAM`."""
    limits = program.limits
    header: dict[str, object] = {
        "source": program.source,
        "clock": program.clock,
        "seed": program.seed,
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": limits.cpu_seconds,
        "output_bytes": limits.output_bytes,
        "argument_bytes": limits.argument_bytes,
        "result_bytes": limits.result_bytes,
    }
    if program.preamble:
        header["preamble"] = [[entry.key, entry.code] for entry in program.preamble]
    held: list[bytes] = []
    if program.results is not None:
        header["results"] = _rows(program.results, held)
    if program.timers is not None:
        header["timers"] = program.timers
    parts = [
        json.dumps(header).encode(),
        orjson.dumps(program.tree),
        untagged(orjson.dumps(program.inputs)),
    ]
    lengths = SECTIONS.pack(*map(len, parts), sum(map(len, held)))
    return b"".join([lengths, *parts, *held])


def settled_frame(number: int, result: CallResult) -> tuple[int, bytes]:
    """Kind and body of the frame that ends a call."""
    head = SETTLED.pack(number, result.completed)
    if isinstance(result, CallReturned):
        return RETURNED, head + untagged(result.json)
    told = {
        "code": result.code,
        "message": result.message,
        "hint": result.hint,
        "retryable": result.retryable,
        "details": dict(result.details),
    }
    return FAILED, head + json.dumps(told, default=str).encode()


def _rows(results: Sequence[Earlier], held: list[bytes]) -> list[list[object]]:
    """Rows as the header has them: last the length of what they hold, 0 where that is not sent along, and its form."""
    rows: list[list[object]] = []
    for row in results:
        content = row.content or b""
        short = packed(content) if 0 < len(content) <= _PACKED_BYTES else None
        held.append(untagged(content) if short is None else short)
        rows.append([row.number, row.run_id, row.kind, row.size, len(held[-1]), short is not None])
    return rows
