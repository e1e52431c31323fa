"""What the grammar of TypeScript does not read, and telling references that are erased from those that run.

The grammar has no node for the type `import("m").T`. It reads some of them as calls in the place of a type and fails on
`import("m").T<U>`, `import("m").T[]` and many more, which declaration files are full of. So each `import("m")` is
replaced by an identifier of the same length before parsing: a name is read rightly both as a type and as an expression,
no offset moves, and where it stands says which of the two it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import source_of, string_value
from affidavit.analyzers.javascript.syntax import Frame

__all__ = ["Mask", "Masked", "is_type_only", "is_type_position", "mask"]

# Bounded, so that text that looks like the start of very many imports is still read in linear time.
_SPACE: Final = rb"(?:\s|/\*(?:[^*]|\*(?!/)){0,4000}+\*/|//[^\r\n]{0,4000}+[\r\n])*+"
_IMPORT: Final = re.compile(
    rb"import"
    + _SPACE
    + rb"\("
    + _SPACE
    + rb"(\"(?:[^\"\\\r\n]|\\.){0,4000}+\"|'(?:[^'\\\r\n]|\\.){0,4000}+')"
    + _SPACE
    + rb",?"
    + _SPACE
    + rb"\)",
    re.DOTALL,
)
_EXPORT_IMPORT: Final = re.compile(
    rb"export"
    + _SPACE
    + rb"(import)\s"
    + _SPACE
    + rb"(?:type\s"
    + _SPACE
    + rb")?[\w$\x80-\xff]++"
    + _SPACE
    + rb"="
    + _SPACE
    + rb"require\b"
)
_NAME_BEFORE: Final = re.compile(rb"[\w$\x80-\xff]")
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
_PATHS: Final = frozenset({"member_expression", "subscript_expression", "nested_identifier"})


@dataclass(frozen=True, slots=True)
class Mask:
    """One `import("m")` that was replaced by a name."""

    start: int
    end: int
    specifier: str | None


@dataclass(frozen=True, slots=True)
class Masked:
    """A file as the grammar is shown it, of the same length, and what was replaced.

    Attributes:
        data: what to parse.
        imports: each `import("m")`, in source order.
        exports: where an `export` was blanked out that the grammar does not know before `import x = require("m")`:
            its offset by that of its `import`.
    """

    data: bytes
    imports: tuple[Mask, ...] = ()
    exports: Mapping[int, int] = field(default_factory=dict[int, int])


def mask(data: bytes) -> Masked:
    """Replace what the grammar of TypeScript does not read. What stands in strings or comments is replaced, too."""
    imports: list[Mask] = []
    exports: dict[int, int] = {}
    masked = bytearray(data)
    for match in _IMPORT.finditer(data):
        start, end = match.span()
        if not (start and _NAME_BEFORE.match(data, start - 1)):
            imports.append(Mask(start, end, string_value(match[1])))
            masked[start:end] = b"_" * (end - start)
    for match in _EXPORT_IMPORT.finditer(data):
        start = match.start()
        if not (start and _NAME_BEFORE.match(data, start - 1)):
            exports[match.start(1)] = start
            masked[start : start + 6] = b" " * 6
    return Masked(bytes(masked), tuple(imports), exports) if imports or exports else Masked(data)


def is_type_only(declaration: Node, data: bytes) -> bool:
    """Whether an import or export declaration says `type`.

    The grammar does not know `export type * from` and marks its `type` as an error.
    """
    return any(
        child.type == "type" or (child.is_error and source_of(child, data) == b"type")
        for child in declaration.children
    )


def is_type_position(name: Frame) -> bool:
    """Whether a name stands where TypeScript expects a type, alone or as the start of a path."""
    if name.type == "type_identifier":
        return True
    frame, parent = name, name.parent
    while parent is not None and parent.is_in(_PATHS) and frame.start == parent.start:
        frame, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.is_in(_CASTS):
        return frame.id != parent.node.named_children[0].id
    return parent.is_in(_TYPE_PARENTS)
