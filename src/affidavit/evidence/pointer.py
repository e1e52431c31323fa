"""Places in JSON: RFC 6901 pointers, as citations, bundles and doors write them."""

from __future__ import annotations

import re
from typing import Final

from affidavit.evidence._paths import type_of
from affidavit.evidence.record import JsonValue

__all__ = ["NowhereError", "is_pointer", "resolve"]

_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)*", re.DOTALL)
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")


class NowhereError(LookupError):
    """A pointer leads to nothing.

    Attributes:
        above: pointer of the last place that is there; empty for the whole value.
        token: what that place does not have.
        found: what stands at that place.
    """

    def __init__(self, above: str, token: str, found: JsonValue) -> None:
        super().__init__(f"{above or 'the whole'} has no {token}")
        self.above = above
        self.token = token
        self.found = found


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer: empty, or `/` before each token, `~` only in `~0` and `~1`."""
    return _POINTER.fullmatch(text) is not None


def resolve(pointer: str, value: JsonValue) -> JsonValue:
    """The value at a pointer. Indexes of lists have no leading zeros.

    Raises:
        NowhereError: nothing stands there.
    """
    above = ""
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        kind = type_of(value)
        if kind is list and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        elif kind is dict and token in value:
            value = value[token]
        else:
            raise NowhereError(above, token, value)
        above += f"/{raw}"
    return value
