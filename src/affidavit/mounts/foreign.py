"""What crosses to and from sources that speak JSON: names in records, arguments that JSON can say."""

from __future__ import annotations

import math
from typing import Any, Final, cast
from urllib.parse import quote

from affidavit.errors import UsageError
from affidavit.namespaces._jsonschema import json_path

__all__ = ["json_path", "label", "plain_arguments"]

_SAFE: Final = "-_.~@+:"


def label(name: str) -> str:
    """A foreign name as a part of a contract name: itself where it is plain, else with its odd bytes escaped.

    >>> label("get_forecast"), label("a b/c")
    ('get_forecast', 'a%20b%2Fc')
    """
    return quote(name, safe=_SAFE, errors="surrogatepass")


def plain_arguments(arguments: dict[str, Any], *, what: str, torn: bool = True) -> dict[str, Any]:
    """The same arguments, where JSON can say them without loss.

    Args:
        arguments: by their original names.
        what: what takes them, for messages.
        torn: whether text may hold half a surrogate pair, which JSON can say and UTF-8 cannot.

    Raises:
        UsageError: `arguments-invalid`, naming the place: bytes, dates, numbers without end.
    """
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(arguments, ())]
    while stack:
        item, place = stack.pop()
        if isinstance(item, dict):
            stack.extend((child, (*place, key)) for key, child in cast("dict[str, Any]", item).items())
        elif isinstance(item, list):
            stack.extend((child, (*place, at)) for at, child in enumerate(cast("list[Any]", item)))
        elif not (item is None or isinstance(item, (str, bool, int)) or _is_finite(item)) or (
            not torn and isinstance(item, str) and _is_torn(item)
        ):
            path = json_path(place)
            shown = str(item) if isinstance(item, float) else type(item).__name__
            shown = "half a surrogate pair" if isinstance(item, str) else shown
            raise UsageError(
                "arguments-invalid",
                f"{what} takes JSON, and {shown} at {path} is none",
                hint="Say it as text, in the form that the far side reads.",
                details={"path": path},
            )
    return arguments


def _is_torn(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_finite(item: Any) -> bool:
    return isinstance(item, float) and math.isfinite(item)
