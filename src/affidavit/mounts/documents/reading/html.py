"""HTML: what a person would read of a page, with the lines where it stands in the source. Nothing is fetched or run."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

from affidavit.mounts.documents.reading.blocks import Block, Text
from affidavit.mounts.documents.reading.plain import decoded

__all__ = ["read_html"]

_SILENT: Final = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object"})
_INLINE: Final = frozenset(
    {
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
        "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    }
)  # fmt: skip
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}


def read_html(data: bytes, path: str) -> Text:
    """The text of a page: one block for each element that starts a line of its own."""
    text, limitations = decoded(data, path)
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_block()
    title = " ".join("".join(reader.title).split()) or None
    return Text(title=title, blocks=reader.blocks, limitations=limitations)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title: list[str] = []
        self._parts: list[str] = []
        self._line = 0
        self._last = 0
        self._silent = 0
        self._titled = False
        self._heading = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "title" and not self._silent:
            self._titled = True
        elif tag not in _INLINE:
            self.end_block()
            self._heading = _HEADINGS.get(tag, 0)
        if tag == "img":
            self._take(dict(attrs).get("alt") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # `<svg/>` opens nothing that an end tag would close
        if tag not in _SILENT:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "title":
            self._titled = False
        elif tag not in _INLINE:
            self.end_block()
            self._heading = 0

    def handle_data(self, data: str) -> None:
        if self._titled:
            self.title.append(data)
        elif not self._silent:
            self._take(data)

    def end_block(self) -> None:
        """What was read since the last block is one."""
        text = " ".join("".join(self._parts).split())
        if text:
            self.blocks.append(
                Block(text=text, line=self._line, end_line=max(self._line, self._last), heading=self._heading)
            )
        self._parts.clear()

    def _take(self, data: str) -> None:
        if not data.strip():
            self._parts.append(" " if self._parts else "")
            return
        line = self.getpos()[0]
        before = data[: len(data) - len(data.lstrip())].count("\n")
        if not "".join(self._parts).strip():
            self._line = line + before
        self._last = line + data.rstrip().count("\n")
        self._parts.append(data)
