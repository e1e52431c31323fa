"""Which statement an expression belongs to, and which names it gives its value to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import COMMENTS, literal, spelling
from affidavit.analyzers.javascript.syntax import Frame, Nearest, walk

__all__ = [
    "STATEMENTS",
    "Asked",
    "Statements",
    "asked_by",
    "bound_names",
    "declared_by",
    "export_names",
    "import_names",
    "imported_names",
]

Asked: TypeAlias = tuple[str, tuple[str, ...]]
"""An exported name that a reference asks for, and the local names that it binds to it."""

STATEMENTS: Final = frozenset(
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
    if not frame.is_in(STATEMENTS):
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


def imported_names(clause: Node | None, data: bytes) -> list[Asked]:
    """The exported names that an import clause asks for."""
    found: list[Asked] = []
    for child in [] if clause is None else clause.named_children:
        if child.type == "identifier":
            found.append(("default", (spelling(child, data),)))
        elif child.type == "named_imports":
            found += _specified(child, "import_specifier", data)
    return found


def export_names(statement: Node, data: bytes) -> list[Asked]:
    """The names that `export { ... } from` asks of the other module."""
    clauses = [child for child in statement.named_children if child.type == "export_clause"]
    asked = [name for clause in clauses for name in _specified(clause, "export_specifier", data)]
    return [(name, ()) for name, _ in asked]


def _specified(clause: Node, kind: str, data: bytes) -> list[Asked]:
    found: list[Asked] = []
    for specifier in clause.named_children:
        name = specifier.child_by_field_name("name") if specifier.type == kind else None
        key = None if name is None else _key(name, data)
        if name is not None and key is not None:
            local = specifier.child_by_field_name("alias") or name
            found.append((key, (spelling(local, data),)))
    return found


def asked_by(
    frame: Frame, awaits: Callable[[Frame], bool], data: bytes, *, promise: bool = False
) -> list[Asked]:
    """The names of a module that are taken from it right where it is loaded.

    Args:
        frame: the expression that loads the module.
        awaits: tells a misread `await (...)` from a call.
        data: the file.
        promise: whether it is a promise of the module, so that only what is behind an `await` belongs to the module.
    """
    whole, awaited = _awaited(frame, awaits)
    parent = whole.parent
    if parent is None or (promise and not awaited):
        return []
    if parent.is_in(_MEMBER_PARENTS) and whole.field == "object":
        member = parent.node.child_by_field_name("property")
        key = (
            literal(parent.node.child_by_field_name("index"), data) if member is None else _key(member, data)
        )
        declarator = declared_by(parent, awaits)
        pattern = None if declarator is None else declarator.node.child_by_field_name("name")
        return [] if key is None else [(key, tuple(bound_names(pattern, data)))]
    if parent.type == "variable_declarator" and whole.field == "value":
        return _pattern_keys(parent.node.child_by_field_name("name"), data)
    return []


def _awaited(frame: Frame, awaits: Callable[[Frame], bool]) -> tuple[Frame, bool]:
    """The whole of an expression with what stands around it without changing it, and whether it is awaited."""
    awaited = False
    while (parent := frame.parent) is not None:
        if parent.is_in(_VALUE_PARENTS):
            awaited = awaited or parent.type == "await_expression"
            frame = parent
        elif parent.type == "arguments" and parent.parent is not None and awaits(parent.parent):
            if len([child for child in parent.node.named_children if child.type not in COMMENTS]) > 1:
                break
            awaited = True
            frame = parent.parent
        else:
            break
    return frame, awaited


def _pattern_keys(pattern: Node | None, data: bytes) -> list[Asked]:
    """The keys that a destructuring pattern takes, with the names that each binds."""
    found: list[Asked] = []
    for child in pattern.named_children if pattern is not None and pattern.type == "object_pattern" else ():
        key, held = child, child
        if child.type == "object_assignment_pattern":
            key = child.child_by_field_name("left") or child
        elif child.type == "pair_pattern":
            key, held = child.child_by_field_name("key") or child, child.child_by_field_name("value") or child
        elif child.type != "shorthand_property_identifier_pattern":
            continue
        name = _key(key, data)
        if name is not None:
            found.append((name, tuple(bound_names(held, data))))
    return found


def _key(node: Node, data: bytes) -> str | None:
    """The name that a property key spells; None when it is computed."""
    if node.type == "string":
        return literal(node, data)
    return (
        None
        if node.type in {"computed_property_name", "number", "private_property_identifier"}
        else spelling(node, data)
    )
