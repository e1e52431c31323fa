"""Parsing, and walking a syntax tree without recursion.

Nothing here recurses: a file nested a million levels deep costs time in proportion to its size, never a stack.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from tree_sitter import Node, Parser, Tree

from affidavit.analyzers.javascript._facts import ErrorRange, Position, Span
from affidavit.analyzers.javascript.languages import LanguageName, grammar

__all__ = ["Frame", "Lines", "Locator", "Nearest", "error_ranges", "parse", "walk"]

_MAX_ERROR_RANGES: Final = 1000

_SEPARATORS: Final = ("\u2028".encode(), "\u2029".encode())
_LINE_END: Final = re.compile(rb"\r\n|\n|\r|\xe2\x80[\xa8\xa9]")


def parse(data: bytes, language: LanguageName) -> Tree:
    """Parse a file. Never fails on bad input: what cannot be read becomes error nodes.

    Args:
        data: the file's bytes, read as UTF-8.
        language: which grammar.
    """
    return Parser(grammar(language)).parse(data)


class Lines:
    """Turns offsets of one file into positions."""

    __slots__ = ("_starts",)

    def __init__(self, data: bytes) -> None:
        if any(separator in data for separator in _SEPARATORS):
            self._starts = [0, *(match.end() for match in _LINE_END.finditer(data))]
            return
        self._starts = list(accumulate(map(len, data.splitlines(keepends=True)), initial=0))
        if data and not data.endswith((b"\n", b"\r")):
            self._starts.pop()

    def position(self, offset: int) -> Position:
        """The position of an offset between 0 and the size of the file."""
        line = bisect_right(self._starts, offset)
        return Position(offset, line, offset - self._starts[line - 1])

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        return Span(self.position(start), self.position(end))


class Frame:
    """A node together with the way to it from the root.

    A tree-sitter node finds its parent by searching from the root, so the way down is kept instead.

    Attributes:
        node: the node itself.
        parent: the frame of the parent node, None at the root.
        field: the name that the parent's grammar rule gives this child, if any.
        id: identity of the node within its tree.
        start: offset of its first byte.
        end: offset behind its last byte.
    """

    __slots__ = ("_type", "end", "field", "id", "node", "parent", "start")

    def __init__(self, node: Node, parent: Frame | None, field: str | None) -> None:
        self.node = node
        self.parent = parent
        self.field = field
        self.id = node.id
        self.start = node.start_byte
        self.end = node.end_byte
        self._type: str | None = None

    @property
    def type(self) -> str:
        """The node's type in the grammar."""
        if self._type is None:
            self._type = self.node.type
        return self._type

    def is_in(self, types: frozenset[str]) -> bool:
        """Whether the node has one of these types."""
        return self.type in types


class Locator:
    """Finds the innermost node at an offset. Cheap for rising offsets: only the way between two places is walked."""

    __slots__ = ("_cursor", "_top")

    def __init__(self, tree: Tree) -> None:
        self._cursor = tree.walk()
        self._top = Frame(tree.root_node, None, None)

    def leaf(self, offset: int) -> Frame:
        """The innermost node that covers the byte at `offset` (the root where none does)."""
        cursor, top = self._cursor, self._top
        while not top.start <= offset < top.end and top.parent is not None:
            cursor.goto_parent()
            top = top.parent
        while cursor.goto_first_child_for_byte(offset) is not None:
            node = cursor.node
            if node is None or node.start_byte > offset:
                cursor.goto_parent()
                break
            top = Frame(node, top, cursor.field_name)
        self._top = top
        return top


class Nearest:
    """Finds the nearest ancestor with a property, remembering every answer, so that many questions stay linear."""

    __slots__ = ("_accepts", "_known")

    def __init__(self, accepts: Callable[[Frame], bool]) -> None:
        self._accepts = accepts
        self._known: dict[int, Frame | None] = {}

    def of(self, frame: Frame | None) -> Frame | None:
        """The frame itself or its nearest ancestor that has the property."""
        passed: list[int] = []
        found: Frame | None = None
        while frame is not None:
            if frame.id in self._known:
                found = self._known[frame.id]
                break
            passed.append(frame.id)
            if self._accepts(frame):
                found = frame
                break
            frame = frame.parent
        self._known.update(dict.fromkeys(passed, found))
        return found


def walk(node: Node, enter: Callable[[Node], bool]) -> Iterator[Node]:
    """Every node from `node` down, in source order; the children of a node only where `enter` says so."""
    cursor = node.walk()
    depth = 0
    while True:
        here = cursor.node
        if here is None:
            return
        yield here
        if enter(here) and cursor.goto_first_child():
            depth += 1
            continue
        while depth and not cursor.goto_next_sibling():
            cursor.goto_parent()
            depth -= 1
        if not depth:
            return


def error_ranges(tree: Tree, lines: Callable[[], Lines]) -> tuple[ErrorRange, ...]:
    """The outermost ranges that the grammar could not read, in source order."""
    root = tree.root_node
    if not root.has_error:
        return ()
    found: list[Node] = []
    for node in walk(root, lambda node: node.has_error and not node.is_error):
        if not (node.is_error or node.is_missing):
            continue
        if len(found) == _MAX_ERROR_RANGES:
            last = _last_error(root)
            return (*_ranges(found[:-1], lines()), _truncated(found[-1], last, lines()))
        found.append(node)
    return _ranges(found, lines())


def _ranges(nodes: list[Node], lines: Lines) -> tuple[ErrorRange, ...]:
    return tuple(
        ErrorRange(
            span=lines.span(node.start_byte, node.end_byte),
            reason="missing" if node.is_missing else "unexpected",
        )
        for node in nodes
    )


def _truncated(first: Node, last: int, lines: Lines) -> ErrorRange:
    return ErrorRange(span=lines.span(first.start_byte, max(first.end_byte, last)), reason="truncated")


def _last_error(root: Node) -> int:
    """Where the last error of a tree ends, found from its end."""
    cursor = root.walk()
    end = root.end_byte
    while cursor.goto_last_child():
        while (node := cursor.node) is not None and not (node.has_error or node.is_missing):
            if not cursor.goto_previous_sibling():
                return end
        if node is not None and (node.is_error or node.is_missing):
            return node.end_byte
    return end
