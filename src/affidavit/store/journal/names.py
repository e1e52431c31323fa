"""What a journal's files are called: by session and first subject, never by path.

`<session>.<first 12 digits of the first subject's digest, or none>.jsonl`, later parts with `.part2` and so on before
the suffix. A session whose id cannot be a file's name is named by the digest of its id.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["find_journal", "part_path", "parts_of", "stem"]

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{12})[0-9a-f]{52}")
_PART: Final = re.compile(
    r"(?P<stem>.+\.(?:none|[0-9a-f]{12}))(?:\.part(?P<part>[2-9]|[1-9][0-9]{1,5}))?\.jsonl"
)


def stem(session: str, first_subject: str | None) -> str:
    """The part of the name that all parts share.

    >>> stem("ses_1", None)
    'ses_1.none'
    """
    match = _DIGEST.fullmatch(first_subject or "")
    return f"{_session(session)}.{match[1] if match else 'none'}"


def part_path(folder: Path, name: str, part: int) -> Path:
    """Where a part stands, counted from 1."""
    return folder / (f"{name}.jsonl" if part == 1 else f"{name}.part{part}.jsonl")


def find_journal(folder: Path, session: str) -> str | None:
    """The stem of the journal of a session that is in the folder already, or None."""
    wanted = re.compile(re.escape(_session(session)) + r"\.(?:none|[0-9a-f]{12})")
    found: set[str] = set()
    for path in folder.iterdir():
        match = _PART.fullmatch(path.name)
        if match and wanted.fullmatch(match["stem"]):
            found.add(match["stem"])
    return min(found) if found else None


def parts_of(path: Path) -> dict[int, Path]:
    """All parts of the journal that a file belongs to, by number; a file of another name stands for itself."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return {1: path}
    found: dict[int, Path] = {}
    for sibling in path.parent.iterdir():
        other = _PART.fullmatch(sibling.name)
        if other and other["stem"] == match["stem"]:
            found[int(other["part"] or 1)] = sibling
    return dict(sorted(found.items()))


def _session(session: str) -> str:
    if _SAFE.fullmatch(session):
        return session
    return "x" + sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
