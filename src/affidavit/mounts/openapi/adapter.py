"""The adapter: from a description to operations, from a response to a value."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Mapping
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import quote, urljoin, urlsplit

from pydantic import Field

from affidavit.errors import FailedError, NotFoundError, UsageError
from affidavit.evidence.canonical import freeze, parse
from affidavit.evidence.record import JsonValue, Limitation, Producer
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.mounts.foreign import label
from affidavit.mounts.openapi.document import Endpoint, endpoints, is_json, left_out, server_url
from affidavit.mounts.openapi.loading import MAX_BYTES, load
from affidavit.mounts.openapi.writing import Written, write
from affidavit.mounts.options import Options, read_options
from affidavit.mounts.secrets import expand, refuse_credentials, refuse_userinfo
from affidavit.namespaces.names import identifiers, readable
from affidavit.namespaces.operation import Namespace, Operation, Reply
from affidavit.namespaces.schema import operation_from_schema

# The HTTP client is imported at the first request.
if TYPE_CHECKING:
    from affidavit.mounts.openapi.sending import Answer, Sender

__all__ = ["OpenApiAdapter"]

SCHEME: Final = "openapi:"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_MAX_BODY: Final = 16_384
_KEPT: Final = ("openapi", "info", "servers", "paths", "components", "security")


class OpenApiOptions(Options):
    """What stands beside the URI.

    Attributes:
        server: base URL of the API, where the description names none, a relative one, or another host.
        auth: by the name of a security scheme, `env:NAME` for the token, key, or `user:password`.
        headers: headers of each request, where `env:NAME` stands for a variable's value.
        timeout: seconds that a call may take, its retries included.
        retries: how often a safe request is sent again when the host was busy or not reached.
        rate: requests a second at most; 0 for no bound.
        max_reply: bytes of a response.
        envelope: whether results are `{"status", "headers", "body"}`, for APIs whose pages are in headers.
    """

    server: str = ""
    auth: dict[str, str] = Field(default_factory=dict[str, str])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    timeout: float = Field(default=60.0, gt=0, le=3600)
    retries: int = Field(default=2, ge=0, le=10)
    rate: float = Field(default=0.0, ge=0, le=10_000)
    max_reply: int = Field(default=32 << 20, gt=0, le=64 << 20)
    envelope: bool = False


class OpenApiAdapter:
    """`openapi:./spec.yaml` and `openapi:https://HOST/openapi.json`: OpenAPI 3.0 and 3.1."""

    name = "openapi"
    version = "1"
    place: Literal["db", "tool"] = "tool"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has the scheme."""
        return uri.startswith(SCHEME) and not head

    async def describe(self, source: Source) -> Description:
        """Read the description; the API itself is not asked anything."""
        options = _options(source)
        document = load(await _fetched(source, options))
        contents: dict[str, JsonValue] = {key: document[key] for key in _KEPT if key in document}
        contents["base"] = _base(source, options, document)
        made, limitations = _operations(contents, source, options, _NotOpen())
        if not made:
            why = f": {limitations[0].place}: {limitations[0].message}" if limitations else ""
            raise UsageError("mount-invalid", f"the description has no operation that can be offered{why}")
        info = _info(contents)
        return Description(
            contents=contents,
            summary=f"{info['title']} {info['version']}: {len(made)} operations at {contents['base']}",
            snapshot=_snapshot(contents),
            limitations=tuple(limitations),
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the operations; the host is connected at the first call."""
        return _OpenApiMount(source, cast("dict[str, JsonValue]", contents))


class _OpenApiMount:
    def __init__(self, source: Source, contents: dict[str, JsonValue]) -> None:
        self._source = source
        options = _options(source)
        self._sender = _sender(source, options)
        made, _ = _operations(contents, source, options, self._sender)
        info = _info(contents)
        doc = f"{info['title']} {info['version']}, at {contents['base']}.\n\n{info.get('description') or ''}"
        self._namespace = Namespace(name=source.name, doc=doc.strip(), operations=made)

    @property
    def namespace(self) -> Namespace:
        return self._namespace

    async def snapshot(self) -> Snapshot:
        return (await OpenApiAdapter().describe(self._source)).snapshot

    async def close(self) -> None:
        await self._sender.close()


class _NotOpen:
    """Stands for the sender where operations are only counted."""

    async def send(self, method: str, base: str, written: Written, secret: Mapping[str, str]) -> Answer:
        raise AssertionError((method, base, written, secret))


def _options(source: Source) -> OpenApiOptions:
    options = read_options(OpenApiOptions, source)
    for name, value in options.headers.items():
        refuse_credentials("header", name, value)
    for name, value in options.auth.items():
        refuse_credentials("auth", f"key of {name}", value)
    for url in (options.server, source.uri.removeprefix(SCHEME)):
        refuse_userinfo(url)
    return options


def _sender(source: Source, options: OpenApiOptions) -> Sender:
    try:
        from affidavit.mounts.openapi.sending import Sender
    except ModuleNotFoundError as error:
        raise FailedError(
            "extra-missing",
            f"OpenAPI needs a package that is not here: {error.name}",
            hint="install affidavit[openapi]",
        ) from error
    return Sender(
        source.name,
        timeout=options.timeout,
        retries=options.retries,
        rate=options.rate,
        max_reply=options.max_reply,
    )


def _is_url(where: str) -> bool:
    return where.startswith(("http://", "https://"))


async def _fetched(source: Source, options: OpenApiOptions) -> bytes:
    where = source.uri.removeprefix(SCHEME)
    if not _is_url(where):
        path = source.folder / where
        try:
            data = await asyncio.to_thread(_read, path)
        except FileNotFoundError:
            hint = "paths start at the folder where it is mounted"
            raise NotFoundError("artifact-not-found", f"there is no file {where}", hint=hint) from None
        except OSError as error:
            raise UsageError("mount-invalid", f"{where} cannot be read: {error.strerror}") from error
    else:
        sender = _sender(source, options)
        try:
            parts = urlsplit(where)
            written = Written(path=parts.path or "/", query=[parts.query] if parts.query else [])
            headers = {name: expand(value, source.secret) for name, value in options.headers.items()}
            answer = await sender.send("GET", f"{parts.scheme}://{parts.netloc}", written, headers)
        finally:
            await sender.close()
        if answer.status != 200:
            raise FailedError("mount-failed", f"{where} answers with status {answer.status}")
        data = answer.content
    if len(data) > MAX_BYTES:
        raise UsageError("mount-invalid", f"{where} has more than {MAX_BYTES} bytes")
    return data


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _base(source: Source, options: OpenApiOptions, document: Mapping[str, JsonValue]) -> str:
    """Where requests go: what the person says, else what the description says of the host that gave it."""
    where = source.uri.removeprefix(SCHEME)
    servers = cast("list[dict[str, Any]]", document.get("servers") or [{"url": "/"}])
    base = options.server
    if not base:
        try:
            base = server_url(servers[0])
        except (KeyError, TypeError, IndexError):
            base = "/"
        base = urljoin(where, base) if _is_url(where) else base
        if _is_url(where) and _origin(base) != _origin(where):
            raise UsageError(
                "mount-invalid",
                f"the description at {urlsplit(where).netloc} names the server {base}, another host",
                hint=f"if that is right, grant it with the option server={base}",
            )
    if not _is_url(base):
        raise UsageError(
            "mount-invalid",
            f"the description names no server to call but {base!r}",
            hint="say it with the option server=URL",
        )
    return base


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _info(contents: Mapping[str, JsonValue]) -> dict[str, Any]:
    info = {"title": "API", "version": "", **_object(contents.get("info"))}
    return {key: readable(it) if isinstance(it, str) else it for key, it in info.items()}


def _object(value: object) -> dict[str, Any]:
    """A part of the description that should be an object; what is none says nothing."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _operations(
    contents: dict[str, JsonValue], source: Source, options: OpenApiOptions, sender: Sender | _NotOpen
) -> tuple[dict[str, Operation], list[Limitation]]:
    found, limitations = endpoints(contents)
    info = _info(contents)
    prefix = f"openapi.{label(str(info['title']))}"
    producer = Producer(name=prefix, version=f"{OpenApiAdapter.version}/{info['version'] or 'unknown'}")
    credentials = _Credentials(source, options, contents)
    names = identifiers([one.name for one in found], fallback="operation")
    made: dict[str, Operation] = {}
    base = cast("str", contents["base"])
    for endpoint in found:
        place = f"{endpoint.method} {endpoint.path}"
        own = urljoin(base.rstrip("/") + "/", endpoint.server) if endpoint.server else base
        try:
            if _origin(own) != _origin(base):
                raise UsageError("mount-invalid", f"it is at {own}, another host than {base}")
            made[names[endpoint.name]] = operation_from_schema(
                names[endpoint.name],
                endpoint.arguments,
                _enveloped(endpoint.result) if options.envelope else endpoint.result,
                _caller(endpoint, own, sender, credentials, envelope=options.envelope),
                contract=f"{prefix}.{label(endpoint.name)}/{OpenApiAdapter.version}",
                effect="read" if endpoint.method in _SAFE else "write",
                producer=producer,
                doc=endpoint.doc,
            )
        except Exception as error:  # whatever foreign text does to its reader costs that operation
            limitations.append(left_out(place, error))
    return made, limitations


