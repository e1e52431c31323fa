"""The preamble in the sandbox: each entry by itself, before the script, in the script's globals."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import signal
from collections.abc import Generator, Iterable
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn

__all__ = ["PREFIX", "load"]

PREFIX: Final = "<preamble "
"""How the file names of entries start."""

_MESSAGE: Final = 500
_CPU_SECONDS: Final = 1.0
_NOT_YET: Final = ("df", "results")
"""What is there when scripts run, and not when a preamble is loaded."""


def load(entries: Iterable[tuple[str, str]], names: dict[str, Any]) -> list[str]:
    """Run the entries. One that fails, does not end or ends the process is skipped; returns a note for each of these.

    What an entry prints is dropped, and names that were there before keep their meaning.
    """
    kept = dict(names)
    for name in _NOT_YET:
        names.pop(name, None)
    notes: list[str] = []
    for key, code in entries:
        filename = f"{PREFIX}{key}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                _bounded(),
            ):
                exec(compile(code, filename, "exec", dont_inherit=True), names)  # noqa: S102 - as for scripts
        except BaseException as problem:
            notes.append(_note(key, filename, problem))
    names.update(kept)
    return notes


@contextlib.contextmanager
def _bounded() -> Generator[None]:
    """Take an endless loop, and an end of the whole process, for an error of the entry."""
    leave, before = os._exit, signal.signal(signal.SIGPROF, _too_long)
    os._exit = _no_exit
    signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        os._exit = leave


def _too_long(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise TimeoutError(f"loading it takes more than {_CPU_SECONDS:g} s of CPU")


def _no_exit(status: int) -> NoReturn:
    raise SystemExit(status)


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
