"""May it be called: effects, grants and budgets, as pure functions.

`read` is allowed by default; `write` and `external` need a grant. Only a person grants, by the command line or by
mounting; a script cannot. A decision always carries its reasons, so that a refusal can say the next
step and a reviewer can see why a call was allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from affidavit.errors import UsageError
from affidavit.namespaces.operation import Effect

__all__ = ["Budget", "Decision", "Grant", "Spent", "decide", "parse_grant", "within_budget"]

_EFFECTS: tuple[Effect, ...] = ("read", "write", "external")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's permission: one effect, for the operations whose path matches a shell pattern.

    Attributes:
        effect: what is permitted.
        pattern: `fnmatch` pattern over the path below `df` (`tool.weather.*`); `*` is everything.
        origin: where the grant came from, for the reasons of a decision (`mount weather`, `--grant`).
    """

    effect: Effect
    pattern: str = "*"
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one run may spend. Seconds are wall seconds; bytes are those of results handed to the script."""

    calls: int = 10_000
    result_bytes: int = 512 << 20
    seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has spent so far."""

    calls: int = 0
    result_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Allowed or not, and why."""

    allowed: bool
    reasons: tuple[str, ...]
    hint: str = ""


# The two decisions of nearly every call, made once.
_READ = Decision(allowed=True, reasons=("read is allowed by default",))
_WITHIN = Decision(allowed=True, reasons=("within budget",))


def decide(path: str, effect: Effect, grants: Iterable[Grant]) -> Decision:
    """Decide whether the operation at `path` with this effect may be called.

    More grants never allow less.

    >>> decide("db.app.modules.page", "read", ()).allowed
    True
    >>> decide("tool.shop.buy", "write", ()).allowed
    False
    >>> decide("tool.shop.buy", "write", [Grant(effect="write", pattern="tool.shop.*")]).allowed
    True
    """
    for grant in grants:
        if grant.effect == effect and fnmatchcase(path, grant.pattern):
            return Decision(
                allowed=True,
                reasons=(f"{effect} granted for {grant.pattern} by {grant.origin or 'the caller'}",),
            )
    if effect == "read":
        return _READ
    return Decision(
        allowed=False,
        reasons=(f"{path} has the effect {effect}, which nobody granted",),
        hint=f"a person can allow it with --grant {effect}:{path}",
    )


def within_budget(spent: Spent, budget: Budget) -> Decision:
    """Decide whether one more call fits.

    >>> within_budget(Spent(calls=10_000), Budget()).reasons
    ('all 10000 calls of this run are spent',)
    """
    if spent.calls >= budget.calls:
        reason = f"all {budget.calls} calls of this run are spent"
    elif spent.result_bytes >= budget.result_bytes:
        reason = f"all {budget.result_bytes} bytes of results of this run are spent"
    elif spent.seconds >= budget.seconds:
        reason = f"all {budget.seconds:g} seconds of this run are spent"
    else:
        return _WITHIN
    return Decision(
        allowed=False,
        reasons=(reason,),
        hint="ask for fewer, larger pages, or split the work into several scripts",
    )


def parse_grant(text: str, *, origin: str = "--grant") -> Grant:
    """Read `EFFECT` or `EFFECT:PATTERN`.

    Raises:
        UsageError: `usage`, when the effect is none of read, write, external.

    >>> parse_grant("external:tool.weather.*").pattern
    'tool.weather.*'
    """
    effect, _, pattern = text.partition(":")
    for known in _EFFECTS:
        if effect == known:
            return Grant(effect=known, pattern=pattern or "*", origin=origin)
    raise UsageError("usage", f"no such effect: {effect!r}", hint=f"one of {', '.join(_EFFECTS)}")
