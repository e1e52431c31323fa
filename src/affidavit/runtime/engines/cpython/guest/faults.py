"""An uncaught exception as the host reports it: in the script's own lines, without a frame of anything else."""

from __future__ import annotations

import difflib
import io
import sys
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, cast

from affidavit.runtime.engines.cpython.guest.bridge import SCRIPT, Error
from affidavit.runtime.engines.cpython.guest.preamble import PREFIX
from affidavit.runtime.engines.script import BODY

__all__ = ["fault", "limit_fault", "syntax_fault"]

_MESSAGE: Final = 8_000
_TRACEBACK: Final = 16_000
_FRAMES: Final = 12
_SUGGESTS: Final = sys.version_info >= (
    3,
    12,
)  # before that only the interpreter's own printer adds suggestions

Fault = dict[str, Any]


def fault(error: BaseException) -> tuple[str, Fault]:
    """The reason of the run's end, and the error as JSON: the fields of `program.ScriptError`."""
    line, column = _place(error.__traceback__)
    reason, code, hint = _kind(error)
    message = _message(error)
    details: Any = {}
    if isinstance(error, Error):
        code, hint, message, details = error.code, error.hint, error.message, error.details
    if isinstance(error, SystemExit):
        message = (
            "the script called exit()" if error.code is None else f"the script called exit({error.code!r})"
        )
    return reason, {
        "code": code,
        "type": "df.Error" if isinstance(error, Error) else type(error).__name__,
        "message": message[:_MESSAGE],
        "line": line,
        "column": column,
        "traceback": _suggesting(_traceback(error), error, message)[-_TRACEBACK:],
        "hint": hint,
        "details": details,
    }


def syntax_fault(error: SyntaxError | ValueError, source: str) -> Fault:
    """A script that is not Python. The column is in UTF-8 bytes, as everywhere."""
    shown = "".join(traceback.format_exception_only(error))[-_TRACEBACK:]
    if not isinstance(error, SyntaxError):
        return _plain("script-syntax", "SyntaxError", str(error)) | {"traceback": shown}
    column = None
    if error.lineno and error.offset:
        lines = source.splitlines()
        text = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        column = len(text[: error.offset - 1].encode("utf-8", "surrogatepass"))
    found = _plain("script-syntax", type(error).__name__, error.msg)
    return found | {"line": error.lineno, "column": column, "traceback": shown}


def limit_fault(code: str, message: str, hint: str = "", details: Any = None) -> Fault:
    """An error that no exception of the script stands for."""
    return _plain(code, "df.Error", message) | {"hint": hint, "details": details or {}}


def _plain(code: str, name: str, message: str) -> Fault:
    return {
        "code": code, "type": name, "message": message[:_MESSAGE], "line": None, "column": None, "traceback": "",
        "hint": "", "details": {},
    }  # fmt: skip


def _kind(error: BaseException) -> tuple[str, str, str]:
    """Reason, code and hint by type."""
    match error:
        case SystemExit():
            return "exit", "script-exit", "end the script by reaching its end, or with a top-level return"
        case MemoryError():
            return "memory", "memory-exceeded", "work on less at once: page, filter or aggregate earlier"
        case RecursionError():
            return "error", "recursion", "use a loop, or fewer levels"
        case ModuleNotFoundError():
            return "error", "script-error", "scripts have the standard library and df, no other packages"
        case KeyError(args=(str() as key,)):
            return "error", "script-error", _nearest_key(error.__traceback__, key)
        case PermissionError(errno=1):
            hint = "a script has no files, network or processes of its own: use df, and io.StringIO for scratch text"
            return "error", "script-error", hint
        case _:
            return "error", "script-error", ""


def _nearest_key(trace: TracebackType | None, key: str) -> str:
    """What was meant by a missing key: the nearest one of the mappings at hand where the script failed."""
    known: set[Any] = set()
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SCRIPT:
            held: list[Any] = list(trace.tb_frame.f_locals.values())
            held += [value[0] for value in held if type(value) is list and value]
            known.update(
                name for value in held if isinstance(value, dict) for name in cast("dict[Any, Any]", value)
            )
        trace = trace.tb_next
    near = difflib.get_close_matches(key, sorted(name for name in known if type(name) is str)[:1000], n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _message(error: BaseException) -> str:
    """What CPython prints behind the type, its suggestion included. A broken `__str__` is the script's own matter."""
    try:
        text = str(error)
    except BaseException:
        return f"<{type(error).__name__} whose text cannot be made>"
    if not isinstance(error, NameError | AttributeError | ImportError):
        return text
    try:
        last = _lines(error)[-1]
    except BaseException:
        return text
    _, found, rest = last.partition(": ")
    return rest if found and rest.startswith(text) else text


def _lines(error: BaseException) -> list[str]:
    """The exception's own lines, as the interpreter prints them."""
    if _SUGGESTS:
        printed = "".join(traceback.TracebackException.from_exception(error).format_exception_only())
    else:
        printed = _printed(error)
    return printed.strip().splitlines()


def _printed(error: BaseException) -> str:
    """What the interpreter itself prints: on 3.11 the only place where suggestions are made."""
    kept, sys.stderr = sys.stderr, io.StringIO()
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
        return sys.stderr.getvalue()
    finally:
        sys.stderr = kept


def _place(trace: TracebackType | None) -> tuple[int | None, int | None]:
    """Line and column of the deepest frame of the script."""
    line: int | None = None
    column: int | None = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SCRIPT:
            positions = list(trace.tb_frame.f_code.co_positions())
            at = trace.tb_lasti // 2
            line, column = trace.tb_lineno, positions[at][2] if 0 <= at < len(positions) else None
        trace = trace.tb_next
    return line, column


def _traceback(error: BaseException) -> str:
    try:
        summary = traceback.TracebackException.from_exception(error, compact=True)
        _only_script(summary, set())
        return "".join(summary.format())
    except BaseException as broken:
        return f"{type(error).__name__} (no traceback: {type(broken).__name__})\n"


def _suggesting(trace: str, error: BaseException, message: str) -> str:
    """The traceback with the suggestion in its last line, where only the interpreter's own printer made one."""
    if _SUGGESTS or not isinstance(error, NameError | AttributeError | ImportError):
        return trace
    start = trace.rfind(": ", 0, trace.rfind("\n"))
    plain = trace[start + 2 : -1]
    return f"{trace[: start + 2]}{message}\n" if start > 0 and plain and message.startswith(plain) else trace


def _only_script(summary: traceback.TracebackException, seen: set[int]) -> None:
    """Cut a chain of exceptions down to the script's frames, the outermost and innermost of them."""
    if id(summary) in seen:
        return
    seen.add(id(summary))
    frames = [
        frame for frame in summary.stack if frame.filename == SCRIPT or frame.filename.startswith(PREFIX)
    ]
    if len(frames) > _FRAMES:
        frames = frames[: _FRAMES // 2] + frames[-_FRAMES // 2 :]
    for frame in frames:
        if frame.name == BODY:
            frame.name = "<module>"
    summary.stack = traceback.StackSummary.from_list(frames)
    inner: Iterable[Any] = [summary.__cause__, summary.__context__, *(summary.exceptions or ())]
    for chained in inner:
        if chained is not None:
            _only_script(chained, seen)
