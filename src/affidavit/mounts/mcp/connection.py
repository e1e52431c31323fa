"""One connection to a server: made at the first call, shared by all, made anew after it ended.

The SDK's client lives in a task of its own, for what it opens must be closed by the task that opened it. A call whose
connection ends fails as retryable; nothing is sent twice. Replies are matched by id, so a late one answers nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from affidavit.errors import AffidavitError, FailedError
from affidavit.mounts.foreign import json_path
from affidavit.mounts.logs import keep_discreet
from affidavit.mounts.mcp.listing import Sieve

__all__ = ["Connect", "Connection", "Link"]

_CLOSED: Final = types.CONNECTION_CLOSED
# What the SDK says where an HTTP server answered with an error of HTTP alone: 404 for a session that it does not
# know, and anything else. Servers that lost a session answer with either.
_GONE: Final = frozenset({"Session terminated", "Server returned an error response"})
_MAX_WORDS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way to a server that is open.

    Attributes:
        client: not entered yet.
        sieve: what its list of tools passes.
        ended: whether the server can say nothing more.
        last_words: the end of what it wrote to its standard error.
    """

    client: Client
    sieve: Sieve
    ended: Callable[[], bool] = field(default=lambda: False)
    last_words: Callable[[], str] = field(default=lambda: "")


Connect = Callable[[], AbstractAsyncContextManager[Link]]


