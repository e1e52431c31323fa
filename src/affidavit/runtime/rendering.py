"""A settlement as an agent reads it: what came of a script, bounded, and the expression that reaches the whole.

What is cut is said where it is cut and by how much. The recipe goes by what the row really is: the same bound decides
whether a value is `data` or must be loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.memory.result_types import type_of
from affidavit.runtime.memory.results import INLINE_BYTES
from affidavit.runtime.run import Run

__all__ = ["Preview", "preview", "settlement"]

_PREVIEW_BYTES: Final = 8_000
_OUTPUT: Final = 4_000
_MESSAGE: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    items: int = 3
    depth: int = 5
    characters: int = 500
    keys: int = 60


_BOUNDS: Final = (
    _Bounds(),
    _Bounds(characters=200, keys=40),
    _Bounds(items=2, depth=4, characters=100, keys=30),
    _Bounds(items=1, depth=3, characters=60, keys=20),
    _Bounds(items=1, depth=1, characters=40, keys=12),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A value within bounds.

    Attributes:
        text: JSON, with a mark wherever something was left out.
        cuts: each place that was cut, as the subscripts that lead there (`["rows"]`), and what is missing.
    """

    text: str
    cuts: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Cutter:
    bounds: _Bounds
    cuts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def of(self, value: Any, path: str, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, list):
            return self._list(cast("list[Any]", value), path, depth)
        if isinstance(value, dict):
            return self._dict(cast("dict[str, Any]", value), path, depth)
        return value

    def _text(self, value: str, path: str) -> str:
        over = len(value) - self.bounds.characters
        if over <= 0:
            return value
        self.cuts.append((path, f"{over:,} of {len(value):,} characters"))
        return f"{value[: self.bounds.characters]}... ({over:,} more characters)"

    def _list(self, value: list[Any], path: str, depth: int) -> JsonValue:
        if depth >= self.bounds.depth and value:
            self.cuts.append((path, f"{len(value):,} items"))
            return f"... (a list of {len(value):,})"
        shown = [
            self.of(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value[: self.bounds.items])
        ]
        over = len(value) - len(shown)
        if over > 0:
            self.cuts.append((path, f"{over:,} of {len(value):,} items"))
            shown.append(f"... ({over:,} more items)")
        return shown

    def _dict(self, value: dict[str, Any], path: str, depth: int) -> JsonValue:
        if depth >= self.bounds.depth and value:
            self.cuts.append((path, f"{len(value):,} keys"))
            return f"... (a mapping of {len(value):,})"
        shown: dict[str, JsonValue] = {}
        for key in list(value)[: self.bounds.keys]:
            name = key if len(key) <= self.bounds.characters else f"{key[: self.bounds.characters]}..."
            shown[name] = self.of(value[key], f"{path}[{orjson.dumps(key[:200]).decode()}]", depth + 1)
        over = len(value) - self.bounds.keys
        if over > 0:
            self.cuts.append((path, f"{over:,} of {len(value):,} keys"))
            shown["..."] = f"({over:,} more keys)"
        return shown


def preview(value: JsonValue) -> Preview:
    """A value (encoded JSON) within 8 KB: three items of a list, five levels, strings of 500 characters, or less."""
    plain: Any = values.plain(value)
    text, cutter = "", _Cutter(_BOUNDS[0])
    for bounds in _BOUNDS:
        cutter = _Cutter(bounds)
        text = orjson.dumps(cutter.of(plain, "", 0), option=orjson.OPT_INDENT_2).decode()
        if len(text.encode()) <= _PREVIEW_BYTES:
            break
    else:
        text = f"{text.encode()[: _PREVIEW_BYTES - 100].decode('utf-8', 'ignore')}... (cut here)"
    return Preview(text=text, cuts=tuple(cutter.cuts))


def settlement(run: Run) -> str:
    """What came of a script, for an agent: status, type, preview, what was cut, and how to reach the whole."""
    return "\n".join(_lines(run))


def _lines(run: Run) -> Iterator[str]:
    made = len(run.calls)
    where = f" in {run.engine}" if run.engine else ""
    yield f"run {run.number} {run.status}{where}; {made} call{'s' * (made != 1)} recorded"
    if run.check == "unchecked":
        yield f"not type-checked: {run.check_reason}"
    yield from (f"note: {note}" for note in run.notes if note != run.check_reason)
    for found in run.diagnostics:
        kind = "error" if found["blocking"] else "advice"
        hint = f"; did you mean {found['suggestion']}" if found.get("suggestion") else ""
        yield f"{kind} at {found['line']}:{found['column']}: {found['message']}{hint}"
    if run.stdout:
        yield f"printed:\n{_middle_cut(run.stdout, run.stdout_cut)}"
    if run.status == "rejected":
        yield "nothing ran; `results` did not change"
    elif run.error is not None:
        yield from _error(run, run.error)
    elif run.has_value:
        yield from _value(run)
    elif run.status == "succeeded":
        yield "it returned nothing: end the script with an expression to return its value"


def _error(run: Run, error: Mapping[str, JsonValue]) -> Iterator[str]:
    line = f" at line {error['line']}" if error.get("line") else ""
    yield f"error{line}: [{error['code']}] {str(error['message'])[:_MESSAGE]}"
    if error.get("hint"):
        yield f"hint: {error['hint']}"
    for entry in run.calls:
        yield f"it had called {entry.operation} at line {entry.line}: {entry.status}, {entry.evidence_id}"
    if run.status == "failed":
        yield f"the next script finds it as results[0].error, and as results.by_run({run.number}).error"


def _value(run: Run) -> Iterator[str]:
    size = len(orjson.dumps(run.value))
    found = type_of(run.value, run.number, size)
    yield f"value: {size:,} bytes of JSON, of type {found.annotation}"
    yield from (declaration.rstrip("\n") for declaration in found.declarations)
    shown = preview(run.value)
    yield shown.text
    # The longest place first: a cut inside of something that is cut itself helps less.
    for path, missing in sorted(shown.cuts, key=lambda cut: len(cut[0]))[:5]:
        yield f"cut: {missing} of {_expression(size, path)}"
    if len(shown.cuts) > 5:
        yield f"cut: {len(shown.cuts) - 5} more places"
    yield f"whole: {_expression(size, '')} in the next script, results.by_run({run.number}) in any later one"


def _expression(size: int, path: str) -> str:
    """What reaches a place of the value from the next script, by the bound that makes its row `data` or `large`."""
    if size <= INLINE_BYTES:
        return f"results[0].data{path}"
    return f"(await results[0].load()){path}" if path else "await results[0].load()"


def _middle_cut(text: str, dropped: int) -> str:
    """Output with its middle left out where it is long: the end often holds the answer."""
    lost = f"\n... ({dropped:,} more characters were over the limit and are lost)" if dropped else ""
    over = len(text) - _OUTPUT
    if over <= 0:
        return text.rstrip("\n") + lost
    half = _OUTPUT // 2
    return f"{text[:half]}\n... ({over:,} characters left out here) ...\n{text[-half:].rstrip()}{lost}"
