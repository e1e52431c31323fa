"""What a specifier is, read from its text alone."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from affidavit.analyzers.javascript.resolution.builtins import builtin_name

__all__ = ["Parsed", "Settled", "Shape", "decode_path", "parse_specifier", "shorten"]

Settled: TypeAlias = Literal["builtin", "external", "rejected", "missing"]
Shape: TypeAlias = Literal["relative", "package", "internal", "settled"]

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ENCODED_SEPARATOR: Final = re.compile(r"%2f|%5c", re.IGNORECASE)
_PACKAGE: Final = re.compile(
    r"((?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9_~-][A-Za-z0-9._~!'()*+-]*)(?:/(.*))?\Z", re.DOTALL
)
_CODE_SCHEMES: Final = frozenset({"file", "data", "blob", "javascript", "about"})
_WEB_SCHEMES: Final = frozenset({"http", "https", "ws", "wss"})
_LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class Parsed:
    """A specifier by its shape.

    Attributes:
        shape: `relative` (`./x`, `../x`, `.`), `package`, `internal` (`#x`), or `settled` by the text alone.
        name: the path, the package's name, or what follows the status in a settled key.
        subpath: what follows a package's name: `.` or `./x`.
        status: of what is settled.
    """

    shape: Shape
    name: str
    subpath: str = "."
    status: Settled = "missing"


def parse_specifier(specifier: str) -> Parsed:
    """Read a specifier.

    Rules for what is no path and no package: `node:` names a builtin or is missing. `file:`, `data:`, `blob:` and
    `javascript:` are rejected: they lead out of the container or are code themselves. Every other scheme (`https:`,
    `bun:`, `virtual:`) is external, without query and fragment where it is a web address. Absolute paths, drive
    letters, backslashes, NUL and encoded separators are rejected.
    """
    builtin = builtin_name(specifier)
    if builtin is not None:
        return _settled("builtin", builtin)
    if _is_rejected(specifier):
        return _settled("rejected", shorten(specifier))
    if specifier in {".", ".."} or specifier.startswith(("./", "../")):
        return Parsed("relative", specifier)
    if specifier.startswith("#"):
        return Parsed("internal", specifier)
    scheme = _SCHEME.match(specifier)
    return _with_scheme(specifier, scheme[1].lower()) if scheme else _package(specifier)


def _settled(status: Settled, name: str) -> Parsed:
    return Parsed("settled", name, status=status)


def _is_rejected(specifier: str) -> bool:
    return (
        not specifier
        or specifier.startswith("/")
        or "\\" in specifier
        or "\0" in specifier
        or _DRIVE.match(specifier) is not None
        or (
            _ENCODED_SEPARATOR.search(specifier.partition("?")[0]) is not None
            and not _SCHEME.match(specifier)
        )
        or any("\ud800" <= character <= "\udfff" for character in specifier)
    )


def _with_scheme(specifier: str, scheme: str) -> Parsed:
    if scheme == "node":
        return _settled("missing", shorten(specifier))
    if scheme in _CODE_SCHEMES:
        return _settled("rejected", shorten(specifier))
    if scheme in _WEB_SCHEMES:
        specifier = re.split(r"[?#]", specifier, maxsplit=1)[0]
    return _settled("external", shorten(specifier))


def _package(specifier: str) -> Parsed:
    found = _PACKAGE.match(specifier)
    if found is None or not any(character.isalnum() for character in found[1]):
        # `@/x`, `~/x`, `!!loader!x`: aliases of a bundler, nothing that a package could be called.
        return _settled("missing", shorten(specifier))
    rest = found[2]
    return Parsed("package", found[1], "." if rest is None else f"./{rest}")


def decode_path(specifier: str) -> str:
    """The path of a URL reference: without query and fragment, percent-decoded where that gives UTF-8."""
    path = re.split(r"[?#]", specifier, maxsplit=1)[0]
    if "%" not in path:
        return path
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path


def shorten(text: str) -> str:
    """A text that is safe and short enough for a key; a long one is cut and ends in its digest, so it stays unique."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    if len(safe) <= _LONGEST:
        return safe
    return f"{safe[:128]}…sha256:{hashlib.sha256(safe.encode()).hexdigest()[:32]}"
