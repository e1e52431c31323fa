"""The parser process: reads source files from standard input, answers with their facts, and can be killed at any time.

A request is `u32 index | u32 size | u32 CPU milliseconds | u32 KiB of memory | u8 language | u8 thinned | size bytes`;
an answer is `u32 index | u8 state | u32 size | size bytes`, where state 1 is facts and 0 the name of an exception. The
first answer has index 0xFFFFFFFF: ready. The process ends with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from contextlib import suppress
from typing import BinaryIO, Final

from affidavit.analyzers.javascript.parsing.memory import c_library, give_back, limit_growth, limit_process

__all__ = ["ANSWER", "READY", "REQUEST", "main"]

REQUEST: Final = struct.Struct("<IIIIBB")
ANSWER: Final = struct.Struct("<IBI")
READY: Final = 0xFFFF_FFFF

_TIDY_AFTER: Final = 512 << 10
"""Bytes of source after which memory is given back."""
_LARGE: Final = 128 << 10
"""Bytes of source before which memory is given back, so that what was freed does not add to it."""
_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Serve until standard input ends."""
    parent = os.getppid()
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # Nothing that a library prints may end up between answers.
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    _confine(c_library(), parent)
    with suppress(BrokenPipeError):
        _serve(requests, answers)


def _confine(libc: ctypes.CDLL | None, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt ends
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    limit_process()


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    from affidavit.analyzers.javascript.languages import LANGUAGES
    from affidavit.analyzers.javascript.parsing.wire import encode
    from affidavit.analyzers.javascript.references import extract

    _write(answers, ANSWER.pack(READY, 1, 0))
    index: int
    language: int
    parsed = 0
    while header := _read(requests, REQUEST.size):
        index, size, milliseconds, kibibytes, language, thinned = REQUEST.unpack(header)
        if size > _LARGE and parsed:
            parsed = 0
            give_back()
        limit_growth(kibibytes << 10)
        data = _read(requests, size)
        _allow(milliseconds / 1000)
        try:
            state, body = 1, encode(extract(data, LANGUAGES[language], thinned=bool(thinned)), data)
        except Exception as error:
            state, body = 0, type(error).__name__.encode()
        _allow(0)
        del data
        _write(answers, ANSWER.pack(index, state, len(body)))
        _write(answers, body)
        del body
        parsed += size
        if parsed > _TIDY_AFTER:
            parsed = 0
            give_back()


def _allow(seconds: float) -> None:
    """Let the kernel kill this process after so much CPU time, whatever it is doing then; 0 takes that back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _read(source: BinaryIO, size: int) -> bytes:
    """Exactly `size` bytes; empty at the end of input."""
    parts: list[bytes] = []
    while size:
        data = source.read(min(size, 1 << 20))
        if not data:
            return b""
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _write(target: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[target.write(view) :]


if __name__ == "__main__":
    main()
