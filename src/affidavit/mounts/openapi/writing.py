"""Arguments as the parts of a request: every style of OpenAPI 3.1, section 4.8.12, and every kind of body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import quote

from affidavit.errors import UsageError
from affidavit.mounts.foreign import json_path, plain_arguments
from affidavit.mounts.openapi.document import Body, Endpoint, Request, is_form, is_json

__all__ = ["Written", "write"]

_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_DELIMITERS: Final[Mapping[str, str]] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


@dataclass(slots=True)
class Written:
    """The parts of a request that arguments make.

    Attributes:
        path: the template filled in, escaped.
        query: the pieces of the query, escaped.
        headers: by name.
        cookies: the pieces of the cookie header.
        content: the body, or None.
        files: parts of a multipart body, or None.
    """

    path: str
    query: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: list[str] = field(default_factory=list[str])
    content: bytes | None = None
    files: list[tuple[str, tuple[str | None, bytes, str]]] | None = None


def write(endpoint: Endpoint, arguments: dict[str, Any]) -> Written:
    """Write arguments into the parts of a request.

    Raises:
        UsageError: `arguments-invalid` for what has no form there.
    """
    written = Written(path=endpoint.path)
    given = dict(arguments)
    for request in endpoint.requests:
        if request.key in given:
            value = given.pop(request.key)
            plain_arguments({request.key: value}, what=endpoint.name)
            _place(endpoint, request, value, written)
    if endpoint.body is not None and endpoint.body.key in given:
        _fill(endpoint, endpoint.body, given[endpoint.body.key], written)
    return written


def _place(endpoint: Endpoint, request: Request, value: Any, written: Written) -> None:
    if request.json:
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    match request.place:
        case "path":
            text = _simple_like(endpoint, request, value)
            if text in ("", ".", ".."):
                raise _unfit(endpoint, request.key, "would leave its place in the path")
            written.path = written.path.replace(f"{{{request.name}}}", text)
        case "query":
            written.query += _query(endpoint, request, value)
        case "header":
            text = _joined(endpoint, request, value, ",", escape=False)
            if any(ord(char) < 32 or ord(char) == 127 for char in text):
                raise _unfit(endpoint, request.key, "holds control characters, which no header can")
            if not text.isascii():
                raise _unfit(
                    endpoint, request.key, "holds more than ASCII, which headers do not (RFC 9110, 5.5)"
                )
            written.headers[request.name] = text
        case "cookie":
            written.cookies += _query(endpoint, request, value)


def _simple_like(endpoint: Endpoint, request: Request, value: Any) -> str:
    """A value in a path: `simple`, `label` (`.a.b`) or `matrix` (`;x=a;x=b`)."""
    name = quote(request.name, safe="")
    if request.style == "simple":
        return _joined(endpoint, request, value, ",")
    if request.style == "label":
        return "." + _joined(endpoint, request, value, "." if request.explode else ",")
    if request.style != "matrix":
        raise _unfit(endpoint, request.key, f"has the style {request.style!r}, which paths do not have")
    if isinstance(value, dict) and request.explode:
        return "".join(
            f";{_escaped(key)}={_word(endpoint, request, item)}"
            for key, item in cast("dict[str, Any]", value).items()
        )
    if isinstance(value, list) and request.explode:
        return "".join(f";{name}={_word(endpoint, request, item)}" for item in cast("list[Any]", value))
    return f";{name}={_joined(endpoint, request, value, ',')}"


def _joined(endpoint: Endpoint, request: Request, value: Any, separator: str, *, escape: bool = True) -> str:
    """A value as one piece: `a,b`, and of an object `k,v,k,v`, or exploded `k=v,k=v`."""

    def word(item: Any) -> str:
        return _word(endpoint, request, item, escape=escape)

    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        between = "=" if request.explode else separator
        return separator.join(
            f"{_escaped(key) if escape else key}{between}{word(item)}" for key, item in pairs
        )
    if isinstance(value, list):
        return separator.join(word(item) for item in cast("list[Any]", value))
    return word(value)


def _query(endpoint: Endpoint, request: Request, value: Any) -> list[str]:
    """A value as pieces of a query: `form`, `spaceDelimited`, `pipeDelimited` or `deepObject`."""
    name = quote(request.name, safe="")
    if request.style == "deepObject":
        if not isinstance(value, dict):
            raise _unfit(endpoint, request.key, "is no object, as its style deepObject needs")
        return _deep(endpoint, request, name, cast("dict[str, Any]", value))
    if isinstance(value, list) and request.explode:
        return [f"{name}={_word(endpoint, request, item)}" for item in cast("list[Any]", value)]
    if isinstance(value, dict) and request.explode:
        pairs = cast("dict[str, Any]", value).items()
        return [f"{_escaped(key)}={_word(endpoint, request, item)}" for key, item in pairs]
    separator = _DELIMITERS.get(request.style, ",")
    if request.style not in ("form", *_DELIMITERS):
        raise _unfit(endpoint, request.key, f"has the style {request.style!r}, which queries do not have")
    if value is None:
        return [f"{name}="]
    return [f"{name}={_joined(endpoint, request, value, separator)}"]


def _deep(endpoint: Endpoint, request: Request, prefix: str, value: dict[str, Any]) -> list[str]:
    pieces: list[str] = []
    for key, item in value.items():
        name = f"{prefix}%5B{_escaped(key)}%5D"
        if isinstance(item, dict):
            pieces += _deep(endpoint, request, name, cast("dict[str, Any]", item))
        elif isinstance(item, list):
            pieces += [f"{name}={_word(endpoint, request, one)}" for one in cast("list[Any]", item)]
        else:
            pieces.append(f"{name}={_word(endpoint, request, item)}")
    return pieces


def _word(endpoint: Endpoint, request: Request, value: Any, *, escape: bool = True) -> str:
    if isinstance(value, (dict, list)):
        raise _unfit(endpoint, request.key, f"nests deeper than its style {request.style} can say")
    text = _text(value)
    if not escape:
        return text
    safe = _RESERVED.replace("&", "").replace("#", "").replace("+", "") if request.reserved else ""
    return _escaped(text, safe)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _escaped(text: str, safe: str = "") -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise UsageError(
            "arguments-invalid", f"{text!r} holds half a surrogate pair, which no URL can"
        ) from None


def _fill(endpoint: Endpoint, body: Body, value: Any, written: Written) -> None:
    if not isinstance(value, bytes) and not body.media.startswith("multipart/"):
        plain_arguments({body.key: value}, what=endpoint.name)
    if is_json(body.media):
        written.content = _json(value)
    elif not is_form(body.media):
        written.content = value if isinstance(value, bytes) else str(value).encode()
    elif not isinstance(value, dict):
        raise _unfit(endpoint, body.key, "is no object, as a form needs")
    elif body.media.startswith("multipart/"):
        written.files = [
            _part(endpoint, body, name, item)
            for name, one in cast("dict[str, Any]", value).items()
            for item in (cast("list[Any]", one) if isinstance(one, list) else [one])
        ]
    else:
        pieces = [
            f"{_form(name)}={_form(_json(item).decode() if isinstance(item, dict) else _text(item))}"
            for name, one in cast("dict[str, Any]", value).items()
            for item in (cast("list[Any]", one) if isinstance(one, list) else [one])
        ]
        written.content = "&".join(pieces).encode()
    if written.files is None:
        written.headers["Content-Type"] = body.media


def _part(endpoint: Endpoint, body: Body, name: str, value: Any) -> tuple[str, tuple[str | None, bytes, str]]:
    kind = body.form.get(name)
    if isinstance(value, bytes):
        return name, (name, value, kind or "application/octet-stream")
    plain_arguments({name: value}, what=endpoint.name)
    if isinstance(value, (dict, list)) or (kind is not None and is_json(kind)):
        return name, (None, _json(value), kind or "application/json")
    return name, (None, _text(value).encode(), kind or "text/plain; charset=utf-8")


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _form(text: str) -> str:
    return _escaped(text, " ").replace(" ", "+")


def _unfit(endpoint: Endpoint, key: str, why: str) -> UsageError:
    path = json_path([key])
    message = f"{endpoint.name}: the argument at {path} {why}"
    return UsageError("arguments-invalid", message, hint="see its description", details={"path": path})
