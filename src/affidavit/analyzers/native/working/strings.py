"""Texts in the constant data of an image."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from affidavit.analyzers.native.loading.image import Image

__all__ = ["Strings", "Text"]

_TEXT: Final = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xf4]{4,}(?=\x00)")
_NO_TEXT: Final = (".eh_frame", ".gcc_except_table", ".gnu", ".rela", ".rel", ".dyn", ".hash", ".note")
_SHOWN: Final = 1000
_MOST: Final = 1 << 20


class Text(NamedTuple):
    """A text: where it stands, its section, its length in bytes, and as much of it as is shown."""

    address: int
    section: str
    length: int
    value: str


class Strings:
    """The texts of an image, by address; bytes that are not UTF-8 are none."""

    def __init__(self, image: Image) -> None:
        self._texts = list(_texts(image))
        self._starts = [text.address for text in self._texts]

    def __iter__(self) -> Iterator[Text]:
        return iter(self._texts)

    def holding(self, address: int) -> int | None:
        """Where the text begins that holds an address, or None."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._starts[at] + self._texts[at].length:
            return self._starts[at]
        return None


def _texts(image: Image) -> Iterator[Text]:
    found = 0
    for area in image.areas:
        if area.executable or not area.constant or area.name.startswith(_NO_TEXT):
            continue
        for match in _TEXT.finditer(area.data):
            try:
                value = match[0].decode("utf-8")
            except UnicodeDecodeError:
                continue
            if len(value) < 4:
                continue
            if len(value) > _SHOWN:
                value = value[: _SHOWN - 1] + "…"
            yield Text(area.start + match.start(), area.name, len(match[0]), value)
            found += 1
            if found >= _MOST:
                image.limitations.append(("strings", f"more than {_MOST} texts; the rest is left out"))
                return
