"""The shapes that every collection returns, whatever it holds.

These are plain data: what is hashed, what crosses into a script and what `--json` prints are all made from them.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from typing_extensions import TypedDict

__all__ = [
    "Count",
    "CoverageDict",
    "Found",
    "Group",
    "LimitationDict",
    "Missed",
    "Page",
    "PageInfo",
    "Source",
]

Row = TypeVar("Row")


class CoverageDict(TypedDict):
    """What of the source was examined (see `evidence.record.Coverage`). Never says anything about paging."""

    state: Literal["complete", "partial", "unknown"]
    selection: str
    examined: int
    omitted: int
    unknown: int
    bounds: dict[str, int]


class LimitationDict(TypedDict):
    """A place in the source that could not be examined."""

    code: str
    place: str
    message: str


class Source(TypedDict):
    """Where rows come from: the record of the analysis, and the digest and format of the analysed bytes."""

    evidence_id: str
    artifact: str
    format: str


class PageInfo(TypedDict):
    """Where this page stands among the *matching rows*: says nothing about the source's coverage.

    `total` counts the matching rows of the dataset; `exhausted` means that no row follows. `shortened` is true when
    the byte bound, not `limit`, ended the page. `next_cursor` is outside the hash.
    """

    offset: int
    returned: int
    total: int
    exhausted: bool
    shortened: bool
    next_cursor: str | None


class Page(TypedDict, Generic[Row]):
    """One page of rows with what they rest on.

    `limitations` shows the first 10 places that could not be examined and `limitations_omitted` counts the others; all
    of them stand once, in the record `source.evidence_id`. Neither is hashed.
    """

    rows: list[Row]
    evidence_id: str
    source: Source
    source_coverage: CoverageDict
    page: PageInfo
    limitations: list[LimitationDict]
    limitations_omitted: int


class Group(TypedDict):
    """How many of the counted rows have one `value` (text, integer, boolean or None: unknown) of the `by` field."""

    value: Any
    count: int


class Count(TypedDict):
    """How many rows match. `bound` is `lower` when the source was not examined completely.

    `groups` holds one entry per value of the `by` field, largest first, then by value (unknown, booleans, integers,
    text by code point); empty without `by`. `groups_omitted` counts the values beyond the first 10,000.
    """

    evidence_id: str
    count: int
    bound: Literal["exact", "lower"]
    by: str | None
    groups: list[Group]
    groups_omitted: int
    source: Source
    source_coverage: CoverageDict


class Found(TypedDict, Generic[Row]):
    """A batch item that is there. `support` lists the records that it rests on."""

    status: Literal["found"]
    id: str
    item: Row
    support: list[str]


class Missed(TypedDict):
    """A batch item that is not, with the reason. `support` lists the records that were searched."""

    status: Literal["failed"]
    id: str
    code: str
    message: str
    support: list[str]
