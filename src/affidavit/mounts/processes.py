"""Programs that a mount starts: without a shell, with little of this process's environment, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

__all__ = ["Finished", "OverflowedError", "environment", "kill_group", "run"]

_INHERITED: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SYSTEMROOT",
    "TERM",
    "TMPDIR",
    "USER",
)
_CHUNK: Final = 1 << 16
_GRACE_SECONDS: Final = 1.0
_ERROR_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A program that ended: its exit code (negative: the signal), and what it wrote; of the errors the end."""

    code: int
    output: bytes
    errors: bytes


class OverflowedError(Exception):
    """A program wrote more than it may."""


def environment(names: Iterable[str], secret: Callable[[str], str]) -> dict[str, str]:
    """What a program is given: what it needs to start, and the named variables."""
    found = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return found | {name: secret(name) for name in names}


async def run(
    words: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    input_bytes: bytes = b"",
    max_output: int,
) -> Finished:
    """Run a program to its end. A caller that is cancelled ends it with all that it started.

    Raises:
        OSError: it cannot be started.
        ValueError: a word holds a null character.
        OverflowedError: it wrote more than `max_output` bytes, and was ended.
    """
    child = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(variables),
        cwd=folder,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    output, errors = bytearray(), bytearray()
    reading = [
        asyncio.create_task(_take(child.stdout, output, max_output)),
        asyncio.create_task(_take_end(child.stderr, errors)),
        asyncio.create_task(_give(child.stdin, input_bytes)),
    ]
    try:
        ended = asyncio.create_task(_exit(child))
        reading.append(ended)
        await asyncio.wait({ended, reading[0]}, return_when=asyncio.FIRST_COMPLETED)
        if reading[0].done():
            reading[0].result()
        await ended
        # what it started may hold its output open for ever
        await asyncio.wait(reading[:2], timeout=_GRACE_SECONDS)
        if reading[0].done():
            reading[0].result()
    finally:
        kill_group(child.pid)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_exit(child), _GRACE_SECONDS)  # a killed program is gone at once
        cast("Any", child)._transport.close()
    return Finished(code=cast("int", child.returncode), output=bytes(output), errors=bytes(errors))


def kill_group(leader: int, sign: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, sign)


async def _take(stream: asyncio.StreamReader, into: bytearray, most: int) -> None:
    while data := await stream.read(_CHUNK):
        into += data
        if len(into) > most:
            raise OverflowedError(f"it wrote more than {most} bytes")


async def _take_end(stream: asyncio.StreamReader, into: bytearray) -> None:
    while data := await stream.read(_CHUNK):
        into += data
        del into[:-_ERROR_BYTES]


async def _give(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError, RuntimeError):  # a program need not read what it is given
        if data:
            stream.write(data)
            await stream.drain()
        stream.close()


async def _exit(child: asyncio.subprocess.Process) -> None:
    # not `child.wait()`: that also waits for streams which a grandchild may hold
    while child.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
