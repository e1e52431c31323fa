"""A script's value as it comes out of the sandbox, made the value that Python would have had."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any, cast

from pydantic_monty import MontyClassProxy

from affidavit.evidence import values

__all__ = ["plain_value"]


def plain_value(raw: Any) -> tuple[Any, list[str]]:
    """The value that records can hold, and a note for each kind of conversion.

    Raises:
        UsageError: `value-unsupported` or `value-too-deep`, with the place.
    """
    return values.soften(_rebuilt(raw))


def _rebuilt(raw: Any) -> Any:
    """Replace the stand-ins of the sandbox's dataclasses by real ones."""
    if isinstance(raw, MontyClassProxy):
        fields = {name: _rebuilt(value) for name, value in raw.attributes.items()}
        made = make_dataclass(raw.name, [(name, Any) for name in fields])
        return made(**fields)
    kind = type(raw)
    if kind is dict:
        mapping = cast("dict[Any, Any]", raw)
        return {key: _rebuilt(value) for key, value in mapping.items()}
    if kind is list:
        return [_rebuilt(item) for item in cast("list[Any]", raw)]
    if kind is tuple:
        return tuple(_rebuilt(item) for item in cast("tuple[Any, ...]", raw))
    return raw
