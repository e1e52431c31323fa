"""Graphs that are kept in memory: a few, each with what its last query found."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TypeAlias

from affidavit.facts.collection import ParentRef
from affidavit.facts.graph.queries import GraphQueries
from affidavit.facts.graph.spec import GraphSource

__all__ = ["MAX_RESIDENT", "ResidentGraphs"]

MAX_RESIDENT = 2

_Key: TypeAlias = tuple[str, int, str, str | None]


class ResidentGraphs:
    """The graphs used last. Safe to use from several threads; it should live as long as a session.

    A graph that is put out while a query runs over it stays whole until that query ends. Graphs that cannot be loaded
    leave nothing behind, and one that several threads ask for at once is loaded once.

    Args:
        capacity: how many graphs to keep at most.
    """

    def __init__(self, capacity: int = MAX_RESIDENT) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[_Key, GraphQueries] = OrderedDict()
        self._loading: dict[_Key, Future[GraphQueries]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def resident(self, graphs: GraphSource, owner: str | None, parent: ParentRef) -> GraphQueries | None:
        """The queries over a graph if it is here already."""
        with self._lock:
            return self._find(_key(graphs, owner, parent))

    def queries(self, graphs: GraphSource, owner: str | None, parent: ParentRef) -> GraphQueries:
        """The queries over a graph, which is loaded first if it is not here.

        Args:
            graphs: where it comes from.
            owner: which one it is.
            parent: the record that it rests on, as `graphs.parent(owner)` gave it.

        Raises:
            AffidavitError: whatever `graphs.load` raises.
        """
        key = _key(graphs, owner, parent)
        with self._lock:
            found = self._find(key)
            if found is not None:
                return found
            elsewhere = self._loading.get(key)
            mine = self._loading.setdefault(key, Future())
        if elsewhere is not None:
            return elsewhere.result()
        try:
            made = GraphQueries(graphs.spec, graphs.load(owner), parent, owner)
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._kept[key] = made
            del self._loading[key]
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        mine.set_result(made)
        return made

    def clear(self) -> None:
        """Let every graph go."""
        with self._lock:
            self._kept.clear()

    def _find(self, key: _Key) -> GraphQueries | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found


def _key(graphs: GraphSource, owner: str | None, parent: ParentRef) -> _Key:
    return (graphs.spec.contract, graphs.spec.version, parent.evidence_id, owner)
