"""PDF, read in a process of its own: a hostile or broken file costs a bounded time and memory, and only itself.

The far side of this conversation is `pdf_worker`. One process reads many files, one after the other; one that does not
answer in time, or dies, is replaced.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from threading import Timer
from types import TracebackType
from typing import Any, Final, Self, cast

from affidavit.evidence.record import Limitation
from affidavit.mounts.documents.reading.blocks import Block, Text

__all__ = ["PdfReader"]

_SECONDS: Final = 30.0
_MODULE: Final = "affidavit.mounts.documents.reading.pdf_worker"
_MAX_REPLY: Final = 64 << 20


class PdfReader:
    """Reads PDF files. The process starts with the first one.

    Args:
        seconds: how long one file may take.
    """

    def __init__(self, *, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def read(self, data: bytes, path: str) -> Text:
        """The text of a file, a block for each paragraph of a page; what is wrong with it is a limitation."""
        answer = self._ask(data)
        if answer is None:
            message = "the reader of PDF files did not come to an end with it"
            return _nothing("parse-failed", path, message)
        if "missing" in answer:
            return _nothing("extra-missing", path, "PDF needs pypdf: pip install 'affidavit[documents]'")
        if "error" in answer:
            return _nothing("parse-failed", path, f"no readable PDF: {answer['error']}")
        blocks: list[Block] = []
        limitations: list[Limitation] = []
        for number, page in enumerate(cast("list[dict[str, str]]", answer["pages"]), start=1):
            if "error" in page:
                message = f"page {number} cannot be read: {page['error']}"
                limitations.append(
                    Limitation(code="parse-error", place=f"{path}, page {number}", message=message)
                )
            paragraphs = [part.strip() for part in page.get("text", "").split("\n\n")]
            blocks += [Block(text=text, page=number) for text in paragraphs if text]
        if not blocks and not limitations:
            message = "a PDF without text, as of scanned pages"
            limitations.append(Limitation(code="entry-skipped", place=path, message=message))
        return Text(title=answer.get("title") or None, blocks=blocks, limitations=tuple(limitations))

    def _ask(self, data: bytes) -> dict[str, Any] | None:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(struct.pack(">Q", len(data)) + data)
            process.stdin.flush()
            (size,) = struct.unpack(">Q", process.stdout.read(8))
            if size > _MAX_REPLY:
                raise ValueError("a reply beyond the bound")
            found: object = json.loads(process.stdout.read(size))
        except (OSError, struct.error, ValueError):
            self._end()
            return None
        finally:
            timer.cancel()
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _nothing(code: str, path: str, message: str) -> Text:
    return Text(title=None, blocks=(), limitations=(Limitation(code=code, place=path, message=message),))
