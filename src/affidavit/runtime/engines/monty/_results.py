"""A script's value as it comes out of the sandbox, made the value that Python would have had; and what was refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, make_dataclass
from typing import Any, TypeAlias, cast

from pydantic_monty import MontyClassProxy

from affidavit.evidence import values
from affidavit.runtime.engines.monty._prelude import REFUSAL

__all__ = ["Refusal", "plain_value", "read_refusal"]

_Steps: TypeAlias = tuple[Any, ...]

_HINTS = {
    "a value of type tuple": "make it a list",
    "a value of type set": "make it a sorted list",
    "a value of type frozenset": "make it a sorted list",
    "a value of type coroutine": "await it",
    "a container that holds itself": "return a copy without the cycle",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A value that could not leave the sandbox: error code, its place like `$.rows[3]`, the problem and a hint."""

    code: str
    path: str
    problem: str
    hint: str


def read_refusal(text: str) -> Refusal | None:
    """The refusal that an exception's text stands for, if it is one of the prelude."""
    if not text.startswith(REFUSAL):
        return None
    code, steps, problem = json.loads(text.removeprefix(REFUSAL))
    hint = (
        "keys must be text: use str(key)"
        if problem.startswith("a key")
        else "convert it to text, numbers, lists and mappings"
    )
    return Refusal(code=code, path=_path(steps), problem=problem, hint=_HINTS.get(problem, hint))


def _path(steps: list[Any]) -> str:
    return "$" + "".join(
        f"[{step}]"
        if isinstance(step, int)
        else f".{step}"
        if isinstance(step, str) and step.isidentifier() and len(step) < 60
        else f"[{str(step)[:60]!a}]"
        for step in steps
    )


def plain_value(raw: Any, typed: list[Any]) -> tuple[Any, list[str]]:
    """The value that records can hold, and a note for each kind of conversion.

    Args:
        raw: what crossed.
        typed: `[type name, steps]` of mappings whose type was lost in crossing.

    Raises:
        UsageError: `value-unsupported` or `value-too-deep`, with the place.
    """
    names = {tuple(steps): str(name) for name, steps in typed}
    return values.soften(_rebuilt(raw, (), names))


def _rebuilt(raw: Any, place: _Steps, names: dict[_Steps, str]) -> Any:
    """Give back the types that the sandbox's values had: of dataclasses, `Counter`, `defaultdict`."""
    if isinstance(raw, MontyClassProxy):
        fields = {name: _rebuilt(value, (*place, name), names) for name, value in raw.attributes.items()}
        return make_dataclass(raw.name, [(name, Any) for name in fields])(**fields)
    kind: type[Any] = type(raw)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        mapping = cast("dict[Any, Any]", raw)
        made = {key: _rebuilt(value, (*place, key), names) for key, value in mapping.items()}
        return type(names[place], (dict,), {})(made) if place in names else made
    if kind is list:
        return [_rebuilt(item, (*place, at), names) for at, item in enumerate(cast("list[Any]", raw))]
    if kind is tuple:
        return tuple(
            _rebuilt(item, (*place, at), names) for at, item in enumerate(cast("tuple[Any, ...]", raw))
        )
    return raw
