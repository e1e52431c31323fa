"""`df` as a script sees it: names that lead to operations, and calls that travel to the host.

An operation is an async function: calling it binds the arguments and remembers the call site, and nothing is sent
before it is awaited. What was called and never awaited is found here at the end.
"""

from __future__ import annotations

import _thread
import asyncio
import difflib
import functools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from json import JSONDecoder, JSONEncoder
from types import CodeType, FrameType
from typing import Any, Final, NoReturn, cast

from affidavit.errors import AffidavitError
from affidavit.evidence.values import decode, encode, soften
from affidavit.runtime.engines import kit
from affidavit.runtime.engines.cpython.guest.channel import Channel, Loop, Settled
from affidavit.runtime.engines.cpython.guest.clock import Clock
from affidavit.runtime.engines.cpython.guest.structs import awaitable, struct
from affidavit.runtime.engines.cpython.wire import CALL

__all__ = ["SCRIPT", "Bridge", "Error", "Names", "to_json", "value_of"]

SCRIPT: Final = "<script>"
"""The file name of the script's code."""

_TAG: Final = b'"$'
_SYNC: Final = "sync"

to_json: Final = JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
_from_json: Final = JSONDecoder().decode


def value_of(body: bytes) -> Any:
    """The value that encoded JSON holds."""
    value: Any = _from_json(body.decode())
    return decode(value) if _TAG in body else value


class Error(Exception):
    """A call that failed.

    Attributes:
        code: what kind of failure, from a closed vocabulary.
        message: what happened and where.
        hint: the next step, or empty.
        retryable: whether the same call may succeed later, unchanged.
        details: JSON values for programs.
    """

    __module__ = "df"

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.details = dict(details or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...]]:
        return Error, (self.code, self.message, self.hint, self.retryable, self.details)


class Site:
    """A place in the script that calls an operation."""

    __slots__ = ("calls", "codes", "column", "created", "line", "path", "started")

    def __init__(self, path: str, line: int, column: int) -> None:
        self.path = path
        # Keeps the ids of code objects, which the table of sites goes by, from being reused.
        self.codes: list[CodeType] = []
        self.line = line
        self.column = column
        self.created = 0  # operations that were called here
        self.started = 0  # those that were awaited
        self.calls = 0  # calls that were numbered here

    def number(self) -> int:
        """The iteration of the next call from here."""
        self.calls += 1
        return self.calls - 1


