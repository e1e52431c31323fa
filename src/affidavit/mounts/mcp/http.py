"""A server behind a URL, over streamable HTTP: the SDK's transport on a client that bounds what it takes."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, cast

import httpx2

__all__ = ["MAX_REPLY", "http_client"]

MAX_REPLY: Final = 64 << 20
"""Bytes of one reply, and of one event."""

_CONNECT_SECONDS: Final = 30.0


def http_client(headers: Callable[[], Mapping[str, str]]) -> httpx2.AsyncClient:
    """A client that adds headers to each request as they are then, and refuses what is too large or no UTF-8.

    Args:
        headers: called for each request, so that secrets are read anew each time.
    """

    async def add(request: httpx2.Request) -> None:
        request.headers.update({"accept-encoding": "identity", **headers()})

    return httpx2.AsyncClient(
        transport=_Bounded(),
        # how long a reply may take is the call's own time-out
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
        event_hooks={"request": [add]},
        trust_env=False,
    )


class _Bounded(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        stream = cast("httpx2.AsyncByteStream", response.stream)
        packed = response.headers.get("content-encoding", "identity") != "identity"
        response.stream = _Checked(stream, events=kind == "text/event-stream", packed=packed)
        return response


class _Checked(httpx2.AsyncByteStream):
    """A body that ends with an error where it is no UTF-8 or too long; streams of events have no end.

    Nobody asked for a packed one, and what is packed small may be of any size.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, *, events: bool, packed: bool) -> None:
        self._stream = stream
        self._events = events
        self._packed = packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise self._broken("it is packed, which nobody asked for")
        decoder = codecs.getincrementaldecoder("utf-8")()
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > MAX_REPLY and not self._events:
                raise httpx2.StreamError(f"it has more than {MAX_REPLY} bytes")
            try:
                decoder.decode(part)
            except UnicodeDecodeError:
                raise self._broken(f"it is not UTF-8 before byte {size}") from None
            yield part

    def _broken(self, problem: str) -> Exception:
        """What the SDK makes an error of the one request, in a stream of events and in a document."""
        return (httpx2.SSEError if self._events else httpx2.StreamError)(problem)

    async def aclose(self) -> None:
        await self._stream.aclose()
