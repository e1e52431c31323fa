"""A server as a child process that speaks JSON-RPC on its standard streams, one message a line.

The SDK's own transport ends the connection at a byte that is not UTF-8, leaves the caller of a reply that it cannot
read waiting, and holds a line of any length; here each of these is an error of the one call that it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

__all__ = ["MAX_MESSAGE", "Process", "stdio_transport"]

MAX_MESSAGE: Final = 64 << 20
"""Bytes of one message; a server that sends a longer one is disconnected."""

_CHUNK: Final = 1 << 16
_TAIL: Final = 1 << 14
_LAST_WORDS: Final = 500
_NOISE: Final = 200
_GRACE_SECONDS: Final = 2.0
_ID: Final = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*[,}]')
_LAST_ID: Final = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*\}\s*\Z')
_log = logging.getLogger(__name__)

Incoming = SessionMessage | Exception


class Process:
    """A server that was started, and the last words that it wrote to its standard error.

    Attributes:
        ended: set when the server can say nothing more.
    """

    def __init__(self, child: asyncio.subprocess.Process, shown: Callable[[str], str]) -> None:
        self.child = child
        self._shown = shown
        self.ended = asyncio.Event()
        self._tail = b""

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, in one line."""
        return self._shown(" ".join(self._tail.decode("utf-8", "replace").split()))[-_LAST_WORDS:]

    async def listen(self) -> None:
        """Read standard error to its end, so that the server never waits for a reader of it."""
        assert self.child.stderr is not None
        while data := await self.child.stderr.read(_CHUNK):
            self._tail = (self._tail + data)[-_TAIL:]

    async def stop(self) -> None:
        """End it as the specification has it: close its input, wait, then signal its process group."""
        with contextlib.suppress(OSError, RuntimeError):
            assert self.child.stdin is not None
            self.child.stdin.close()
        for sign in (None, signal.SIGTERM, signal.SIGKILL):
            if sign is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.child.pid, sign)
            try:
                await asyncio.wait_for(asyncio.shield(self._exit()), _GRACE_SECONDS)
            except TimeoutError:
                continue
            break
        # whatever the server started and left behind has its process group
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)

    async def _exit(self) -> None:
        # not `child.wait()`: that also waits for streams which a grandchild may hold
        while self.child.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, shown: Callable[[str], str]
) -> AsyncGenerator[
    tuple[Process, MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]
]:
    """Start a server and connect to it; it is ended on leaving.

    Args:
        command: the program and its arguments.
        environment: all that it is given.
        folder: where it is started.
        shown: makes of a text what may be logged.

    Raises:
        OSError: it cannot be started.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    )
    process = Process(child, shown)
    incoming, received = anyio.create_memory_object_stream[Incoming](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, incoming, shown)),
        asyncio.create_task(_write(process, outgoing, incoming)),
        asyncio.create_task(process.listen()),
    ]
    try:
        yield process, received, sent
    finally:
        for stream in (received, sent):
            stream.close()
        await asyncio.shield(asyncio.ensure_future(process.stop()))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (incoming, outgoing):
            stream.close()
        # without this, a grandchild that holds a pipe keeps the transport open until it is collected
        cast("Any", child)._transport.close()


async def _read(
    process: Process, incoming: MemoryObjectSendStream[Incoming], shown: Callable[[str], str]
) -> None:
    assert process.child.stdout is not None
    pieces: list[bytes] = []
    size = 0
    try:
        async with incoming:
            while data := await process.child.stdout.read(_CHUNK):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    message = _message(b"".join([*pieces, line]), shown)
                    pieces, size = [], 0
                    if message is not None:
                        await incoming.send(message)
                pieces.append(rest)
                size += len(rest)
                if size > MAX_MESSAGE:
                    _log.warning("a server sent a message of more than %d bytes", MAX_MESSAGE)
                    return
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # nobody listens any more
    finally:
        process.ended.set()


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[Incoming],
) -> None:
    assert process.child.stdin is not None
    try:
        async with outgoing:
            async for message in outgoing:
                process.child.stdin.write(_written(message) + b"\n")
                await process.child.stdin.drain()
    except (OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        # it reads no more, so it will answer nothing more
        process.ended.set()
        incoming.close()


def _written(message: SessionMessage) -> bytes:
    try:
        return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # half a surrogate pair is no UTF-8, but it can be escaped
        return json.dumps(message.message.model_dump(by_alias=True, exclude_unset=True)).encode()


def _message(line: bytes, shown: Callable[[str], str]) -> SessionMessage | None:
    """A line as a message; what is no message is noise, unless it is the reply to something that was asked."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return _unreadable(line, error, shown)


def _unreadable(line: bytes, error: ValueError, shown: Callable[[str], str]) -> SessionMessage | None:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as fault:
        problem = f"it is not UTF-8 at byte {fault.start}"
    else:
        try:
            # Half a surrogate pair is no Unicode text, but it is JSON.
            found = jsonrpc_message_adapter.validate_python(json.loads(text), by_name=False)
            return SessionMessage(found)
        except (ValueError, RecursionError):
            problem = f"it is no JSON-RPC message ({str(error).splitlines()[0][:200]})"
    match = _ID.match(line) or _LAST_ID.search(line[-200:])
    if match is None:
        noise = shown(line[:_NOISE].decode("utf-8", "replace"))
        _log.info("a line that is no message was ignored: %r", noise)
        return None
    reply = ErrorData(code=PARSE_ERROR, message=f"the reply cannot be read: {problem}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=reply))