class Bridge:
    """Carries calls from the script to the host and back."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        self.argument_bytes = 1 << 20
        self.run_again: Callable[[int, str, dict[str, Any]], Coroutine[Any, Any, Any]]
        self.run_helpers: Callable[[str, str], dict[str, Any]]
        self._helpers: dict[str, dict[str, Any]] = {}
        self._channel = channel
        self._clock = clock
        self._sites: dict[tuple[str, int, int], Site] = {}
        self._places: dict[tuple[str, int, int], Site] = {}

    def helper(self, path: str, name: str, code: str) -> Callable[..., Any]:
        """A helper; its module is run when one of it is first mentioned."""
        if code not in self._helpers:
            self._helpers[code] = self.run_helpers(f"<{path}>", code)
        return self._helpers[code][name]

    def unawaited(self) -> list[tuple[str, int]]:
        """Path and line of every operation that was called more often than it was started."""
        return [(site.path, site.line) for site in self._places.values() if site.started < site.created]

    def site(self, path: str, frame: FrameType | None) -> Site:
        """The call site: the innermost frame of the script."""
        while frame is not None and frame.f_code.co_filename != SCRIPT:
            frame = frame.f_back
        key = (path, id(frame.f_code), frame.f_lasti) if frame else (path, 0, 0)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = self._located(path, frame)
        return found

    def _located(self, path: str, frame: FrameType | None) -> Site:
        """The site of a place; code that stands there twice, as that of `finally` does, is one site."""
        line, column = _place(frame) if frame else (0, 0)
        site = self._places.setdefault((path, line, column), Site(path, line, column))
        if frame is not None:
            site.codes.append(frame.f_code)
        return site

    async def call(
        self, site: Site, iteration: int, arguments: dict[str, Any], wrap: bool, starts: int = 1
    ) -> Any:
        """Send one call and wait for its answer. `starts` is how many called operations this begins."""
        site.started += starts
        number = self._post(site, iteration, arguments)
        loop = asyncio.get_running_loop()
        if isinstance(loop, Loop) and loop.only_waits_here():
            return self._open(self._channel.wait_for(number), wrap)
        future: asyncio.Future[Settled] = loop.create_future()

        def deliver(settled: Settled) -> None:
            if not future.done():
                future.set_result(settled)

        self._channel.waiting[number] = deliver
        return self._open(await future, wrap)

    def call_now(self, site: Site, iteration: int, arguments: dict[str, Any], wrap: bool) -> Any:
        """Send one call and block until its answer is there."""
        site.started += 1
        number = self._post(site, iteration, arguments)
        return self._open(self._channel.wait_for(number), wrap)

    def _post(self, site: Site, iteration: int, arguments: dict[str, Any]) -> int:
        channel = self._channel
        if _thread.get_ident() != channel.thread:
            raise RuntimeError(
                "df can be used only in the script's own thread: await it there, pass the result on"
            )
        try:
            # An answer's value is written for people, as the script's own value is.
            body = to_json(encode(soften(arguments)[0] if site.path == "answer" else arguments))
        except AffidavitError as error:
            raise Error(
                error.code, f"argument of df.{site.path}: {error.message}", error.hint, False, error.details
            ) from None
        data = body.encode()
        if len(data) > self.argument_bytes:
            raise Error(
                "budget-exceeded",
                f"the arguments of df.{site.path} are {len(data)} bytes, the limit is {self.argument_bytes}",
                "pass less at once, or in several calls",
            )
        number = channel.number()
        head = f"[{number},{to_json(site.path)},{site.line},{site.column},{iteration},"
        channel.post(CALL, head.encode() + data + b"]")
        return number

    def _open(self, settled: Settled, wrap: bool) -> Any:
        returned, completed, body = settled
        self._clock.advance_to(completed)
        if not returned:
            told: Any = _from_json(body.decode())
            raise Error(
                told["code"], told["message"], told["hint"], told["retryable"], decode(told["details"])
            )
        value = value_of(body)
        return struct(value) if wrap and isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]


def _place(frame: FrameType) -> tuple[int, int]:
    """Line and column of what a frame is executing."""
    column = 0
    for at, position in enumerate(frame.f_code.co_positions()):
        if at * 2 == frame.f_lasti:
            column = position[2] or 0
            break
    return frame.f_lineno or 0, column


class Names:
    """A namespace below `df`. Its names are attributes; nothing can be assigned to it."""

    __slots__ = ("_bridge", "_made", "_path", "_tree")

    def __init__(self, bridge: Bridge, path: str, tree: Callable[[], Mapping[str, Any]]) -> None:
        put = object.__setattr__
        put(self, "_bridge", bridge)
        put(self, "_path", path)
        put(self, "_tree", tree)
        put(self, "_made", {})

    def __getattr__(self, name: str) -> Any:
        made = cast("dict[str, Any]", self._made)
        if name in made:
            return made[name]
        tree = cast("Mapping[str, Any]", self._tree())
        if name not in tree:
            _unknown(self._path, name, list(tree))
        made[name] = _child(self._bridge, f"{self._path}.{name}", name, tree[name])
        return made[name]

    def __dir__(self) -> list[str]:
        return sorted([*self._tree(), *(["Error", "kit"] if self._path == "df" else [])])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self._path}.{name} cannot be assigned: {self._path} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._path}.{name} cannot be deleted: {self._path} is read-only")

    def __repr__(self) -> str:
        return f"<{self._path}: {', '.join(dir(self))}>"


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose failures are those of scripts."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except AffidavitError as error:
            raise Error(error.code, error.message, error.hint, False, error.details) from None

    return call


class Kit:
    """`df.kit`: helpers for untidy replies."""

    __slots__ = ()

    get = staticmethod(_raising(kit.get))
    rows_of = staticmethod(_raising(kit.rows_of))
    to_number = staticmethod(_raising(kit.to_number))
    unwrap = staticmethod(_raising(kit.unwrap))

    def __getattr__(self, name: str) -> NoReturn:
        _unknown("df.kit", name, list(kit.NAMES))

    def __repr__(self) -> str:
        return f"<df.kit: {', '.join(kit.NAMES)}>"


class Root(Names):
    """`df` itself."""

    __slots__ = ()

    Error = Error
    kit = Kit()


def _unknown(path: str, name: str, known: list[str]) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(sorted(known)[:20]) + (", ..." if len(known) > 20 else "")
    # With a name and without an object CPython adds no suggestion of its own.
    raise AttributeError(f"{path} has no {name!r}.{guess} It has: {shown or 'nothing'}", name=name)


def _child(bridge: Bridge, path: str, name: str, entry: Mapping[str, Any]) -> Any:
    if "$call" not in entry:
        return Names(bridge, path, lambda: entry)
    if entry.get("kind") == "helper":
        return bridge.helper(path, name, entry["code"])
    return _operation(bridge, path, name, entry)


def _operation(bridge: Bridge, path: str, name: str, leaf: Mapping[str, Any]) -> Callable[..., Any]:
    call: str = leaf["$call"]
    parameters: list[str] = leaf["parameters"]
    positional: int = leaf["positional"]
    wrap = bool(leaf.get("struct"))
    kind = leaf.get("kind", "operation")

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return _bind(name, parameters, positional, args, kwargs) if args or kwargs else {}

    def begin() -> Site:
        site = bridge.site(call, sys._getframe(2))  # pyright: ignore[reportPrivateUsage]
        site.created += 1
        return site

    def operation(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        arguments = bind(args, kwargs)
        site = begin()
        coroutine = bridge.call(site, site.number(), arguments, wrap)
        coroutine.__qualname__ = path  # what the interpreter calls it, should it never be awaited
        return coroutine

    def pages(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        arguments = bind(args, kwargs)
        return _pages(bridge, begin(), arguments, wrap)

    def now(*args: Any, **kwargs: Any) -> Any:
        arguments = bind(args, kwargs)
        site = begin()
        return awaitable(bridge.call_now(site, site.number(), arguments, wrap))

    function: Callable[..., Any] = {"pages": pages, _SYNC: now}.get(kind, operation)
    function.__name__, function.__qualname__, function.__module__ = name, path, "df"
    return function


async def _pages(bridge: Bridge, site: Site, arguments: dict[str, Any], wrap: bool) -> AsyncIterator[Any]:
    """Every page, one call each; stopping early makes no further call."""
    site.started += 1
    while True:
        page = await bridge.call(site, site.number(), arguments, wrap, 0)
        yield page
        cursor = page["page"]["next_cursor"]
        if cursor is None:
            return
        arguments = {name: value for name, value in arguments.items() if name != "offset"} | {
            "cursor": cursor
        }


def _bind(
    name: str, parameters: list[str], positional: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    if len(args) > positional:
        took = "no positional arguments" if not positional else f"at most {positional} positional argument(s)"
        names = ", ".join(f"{parameter}=" for parameter in parameters)
        raise TypeError(f"{name}() takes {took}, {len(args)} given; its parameters are {names or 'none'}")
    arguments = dict(zip(parameters, args, strict=False))
    for key, value in kwargs.items():
        if key not in parameters:
            near = difflib.get_close_matches(key, parameters, n=1)
            guess = f". Did you mean {near[0]!r}?" if near else ""
            known = ", ".join(parameters) or "none"
            raise TypeError(
                f"{name}() got an unexpected keyword argument {key!r}{guess} (parameters: {known})"
            )
        if key in arguments:
            raise TypeError(f"{name}() got multiple values for argument {key!r}")
        arguments[key] = value
    return arguments
