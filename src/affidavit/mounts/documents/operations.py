"""The operations of mounted documents: their chunks and files as collections, and search by words and by meaning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from affidavit.evidence.record import Producer, Subject
from affidavit.facts.arguments import text, whole
from affidavit.facts.collection import Collection, ParentRef
from affidavit.mounts.documents.collections import CHUNKS, FILES, ChunksRow
from affidavit.mounts.documents.library import Shelf
from affidavit.mounts.search.fusion import fused
from affidavit.mounts.search.replies import Hits
from affidavit.mounts.search.terms import read_question
from affidavit.namespaces.datasets.collections import collection_namespace
from affidavit.namespaces.datasets.queries import Argument, Query, beside_the_loop, operation
from affidavit.namespaces.operation import Handler, Namespace, Operation, Reply
from affidavit.namespaces.typeddicts import StubTypes

__all__ = ["FORMAT", "Opened", "documents_namespace"]

FORMAT: Final = "documents"
DEFAULT_HITS: Final = 10
MAX_HITS: Final = 100
_FUSED: Final = 100
"""How far down each ranking is looked for `hybrid`."""


class Opened(Protocol):
    """The documents as they were mounted."""

    async def __call__(self) -> tuple[Shelf, ParentRef]:
        """Open them, or say that they changed."""
        ...


def documents_namespace(
    name: str, opened: Opened, producer: Producer, *, about: str, vectors: bool
) -> Namespace:
    """The operations of a mounted folder.

    Args:
        name: the mount's name.
        opened: gives the documents at each call.
        producer: who makes the observations.
        about: what is mounted, in one line.
        vectors: whether search by meaning is offered.
    """

    def collection(spec: Any) -> Callable[[], Awaitable[Collection]]:
        async def give() -> Collection:
            shelf, parent = await opened()
            return Collection(spec, shelf.facts, parent)

        return give

    chunks, files = (
        collection_namespace(spec, collection(spec), producer=producer, authority="artifact-bytes")
        for spec in (CHUNKS, FILES)
    )
    operations = dict(chunks.operations)
    stub = StubTypes(structs=frozenset({Hits}))
    for query, ask in _searches(vectors=vectors):
        operations[query.name] = operation(
            query,
            _handler(ask, opened),
            stub,
            producer=producer,
            authority="artifact-bytes",
            confidence="derived",
        )
    return Namespace(
        name=name,
        doc=about,
        operations={key: _own(one) for key, one in operations.items()},
        children={FILES.name: replace(files, operations={k: _own(v) for k, v in files.operations.items()})},
    )


def _own(operation_: Operation) -> Operation:
    """The operation with replies that rest on the bytes alone: no record of an analysis stands behind a mount."""
    handler = operation_.handler

    async def without_parent(arguments: dict[str, Any], /) -> Reply:
        reply = await handler(arguments)
        return replace(reply, parents=())

    return replace(operation_, handler=without_parent)


_Ask = Callable[[Shelf, str, int], "_Found"]
_Found = tuple[list[tuple[int, float]], int, list[str]]
"""Numbers of chunks with their scores, how many there are in all, and the terms."""


def _searches(*, vectors: bool) -> list[tuple[Query, _Ask]]:
    found = [(_query("search", "The passages whose words fit best, by BM25."), _by_words)]
    if vectors:
        similar = "The passages whose meaning is nearest to a text, by cosine similarity of their vectors."
        hybrid = "The passages that are best by words and by meaning together, by reciprocal rank fusion."
        found.append((_query("find_similar", similar), _by_meaning))
        found.append((_query("hybrid", hybrid), _by_both))
    return found


def _query(name: str, doc: str) -> Query:
    return Query(
        name=name,
        contract=f"documents.{name}/1",
        doc=doc,
        arguments=(
            Argument(
                name="query", type=str, doc="Words; nothing in it is syntax.", required=True, positional=True
            ),
            Argument(
                name="limit",
                type=int,
                doc=f"Hits at most, 1 to {MAX_HITS}.",
                default=DEFAULT_HITS,
                bounds={"minimum": 1, "maximum": MAX_HITS, "default": DEFAULT_HITS},
            ),
        ),
        returns=Hits[ChunksRow],
        carries_evidence=True,
    )


def _by_words(shelf: Shelf, asked: str, limit: int) -> _Found:
    question = read_question(asked)
    found = shelf.index.search(question, limit)
    return list(found.hits), found.matched, list(question.terms)


def _by_meaning(shelf: Shelf, asked: str, limit: int) -> _Found:
    assert shelf.vectors is not None
    return shelf.vectors.nearest(asked, limit), len(shelf.vectors), []


def _by_both(shelf: Shelf, asked: str, limit: int) -> _Found:
    by_words, matched, terms = _by_words(shelf, asked, _FUSED)
    by_meaning, compared, _ = _by_meaning(shelf, asked, _FUSED)
    rankings = [[number for number, _ in ranking] for ranking in (by_words, by_meaning)]
    return fused(rankings, limit), max(matched, compared), terms


def _handler(ask: _Ask, opened: Opened) -> Handler:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        asked = text("query", arguments["query"])
        limit = whole("limit", arguments["limit"], 1, MAX_HITS)
        shelf, parent = await opened()

        def search() -> dict[str, Any]:
            found, matched, terms = ask(shelf, asked, limit)
            return {
                "hits": _hits(shelf, found),
                "matched": matched,
                "terms": terms,
                "source": _source(parent.subject),
                "source_coverage": parent.coverage.as_json(),
            }

        value = await beside_the_loop(search)
        return Reply(
            value=value,
            outside={"limitations": _shown(parent)},
            normalised={"query": asked, "limit": limit},
            subject=parent.subject,
            coverage=parent.coverage,
        )

    return handler


def _hits(shelf: Shelf, found: list[tuple[int, float]]) -> list[dict[str, Any]]:
    places = sorted(number - 1 for number, _ in found)
    rows: list[Any] = shelf.facts.decode(shelf.facts.rows(CHUNKS.name, places))
    by_number = {place + 1: row for place, row in zip(places, rows, strict=True)}
    return [
        {"rank": rank, "score": score, "row": by_number[number]}
        for rank, (number, score) in enumerate(found, start=1)
    ]


def _source(subject: Subject) -> dict[str, Any]:
    return {"evidence_id": "", "artifact": subject.digest, "format": subject.format}


def _shown(parent: ParentRef) -> list[dict[str, str]]:
    shown = parent.limitations[:10]
    return [{"code": one.code, "place": one.place, "message": one.message} for one in shown]
