"""What is known of each entry of an artifact while it is analysed.

There may be hundreds of thousands of entries, so this stands in columns by the number of an entry, and what few of them
have (faults, unreadable ranges) beside them.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, get_args

from affidavit.analyzers.javascript.containers.content import Content, IntegrityState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from affidavit.analyzers.javascript.languages import LanguageName
    from affidavit.analyzers.javascript.parsing.wire import Problem
    from affidavit.evidence.record import Limitation

__all__ = ["Standing"]

_DIGEST: Final = 32
_STATES: Final[tuple[IntegrityState, ...]] = get_args(IntegrityState)
_UNREAD: Final = 1
_FIRST_STATE: Final = 2


class Standing:
    """The entries of one artifact, by their number.

    Attributes:
        sources: numbers of the source files, in order.
        problems: ranges of source files that could not be read.
        faults: why a source file has no facts.
    """

    def __init__(self, count: int) -> None:
        self.sources = array("L")
        self.problems: dict[int, Sequence[Problem]] = {}
        self.faults: dict[int, Limitation] = {}
        self._languages: list[LanguageName | None] = [None]
        self._language = bytearray(count)
        self._settled = bytearray(count)
        self._parsed = bytearray(count)
        self._waiting = array("Q", bytes(8 * count))
        self._contents = bytearray(count)
        self._digests = bytearray(_DIGEST * count)
        self._content_faults: dict[int, Limitation] = {}

    # what an entry is

    def is_source(self, number: int, language: LanguageName) -> None:
        """Note that an entry is a source file. To be called in the order of numbers."""
        self.sources.append(number)
        if language not in self._languages:
            self._languages.append(language)
        self._language[number] = self._languages.index(language)

    def language(self, number: int) -> LanguageName | None:
        """The language of a source file, None for all others."""
        return self._languages[self._language[number]]

    # its bytes

    def has_content(self, number: int) -> bool:
        """Whether its bytes were looked at."""
        return self._contents[number] > 0

    def keep_content(self, number: int, content: Content) -> None:
        """Note what its bytes are."""
        if content.fault is not None:
            self._content_faults[number] = content.fault
        if content.sha256 is None:
            self._contents[number] = _UNREAD
            return
        self._contents[number] = _FIRST_STATE + _STATES.index(content.integrity)
        self._digests[_DIGEST * number : _DIGEST * (number + 1)] = bytes.fromhex(content.sha256)

    def content(self, number: int) -> Content | None:
        """What its bytes are, once they were looked at."""
        kept = self._contents[number]
        if not kept:
            return None
        fault = self._content_faults.get(number)
        if kept == _UNREAD:
            return Content(sha256=None, integrity="undeclared", fault=fault)
        sha256 = self._digests[_DIGEST * number : _DIGEST * (number + 1)].hex()
        return Content(sha256=sha256, integrity=_STATES[kept - _FIRST_STATE], fault=fault)

    # its facts

    def settle(self, number: int, *, fault: Limitation | None = None) -> None:
        """Note that a source file has its facts, or why it has none."""
        self._settled[number] = True
        if fault is not None:
            self.faults[number] = fault

    def is_settled(self, number: int) -> bool:
        """Whether there is nothing more to wait for."""
        return bool(self._settled[number])

    def parsed(self, number: int, problems: Sequence[Problem]) -> None:
        """Note that a source file was read, but for some ranges."""
        self._parsed[number] = True
        if problems:
            self.problems[number] = problems

    def is_parsed(self, number: int) -> bool:
        """Whether a source file was read."""
        return bool(self._parsed[number])

    def wait(self, number: int, place: int) -> None:
        """Note where the facts of a source file wait for their turn."""
        self._waiting[number] = place + 1

    def waiting(self, number: int) -> int | None:
        """Where the facts of a source file wait."""
        return self._waiting[number] - 1 if self._waiting[number] else None
