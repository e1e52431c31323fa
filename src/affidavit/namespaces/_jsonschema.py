"""Foreign JSON Schemas made uniform, so that nothing after this has to know dialects.

`normalise` answers one question: is this a schema that can serve as a contract here, and what does it say in the terms
of draft 2020-12 with local JSON pointers only? References that leave the document are refused, never fetched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import unquote, urldefrag, urljoin

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue

__all__ = ["MAX_DEPTH", "MAX_NODES", "json_path", "normalise", "resolve"]

MAX_DEPTH: Final = 100
MAX_NODES: Final = 50_000

# Where a keyword holds one schema, a list of them, or a mapping of names to them.
_ONE_WORDS: Final = (
    "additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems "
    "unevaluatedProperties contentSchema"
)
_ONE: Final = frozenset(_ONE_WORDS.split())
_MANY: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
_NAMED: Final = frozenset(
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]
)
_OLD: Final = ("draft-03", "draft-04", "draft-06", "draft-07")
_DROPPED: Final = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$comment", "$schema"})
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_SIZES: Final = frozenset(
    f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")
)
_NUMBERS: Final = frozenset({"minimum", "maximum", "multipleOf"})
_KEPT: Final = ("$defs", "definitions", "title", "description", "default")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def json_path(parts: Iterator[str | int] | list[str | int] | tuple[str | int, ...]) -> str:
    """JSON path of a place: `$.rows[3].name`, `$["per-page"]`."""
    text = "$"
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if _PLAIN.match(part) else f"[{_quoted(part)}]"
    return text


def normalise(schema: JsonValue, *, what: str) -> dict[str, JsonValue] | bool:
    """`schema` in draft 2020-12, its references all local pointers (`#/...`), without `$id`, `$anchor`, `nullable`.

    Args:
        schema: JSON Schema of draft-04 to 2020-12, or OpenAPI's dialects of it.
        what: whose schema it is, for messages.

    Raises:
        UsageError: `schema-unsupported` for what is no schema (checked by keyword here, since validating against the
            metaschema costs more than all the rest), for references that leave the document or point
            nowhere, for dynamic references, and beyond 100 levels or 50,000 nodes. `details.path` names the place.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise _unsupported(what, [], f"is {type(schema).__name__}, not a JSON Schema object")
    document = cast(Mapping[str, JsonValue], schema)
    rewriter = _Rewriter(what=what, old=any(mark in str(document.get("$schema", "")) for mark in _OLD))
    rewriter.index(document)
    result = cast(dict[str, JsonValue], rewriter.rewrite(document))
    for pointer, path in rewriter.pointers:
        try:
            resolve(result, pointer)
        except (KeyError, IndexError, ValueError):
            raise _unsupported(what, path, f"refers to {pointer!r}, which is not there") from None
    return result


def resolve(document: JsonValue, pointer: str) -> JsonValue:
    """The subschema at a local pointer (`#`, `#/$defs/Node`). Raises KeyError, IndexError or ValueError."""
    if pointer in ("#", "#/"):
        return document
    node: Any = document
    for raw in pointer[2:].split("/"):
        part = unquote(raw).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = cast(list[Any], node)[int(part)]
        elif isinstance(node, dict):
            node = cast(dict[str, Any], node)[part]
        else:
            raise KeyError(part)
    if not isinstance(node, (dict, bool)):
        raise KeyError(pointer)
    return cast(JsonValue, node)


@dataclass(slots=True)
class _Rewriter:
    what: str
    old: bool = False
    nodes: int = 0
    ids: dict[str, str] = field(default_factory=dict[str, str])
    pointers: list[tuple[str, list[str | int]]] = field(default_factory=list[tuple[str, list[str | int]]])

    def index(self, schema: JsonValue) -> None:
        """Note every `$id` and `$anchor` of the document with the pointer of the schema that carries it."""
        stack: list[tuple[JsonValue, list[str | int], str]] = [(schema, [], "")]
        while stack:
            node, path, base = stack.pop()
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise _unsupported(self.what, path, f"has more than {MAX_NODES:,} parts")
            if len(path) > 2 * MAX_DEPTH:
                raise _unsupported(self.what, path, f"is nested more than {MAX_DEPTH} levels deep")
            if not isinstance(node, Mapping):
                continue
            mapping = cast(Mapping[str, JsonValue], node)
            base = self._note(mapping, path, base)
            stack.extend((child, [*path, *place], base) for place, child in _children(mapping))

    def _note(self, node: Mapping[str, JsonValue], path: list[str | int], base: str) -> str:
        for key in ("$id", "id") if not path else ("$id",):
            identity = node.get(key)
            if isinstance(identity, str):
                base = urljoin(base, identity)
                self.ids.setdefault(urldefrag(base).url or "#", _pointer(path))
        for key in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(key)
            if isinstance(anchor, str):
                self.ids.setdefault(f"{urldefrag(base).url}#{anchor}", _pointer(path))
        return base

    def rewrite(self, schema: JsonValue, path: list[str | int] | None = None, base: str = "") -> JsonValue:
        path = path or []
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise _unsupported(self.what, path, f"is {type(schema).__name__} where a schema belongs")
        node = cast(Mapping[str, JsonValue], schema)
        identity = node.get("$id")
        if isinstance(identity, str):
            base = urljoin(base, identity)
        result: dict[str, JsonValue] = {}
        for key, value in node.items():
            if key in _DROPPED and isinstance(value, str):
                continue
            if self.old and "$ref" in node and key not in ("$ref", *_KEPT):
                continue  # before 2019-09 a reference stood alone, whatever was beside it
            result[key] = self._keyword(key, value, [*path, key], base)
        return _without_nullable(_modern(result))

    def _keyword(self, key: str, value: JsonValue, path: list[str | int], base: str) -> JsonValue:
        if key == "$ref":
            return self._reference(value, path, base)
        if key in ("$dynamicRef", "$recursiveRef"):
            raise _unsupported(self.what, path, f"uses {key!r}, which depends on who refers to it")
        if key in _NAMED and isinstance(value, Mapping):
            return {
                # draft-07 `dependencies` may also hold plain lists of names
                name: cast(JsonValue, child)
                if isinstance(child, list)
                else self.rewrite(child, [*path, name], base)
                for name, child in cast(Mapping[str, JsonValue], value).items()
            }
        if key in _MANY and isinstance(value, list):
            items = cast(list[JsonValue], value)
            return [self.rewrite(item, [*path, index], base) for index, item in enumerate(items)]
        if key in _ONE:
            return self.rewrite(value, path, base)
        if key in _NAMED or key in _MANY or not _fits(key, value):
            raise _unsupported(self.what, path, f"is {_shown(value)}, which {key!r} cannot be")
        return value

    def _reference(self, value: JsonValue, path: list[str | int], base: str) -> str:
        if not isinstance(value, str):
            raise _unsupported(self.what, path, "is a reference that is not text")
        target, fragment = urldefrag(urljoin(base, value) if not value.startswith("#") else base + value)
        if target and target not in self.ids:
            if value.startswith("#"):
                target = ""
            else:
                raise _unsupported(
                    self.what,
                    path,
                    f"refers to {value!r}, outside this schema; nothing is fetched",
                    remote=value,
                )
        start = self.ids.get(target, "#") if target else "#"
        if fragment and not fragment.startswith("/"):
            anchored = self.ids.get(f"{target}#{fragment}")
            if anchored is None:
                raise _unsupported(self.what, path, f"refers to {value!r}, which is not there")
            pointer = anchored
        else:
            pointer = start + fragment if fragment else start
        self.pointers.append((pointer, path))
        return pointer


