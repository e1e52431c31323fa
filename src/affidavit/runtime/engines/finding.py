"""What an engine found out about this machine, for `doctor` and for its own decision to start."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


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
