"""Which statement an expression belongs to, and which names it gives its value to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import COMMENTS, spelling
from affidavit.analyzers.javascript.syntax import Frame, Nearest, walk

__all__ = ["Statements", "bound_names", "declared_by", "import_names"]

_STATEMENTS: Final = frozenset(
    {
        "abstract_class_declaration",
        "ambient_declaration",
        "break_statement",
        "class_declaration",
        "debugger_statement",
        "do_statement",
        "enum_declaration",
        "export_statement",
        "expression_statement",
        "for_in_statement",
        "for_statement",
        "function_declaration",
        "function_signature",
        "generator_function_declaration",
        "if_statement",
        "import_alias",
        "import_statement",
        "interface_declaration",
        "labeled_statement",
        "lexical_declaration",
        "return_statement",
        "switch_statement",
        "throw_statement",
        "try_statement",
        "type_alias_declaration",
        "using_declaration",
        "variable_declaration",
        "while_statement",
        "with_statement",
    }
)
_OUTER: Final = frozenset({"export_statement", "ambient_declaration"})
_WITH_BODY: Final = frozenset(
    {
        "abstract_class_declaration",
        "class_declaration",
        "function_declaration",
        "generator_function_declaration",
    }
)
_VALUE_PARENTS: Final = frozenset(
    {
        "await_expression",
        "parenthesized_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
_MEMBER_PARENTS: Final = frozenset({"member_expression", "subscript_expression"})
_BINDING_LEAVES: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})


class Statements:
    """Finds the innermost statement of an expression; see `Reference.statement` for what is one."""

    def __init__(self) -> None:
        self._nearest = Nearest(_is_statement)

    def of(self, frame: Frame) -> tuple[int, int]:
        """Start and end of the statement."""
        statement = self._nearest.of(frame)
        if statement is None:
            return frame.start, frame.end
        return statement.start, _end(statement.node)


def _is_statement(frame: Frame) -> bool:
    if not frame.is_in(_STATEMENTS):
        return False
    parent = frame.parent
    if parent is None:
        return True
    is_head = parent.type == "for_statement" and frame.field != "body"
    return not is_head and not parent.is_in(_OUTER)


def _end(node: Node) -> int:
    """Where a statement ends: the grammar counts a `;` behind a function's body to the function."""
    inner: Node | None = node
    while inner is not None and inner.type in _OUTER:
        inner = inner.child_by_field_name("declaration")
    if inner is not None and inner.type in _WITH_BODY:
        body = inner.child_by_field_name("body")
        if body is not None:
            return body.end_byte
    return node.end_byte


def declared_by(frame: Frame, awaits: Callable[[Frame], bool]) -> Frame | None:
    """The variable declarator whose initial value is this expression, awaited or not, or a member of it.

    `awaits` tells a misread `await (...)` from a call.
    """
    while (parent := frame.parent) is not None:
        if parent.type == "variable_declarator":
            return parent if frame.field == "value" else None
        if parent.type == "arguments":
            call = parent.parent
            inside = [child for child in parent.node.named_children if child.type not in COMMENTS]
            if call is None or not awaits(call) or inside[-1].id != frame.id or len(inside) > 1:
                return None
            frame = call
        elif parent.is_in(_VALUE_PARENTS) or (parent.is_in(_MEMBER_PARENTS) and frame.field == "object"):
            frame = parent
        else:
            return None
    return None


def bound_names(pattern: Node | None, data: bytes) -> list[str]:
    """The names that a declarator's pattern binds, in source order."""
    if pattern is None:
        return []
    defaults: set[int] = set()

    def enter(node: Node) -> bool:
        if node.type in {"assignment_pattern", "object_assignment_pattern"}:
            default = node.child_by_field_name("right")
            if default is not None:
                defaults.add(default.id)
        return node.id not in defaults and node.type != "computed_property_name"

    leaves = (
        node for node in walk(pattern, enter) if node.type in _BINDING_LEAVES and node.id not in defaults
    )
    return [spelling(leaf, data) for leaf in leaves]


def import_names(clause: Node | None) -> list[tuple[Node | None, Node]]:
    """What an import clause binds: the imported name (None for the whole module) and the local identifier.

    A default import counts as the whole module: for a builtin module it is its exports.
    """
    if clause is None:
        return []
    names: list[tuple[Node | None, Node]] = []
    for child in clause.named_children:
        if child.type == "identifier":
            names.append((None, child))
        elif child.type == "namespace_import":
            names.extend((None, name) for name in child.named_children if name.type == "identifier")
        elif child.type == "named_imports":
            for specifier in child.named_children:
                imported = specifier.child_by_field_name("name")
                local = specifier.child_by_field_name("alias") or imported
                if imported is not None and local is not None:
                    names.append((imported, local))
    return names
