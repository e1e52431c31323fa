"""Annotations as text: unions, literals and the source of TypedDicts."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from affidavit.evidence.record import JsonValue
from affidavit.namespaces.names import is_plain_identifier

__all__ = [
    "MAX_ANNOTATION",
    "Fields",
    "literals",
    "names_in",
    "renamed",
    "string_literal",
    "typed_dict",
    "union",
]

MAX_LITERALS: Final = 40
MAX_ANNOTATION: Final = 2_000
"""Characters of one annotation; longer ones say `Any` or a plain type."""

Fields: TypeAlias = Mapping[str, tuple[str, bool]]
"""Key -> (annotation, required)."""


def union(parts: Sequence[str]) -> str:
    """Union of annotations, each once, `None` last; `Any` swallows the rest."""
    flat: dict[str, None] = {}
    for part in parts:
        for piece in _split_union(part):
            flat[piece] = None
    if not flat or "Any" in flat:
        return "Any"
    if len(flat) > 1:
        flat.pop("Never", None)
    merged = _merge_literals(list(flat))
    if "None" in merged:
        merged = [piece for piece in merged if piece != "None"] + ["None"]
    return " | ".join(merged)


def typed_dict(name: str, fields: Fields, *, doc: str = "", closed: bool = False) -> str:
    """Stub source of a TypedDict.

    Args:
        name: class name.
        fields: key -> (annotation, required).
        doc: one line, or empty.
        closed: no further keys (PEP 728), so that `'key' in value` narrows it away.

    Class syntax where every key may stand in a class body and none hides a name that an annotation needs; else the
    functional syntax, in which any key is text.
    """
    annotations = {annotation for annotation, _ in fields.values()}
    words = {annotation for annotation in annotations if annotation.isidentifier()}
    used = {"NotRequired"} | words | names_in("\n".join(annotations - words))
    plain = all(is_plain_identifier(key) and key not in used for key in fields)
    ending = ", closed=True" if closed else ""
    if plain:
        lines = [f"class {name}(TypedDict{ending}):"]
        if doc:
            lines.append(f"    {_docstring(doc)}")
        lines += [
            f"    {key}: {_optional(annotation, required)}" for key, (annotation, required) in fields.items()
        ]
        if len(lines) == 1:
            lines.append("    ...")
        return "\n".join(lines)
    items = ", ".join(
        f"{string_literal(key)}: {_optional(annotation, required)}"
        for key, (annotation, required) in fields.items()
    )
    return f'{name} = TypedDict("{name}", {{{items}}}{ending})'


def literals(values: Sequence[JsonValue]) -> str:
    """`Literal` of these values, what has no literal as its type; `Never` of none."""
    if not values:
        return "Never"
    if len(values) <= MAX_LITERALS:
        text = union([_literal(value) for value in values])
        if len(text) <= MAX_ANNOTATION:
            return text
    return union([_type_of(value) for value in values])


def _literal(value: JsonValue) -> str:
    if isinstance(value, str):
        return f"Literal[{string_literal(value)}]"
    return f"Literal[{value}]" if isinstance(value, (bool, int)) else _type_of(value)


def _type_of(value: JsonValue) -> str:
    if value is None:
        return "None"
    for kind, text in ((list, "list[Any]"), (dict, "dict[str, Any]")):
        if isinstance(value, kind):
            return text
    return type(value).__name__


def _merge_literals(parts: list[str]) -> list[str]:
    """`Literal["a"] | Literal["b"]` as `Literal["a", "b"]`; a literal beside its own type is that type."""
    literals = [part for part in parts if part.startswith("Literal[")]
    if not literals:
        return parts
    kept: dict[str, None] = {}
    for part in literals:
        inner = ast.parse(f"({part[len('Literal[') : -1]},)", mode="eval").body
        for value in cast(ast.Tuple, inner).elts:
            if type(ast.literal_eval(value)).__name__ not in parts:
                kept[_literal(ast.literal_eval(value))[len("Literal[") : -1]] = None
    result: list[str] = []
    placed = False
    for part in parts:
        if not part.startswith("Literal["):
            result.append(part)
        elif not placed and kept:
            result.append(f"Literal[{', '.join(kept)}]")
            placed = True
    return result


def _split_union(text: str) -> list[str]:
    """Pieces of a top-level union, whatever `|` stands inside brackets or quotes."""
    if "|" not in text:
        return [text]
    pieces: list[str] = []
    node: ast.expr = ast.parse(text, mode="eval").body
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        pieces.append(ast.get_source_segment(text, node.right) or ast.unparse(node.right))
        node = node.left
    pieces.append(ast.get_source_segment(text, node) or ast.unparse(node))
    return pieces[::-1]


def renamed(source: str, renames: Mapping[str, str]) -> str:
    """Source with names replaced where they mean declarations: not as keys, and not inside text."""
    if all(old == new for old, new in renames.items()):
        return source
    tree = ast.parse(source)
    keys = {
        id(node.target)
        for top in tree.body
        if isinstance(top, ast.ClassDef)
        for node in top.body
        if isinstance(node, ast.AnnAssign)
    }
    spots = [
        (node.lineno, node.col_offset, node.id, renames[node.id])
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in renames and id(node) not in keys
    ]
    for top in tree.body:
        if isinstance(top, ast.ClassDef) and top.name in renames:
            spots.append((top.lineno, top.col_offset + len("class "), top.name, renames[top.name]))
        elif isinstance(top, ast.Assign) and isinstance(top.value, ast.Call) and top.value.args:
            label = top.value.args[0]
            if isinstance(label, ast.Constant) and label.value in renames:
                spots.append(
                    (label.lineno, label.col_offset + 1, str(label.value), renames[str(label.value)])
                )
    lines = source.encode().split(b"\n")
    for line, column, old, new in sorted(spots, reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + new.encode() + text[column + len(old.encode()) :]
    return b"\n".join(lines).decode()


def names_in(source: str) -> set[str]:
    """Every name that annotations or declarations mention, keys of class bodies included."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _optional(annotation: str, required: bool) -> str:
    return annotation if required else f"NotRequired[{annotation}]"


def string_literal(value: str) -> str:
    """A string literal in double quotes, ASCII only, so that the stub is the same bytes everywhere."""
    body = ascii(value)
    inner = body[1:-1]
    if body[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    return f'"{inner}"'


def _docstring(doc: str) -> str:
    line = " ".join(doc.split()).replace("\\", "\\\\").replace('"', "'")
    return f'"""{line[:200]}"""'
