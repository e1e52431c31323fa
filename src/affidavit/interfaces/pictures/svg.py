"""A picture in SVG, laid out by Graphviz's `dot` in a port that comes as a package and needs nothing of the system."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from affidavit.errors import FailedError

__all__ = ["as_svg"]

_PACKAGE: Final = "graphviz-pure"
_SECONDS: Final = 120
_OTHERWISE: Final = "--dot and --mermaid need no layout"


def as_svg(dot: str) -> str:
    """The drawing of a text in DOT, the same for the same text and version of the package.

    Raises:
        FailedError: `extra-missing`; `timed-out`; `tool-failed`.
    """
    try:
        done = subprocess.run(
            [str(_program()), "-Tsvg"], input=dot.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"the layout took more than {_SECONDS} s"
        raise FailedError("timed-out", message, hint=_OTHERWISE) from None
    if done.returncode != 0 or not done.stdout.rstrip().endswith(b"</svg>"):
        told = done.stderr.decode(errors="replace").strip()[:400]
        raise FailedError("tool-failed", f"the layout failed: {told or done.returncode}", hint=_OTHERWISE)
    return done.stdout.decode()


def _program() -> Path:
    try:
        files = distribution(_PACKAGE).files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        if file.stem == _PACKAGE and file.parent.name in ("bin", "Scripts"):
            return Path(str(file.locate()))
    raise FailedError(
        "extra-missing",
        f"drawing SVG needs the package {_PACKAGE}",
        hint=f"pip install 'affidavit[pictures]'; {_OTHERWISE}",
    )
