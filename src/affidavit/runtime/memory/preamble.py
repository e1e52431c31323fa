"""The preamble of a session: code that its scripts find defined, kept as events and checked when it is set.

Setting refuses what the candidate brings with it, never what was wrong before; so an entry that went stale can always
be replaced or removed, and never stands in the way of another.
"""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import orjson

from affidavit.errors import AffidavitError, NotFoundError, RejectedError, UsageError
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.engine import Engine, Engines
from affidavit.runtime.ledger import failed
from affidavit.runtime.memory.result_types import ANY_RESULTS
from affidavit.runtime.program import (
    CallResult,
    CallReturned,
    Limits,
    PreambleEntry,
    Program,
    RunOutcome,
    ScriptCall,
)
from affidavit.runtime.typecheck import Checker
from affidavit.runtime.typecheck.preamble import broken
from affidavit.runtime.typecheck.verdict import Problem
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.event_kinds import sound

__all__ = ["KINDS", "Preamble", "Trial", "clashes", "digest_of", "entries_of", "told_by"]

KINDS: Final = ("preamble-set", "preamble-removed")
"""The events that make a preamble: `preamble-set` with key and code, `preamble-removed` with the key."""

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MAX_CHARACTERS: Final = 128 << 10
_TRIAL_SECONDS: Final = 5.0
ENDLESS: Final = "preamble-limit"
"""The rule of entries that take the sandbox with them when they are loaded."""
_NOTE: Final = re.compile(r"preamble ([\w.-]+):(\d+): (.*)", re.DOTALL)

Judge = Callable[[Sequence[PreambleEntry]], Awaitable[list[Problem]]]


def entries_of(
    events: Iterable[StoredEvent], before: Sequence[PreambleEntry] = ()
) -> tuple[PreambleEntry, ...]:
    """Reduce events, in order, to the entries in the order in which their keys were first set."""
    entries = {entry.key: entry for entry in before}
    for event in sound(events):
        data = cast("dict[str, Any]", event.data)
        if event.kind == "preamble-set":
            entries[data["key"]] = PreambleEntry(key=data["key"], code=data["code"])
        elif event.kind == "preamble-removed":
            entries.pop(data["key"], None)
    return tuple(entries.values())


def digest_of(entries: Sequence[PreambleEntry]) -> str:
    """Digest of the entries that a run finds, as its `run-started` event names them."""
    return digest(canonical([[entry.key, entry.code] for entry in entries]))


