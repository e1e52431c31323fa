"""Reuse: an earlier script with other values, where the author names what varies and the places are found here.

A value is named by what it stands under (`city = "London"`, `city="London"`, `{"city": "London"}`) or by the value
itself. It must be found at exactly one place, as a whole literal. There the script reads a parameter instead, which is
an input of the new run and typed from its value.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from keyword import iskeyword
from typing import Any, Final, NoReturn, cast

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.program import Limits, PreambleEntry
from affidavit.runtime.replay.literals import Literal, literals
from affidavit.runtime.replay.recording import source_of
from affidavit.runtime.run import Request, runs_of
from affidavit.store import Store

__all__ = ["Derived", "derive", "reused"]

_LISTED: Final = 20
_SHOWN: Final = 60
_NOT: Final[Mapping[str, str]] = {
    "running": "is not settled",
    "rejected": "was rejected",
    "timed-out": "was stopped at its time limit",
    "cancelled": "was cancelled",
    "orphaned": "lost its process",
}
_WORD: Final = re.compile(r"\w+")
_OWN: Final = ("df", "results", *dir(builtins))
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A script that was made from an earlier one.

    Attributes:
        source: its text.
        inputs: its inputs, encoded: those of the earlier run, with the new values.
        parameters: for each value that varies its `name`, the `input` that holds it, what it `was`, and `line` and
            `column` (from 1, in characters) of its place in the earlier script; null for what was an input already.
    """

    source: str
    inputs: Mapping[str, JsonValue]
    parameters: tuple[Mapping[str, JsonValue], ...]


def reused(
    store: Store,
    run_id: str,
    *,
    vary: Mapping[str, Any],
    was: Mapping[str, Any],
    preamble: Iterable[PreambleEntry],
    engine: str,
    limits: Limits,
) -> Request:
    """The request that runs the script of an earlier run with other values.

    Args:
        store: where its log is.
        run_id: the earlier run.
        vary: new values by the name of what varies.
        was: for names that stand nowhere, or at several places: the value that is meant.
        preamble: what the new run finds defined.
        engine: `auto` or an engine's name.
        limits: bounds of the new run.

    Raises:
        UsageError: `reuse-invalid`: the run did not succeed, or a value is not found at exactly one place.
        NotFoundError: `run-not-found`.
    """
    events = store.events.of_run(run_id)
    views = runs_of(events)
    if not views:
        raise NotFoundError("run-not-found", f"run {run_id!r} is not here", hint="`affidavit session list`")
    [view] = views
    if view.status != "succeeded":
        message = (
            f"run {view.number} ({run_id}) {_NOT.get(view.status, 'failed')}, so its script is none to reuse"
        )
        raise UsageError(
            "reuse-invalid", message, hint="reuse a run that succeeded, or send a corrected script"
        )
    requested = cast("dict[str, Any]", events[0].data)
    before: Mapping[str, Any] = requested.get("derived_from") or {}
    known: dict[str, str] = dict(before.get("names", {}))
    derived = derive(
        source_of(events),
        requested["inputs"],
        vary=vary,
        was=was,
        known=known,
        around=[entry.code for entry in preamble],
    )
    origin: dict[str, JsonValue] = {
        "run": run_id,
        "parameters": [dict(one) for one in derived.parameters],
        "names": {**known, **{str(one["name"]): one["input"] for one in derived.parameters}},
    }
    return Request(
        source=derived.source, inputs=derived.inputs, engine=engine, limits=limits, derived_from=origin
    )


def derive(
    source: str,
    inputs: Mapping[str, JsonValue],
    *,
    vary: Mapping[str, Any],
    was: Mapping[str, Any],
    known: Mapping[str, str],
    around: Iterable[str] = (),
) -> Derived:
    """Make a script that does the same with other values.

    Args:
        source: the earlier script.
        inputs: its inputs, encoded.
        vary: new values by the name of what varies.
        was: for names that stand nowhere, or at several places: the value that is meant.
        known: names that an earlier reuse gave, and the inputs that hold their values.
        around: code that the script finds defined; parameters are called otherwise.

    Raises:
        UsageError: `reuse-invalid`, listing the places; `value-unsupported`.
    """
    for name in was:
        if name not in vary:
            _refuse(f"{name} has a value that it was and none that it becomes", "vary it as well", ())
    given, parameters = dict(inputs), list[Mapping[str, JsonValue]]()
    places = literals(source)
    found: dict[str, Literal] = {}
    for name, value in vary.items():
        own = known.get(name, name)
        if own in inputs and name not in was:
            _same_kind(name, values.decode(inputs[own]), value, ())
            parameters.append({"name": name, "input": own, "was": inputs[own], "line": None, "column": None})
            given[own] = values.encode(value)
        else:
            found[name] = _find(name, value, was.get(name, _MISSING), places)
            _same_kind(name, found[name].value, value, [found[name]])
    _apart(found)
    taken = {*_OWN, *inputs, *(word for text in (source, *around) for word in _WORD.findall(text))}
    text = source.encode("utf-8", "surrogatepass")
    for name, place in sorted(found.items(), key=lambda item: -item[1].start):
        own = _free(name, taken)
        taken.add(own)
        text = _put(text, place, own)
        given[own] = values.encode(vary[name])
        parameters.append(
            {
                "name": name,
                "input": own,
                "was": values.encode(place.value),
                "line": place.line,
                "column": place.column,
            }
        )
    order = list(vary)
    parameters.sort(key=lambda parameter: order.index(cast("str", parameter["name"])))
    return Derived(source=text.decode("utf-8", "surrogatepass"), inputs=given, parameters=tuple(parameters))


