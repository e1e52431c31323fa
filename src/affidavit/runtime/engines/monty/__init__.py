"""The portable engine: scripts run in pydantic-monty, an interpreter without any system call of its own.

It runs less than Python. What it cannot run, or would do differently from Python, is refused before anything runs.
"""

from __future__ import annotations

from affidavit.runtime.engines.monty.engine import MontyEngine
from affidavit.runtime.engines.monty.unsupported import Unsupported, unsupported

__all__ = ["MontyEngine", "Unsupported", "unsupported"]
