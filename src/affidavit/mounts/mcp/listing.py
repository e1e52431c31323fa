"""The list of a server's tools, from which what is none of the protocol is taken out: one tool spoils no other.

The SDK reads a page of tools as a whole, and refuses all of it for one of them. So pages are sifted on their way to it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self, cast

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, methods
from pydantic import ValidationError

from affidavit.mounts.foreign import json_path

__all__ = ["Sieve"]

_LIST: Final = "tools/list"
_LONGEST: Final = 200

Incoming = SessionMessage | Exception


class Sieve:
    """Sifts what one connection receives.

    Attributes:
        left_out: why each tool that is no tool was left out, by its name or number.
        version: which version of the protocol was agreed on.
    """

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}
        self.version: Callable[[], str | None] = lambda: None
        self._passed: list[str] = []
        self._count = 0

    def begin(self) -> None:
        """The list is asked for anew."""
        self.left_out, self._passed, self._count = {}, [], 0

    def note_missing(self, tools: list[types.Tool]) -> None:
        """Note what the SDK itself left out of the whole list: it keeps no tool with odd headers."""
        listed = {tool.name for tool in tools}
        for name in self._passed:
            if name not in listed:
                self.left_out[name] = "its x-mcp-header is none of the protocol"

    @asynccontextmanager
    async def sifted(self, transport: AbstractAsyncContextManager[Any]) -> AsyncGenerator[Any]:
        """The same transport, sifted."""
        async with transport as (received, sent):
            yield _Sifted(received, self._sift), sent

    def _sift(self, item: Incoming) -> Incoming:
        if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCResponse):
            return item
        tools: object = item.message.result.get("tools")
        if not isinstance(tools, list) or "content" in item.message.result:
            return item
        kept = [tool for tool in cast("list[Any]", tools) if self._fits(tool)]
        result = {**item.message.result, "tools": kept}
        return SessionMessage(item.message.model_copy(update={"result": result}), metadata=item.metadata)

    def _fits(self, tool: Any) -> bool:
        self._count += 1
        name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
        called = name[:_LONGEST] if isinstance(name, str) else f"number {self._count}"
        try:
            self._validate(tool)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = [part for part in first["loc"] if part != "tools"][1:]
            self.left_out[called] = f"it is no tool of the protocol: {first['msg']}, at {json_path(place)}"
            return False
        if isinstance(name, str):
            self._passed.append(name)
        return True

    def _validate(self, tool: Any) -> None:
        page: dict[str, Any] = {
            "tools": [tool],
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
        types.ListToolsResult.model_validate({"tools": [tool]}, by_name=False)
        version = self.version()
        if version is not None and (_LIST, version) in methods.SERVER_RESULTS:
            methods.validate_server_result(_LIST, version, page)


class _Sifted:
    """A stream whose items pass a sieve."""

    def __init__(self, stream: Any, sift: Callable[[Incoming], Incoming]) -> None:
        self._stream = stream
        self._sift = sift

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        return self._sift(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        return self._sift(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
