"""Names that enter keys and paths."""

from __future__ import annotations

import re
from typing import Final

from affidavit.errors import UsageError

__all__ = ["check_name", "check_tenant"]

MAX_NAME: Final = 256
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def check_tenant(tenant: str) -> str:
    """A tenant's name is also a folder's: lower-case letters, digits, dash and underscore, at most 63.

    Raises:
        UsageError: `name-invalid`.
    """
    if not _TENANT.fullmatch(tenant):
        raise UsageError(
            "name-invalid",
            f"{tenant[:MAX_NAME]!a} cannot name a tenant",
            hint="use at most 63 lower-case letters, digits, - and _, a letter or digit first",
        )
    return tenant


def check_name(what: str, name: str) -> None:
    """Sessions, runs, kinds and keys are any short text that can be stored and compared.

    Raises:
        UsageError: `name-invalid`.
    """
    if name.isascii() and name.isprintable() and 0 < len(name) <= MAX_NAME:
        return
    if 0 < len(name) <= MAX_NAME and "\0" not in name and not any("\ud800" <= it <= "\udfff" for it in name):
        return
    raise UsageError(
        "name-invalid",
        f"{name[:60]!a} cannot be the {what} of an event",
        hint=f"use 1 to {MAX_NAME} characters of text, without NUL and lone surrogates",
    )
