"""The source of one file while its exports are collected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._facts import Export, ExportForm
from affidavit.analyzers.javascript._literals import literal, source_of, spelling
from affidavit.analyzers.javascript._masks import Masked
from affidavit.analyzers.javascript.syntax import Lines

__all__ = ["EQUALS", "STAR", "Reader"]

STAR: Final = "*"
"""The name under which `export * from` and its like are recorded."""

EQUALS: Final = "export="
"""The name of a value that takes the place of the whole module."""

_INDEX: Final = re.compile(rb"0|[1-9][0-9]{0,14}")


class Reader:
    """The source of one file, and what was found in it."""

    def __init__(self, data: bytes, masked: Masked, lines: Callable[[], Lines]) -> None:
        self.data = data
        self.masked = masked
        self._lines = lines
        self._found: list[Export] = []

    def found(self) -> tuple[Export, ...]:
        return tuple(sorted(self._found, key=lambda one: (one.span.start.offset, -one.span.end.offset)))

    def name(self, node: Node | None) -> str | None:
        """The name that an identifier, keyword, string or property key spells; None when it is computed."""
        if node is None or node.type in {"private_property_identifier", "template_string"}:
            return None
        if node.type == "computed_property_name":
            return literal(node.named_children[0], self.data) if node.named_children else None
        if node.type == "number":
            source = source_of(node, self.data)
            return source.decode() if _INDEX.fullmatch(source) else None
        return literal(node, self.data) if node.type == "string" else spelling(node, self.data)

    def spells(self, node: Node | None, *words: bytes) -> bool:
        return node is not None and node.type == "identifier" and source_of(node, self.data) in words

    def add(
        self,
        name: str | None,
        form: ExportForm,
        span: Node | tuple[int, int],
        *,
        local: str | None = None,
        specifier: str | None = None,
        type_only: bool = False,
    ) -> None:
        if name is None:
            return
        first, last = span if isinstance(span, tuple) else (span.start_byte, span.end_byte)
        first, last = self.masked.starts.get(first, first), self.masked.ends.get(last, last)
        self._found.append(
            Export(
                name=name,
                form=form,
                span=self._lines().span(first, last),
                local=local,
                specifier=specifier,
                type_only=type_only,
            )
        )
