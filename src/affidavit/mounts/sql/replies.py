"""What scripts get beside pages and counts: single rows in a batch, and results of their own SQL."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from typing_extensions import TypedDict

from affidavit.facts.page import CoverageDict, Source

__all__ = ["QueryColumn", "QueryResult", "RowFound", "RowMissed"]

Row = TypeVar("Row")


class RowFound(TypedDict, Generic[Row]):
    """A row of a batch that is there."""

    status: Literal["found"]
    id: Any
    item: Row


class RowMissed(TypedDict):
    """A row of a batch that is not, with the reason."""

    status: Literal["failed"]
    id: Any
    code: str
    message: str


class QueryColumn(TypedDict):
    """A column of a result: its key in the rows, what the statement calls it, the types that its values here have.

    Two columns of one name have different keys: `id`, `id_2`.
    """

    name: str
    original: str
    declared: str | None
    types: list[str]


class QueryResult(TypedDict):
    """Rows of a statement. `exhausted`: there are no more; `shortened`: bytes, not `limit`, ended it."""

    columns: list[QueryColumn]
    rows: list[dict[str, Any]]
    returned: int
    exhausted: bool
    shortened: bool
    evidence_id: str
    source: Source
    source_coverage: CoverageDict
