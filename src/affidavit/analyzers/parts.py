"""Datasets of which an outline is made first: what is asked about a part is found out when it is asked.

Each set of parts that a query names has a fact file of its own, kept like every other. A query that names none needs
everything: small artifacts are then looked into as a whole, for others the error names the command that does it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from affidavit.errors import FailedError
from affidavit.evidence.record import JsonValue
from affidavit.extensions import Artifact, PartAnalyzer, Progress
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import DEFAULT_LIMIT, Answer, Collection, CollectionSpec, ParentRef, Where
from affidavit.facts.factfile import FactFile, FactFileWriter, FactKey, FactStore
from affidavit.facts.graph import Graph, GraphSpec, graph_of_facts

__all__ = ["MAX_PARTS", "PartCollection", "PartGraphs", "Parts"]

MAX_PARTS: Final = 64
"""Parts that one query may name; one that names more needs everything."""

_OPEN: Final = 16
_PAGE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    facts: FactFile
    cache: QueryCache = field(default_factory=QueryCache)


class Parts:
    """The facts of one artifact: its outline, and what was asked of it since. Safe to use from several threads.

    Args:
        name: of the mount, for messages.
        analyzer: looks into the parts.
        artifact: what was outlined.
        key: of everything about the artifact.
        outline: the open outline.
        parent: the record that all queries rest on.
        store: where fact files are kept.
        progress: told how far an analysis is.
    """

    def __init__(
        self,
        name: str,
        analyzer: PartAnalyzer,
        artifact: Artifact,
        key: FactKey,
        outline: FactFile,
        parent: ParentRef,
        store: FactStore,
        progress: Progress,
    ) -> None:
        self.analyzer = analyzer
        self.parent = parent
        self.outline = _Kept(facts=outline)
        self._name = name
        self._artifact = artifact
        self._key = key
        self._store = store
        self._progress = progress
        self._everything: _Kept | None = None
        self._some: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def there(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of these parts that there are, sorted."""
        return tuple(sorted(self.outline.facts.item_sizes(self.analyzer.parts, names)))

    def of(self, names: Sequence[str]) -> _Kept:
        """The facts of these parts at least; of the outline alone where there are none of them."""
        found = self.there(names)
        if not found:
            return self.outline
        with self._lock:
            kept = self._whole() or self._some.get(found)
            if kept is None:
                key = FactKey(
                    artifact=self._key.artifact,
                    analyzer=self._key.analyzer,
                    version=self._key.version,
                    options={"parts": list(found)},
                )
                kept = self._some[found] = self._made(key, found)
                while len(self._some) > _OPEN:
                    self._some.popitem(last=False)
            return kept

    def everything(self, progress: Progress | None = None) -> _Kept:
        """All facts; with `progress` however long it takes.

        Raises:
            FailedError: `analysis-needed` where that takes longer than a query should.
        """
        with self._lock:
            kept = self._whole()
            if kept is None:
                if progress is None and not self.analyzer.at_once(self.outline.facts.summary):
                    command = f"affidavit analyze {self._name} --all"
                    raise FailedError(
                        "analysis-needed",
                        f"{self._name} is large, and was only outlined: this question is about all of it",
                        hint=f"name a {self.analyzer.parts.rstrip('s')} in the query, or run `{command}` once",
                        details={"command": command},
                    )
                kept = self._everything = self._made(self._key, None, progress)
            return kept

    def close(self) -> None:
        """Close the outline; what was opened since closes when nobody uses it any more."""
        self.outline.facts.close()
        self._some.clear()
        self._everything = None

    def _whole(self) -> _Kept | None:
        if self._everything is None and self._store.path(self._key).exists():
            facts = self._store.get(self._key, self.analyzer.collections)
            self._everything = None if facts is None else _Kept(facts=facts)
        return self._everything

    def _made(self, key: FactKey, parts: Sequence[str] | None, progress: Progress | None = None) -> _Kept:
        kept = self._store.get(key, self.analyzer.collections)
        if kept is None:
            remembered = self.outline.facts.meta.get("kept")

            def fill(writer: FactFileWriter) -> Mapping[str, JsonValue]:
                self.analyzer.detail(self._artifact, remembered, parts, writer, progress or self._progress)
                return {}

            page = None if parts is None else _PAGE
            kept = self._store.build(key, self.analyzer.collections, fill, page_size=page)
        return _Kept(facts=kept)


