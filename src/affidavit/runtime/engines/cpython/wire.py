"""What host and sandbox agree on, seen from both sides.

Between the host and a child go frames: `<length><kind><body>`, length over kind and body.

Towards the child, bodies are binary headers followed by JSON (what rows of `results` hold also as `marshal` writes it)
that the host vouches for. From the child, every body is
JSON (or a JSON header and JSON), because the host must check each part of it.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = [
    "CALL",
    "CREATED",
    "DONE",
    "ENDED",
    "FAILED",
    "LENGTH",
    "OUTPUT_BYTES",
    "OUTPUT_HEADER",
    "PROGRAM",
    "READY",
    "RETURNED",
    "SECTIONS",
    "SETTLED",
    "START",
]

LENGTH: Final = struct.Struct("<I")

# to the child
PROGRAM: Final = 0x70  # SECTIONS, then header JSON, tree JSON, inputs JSON, what rows of `results` hold
START: Final = 0x73  # nothing: what was sent as the program may start
RETURNED: Final = 0x76  # SETTLED, then the value as JSON
FAILED: Final = 0x65  # SETTLED, then {code, message, hint, retryable, details}

# from the child
READY: Final = 0x72  # {layer: problem or ""}
CALL: Final = 0x63  # [id, path, line, column, iteration, arguments]
DONE: Final = 0x64  # length of the header, header JSON, then the value as JSON or nothing

SECTIONS: Final = struct.Struct("<IIII")
SETTLED: Final = struct.Struct("<Qd")  # id of the call, when it completed

# from the zygote, beside `R` + report and `E` + text
CREATED: Final = struct.Struct("<ci")  # `C`, pid or negative error number
ENDED: Final = struct.Struct("<ciidd")  # `X`, pid, wait status, user seconds, system seconds

# the memory for a script's output
OUTPUT_BYTES: Final = 64 << 20
"""Size, header included; only pages that are written take memory."""

OUTPUT_HEADER: Final = struct.Struct("<QQ")
"""Bytes of text that follow, and characters that were dropped."""
