"""Where in a value something stands, for errors. Standard library only: also imported inside the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from affidavit.errors import UsageError

__all__ = ["Refused", "path_of", "too_deep", "type_of"]

type_of: Final[Callable[[Any], type[Any]]] = type
"""`type`, as strict type checking wants it for values of any type."""

_SHOWN_KEY = 60  # characters of a key that a path shows


class Refused(Exception):  # noqa: N818 - not an error of the product: `as_error` makes one at the door
    """A value that cannot be held. Collects the path from the inside out while the walk unwinds."""

    def __init__(self, problem: str, hint: str = "", *, code: str = "value-unsupported") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.code = code
        self.steps: list[Any] = []

    def as_error(self, root: Any) -> UsageError:
        """The error with its path. A nesting that turns out to be a cycle is named as one."""
        steps = self.steps[::-1]
        problem, hint, code = self.problem, self.hint, self.code
        if code == "value-too-deep":
            repeat = _cycle(root, steps)
            if repeat is not None:
                steps, code = repeat, "value-unsupported"
                problem, hint = "a container that holds itself", "return a copy without the cycle"
        path = path_of(steps)
        return UsageError(code, f"{problem} at {path}", hint=hint, details={"path": path})


def too_deep(limit: int) -> Refused:
    """The refusal of nesting beyond `limit` levels."""
    return Refused(
        f"more than {limit} levels of nesting",
        "flatten the value or return a part of it",
        code="value-too-deep",
    )


def path_of(steps: list[Any]) -> str:
    """`["rows", 3, "x"]` as `$.rows[3].x`; keys that are not identifiers are quoted, long ones are cut."""
    return "$" + "".join(map(_step, steps))


def _step(step: Any) -> str:
    if type(step) is int:
        return f"[{step}]"
    if type(step) is str and step.isidentifier() and len(step) <= _SHOWN_KEY:
        return f".{step}"
    if isinstance(step, str):
        return f"[{str(step[:_SHOWN_KEY])!a}{'...' if len(step) > _SHOWN_KEY else ''}]"
    return f"[key of type {type(step).__name__}]"


def _cycle(root: Any, steps: list[Any]) -> list[Any] | None:
    """The path at which a container on the way down is met again, or None."""
    seen: set[int] = set()
    here = root
    for depth, step in enumerate(steps):
        if id(here) in seen:
            return steps[:depth]
        seen.add(id(here))
        try:
            here = here[step]
        except (LookupError, TypeError):
            return None
    return steps if id(here) in seen else None
