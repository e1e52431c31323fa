"""What a journal's parts hold so far: read when it is opened, and again whenever another writer added to it."""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass, field
from typing import Final

from affidavit.store.journal.lines import GENESIS, HEAD, TAIL_BYTES, sum_holds

__all__ = ["Tail"]

_SMALL: Final = 1 << 20
_BLOB_START: Final = re.compile(rb'\{"at":([0-9]{1,15}),"data":"')
_BLOB_END: Final = re.compile(rb'","digest":"(sha256:[0-9a-f]{64})","size":([0-9]{1,15})\}')
_BLOB_END_BYTES: Final = 130


@dataclass(slots=True)
class Tail:
    """The state of the chain after the lines that were read.

    Attributes:
        n: number of the next line.
        prev: sum of the last line.
        count: events so far.
        known: ids of the records and addresses of the whole blobs that are in it.
        truncated: whether the bound was reached.
        continued: whether the part ends with the line that says that another one follows.
        before: bytes of the parts before.
        end: bytes of the part that are whole lines and were read.
        left: bytes behind the last line end: a torn line.
        damaged: place and length of the unreadable lines that end the part, or None.
        flaws: lines that are unreadable or do not follow the one before, in all parts.
        empty: whether the part has no readable line.
        head: the first line of the part, readable or not.
        first_event: the line of the first event, when it is readable.
        last_event: the line of the last event.
    """

    n: int = 0
    prev: str = GENESIS
    count: int = 0
    known: set[str] = field(default_factory=set[str])
    truncated: bool = False
    continued: bool = False
    before: int = 0
    end: int = 0
    left: int = 0
    damaged: tuple[int, int] | None = None
    flaws: int = 0
    empty: bool = True
    head: bytes = b""
    first_event: bytes = b""
    last_event: bytes = b""
    _pieces: dict[str, int] = field(default_factory=dict[str, int])

    def begin_part(self) -> None:
        """Go on with the next part's file."""
        self.before += self.end
        self.end = self.left = 0
        self.damaged = None
        self.continued = False
        self.empty = True
        self.head = b""

    def read(self, handle: int, size: int) -> None:
        """Read the lines of the part from where reading ended up to `size`. Lines that do not hold teach nothing."""
        length = size - self.end
        if length <= 0:
            return
        if length <= _SMALL:
            self._read(os.pread(handle, length, self.end), self.end, 0)
            return
        with mmap.mmap(handle, size, access=mmap.ACCESS_READ) as data:
            self._read(data, 0, self.end)

    def _read(self, data: bytes | mmap.mmap, offset: int, start: int) -> None:
        """Read lines of `data`, which begins at `offset` of the file, from index `start` on."""
        while (end := data.find(b"\n", start)) >= 0:
            raw = data[start:end]
            mark = sum_holds(raw)
            if offset + start == 0:
                self.head = raw
            if mark is not None and self._learn(raw):
                self.prev = mark
                self.damaged = None
                self.empty = False
            else:
                place, length = self.damaged or (offset + start, 0)
                self.damaged = (place, length + end + 1 - start)
                self.flaws += 1
            start = end + 1
        self.end = offset + start
        self.left = len(data) - start

    def _learn(self, raw: bytes) -> bool:
        head = HEAD.match(raw)
        if head is None:
            return False
        number = int(head[1])
        self.flaws += (number, head[2].decode()) != (self.n, self.prev)
        self.n = number + 1
        if head[3]:
            self.known.add(head[3].decode())
        if head[4]:
            self.count = int(head[4])
            self.last_event = raw
            if self.count == 1:
                self.first_event = raw
        if head[5] == b"truncated":
            self.truncated = True
        elif head[5] == b"continued":
            self.continued = True
        elif head[5] == b"blob":
            self._learn_piece(raw, head.end())
        return True

    def _learn_piece(self, raw: bytes, start: int) -> None:
        first = _BLOB_START.match(raw, start)
        end = len(raw) - TAIL_BYTES
        last = _BLOB_END.search(raw, max(start, end - _BLOB_END_BYTES), end)
        if first is None or last is None:
            return
        digest, at = last[1].decode(), int(first[1])
        if at != self._pieces.pop(digest, 0):
            return  # a piece is missing before it: whoever needs the blob writes it again
        coded = raw[first.end() : last.start()]
        behind = at + len(coded) // 4 * 3 - coded[-2:].count(b"=")
        if behind == int(last[2]):
            self.known.add(digest)
        else:
            self._pieces[digest] = behind
