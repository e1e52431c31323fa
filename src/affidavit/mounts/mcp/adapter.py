"""The adapter: from a URI to tools with schemas, from their schemas to operations."""

from __future__ import annotations

import hashlib
import logging
import shlex
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic import Field

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.canonical import freeze
from affidavit.evidence.record import JsonValue, Limitation, Producer
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.mounts.foreign import label, plain_arguments
from affidavit.mounts.options import Options, read_options
from affidavit.mounts.secrets import Secrets, expand, refuse_credentials, refuse_userinfo
from affidavit.namespaces.names import identifiers, readable
from affidavit.namespaces.operation import Effect, Namespace, Operation
from affidavit.namespaces.schema import operation_from_schema

# The SDK takes half a second to load: it is imported at the first connection.
if TYPE_CHECKING:
    import mcp_types as types

    from affidavit.mounts.mcp.connection import Connection, Link

__all__ = ["McpAdapter"]

STDIO: Final = "mcp+stdio:"
HTTP: Final = "mcp+"
_SCHEMES: Final = (STDIO, "mcp+http:", "mcp+https:")
_log = logging.getLogger(__name__)


class McpOptions(Options):
    """What stands beside the URI.

    Attributes:
        env: names of environment variables that a started server is given, beside PATH, HOME and the like.
        headers: headers of each request, where `env:NAME` stands for a variable's value.
        timeout: seconds that a call may be silent.
        connect_timeout: seconds that connecting may take.
        output_schemas: whether results are held against the schemas that the server declares for them.
        mode: how the version of the protocol is agreed on: `auto` asks a server of either era.
    """

    env: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float = Field(default=120.0, gt=0, le=3600)
    connect_timeout: float = Field(default=30.0, gt=0, le=600)
    output_schemas: bool = True
    mode: Literal["auto", "legacy"] = "auto"


class McpAdapter:
    """`mcp+stdio:COMMAND` starts a server; `mcp+http://HOST/PATH` and `mcp+https://` speak to one that runs."""

    name = "mcp"
    version = "1"
    place: Literal["db", "tool"] = "tool"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has one of the schemes."""
        return uri.startswith(_SCHEMES) and not head

    async def describe(self, source: Source) -> Description:
        """Connect, list every tool, and let go of the server again."""
        connection = _connection(source)
        try:
            client, tools, left_out = await connection.tools()
            info = client.server_info
            server = {
                "name": readable(info.name) if info else "anonymous",
                "version": readable(info.version) if info else "",
            }
            instructions = client.instructions
        finally:
            await connection.close()
        contents: dict[str, JsonValue] = {
            "server": server,
            "instructions": readable(instructions or ""),
            "tools": [_tool(tool) for tool in sorted(tools, key=lambda tool: tool.name)],
        }
        made, limitations = _operations(contents, _options(source), connection)
        limitations += [_left_out(name, "schema-unsupported", why) for name, why in left_out.items()]
        return Description(
            contents=contents,
            summary=f"{server['name']} {server['version']}: {len(made)} tools".replace("  ", " "),
            snapshot=_snapshot(contents),
            limitations=tuple(limitations),
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the operations; the server is connected at the first call."""
        return _McpMount(source, contents)


class _McpMount:
    def __init__(self, source: Source, contents: JsonValue) -> None:
        self._source = source
        self._connection = _connection(source)
        described = cast("dict[str, JsonValue]", contents)
        made, _ = _operations(described, _options(source), self._connection)
        server = described["server"]
        doc = f"MCP server {server['name']} {server['version']}.\n\n{described['instructions']}".strip()
        self._namespace = Namespace(name=source.name, doc=doc, operations=made)

    @property
    def namespace(self) -> Namespace:
        return self._namespace

    async def snapshot(self) -> Snapshot:
        return (await McpAdapter().describe(self._source)).snapshot

    async def close(self) -> None:
        await self._connection.close()


def _options(source: Source) -> McpOptions:
    options = read_options(McpOptions, source)
    for name, value in options.headers.items():
        refuse_credentials("header", name, value)
    return options


def _connection(source: Source) -> Connection:
    try:
        from affidavit.mounts.mcp.connection import Connection
    except ModuleNotFoundError as error:
        raise FailedError(
            "extra-missing",
            f"MCP needs a package that is not here: {error.name}",
            hint="install affidavit[mcp]",
        ) from error
    options = _options(source)
    if source.uri.startswith(STDIO):
        words = _words(source.uri.removeprefix(STDIO))

        @asynccontextmanager
        async def connect() -> AsyncGenerator[Link]:
            async with _started(source, options, words) as link:
                yield link
    else:
        url = source.uri.removeprefix(HTTP)
        refuse_userinfo(url)

        @asynccontextmanager
        async def connect() -> AsyncGenerator[Link]:
            async with _reached(source, options, url) as link:
                yield link

    return Connection(
        source.name,
        connect,
        seconds=options.timeout,
        connect_seconds=options.connect_timeout,
        is_stdio=source.uri.startswith(STDIO),
    )


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError("mount-invalid", f"the command cannot be split into words: {error}") from None
    if not words:
        raise UsageError("mount-invalid", "mcp+stdio: names no command", hint="mcp+stdio:python server.py")
    return words


