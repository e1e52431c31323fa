"""What every kind of file becomes: blocks of text with their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from affidavit.evidence.record import Limitation

__all__ = ["Block", "FileKind", "Text"]

FileKind: TypeAlias = Literal["text", "markdown", "html", "pdf", "source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of text that belongs together: a paragraph, a heading, a list item.

    Attributes:
        text: without line ends at its ends.
        line: line of the file where it starts, from 1; None in a PDF.
        end_line: line where it ends.
        page: page of a PDF, from 1; None elsewhere.
        heading: level from 1 of a heading, 0 for any other text.
    """

    text: str
    line: int | None = None
    end_line: int | None = None
    page: int | None = None
    heading: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A file that was read.

    Attributes:
        title: what it calls itself, or None.
        blocks: its text in order.
        limitations: parts that could not be read.
    """

    title: str | None
    blocks: Sequence[Block]
    limitations: tuple[Limitation, ...] = ()
