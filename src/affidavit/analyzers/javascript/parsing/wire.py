"""What a parser process answers: the facts of one file as lines of compact JSON.

JSON and not pickle: the process that parsed hostile source is not trusted to hand objects over. The first line holds
encoding, the first offset that is invalid, and the ranges that could not be read. Each other line holds some sites or
some exports, so that a file with very many is never in memory as a whole.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

import orjson

if TYPE_CHECKING:
    from affidavit.analyzers.javascript._facts import (
        Encoding,
        Export,
        ExportForm,
        FileFacts,
        Reference,
        ReferenceKind,
        Span,
    )

_T = TypeVar("_T")

__all__ = ["Exported", "FileReport", "Problem", "Site", "decode", "encode", "unpack_exports"]

_TOGETHER: Final = 500
"""Sites or exports in a line."""
_SITES: Final = b"s"
_EXPORTS: Final = b"e"
_EXCERPT: Final = 240
"""Bytes of source text that a full item quotes of a reference or an export."""


class Site(NamedTuple):
    """One reference expression. Lines from 1; columns and offsets in UTF-8 bytes from 0; ends are exclusive."""

    kind: ReferenceKind
    specifier: str | None
    base: str
    line: int
    column: int
    start: int
    end_line: int
    end_column: int
    end: int
    statement_line: int
    statement_column: int
    statement_start: int
    statement_end_line: int
    statement_end_column: int
    statement_end: int
    bindings: list[str]
    excerpt: str
    names: list[tuple[str, list[str]]]


class Exported(NamedTuple):
    """One place that exports a name; units as in `Site`."""

    name: str
    form: ExportForm
    local: str | None
    specifier: str | None
    type_only: bool
    line: int
    column: int
    start: int
    end_line: int
    end_column: int
    end: int
    excerpt: str


class Problem(NamedTuple):
    """One range that the grammar could not read."""

    reason: str
    line: int
    column: int
    start: int
    end: int


class _Rows(Generic[_T]):
    """Sites or exports in lines of an answer, decoded each time that they are gone through."""

    def __init__(self, lines: list[memoryview], make: Callable[[list[Any]], _T]) -> None:
        self._lines = lines
        self._make = make

    def __iter__(self) -> Iterator[_T]:
        for line in self._lines:
            yield from map(self._make, cast(list[Any], orjson.loads(line))[1])


class FileReport(NamedTuple):
    """The facts of one file. Few sites and exports are lists; many are decoded each time that they are gone through."""

    encoding: Encoding
    invalid_at: int | None
    sites: Iterable[Site]
    problems: list[Problem]
    exports: Iterable[Exported]
    packed_exports: bytes
    """The exports as `unpack_exports` reads them."""


def encode(facts: FileFacts, data: bytes) -> bytes:
    """The answer for one file."""
    problems = [
        [one.reason, one.span.start.line, one.span.start.column, one.span.start.offset, one.span.end.offset]
        for one in facts.errors
    ]
    parts = [orjson.dumps([facts.encoding, facts.invalid_at, problems])]
    for at in range(0, len(facts.references), _TOGETHER):
        sites = [_site_row(one, data) for one in facts.references[at : at + _TOGETHER]]
        parts.append(orjson.dumps([_SITES.decode(), sites]))
    for at in range(0, len(facts.exports), _TOGETHER):
        exports = [_export_row(one, data) for one in facts.exports[at : at + _TOGETHER]]
        parts.append(orjson.dumps([_EXPORTS.decode(), exports]))
    return b"\n".join(parts)


def _site_row(one: Reference, data: bytes) -> list[Any]:
    return [
        one.kind,
        _text(one.specifier),
        one.base,
        *_span(one.span),
        *_span(one.statement),
        list(map(_text, one.bindings)),
        _excerpt(data, one.span),
        [[_text(name), list(map(_text, bound))] for name, bound in one.names],
    ]


def _export_row(one: Export, data: bytes) -> list[Any]:
    return [
        _text(one.name),
        one.form,
        _text(one.local),
        _text(one.specifier),
        one.type_only,
        *_span(one.span),
        _excerpt(data, one.span),
    ]


def decode(body: bytes) -> FileReport:
    """Read an answer. Raises `ValueError`, `TypeError` or `LookupError` when it is none."""
    first, *lines = _lines(body)
    encoding, invalid_at, problems = cast(list[Any], orjson.loads(first))
    of: dict[bytes, list[memoryview]] = {_SITES: [], _EXPORTS: []}
    for line in lines:
        of[bytes(line[2:3])].append(line)
    return FileReport(
        encoding,
        invalid_at,
        _checked(_Rows(of[_SITES], _site), few=len(of[_SITES]) < 2),
        [Problem(*row) for row in problems],
        _checked(_Rows(of[_EXPORTS], _exported), few=len(of[_EXPORTS]) < 2),
        b"\n".join(of[_EXPORTS]),
    )


def unpack_exports(packed: bytes) -> Iterable[Exported]:
    """The exports of a report."""
    return _Rows(_lines(packed), _exported) if packed else ()


def _checked(rows: _Rows[_T], *, few: bool) -> Iterable[_T]:
    """The rows, once it is seen that every one can be read."""
    if few:
        return list(rows)
    deque(rows, maxlen=0)
    return rows


def _lines(body: bytes) -> list[memoryview]:
    view = memoryview(body)
    ends = [match.start() for match in re.finditer(b"\n", body)]
    starts = [0, *(end + 1 for end in ends)]
    return [view[start:end] for start, end in zip(starts, [*ends, len(body)], strict=True)]


def _site(row: list[Any]) -> Site:
    row[1] = _untext(row[1])
    row[15] = [_untext(name) for name in row[15]]
    row[17] = [(_untext(name), [_untext(local) for local in bound]) for name, bound in row[17]]
    return Site(*row)


def _exported(row: list[Any]) -> Exported:
    row[0], row[2], row[3] = _untext(row[0]), _untext(row[2]), _untext(row[3])
    return Exported(*row)


def _span(span: Span) -> tuple[int, int, int, int, int, int]:
    start, end = span.start, span.end
    return (start.line, start.column, start.offset, end.line, end.column, end.offset)


def _text(text: str | None) -> str | list[str] | None:
    """Text as JSON can hold it: one with lone surrogates becomes a list of its UTF-16 units in hex."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return [text.encode("utf-16-be", "surrogatepass").hex()]
    return text


def _untext(value: str | list[str] | None) -> str | None:
    if isinstance(value, list):
        return bytes.fromhex(value[0]).decode("utf-16-be", "surrogatepass")
    return value


def _excerpt(data: bytes, span: Span) -> str:
    start, end = span.start.offset, span.end.offset
    if end - start <= _EXCERPT:
        return data[start:end].decode("utf-8", "replace")
    # `ignore` drops the character that the cut may have split.
    return data[start : start + _EXCERPT].decode("utf-8", "ignore") + "…"
