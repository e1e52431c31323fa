"""Queries over one collection of one snapshot: `page`, `get`, `get_many`, `count`.

Each query returns a `Reply` part by part (`Answer`): the value that is hashed, what is shown beside it, and the
parameters in normal form. The same question has the same parameters and the same value however it was put.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.evidence.record import Coverage, JsonValue, Limitation, Subject
from affidavit.facts.arguments import page_start, text, whole
from affidavit.facts.cache import QueryCache
from affidavit.facts.cursor import binding, issue_cursor
from affidavit.facts.factfile import FactFile
from affidavit.facts.selector import Selector, check_field, read_selector
from affidavit.facts.spec import CollectionSpec

__all__ = [
    "DEFAULT_LIMIT",
    "MAX_BATCH_BYTES",
    "MAX_GROUPS",
    "MAX_IDS",
    "MAX_LIMIT",
    "MAX_PAGE_BYTES",
    "MAX_SHOWN_LIMITATIONS",
    "Answer",
    "Collection",
    "CollectionSpec",
    "ParentRef",
    "Where",
]

DEFAULT_LIMIT = 64
MAX_LIMIT = 1000
MAX_IDS = 1000
MAX_PAGE_BYTES = 256 * 1024
"""Bound on the canonical bytes of a page's rows. One row is always shown, however large."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Bound on the canonical bytes of a batch's items. One item is always shown, however large."""
MAX_GROUPS = 10_000
_QUICK_ROWS = 50_000
MAX_SHOWN_LIMITATIONS = 10

Where: TypeAlias = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRef:
    """The record of the analysis that every query of its facts has as parent.

    Attributes:
        evidence_id: id of that record.
        subject: the analysed artifact.
        coverage: what of it was examined.
        limitations: the places that could not be.
    """

    evidence_id: str
    subject: Subject
    coverage: Coverage
    limitations: tuple[Limitation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query found.

    Attributes:
        value: the result to be hashed.
        parameters: the question in normal form.
        outside: fields of the result that are not hashed, by dotted path, as tagged JSON.
    """

    value: Any
    parameters: dict[str, Any]
    outside: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class Collection:
    """One collection of one snapshot. Safe to use from several threads.

    Every result is made anew from stored bytes: what a caller does with it changes nothing here.

    Args:
        spec: what the collection holds.
        facts: the open file with its rows.
        parent: the record that the rows rest on.
        cache: where found places are kept; it should live as long as a session. None makes one.
    """

    def __init__(
        self, spec: CollectionSpec, facts: FactFile, parent: ParentRef, cache: QueryCache | None = None
    ) -> None:
        self.spec = spec
        self.parent = parent
        self._facts = facts
        self._fields = facts.table(spec.name).fields
        self._cache = QueryCache() if cache is None else cache
        self._source = {
            "evidence_id": parent.evidence_id,
            "artifact": parent.subject.digest,
            "format": parent.subject.format,
        }

    @property
    def quick(self) -> bool:
        """Whether a query takes about as long as handing it to a thread and back."""
        return self.total <= _QUICK_ROWS

    @property
    def total(self) -> int:
        """How many rows the collection has."""
        return self._facts.total(self.spec.name)

    def page(
        self,
        where: Where = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """One page of the matching rows in the order of the facts.

        Args:
            where: equality by field; a list means any of; None means unknown; omitted selects everything.
            cursor: where an earlier page of the same query ended.
            offset: the first row's number among the matching ones, from 0. Not together with `cursor`.
            limit: how many rows at most, 1 to 1,000. A page also ends at 256 KB of rows.

        Raises:
            UsageError: `selector-invalid`, `limit-invalid`, `cursor-invalid` or `cursor-mismatch`.
        """
        limit = whole("limit", limit, 1, MAX_LIMIT)
        selector = self._selector(where)
        bound = binding(self.spec, self.parent.evidence_id, selector)
        start = page_start(cursor, offset, bound)
        matching = self._matching(selector, bound)
        wanted = matching[start : start + limit]
        fitting = self._fitting(wanted)
        end = start + fitting
        exhausted = end >= len(matching)
        value = {
            "rows": self._facts.decode(self._facts.rows(self.spec.name, wanted[:fitting])),
            "source": dict(self._source),
            "source_coverage": self.parent.coverage.as_json(),
            "page": {
                "offset": start,
                "returned": fitting,
                "total": len(matching),
                "exhausted": exhausted,
                "shortened": fitting < len(wanted),
            },
        }
        outside: dict[str, JsonValue] = {
            "page.next_cursor": None if exhausted else issue_cursor(bound, end),
            "limitations": self._limitations(),
            "limitations_omitted": max(0, len(self.parent.limitations) - MAX_SHOWN_LIMITATIONS),
        }
        parameters = {"where": selector.as_json(), "offset": start, "limit": limit}
        return Answer(value=value, parameters=parameters, outside=outside)

    def get(self, id: str) -> Answer:  # noqa: A002 - the name that scripts use
        """The full item with this id.

        Raises:
            NotFoundError: `item-not-found`.
        """
        found = self._facts.items(self.spec.name, [text("id", id)])
        if id not in found:
            raise NotFoundError(
                "item-not-found",
                self._missing(id),
                hint=self._where_else(),
                details={"collection": self.spec.contract, "id": id, "source": self.parent.evidence_id},
            )
        return Answer(value=self._facts.decode([found[id]])[0], parameters={"id": id})

    def get_many(self, ids: Sequence[str]) -> Answer:
        """Many full items, in the order asked, repeated where asked repeatedly; each `found` or `failed`.

        Items beyond 16 MB in all fail as `value-too-large`; they are there and can be asked for in another batch.

        Raises:
            UsageError: `arguments-invalid` for more than 1,000 ids, or ids that are not text.
        """
        asked = self._asked(ids)
        fitting, there = self._batch(asked)
        batch: list[dict[str, Any]] = []
        for at, one in enumerate(asked):
            if one not in there:
                end = {"code": "item-not-found", "message": f"no item has this {self.spec.key}"}
            elif at not in fitting:
                end = {
                    "code": "value-too-large",
                    "message": "the batch is full; ask for the rest in a second one",
                }
            else:
                end = {"item": self._facts.decode([there[one]])[0]}
            status = "found" if "item" in end else "failed"
            batch.append({"status": status, "id": one, **end, "support": [self.parent.evidence_id]})
        return Answer(value=batch, parameters={"ids": asked})

    def count(self, where: Where = None, by: str | None = None) -> Answer:
        """How many rows match, in all and by value of one field.

        Args:
            where: as for `page`.
            by: a `where` field to group by.

        Raises:
            UsageError: `selector-invalid`.
        """
        selector = self._selector(where)
        groups: list[dict[str, Any]] = []
        omitted = 0
        if by is not None:
            check_field(by, self._fields, self.spec.contract, argument="by")
            largest, seen = self._facts.groups(self.spec.name, selector, by, MAX_GROUPS)
            groups = [{"value": value, "count": number} for value, number in largest]
            omitted = seen - len(largest)
        value = {
            "count": self._facts.count(self.spec.name, selector),
            "bound": "exact" if self.parent.coverage.state == "complete" else "lower",
            "by": by,
            "groups": groups,
            "groups_omitted": omitted,
            "source": dict(self._source),
            "source_coverage": self.parent.coverage.as_json(),
        }
        return Answer(value=value, parameters={"where": selector.as_json(), "by": by})

    def _asked(self, ids: Sequence[str]) -> list[str]:
        """The ids of a batch. Raises `UsageError`."""
        if isinstance(ids, str) or not isinstance(cast(object, ids), (list, tuple)):
            raise UsageError(
                "arguments-invalid",
                "`ids` is not a list",
                hint="give a list of ids",
                details={"path": "$.ids"},
            )
        if len(ids) > MAX_IDS:
            raise UsageError(
                "arguments-invalid",
                f"`ids` has {len(ids)} entries, more than {MAX_IDS}",
                hint=f"ask in parts of {MAX_IDS}",
                details={"path": "$.ids"},
            )
        return [text(f"ids[{at}]", one) for at, one in enumerate(ids)]

    def _selector(self, where: Where) -> Selector:
        return read_selector(where, self._fields, self.spec.contract)

    def _matching(self, selector: Selector, bound: bytes) -> Sequence[int]:
        return self._cache.find(bound, lambda: self._facts.ordinals(self.spec.name, selector))

    def _fitting(self, wanted: Sequence[int]) -> int:
        """How many of these rows fit a page; decided from their sizes, before any is read."""
        if len(wanted) * self._facts.largest(self.spec.name) <= MAX_PAGE_BYTES:
            return len(wanted)
        room = MAX_PAGE_BYTES
        for at, size in enumerate(self._facts.sizes(self.spec.name, wanted)):
            room -= size
            if room < 0:
                return max(at, 1)
        return len(wanted)

    def _batch(self, asked: Sequence[str]) -> tuple[Container[int], Mapping[str, bytes]]:
        """Which places of a batch get their item, decided from the sizes, and the items that there are."""
        name = self.spec.name
        keys = list(dict.fromkeys(asked))
        if len(asked) * self._facts.largest_item(name) <= MAX_BATCH_BYTES:
            return range(len(asked)), self._facts.items(name, keys)
        sizes = self._facts.item_sizes(name, keys)
        room = MAX_BATCH_BYTES
        fitting: set[int] = set()
        for at, one in enumerate(asked):
            if one in sizes and (sizes[one] <= room or not fitting):
                fitting.add(at)
                room -= sizes[one]
        read = self._facts.items(name, list({asked[at] for at in fitting}))
        return fitting, {one: read.get(one, b"") for one in sizes}

    def _limitations(self) -> JsonValue:
        shown = self.parent.limitations[:MAX_SHOWN_LIMITATIONS]
        return values.encode(
            [{"code": one.code, "place": one.place, "message": one.message} for one in shown]
        )

    def _missing(self, one: str) -> str:
        return f"{self.spec.contract} has no item with the {self.spec.key} {ascii(one)[:200]}"

    def _where_else(self) -> str:
        hint = f"ids are the {self.spec.key} of rows that page() returns, of this snapshot"
        if self.parent.coverage.state == "complete":
            return hint
        return hint + "; the source was not examined completely, so absence here is no proof of absence"
