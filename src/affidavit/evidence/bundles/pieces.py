"""The pieces of a bundle's file, one after the other, with their places.

A canonical document has exactly one spelling, so the file is read as a fixed sequence of literal bytes and elements.
Elements are found by the standard JSON scanner on bytes read as Latin-1: every byte stays one character, and the marks
that end a text or an object are ASCII, which never occurs inside a longer UTF-8 sequence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO, Final

from affidavit.evidence.bundles.document import START, Bounds

__all__ = ["BrokenBundleError", "Piece", "Pieces", "version_of"]

_BLOCK: Final = 1 << 18
_LONGEST_TOKEN: Final = 16  # an escape or literal that the end of what was read may cut in two
_VERSION: Final = re.compile(rb'\{"affidavit":"([a-z]{1,20})/([1-9][0-9]{0,8})"')
_SECTIONS: Final = (
    ("answers", "[]"),
    ("blobs", "{}"),
    ("missing", "[]"),
    ("records", "[]"),
    ("unknowns", "[]"),
)
_OBJECTS: Final = ("records", "unknowns")
_WHOLE: Final = re.compile(r'"sha256:[0-9a-f]{64}"')


class BrokenBundleError(Exception):
    """The bytes at a place are not what a bundle has there. What follows cannot be read."""

    def __init__(self, place: str, offset: int, problem: str, *, code: str = "bundle-damaged") -> None:
        super().__init__(problem)
        self.place = place
        self.offset = offset
        self.problem = problem
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One element of a section.

    Attributes:
        section: `answers`, `blobs`, `missing`, `records`, `unknowns` or `whole`.
        index: its place in the section, from 0.
        offset: the byte of the document at which it begins.
        data: its bytes. Of a blob only the value.
        key: address of a blob as it stands there, with its quotes; else empty.
    """

    section: str
    index: int
    offset: int
    data: bytes
    key: bytes = b""

    @property
    def start(self) -> int:
        """The byte at which the piece with its key begins."""
        return self.offset - (len(self.key) + 1 if self.key else 0)

    @property
    def text(self) -> str:
        """The characters of an element that is a text without escapes."""
        return self.data[1:-1].decode("ascii", "backslashreplace")

    @property
    def address(self) -> str:
        """Address of a blob."""
        return self.key[1:-1].decode("ascii", "backslashreplace")

    @property
    def place(self) -> str:
        """Where it stands, like `$.records[3]`."""
        if self.section == "whole":
            return "$.whole"
        if self.section == "blobs":
            return f"$.blobs[{self.address}]"
        return f"$.{self.section}[{self.index}]"


def version_of(start: bytes) -> tuple[str, int] | None:
    """Format and version that a file says of itself in its first bytes, or None."""
    match = _VERSION.match(start)
    return None if match is None else (match[1].decode(), int(match[2]))


