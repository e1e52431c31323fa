"""Loading, before the lock, everything that a script may import: modules, codecs and time zones.

A locked child has no file system, so what is not here cannot be imported. Third-party packages are left out on purpose.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["preload"]

# Modules that start a window system or a program, print, or are only tests and tools.
_SKIPPED: Final = frozenset(
    {
        "__main__",
        "antigravity",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "test",
        "this",
        "tkinter",
        "turtle",
        "turtledemo",
    }
    | {
        "pydoc_data",
        "venv",
        "_tkinter",
        "readline",
        "rlcompleter",
        "__hello__",
        "__phello__",
        "sitecustomize",
    }
    | {"usercustomize", "_aix_support", "_osx_support", "nt", "msilib", "winreg", "winsound"}
)
_SKIPPED_PARTS: Final = frozenset({"__main__", "tests", "test", "idle_test", "macholib"})


def preload() -> None:
    """Import the standard library with all its submodules, and read every time zone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(sys.stdlib_module_names - _SKIPPED):
            _load(name)
    _keep_time_zones()
    sys.path.clear()
    sys.path_importer_cache.clear()


def _load(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except Exception:
        return
    for inner in _submodules(module, name):
        try:
            importlib.import_module(inner)
        except Exception:  # noqa: S112
            continue


def _submodules(module: Any, name: str) -> Iterator[str]:
    paths = getattr(module, "__path__", None)
    if paths is None:
        return
    for found in pkgutil.iter_modules(paths):
        if found.name in _SKIPPED_PARTS:
            continue
        inner = f"{name}.{found.name}"
        yield inner
        if found.ispkg and inner in sys.modules:
            yield from _submodules(sys.modules[inner], inner)


def _keep_time_zones() -> None:
    """Serve `zoneinfo` from memory: its C code falls back to `load_tzdata` when no search path is set."""
    import zoneinfo
    from zoneinfo import _common

    kept: dict[str, bytes] = {}
    for key in zoneinfo.available_timezones():
        for root in zoneinfo.TZPATH:
            try:
                with open(f"{root}/{key}", "rb") as file:
                    kept[key] = file.read()
                break
            except OSError:
                continue

    def load_tzdata(key: str) -> io.BytesIO:
        if key not in kept:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(kept[key])

    def available_timezones() -> set[str]:
        return set(kept)

    zoneinfo.reset_tzpath(to=())
    _common.load_tzdata = load_tzdata
    zoneinfo.available_timezones = available_timezones
