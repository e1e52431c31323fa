"""Correct scripts, in the manner of those that agents write, and with everything that once fooled a checker.

None of them may be rejected. Where static types cannot follow (a dictionary in a variable, a key that is added
later), advice is fine.
"""

from __future__ import annotations

from tests.runtime.typecheck import good_scripts_1, good_scripts_2, good_scripts_3

__all__ = ["GOOD"]

_PARTS = (good_scripts_1.TEXT, good_scripts_2.TEXT, good_scripts_3.TEXT)

GOOD: tuple[str, ...] = tuple(script for part in _PARTS for script in part.strip("\n").split("\n---\n"))