class Pieces:
    """Reads a bundle from an open file, front to back.

    Attributes:
        computed: what `whole` must be; complete after the last piece.
        size: bytes of the document that were read.
    """

    def __init__(self, file: BinaryIO, bounds: Bounds) -> None:
        self._file = file
        self._bounds = bounds
        self._text = ""
        self._base = 0  # offset of the window's first byte
        self._at = 0  # place in the window
        self._ended = False
        self._hash = sha256()
        self._scanner = json.JSONDecoder()
        self.computed = ""
        self.size = 0

    def __iter__(self) -> Iterator[Piece]:
        """Every piece, `whole` last.

        Raises:
            BrokenBundleError: the file is not a bundle from here on; pieces before were.
        """
        self._literal(START, "$.affidavit")
        for name, (opening, closing) in _SECTIONS:
            self._literal(f',"{name}":{opening}'.encode(), f"$.{name}")
            yield from self._section(name, closing, "{" if name in _OBJECTS else '"')
        self._keep_hashing()
        self._hash.update(b"}")
        self.computed = "sha256:" + self._hash.hexdigest()
        self._literal(b',"whole":', "$.whole")
        offset, data = self._element("$.whole", '"')
        if not _WHOLE.fullmatch(data.decode("latin-1")):
            raise BrokenBundleError("$.whole", offset, "not a digest")
        yield Piece(section="whole", index=0, offset=offset, data=data)
        self._literal(b"}", "$")
        if self._more(1):
            raise BrokenBundleError("$", self._offset, "something follows the end of the document")
        self.size = self._offset

    def element(self) -> bytes:
        """The object that begins where the file stands."""
        return self._element("$", "{")[1]

    @property
    def _offset(self) -> int:
        return self._base + self._at

    def _section(self, name: str, closing: str, opening: str) -> Iterator[Piece]:
        index = 0
        while True:
            place = f"$.{name}[{index}]"
            self._need(1, place)
            if self._text[self._at] == closing:
                self._at += 1
                return
            if index:
                self._literal(b",", place)
            key = b""
            if closing == "}":
                _, key = self._element(place, '"')
                self._literal(b":", place)
            offset, data = self._element(place, opening)
            yield Piece(section=name, index=index, offset=offset, data=data, key=key)
            index += 1

    def _literal(self, expected: bytes, place: str) -> None:
        self._need(len(expected), place)
        found = self._text[self._at : self._at + len(expected)]
        if found != expected.decode("latin-1"):
            wrong = next(i for i, (a, b) in enumerate(zip(found, expected.decode(), strict=True)) if a != b)
            raise BrokenBundleError(place, self._offset + wrong, f"{expected.decode()!a} is not there")
        self._at += len(expected)

    def _need(self, count: int, place: str) -> None:
        if not self._more(count):
            raise BrokenBundleError(place, self._offset, "the document ends here: it was cut off")

    def _element(self, place: str, opening: str) -> tuple[int, bytes]:
        """The next element, which begins with `opening`: a quote or a brace."""
        self._need(1, place)
        if self._text[self._at] != opening:
            what = "an object" if opening == "{" else "a text"
            raise BrokenBundleError(place, self._offset, f"{what} should stand here")
        while True:
            start = self._at
            behind = self._scan(place)
            if (behind or len(self._text)) - start > self._bounds.element_bytes:
                problem = f"longer than {self._bounds.element_bytes} bytes"
                raise BrokenBundleError(place, self._offset, problem, code="value-too-large")
            if behind:
                self._at = behind
                return self._base + start, self._text[start:behind].encode("latin-1")
            if not self._more(2 * (len(self._text) - self._at)):
                if self._scan(place, last=True):
                    continue
                raise BrokenBundleError(place, self._offset, "the document ends inside it: it was cut off")

    def _scan(self, place: str, *, last: bool = False) -> int:
        """Where the element that begins here ends in the window; 0 when the window ends first."""
        try:
            return self._scanner.raw_decode(self._text, self._at)[1]
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_TOKEN
            if cut and not last:
                return 0
            if error.msg.startswith("Unterminated string") or error.pos >= len(self._text):
                return 0
            raise BrokenBundleError(place, self._base + error.pos, f"not JSON: {error.msg}") from None
        except RecursionError:
            raise BrokenBundleError(place, self._offset, "nested too deeply", code="value-too-deep") from None
        except ValueError:  # more digits than the interpreter converts
            raise BrokenBundleError(place, self._offset, "a number of too many digits") from None

    def _more(self, count: int) -> bool:
        """Have `count` characters in the window behind the place, if the file has them."""
        while len(self._text) - self._at < count and not self._ended:
            self._keep_hashing()
            data = self._file.read(max(_BLOCK, count))
            self._ended = not data
            self._text += data.decode("latin-1")
            if self._base + len(self._text) > self._bounds.file_bytes:
                raise BrokenBundleError(
                    "$", self._base, f"longer than {self._bounds.file_bytes} bytes", code="value-too-large"
                )
        return len(self._text) - self._at >= count

    def _keep_hashing(self) -> None:
        """Hash what lies behind the place and drop it from the window."""
        self._hash.update(self._text[: self._at].encode("latin-1"))
        self._base += self._at
        self._text = self._text[self._at :]
        self._at = 0
