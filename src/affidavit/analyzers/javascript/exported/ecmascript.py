"""The export declarations of ECMAScript and TypeScript."""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import COMMENTS, literal
from affidavit.analyzers.javascript._masks import is_type_only
from affidavit.analyzers.javascript._statements import Statements, bound_names
from affidavit.analyzers.javascript.exported._reader import EQUALS, STAR, Reader
from affidavit.analyzers.javascript.scope import Names
from affidavit.analyzers.javascript.syntax import Frame

__all__ = ["EcmaScript"]

_VARIABLES: Final = frozenset({"lexical_declaration", "variable_declaration", "using_declaration"})
_ERASED: Final = frozenset({"interface_declaration", "type_alias_declaration"})


class EcmaScript:
    """The export declarations of one file."""

    def __init__(self, reader: Reader, names: Names) -> None:
        self._reader = reader
        self._names = names
        self._statements = Statements()

    def read(self) -> bool:
        """Add every export; False where the file has neither imports nor exports."""
        declares = False
        for leaf in self._names.tokens("import"):
            statement = _own_statement(leaf, "import_statement")
            if statement is not None:
                declares = True
                if statement.start in self._reader.masked.starts:
                    self._import_require(statement)
        for leaf in self._names.tokens("export"):
            statement = _own_statement(leaf, "export_statement")
            if statement is not None:
                declares = True
                self._export(statement)
        return declares

    def _import_require(self, statement: Frame) -> None:
        """`export import x = require("m")`, whose `export` is hidden from the grammar."""
        reader = self._reader
        for clause in statement.node.named_children:
            if clause.type == "import_require_clause":
                name = reader.name(next(iter(clause.named_children), None))
                source = literal(clause.child_by_field_name("source"), reader.data)
                is_type = is_type_only(statement.node)
                span = self._statements.of(statement)
                reader.add(name, "declaration", span, local=name, specifier=source, type_only=is_type)

    def _export(self, statement: Frame) -> None:
        node, reader = statement.node, self._reader
        source = node.child_by_field_name("source")
        specifier = literal(source, reader.data)
        is_type = statement.start in reader.masked.types or is_type_only(node)
        declaration = node.child_by_field_name("declaration")
        span = self._statements.of(statement)
        kinds = {child.type: child for child in node.children}
        if "default" in kinds:
            self._default(node, span)
        elif declaration is not None:
            self._declared(declaration, span)
        elif "export_clause" in kinds:
            self._listed(kinds["export_clause"], source is not None, specifier, is_type=is_type)
        elif "namespace_export" in kinds:
            name = reader.name(next(iter(kinds["namespace_export"].named_children), None))
            reader.add(name, "from", span, local=STAR, specifier=specifier, type_only=is_type)
        elif "*" in kinds:
            reader.add(STAR, "star", span, specifier=specifier, type_only=is_type)
        elif "=" in kinds:
            value = next(
                (child for child in reversed(node.named_children) if child.type not in COMMENTS), None
            )
            reader.add(EQUALS, "equals", span, local=self._identifier(value))

    def _default(self, node: Node, span: tuple[int, int]) -> None:
        declared = node.child_by_field_name("declaration")
        value = node.child_by_field_name("value")
        if declared is not None:
            local = self._reader.name(declared.child_by_field_name("name"))
            is_type = declared.type in _ERASED
            self._reader.add("default", "default", span, local=local, type_only=is_type)
        else:
            own = value if value is None or value.type == "identifier" else value.child_by_field_name("name")
            # A named function or class is a declaration, though the grammar reads some as expressions.
            self._reader.add("default", "default", span, local=self._identifier(own))

    def _identifier(self, node: Node | None) -> str | None:
        return self._reader.name(node) if node is not None and node.type == "identifier" else None

    def _listed(self, clause: Node, other: bool, specifier: str | None, *, is_type: bool) -> None:
        for item in clause.named_children:
            if item.type != "export_specifier":
                continue
            local = item.child_by_field_name("name")
            exported = item.child_by_field_name("alias") or local
            self._reader.add(
                self._reader.name(exported),
                "from" if other else "list",
                item,
                local=self._reader.name(local),
                specifier=specifier,
                type_only=is_type or is_type_only(item),
            )

    def _declared(self, declaration: Node, span: tuple[int, int]) -> None:
        reader = self._reader
        if declaration.type == "ambient_declaration":
            for inner in declaration.named_children:
                if inner.type not in COMMENTS and inner.type != "statement_block":
                    self._declared(inner, span)
        elif declaration.type in _VARIABLES:
            for declarator in declaration.named_children:
                if declarator.type == "variable_declarator":
                    for name in bound_names(declarator.child_by_field_name("name"), reader.data):
                        reader.add(name, "declaration", declarator, local=name)
        else:
            # `import a = b.c` gives its name no field.
            named = declaration.child_by_field_name("name") or next(iter(declaration.named_children), None)
            while named is not None and named.type == "nested_identifier":
                named = named.child_by_field_name("object")
            if named is not None and named.type in {"identifier", "type_identifier"}:
                name = reader.name(named)
                is_type = declaration.type in _ERASED
                reader.add(name, "declaration", span, local=name, type_only=is_type)


def _own_statement(leaf: Frame, kind: str) -> Frame | None:
    """The statement of the file itself that a keyword begins."""
    statement = leaf.parent
    if statement is None or statement.type != kind or statement.parent is None:
        return None
    return statement if statement.parent.type == "program" else None
