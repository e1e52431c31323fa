"""What an engine found out about this machine, for `doctor` and for its own decision to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from affidavit.extensions import Analyzer, MountAdapter

__all__ = ["Finding", "loading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was tried, not assumed.

    Attributes:
        name: what was tried, in a few words (`fork`, `signal to the parent`, `Landlock`).
        ok: whether it came out as isolation needs it.
        detail: what happened, for people.
        decisive: whether the engine refuses to start when this is not `ok`.
    """

    name: str
    ok: bool
    detail: str = ""
    decisive: bool = True


def loading(name: str, loaded: Analyzer | MountAdapter | Exception, what: str) -> Finding:
    """What `doctor` says of an extension."""
    if isinstance(loaded, Exception):
        problem = f"{type(loaded).__name__}: {loaded}"
        return Finding(name=name, ok=False, detail=problem, decisive=False)
    return Finding(name=name, ok=True, detail=f"{what} version {loaded.version}")
