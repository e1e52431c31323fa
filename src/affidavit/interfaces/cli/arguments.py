"""Reading what the command line names: scripts, values, mounts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.canonical import parse

__all__ = ["read_pairs", "read_source", "read_value"]

_MAX_SOURCE = 4 << 20


def read_source(name: str) -> str:
    """The text of a script: a file, or `@-` for standard input.

    Raises:
        NotFoundError: `artifact-not-found`.
        UsageError: `usage`, when it is no UTF-8 text or too large.
    """
    data = sys.stdin.buffer.read(_MAX_SOURCE + 1) if name == "@-" else _read(Path(name))
    if len(data) > _MAX_SOURCE:
        raise UsageError(
            "usage", f"{name} is larger than {_MAX_SOURCE} bytes", hint="scripts are short programs"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            "usage", f"{name} is not UTF-8 text at byte {error.start}", hint="save it as UTF-8"
        ) from error


def read_value(text: str) -> Any:
    """One value: JSON, `@FILE` for JSON in a file, or else the text itself."""
    if text.startswith("@") and text != "@-":
        return values.decode(parse(_read(Path(text[1:]))))
    if text == "@-":
        return values.decode(parse(sys.stdin.buffer.read()))
    try:
        return values.decode(parse(text))
    except UsageError as error:
        # Words stand for themselves; what looks like JSON and is none is a mistake to be told.
        if error.code == "json-invalid" and not text.lstrip().startswith(("{", "[", '"')):
            return text
        raise


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE` words as a dict; values as in `read_value`."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError("usage", f"{pair!r} is not NAME=VALUE", hint="for example limit=10")
        if name in found:
            raise UsageError("usage", f"{name} is given twice", hint="give each name once")
        found[name] = read_value(text)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError("artifact-not-found", f"no file {path}", hint="check the path") from error
    except OSError as error:
        raise UsageError(
            "usage", f"cannot read {path}: {error.strerror}", hint="name a readable file"
        ) from error
