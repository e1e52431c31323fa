"""What the processes write to the one that started them: JSON documents, each behind its length.

JSON and not pickle: a process that decoded hostile bytes is not trusted to hand objects over.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Final

import orjson

__all__ = ["BATCH", "LENGTH", "Frames"]

LENGTH: Final = struct.Struct("<I")
BATCH: Final = 32
"""Functions whose rows come in one document."""


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
