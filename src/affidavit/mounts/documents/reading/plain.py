"""Text, Markdown and source: the encoding, and paragraphs with their lines."""

from __future__ import annotations

import codecs
import re
from typing import Final

from affidavit.evidence.record import Limitation
from affidavit.mounts.documents.reading.blocks import Block, Text

__all__ = ["decoded", "is_binary", "read_markdown", "read_text"]

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*\Z")
_UNDERLINE: Final = re.compile(r"(=+|-+)[ \t]*\Z")
_FENCE: Final = re.compile(r"[ \t]*(```|~~~)")
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT: Final = 8192


def is_binary(data: bytes) -> bool:
    """Whether a file is no text: it holds NUL bytes and no mark that says why."""
    return b"\0" in data[:_LOOKED_AT] and not any(data.startswith(bom) for bom, _ in _BOMS)


def decoded(data: bytes, path: str) -> tuple[str, tuple[Limitation, ...]]:
    """The text of a file, and a limitation where bytes of it are none in its encoding (they become U+FFFD)."""
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
    data = data[len(bom) :]
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not {encoding} from line {line} on; such bytes are shown as U+FFFD"
        limitation = Limitation(code="encoding", place=path, message=message)
        return data.decode(encoding, "replace"), (limitation,)


def read_text(data: bytes, path: str) -> Text:
    """Plain text or source: paragraphs, which blank lines part."""
    text, limitations = decoded(data, path)
    return Text(title=None, blocks=_paragraphs(_lines(text)), limitations=limitations)


def read_markdown(data: bytes, path: str) -> Text:
    """Markdown as it is written, with its headings; inside a fence nothing is one."""
    text, limitations = decoded(data, path)
    lines = _lines(text)
    blocks: list[Block] = []
    start, fenced = 0, ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and fenced in ("", fence[1]):
            fenced = "" if fenced else fence[1]
        level, said = (0, "") if fenced else _heading(lines, number)
        if level:
            blocks += _paragraphs(lines[start:number], start)
            end = number + 1 if _HEADING.match(line) else number + 2
            blocks.append(Block(text=said, line=number + 1, end_line=end, heading=level))
            start = end
    blocks += _paragraphs(lines[start:], start)
    title = next((block.text for block in blocks if block.heading), None)
    return Text(title=title, blocks=blocks, limitations=limitations)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _heading(lines: list[str], number: int) -> tuple[int, str]:
    """Level and text of the heading that begins on a line, or 0."""
    line = lines[number]
    found = _HEADING.match(line)
    if found:
        return len(found[1]), found[2]
    following = lines[number + 1] if number + 1 < len(lines) else ""
    alone = number == 0 or not lines[number - 1].strip()
    if (
        alone
        and line.strip()
        and not line.startswith((" ", "\t", "-", "=", "|"))
        and _UNDERLINE.match(following)
    ):
        return (1 if following.startswith("=") else 2), line.strip()
    return 0, ""


def _paragraphs(lines: list[str], before: int = 0) -> list[Block]:
    blocks: list[Block] = []
    start: int | None = None
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            start = number if start is None else start
        elif start is not None:
            text = "\n".join(lines[start:number])
            blocks.append(Block(text=text, line=before + start + 1, end_line=before + number))
            start = None
    return blocks