class PartCollection(Collection):
    """A collection whose rows are looked for in the facts of the parts that a query names.

    Args:
        spec: what it holds.
        parts: the facts.
    """

    def __init__(self, spec: CollectionSpec, parts: Parts) -> None:
        super().__init__(spec, parts.outline.facts, parts.parent, parts.outline.cache)
        self._parts = parts
        self._detailed = spec.name in parts.analyzer.detailed

    @property
    def quick(self) -> bool:
        """Never: something may have to be found out first."""
        return False

    def page(
        self,
        where: Where = None,
        cursor: str | None = None,
        offset: int | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Answer:
        """See `Collection.page`. Raises `FailedError` (`analysis-needed`) too."""
        if not self._detailed:
            return super().page(where, cursor, offset, limit)
        return self._over(self._selected(where)).page(where, cursor, offset, limit)

    def get(self, id: str) -> Answer:  # noqa: A002 - the name that scripts use
        """See `Collection.get`."""
        named = self._named(id)
        return super().get(id) if named is None else self._over(self._parts.of([named])).get(id)

    def get_many(self, ids: Sequence[str]) -> Answer:
        """See `Collection.get_many`. Raises `FailedError` (`analysis-needed`) too."""
        asked = self._asked(ids)
        named = {one for key in asked if (one := self._named(key)) is not None}
        if not named:
            return super().get_many(asked)
        found = self._parts.there(sorted(named))
        kept = self._parts.of(found) if len(found) <= MAX_PARTS else self._parts.everything()
        return self._over(kept).get_many(asked)

    def count(self, where: Where = None, by: str | None = None) -> Answer:
        """See `Collection.count`. Raises `FailedError` (`analysis-needed`) too."""
        if not self._detailed:
            return super().count(where, by)
        return self._over(self._selected(where)).count(where, by)

    def _over(self, kept: _Kept) -> Collection:
        return Collection(self.spec, kept.facts, self.parent, kept.cache)

    def _named(self, key: str) -> str | None:
        """The part that a key of this collection belongs to."""
        if self._detailed:
            return self._parts.analyzer.part_of(key)
        return key if self.spec.name == self._parts.analyzer.parts else None

    def _selected(self, where: Where) -> _Kept:
        """The facts that hold all rows that match."""
        selector = self._selector(where)
        owner = self._parts.analyzer.detailed[self.spec.name]
        for name, alternatives in selector.terms:
            found = [
                one if name == owner else self._parts.analyzer.part_of(one)
                for one in alternatives
                if isinstance(one, str)
            ]
            named = {one for one in found if one is not None}
            if len(found) == len(alternatives) and None not in found and len(named) <= MAX_PARTS:
                return self._parts.of(sorted(named))
        return self._parts.everything()


@dataclass(frozen=True, slots=True)
class PartGraphs:
    """The graphs of parts, and the one over all of them: a `GraphSource`.

    Attributes:
        spec: what they are made of.
        opened: gives the facts at each query; it may raise `AffidavitError`.
    """

    spec: GraphSpec
    opened: Callable[[], Parts]

    def parent(self, owner: str | None) -> ParentRef:  # noqa: ARG002 - all graphs rest on one record
        """The record of the outline."""
        return self.opened().parent

    def load(self, owner: str | None) -> Graph:
        """The graph of a part, or of everything; see `graph_of_facts`."""
        parts = self.opened()
        kept = parts.everything() if owner is None else parts.of([owner])
        return graph_of_facts(self.spec, kept.facts, owner)
