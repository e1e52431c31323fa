"""The Protocol that every engine implements, and the choice among them."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import JsonValue
from affidavit.runtime.program import CallHandler, PreambleEntry, Program, RunOutcome

__all__ = ["Choice", "Engine", "Engines", "Lacking", "Refusal", "without_memory"]

_ASKED: Final = "asked for"
_PROVEN: Final = "isolation was tried and holds"


class Refusal(Protocol):
    """A construct that an engine cannot run as Python means it."""

    @property
    def line(self) -> int:
        """1-based line of the script."""
        ...

    @property
    def column(self) -> int:
        """0-based column in UTF-8 bytes, as `ast` counts them; whoever shows it counts characters from 1."""
        ...

    @property
    def construct(self) -> str:
        """Short stable name of the construct."""
        ...

    @property
    def message(self) -> str:
        """What cannot be run, one line."""
        ...


class Engine(Protocol):
    """Runs scripts in isolation. Several runs may be under way at once; each starts fresh.

    Attributes:
        name: `cpython` or `monty`.
        has_memory: whether it offers `results` and the preamble to scripts.
    """

    name: str
    has_memory: bool

    async def start(self) -> None:
        """Make ready to run. Raises `FailedError(engine-unavailable)` where isolation cannot be proven."""
        ...

    def unsupported(self, source: str, tree: Mapping[str, JsonValue]) -> Sequence[Refusal]:
        """What of the script this engine would refuse or do differently from Python; empty when nothing."""
        ...

    async def run(
        self, program: Program, handler: CallHandler, *, starts: asyncio.Event | None = None
    ) -> RunOutcome:
        """Run one program. Cancelling the task kills the sandbox and joins every call it made.

        With `starts`, nothing of the script or its preamble runs before that is set.
        """
        ...

    async def close(self) -> None:
        """End everything that was started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A use of what this engine does not offer."""

    line: int
    column: int
    construct: str
    message: str


def without_memory(
    source: str, preamble: Sequence[PreambleEntry], *, uses_results: bool
) -> Iterator[Lacking]:
    """What of a script an engine cannot do that has neither `results` nor a preamble: its first use of each."""
    words = {"results"} if uses_results else set[str]()
    words |= {name for entry in preamble for name in _defined(entry.code)}
    for word in sorted(words):
        found = re.search(rf"\b{word}\b", source)
        if found is not None:
            line = source.count("\n", 0, found.start()) + 1
            begin = source.rfind("\n", 0, found.start()) + 1
            column = len(source[begin : found.start()].encode("utf-8", "surrogatepass"))
            what = "earlier results" if word == "results" else "the session's preamble"
            message = f"`{word}` comes from {what}, which this engine does not offer"
            yield Lacking(line=line, column=column, construct="memory", message=message)


def _defined(code: str) -> Iterator[str]:
    """The names that code binds at its top level."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        for part in ast.walk(node):
            match part:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name
                case _:
                    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An engine that is ready, and why it was taken."""

    engine: Engine
    reason: str


class Engines:
    """The engines of a process, made on first use and started once.

    Args:
        makers: by engine name, in order of preference for `auto`.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Engine]]) -> None:
        self._makers = dict(makers)
        self._ready: dict[str, Engine] = {}
        self._broken: dict[str, AffidavitError] = {}
        self._starting = asyncio.Lock()

    async def choose(self, wanted: str) -> Choice:
        """A started engine. `auto` takes the first whose isolation is proven here, never an unprotected one.

        Raises:
            UsageError: `usage`, when no engine has this name.
            FailedError: `engine-unavailable`, with what is missing.
        """
        if wanted != "auto":
            if wanted not in self._makers:
                raise UsageError(
                    "usage", f"no engine {wanted!r}", hint=f"one of auto, {', '.join(self._makers)}"
                )
            return Choice(engine=await self._started(wanted), reason=_ASKED)
        refused: list[str] = []
        for name in self._makers:
            try:
                engine = await self._started(name)
            except FailedError as error:
                refused.append(f"{name} is not available: {error.message}")
                continue
            reason = "; ".join(refused) or _PROVEN
            return Choice(engine=engine, reason=reason)
        raise FailedError(
            "engine-unavailable",
            "; ".join(refused),
            hint="`affidavit doctor` tries each isolation layer and says more",
        )

    def ready(self, wanted: str) -> Choice | None:
        """What `choose` gives, where nothing has to be started for it."""
        first = next(iter(self._makers)) if wanted == "auto" else wanted
        if first not in self._ready:
            return None
        reason = _PROVEN if wanted == "auto" else _ASKED
        return Choice(engine=self._ready[first], reason=reason)

    async def _started(self, name: str) -> Engine:
        async with self._starting:
            if name in self._broken:
                raise self._broken[name]
            if name not in self._ready:
                engine = self._makers[name]()
                try:
                    await engine.start()
                except FailedError as error:
                    self._broken[name] = error
                    raise
                self._ready[name] = engine
            return self._ready[name]

    async def close(self) -> None:
        """Close every engine that was started."""
        ready, self._ready = list(self._ready.values()), {}
        for engine in ready:
            await engine.close()
