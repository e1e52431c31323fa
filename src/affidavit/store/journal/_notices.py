"""What people are told of a journal that is gone on with."""

from __future__ import annotations

from pathlib import Path

from affidavit.errors import VerificationError

__all__ = ["damaged", "told", "why_unreadable"]


def told(path: Path, session: str, *, torn: int, flaws: int, bound: int) -> list[str]:
    """The sentences.

    Args:
        path: the part that is written.
        session: whose journal it is.
        torn: bytes of torn lines that were cut off.
        flaws: lines that are unreadable or do not follow the one before.
        bound: the size bound that was reached, or 0.
    """
    found: list[str] = []
    if torn:
        found.append(
            f"the journal {path} ended in a torn line of {torn} bytes, which was cut off and is told in it;"
            " what it said is written again if the workspace has it"
        )
    if flaws:
        found.append(
            f"the journal {path} does not hold, and is gone on with:"
            " `affidavit journal verify` says where; keep a copy"
        )
    if bound:
        found.append(
            f"the journal {path} reached its bound of {bound} bytes:"
            f" what came after it in session {session} is in the workspace only"
        )
    return found


def why_unreadable(first: bytes) -> str:
    """Why a file that is not empty has no line of a journal, by its first one."""
    if first.endswith(b"\r"):
        return "has lines that end in CR LF: something converted its line ends; convert them back to LF"
    return "has no readable line"


def damaged(path: Path, problem: str, place: int) -> VerificationError:
    """The refusal of a journal that cannot be gone on with."""
    return VerificationError(
        "journal-damaged",
        f"the journal {path} {problem}",
        hint="keep it for examination and choose another folder",
        details={"path": str(path), "place": place},
    )
