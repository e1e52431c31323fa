"""The system call filter of a locked child, as a classic BPF program.

An allow-list: everything that is not named fails with EPERM. Arguments are filtered where a call could otherwise reach
further than the process itself. The kernel reads only the low 32 bits of the arguments compared here, except for
pointers and memory protection, which are compared in full.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import Final

from affidavit.runtime.engines.cpython.guest.syscalls import ALLOWED, Platform

__all__ = ["Filter", "build"]

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_DENY: Final = 0x00050000 | errno.EPERM
_ABSENT: Final = 0x00050000 | errno.ENOSYS
_KILL: Final = 0x80000000

# CLONE_THREAD and CLONE_VM must be set, no CLONE_NEW* may be: a thread, never a process or a namespace.
_CLONE_MASK: Final = 0x7E030100
_CLONE_THREAD: Final = 0x00010100
_FCNTL: Final = (0, 1, 2, 3, 4, 1030)  # DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC
_IOCTL: Final = (0x5421, 0x5450, 0x5451)  # FIONBIO, FIONCLEX, FIOCLEX
_PROT_EXEC: Final = 4
_AF_UNIX: Final = 1
_SOCK_STREAM: Final = 1
_SOCK_TYPE_MASK: Final = 0xF


@dataclass(frozen=True, slots=True)
class Filter:
    """A program with one hole: the process id that `tgkill` may name, known only after the fork."""

    code: bytes
    pid_at: int

    def for_pid(self, pid: int) -> bytes:
        """The program for one process."""
        return self.code[: self.pid_at] + struct.pack("<I", pid) + self.code[self.pid_at + 4 :]


def build(platform: Platform, *, uname: bool) -> Filter:
    """Assemble the filter. `uname` is allowed only where the host name has been hidden by a namespace."""
    numbers = platform.numbers
    program = [
        _op(_LOAD, 4),
        _op(_EQUAL, platform.audit, then=1),
        _op(_RETURN, _KILL),
        _op(_LOAD, 0),
    ]
    if platform.x32:
        program += [_op(_AT_LEAST, 0x40000000, otherwise=1), _op(_RETURN, _KILL)]
    names = [*ALLOWED, "uname"] if uname else list(ALLOWED)
    for name in names:
        if name in numbers:
            program += [_op(_EQUAL, numbers[name], otherwise=1), _op(_RETURN, _ALLOW)]
    program += _rule(numbers["mmap"], _lacks(2, _PROT_EXEC))
    program += _rule(numbers["mprotect"], _lacks(2, _PROT_EXEC))
    program += _rule(numbers["sendto"], _null(4))
    program += _rule(numbers["clone"], [_argument(0), _op(_AND, _CLONE_MASK), *_one_of((_CLONE_THREAD,))])
    program += _rule(numbers["clone3"], [_op(_RETURN, _ABSENT)])
    program += _rule(numbers["fcntl"], [_argument(1), *_one_of(_FCNTL)])
    program += _rule(numbers["ioctl"], [_argument(1), *_one_of(_IOCTL)])
    program += _rule(numbers["prlimit64"], [_argument(0), *_one_of((0,))])
    program += _rule(numbers["socketpair"], _stream_pair())
    pid_at = 8 * (len(program) + 2) + 4
    program += _rule(numbers["tgkill"], [_argument(0), *_one_of((0,))])
    program.append(_op(_RETURN, _DENY))
    return Filter(b"".join(program), pid_at)


def _op(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _argument(index: int, *, high: bool = False) -> bytes:
    return _op(_LOAD, 16 + 8 * index + (4 if high else 0))


def _rule(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body`, which always returns, for one system call; skip it for all others."""
    return [_op(_EQUAL, number, otherwise=len(body)), *body]


def _one_of(values: tuple[int, ...]) -> list[bytes]:
    """Allow when the accumulator equals one of the values, else deny."""
    tests = [_op(_EQUAL, value, then=len(values) - at) for at, value in enumerate(values)]
    return [*tests, _op(_RETURN, _DENY), _op(_RETURN, _ALLOW)]


def _lacks(index: int, bits: int) -> list[bytes]:
    return [_argument(index), _op(_ANY_BIT, bits, otherwise=1), _op(_RETURN, _DENY), _op(_RETURN, _ALLOW)]


def _null(index: int) -> list[bytes]:
    return [
        _argument(index),
        _op(_EQUAL, 0, otherwise=2),
        _argument(index, high=True),
        _op(_EQUAL, 0, then=1),
        _op(_RETURN, _DENY),
        _op(_RETURN, _ALLOW),
    ]


def _stream_pair() -> list[bytes]:
    """An anonymous stream pair of this process, which the event loop wakes itself with; no datagrams, no families."""
    return [
        _argument(0),
        _op(_EQUAL, _AF_UNIX, then=1),
        _op(_RETURN, _DENY),
        _argument(1),
        _op(_AND, _SOCK_TYPE_MASK),
        *_one_of((_SOCK_STREAM,)),
    ]