class Preamble:
    """The preamble of one session, following its log.

    Args:
        store: where the log is.
        session: whose preamble.
        now: the time, seconds since the epoch.
        judge: tells everything that is wrong with some entries.
    """

    def __init__(self, store: Store, session: str, *, now: Callable[[], float], judge: Judge) -> None:
        self._store = store
        self._session = session
        self._now = now
        self._judge = judge
        self._entries: tuple[PreambleEntry, ...] = ()
        self._clashes: tuple[Problem, ...] = ()
        self._seq = 0

    def entries(self) -> tuple[PreambleEntry, ...]:
        """The entries as of now."""
        newest = self._store.events.last(self._session)
        if newest is not None and newest.seq > self._seq:
            found = self._store.events.of_kinds(self._session, KINDS, after=self._seq, until=newest.seq)
            if found:
                self._entries = entries_of(found, self._entries)
                self._clashes = tuple(clashes(self._entries))
            self._seq = newest.seq  # also where there was nothing: the log is read once
        return self._entries

    def clashes(self) -> tuple[Problem, ...]:
        """Names that two of the entries bind, as of now. Only a log that was written otherwise has any."""
        self.entries()
        return self._clashes

    async def set(self, key: str, code: str) -> None:
        """Set or replace an entry; it is in force from the next script on.

        Raises:
            UsageError: `preamble-invalid` for a malformed key or too much code.
            RejectedError: `preamble-invalid`, naming key and line of what the entry would break.
        """
        if not _KEY.fullmatch(key):
            hint = "letters, digits, dot, dash and underscore, at most 64"
            raise UsageError("preamble-invalid", f"{key!r} cannot be the key of a preamble entry", hint=hint)
        before = self.entries()
        candidate = PreambleEntry(key=key, code=code)
        if candidate in before:
            return
        after = tuple(candidate if entry.key == key else entry for entry in before)
        if candidate not in after:
            after = (*after, candidate)
        size = sum(len(entry.code) for entry in after)
        if size > _MAX_CHARACTERS:
            raise UsageError(
                "preamble-invalid",
                f"the preamble would have {size} characters, {_MAX_CHARACTERS} are allowed",
                hint="keep data in results, and helpers short",
            )
        # `df` first sees the code in the next script: what is wrong with it is told now.
        introduced = [
            problem
            for problem in _introduced(await self._all(before, key), await self._all(after, key))
            if problem.rule != ENDLESS or problem.key == key  # how long an older one takes varies
        ]
        if introduced:
            raise _rejection(key, introduced)
        self._log("preamble-set", {"key": key, "code": code})

    def remove(self, key: str) -> None:
        """Remove an entry. Always possible, whatever is wrong with it or with others.

        Raises:
            NotFoundError: `preamble-not-found`.
        """
        keys = [entry.key for entry in self.entries()]
        if key not in keys:
            known = ", ".join(keys) or "none"
            raise NotFoundError(
                "preamble-not-found", f"no preamble entry {key!r}", hint=f"there are: {known}"
            )
        self._log("preamble-removed", {"key": key})

    async def serve_set(self, arguments: Mapping[str, JsonValue]) -> CallResult:
        """Answer `df.session.set_preamble(key=, code=)`."""
        try:
            await self.set(_text(arguments, "key"), _text(arguments, "code"))
        except AffidavitError as error:
            return failed(error, 0.0)
        return CallReturned(json=b"null", completed=0.0)

    async def serve_remove(self, arguments: Mapping[str, JsonValue]) -> CallResult:
        """Answer `df.session.remove_preamble(key=)`."""
        try:
            self.remove(_text(arguments, "key"))
        except AffidavitError as error:
            return failed(error, 0.0)
        return CallReturned(json=b"null", completed=0.0)

    async def serve_get(self, _: Mapping[str, JsonValue]) -> CallResult:
        """Answer `df.session.get_preamble()`."""
        shown = [{"key": entry.key, "code": entry.code} for entry in self.entries()]
        return CallReturned(json=orjson.dumps(shown), completed=0.0)

    async def _all(self, entries: Sequence[PreambleEntry], key: str) -> list[Problem]:
        return [*clashes(entries, key), *await self._judge(entries)] if entries else []

    def _log(self, kind: str, data: dict[str, JsonValue]) -> None:
        self._store.append(Event(kind=kind, session=self._session, at=self._now(), data=data))


class Trial:
    """Finds out what is wrong with entries: reads them, has them type-checked, and loads them in a sandbox.

    Args:
        checker: the type checker; what it cannot examine is left to the trial itself.
        engines: where the entries are tried.
        stubs: what `df` is.
        now: the time, seconds since the epoch.
    """

    def __init__(self, checker: Checker, engines: Engines, *, stubs: str, now: Callable[[], float]) -> None:
        self._checker = checker
        self._engines = engines
        self._stubs = stubs
        self._now = now

    async def problems(self, entries: Sequence[PreambleEntry]) -> list[Problem]:
        """Everything that is wrong with these entries."""
        try:
            found = await self._checker.check_preamble(entries, stubs=self._stubs, results=ANY_RESULTS)
        except RuntimeError:
            found = broken(entries)
        bad = {problem.key for problem in found}
        sound = tuple(entry for entry in entries if entry.key not in bad)
        if not sound:
            return found
        engine = (await self._engines.choose("auto")).engine
        return found + await self._tried(engine, sound) if engine.has_memory else found

    async def _tried(self, engine: Engine, entries: Sequence[PreambleEntry]) -> list[Problem]:
        """What loading the entries says; one that takes the sandbox with it is found, and the others go without it."""
        found: list[Problem] = []
        while entries:
            outcome = await self._load(engine, entries)
            if outcome.reason == "finished":
                return found + told_by(outcome)
            for count in range(1, len(entries) + 1):
                outcome = await self._load(engine, entries[:count])
                if outcome.reason != "finished":
                    message = outcome.error.message if outcome.error is not None else outcome.reason
                    found.append(
                        Problem(key=entries[count - 1].key, line=1, column=1, rule=ENDLESS, message=message)
                    )
                    entries = (*entries[: count - 1], *entries[count:])
                    break
        return found

    async def _load(self, engine: Engine, entries: Sequence[PreambleEntry]) -> RunOutcome:
        limits = Limits(wall_seconds=_TRIAL_SECONDS, cpu_seconds=_TRIAL_SECONDS)
        trial = Program(source="", tree={}, clock=self._now(), limits=limits, preamble=tuple(entries))
        return await engine.run(trial, _no_calls)


