"""The `exports` and `imports` of a package.json, as Node.js reads them.

The algorithm is that of the Node.js documentation ("Resolution algorithm specification"): conditions in the order of
the file, patterns by the longest prefix, the first usable target of an array.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

__all__ = ["CONDITIONS", "Mode", "Target", "match_exports", "match_imports"]

Mode: TypeAlias = Literal["import", "require"]

CONDITIONS: Final[Mapping[Mode, frozenset[str]]] = {
    "import": frozenset({"node", "node-addons", "module-sync", "import", "default"}),
    "require": frozenset({"node", "node-addons", "module-sync", "require", "default"}),
}
"""What Node.js (20.19 and later) has set for `import` and for `require`."""

_INVALID_SEGMENT: Final = re.compile(
    r"(?:^|[\\/])(?:(?:\.|%2e){1,2}|(?:n|%6e|%4e)(?:o|%6f|%4f)(?:d|%64|%44)(?:e|%65|%45)(?:_|%5f)"
    r"(?:m|%6d|%4d)(?:o|%6f|%4f)(?:d|%64|%44)(?:u|%75|%55)(?:l|%6c|%4c)(?:e|%65|%45)(?:s|%73|%53))(?:[\\/]|$)",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Where a key leads.

    Attributes:
        kind: `file` (`value` is relative to the package's folder), `bare` (`value` is another specifier, from
            `imports` only), `null` (excluded on purpose), `none` (no key or no condition fits) or `invalid`.
    """

    kind: Literal["file", "bare", "null", "none", "invalid"]
    value: str = ""


_NONE: Final = Target("none")
_NULL: Final = Target("null")
_INVALID: Final = Target("invalid")


def match_exports(exports: Any, subpath: str, mode: Mode) -> Target:
    """What a package offers under a subpath (`.` or `./x`)."""
    keyed = _is_keyed(exports)
    if keyed is None:
        return _INVALID
    if not keyed:
        return _target(exports, None, mode, internal=False, depth=0) if subpath == "." else _NONE
    if subpath == ".":
        return _target(exports["."], None, mode, internal=False, depth=0) if "." in exports else _NONE
    return _match(cast(dict[str, Any], exports), subpath, mode, internal=False)


def match_imports(imports: Any, specifier: str, mode: Mode) -> Target:
    """What a package means by `#name`."""
    if not isinstance(imports, dict):
        return _NONE
    if specifier == "#" or specifier.startswith("#/"):
        return _INVALID
    return _match(cast(dict[str, Any], imports), specifier, mode, internal=True)


def _is_keyed(exports: Any) -> bool | None:
    """Whether the keys are subpaths (true) or conditions, or there are none (false); None when they are mixed."""
    if not isinstance(exports, dict):
        return False
    dotted = {key.startswith(".") for key in cast(dict[str, Any], exports)}
    if len(dotted) > 1:
        return None
    return True in dotted


def _match(table: dict[str, Any], key: str, mode: Mode, *, internal: bool) -> Target:
    if key in table and "*" not in key and not key.endswith("/"):
        return _target(table[key], None, mode, internal=internal, depth=0)
    best: tuple[int, int, str] | None = None
    for pattern in table:
        head, star, tail = pattern.partition("*")
        if (
            not star
            or "*" in tail
            or not key.startswith(head)
            or not key.endswith(tail)
            or len(key) < len(pattern)
        ):
            continue
        # The longer prefix wins, then the longer key.
        rank = (len(head), len(pattern), pattern)
        if best is None or rank > best:
            best = rank
    if best is None:
        return _NONE
    head, _, tail = best[2].partition("*")
    found = key[len(head) : len(key) - len(tail)]
    return _target(table[best[2]], found, mode, internal=internal, depth=0)


def _target(target: Any, found: str | None, mode: Mode, *, internal: bool, depth: int) -> Target:
    if depth > _MAX_DEPTH:
        return _INVALID
    if isinstance(target, str):
        return _text_target(target, found, internal=internal)
    if isinstance(target, dict):
        for condition, value in cast(dict[str, Any], target).items():
            if condition in CONDITIONS[mode]:
                result = _target(value, found, mode, internal=internal, depth=depth + 1)
                if result.kind != "none":
                    return result
        return _NONE
    if isinstance(target, list):
        last = _NULL
        for value in cast(list[Any], target):
            result = _target(value, found, mode, internal=internal, depth=depth + 1)
            if result.kind in {"file", "bare"}:
                return result
            last = result if result.kind != "none" else last
        return last
    return _NULL if target is None else _INVALID


def _text_target(target: str, found: str | None, *, internal: bool) -> Target:
    if not target.startswith("./"):
        if not internal or target.startswith(("../", "/")) or _SCHEME.match(target.removeprefix("node:")):
            return _INVALID
        return Target("bare", target if found is None else target.replace("*", found))
    rest = target[2:]
    if _INVALID_SEGMENT.search(rest) or (found is not None and _INVALID_SEGMENT.search(found)):
        return _INVALID
    return Target("file", rest if found is None else rest.replace("*", found))
