"""Functions of other files that never return, by name: C and C++ standards, POSIX, Itanium C++ ABI, glibc, Windows."""

from __future__ import annotations

from typing import Final

__all__ = ["never_returns", "plain_name"]

_NAMES: Final = frozenset(
    [
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "thrd_exit",
        "pthread_exit",
        "__assert",
        "__assert_fail",
        "__assert_perror_fail",
        "__stack_chk_fail",
        "__chk_fail",
        "__fortify_fail",
        "__libc_fatal",
        "__libc_start_main",
        "longjmp",
        "_longjmp",
        "siglongjmp",
        "__longjmp_chk",
        "err",
        "errx",
        "verr",
        "verrx",
        "_Unwind_Resume",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_bad_typeid",
        "__cxa_throw_bad_array_new_length",
        "__cxa_throw_bad_array_length",
        "__cxa_pure_virtual",
        "__cxa_deleted_virtual",
        "__cxa_call_unexpected",
        "__cxa_call_terminate",
        "_ZSt9terminatev",
        "_ZSt10unexpectedv",
        "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
        "_ZNSt9exception9terminateEv",
        "__libc_longjmp",
        "__clang_call_terminate",
        "__ubsan_handle_builtin_unreachable",
        "__tls_get_addr_fail",
        "rust_begin_unwind",
        "ExitProcess",
        "ExitThread",
        "FreeLibraryAndExitThread",
        "RtlExitUserThread",
        "RtlExitUserProcess",
        "_CxxThrowException",
        "_invoke_watson",
        "_invalid_parameter_noinfo_noreturn",
        "_amsg_exit",
        "__report_gsfailure",
        "terminate",
    ]
)
_THROWING: Final = "_ZSt"
"""The helpers of libstdc++ that throw are `std::__throw_...`: `_ZSt`, a length, `__throw_`."""


def plain_name(name: str) -> str:
    """The name without its version (`exit@GLIBC_2.2.5`)."""
    return name.partition("@")[0]


def never_returns(name: str) -> bool:
    """Whether a function of this name never returns to its caller."""
    name = plain_name(name)
    if name in _NAMES:
        return True
    return name.startswith(_THROWING) and name[4:].lstrip("0123456789").startswith("__throw_")