async def _no_calls(call: ScriptCall) -> CallResult:
    raise AssertionError(f"a preamble called {call.path}")


def told_by(outcome: RunOutcome) -> list[Problem]:
    """What a trial of the entries says that came to its end: one problem for each that fails."""
    found = (_NOTE.match(note) for note in outcome.notes)
    return [
        Problem(
            key=one[1],
            line=int(one[2]),
            column=1,
            rule=ENDLESS if one[3].startswith("TimeoutError") else "preamble-run",
            message=one[3],
        )
        for one in found
        if one is not None
    ]


def clashes(entries: Sequence[PreambleEntry], key: str = "") -> list[Problem]:
    """Names that two entries bind. The problem is that of `key` where it is one of them, else that of the later one.

    The same import in two entries is none.
    """
    ordered = sorted(entries, key=lambda entry: entry.key == key)
    seen: dict[str, tuple[str, str]] = {}
    found: list[Problem] = []
    for entry in ordered:
        for name, (line, meaning) in _bound(entry.code).items():
            other, known = seen.setdefault(name, (entry.key, meaning))
            if other != entry.key and not (meaning and meaning == known):
                message = f"`{name}` is bound by the entry {other!r} already"
                found.append(
                    Problem(key=entry.key, line=line, column=1, rule="preamble-clash", message=message)
                )
    return found


def _bound(code: str) -> dict[str, tuple[int, str]]:
    """The names that code binds at its top level: first line, and for an import what it imports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbols = symtable.symtable(code, "<preamble>", "exec").get_symbols()
            places = _places(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        symbol.get_name(): places.get(symbol.get_name(), (1, ""))
        for symbol in symbols
        if symbol.is_assigned() or symbol.is_imported()
    }


def _places(tree: ast.Module) -> dict[str, tuple[int, str]]:
    places: dict[str, tuple[int, str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                _place(places, name, node.lineno, "")
            case ast.Name(id=name, ctx=ast.Store()):
                _place(places, name, node.lineno, "")
            case ast.Import(names=names):
                for alias in names:
                    _place(
                        places, alias.asname or alias.name.partition(".")[0], node.lineno, _import("", alias)
                    )
            case ast.ImportFrom(names=names, module=module):
                for alias in names:
                    _place(places, alias.asname or alias.name, node.lineno, _import(module or "", alias))
            case _:
                pass
    return places


def _place(places: dict[str, tuple[int, str]], name: str, line: int, meaning: str) -> None:
    if name not in places or line < places[name][0]:
        places[name] = (line, meaning)


def _import(module: str, alias: ast.alias) -> str:
    return f"{module}:{alias.name if alias.asname or module else alias.name.partition('.')[0]}"


def _introduced(before: Sequence[Problem], after: Sequence[Problem]) -> list[Problem]:
    """What is wrong afterwards and was not before; lines may have moved."""
    known = Counter((one.key, one.rule, one.message) for one in before)
    found: list[Problem] = []
    for one in after:
        name = (one.key, one.rule, one.message)
        if known[name]:
            known[name] -= 1
        else:
            found.append(one)
    return found


def _rejection(key: str, found: Sequence[Problem]) -> RejectedError:
    first = found[0]
    said: list[JsonValue] = [
        {"key": one.key, "line": one.line, "column": one.column, "rule": one.rule, "message": one.message}
        for one in found[:20]
    ]
    return RejectedError(
        "preamble-invalid",
        f"{first.place}: {first.message}",
        hint=f"correct it; the entry {key!r} was not set",
        details={"key": first.key, "line": first.line, "findings": said},
    )


def _text(arguments: Mapping[str, JsonValue], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise UsageError(
            "arguments-invalid",
            f"df.session: {name} must be text",
            hint='df.session.set_preamble(key="helpers", code="def ...")',
        )
    return value
