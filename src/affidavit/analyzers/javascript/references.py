"""Every place where a source file names another one.

`extract(data, language)` is pure: bytes in, `FileFacts` out.
"""

from __future__ import annotations

from affidavit.analyzers.javascript._facts import (
    Base,
    Encoding,
    ErrorRange,
    FileFacts,
    Position,
    Reference,
    ReferenceKind,
    Span,
)
from affidavit.analyzers.javascript.languages import LanguageName

__all__ = [
    "Base",
    "Encoding",
    "ErrorRange",
    "FileFacts",
    "Position",
    "Reference",
    "ReferenceKind",
    "Span",
    "extract",
]


def extract(data: bytes, language: LanguageName) -> FileFacts:
    """Read one source file.

    Args:
        data: the file's bytes.
        language: `javascript`, `jsx`, `typescript` or `tsx`; see `languages.language_of`.
    """
    raise NotImplementedError
