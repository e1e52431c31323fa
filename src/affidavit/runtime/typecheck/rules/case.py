"""One script under examination, with everything that rules ask for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from affidavit.runtime.typecheck.catalogue import Catalogue
from affidavit.runtime.typecheck.flow import Analysis, follow, growth
from affidavit.runtime.typecheck.resolve import Resolver
from affidavit.runtime.typecheck.rules.proof import Stores, literal, probed, steady
from affidavit.runtime.typecheck.rules.reach import guarded
from affidavit.runtime.typecheck.scopes import Script
from affidavit.runtime.typecheck.surroundings import Schema
from affidavit.runtime.typecheck.verdict import Diagnostic, SourceText, clipped

__all__ = ["Case", "attribute_place"]

_NO_SCHEMAS: Final[Mapping[str, Schema]] = MappingProxyType({})


class Case:
    """One script under examination, with everything that rules ask for.

    Attributes:
        text: the source with its lines.
        catalogue: what the host's stubs declare.
        script: the tree with scopes.
        resolver: what expressions are.
        stores: what the script puts into objects.
        given: names that the preamble defines.
        schemas: by the path below `df` that calls an operation, the JSON Schema of each of its arguments.
        answers: room for rules to remember what they found out about the whole script.
    """

    def __init__(
        self,
        text: SourceText,
        tree: ast.Module,
        catalogue: Catalogue,
        *,
        given: frozenset[str] = frozenset(),
        schemas: Mapping[str, Schema] = _NO_SCHEMAS,
    ) -> None:
        self.text = text
        self.given = given
        self.schemas = schemas
        self.catalogue = catalogue
        self.script = Script(tree)
        self.resolver = Resolver(self.script, catalogue)
        self.stores = Stores(self.script)

        self.answers: dict[object, bool] = {}
        self._probed = probed(self.script)
        self._followed = False
        self._flow: Analysis | None = None
        self._growth: frozenset[str] | None = None

    @property
    def flow(self) -> Analysis | None:
        """What values reach a place, found out when first asked; None where it cannot be."""
        if not self._followed:
            self._followed = True
            self._flow = follow(self)
            self._growth = growth(self._flow) if self._flow is not None else None
        return self._flow

    @property
    def growth(self) -> frozenset[str] | None:
        """The keys that rows may get beside those of constant stores; None where they may get any."""
        return self._growth if self.flow is not None else None

    def is_probed(self, attribute: str) -> bool:
        """Whether the script asks for an attribute by a string, or sets it so."""
        return attribute in self._probed

    def is_steady(self, node: ast.expr) -> bool:
        """Whether the script changes nothing on the way to this value."""
        return steady(self.script, self.stores, self.growth, node)

    def constant(self, node: ast.expr) -> object:
        """The value of a literal, also through a name that is bound once; `Stores.UNKNOWN` for anything else."""
        if isinstance(node, ast.Name) and not self.script.dynamic:
            binding = self.script.only_binding(node)
            value = binding.value if binding is not None and binding.how == "assign" else None
            return value.value if isinstance(value, ast.Constant) else Stores.UNKNOWN
        return literal(node)

    def source_of(self, node: ast.expr, longest: int) -> str:
        """The text of an expression that stands on one line and is short, else empty."""
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            return ""
        if node.end_col_offset - node.col_offset > longest:
            return ""
        line = self.text.line(node.lineno).encode("utf-8", "surrogatepass")
        return line[node.col_offset : node.end_col_offset].decode("utf-8", "replace")

    def found(
        self,
        node: ast.expr | ast.keyword,
        rule: str,
        message: str,
        suggestion: str | None = None,
        *,
        raises: Sequence[str] = (),
    ) -> Diagnostic:
        """A finding at the start of a node; it blocks unless one of the exceptions it `raises` does no harm there."""
        column = self.text.column(node.lineno, node.col_offset)
        return Diagnostic(
            line=node.lineno,
            column=column,
            rule=rule,
            message=clipped(message),
            blocking=not guarded(self.script, node, *raises),
            suggestion=suggestion,
        )


def attribute_place(text: SourceText, node: ast.Attribute) -> tuple[int, int]:
    """Line and column of the attribute's own word."""
    line = node.end_lineno or node.lineno
    return line, text.column(line, (node.end_col_offset or 0) - len(node.attr.encode()))
