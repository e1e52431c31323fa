"""Requests to one granted host: bounded, paced, retried where that is safe, redirected nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2

from affidavit.errors import FailedError
from affidavit.mounts.logs import keep_discreet
from affidavit.mounts.openapi.writing import Written

__all__ = ["Answer", "Sender"]

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that ask for nothing but an answer (RFC 9110, 9.2.1); these alone are sent again."""

_BUSY: Final = frozenset({429, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_FIRST_WAIT: Final = 0.25
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Sender:
    """Sends to one host.

    Args:
        what: the mount's name, for messages.
        timeout: seconds that a call may take, its retries and waits included.
        retries: how often a safe request is sent again.
        rate: requests a second at most, or 0 for no bound.
        max_reply: bytes of a response.
    """

    def __init__(self, what: str, *, timeout: float, retries: int, rate: float, max_reply: int) -> None:
        self._what = what
        self._timeout = timeout
        self._retries = retries
        self._interval = 1 / rate if rate else 0.0
        self._max_reply = max_reply
        self._not_before = 0.0
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def send(self, method: str, base: str, written: Written, secret: Mapping[str, str]) -> Answer:
        """Send a request and read the response, whatever its status.

        Args:
            method: in capitals.
            base: URL of the server, granted by whoever mounted it.
            written: the parts of the request.
            secret: headers that hold credentials; they go to this host alone.

        Raises:
            FailedError: `tool-failed`, retryable where the host was not reached or time ran out;
                `value-too-large`.
        """
        url = base.rstrip("/") + written.path
        if written.query:
            url += ("&" if "?" in url else "?") + "&".join(written.query)
        headers = {**written.headers, **secret}
        if written.cookies:
            headers["Cookie"] = "; ".join([*written.cookies, *filter(None, [headers.get("Cookie")])])
        try:
            async with asyncio.timeout(self._timeout):
                return await self._persist(method, url, written, headers)
        except TimeoutError:
            raise FailedError(
                "tool-failed",
                f"{self._what} did not answer within {self._timeout:g} seconds",
                hint="mount with a larger timeout, or ask for less",
                details={"reason": "timed-out"},
                retryable=True,
            ) from None

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def _persist(self, method: str, url: str, written: Written, headers: Mapping[str, str]) -> Answer:
        left = self._retries if method in SAFE else 0
        wait = _FIRST_WAIT
        while True:
            await self._pace()
            try:
                answer = await self._follow(method, url, written, headers)
            except httpx2.TransportError as error:
                if not left:
                    raise self._unreached(method, error) from None
                pause = wait
            else:
                pause = max(self._told(answer), wait)
                if answer.status not in _BUSY or not left or pause > self._timeout:
                    return answer
            left -= 1
            wait *= 2
            await asyncio.sleep(pause)

    async def _pace(self) -> None:
        """Wait for the turn of the next request: as the rate has it, and as the host said."""
        now = time.monotonic()
        turn = max(now, self._not_before)
        if turn - now > self._timeout:
            raise FailedError(
                "tool-failed",
                f"{self._what} takes no more requests for {turn - now:.0f} seconds",
                hint="call again then",
                details={"reason": "rate-limited"},
                retryable=True,
            )
        self._not_before = turn + self._interval
        if turn > now:
            await asyncio.sleep(turn - now)

    def _told(self, answer: Answer) -> float:
        """How many seconds the host asks to wait; later requests wait for them as well."""
        seconds = _seconds(answer.headers.get("retry-after", ""))
        if not seconds and answer.headers.get("x-ratelimit-remaining", "").strip() == "0":
            seconds = _seconds(answer.headers.get("x-ratelimit-reset", ""))
        if not seconds and answer.headers.get("ratelimit-remaining", "").strip() == "0":
            seconds = _seconds(answer.headers.get("ratelimit-reset", ""))
        if seconds:
            self._not_before = max(self._not_before, time.monotonic() + seconds)
        return seconds

    async def _follow(self, method: str, url: str, written: Written, headers: Mapping[str, str]) -> Answer:
        answer = await self._once(method, url, written, headers)
        for _ in range(_MOST_REDIRECTS):
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or method not in SAFE or location is None:
                return answer
            target = httpx2.URL(url).join(location)
            if not _within(httpx2.URL(url), target):
                raise FailedError(
                    "tool-failed",
                    f"{self._what} redirects to {target.host}, which nobody granted",
                    hint="mount with the option server=URL to grant another host",
                    details={"status": answer.status, "reason": "redirect"},
                )
            url = str(target)
            answer = await self._once(method, url, written, headers)
        raise FailedError(
            "tool-failed", f"{self._what} redirects without end", details={"reason": "redirect"}
        )

    async def _once(self, method: str, url: str, written: Written, headers: Mapping[str, str]) -> Answer:
        body: dict[str, Any] = {}
        if written.files is not None:
            body["files"] = written.files
        elif written.content is not None:
            body["content"] = written.content
        async with (
            self._places,
            self._opened().stream(method, url, headers=dict(headers), **body) as response,
        ):
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > self._max_reply:
                    raise FailedError(
                        "value-too-large",
                        f"{self._what} sent more than {self._max_reply} bytes",
                        hint="ask for less, or mount with a larger max_reply",
                    )
            answered = {name.lower(): value for name, value in response.headers.items()}
            return Answer(status=response.status_code, headers=answered, content=bytes(content))

    def _opened(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # no proxies and no credentials of the environment: what was granted is the host itself
            self._client = httpx2.AsyncClient(timeout=None, follow_redirects=False, trust_env=False)
            self._loop = loop
            keep_discreet()
        return self._client

    def _unreached(self, method: str, error: httpx2.TransportError) -> FailedError:
        effect = "" if method in SAFE else "; whether the call had an effect is not known"
        return FailedError(
            "tool-failed",
            f"{self._what} cannot be reached: {type(error).__name__}: {error}",
            hint=f"call again later{effect}",
            details={"reason": "not-reached"},
            retryable=True,
        )


def _within(url: httpx2.URL, target: httpx2.URL) -> bool:
    """Whether a redirect stays where it was granted: the same origin, or its https."""
    if target.userinfo:
        return False
    if (url.scheme, url.host, url.port) == (target.scheme, target.host, target.port):
        return True
    upgrade = url.scheme == "http" and target.scheme == "https" and url.port is None and target.port is None
    return upgrade and url.host == target.host


def _seconds(text: str) -> float:
    """Seconds from now: a number of them, a Unix time, or a date; 0 for anything else."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        try:
            number = parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError):
            return 0.0
    if number > 1e9:
        number -= time.time()
    return number if 0 < number < 1e9 else 0.0
