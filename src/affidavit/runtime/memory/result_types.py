"""The types of `results`: one stub per row, inferred from its value, and a small one that says which row is where.

A row's stub never changes, so the checker reads it once. Only rows that a script can name (`results[0]`,
`results.by_run(7)`, `results.last`) are typed; what is reached by a computed index is `Any`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import orjson

from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.infer import Inferred, infer
from affidavit.runtime.memory.mentions import Mentions
from affidavit.runtime.memory.results import ResultRow
from affidavit.runtime.typecheck.surroundings import ResultTypes, module_name

__all__ = ["ANY_RESULTS", "TYPED_BYTES", "as_type", "result_types", "type_of"]

_TYPED_BYTES: Final = 4 << 20
"""The types of longer values are not inferred: that would take longer than reading them."""

TYPED_BYTES: Final = 2 << 10
"""The types of longer values are kept with their settlements: whoever resumes a session need not infer twenty."""

ANY_RESULTS: Final = ResultTypes(session="from typing import Any\n\nresults: Any\n")
"""`results` where nothing is known of it."""

_HEAD: Final = """\
from typing import Any, Literal, NotRequired, TypedDict
"""
_MODULES: Final = ("datetime", "decimal", "uuid")
_ERROR: Final = """\
class EarlierError{number}(TypedDict):
    code: str
    type: str
    message: str
    hint: str
    line: int | None
"""
_ROW: Final = """\
class EarlierResult{number}:
    @property
    def number(self) -> Literal[{number}]: ...
    @property
    def run_id(self) -> str: ...
    @property
    def kind(self) -> Literal["{kind}"]: ...
    @property
    def size(self) -> int: ...
    @property
    def data(self) -> {data}: ...
    @property
    def error(self) -> {error}: ...
    async def load(self) -> {load}: ...
    async def rerun(self, *, was: dict[str, Any] = ..., **vary: Any) -> Any: ...
"""
_SESSION: Final = """\
from collections.abc import Iterator
from typing import Any, Literal, overload
{imports}
class AnyEarlierResult:
    number: int
    run_id: str
    kind: Literal["data", "large", "omitted", "error", "done"]
    size: int
    data: Any
    error: Any
    async def load(self) -> Any: ...
    async def rerun(self, *, was: dict[str, Any] = ..., **vary: Any) -> Any: ...

class EarlierResults:
    def __len__(self) -> Literal[{length}]: ...
    def __iter__(self) -> Iterator[AnyEarlierResult]: ...
    def __reversed__(self) -> Iterator[AnyEarlierResult]: ...
    def __contains__(self, item: object, /) -> bool: ...
{items}
    @overload
    def __getitem__(self, index: int, /) -> AnyEarlierResult: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[AnyEarlierResult]: ...
{numbers}
    @property
    def last(self) -> {last}: ...

results: EarlierResults
"""


def type_of(value: JsonValue, number: int, size: int) -> Inferred:
    """The type of a run's value (encoded JSON): at most about 3 KB of source."""
    if size > _TYPED_BYTES:
        return Inferred(annotation="Any")
    tagged = b'"$' in orjson.dumps(value)
    return infer(values.decode(value) if tagged else value, name=f"Run{number}")


def as_type(found: Inferred) -> dict[str, JsonValue]:
    """A type as a settlement keeps it."""
    return {"annotation": found.annotation, "declarations": list(found.declarations)}


def result_types(
    rows: Sequence[ResultRow],
    named: Mentions,
    by_run: Callable[[int], ResultRow | None],
    known_stubs: dict[int, str],
) -> ResultTypes:
    """The stubs of `results` for a script that names these rows.

    Args:
        rows: the rows, newest first.
        named: what the script names.
        by_run: finds a row by its run's number, also beyond the last twenty.
        known_stubs: stubs that were made before, by run number; new ones are added.
    """
    if named.bound:
        return ANY_RESULTS
    length = len(rows)
    at: dict[int, ResultRow] = {
        position: rows[position] for position in sorted(named.positions) if -length <= position < length
    }
    numbered = {number: by_run(number) for number in sorted(named.numbers)}
    known = {number: row for number, row in numbered.items() if row is not None}
    last = next((row for row in rows if row.kind != "error"), None) if named.last else None
    used = {row.number: row for row in [*at.values(), *known.values(), *([last] if last else [])]}
    for number, row in used.items():
        if number not in known_stubs:
            known_stubs[number] = _row_stub(row)
    stubs = {number: known_stubs[number] for number in sorted(used)}
    imports = "".join(
        f"from {module_name(stub)} import EarlierResult{number} as EarlierResult{number}\n"
        for number, stub in stubs.items()
    )
    items = "".join(
        f"    @overload\n    def __getitem__(self, index: Literal[{position}], /)"
        f" -> EarlierResult{row.number}: ...\n"
        for position, row in at.items()
    )
    session = _SESSION.format(
        imports=imports,
        length=length,
        items=items,
        numbers=_by_run(known),
        last=f"EarlierResult{last.number}" if last else "AnyEarlierResult",
    )
    return ResultTypes(
        session=session,
        rows=tuple(stubs.values()),
        length=length,
        numbers=tuple(row.number for row in rows),
        unknown=frozenset(number for number, row in numbered.items() if row is None),
        has_last=any(row.kind != "error" for row in rows),
    )


def _by_run(known: Mapping[int, ResultRow]) -> str:
    general = "    def by_run(self, number: int) -> AnyEarlierResult: ..."
    if not known:
        return general
    special = "".join(
        f"    @overload\n    def by_run(self, number: Literal[{number}]) -> EarlierResult{number}: ...\n"
        for number in known
    )
    return f"{special}    @overload\n{general}"


def _inferred(row: ResultRow) -> Mapping[str, JsonValue]:
    """The type of a value that none was kept with; that of a large one is not read for it."""
    found = type_of(row.value, row.number, row.size) if row.kind == "data" else Inferred(annotation="Any")
    return as_type(found)


def _row_stub(row: ResultRow) -> str:
    number, declared = row.number, list[str]()
    error = data = load = "None"
    if row.kind in ("data", "large"):
        kept: Any = row.type or _inferred(row)
        declared += cast("list[str]", kept["declarations"])
        data = load = kept["annotation"]
        if row.kind == "large":
            data = f"TooLargeUse_await_results_by_run_{number}_load"
    elif row.kind == "error":
        declared.append(_ERROR.format(number=number))
        error = f"EarlierError{number}"
        data = load = f"FailedUse_results_by_run_{number}_error"
    elif row.kind == "omitted":
        data = load = f"TheValueOf_run_{number}_is_gone"
    if not (data == load or data.startswith("TooLarge")) or data.startswith(
        ("TooLarge", "FailedUse", "TheValue")
    ):
        declared.append(f"class {data}: ...\n")
    row_text = _ROW.format(number=number, kind=row.kind, data=data, error=error, load=load)
    text = "\n".join([*declared, row_text])
    # Only what is used: the checker reads each of these modules when it first meets it.
    imports = "".join(f"import {name} as _{name}\n" for name in _MODULES if f"_{name}." in text)
    return f"{_HEAD}{imports}\n{text}"
