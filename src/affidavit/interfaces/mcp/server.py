"""The protocol: the official SDK's server over standard input and output, and nothing that decides anything."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, redirect_stdout, suppress
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from affidavit import __version__
from affidavit.interfaces.mcp.conversation import Conversation, Settings
from affidavit.interfaces.mcp.reply import Reply
from affidavit.interfaces.mcp.tools import TOOLS, ToolSpec

__all__ = ["serve"]

_REPORT_SECONDS: Final = 0.2
_INSTRUCTIONS: Final = """\
Code mode over evidence: write short Python scripts against the typed namespaces of df and run them with `run`; each
call that a script makes becomes a record with an evidence id. Begin with `search`, look at one with `describe`, then
`run`. Large values are shown in part: `read` reaches the whole. Cite evidence ids for what you state. This is
session {session}."""


async def serve(settings: Settings) -> None:
    """Serve one client over standard input and output until it closes them.

    On SIGINT or SIGTERM running scripts are ended and settled, and the process exits with 128 and the signal's number.

    Raises:
        AffidavitError: the workspace does not open, or what the person asked for is malformed.
    """
    async with Conversation(settings) as conversation:
        serving = asyncio.create_task(_serve(conversation))
        stopping = asyncio.create_task(_signalled())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            stopping.cancel()
            await serving
            return
        await conversation.stop()
    # The SDK reads standard input in a thread, which nothing but the client can interrupt.
    sys.stderr.flush()
    os._exit(128 + stopping.result())


async def _serve(conversation: Conversation) -> None:
    server = _server(conversation)
    options = server.create_initialization_options()
    async with stdio_server() as (incoming, outgoing), _checked(incoming, outgoing) as checked:
        # The SDK turns the descriptor away from the wire; what Python buffered must not follow it back at the end.
        with redirect_stdout(sys.stderr):
            conversation.begin()
            await server.run(checked, outgoing, options)


async def _signalled() -> int:
    """Wait for a signal that ends the process; its number."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[int] = loop.create_future()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # there, a signal ends the process as it does any other
            loop.add_signal_handler(number, _note, received, int(number))
    return await received


def _note(received: asyncio.Future[int], number: int) -> None:
    if not received.done():
        received.set_result(number)


def _server(conversation: Conversation) -> Server[Any]:
    async def list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(spec, conversation) for spec in TOOLS])

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name not in {spec.name for spec in TOOLS}:
            names = ", ".join(spec.name for spec in TOOLS)
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}; there are {names}")
        return await _call(conversation, context, params.name, params.arguments or {})

    return Server(
        "affidavit",
        version=__version__,
        title="Affidavit",
        instructions=_INSTRUCTIONS.format(session=conversation.session_id),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tool(spec: ToolSpec, conversation: Conversation) -> Tool:
    return Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input_schema(),
        output_schema=dict(spec.output),
        annotations=ToolAnnotations(
            title=spec.title,
            read_only_hint=spec.reads_only,
            destructive_hint=not spec.reads_only and conversation.may_write(),
            idempotent_hint=spec.reads_only,
            open_world_hint=not spec.reads_only and conversation.reaches_outside(),
        ),
    )


async def _call(
    conversation: Conversation, context: ServerRequestContext[Any], tool: str, arguments: Mapping[str, Any]
) -> CallToolResult:
    """Answer one call.

    The SDK cancels a request by a scope that interrupts every later `await` too. A run that is cancelled must kill its
    sandbox, join its calls and write its settlement, so it is cancelled once and then waited for.
    """
    reporter = _Reporter(context)
    task = conversation.answer(tool, arguments, reporter.tell)
    reports = asyncio.create_task(reporter.report())
    try:
        reply = await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
    finally:
        reports.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([reports])
    return _result(reply)


def _result(reply: Reply) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)],
        structured_content=dict(reply.document),
        is_error=reply.is_error,
    )


class _Reporter:
    """Progress of one request: the newest words, at most a few times a second, to a client that asked for it."""

    def __init__(self, context: ServerRequestContext[Any]) -> None:
        self._context = context
        self._words = ""
        self._told = 0

    def tell(self, words: str) -> None:
        """Note what is going on."""
        self._words = words
        self._told += 1

    async def report(self) -> None:
        """Send what was noted, until cancelled."""
        sent = 0
        while True:
            if self._told > sent:
                sent = self._told
                await self._context.session.report_progress(sent, None, self._words)
            await asyncio.sleep(_REPORT_SECONDS)


@asynccontextmanager
async def _checked(incoming: Any, outgoing: Any) -> AsyncGenerator[Any]:
    """The messages of a client; what is no message is answered as JSON-RPC says, where the SDK would say nothing."""
    forward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def check() -> None:
        async with forward:
            async for item in incoming:
                if isinstance(item, Exception):
                    error = ErrorData(code=PARSE_ERROR, message="this line is not a JSON-RPC message")
                    await outgoing.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
                else:
                    await forward.send(item)

    async with anyio.create_task_group() as group:
        group.start_soon(check)
        yield messages
        group.cancel_scope.cancel()
