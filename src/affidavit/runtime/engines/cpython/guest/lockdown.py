"""Giving up everything a script does not need, in two steps: the zygote once, then each child for good.

The zygote leaves the host's namespaces and file system and drops its capabilities (`isolate`). A child sets its limits,
enters a Landlock domain without any path and loads the system call filter (`confine`). Every layer is independent: a
kernel that lacks one still has the others, and the report says which ones hold.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Callable
from typing import Any, Final

from affidavit.runtime.engines.cpython.guest.seccomp import Filter, build
from affidavit.runtime.engines.cpython.guest.syscalls import PLATFORMS, Platform

__all__ = ["Lock", "Report"]

Report = dict[str, str]
"""Layer name -> empty when it holds, else why it does not."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITIES: Final = 64
_CAPABILITY_VERSION_3: Final = 0x20080522

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUTS: Final = 0x04000000
_CLONE_NEWIPC: Final = 0x08000000
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000

_MS_RDONLY: Final = 1
_MS_NOSUID: Final = 2
_MS_NODEV: Final = 4
_MS_NOEXEC: Final = 8
_MS_REMOUNT: Final = 32
_MS_BIND: Final = 4096
_MS_REC: Final = 16384
_MS_PRIVATE: Final = 1 << 18
_MNT_DETACH: Final = 2

_SECCOMP_SET_MODE_FILTER: Final = 1
_SECCOMP_FILTER_FLAG_TSYNC: Final = 1

_LANDLOCK_VERSION: Final = 1
# Number of file system rights by Landlock version; later versions add none.
_LANDLOCK_RIGHTS: Final = (0, 13, 14, 15, 15, 16)
_LANDLOCK_NET: Final = 3  # bind and connect over TCP
_LANDLOCK_SCOPES: Final = 3  # abstract UNIX sockets, signals

_FILES: Final = 64
_THREADS: Final = 4096  # of all scripts together; the host stops a single one long before
_STACK: Final = 8 << 20


