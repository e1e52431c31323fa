"""Text in chunks: about a page's worth each, whole paragraphs where they fit, never over a heading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from affidavit.mounts.documents.reading.blocks import Block

__all__ = ["MAX_CHARACTERS", "Chunk", "chunked"]

MAX_CHARACTERS: Final = 1600
"""Characters of a chunk, all but for single words that are longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of blocks.

    Attributes:
        text: their text, parted by blank lines.
        line: where the first starts, from 1; None in a PDF.
        end_line: where the last ends.
        page: the page of a PDF, from 1.
        heading: the headings that it stands under, outermost first, joined by ` > `.
    """

    text: str
    line: int | None
    end_line: int | None
    page: int | None
    heading: str | None


@dataclass(slots=True)
class _Open:
    blocks: list[Block] = field(default_factory=list[Block])
    size: int = 0


def chunked(blocks: Sequence[Block]) -> Iterator[Chunk]:
    """The chunks of a file, in order."""
    headings: dict[int, str] = {}
    current = _Open()
    for block in blocks:
        for part in _parts(block):
            starts = bool(part.heading) or (bool(current.blocks) and current.blocks[-1].page != part.page)
            if starts or current.size + len(part.text) > MAX_CHARACTERS:
                yield from _closed(current, headings)
                current = _Open()
            if part.heading:
                headings = {level: text for level, text in headings.items() if level < part.heading}
                headings[part.heading] = part.text
            current.blocks.append(part)
            current.size += len(part.text) + 2
    yield from _closed(current, headings)


def _closed(current: _Open, headings: dict[int, str]) -> Iterator[Chunk]:
    if not current.blocks:
        return
    first, last = current.blocks[0], current.blocks[-1]
    yield Chunk(
        text="\n\n".join(block.text for block in current.blocks),
        line=first.line,
        end_line=last.end_line,
        page=first.page,
        heading=" > ".join(headings[level] for level in sorted(headings)) or None,
    )


def _parts(block: Block) -> Iterator[Block]:
    """A block, or pieces of one that is longer than a chunk: cut at line ends, else at spaces, else anywhere."""
    text, line = block.text, block.line
    while len(text) > MAX_CHARACTERS:
        cut = _cut(text)
        piece, rest = text[:cut].rstrip(), text[cut:]
        end = None if line is None else min(line + piece.count("\n"), block.end_line or line)
        yield replace(block, text=piece, line=line, end_line=end)
        if line is not None:
            skipped = text[:cut].count("\n") + (len(rest) - len(rest.lstrip("\n")))
            line = min(line + skipped, block.end_line or line)
        text = rest.lstrip("\n")
    if text.strip():
        yield replace(block, text=text, line=line)


def _cut(text: str) -> int:
    for mark in ("\n", ". ", " "):
        found = text.rfind(mark, MAX_CHARACTERS // 2, MAX_CHARACTERS)
        if found > 0:
            return found + 1
    return MAX_CHARACTERS
