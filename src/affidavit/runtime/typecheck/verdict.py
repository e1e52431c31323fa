"""What a check says, as plain data."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from affidavit.evidence.record import JsonValue

__all__ = ["Diagnostic", "Problem", "SourceText", "Status", "Verdict", "clipped"]

Status: TypeAlias = Literal["clean", "advised", "rejected", "unchecked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding, in the caller's coordinates.

    Attributes:
        line: 1-based line of the script.
        column: 1-based column, counted in characters (not bytes); the place of the wrong word where there is one.
        rule: stable id: one of `syntax`, `unknown-operation`, `not-awaited`, `unknown-where-field`,
            `invalid-where-value`, `out-of-bounds`, `missing-key`, `unknown-result`, `result-kind`, or a rule id of the
            type checker (`unresolved-reference`, ...).
        message: what is wrong, one line.
        blocking: whether it proves an error, so that the script is not run.
        suggestion: what should stand there instead, or None.
    """

    line: int
    column: int
    rule: str
    message: str
    blocking: bool
    suggestion: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """The finding as every door shows it; `suggestion` is left out where there is none."""
        shown: dict[str, JsonValue] = {
            "line": self.line,
            "column": self.column,
            "rule": self.rule,
            "message": self.message,
            "blocking": self.blocking,
        }
        if self.suggestion is not None:
            shown["suggestion"] = self.suggestion
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        status: `clean` (examined, nothing found), `advised` (findings, none of them proof of an error), `rejected`
            (at least one blocking finding), `unchecked` (the type checker could not examine it; run it or not, but
            do not call it clean).
        reason: why it is `unchecked`, or why a rejected script was not examined further; else empty.
        diagnostics: by line, then column.
        omitted: how many further findings there were, beyond the bound on one verdict.
    """

    status: Status
    reason: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    omitted: int = 0

    @property
    def blocking(self) -> tuple[Diagnostic, ...]:
        """The findings that prove an error."""
        return tuple(found for found in self.diagnostics if found.blocking)


_LONGEST = 400


def clipped(message: str) -> str:
    """A message as one line of bounded length: what it quotes from a script may be a megabyte."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


_LINE_END = re.compile(r"\r\n|\r|\n")


class SourceText:
    """A script with its lines as Python counts them, to turn byte columns into character columns."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def line(self, number: int) -> str:
        """The line with this 1-based number, without its end; empty beyond the last."""
        if not 1 <= number <= len(self._starts):
            return ""
        following = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : following].rstrip("\r\n")

    def column(self, number: int, byte_offset: int) -> int:
        """The 1-based character column of a 0-based UTF-8 byte offset in a line."""
        line = self.line(number)
        if line.isascii():
            return min(byte_offset, len(line)) + 1
        return len(line.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "ignore")) + 1

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of a character offset."""
        number = bisect.bisect_right(self._starts, offset)
        return number, offset - self._starts[number - 1] + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with an entry; `message` does not repeat the place. Lines and columns count from 1."""

    key: str
    line: int
    column: int
    rule: str
    message: str

    @property
    def place(self) -> str:
        """The place as people read it: `preamble KEY:line`."""
        return f"preamble {self.key}:{self.line}"