class Lock:
    """Both steps, prepared once in the zygote: system call numbers, the filter, the size of the address space."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._platform: Platform | None = PLATFORMS.get(os.uname().machine)
        self._filter: Filter | None = None
        self._users = False
        self._landlock = 0
        self.base_bytes = 0

    # ---- in the zygote ----

    def isolate(self) -> Report:
        """Leave the host: namespaces, an empty root, no capabilities. What fails is reported and does not stop it."""
        report: Report = {}
        uid, gid = os.getuid(), os.getgid()
        self._oom_first()
        self.base_bytes = _address_space()
        self._users = self._try(report, "user namespace", lambda: self._new_users(uid, gid))
        for name, flag in (
            ("network namespace", _CLONE_NEWNET),
            ("IPC namespace", _CLONE_NEWIPC),
            ("UTS namespace", _CLONE_NEWUTS),
            ("mount namespace", _CLONE_NEWNS),
        ):
            self._try(report, name, lambda flag=flag: self._call("unshare", flag))
        if not report["UTS namespace"]:
            self._try(report, "host name", lambda: self._call("sethostname", b"sandbox", 7))
        if not report["mount namespace"]:
            self._try(report, "empty root", self._empty_root)
        os.chdir("/")
        self._try(report, "capabilities", self._drop_capabilities)
        self._try(report, "no new privileges", lambda: self._prctl(_PR_SET_NO_NEW_PRIVS, 1))
        self._try(report, "not dumpable", lambda: self._prctl(_PR_SET_DUMPABLE, 0))
        if self._platform is not None:
            self._filter = build(self._platform, uname=not report.get("host name", "no namespace"))
            self._landlock = max(0, self._syscall("landlock_create_ruleset", None, 0, _LANDLOCK_VERSION))
        return report

    def _try(self, report: Report, name: str, step: Callable[[], object]) -> bool:
        try:
            step()
        except OSError as error:
            report[name] = error.strerror or str(error)
        else:
            report[name] = ""
        return not report[name]

    def _oom_first(self) -> None:
        """When the machine runs out of memory, scripts go before anything else."""
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("800")
        except OSError:
            pass  # a bonus: the address space limit is what bounds a script

    def _new_users(self, uid: int, gid: int) -> None:
        self._call("unshare", _CLONE_NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)

    def _empty_root(self) -> None:
        """Make an empty read-only file system the root, and let go of every other."""
        self._call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
        flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        place = next(path for path in (b"/tmp", b"/var", b"/usr", b"/dev") if os.path.isdir(path))
        self._call("mount", b"none", place, b"tmpfs", flags, b"size=4k,nr_inodes=2,mode=555")
        os.chdir(place)
        if self._syscall("pivot_root", b".", b".") != 0:
            raise _errno_error("pivot_root")
        self._call("umount2", b".", _MNT_DETACH)
        os.chdir("/")
        self._call("mount", None, b"/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags, None)

    def _drop_capabilities(self) -> None:
        for capability in range(_CAPABILITIES):
            self._libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # EPERM and EINVAL: nothing there to drop
        self._libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
        if self._syscall("capset", header, bytes(24)) != 0:
            raise _errno_error("capset")

    # ---- in a child ----

    def confine(self, parent: int) -> Report:
        """Lock this process for good. Raises OSError where a layer that every kernel has is refused."""
        report: Report = {}
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)  # the zygote died between the fork and the line above
        self._prctl(_PR_SET_NO_NEW_PRIVS, 1)
        self._prctl(_PR_SET_DUMPABLE, 0)
        self._limits()
        report["Landlock"] = self._enter_landlock()
        report["seccomp"] = self._load_filter()
        return report

    def bound(self, memory: int, cpu: int, extra: int) -> None:
        """Set the limits of one run: bytes of address space on top of what is there already, and seconds of CPU.

        The soft memory limit leaves room under the hard one, so that running out of memory can still be reported.
        """
        total = self.base_bytes + extra + memory
        resource.setrlimit(resource.RLIMIT_AS, (total, total + (16 << 20)))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))  # SIGXCPU, then SIGKILL for who ignores it

    def _limits(self) -> None:
        limits = [
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, _FILES),
            (resource.RLIMIT_MEMLOCK, 0),
            (resource.RLIMIT_STACK, _STACK),
        ]
        if self._users:  # counted per namespace there; elsewhere it would count the user's other processes
            limits.append((resource.RLIMIT_NPROC, _THREADS))
        for which, value in limits:
            hard = resource.getrlimit(which)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (bound, bound))

    def _enter_landlock(self) -> str:
        if self._landlock <= 0:
            return "not in this kernel"
        version = self._landlock
        rights = (1 << _LANDLOCK_RIGHTS[min(version, len(_LANDLOCK_RIGHTS) - 1)]) - 1
        attributes = struct.pack("<QQQ", rights, _LANDLOCK_NET, _LANDLOCK_SCOPES)
        attributes = attributes[: 8 if version < 4 else 16 if version < 6 else 24]
        ruleset = self._syscall("landlock_create_ruleset", attributes, len(attributes), 0)
        if ruleset < 0:
            return os.strerror(ctypes.get_errno())
        entered = self._syscall("landlock_restrict_self", ruleset, 0)
        problem = "" if entered == 0 else os.strerror(ctypes.get_errno())
        os.close(ruleset)
        return problem

    def _load_filter(self) -> str:
        if self._filter is None:
            return f"no system call table for {os.uname().machine}"
        code = self._filter.for_pid(os.getpid())
        buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
        loaded = self._syscall("seccomp", _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC, program)
        return "" if loaded == 0 else os.strerror(ctypes.get_errno())

    # ---- calls ----

    def _prctl(self, option: int, value: int) -> None:
        if self._libc.prctl(option, value, 0, 0, 0) != 0:
            raise _errno_error(f"prctl {option}")

    def _call(self, name: str, *arguments: Any) -> None:
        if getattr(self._libc, name)(*arguments) != 0:
            raise _errno_error(name)

    def _syscall(self, name: str, *arguments: Any) -> int:
        assert self._platform is not None
        return self._libc.syscall(self._platform.numbers[name], *arguments)


def _errno_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def _address_space() -> int:
    """Bytes of address space of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