def _caller(
    endpoint: Endpoint, base: str, sender: Sender | _NotOpen, credentials: _Credentials, *, envelope: bool
) -> Callable[[dict[str, Any]], Any]:
    async def call(arguments: dict[str, Any]) -> Reply:
        written = write(endpoint, arguments)
        secret = credentials.add(endpoint, written)
        answer = await sender.send(endpoint.method, base, written, secret)
        if not 200 <= answer.status < 300:
            raise _failure(endpoint, answer)
        body = _value(endpoint, answer)
        if not envelope:
            return Reply(value=body)
        headers = dict(answer.headers)
        return Reply(value={"status": answer.status, "headers": headers, "body": body})

    return call


def _enveloped(result: JsonValue) -> JsonValue:
    inner: dict[str, Any] = dict(cast("dict[str, Any]", result)) if isinstance(result, dict) else {}
    definitions: dict[str, Any] = inner.pop("$defs", {})
    return {
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "body": inner,
        },
        "required": ["status", "headers", "body"],
        "$defs": definitions,
    }


class _Credentials:
    """What each request carries of secrets, by the security schemes of its operation."""

    def __init__(self, source: Source, options: OpenApiOptions, contents: Mapping[str, JsonValue]) -> None:
        self._source = source
        self._options = options
        self._schemes: dict[str, Any] = _object(_object(contents.get("components")).get("securitySchemes"))
        for name in options.auth:
            if name not in self._schemes:
                raise UsageError(
                    "mount-invalid",
                    f"the description has no security scheme {name!r}",
                    hint=f"it has {', '.join(self._schemes) or 'none'}",
                )

    def add(self, endpoint: Endpoint, written: Written) -> dict[str, str]:
        """Add what belongs into query and cookies to the parts of a request; returns the headers."""
        headers = {name: expand(value, self._source.secret) for name, value in self._options.headers.items()}
        for name in self._group(endpoint):
            scheme = _object(self._schemes[name])
            value = expand(self._options.auth[name], self._source.secret)
            kind = str(scheme.get("type", "")).lower()
            if kind != "apikey":
                headers["Authorization"] = _authorization(scheme, value)
            elif scheme.get("in") == "query":
                written.query.append(f"{quote(scheme['name'], safe='')}={quote(value, safe='')}")
            elif scheme.get("in") == "cookie":
                written.cookies.append(f"{scheme['name']}={value}")
            else:
                headers[str(scheme["name"])] = value
        return headers

    def _group(self, endpoint: Endpoint) -> tuple[str, ...]:
        """The first group of schemes for all of which there is a value."""
        for group in endpoint.security:
            if group and all(name in self._options.auth for name in group):
                return group
        return ()


