"""What the grammars do not read, rewritten before parsing without moving a byte.

* TypeScript's type `import("m").T`: the grammar reads some as calls in the place of a type and fails on
  `import("m").T<U>`, `import("m").T[]` and many more, which declaration files are full of. So each `import("m")` is
  replaced by an identifier of the same length: a name is read rightly both as a type and as an expression, and where
  it stands says which of the two it was.
* `export import x = require("m")` and `export type * from "m"` of TypeScript: the odd word is blanked out.
* `with { type: "json" }` behind an `export ... from`, and the older `assert { ... }`: blanked out.
* `using` as a name: another name.
* A carriage return that ends a line alone: a line feed.

Values and positions are always read from the file as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import string_value
from affidavit.analyzers.javascript.syntax import Frame

__all__ = ["Mask", "Masked", "is_type_only", "is_type_position", "mask"]

# Everything that repeats is bounded, so that text that looks like very many of these is still read in linear time.
_SPACE: Final = rb"(?:\s|/\*(?:[^*]|\*(?!/)){0,4000}+\*/|//[^\r\n]{0,4000}+[\r\n])*+"
_STRING: Final = rb"(\"(?:[^\"\\\r\n]|\\.){0,4000}+\"|'(?:[^'\\\r\n]|\\.){0,4000}+')"
_IMPORT: Final = re.compile(
    _SPACE.join((rb"import", rb"\(", _STRING, rb",?", rb"\)")),
    re.DOTALL,
)
_EXPORT_IMPORT: Final = re.compile(
    _SPACE.join((rb"export", rb"(import)\s", rb"(?:type\s", rb")?[\w$\x80-\xff]++", rb"=", rb"require\b"))
)
_EXPORT_TYPE: Final = re.compile(_SPACE.join((rb"export", rb"(type)", rb"\*")))
_ATTRIBUTES: Final = tuple(
    re.compile(word + _SPACE + rb"\{(?:[^{}\"']|" + _STRING + rb"){0,200}+\}")
    for word in (b"with", b"assert")
)
_USING: Final = re.compile(rb"using(?=" + _SPACE + rb"[^\w$\x80-\xff\\\s/])")
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")
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
        imports: each `import("m")` of TypeScript, in source order.
        starts: where a statement begins whose first word was blanked out, by where it seems to begin.
        ends: where a statement ends whose end was blanked out, by where it seems to end.
        types: offsets of the `export` of each `export type *`.
    """

    data: bytes
    imports: tuple[Mask, ...] = ()
    starts: Mapping[int, int] = field(default_factory=dict[int, int])
    ends: Mapping[int, int] = field(default_factory=dict[int, int])
    types: frozenset[int] = frozenset()


def mask(data: bytes, *, typescript: bool) -> Masked:
    """Rewrite a file for its grammar. What stands in strings or comments may be rewritten, too."""
    masked = bytearray(data)
    ends = _mask_attributes(data, masked)
    if b"\r" in data:
        for match in _LONE_RETURN.finditer(data):
            masked[match.start()] = 0x0A
    if not typescript:
        for match in _tokens(_USING, data):
            masked[match.start() : match.end()] = b"_" * 5
        return Masked(bytes(masked), ends=ends)
    imports: list[Mask] = []
    starts: dict[int, int] = {}
    types: set[int] = set()
    for match in _tokens(_IMPORT, data):
        start, end = match.span()
        imports.append(Mask(start, end, string_value(match[1])))
        masked[start:end] = b"_" * (end - start)
    for match in _tokens(_EXPORT_IMPORT, data):
        starts[match.start(1)] = match.start()
        masked[match.start() : match.start() + 6] = b" " * 6
    for match in _tokens(_EXPORT_TYPE, data):
        types.add(match.start())
        masked[match.start(1) : match.end(1)] = b" " * 4
    return Masked(bytes(masked), tuple(imports), starts, ends, frozenset(types))


def _mask_attributes(data: bytes, masked: bytearray) -> dict[int, int]:
    ends: dict[int, int] = {}
    for pattern in _ATTRIBUTES:
        for match in _tokens(pattern, data):
            specifier = data[max(0, match.start() - 4000) : match.start()].rstrip()
            if specifier.endswith((b'"', b"'")):
                masked[match.start() : match.end()] = b" " * (match.end() - match.start())
                ends[match.start() - (min(match.start(), 4000) - len(specifier))] = match.end()
    return ends


def _tokens(pattern: re.Pattern[bytes], data: bytes) -> Iterator[re.Match[bytes]]:
    """Matches that do not begin inside of a name."""
    for match in pattern.finditer(data):
        if not (match.start() and _NAME_BEFORE.match(data, match.start() - 1)):
            yield match


def is_type_only(declaration: Node) -> bool:
    """Whether an import or export declaration says `type`."""
    return any(child.type == "type" for child in declaration.children)


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