def _find(name: str, value: Any, was: Any, places: Sequence[Literal]) -> Literal:
    """The one place that a name, or a value, means.

    Where nothing stands under the name, the value may be the one that the script has: then it becomes a parameter and
    stays what it is, for later runs to vary.
    """
    fitting = [place for place in places if name in place.names] if was is _MISSING else []
    what = f"a literal that stands under the name {name!r}"
    if not fitting:
        meant = value if was is _MISSING else was
        fitting = [place for place in places if _equal(place.value, meant)]
        if fitting or was is not _MISSING:
            what = f"the value {_short(meant)} of {name}"
    if not fitting:
        hint = "it has no literal that can vary: text, numbers, True, False, None, lists and mappings of them"
        if places:
            hint = (
                f'say which value it was (--was {name}=VALUE, in Python was={{"{name}": VALUE}}); '
                "these are the script's literals"
            )
        _refuse(f"{what} is not found in the earlier script", hint, places)
    if len(fitting) > 1:
        where = ", ".join(place.shown() for place in fitting[:_LISTED])
        hint = "name the value that varies, if that is unique, or give the script one variable for it"
        _refuse(f"{what} is found {len(fitting)} times: {where}", hint, fitting)
    return fitting[0]


def _refuse(problem: str, hint: str, places: Sequence[Literal]) -> NoReturn:
    listed = [place.shown() for place in places[:_LISTED]]
    left = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    shown = f": {', '.join(listed)}{left}" if listed and "these are" in hint else ""
    raise UsageError(
        "reuse-invalid",
        problem,
        hint=hint + shown,
        details={
            "places": [
                {"line": place.line, "column": place.column, "literal": place.shown().partition(" ")[2]}
                for place in places[:_LISTED]
            ]
        },
    )


def _same_kind(name: str, before: Any, now: Any, places: Sequence[Literal]) -> None:
    """A parameter keeps its kind: whole numbers and fractions are one, and what was None may become anything."""
    was, becomes = _kind(before), _kind(now)
    if before is not None and was != becomes:
        _refuse(f"{name} was {was}, {_short(now)} is {becomes}", f"give {was}", places)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "None"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "a value of another type"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _equal(one: Any, other: Any) -> bool:
    """Whether a literal is a value, also in type: `True` is not 1."""
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(_equal, items, others))
    if isinstance(one, dict) and isinstance(other, dict):
        mine, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return mine.keys() == theirs.keys() and all(_equal(mine[key], theirs[key]) for key in mine)
    return type(one) is type(other) and bool(one == other)  # pyright: ignore[reportUnknownArgumentType]


def _apart(found: Mapping[str, Literal]) -> None:
    ordered = sorted(found.items(), key=lambda item: (item[1].start, -item[1].end))
    for (one, before), (other, after) in pairwise(ordered):
        if after.start < before.end:
            problem = f"{one} and {other} are found in one literal: {before.shown()}, {after.shown()}"
            _refuse(problem, "vary the larger one alone", [before, after])


def _free(name: str, taken: set[str]) -> str:
    """The name itself, or one like it that the script does not use."""
    if not name.isidentifier() or iskeyword(name):
        _refuse(f"{name!r} cannot be the name of a parameter", "take a Python name", ())
    own = name
    while own in taken:
        own += "_"
    return own


def _put(text: bytes, place: Literal, name: str) -> bytes:
    """Replace a literal by a name, apart from words that it touches (`1if`, `in"x"`)."""
    before, after = text[: place.start], text[place.end :]
    left = b" " if before[-1:].isalnum() or before[-1:] == b"_" else b""
    right = b" " if after[:1].isalnum() or after[:1] == b"_" else b""
    return before + left + name.encode() + right + after