def _authorization(scheme: Mapping[str, Any], value: str) -> str:
    if str(scheme.get("scheme", "")).lower() == "basic":
        return f"Basic {base64.b64encode(value.encode()).decode()}"
    return f"Bearer {value}"  # bearer, OAuth 2 and OpenID Connect


def _media(answer: Answer) -> tuple[str, str]:
    """Content type and character set of a response."""
    message = Message()
    message["content-type"] = answer.headers.get("content-type", "")
    kind = message.get_content_type() if answer.headers.get("content-type") else ""
    return kind, message.get_content_charset("utf-8")


def _value(endpoint: Endpoint, answer: Answer) -> JsonValue:
    """The body: JSON as its value, text as text, anything else as bytes; nothing is None."""
    kind, charset = _media(answer)
    if not answer.content:
        return None
    if is_json(kind):
        try:
            return parse(answer.content)
        except UsageError as error:
            raise FailedError(
                "result-invalid",
                f"{endpoint.name} returned what is no JSON: {error.message}",
                hint="The far side breaks its contract; report it there.",
                details={"path": "$"},
            ) from None
    if kind.startswith("text/"):
        try:
            return answer.content.decode(charset)
        except (UnicodeDecodeError, LookupError):
            return answer.content
    return answer.content


def _failure(endpoint: Endpoint, answer: Answer) -> FailedError:
    try:
        body = _value(endpoint, answer) if len(answer.content) <= _MAX_BODY else None
    except FailedError:
        body = None
    if body is None and answer.content:
        body = answer.content[:_MAX_BODY].decode("utf-8", "backslashreplace")
    details: dict[str, JsonValue] = {"status": answer.status, "body": body}
    if "retry-after" in answer.headers:
        details["retry_after"] = answer.headers["retry-after"]
    busy = answer.status in (408, 425, 429, 500, 502, 503, 504)
    hint = "call again later" if busy else "details.body holds what it said"
    message = f"{endpoint.name} answers with status {answer.status}"
    return FailedError("tool-failed", message, hint=hint, details=details, retryable=busy)


def _snapshot(contents: JsonValue) -> Snapshot:
    digest = hashlib.sha256(freeze(contents).data).hexdigest()
    basis = "SHA-256 of the description; each reply stands for the moment of its call"
    return Snapshot(identity=f"sha256:{digest}", basis=basis)
