"""The process that reads PDF files: a length and a file in, a length and JSON out, until its input ends."""

from __future__ import annotations

import io
import json
import logging
import struct
import sys
from typing import Any, Final

__all__ = ["main"]

_MAX_MEMORY: Final = 2 << 30
_MAX_TEXT: Final = 16 << 20
"""Characters of one file; further pages are not read."""

_MAX_PAGES: Final = 20_000


def main() -> None:
    """Answer until the input ends."""
    _limit_memory()
    logging.disable(logging.CRITICAL)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(8)) == 8:
        (size,) = struct.unpack(">Q", head)
        answer = json.dumps(_read(source.read(size)), ensure_ascii=True).encode()
        target.write(struct.pack(">Q", len(answer)) + answer)
        target.flush()


def _read(data: bytes) -> dict[str, Any]:
    try:
        import pypdf
    except ImportError:
        return {"missing": "pypdf"}
    try:
        document = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if document.is_encrypted and not document.decrypt(""):
            return {"error": "it is encrypted"}
        title = document.metadata.title if document.metadata else None
        pages: list[dict[str, str]] = []
        room = _MAX_TEXT
        for number in range(min(len(document.pages), _MAX_PAGES)):
            page = _page(document, number) if room > 0 else {"error": "the bound of text is reached"}
            room -= len(page.get("text", ""))
            pages.append(page)
    except Exception as error:  # a file can be broken in any way
        return {"error": _said(error)}
    return {"title": title if isinstance(title, str) else None, "pages": pages}


def _page(document: Any, number: int) -> dict[str, str]:
    try:
        return {"text": document.pages[number].extract_text()}
    except Exception as error:  # one page stops no other
        return {"error": _said(error)}


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = _MAX_MEMORY if hard == resource.RLIM_INFINITY else min(_MAX_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


if __name__ == "__main__":
    main()
