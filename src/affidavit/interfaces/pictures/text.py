"""Text of foreign origin, made fit for a picture: what a language does not take as it is, is escaped."""

from __future__ import annotations

from typing import Final

__all__ = ["dot_text", "mermaid_text", "printable"]

_MERMAID: Final = frozenset("\"#&<>`\\;|%{}[]~^$'")


def printable(text: str) -> str:
    r"""Text without control characters, lone surrogates and marks that turn the direction of writing.

    >>> printable("a\x00b")
    'a\\x00b'
    """
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else ascii(it)[1:-1] for it in text)


def dot_text(text: str) -> str:
    r"""The inside of a quoted string of DOT. Graphviz reads entities and backslashes there.

    >>> print(dot_text('say "&lt;"'))
    say \"&amp;lt;\"
    """
    return printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def mermaid_text(text: str) -> str:
    """The inside of a quoted label of Mermaid, where only entities are safe.

    >>> mermaid_text('mov [rax], "x"')
    'mov #91;rax#93;, #34;x#34;'
    """
    return "".join(f"#{ord(it)};" if it in _MERMAID else it for it in printable(text))
