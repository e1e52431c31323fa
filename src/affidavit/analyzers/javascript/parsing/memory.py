"""How much memory this process may take, and giving back what it no longer needs.

Sizes are looked up where Linux tells them. Elsewhere only the bound on the whole process holds, where there is one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from typing import Final

__all__ = ["c_library", "give_back", "limit_growth", "limit_process"]

_PROCESS: Final = 4 << 30


def c_library() -> ctypes.CDLL | None:
    """The C library of this process, on Linux."""
    try:
        return ctypes.CDLL(None) if sys.platform == "linux" else None
    except OSError:
        return None


def give_back() -> None:
    """Return freed memory to the system: a syntax tree takes many times its source, and may hang in cycles."""
    gc.collect()
    library = c_library()
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def limit_process() -> None:
    """Keep this process from ever taking more than 4 GiB, and from writing its memory to the disk when it ends."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_PROCESS, _PROCESS))


def limit_growth(size: int) -> None:
    """Let this process take `size` bytes more than it holds now.

    A Python object beyond that is a `MemoryError`; the parser, which does not look, ends the process with SIGSEGV.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        with open("/proc/self/statm", "rb", buffering=0) as file:
            held = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (min(held + size, _PROCESS), _PROCESS))
