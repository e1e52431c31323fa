"""System call numbers by architecture, and which of them a locked child may make.

x86_64 is tried by every test run. aarch64 comes from the kernel's generic table and has not been run: `probe()` decides
there as everywhere, and the engine does not start where an attempt gets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["ALLOWED", "PLATFORMS", "Platform"]

# Always allowed, most frequent first. No call here takes a path, names another process or creates a socket address.
ALLOWED: Final[tuple[str, ...]] = (
    "futex", "recvfrom", "poll", "ppoll", "clock_gettime", "munmap", "madvise", "brk", "mremap",
    "read", "write", "readv", "writev", "close", "lseek", "pread64", "fstat",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigpending", "rt_sigtimedwait",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "select", "pselect6",
    "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getrusage",
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid",
    "getpgid", "getpgrp", "getsid", "getcwd", "getcpu", "sysinfo", "getrandom", "sched_yield", "sched_getaffinity",
    "sched_get_priority_max", "sched_get_priority_min", "getrlimit", "setrlimit",
    "alarm", "setitimer", "getitimer", "pause",
    "set_tid_address", "set_robust_list", "rseq", "membarrier", "restart_syscall", "exit", "exit_group",
    "pipe", "pipe2", "eventfd2",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One architecture: its audit number, its system call numbers, and whether it has the x32 alias range."""

    audit: int
    numbers: Mapping[str, int]
    x32: bool = False


PLATFORMS: Final[Mapping[str, Platform]] = {
    "x86_64": Platform(
        audit=0xC000003E,
        x32=True,
        numbers={
            "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
            "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16,
            "pread64": 17, "readv": 19, "writev": 20, "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25,
            "madvise": 28, "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39,
            "sendto": 44, "recvfrom": 45, "socketpair": 53,
            "clone": 56, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "gettimeofday": 96, "getrlimit": 97,
            "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
            "getppid": 110, "getpgrp": 111, "getgroups": 115, "getresuid": 118, "getresgid": 120, "getpgid": 121,
            "getsid": 124, "capset": 126, "rt_sigpending": 127, "rt_sigtimedwait": 128, "sigaltstack": 131,
            "sched_get_priority_max": 146, "sched_get_priority_min": 147, "pivot_root": 155, "setrlimit": 160,
            "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "set_tid_address": 218,
            "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230,
            "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "pselect6": 270, "ppoll": 271,
            "set_robust_list": 273, "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291, "pipe2": 293,
            "prlimit64": 302, "getcpu": 309, "seccomp": 317, "getrandom": 318, "membarrier": 324, "rseq": 334,
            "clone3": 435, "landlock_create_ruleset": 444, "landlock_restrict_self": 446,
        },
    ),
    "aarch64": Platform(
        audit=0xC00000B7,
        numbers={
            "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "fcntl": 25,
            "ioctl": 29, "pivot_root": 41, "close": 57, "pipe2": 59, "lseek": 62, "read": 63, "write": 64, "readv": 65,
            "writev": 66, "pread64": 67, "pselect6": 72, "ppoll": 73, "fstat": 80, "capset": 91, "exit": 93,
            "exit_group": 94, "set_tid_address": 96, "futex": 98, "set_robust_list": 99, "nanosleep": 101,
            "getitimer": 102, "setitimer": 103, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
            "sched_getaffinity": 123, "sched_yield": 124, "sched_get_priority_max": 125,
            "sched_get_priority_min": 126, "restart_syscall": 128, "tgkill": 131, "sigaltstack": 132,
            "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigpending": 136, "rt_sigtimedwait": 137,
            "rt_sigreturn": 139, "getresuid": 148, "getresgid": 150, "times": 153, "getpgid": 155, "getsid": 156,
            "getgroups": 158, "uname": 160, "getrlimit": 163, "setrlimit": 164, "getrusage": 165, "getcpu": 168,
            "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176,
            "getegid": 177, "gettid": 178, "sysinfo": 179, "socketpair": 199, "sendto": 206, "recvfrom": 207,
            "brk": 214, "munmap": 215, "mremap": 216,
            "clone": 220, "mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261, "seccomp": 277,
            "getrandom": 278, "membarrier": 283, "rseq": 293, "clone3": 435, "landlock_create_ruleset": 444,
            "landlock_restrict_self": 446,
        },
    ),
}  # fmt: skip
