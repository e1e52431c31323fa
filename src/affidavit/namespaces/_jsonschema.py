"""Foreign JSON Schemas made uniform, so that nothing after this has to know dialects.

`normalise` answers one question: is this a schema that can serve as a contract here, and what does it say in terms of
local JSON pointers only? References that leave the document are refused, never fetched.
"""

from __future__ import annotations

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
    """A copy of `schema` whose references are all local pointers (`#/...`), without `$id`, `$anchor` and `nullable`.

    Args:
        schema: JSON Schema of draft 4 to 2020-12, or OpenAPI's dialects of it.
        what: whose schema it is, for messages.

    Raises:
        UsageError: `schema-unsupported` for what is no schema, for references that leave the document or point
            nowhere, for dynamic references, and beyond 100 levels or 50,000 nodes. `details.path` names the place.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise _unsupported(what, [], f"is {type(schema).__name__}, not a JSON Schema object")
    document = cast(Mapping[str, JsonValue], schema)
    rewriter = _Rewriter(what=what)
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
            if key in ("$id", "id", "$anchor", "$dynamicAnchor", "$comment") and isinstance(value, str):
                continue
            result[key] = self._keyword(key, value, [*path, key], base)
        return _without_nullable(result)

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
        if key in _NAMED or key in _MANY:
            raise _unsupported(self.what, path, f"is {type(value).__name__}, which {key!r} cannot be")
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
        notes = {key: node.pop(key) for key in ("title", "description", "default") if key in node}
        return {**notes, "anyOf": [node, {"type": "null"}]}
    return node


def _pointer(path: list[str | int]) -> str:
    parts = [str(part).replace("~", "~0").replace("/", "~1").replace("%", "%25") for part in path]
    return "#" + "".join(f"/{part}" for part in parts)


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
