"""Loading, before the lock, everything that a script may import: modules, codecs and time zones.

A locked child has no file system, so what is not here cannot be imported. Third-party packages are left out on purpose.
Then the memory is put in order for the children, which share it until they write to it.
"""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import pkgutil
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

__all__ = ["fill_gaps", "preload"]

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

# How the interpreter's allocator of small objects works: blocks of multiples of 16 bytes, in pools of one size each.
_BLOCK: Final = 16
_LARGEST: Final = 512
_POOL: Final = 16 << 10
_MOST: Final = 1 << 19  # bytes of one size: gaps do not amount to more, and the allocator may be another


def preload() -> None:
    """Import the standard library with all its submodules, and read every time zone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(sys.stdlib_module_names - _SKIPPED):
            _load(name)
    _keep_time_zones()
    sys.path.clear()
    sys.path_importer_cache.clear()


def fill_gaps() -> list[Any]:
    """Occupy the free blocks that loading left scattered over the heap; to be kept as long as children are forked.

    A child then allocates from pages of its own one after the other. In a gap each of its first objects would be on
    another shared page, which is copied for it: a third of what making a child ready costs.
    """
    kept: list[Any] = []
    for size in range(_BLOCK, _LARGEST + 1, _BLOCK):
        make = _of_size(size)
        found: deque[object] = deque()  # grows without small blocks of its own
        fresh: deque[object] = deque()
        while not (fresh and _in_order(fresh, size)) and len(found) * size < _MOST:
            found += fresh
            fresh = deque(make() for _ in itertools.repeat(None, 2 * (_POOL // size)))
        kept.append(found)
    return kept


def _of_size(size: int) -> Callable[[], object]:
    """What makes objects that each take one block of this size."""
    if size == _BLOCK:
        return object
    if size == 2 * _BLOCK:
        return functools.partial(int.from_bytes, b"\xff\xff\xff\xff", "big")
    return functools.partial(bytes, size - sys.getsizeof(b""))


def _in_order(objects: Iterable[object], size: int) -> bool:
    """Whether each lies behind the one before, or at the start of a pool: none was put into a gap."""
    places = [id(one) for one in objects]
    return all(
        place == before + size or place % _POOL < 4 * _BLOCK for before, place in itertools.pairwise(places)
    )


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
