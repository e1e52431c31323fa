"""The folder that the type checker sees: nothing but our settings, an empty environment and stub modules.

Nothing outside can influence a check: not the caller's working folder, configuration files, home folder or installed
packages. A stub module is named by its content, so that it never changes once it is written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
import weakref
from pathlib import Path

from affidavit.runtime.typecheck.surroundings import module_name

__all__ = ["Project"]

_PREFIX = "affidavit-check-"
_YOUNG = 60.0

_SETTINGS = """\
[environment]
python = "../environment"
python-version = "{major}.{minor}"
root = ["."]

[src]
respect-ignore-files = false
"""


class Project:
    """A private temporary folder; `close` removes it, and so does the end of the process."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self._top = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        self._lock = _hold(self._top / "lock")
        self._remove = weakref.finalize(self, _discard, self._top, self._lock)
        version = sys.version_info
        packages = self._top / f"environment/lib/python{version.major}.{version.minor}/site-packages"
        packages.mkdir(parents=True)
        home = Path(sys.base_prefix) / "bin"
        (self._top / "environment/pyvenv.cfg").write_text(f"home = {home}\n", encoding="utf-8")
        self.root = self._top / "scripts"
        self.root.mkdir()
        settings = _SETTINGS.format(major=version.major, minor=version.minor)
        (self.root / "ty.toml").write_text(settings, encoding="utf-8")
        self._modules: dict[str, str] = {}  # names by text: hashing it is for once
        self._spoilt: set[str] = set()

    @property
    def modules(self) -> int:
        """How many stub modules it holds."""
        return len(self._modules)

    def environment(self) -> dict[str, str]:
        """The variables of the checker's process: none of the caller's but what a process needs to start."""
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        home = str(self._top)
        # More threads would not make a 2 ms check faster, and they would cost memory.
        return {
            **kept,
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_CACHE_HOME": home,
            "TY_MAX_PARALLELISM": "2",
        }

    def add(self, text: str) -> tuple[str, Path | None]:
        """Write a stub module.

        Returns:
            Its name, and its path when it is new here, else None.
        """
        known = self._modules.get(text)
        if known is not None:
            return known, None
        name = module_name(text)
        path = self.root / f"{name}.pyi"
        path.write_text(text, encoding="utf-8", newline="\n")
        self._modules[text] = name
        return name, path

    def spoil(self, name: str) -> None:
        """Note that a stub module has errors, so that nothing may be concluded from it."""
        self._spoilt.add(name)

    def is_spoilt(self, name: str) -> bool:
        """Whether a stub module is known to have errors."""
        return name in self._spoilt

    def close(self) -> None:
        """Remove the folder. May be called again."""
        self._remove()


def _discard(top: Path, lock: int) -> None:
    shutil.rmtree(top, ignore_errors=True)
    os.close(lock)


def _hold(path: Path) -> int:
    """Hold a lock for the life of this process, to tell our folders from those of dead processes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    _try_lock(descriptor)
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # no such locks on this platform: nothing is ever swept
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(folder: Path) -> None:
    """Remove what killed processes left: folders of ours that nobody holds."""
    with contextlib.suppress(OSError):
        for top in folder.glob(_PREFIX + "*"):
            _sweep_one(top)


def _sweep_one(top: Path) -> None:
    with contextlib.suppress(OSError):
        status = top.lstat()
        if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG:
            return
        descriptor = os.open(top / "lock", os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _try_lock(descriptor):
                shutil.rmtree(top, ignore_errors=True)
        finally:
            os.close(descriptor)
