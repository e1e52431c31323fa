"""Wrappers over any mount: what is offered, how often it is called, and what of its replies is shown.

Each takes a namespace and gives one back, so they stack; contract names stay what they are, since what is called is. A
mount of any kind takes them as its option `wrap`:

```toml
[mounts.crm.wrap]
read_only = true
filtered = ["get_*", "list_*"]
rate_limited = 5
```
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.canonical import freeze
from affidavit.evidence.record import JsonValue, Limitation
from affidavit.namespaces.names import identifier
from affidavit.namespaces.operation import Namespace, Operation, Reply

__all__ = ["cached", "filtered", "prefixed", "rate_limited", "read_only", "redacted", "wrapped"]

HIDDEN: Final = "[redacted]"
_MAX_CACHED: Final = 1024
_Step: TypeAlias = Callable[[Operation, dict[str, Any]], Awaitable[Reply]]


class Wrap(BaseModel):
    """The option `wrap` of a mount; see the functions of the same names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    read_only: bool = False
    filtered: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    cached: float = Field(default=0.0, ge=0)
    rate_limited: float = Field(default=0.0, ge=0)
    prefixed: str = ""


def wrapped(namespace: Namespace, wrap: JsonValue) -> Namespace:
    """Apply what the option `wrap` says.

    Raises:
        UsageError: `mount-invalid`, naming the wrapper.
    """
    try:
        asked = Wrap.model_validate(wrap)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(["wrap", *map(str, first["loc"])])
        hint = f"wrappers are {', '.join(Wrap.model_fields)}"
        raise UsageError("mount-invalid", f"option {place}: {first['msg']}", hint=hint) from None
    if asked.read_only:
        namespace = read_only(namespace)
    if asked.filtered:
        namespace = filtered(namespace, asked.filtered)
    if asked.redacted:
        namespace = redacted(namespace, asked.redacted)
    if asked.rate_limited:
        namespace = rate_limited(namespace, asked.rate_limited)
    if asked.cached:
        namespace = cached(namespace, asked.cached)
    return prefixed(namespace, asked.prefixed) if asked.prefixed else namespace


def read_only(namespace: Namespace) -> Namespace:
    """Only what reads: the operations with the effect `read`."""
    return _kept(namespace, lambda _, operation: operation.effect == "read")


def filtered(namespace: Namespace, patterns: Iterable[str]) -> Namespace:
    """Only the operations whose path in the namespace matches one of the shell patterns (`get_*`, `issues.*`)."""
    wanted = tuple(patterns)
    return _kept(namespace, lambda path, _: any(fnmatchcase(path, pattern) for pattern in wanted))


def prefixed(namespace: Namespace, prefix: str) -> Namespace:
    """Every operation and namespace directly inside under a name that starts with `prefix`.

    Raises:
        UsageError: `mount-invalid`, when no name can start so.
    """
    if identifier(f"{prefix}x") != f"{prefix}x":
        raise UsageError("mount-invalid", f"no name can start with {prefix!r}", hint="letters, digits and _")
    return replace(
        namespace,
        operations={
            f"{prefix}{name}": replace(
                operation,
                name=f"{prefix}{name}",
                streams=f"{prefix}{operation.streams}" if operation.streams else None,
            )
            for name, operation in namespace.operations.items()
        },
        children={
            f"{prefix}{name}": replace(child, name=f"{prefix}{name}")
            for name, child in namespace.children.items()
        },
    )


def redacted(namespace: Namespace, keys: Iterable[str]) -> Namespace:
    """Values of the mapping keys that match a shell pattern, replaced in every reply before it is recorded.

    What an operation returns is then no longer what its schema says, so it has none.
    """
    patterns = tuple(keys)

    async def step(operation: Operation, arguments: dict[str, Any]) -> Reply:
        reply = await operation.handler(arguments)
        return replace(reply, value=_hidden(reply.value, patterns))

    def untyped(operation: Operation) -> Operation:
        made = _around(operation, step)
        return replace(made, output_schema=None, returns="Any", convert=_as_it_is)

    return _each(namespace, untyped)


def rate_limited(namespace: Namespace, per_second: float) -> Namespace:
    """All operations together at most so often a second; a call waits for its turn."""
    interval = 1 / per_second
    next_turn = [0.0]

    async def step(operation: Operation, arguments: dict[str, Any]) -> Reply:
        now = time.monotonic()
        turn = max(now, next_turn[0])
        next_turn[0] = turn + interval
        await asyncio.sleep(turn - now)
        return await operation.handler(arguments)

    return _each(namespace, lambda operation: _around(operation, step))


def cached(namespace: Namespace, seconds: float) -> Namespace:
    """Replies of operations that read, kept so long; equal calls at once make one.

    A reply from the cache says so by a limitation: it was not observed at the time of its call. Failures are not kept.
    """
    kept: OrderedDict[bytes, tuple[float, asyncio.Task[Reply]]] = OrderedDict()

    async def step(operation: Operation, arguments: dict[str, Any]) -> Reply:
        key = freeze([operation.contract, arguments]).data
        now = time.monotonic()
        until, known = kept.get(key, (0.0, None))
        if known is not None and now < until and known.get_loop() is asyncio.get_running_loop():
            reply = await asyncio.shield(known)
            old = Limitation(code="reply-cached", place="", message=f"kept for at most {seconds:g} seconds")
            return replace(reply, limitations=(*reply.limitations, old))
        asking = asyncio.ensure_future(operation.handler(arguments))
        kept[key] = (now + seconds, asking)
        while len(kept) > _MAX_CACHED:
            kept.popitem(last=False)
        try:
            return await asking
        except (AffidavitError, asyncio.CancelledError):
            kept.pop(key, None)
            raise

    def reading(operation: Operation) -> Operation:
        return _around(operation, step) if operation.effect == "read" else operation

    return _each(namespace, reading)


def _around(operation: Operation, step: _Step) -> Operation:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        return await step(operation, arguments)

    return replace(operation, handler=handler)


def _each(namespace: Namespace, change: Callable[[Operation], Operation]) -> Namespace:
    return replace(
        namespace,
        operations={name: change(operation) for name, operation in namespace.operations.items()},
        children={name: _each(child, change) for name, child in namespace.children.items()},
    )


def _kept(namespace: Namespace, keep: Callable[[str, Operation], bool], prefix: str = "") -> Namespace:
    return replace(
        namespace,
        operations={
            name: operation
            for name, operation in namespace.operations.items()
            if keep(prefix + name, operation)
        },
        children={name: _kept(child, keep, f"{prefix}{name}.") for name, child in namespace.children.items()},
    )


def _hidden(value: JsonValue, patterns: tuple[str, ...]) -> JsonValue:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {
            key: HIDDEN if any(fnmatchcase(key, it) for it in patterns) else _hidden(item, patterns)
            for key, item in items
        }
    if isinstance(value, list):
        return [_hidden(item, patterns) for item in cast("list[Any]", value)]
    return value


def _as_it_is(value: Any) -> Any:
    return value
