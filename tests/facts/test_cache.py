"""The query cache is bounded, forgets the least used, and keeps no misses."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from affidavit.facts.cache import QueryCache


class Searches:
    def __init__(self) -> None:
        self.made: list[bytes] = []

    def of(self, query: bytes, found: Sequence[int]) -> Callable[[], Sequence[int]]:
        def search() -> Sequence[int]:
            self.made.append(query)
            return found

        return search


def ask(cache: QueryCache, searches: Searches, *queries: bytes, size: int = 1) -> None:
    for query in queries:
        assert len(cache.find(query, searches.of(query, array("I", range(size))))) == size


def test_a_repeated_query_is_not_searched_again() -> None:
    cache, searches = QueryCache(), Searches()
    ask(cache, searches, b"a", b"b", b"a", b"b")
    assert searches.made == [b"a", b"b"]


def test_the_least_used_entry_goes_first() -> None:
    cache, searches = QueryCache(entries=2), Searches()
    ask(cache, searches, b"a", b"b", b"a", b"c", b"a", b"b")
    assert searches.made == [b"a", b"b", b"c", b"b"]
    assert len(cache) == 2


def test_places_are_bounded_over_all_entries() -> None:
    cache, searches = QueryCache(rows=10), Searches()
    ask(cache, searches, b"a", b"b", size=5)
    assert len(cache) == 2
    ask(cache, searches, b"c", size=1)
    assert len(cache) == 2
    ask(cache, searches, b"a", size=5)
    assert searches.made == [b"a", b"b", b"c", b"a"]


def test_what_is_too_large_is_found_and_not_kept() -> None:
    cache, searches = QueryCache(rows=10), Searches()
    ask(cache, searches, b"a", b"a", size=11)
    assert searches.made == [b"a", b"a"]
    assert len(cache) == 0


def test_ranges_cost_nothing() -> None:
    cache = QueryCache(rows=0)
    assert cache.find(b"a", lambda: range(10**9)) == range(10**9)
    assert len(cache) == 1


def test_misses_are_not_kept() -> None:
    cache, searches = QueryCache(), Searches()
    ask(cache, searches, b"a", b"a", size=0)
    assert searches.made == [b"a", b"a"]


def test_clear_forgets() -> None:
    cache, searches = QueryCache(rows=5), Searches()
    ask(cache, searches, b"a", size=5)
    cache.clear()
    assert len(cache) == 0
    ask(cache, searches, b"b", size=5)
    assert len(cache) == 1
