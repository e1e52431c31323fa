"""HTML-like comments in the middle of a line.

In a script, `<!--` starts a comment anywhere; the grammar knows it only where a token could not be `<`. In a module it
is an operator sequence. As Node decides: a file with an import or export declaration or `import.meta` is a module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tree_sitter import Tree

from affidavit.analyzers.javascript.scope import Names
from affidavit.analyzers.javascript.syntax import Locator

__all__ = ["without_html_comments"]

_OPENING: Final = b"<!--"
_REST_OF_LINE: Final = re.compile(rb"(?:(?!\xe2\x80[\xa8\xa9])[^\r\n])*")
_MODULE_PARENTS: Final = frozenset({"import_statement", "export_statement", "meta_property"})
_ROUNDS: Final = 8


def without_html_comments(data: bytes, tree: Tree, parse: Callable[[bytes], Tree]) -> Tree:
    """The tree, parsed again with misread comments blanked out if there are any.

    Blanking one may show that others were never comments, so it is done in rounds, of which there is a bound.
    """
    if _OPENING not in data:
        return tree
    for number in range(_ROUNDS):
        blanked = _blank(data, tree)
        if blanked is None or (number == 0 and _is_module(data, tree)):
            break
        data, tree = blanked, parse(blanked)
    return tree


def _is_module(data: bytes, tree: Tree) -> bool:
    names = Names(data, tree)
    return any(
        leaf.parent is not None and leaf.parent.is_in(_MODULE_PARENTS)
        for keyword in ("import", "export")
        for leaf in names.tokens(keyword)
    )


def _blank(data: bytes, tree: Tree) -> bytes | None:
    locator = Locator(tree)
    blanked = bytearray(data)
    found = False
    at = data.find(_OPENING)
    while at >= 0:
        end = at + len(_OPENING)
        if locator.leaf(at).type == "<":
            found = True
            match = _REST_OF_LINE.match(data, at)
            end = match.end() if match else end
            blanked[at:end] = b" " * (end - at)
        at = data.find(_OPENING, end)
    return bytes(blanked) if found else None
