"""Where a journal goes and what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from affidavit.errors import UsageError

__all__ = ["Fsync", "JournalSettings"]

Fsync: TypeAlias = Literal["always", "batch", "never"]
"""When lines are forced to the disk: each before it counts as written, every so often, or when the system likes."""

MIN_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """How sessions are journalled.

    Attributes:
        folder: where the files go; made when it is not there.
        fsync: `always` outlives a power cut line by line; `batch` loses at most what `batch_seconds` and
            `batch_bytes` allow there, and nothing when only the process dies; `never` leaves it to the system.
        max_bytes: bound of all parts of one journal; after an explicit line it takes no more.
        part_bytes: size at which a part ends and the next begins. A single longer line makes a longer part.
        batch_seconds: the longest that a line waits for the disk under `batch`.
        batch_bytes: the most bytes that wait under `batch`.

    Raises:
        UsageError: `usage`: a bound that is too small, or an unknown policy.
    """

    folder: Path
    fsync: Fsync = "batch"
    max_bytes: int = 1 << 30
    part_bytes: int = 256 << 20
    batch_seconds: float = 1.0
    batch_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        if self.fsync not in get_args(Fsync):
            raise UsageError(
                "usage", f"{self.fsync!r} is no fsync policy", hint=f"one of {', '.join(get_args(Fsync))}"
            )
        for name in ("max_bytes", "part_bytes"):
            if getattr(self, name) < MIN_BYTES:
                raise UsageError(
                    "usage",
                    f"{name} of a journal is {getattr(self, name)}",
                    hint=f"at least {MIN_BYTES} bytes",
                )
        if self.batch_seconds <= 0 or self.batch_bytes <= 0:
            raise UsageError("usage", "the bounds of a batch are not positive", hint="for example 1 second")
