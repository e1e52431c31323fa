"""What an engine is given and what it gives back. Plain data; no engine knows anything else of the product."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue

__all__ = [
    "MAX_TIMERS",
    "RESULTS",
    "CallFailed",
    "CallHandler",
    "CallResult",
    "CallReturned",
    "Earlier",
    "Limits",
    "PreambleEntry",
    "Program",
    "Reason",
    "RunOutcome",
    "ScriptCall",
    "ScriptError",
]


MIN_MEMORY = 16 << 20
"""Less than this holds no interpreter with its libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that are enforced from outside the script. Seconds and bytes."""

    wall_seconds: float = 300.0
    cpu_seconds: float = 60.0
    memory_bytes: int = 512 << 20
    output_bytes: int = 1 << 20
    calls: int = 10_000
    argument_bytes: int = 1 << 20
    result_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        """Refuse what cannot bound anything.

        Raises:
            UsageError: `limit-invalid`.
        """
        for bound in fields(self):
            value = getattr(self, bound.name)
            least = MIN_MEMORY if bound.name == "memory_bytes" else 0
            if not least <= value < float("inf") or (
                value == 0 and bound.name not in ("calls", "output_bytes")
            ):
                raise UsageError(
                    "limit-invalid",
                    f"{bound.name} of {value} bounds nothing that could run",
                    hint=f"at least {least}" if least else "a positive number",
                    details={"path": bound.name},
                )


RESULTS: Final = "results"
"""The path of the call that fetches what a row of `results` holds: the session answers it, and it is no operation."""


MAX_TIMERS: Final = 50_000
"""So many decisions between timers and calls an engine writes down; a run with more cannot be replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreambleEntry:
    """Code that runs before the script, in the script's globals, with line numbers of its own."""

    key: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A row of `results` as engines know it; what it holds is fetched when a script asks (see `RESULTS`).

    `kind` is one of `data`, `large`, `omitted`, `error`, `done`; `size` counts bytes of JSON. `content` is sent along
    where the script will probably ask for it: its value as encoded JSON bytes, or of kind `error` its error.
    """

    number: int
    run_id: str
    kind: str
    size: int
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One script, ready to run.

    Attributes:
        source: the repaired script text. Its lines are the caller's lines.
        tree: the callable names below `df`: nested mappings with operation markers as leaves. A leaf is
            `{"$call": path, "parameters": [names in order], "positional": n, "kind": kind, "struct": bool}`. Kinds:
            `operation` is awaited; `pages` iterates the paged operation `path` by its cursors; `sync` answers at once,
            awaited or not; `helper` is the function of that name in the module whose source is `code`. With `struct`
            the keys of a mapping result are attributes as well.
        inputs: extra global names and their values, encoded (tagged JSON).
        clock: the run's frozen start, seconds since the epoch.
        seed: seed of every source of chance inside the script. Hashing of text is the same in every run.
        limits: bounds of this run.
        preamble: run before the script, in this order. An entry that fails is skipped, and a note says so.
        results: rows of the global `results`, newest first; None where the script does not mention it.
        timers: in a replay, which of timers and calls the script went on with (see `RunOutcome`), and sleeping takes no
            time; else None.
    """

    source: str
    tree: Mapping[str, JsonValue]
    inputs: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    clock: float = 0.0
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    preamble: tuple[PreambleEntry, ...] = ()
    results: tuple[Earlier, ...] | None = None
    timers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A call that the script made: the path below `df`, encoded arguments by Python name, and where it stands.

    `iteration` numbers the calls from one site, from 0.
    """

    path: str
    arguments: Mapping[str, JsonValue]
    line: int
    column: int = 0
    iteration: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReturned:
    """The value for the script, as encoded JSON bytes. `completed` moves the script's clock, seconds since epoch."""

    json: bytes
    completed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed:
    """Raised in the script as `df.Error`."""

    code: str
    message: str
    hint: str
    retryable: bool
    details: Mapping[str, JsonValue]
    completed: float


CallResult: TypeAlias = CallReturned | CallFailed
CallHandler: TypeAlias = Callable[[ScriptCall], Awaitable[CallResult]]

Reason: TypeAlias = Literal["finished", "error", "exit", "timed-out", "memory", "output", "cancelled", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptError:
    """An uncaught exception of the script, in the caller's coordinates; never a frame of the host.

    `type` is the Python class name, `code` the `errors.CODES` key that fits (`script-error` when nothing better does).
    `line` counts from 1, `column` from 0 in UTF-8 bytes, as `ast` counts them.
    """

    code: str
    type: str
    message: str
    line: int | None = None
    column: int | None = None
    traceback: str = ""
    hint: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How the run ended.

    `value` is encoded JSON bytes of the script's value, or None where it has none (`has_value` false: nothing was
    returned). `stdout` is what was printed, both streams in order, cut at the limit with `stdout_cut` telling how many
    characters were dropped. `notes` are conversions that were made (`tuple at $ became a list`).

    `timers` tells, in order, which of a timer and the end of a call the script went on with where both were pending: -1
    for the timer and 1 for the call; in a script that did not wait meanwhile, other numbers that its engine knows.
    """

    reason: Reason
    has_value: bool = False
    value: bytes | None = None
    stdout: str = ""
    stdout_cut: int = 0
    error: ScriptError | None = None
    notes: tuple[str, ...] = ()
    unawaited: tuple[tuple[str, int], ...] = ()
    timers: tuple[int, ...] = ()
    cpu_seconds: float = 0.0
