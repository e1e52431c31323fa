"""What queries found, kept for as long as a session lives.

Only places of rows are kept (numbers, 4 bytes each), never rows: nothing that a caller is given is shared with the
cache. Queries without a match are not kept, so that probing for absent values cannot push out useful entries.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

__all__ = ["QueryCache"]


class QueryCache:
    """Least-recently-used places of matching rows, by query. Safe to use from several threads.

    Args:
        entries: how many queries to keep at most.
        rows: how many places to keep at most, over all entries.
    """

    def __init__(self, *, entries: int = 256, rows: int = 4_000_000) -> None:
        self._entries = entries
        self._rows = rows
        self._held = 0
        self._kept: OrderedDict[bytes, Sequence[int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, query: bytes, search: Callable[[], Sequence[int]]) -> Sequence[int]:
        """The places that a query matches: the kept ones, or what `search` finds.

        Args:
            query: digest of all that decides the result (see `cursor.binding`).
            search: runs the query; what it returns must not be changed afterwards.
        """
        with self._lock:
            kept = self._kept.get(query)
            if kept is not None:
                self._kept.move_to_end(query)
                return kept
        found = search()
        if found:
            self._keep(query, found)
        return found

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._held = 0

    def _keep(self, query: bytes, found: Sequence[int]) -> None:
        cost = _cost(found)
        if cost > self._rows:
            return
        with self._lock:
            if query in self._kept:
                return
            self._kept[query] = found
            self._held += cost
            while len(self._kept) > self._entries or self._held > self._rows:
                _, oldest = self._kept.popitem(last=False)
                self._held -= _cost(oldest)


def _cost(found: Sequence[int]) -> int:
    return 0 if isinstance(found, range) else len(found)
