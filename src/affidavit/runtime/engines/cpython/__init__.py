"""The `cpython` engine: the whole language, in locked children of a warm process.

`guest` is imported inside the sandbox as well, with the standard library only; the host's part is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from affidavit.runtime.engines.cpython.engine import CPythonEngine

__all__ = ["CPythonEngine"]


def __getattr__(name: str) -> object:
    if name == "CPythonEngine":
        from affidavit.runtime.engines.cpython.engine import CPythonEngine

        return CPythonEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