def _children(node: Mapping[str, JsonValue]) -> Iterator[tuple[tuple[str | int, ...], JsonValue]]:
    for key, value in node.items():
        if key in _NAMED and isinstance(value, Mapping):
            for name, child in cast(Mapping[str, JsonValue], value).items():
                yield (key, name), child
        elif key in _MANY and isinstance(value, list):
            for index, child in enumerate(cast(list[JsonValue], value)):
                yield (key, index), child
        elif key in _ONE:
            yield (key,), value


def _fits(key: str, value: JsonValue) -> bool:
    """Whether a keyword that holds no schema has a value of the kind that it needs."""
    if key == "type":
        kinds = cast(list[JsonValue], value) if isinstance(value, list) else [value]
        return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
    if key == "required":
        return _are_names(value)
    if key == "dependentRequired":
        return isinstance(value, Mapping) and all(
            map(_are_names, cast(Mapping[str, JsonValue], value).values())
        )
    if key == "enum":
        return isinstance(value, list)
    if key in _SIZES:
        return _is_number(value) and value >= 0 and int(value) == value
    if key in _NUMBERS:
        return _is_number(value) and (key != "multipleOf" or value > 0)
    if key in ("exclusiveMinimum", "exclusiveMaximum"):
        return _is_number(value) or isinstance(value, bool)
    return (
        isinstance(value, str)
        if key == "pattern"
        else isinstance(value, bool)
        if key == "uniqueItems"
        else True
    )


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _are_names(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast(list[JsonValue], value))


def _modern(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Keywords of older drafts as those of 2020-12."""
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if "additionalItems" in node:
            node["items"] = node["additionalItems"]
    node.pop("additionalItems", None)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(exclusive) is True and bound in node:
            node[exclusive] = node.pop(bound)
        elif isinstance(node.get(exclusive), bool):
            del node[exclusive]
    for name, needed in cast(dict[str, JsonValue], node.pop("dependencies", {})).items():
        keyword = "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
        node.setdefault(keyword, {})[name] = needed
    return node


def _without_nullable(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """OpenAPI 3.0 writes `nullable: true` where JSON Schema has a `null` type."""
    if node.pop("nullable", None) is not True:
        return node
    kind = node.get("type")
    if isinstance(kind, str) and kind != "null":
        node["type"] = [kind, "null"]
        if isinstance(node.get("enum"), list) and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]
        return node
    if "$ref" in node or "allOf" in node or "anyOf" in node or "oneOf" in node:
        # what is pointed into must stay where it is
        kept = {key: node.pop(key) for key in _KEPT if key in node}
        return {**kept, "anyOf": [node, {"type": "null"}]}
    return node


def _pointer(path: list[str | int]) -> str:
    parts = [str(part).replace("~", "~0").replace("/", "~1").replace("%", "%25") for part in path]
    return "#" + "".join(f"/{part}" for part in parts)


def _shown(value: JsonValue) -> str:
    return ascii(value)[:80] if isinstance(value, (str, int, float)) else type(value).__name__


def _quoted(text: str) -> str:
    escape: Callable[[str], str] = lambda char: "\\" + char if char in '"\\' else char  # noqa: E731
    return '"' + "".join(escape(char) for char in text) + '"'


def _unsupported(what: str, path: list[str | int], why: str, remote: str | None = None) -> UsageError:
    place = json_path(path)
    return UsageError(
        "schema-unsupported",
        f"the schema of {what} {why} (at {place})",
        hint="Use references inside the schema (#/$defs/...), or mount without this operation.",
        details={"path": place} if remote is None else {"path": place, "reference": remote},
    )
