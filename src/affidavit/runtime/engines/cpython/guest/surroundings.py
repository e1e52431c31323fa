"""What a script finds different from a plain interpreter, put in place once in the zygote."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import errno
import os
import platform
import sys
import types
import warnings
from typing import Any, NoReturn

__all__ = ["arrange", "script_module"]


def arrange() -> None:
    """Replace what needs a terminal or an interpreter of one's own, and let `asyncio.run` nest."""
    for name, function in (("input", _no_input), ("exit", _leave), ("quit", _leave)):
        setattr(builtins, name, function)
    os.system = _no_system
    system, _, release, version, machine = os.uname()
    hidden = platform.uname_result(system, "sandbox", release, version, machine)
    platform._uname_cache = hidden  # pyright: ignore[reportAttributeAccessIssue]  # it knows the host's name
    asyncio.run = _nested(asyncio.run)
    # Modules of this product are out of a script's sight. All that a child needs of them is loaded.
    for name in [name for name in sys.modules if name.partition(".")[0] == "affidavit"]:
        del sys.modules[name]
    getattr(atexit, "_clear", _nothing)()  # exit handlers of the library itself: there is nothing to flush
    # Reported as an error with its line; the interpreter's own warning would name a place that is not the script's.
    warnings.filterwarnings("ignore", r"coroutine 'df\..*' was never awaited")


def script_module(filename: str, df: object) -> types.ModuleType:
    """A fresh `__main__` with `df` in it."""
    module = types.ModuleType("__main__")
    vars(module).update({"__builtins__": builtins, "__annotations__": {}, "df": df})
    sys.modules["__main__"] = module
    sys.argv = [filename]
    return module


def _nothing() -> None:
    pass


def _no_input(prompt: object = "", /) -> str:
    """There is nobody to ask."""
    del prompt
    raise EOFError("input() is not available: a script has no standard input; pass values in, or ask df")


def _no_system(command: object) -> NoReturn:
    """The C library reports a refused process as the exit status of a shell, which looks like a command that ran."""
    del command
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _leave(code: object = None) -> NoReturn:
    """End the script."""
    raise SystemExit(code)


def _nested(run: Any) -> Any:
    """`asyncio.run` that also works where a loop runs already, as under top-level `await`: the outer one waits."""

    def asyncio_run(main: Any, **options: Any) -> Any:
        outer = asyncio._get_running_loop()
        if outer is None:
            return run(main, **options)
        asyncio._set_running_loop(None)
        try:
            return run(main, **options)
        finally:
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)

    asyncio_run.__name__ = asyncio_run.__qualname__ = "run"
    asyncio_run.__module__ = "asyncio.runners"
    return asyncio_run