class Connection:
    """Calls tools of one server.

    Args:
        what: the mount's name, for messages.
        connect: opens a way to the server.
        seconds: how long a call may be silent: a server that reports progress is given the time again.
        connect_seconds: how long connecting may take.
        is_stdio: whether messages are lines of ours, which can say more than those of the SDK.
    """

    def __init__(
        self, what: str, connect: Connect, *, seconds: float, connect_seconds: float, is_stdio: bool
    ) -> None:
        self.is_stdio = is_stdio
        self._what = what
        self._connect = connect
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        self._live: _Live | None = None
        self._closed = False
        keep_discreet()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool. A caller that is cancelled, or waits too long, cancels the call at the server.

        Raises:
            FailedError: `tool-failed`, retryable where the connection ended or time ran out; `result-invalid` for a
                reply that cannot be read; `mount-failed` when the server cannot be reached.
        """
        live = await self._connected()
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds) as limit:

                async def heard(progress: float, total: float | None, message: str | None) -> None:
                    del progress, total, message
                    limit.reschedule(loop.time() + self._seconds)

                return await live.client.session.send_request(
                    types.CallToolRequest(params=params), types.CallToolResult, progress_callback=heard
                )
        except TimeoutError:
            raise FailedError(
                "tool-failed",
                f"{tool} did not answer within {self._seconds:g} seconds, and was cancelled",
                hint="mount with a larger timeout, or ask for less",
                details={"reason": "timed-out"},
                retryable=True,
            ) from None
        except MCPError as error:
            raise self._failure(tool, live, error) from None
        except ValidationError as error:
            raise _unreadable(tool, error) from None

    async def tools(self) -> tuple[Client, list[types.Tool], dict[str, str]]:
        """The client, every tool that the server lists, and why others are left out, by their names.

        Raises:
            FailedError: `mount-failed`.
        """
        live = await self._connected()
        live.sieve.begin()
        found: list[types.Tool] = []
        cursors = set[str | None]()
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._seconds):
                # an empty cursor is a cursor; one that comes again would never end
                while cursor not in cursors:
                    cursors.add(cursor)
                    page = await live.client.list_tools(cursor=cursor)
                    found.extend(page.tools)
                    if page.next_cursor is None:
                        live.sieve.note_missing(found)
                        return live.client, found, live.sieve.left_out
                    cursor = page.next_cursor
        except TimeoutError:
            raise self._unreachable("it did not list its tools in time") from None
        except (MCPError, ValidationError) as error:
            raise self._unreachable(f"its list of tools cannot be read: {_first_line(error)}") from None
        raise self._unreachable("its list of tools has no end")

    async def close(self) -> None:
        """End the connection; calls under way fail."""
        self._closed = True
        live, self._live = self._live, None
        if live is not None and live.is_of_this_loop():
            await live.close()

    async def _connected(self) -> _Live:
        if self._closed:
            raise self._unreachable("the mount is closed")
        live = self._live
        if live is None or not live.is_usable():
            live = self._live = _Live(self._connect)
        try:
            async with asyncio.timeout(self._connect_seconds):
                await asyncio.shield(live.ready)
        except TimeoutError:
            await self._drop(live)
            raise self._unreachable(f"no connection within {self._connect_seconds:g} seconds", live) from None
        except asyncio.CancelledError:
            raise
        except AffidavitError:
            await self._drop(live)
            raise
        except Exception as error:  # whatever the SDK, a socket or a process raises
            await self._drop(live)
            raise self._unreachable(_first_line(error), live) from None
        return live

    async def _drop(self, live: _Live) -> None:
        if self._live is live:
            self._live = None
        await live.close()

    def _failure(self, tool: str, live: _Live, error: MCPError) -> FailedError:
        code, words = error.error.code, error.error.message[:_MAX_WORDS]
        if code == _CLOSED or words in _GONE:
            if self._live is live and not words.startswith("SSE"):
                self._live = None
                live.leave()
            return FailedError(
                "tool-failed",
                f"the connection to {self._what} ended in the call of {tool}: {words}{live.last_words()}",
                hint="call again: it is connected anew; whether the call had an effect is not known",
                details={"reason": "connection-ended"},
                retryable=True,
            )
        if code == types.PARSE_ERROR:
            return _unreadable(tool, words)
        details: dict[str, Any] = {"code": code, "text": words}
        return FailedError("tool-failed", f"{tool} was refused by {self._what}: {words}", details=details)

    def _unreachable(self, why: str, live: _Live | None = None) -> FailedError:
        words = live.last_words() if live is not None else ""
        return FailedError(
            "mount-failed",
            f"{self._what} does not answer: {why}{words}",
            hint="see that the server starts by itself with this command or URL",
            retryable=True,
        )


class _Live:
    """A connection that is being made or is there, and the task that it lives in."""

    def __init__(self, connect: Connect) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._leaving = asyncio.Event()
        self._link: Link | None = None
        self._task = asyncio.create_task(self._live(connect))

    @property
    def client(self) -> Client:
        assert self._link is not None
        return self._link.client

    @property
    def sieve(self) -> Sieve:
        assert self._link is not None
        return self._link.sieve

    def is_of_this_loop(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    def is_usable(self) -> bool:
        ended = self._link is not None and self._link.ended()
        return self.is_of_this_loop() and not (ended or self._task.done() or self._leaving.is_set())

    def last_words(self) -> str:
        words = self._link.last_words() if self._link is not None else ""
        return f" (its last words: {words})" if words else ""

    def leave(self) -> None:
        """Let go of it in its own time."""
        self._leaving.set()

    async def close(self) -> None:
        """Let go of it and wait until that is done."""
        self._leaving.set()
        if not self.ready.done():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _live(self, connect: Connect) -> None:
        try:
            async with connect() as link:
                self._link = link
                async with link.client:
                    if not self.ready.done():
                        self.ready.set_result(None)
                    await self._leaving.wait()
        except BaseException as error:
            if not self.ready.done():
                self.ready.set_exception(_cause(error))
                self.ready.exception()  # whoever waits gets it; nobody need wait
            if not isinstance(error, (Exception, asyncio.CancelledError)):
                raise


def _cause(error: BaseException) -> Exception:
    """The first thing that went wrong inside groups of tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, asyncio.CancelledError):
        return ConnectionError("connecting was given up")
    return error if isinstance(error, Exception) else ConnectionError(type(error).__name__)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _breach(error)
    with contextlib.suppress(IndexError):
        return f"{type(error).__name__}: {str(error).splitlines()[0][:500]}"
    return type(error).__name__


def _breach(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{first['msg']}, at {json_path(first['loc'])}"


def _unreadable(tool: str, error: ValidationError | str) -> FailedError:
    words = f"the reply is none of the protocol: {_breach(error)}" if isinstance(error, Exception) else error
    return FailedError(
        "result-invalid",
        f"{tool}: {words}",
        hint="The far side breaks the protocol; report it there.",
        details={"path": "$"},
    )
