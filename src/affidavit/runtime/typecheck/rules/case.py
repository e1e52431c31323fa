"""One script under examination, with everything that rules ask for."""

from __future__ import annotations

import ast

from affidavit.runtime.typecheck.catalogue import Catalogue
from affidavit.runtime.typecheck.resolve import Resolver
from affidavit.runtime.typecheck.rules.proof import Stores
from affidavit.runtime.typecheck.scopes import Script
from affidavit.runtime.typecheck.verdict import Diagnostic, SourceText

__all__ = ["Case", "attribute_place"]


class Case:
    """One script under examination, with everything that rules ask for."""

    def __init__(self, text: SourceText, tree: ast.Module, catalogue: Catalogue) -> None:
        self.text = text
        self.catalogue = catalogue
        self.script = Script(tree)
        self.resolver = Resolver(self.script, catalogue)
        self.stores = Stores(self.script)

    def found(
        self, node: ast.expr | ast.keyword, rule: str, message: str, suggestion: str | None = None
    ) -> Diagnostic:
        """A blocking finding at the start of a node."""
        column = self.text.column(node.lineno, node.col_offset)
        return Diagnostic(
            line=node.lineno, column=column, rule=rule, message=message, blocking=True, suggestion=suggestion
        )


def attribute_place(text: SourceText, node: ast.Attribute) -> tuple[int, int]:
    """Line and column of the attribute's own word."""
    line = node.end_lineno or node.lineno
    return line, text.column(line, (node.end_col_offset or 0) - len(node.attr.encode()))