@asynccontextmanager
async def _started(source: Source, options: McpOptions, words: list[str]) -> AsyncGenerator[Link]:
    from mcp.client.stdio import get_default_environment

    from affidavit.mounts.mcp.stdio import stdio_transport

    given = {name: source.secret(name) for name in options.env}
    secrets = Secrets(given)
    for name in given:
        secrets.get(name)
    environment = get_default_environment() | given
    async with stdio_transport(
        words, environment=environment, folder=source.folder, shown=secrets.excerpt
    ) as opened:
        process, received, sent = opened

        @asynccontextmanager
        async def streams() -> AsyncGenerator[Any]:
            yield received, sent

        yield _link(
            source, options, streams(), ended=process.ended.is_set, last_words=lambda: process.last_words
        )


@asynccontextmanager
async def _reached(source: Source, options: McpOptions, url: str) -> AsyncGenerator[Link]:
    from mcp.client.streamable_http import streamable_http_client

    from affidavit.mounts.mcp.http import MAX_REPLY, http_client

    def headers() -> dict[str, str]:
        return {name: expand(value, source.secret) for name, value in options.headers.items()}

    headers()  # what is not set is told as that, and not as a request that failed
    async with http_client(headers) as http:
        transport = streamable_http_client(url, http_client=http, max_sse_event_size=MAX_REPLY)
        yield _link(source, options, transport)


def _link(source: Source, options: McpOptions, transport: Any, **process: Any) -> Link:
    import mcp_types as types
    from mcp.client.client import Client

    from affidavit.mounts.mcp.connection import Link
    from affidavit.mounts.mcp.listing import Sieve

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            source.tell("the server offers other tools now; mount it again to see them")

    sieve = Sieve()
    info = types.Implementation(name="affidavit", version=McpAdapter.version)
    client = Client(
        sieve.sifted(transport), message_handler=hear, client_info=info, mode=options.mode, cache=None
    )
    sieve.version = lambda: client.session.protocol_version
    return Link(client=client, sieve=sieve, **process)


def _tool(tool: types.Tool) -> dict[str, JsonValue]:
    hints = tool.annotations
    return {
        "name": tool.name,
        "description": tool.description or "",
        "input": tool.input_schema,
        "output": tool.output_schema,
        "read_only": hints.read_only_hint if hints else None,
        "destructive": hints.destructive_hint if hints else None,
    }


def _effect(tool: Mapping[str, JsonValue]) -> Effect:
    """What calling a tool may do, as its server has it: without proof, so the stronger word wins."""
    if tool["destructive"] is True:
        return "write"
    return "read" if tool["read_only"] is True else "external"


def _operations(
    contents: Mapping[str, JsonValue], options: McpOptions, connection: Connection
) -> tuple[dict[str, Operation], list[Limitation]]:
    server = cast("dict[str, str]", contents["server"])
    tools = cast("list[dict[str, JsonValue]]", contents["tools"])
    prefix = f"mcp.{label(server['name'])}"
    producer = Producer(name=prefix, version=f"{McpAdapter.version}/{server['version'] or 'unknown'}")
    names = identifiers(_unique(tools), fallback="tool")
    made: dict[str, Operation] = {}
    limitations: list[Limitation] = []
    for tool in tools:
        original = cast("str", tool["name"])
        name = names[original]
        if name in made:
            limitations.append(_left_out(original, "mount-invalid", "two tools have this name"))
            continue
        try:
            made[name] = _operation(name, tool, options, connection, prefix, producer)
        except AffidavitError as error:
            limitations.append(_left_out(original, error.code, error.message))
        except Exception as error:  # a schema is foreign text: one that breaks its reader costs that tool
            limitations.append(_left_out(original, "schema-unsupported", f"{type(error).__name__}: {error}"))
    return made, limitations


def _operation(
    name: str,
    tool: Mapping[str, JsonValue],
    options: McpOptions,
    connection: Connection,
    prefix: str,
    producer: Producer,
) -> Operation:
    original = cast("str", tool["name"])
    output = tool["output"] if options.output_schemas else None

    async def call(arguments: dict[str, Any]) -> Any:
        from affidavit.mounts.mcp.replies import reply_of

        given = plain_arguments(arguments, what=original, torn=connection.is_stdio)
        result = await connection.call(original, given)
        return reply_of(original, result, structured=output is not None)

    return operation_from_schema(
        name,
        tool["input"],
        output,
        call,
        contract=f"{prefix}.{label(original)}/{McpAdapter.version}",
        effect=_effect(tool),
        producer=producer,
        doc=cast("str", tool["description"]),
    )


def _unique(tools: Iterable[Mapping[str, JsonValue]]) -> list[str]:
    return list(dict.fromkeys(cast("str", tool["name"]) for tool in tools))


def _left_out(tool: str, code: str, why: str) -> Limitation:
    return Limitation(code=code, place=readable(f"tool {tool}"), message=readable(why))


def _snapshot(contents: JsonValue) -> Snapshot:
    digest = hashlib.sha256(freeze(contents).data).hexdigest()
    return Snapshot(
        identity=f"sha256:{digest}",
        basis="SHA-256 of the server's name, version and tools; each reply stands for the moment of its call",
    )
