"""The exact value of a literal."""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

__all__ = ["COMMENTS", "argument", "literal", "name_text", "operand", "source_of", "spelling", "string_value"]

_ESCAPE: Final = re.compile(
    r"\\(?:u\{(?P<braced>[0-9a-fA-F]+)\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<line>\r\n|[\n\r\u2028\u2029])|(?P<one>[^ux]))",
    re.DOTALL,
)
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NAME_ESCAPE: Final = re.compile(r"\\u(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{4}))")
COMMENTS: Final = frozenset({"comment", "html_comment"})
_WRAPPERS: Final = frozenset(
    {
        "parenthesized_expression",
        "as_expression",
        "satisfies_expression",
        "non_null_expression",
        "type_assertion",
    }
)


class _MalformedError(Exception):
    pass


def literal(node: Node | None, data: bytes) -> str | None:
    """The value of a string or of a template without substitutions, in parentheses or not; None for all else.

    A cast of TypeScript changes no value and is looked through. Bad UTF-8 reads as U+FFFD, as in Node.
    """
    node = operand(node)
    if node is None or node.type not in {"string", "template_string"}:
        return None
    if any(child.type == "template_substitution" for child in node.named_children):
        return None
    return string_value(source_of(node, data))


def string_value(token: bytes) -> str | None:
    """The value of a string or template token, its quotes included; None when an escape in it is malformed."""
    template = token.startswith(b"`")
    text = token[1:-1].decode("utf-8", "replace")
    if template and "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return _unescaped(text, template=template)
    except _MalformedError:
        return None


def operand(node: Node | None) -> Node | None:
    """The expression inside parentheses and casts."""
    while node is not None and node.type in _WRAPPERS:
        inner = [child for child in node.named_children if child.type not in COMMENTS]
        if not inner:
            return None
        node = inner[-1] if node.type == "type_assertion" else inner[0]
    return node


def argument(call: Node, index: int) -> Node | None:
    """An argument of a call or `new`; None when there is none or a spread comes before it."""
    arguments = call.child_by_field_name("arguments")
    if arguments is None:
        return None
    given = [child for child in arguments.named_children if child.type not in COMMENTS]
    if len(given) <= index or any(child.type == "spread_element" for child in given[: index + 1]):
        return None
    return given[index]


def source_of(node: Node, data: bytes) -> bytes:
    """The bytes of a node, which a tree that was parsed through a callback does not know itself."""
    return data[node.start_byte : node.end_byte]


def spelling(node: Node, data: bytes) -> str:
    """The name that an identifier spells."""
    return name_text(source_of(node, data))


def name_text(raw: bytes) -> str:
    """An identifier as it is meant: escapes decoded."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    return _NAME_ESCAPE.sub(lambda match: _character(match[1] or match[2]), text)


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _unescaped(text: str, *, template: bool) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while (backslash := text.find("\\", at)) >= 0:
        parts.append(text[at:backslash])
        match = _ESCAPE.match(text, backslash)
        if match is None:
            raise _MalformedError
        parts.append(_escape_value(match, template=template))
        at = match.end()
    parts.append(text[at:])
    value = "".join(parts)
    if _SURROGATE.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


def _escape_value(match: re.Match[str], *, template: bool) -> str:
    kind, value = match.lastgroup, match[match.lastgroup or 0]
    if kind == "braced":
        if int(value, 16) > 0x10FFFF:
            raise _MalformedError
        return chr(int(value, 16))
    if kind in {"unit", "byte"}:
        return chr(int(value, 16))
    if kind == "octal":
        follows = match.string[match.end() : match.end() + 1]
        if template and (value != "0" or follows.isdigit()):
            raise _MalformedError
        return chr(int(value, 8))
    if kind == "line":
        return ""
    if template and value in "89":
        raise _MalformedError
    return _SIMPLE.get(value, value)
