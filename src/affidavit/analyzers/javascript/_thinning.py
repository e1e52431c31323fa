"""Reading a file whose syntax tree would not fit into memory.

A tree takes 20 to 60 times its source, of text that is nothing but punctuation up to 400 times. Where that is too much,
statements in which none of the names stands that matter are blanked out, and what is left is read as if it were the
file: no byte moves, and of what is looked for nothing is lost.

**Why the result is the same.** The file is parsed piece by piece from its start: what was kept so far, and the next
piece. Up to the end of the piece the parser does what it would do with the whole file, for it looks one token ahead and
never back. So a statement of a statement list that it read without error, and behind which another whole token stands,
is a statement of the file. Replaced by `0;` it leaves what is before and behind it as it was: `0` continues no
statement, so one before it that ends with its line still does. Elements of an array that are plain literals are taken
out together with their commas. Names are found by their spelling, so those that are asked for must not stand in what
was blanked out; `Thinned.lacks` tells, and the caller thins again and keeps them. A file with an error is not
thinned: there the parser looks for the least bad reading of the whole.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tree_sitter import Node, Tree

from affidavit.analyzers.javascript._literals import COMMENTS
from affidavit.analyzers.javascript._statements import STATEMENTS

__all__ = ["NotThinnedError", "Thinned", "thin"]

WINDOW: Final = 128 << 10
"""Bytes that are looked at in one go."""

_LISTS: Final = frozenset({"program", "statement_block", "switch_case", "switch_default", "ERROR"})
_LIST_BEGINS: Final = frozenset({"{", ":"})
_LISTED: Final = STATEMENTS | {"empty_statement"}
_ARRAYS: Final = frozenset({"array", "ERROR"})
_LITERALS: Final = frozenset({"number", "string", "true", "false", "null"})
_COMPOUND: Final = frozenset({"array", "object", "unary_expression"})
_NUMBERS: Final = re.compile(rb"[\[\]{}\s\d.,+-]*")
_BEFORE_VALUE: Final = frozenset({"=", "(", ",", ":", "[", "?", "=>", "return"})
_OTHER_BRACKETS: Final = frozenset({"(", ")", "{", "}", "]"})
SHORTEST: Final = 32
"""Bytes that it takes to be worth blanking out."""
_LONGEST_KEYWORD: Final = 16
_WORDS: Final = (b"require", b"import", b"export", b"module", b"Worker", b"URL", rb"\\u", b"<!--")
"""What is looked for in every file (`exports` holds `export`): names, escapes in names, comments as HTML has them."""


class NotThinnedError(Exception):
    """A file with an error, which cannot be read in this way."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """What was left of a file: its bytes, of the same length, and their tree."""

    data: bytes
    tree: Tree

    def lacks(self, words: Iterable[str], whole: bytes) -> list[bytes]:
        """Those of the words that stand in what was blanked out of the whole."""
        raw = (word.encode("utf-8", "surrogatepass") for word in words)
        return [word for word in raw if len(_places([word], whole)) != len(_places([word], self.data))]


def thin(
    data: bytes, source: bytes, parse: Callable[[bytes], Tree], *, keep: Iterable[bytes] = ()
) -> Thinned:
    """Blank out every statement that says none of the words.

    Args:
        data: the file as its grammar is to read it.
        source: the file as it is, in which the words are looked for.
        parse: reads it.
        keep: further words.

    Raises:
        NotThinnedError: the file has errors.
    """
    marks = _places(keep, source, *_WORDS)
    buffer = bytearray()
    while len(buffer) < len(data):
        buffer += data[len(buffer) : len(buffer) + WINDOW]
        is_whole = len(buffer) == len(data)
        root = parse(bytes(buffer)).root_node
        horizon = len(buffer) if is_whole else _horizon(root, len(buffer) - _LONGEST_KEYWORD)
        for start, end, filling in list(_idle(root, bytes(buffer), horizon, marks)):
            buffer[start:end] = filling + b" " * (end - start - len(filling))
        del root
    left = bytes(buffer)
    tree = parse(left)
    if tree.root_node.has_error:
        raise NotThinnedError
    return Thinned(left, tree)


def _places(words: Iterable[bytes], data: bytes, *parts: bytes) -> array[int]:
    """Where the words stand, and where the parts stand in words or alone."""
    patterns = [*parts, *(rb"(?<![\w$])%b(?![\w$])" % re.escape(word) for word in words)]
    return array("Q", (match.start() for match in re.finditer(b"|".join(patterns), data)))


def _horizon(root: Node, cut: int) -> int:
    """Where the last token begins that the end of the piece did not touch: before it, everything is settled."""
    node: Node | None = root
    start = root.start_byte
    while node is not None:
        start = node.start_byte
        node = next(filter(partial(_is_token_before, cut), reversed(node.children)), None)
    return start


def _is_token_before(cut: int, node: Node) -> bool:
    # Tokens that the parser itself put in have no width.
    return node.start_byte <= cut and node.start_byte < node.end_byte and node.type not in COMMENTS


def _idle(root: Node, data: bytes, horizon: int, marks: Sequence[int]) -> Iterator[tuple[int, int, bytes]]:
    """The ranges before the horizon that may be blanked out, and what is to stand in their place."""

    def is_idle(node: Node) -> bool:
        start, end = node.start_byte, node.end_byte
        at = bisect_left(marks, start)
        return end <= horizon and not node.has_error and (at == len(marks) or marks[at] >= end)

    pending = [root]
    while pending:
        node = pending.pop()
        children = node.children
        kind = node.type
        taken: list[tuple[int, int]] = []
        if kind in _LISTS:
            taken += _statements(children, is_idle)
            yield from _ranges(children, taken, b"0;")
        if kind in _ARRAYS:
            elements = list(_elements(children, data, is_idle, is_open=kind == "array"))
            taken += elements
            yield from _ranges(children, elements, b"")
        inside = {at for first, last in taken for at in range(first, last + 1)}
        pending += [
            child
            for at, child in enumerate(children)
            if at not in inside and child.end_byte - child.start_byte >= SHORTEST
        ]


def _ranges(
    children: Sequence[Node], runs: Iterable[tuple[int, int]], filling: bytes
) -> Iterator[tuple[int, int, bytes]]:
    for first, last in runs:
        start, end = children[first].start_byte, children[last].end_byte
        if end - start >= SHORTEST:
            yield start, end, filling


def _statements(children: Sequence[Node], is_idle: Callable[[Node], bool]) -> Iterator[tuple[int, int]]:
    """Runs of statements, first and last, that may go; comments between them go as well.

    Not every statement is one of a list: the head of a `for` holds some, and `if` and `else` one each. And where an
    error follows, the parser may have ended the statement before it too early.
    """
    run: list[int] = []
    is_list = True
    for at, child in enumerate(children):
        kind = child.type
        is_statement = kind in _LISTED
        if run and not is_statement and kind not in COMMENTS and kind != "}":
            run.pop()
        if is_list and (is_statement or kind in COMMENTS) and is_idle(child):
            if is_statement:
                run.append(at)
            continue
        if run:
            yield run[0], run[-1]
        run = []
        is_list = kind in _LIST_BEGINS or (is_list and (is_statement or kind in COMMENTS))
    if run[:-1]:
        yield run[0], run[-2]


def _elements(
    children: Sequence[Node], data: bytes, is_idle: Callable[[Node], bool], *, is_open: bool
) -> Iterator[tuple[int, int]]:
    """Runs of an array's literal elements, each with the comma behind it.

    Args:
        children: of the array, or of an error that ends in the middle of one: then it begins with a bracket in the
            place of a value. A pattern holds no literals, so such an array will not turn out to be one.
        data: what was parsed.
        is_idle: whether a node may go.
        is_open: whether the children are those of an array from the start.
    """
    first = last = -1
    before = ""
    for at, child in enumerate(children):
        kind = child.type
        if kind in COMMENTS:
            is_element = False
        else:
            if kind == "[":
                is_open = is_open or before in _BEFORE_VALUE
            is_open = is_open and kind not in _OTHER_BRACKETS
            is_first = before in {"[", ","}
            is_element = (
                is_open and is_idle(child) and (kind == "," or (is_first and _is_literal(child, data)))
            )
            if is_element and (first >= 0 or is_first):
                first = at if first < 0 else first
                last = at if kind == "," else last
            before = kind
        if not is_element:
            if first <= last and first >= 0:
                yield first, last
            first = last = -1
    if 0 <= first <= last:
        yield first, last


def _is_literal(node: Node, data: bytes) -> bool:
    kind = node.type
    if kind in _COMPOUND:
        return _NUMBERS.fullmatch(data, node.start_byte, node.end_byte) is not None
    return kind in _LITERALS
