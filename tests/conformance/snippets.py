"""Ordinary Python as scripts of agents are written: one feature each, each ending in its value.

`df.tool.math.ten(x)` gives ten times x. Every snippet runs on plain CPython 3.11 and gives a value of the value domain
once tuples and sets are softened. They are shared by every engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import snippets_classes_and_calls, snippets_language, snippets_library

__all__ = ["SNIPPETS", "Snippet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A name for test ids, the script, and the lowest Python minor version that has its syntax or library."""

    name: str
    source: str
    since: int = 11


def _snippets(text: str) -> tuple[Snippet, ...]:
    """Parse `### name [since=12]` blocks."""
    found: list[Snippet] = []
    for block in text.split("### ")[1:]:
        head, _, body = block.partition("\n")
        name, _, since = head.partition(" since=")
        found.append(Snippet(name=name.strip(), source=body.strip("\n") + "\n", since=int(since or 11)))
    return tuple(found)


SNIPPETS: tuple[Snippet, ...] = tuple(
    snippet
    for text in (snippets_classes_and_calls.TEXT, snippets_language.TEXT, snippets_library.TEXT)
    for snippet in _snippets(text)
)
