"""The preamble in the sandbox: each entry by itself, before the script, in the script's globals."""

from __future__ import annotations

import contextlib
import io
import linecache
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final

__all__ = ["PREFIX", "load"]

PREFIX: Final = "<preamble "
"""How the file names of entries start."""

_MESSAGE: Final = 500


def load(entries: Iterable[tuple[str, str]], names: dict[str, Any]) -> list[str]:
    """Run the entries. One that fails is skipped; returns a note for each of these.

    What an entry prints is dropped, and names that were there before keep their meaning.
    """
    kept = dict(names)
    notes: list[str] = []
    for key, code in entries:
        filename = f"{PREFIX}{key}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(code, filename, "exec", dont_inherit=True), names)  # noqa: S102 - as for scripts
        except BaseException as problem:
            notes.append(_note(key, filename, problem))
    names.update(kept)
    return notes


def _note(key: str, filename: str, problem: BaseException) -> str:
    line = problem.lineno if isinstance(problem, SyntaxError) else _line(problem.__traceback__, filename)
    try:
        text = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    except BaseException:
        text = "its message cannot be made"
    return f"preamble {key}:{line or 1}: {type(problem).__name__}: {text[:_MESSAGE]}"


def _line(trace: TracebackType | None, filename: str) -> int | None:
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
