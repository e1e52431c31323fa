"""Telling TypeScript's type-only references from those that run.

The grammar has no node for the type `import("m").T`: it reads it as a call in the place of a type.
"""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript.syntax import Frame

__all__ = ["is_type_import", "is_type_only"]

_TYPE_PARENTS: Final = frozenset(
    {
        "adding_type_annotation",
        "array_type",
        "asserts",
        "asserts_annotation",
        "conditional_type",
        "constraint",
        "constructor_type",
        "default_type",
        "extends_type_clause",
        "flow_maybe_type",
        "function_type",
        "generic_type",
        "implements_clause",
        "index_type_query",
        "infer_type",
        "intersection_type",
        "literal_type",
        "lookup_type",
        "mapped_type_clause",
        "nested_type_identifier",
        "omitting_type_annotation",
        "opting_type_annotation",
        "optional_type",
        "parenthesized_type",
        "readonly_type",
        "rest_type",
        "template_type",
        "tuple_type",
        "type_alias_declaration",
        "type_annotation",
        "type_arguments",
        "type_parameter",
        "type_predicate",
        "type_predicate_annotation",
        "type_query",
        "union_type",
    }
)
_CASTS: Final = frozenset({"as_expression", "satisfies_expression"})


def is_type_only(declaration: Node) -> bool:
    """Whether an import or export declaration says `type`.

    The grammar does not know `export type * from` and marks its `type` as an error.
    """
    return any(
        child.type == "type" or (child.is_error and child.text == b"type") for child in declaration.children
    )


def is_type_import(call: Frame) -> bool:
    """Whether `import(...)` stands where TypeScript expects a type."""
    frame, parent = call, call.parent
    while parent is not None and parent.type in {"member_expression", "subscript_expression"}:
        if frame.start != parent.start:
            return False
        frame, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.is_in(_CASTS):
        return frame.id != parent.node.named_children[0].id
    if parent.type == "binary_expression":
        return _is_misread_type_argument(frame, parent)
    return parent.is_in(_TYPE_PARENTS)


def _is_misread_type_argument(frame: Frame, comparison: Frame) -> bool:
    """`f<import("m")>(x)` is misread as two comparisons; a promise is never meaningfully compared with `<` or `>`."""
    operator = comparison.node.child_by_field_name("operator")
    if operator is None:
        return False
    return operator.type == (">" if frame.field == "left" else "<")
