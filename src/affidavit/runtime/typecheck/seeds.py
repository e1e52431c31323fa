"""Helpers are checked once, when their mount is added: a person is there to put right what is found."""

from __future__ import annotations

from collections.abc import Iterable

from affidavit.errors import UsageError
from affidavit.extensions import HelperModule
from affidavit.runtime.typecheck.checker import Checker

__all__ = ["check_helpers"]


async def check_helpers(modules: Iterable[HelperModule], stubs: str) -> None:
    """See that each module fits what it may call.

    In a script a finding inside a function is advice, since the function may never be called; here it is refused.

    Args:
        modules: what a mount brings.
        stubs: what they may call, the mount itself included.

    Raises:
        UsageError: `mount-invalid`, with key and line of the first finding.
    """
    async with Checker() as checker:
        for module in modules:
            verdict = await checker.check(module.code, stubs=stubs)
            for found in verdict.diagnostics:
                raise UsageError(
                    "mount-invalid",
                    f"helper {module.key}:{found.line}: {found.message}",
                    hint=f"did you mean {found.suggestion}?" if found.suggestion else "",
                    details={"key": module.key, "line": found.line},
                )
