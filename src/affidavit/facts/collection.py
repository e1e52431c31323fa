"""Typed collections over immutable facts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CollectionSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSpec:
    """What a collection holds, declared once by its analyzer.

    Attributes:
        name: Python identifier: `modules`.
        contract: operation prefix without verb and version: `javascript.modules`.
        version: contract version of its operations.
        doc: what one row is, for `describe`.
        row: TypedDict class of a page row (the projection).
        item: TypedDict class of a full item (`get`); may equal `row`.
        key: the row field that identifies it.
        where: top-level row fields that `where` and `count(by=...)` accept; each becomes an indexed column. Their
            values are text, integers, booleans or None.
    """

    name: str
    contract: str
    version: int
    doc: str
    row: type
    item: type
    key: str
    where: tuple[str, ...]
