"""What a description says of each operation: where its arguments go, what it takes, what it returns.

Each operation is made self-contained: the component schemas that it reaches stand in its own `$defs`. Nothing outside
of the description is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.record import JsonValue, Limitation
from affidavit.namespaces.names import readable

__all__ = ["Body", "Endpoint", "Place", "Request", "endpoints", "left_out"]

Place: TypeAlias = Literal["path", "query", "header", "cookie"]
Json: TypeAlias = dict[str, Any]

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_STYLES: Final[Mapping[str, str]] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
# What the standard says to ignore, and what says which host is meant and how the message is framed.
_IGNORED_WORDS: Final = (
    "accept content-type authorization host content-length transfer-encoding connection keep-alive te trailer "
    "upgrade expect proxy-authorization proxy-connection"
)
_IGNORED: Final = frozenset(_IGNORED_WORDS.split())
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_MAX_STEPS: Final = 50
_BYTES: Final[Json] = {
    "type": "object",
    "title": "bytes",
    "properties": {"$bytes": {"type": "string", "contentEncoding": "base64"}},
    "required": ["$bytes"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Where one argument goes.

    Attributes:
        key: the argument's name.
        name: the parameter's name at the far side.
        place: the part of the request that it is in.
        style, explode, reserved: how its value is written (OpenAPI 3.1, 4.8.12).
        json: whether it is written as JSON instead.
    """

    key: str
    name: str
    place: Place
    style: str
    explode: bool
    reserved: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """How the argument `body` is sent.

    Attributes:
        key: the argument's name.
        media: the content type.
        form: how each property of a form is written, by name: its content type.
    """

    key: str
    media: str
    form: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One operation of the description.

    Attributes:
        name: its `operationId`, or its method and path.
        method: in capitals.
        path: template of the path.
        doc: summary and description.
        requests: where arguments go.
        body: how the body is sent, or None.
        arguments: JSON Schema of all arguments.
        result: JSON Schema of what it returns, or None where the description says none.
        security: the names of schemes, any one group of which is enough.
        server: the base of its own where it has one, else empty.
    """

    name: str
    method: str
    path: str
    doc: str
    requests: tuple[Request, ...]
    body: Body | None
    arguments: Json
    result: JsonValue
    security: tuple[tuple[str, ...], ...]
    server: str = ""


def endpoints(document: Json) -> tuple[list[Endpoint], list[Limitation]]:
    """Every operation, in order of name, and those that cannot be offered with why."""
    found: dict[str, Endpoint] = {}
    limitations: list[Limitation] = []
    for path, given in cast("Json", document.get("paths", {})).items():
        if path.startswith("x-"):
            continue
        try:
            item = _item(document, path, given)
        except Exception as error:  # as below
            limitations.append(left_out(path, error))
            continue
        for method in _METHODS:
            if method not in item:
                continue
            try:
                endpoint = _Reading(document).endpoint(method, path, item, item[method])
                if endpoint.name in found:
                    raise UsageError("mount-invalid", f"two operations are called {endpoint.name!r}")
                found[endpoint.name] = endpoint
            except Exception as error:
                # a description is foreign text: one that is not what the standard says costs that operation
                limitations.append(left_out(f"{method.upper()} {path}", error))
    return [found[name] for name in sorted(found)], limitations


def left_out(place: str, error: Exception) -> Limitation:
    """Why an operation cannot be offered."""
    code, message = "schema-unsupported", f"it is not as the standard has it: {type(error).__name__}: {error}"
    if isinstance(error, AffidavitError):
        code, message = error.code, error.message
    return Limitation(code=code, place=readable(place), message=readable(message))


def _item(document: Json, path: str, given: Any) -> Json:
    if not path.startswith("/"):
        raise ValueError("a path starts with a slash")
    item = _Reading(document).resolved(given)
    return item if item is given else {**item, **given}


class _Reading:
    """Reads one operation, and gathers the schemas that it reaches."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._defs: dict[str, Json] = {}
        self._names: dict[tuple[str, str], str] = {}

    def endpoint(self, method: str, path: str, item: Json, operation: Json) -> Endpoint:
        name = str(operation.get("operationId") or f"{method} {path}")
        properties: Json = {}
        required: list[str] = []
        requests: list[Request] = []
        for given in self._parameters(item, operation):
            request, schema = self._request(given, properties)
            requests.append(request)
            properties[request.key] = schema
            if given.get("required") or request.place == "path":
                required.append(request.key)
        placed = {request.name for request in requests if request.place == "path"}
        for missing in sorted(set(_TEMPLATE.findall(path)) - placed):
            raise ValueError(f"no parameter says what {{{missing}}} in the path is")
        body = None
        if "requestBody" in operation:
            body, schema, needed = self._body(self.resolved(operation["requestBody"]), properties)
            properties[body.key] = schema
            if needed:
                required.append(body.key)
        arguments = {"type": "object", "properties": properties, "required": required, "$defs": self._defs}
        self._defs, self._names = {}, {}
        result = self._result(cast("Json", operation.get("responses", {})), method)
        if isinstance(result, dict) and self._defs:
            result = {**cast("Json", result), "$defs": self._defs}
        servers: list[Json] = operation.get("servers") or item.get("servers") or []
        words = [str(operation.get(key) or "").strip() for key in ("summary", "description")]
        return Endpoint(
            name=name,
            method=method.upper(),
            path=path,
            doc="\n\n".join(dict.fromkeys(word for word in words if word)) or f"{method.upper()} {path}",
            requests=tuple(requests),
            body=body,
            arguments=arguments,
            result=result,
            security=self._security(operation),
            server=server_url(servers[0]) if servers else "",
        )

    def resolved(self, node: Any) -> Json:
        """What a chain of references leads to."""
        for _ in range(_MAX_STEPS):
            if not isinstance(node, dict):
                raise TypeError(f"{node!r} is no object")
            if "$ref" not in node:
                return cast("Json", node)
            node = self._target(cast("Json", node)["$ref"])
        raise ValueError("references lead in a circle")

    def _target(self, reference: object) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise UsageError(
                "schema-unsupported",
                f"{reference!r} is outside of the description, and nothing is fetched",
                hint="bundle the description into one file",
            )
        node: Any = self._document
        for step in reference[2:].split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            node = cast("list[Any]", node)[int(key)] if isinstance(node, list) else node[key]
        return node

    def _parameters(self, item: Json, operation: Json) -> list[Json]:
        found: dict[tuple[str, str], Json] = {}
        for given in [*item.get("parameters", []), *operation.get("parameters", [])]:
            one = self.resolved(given)
            if one["in"] == "header" and one["name"].lower() in _IGNORED:
                continue  # the standard says so
            found[one["in"], one["name"]] = one
        return list(found.values())

    def _request(self, given: Json, taken: Json) -> tuple[Request, JsonValue]:
        name, place = given["name"], given["in"]
        if place not in _STYLES:
            raise ValueError(f"a parameter in {place!r}")
        content: Json = given.get("content") or {}
        style = given.get("style", _STYLES[place])
        schema = next(iter(content.values())).get("schema", {}) if content else given.get("schema", {})
        request = Request(
            key=name if name not in taken else f"{name} {place}",
            name=name,
            place=place,
            style=style,
            explode=given.get("explode", style == "form"),
            reserved=bool(given.get("allowReserved")),
            json=bool(content),
        )
        described = self._schema(schema, "readOnly")
        words = given.get("description")
        if words and isinstance(described, dict) and "description" not in described:
            return request, {**cast("Json", described), "description": words}
        return request, cast("JsonValue", described)

    def _body(self, given: Json, taken: Json) -> tuple[Body, JsonValue, bool]:
        content: Json = given.get("content") or {}
        media = _preferred(content)
        described: Json = content[media]
        schema = described.get("schema", {} if is_json(media) else _BYTES)
        if not is_json(media) and not is_form(media):
            plain = media.startswith("text/")
            schema = {"type": "string"} if plain else _BYTES
        parts: Json = described.get("encoding") or {}
        form = {name: str(part["contentType"]) for name, part in parts.items() if "contentType" in part}
        key = "body" if "body" not in taken else "request body"
        binary = media.startswith("multipart/")
        made = self._schema(schema, "readOnly", binary=binary)
        return Body(key=key, media=media, form=form), made, bool(given.get("required"))

    def _result(self, responses: Json, method: str) -> JsonValue:
        """The schema of what success returns; None where the description leaves it open."""
        if method == "head":
            return {"type": "null"}
        found: list[JsonValue] = []
        good = [code for code in responses if code.startswith("2")] or [
            code for code in responses if code == "default"
        ]
        for code in good:
            response = self.resolved(responses[code])
            content: Json = response.get("content") or {}
            if not content and code in ("204", "205"):
                found.append({"type": "null"})
                continue
            media = next((one for one in content if is_json(one)), None)
            if media is None or "schema" not in content[media] or len(content) > 1:
                return None
            found.append(self._schema(content[media]["schema"], "writeOnly"))
        unique = [one for number, one in enumerate(found) if one not in found[:number]]
        if not unique:
            return None
        return unique[0] if len(unique) == 1 else {"anyOf": unique}

    def _security(self, operation: Json) -> tuple[tuple[str, ...], ...]:
        wanted = operation.get("security", self._document.get("security", []))
        return tuple(tuple(sorted(group)) for group in cast("list[Json]", wanted))

    def _schema(self, schema: JsonValue, hidden: str, *, binary: bool = False) -> JsonValue:
        """A schema with its references pointing into `$defs`, as it reads in one direction.

        Args:
            schema: a schema of the description.
            hidden: `readOnly` or `writeOnly`: properties marked so are not required in this direction.
            binary: whether text of the format `binary` is bytes here, as it is in a form.
        """
        if isinstance(schema, list):
            return [self._schema(one, hidden, binary=binary) for one in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        node = cast("Json", schema)
        if isinstance(node.get("$ref"), str):
            return {"$ref": f"#/$defs/{self._definition(node['$ref'], hidden, binary=binary)}"}
        if binary and node.get("type") == "string" and node.get("format") == "binary":
            return dict(_BYTES)
        made: Json = {}
        for key, value in node.items():
            if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
                named = cast("Json", value).items()
                made[key] = {name: self._schema(one, hidden, binary=binary) for name, one in named}
            elif key in ("example", "examples", "default", "enum", "const"):
                made[key] = value
            elif key not in ("discriminator", "xml", "externalDocs"):
                made[key] = self._schema(value, hidden, binary=binary)
        return self._shown(made, hidden)

    def _shown(self, node: Json, hidden: str) -> Json:
        properties = node.get("properties")
        if isinstance(node.get("required"), list) and isinstance(properties, dict):
            named = cast("Json", properties)
            node["required"] = [
                name
                for name in node["required"]
                if not (isinstance(named.get(name), dict) and named[name].get(hidden) is True)
            ]
        return node

    def _definition(self, reference: str, hidden: str, *, binary: bool) -> str:
        known = self._names.get((reference, hidden))
        if known is not None:
            return known
        target = self._target(reference)
        base = unquote(reference.rpartition("/")[2]).replace("~1", "_").replace("~0", "_").replace("%", "_")
        name = base
        while name in self._defs:
            name += "_"
        self._names[reference, hidden] = name
        self._defs[name] = {}
        made = self._schema(target, hidden, binary=binary)
        self._defs[name] = cast("Json", made)
        return name


def server_url(server: Json) -> str:
    """The URL of a server with its variables at their defaults."""
    url = str(server["url"])
    for name, variable in cast("Json", server.get("variables") or {}).items():
        url = url.replace(f"{{{name}}}", str(variable["default"]))
    return url


def is_json(media: str) -> bool:
    """Whether a content type is JSON.

    >>> is_json("application/problem+json; charset=utf-8"), is_json("text/plain")
    (True, False)
    """
    kind = media.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_form(media: str) -> bool:
    """Whether a content type is a form of either kind."""
    return media.startswith(("application/x-www-form-urlencoded", "multipart/form-data"))


def _preferred(content: Json) -> str:
    for fits in (is_json, _is_plain_form, is_form):
        for media in content:
            if fits(media):
                return media
    return next(iter(content), "application/octet-stream") if content else _no_content()


def _is_plain_form(media: str) -> bool:
    return media.startswith("application/x-www-form-urlencoded")


def _no_content() -> str:
    raise ValueError("a request body without content")
