r"""Reading a journal's files: whole lines, and what is wrong between them.

The files are split at `\n` and nowhere else. A line is believed when its sum holds and its content has the one
spelling; everything else is a problem with its place, and never hides the lines around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from affidavit.errors import FailedError
from affidavit.store.journal._lock import Lock
from affidavit.store.journal.lines import GENESIS, HEAD, TAIL_BYTES, Line, read_line, refuse_newer, sum_holds

__all__ = ["Placed", "Problem", "Walk"]

MAX_LINE: Final = 256 << 20
"""Longest line that is read, in bytes. A longer one is damage."""

_BLOCK: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
_ZEROS: Final = re.compile(rb"\0+")
_LINE_END: Final = re.compile(rb',"sum":"[0-9a-f]{64}"\}')
_MAX_SALVAGE: Final = 64  # beginnings and ends of lines that are tried inside one damaged line
_MAX_GAPS: Final = 10_000
_BEGINNING: Final = b'{"n":'
_TAILS: Final = ("torn-tail", "zero-filled-tail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that does not hold, and where.

    Attributes:
        kind: what it is (`docs/journal.md` lists the kinds).
        file: name of the part.
        line: line of the file, from 1.
        place: byte of the file at which it begins.
        length: bytes that it covers; 0 where it lies between lines.
        message: one sentence.
    """

    kind: str
    file: str
    line: int
    place: int
    length: int
    message: str

    def as_json(self) -> dict[str, object]:
        """The problem as documents show it."""
        return {
            "kind": self.kind,
            "file": self.file,
            "line": self.line,
            "place": self.place,
            "length": self.length,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A whole line and where it stands: part, file, line of the file from 1, its first byte and its bytes.

    A second copy of a line is not given out.
    """

    line: Line
    part: int
    file: str
    number: int
    place: int
    length: int


@dataclass(frozen=True, slots=True)
class _Piece:
    number: int
    place: int
    raw: bytes
    ended: bool


class Walk:
    """One pass over the parts of a journal. `lines` gives the whole ones; `problems` is complete after it.

    Attributes:
        problems: what does not hold, in order.
        torn: whether the only problem is the end of the last part, as a killed writer leaves it.
        bytes: size of what was read.
        last_file: name of the last part.
    """

    def __init__(self, parts: Mapping[int, Path]) -> None:
        self._parts = parts
        self.problems: list[Problem] = []
        self.bytes = 0
        self.torn = False
        self._next = 0
        self._last_sum = GENESIS
        self._gaps: list[tuple[int, int, Problem]] = []
        self._damage: Problem | None = None  # since the last whole line
        self._returned = 0
        self._file = ""
        self._part = 1
        self.last_file = parts[max(parts)].name

    def lines(self) -> Iterator[Placed]:
        """Every whole line, in the order of the files.

        Raises:
            FailedError: `journal-failed`: a file cannot be read; `journal-version`: a newer version wrote it.
        """
        expected = 1
        last = max(self._parts)
        for number, path in self._parts.items():
            self._file, self._part = path.name, number
            if number != expected:
                missing = (
                    f"part {expected}" if number == expected + 1 else f"parts {expected} to {number - 1}"
                )
                message = f"{missing} of the journal is not there"
                self._damage = self._problem("missing-part", _Piece(1, 0, b"", True), 0, message)
            expected = number + 1
            yield from self._read_part(path, number == last)
        self._finish()

    def line_at(self, part: int, place: int) -> Line:
        """A whole line again, by its part and the byte at which it begins.

        Raises:
            FailedError: `journal-failed`: the file cannot be read, or is not what it was.
        """
        path = self._parts[part]
        try:
            with path.open("rb") as file:
                file.seek(place)
                line = read_line(file.readline(MAX_LINE).rstrip(b"\n"))
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from None
        if line is None:
            raise _unreadable(path, "it was changed meanwhile")
        return line

    def _read_part(self, path: Path, last: bool) -> Iterator[Placed]:
        try:
            with path.open("rb") as file:
                for piece in _pieces(file, _settled_size(file, path)):
                    self.bytes += len(piece.raw) + piece.ended
                    if piece.ended:
                        yield from self._whole(piece)
                    else:
                        yield from self._unended(piece, last)
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from None
        if self._returned:
            piece = _Piece(1, 0, b"", True)
            self._problem(
                "line-ends",
                piece,
                0,
                f"{self._returned} lines end in CR LF: something converted the line ends",
            )
            self._returned = 0

    def _whole(self, piece: _Piece) -> Iterator[Placed]:
        raw, place = piece.raw, piece.place
        if raw.endswith(b"\r"):
            self._returned += 1
            raw = raw[:-1]
        if place == 0 and raw.startswith(_BOM):
            self._problem("byte-order-mark", piece, 3, "a byte order mark was put before the first line")
            raw = raw[3:]
        line = read_line(raw)
        if line is not None:
            yield from self._accept(line, piece)
        else:
            if place == 0:
                refuse_newer(raw, self._file)
            yield from self._salvage(_Piece(piece.number, place, raw, True))

    def _unended(self, piece: _Piece, last: bool) -> Iterator[Placed]:
        """What stands behind the last line end of a part."""
        line = read_line(piece.raw)
        before = len(self.problems)
        if line is not None:
            yield from self._accept(line, piece)
            self._problem("torn-tail", piece, 0, "the last line end is missing; nothing else is")
        elif not last or _lines_inside(piece.raw) or not _begins_a_line(piece.raw):
            yield from self._salvage(piece)
        else:
            zeros = len(piece.raw) - len(piece.raw.rstrip(b"\0"))
            kind, what = ("zero-filled-tail", f", {zeros} of them zero") if zeros else ("torn-tail", "")
            message = f"the last line is torn: {len(piece.raw)} bytes from {piece.place} on are lost{what}"
            self._damage = self._problem(kind, piece, len(piece.raw), message)
        if last and not before and len(self.problems) == 1 and self.problems[0].kind in _TAILS:
            self.torn = True
        elif not last:
            self._problem(
                "truncated-part", piece, len(piece.raw), "this part was cut off: another one follows it"
            )

    def _accept(self, line: Line, piece: _Piece) -> Iterator[Placed]:
        """Put a whole line into the chain."""
        length = len(piece.raw) + piece.ended
        if line.n < self._next and not self._fills_gap(line, piece, length):
            self._problem("duplicated-line", piece, length, f"line {line.n} stands here a second time")
            return
        if line.n >= self._next:
            self._follow(line, piece, length)
            self._next = line.n + 1
            self._last_sum = line.sum
        self._damage = None
        yield Placed(
            line=line,
            part=self._part,
            file=self._file,
            number=piece.number,
            place=piece.place,
            length=length,
        )

    def _follow(self, line: Line, piece: _Piece, length: int) -> None:
        """Compare a line with the one before it."""
        missing = line.n - self._next
        if missing and self._damage is not None:
            first = self._damage
            lost = f"lines {self._next} to {line.n - 1} are" if missing > 1 else f"line {self._next} is"
            note = f"; {lost} lost"
            self.problems[self.problems.index(first)] = replace(first, message=first.message + note)
        elif missing:
            what = f"line {self._next} is" if missing == 1 else f"lines {self._next} to {line.n - 1} are"
            problem = self._problem("removed-lines", piece, 0, f"{what} missing before this place")
            if len(self._gaps) < _MAX_GAPS:
                self._gaps.append((self._next, line.n, problem))
        elif line.prev != self._last_sum:
            message = f"line {line.n} was not written after the line before it: one of the two was exchanged"
            self._problem("chain-broken", piece, length, message)

    def _fills_gap(self, line: Line, piece: _Piece, length: int) -> bool:
        """Whether a line that comes too late was missing before: then lines were moved, not removed."""
        for index, (first, behind, problem) in enumerate(self._gaps):
            if first <= line.n < behind:
                rest = [(first, line.n, problem), (line.n + 1, behind, problem)]
                self._gaps[index : index + 1] = [it for it in rest if it[0] < it[1]]
                if not any(it[2] is problem for it in self._gaps) and problem in self.problems:
                    self.problems.remove(problem)
                self._problem(
                    "reordered-line", piece, length, f"line {line.n} stands behind line {self._next - 1}"
                )
                return True
        return False

    def _salvage(self, piece: _Piece) -> Iterator[Placed]:
        """Tell what kind of damage a line has, and find the whole lines inside it."""
        raw = piece.raw
        inside = _lines_inside(raw)
        zeros = _ZEROS.search(raw)
        length = len(raw) + piece.ended
        head = HEAD.match(raw)
        if zeros is not None:
            count = raw.count(b"\0")
            at = _Piece(piece.number, piece.place + zeros.start(), raw, piece.ended)
            problem = self._problem(
                "zero-filled", at, count, f"{count} zero bytes stand where lines were written"
            )
        elif inside:
            lost = len(raw) - sum(behind - start for start, behind, _ in inside)
            rest = f", and {lost} bytes of a torn line" if lost else ""
            message = f"{len(inside)} whole line{'s' * (len(inside) > 1)}{rest} stand in one line"
            problem = self._problem("glued-lines", piece, length, message)
        elif head is not None and sum_holds(raw):
            problem = self._problem(
                "malformed-line",
                piece,
                length,
                "the sum of this line holds, and what it says is not JSON in the canonical form",
            )
        elif head is not None and _LINE_END.fullmatch(raw, max(0, len(raw) - TAIL_BYTES)):
            problem = self._problem(
                "edited-line", piece, length, "this line was changed after it was written"
            )
        elif raw == b"":
            problem = self._problem("damaged-line", piece, length, "an empty line, which no writer wrote")
        else:
            problem = self._problem(
                "damaged-line", piece, length, f"{len(raw)} bytes here are no line of a journal"
            )
        self._damage = problem
        for start, behind, line in inside:
            yield from self._accept(line, _Piece(piece.number, piece.place + start, raw[start:behind], False))

    def _finish(self) -> None:
        if not self.bytes:
            self._problem(
                "torn-tail", _Piece(1, 0, b"", False), 0, "the file is empty: its writer wrote nothing"
            )
            self.torn = True
        order = {path.name: index for index, path in enumerate(self._parts.values())}
        self.problems.sort(key=lambda it: (order[it.file], it.place))

    def _problem(self, kind: str, piece: _Piece, length: int, message: str) -> Problem:
        problem = Problem(
            kind=kind, file=self._file, line=piece.number, place=piece.place, length=length, message=message
        )
        self.problems.append(problem)
        return problem


def _unreadable(path: Path, reason: str) -> FailedError:
    return FailedError(
        "journal-failed",
        f"cannot read the journal {path}: {reason}",
        hint="name a file that you may read, and that nobody rewrites",
        details={"path": str(path)},
    )


def _settled_size(file: BinaryIO, path: Path) -> int:
    """How far to read: up to a moment at which no writer was in the middle of a line."""
    lock = Lock(file.fileno(), path)
    try:
        lock.acquire()
    except OSError:
        return _rewound(file)  # locks are not to be had here: read what is there
    try:
        return _rewound(file)
    finally:
        lock.release()


def _rewound(file: BinaryIO) -> int:
    end = file.seek(0, 2)
    file.seek(0)
    return end


def _pieces(file: BinaryIO, end: int) -> Iterator[_Piece]:
    r"""What stands between the `\n` bytes of a file, and behind the last one. Memory is bounded by the longest line."""
    rest = bytearray()
    place = at = 0
    number = 1
    while at < end and (block := file.read(min(_BLOCK, end - at))):
        at += len(block)
        start = 0
        while (found := block.find(b"\n", start)) >= 0:
            rest += block[start:found]
            yield _Piece(number, place, bytes(rest), True)
            place += len(rest) + 1
            number += 1
            start = found + 1
            rest.clear()
        rest += block[start:]
        if len(rest) > MAX_LINE:
            yield _Piece(number, place, bytes(rest), True)
            place += len(rest)
            rest.clear()
    if rest:
        yield _Piece(number, place, bytes(rest), False)


def _begins_a_line(raw: bytes) -> bool:
    """Whether these bytes may be the beginning of a line, or a page that was never filled."""
    return _BEGINNING.startswith(raw[: len(_BEGINNING)]) or not raw.strip(b"\0")


def _lines_inside(raw: bytes) -> list[tuple[int, int, Line]]:
    """Whole lines inside damaged bytes: where each begins and ends."""
    found: list[tuple[int, int, Line]] = []
    behind = 0
    for tries, begin in enumerate(HEAD.finditer(raw)):
        if tries >= _MAX_SALVAGE:
            break
        if begin.start() < behind:
            continue
        for ends, end in enumerate(_LINE_END.finditer(raw, begin.end())):
            if ends >= _MAX_SALVAGE:
                break
            line = read_line(raw[begin.start() : end.end()])
            if line is not None:
                behind = end.end()
                found.append((begin.start(), behind, line))
                break
    return found
