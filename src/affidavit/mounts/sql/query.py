"""A script's own SQL: one statement that reads, with parameters; rows under unique names, with the types they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import Coverage
from affidavit.facts.arguments import text, whole
from affidavit.facts.collection import Answer
from affidavit.mounts.sql.engines.engine import Bounds, Connection, Parameters
from affidavit.mounts.sql.tables import Origin

__all__ = ["DEFAULT_ROWS", "MAX_RESULT_BYTES", "MAX_ROWS", "run_query"]

DEFAULT_ROWS: Final = 1_000
MAX_ROWS: Final = 10_000
MAX_RESULT_BYTES: Final = 8 << 20


def run_query(
    connection: Connection, origin: Origin, sql: Any, params: Any, limit: Any, *, seconds: float
) -> tuple[Answer, Coverage]:
    """Run a statement.

    Args:
        connection: what it runs over.
        origin: what the result rests on.
        sql: the statement.
        params: a list for numbered parameters, a mapping for named ones, or None.
        limit: rows at most.
        seconds: how long it may take.

    Raises:
        UsageError: `arguments-invalid`, `limit-invalid`.
        RefusedError: `call-refused` for what does more than read.
        FailedError: `tool-failed`.
    """
    statement = text("sql", sql)
    if "\0" in statement:  # where some engines end it, so that it would not be what is recorded
        raise UsageError("arguments-invalid", "`sql` holds a null character", details={"path": "$.sql"})
    limit = whole("limit", limit, 1, MAX_ROWS)
    given = _parameters(params)
    bounds = Bounds(seconds=seconds, rows=limit, size=MAX_RESULT_BYTES)
    found = connection.query(statement, given, bounds)
    names = _unique(column.name for column in found.columns)
    rows = [dict(zip(names, row, strict=True)) for row in found.rows]
    columns = [
        {
            "name": name,
            "original": column.name,
            "declared": column.declared,
            "types": _types(row[place] for row in found.rows),
        }
        for place, (name, column) in enumerate(zip(names, found.columns, strict=True))
    ]
    coverage = origin.coverage(
        "what the statement reads" if found.exhausted else "the first rows of what the statement reads",
        len(rows),
        complete=found.exhausted,
    )
    value: dict[str, Any] = {
        "columns": columns,
        "rows": rows,
        "returned": len(rows),
        "exhausted": found.exhausted,
        "shortened": found.shortened,
        "source": dict(origin.source),
        "source_coverage": coverage.as_json(),
    }
    parameters = {"sql": statement, "params": _recorded(given), "limit": limit}
    return Answer(value=value, parameters=parameters), coverage


def _parameters(params: object) -> Parameters:
    if params is None:
        return ()
    if isinstance(params, (list, tuple)):
        return list(cast("Sequence[Any]", params))
    if isinstance(params, Mapping):
        return dict(cast("Mapping[str, Any]", params))
    raise UsageError(
        "arguments-invalid",
        f"`params` is of type {type(params).__name__}",
        hint="give a list for numbered parameters, or a mapping for named ones",
        details={"path": "$.params"},
    )


def _recorded(given: Parameters) -> Any:
    if isinstance(given, Mapping):
        return dict(given)
    return list(given) or None


def _unique(names: Iterable[str]) -> list[str]:
    """Each name once: what comes again gains `_2`, `_3`, ..."""
    originals = list(names)
    taken: set[str] = set()
    found: list[str] = []
    for name in originals:
        free, number = name, 2
        while free in taken or (free != name and free in originals):
            free, number = f"{name}_{number}", number + 1
        taken.add(free)
        found.append(free)
    return found


def _types(values: Iterable[Any]) -> list[str]:
    kinds: set[type] = {type(value) for value in values}
    named = sorted(kind.__name__ for kind in kinds if kind is not type(None))
    return [*named, "None"] if type(None) in kinds else named
