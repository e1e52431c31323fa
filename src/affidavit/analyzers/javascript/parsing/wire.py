"""What a parser process answers: the facts of one file as compact JSON.

JSON and not pickle: the process that parsed hostile source is not trusted to hand objects over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

if TYPE_CHECKING:
    from affidavit.analyzers.javascript._facts import Encoding, ExportForm, FileFacts, ReferenceKind, Span

__all__ = ["Exported", "FileReport", "Problem", "Site", "decode", "encode"]

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


class FileReport(NamedTuple):
    """The facts of one file."""

    encoding: Encoding
    invalid_at: int | None
    sites: list[Site]
    problems: list[Problem]
    exports: list[Exported]


def encode(facts: FileFacts, data: bytes) -> bytes:
    """The answer for one file."""
    sites = [
        [
            one.kind,
            _text(one.specifier),
            one.base,
            *_span(one.span),
            *_span(one.statement),
            list(map(_text, one.bindings)),
            _excerpt(data, one.span),
            [[_text(name), list(map(_text, bound))] for name, bound in one.names],
        ]
        for one in facts.references
    ]
    exports = [
        [
            _text(one.name),
            one.form,
            _text(one.local),
            _text(one.specifier),
            one.type_only,
            *_span(one.span),
            _excerpt(data, one.span),
        ]
        for one in facts.exports
    ]
    problems = [
        [one.reason, one.span.start.line, one.span.start.column, one.span.start.offset, one.span.end.offset]
        for one in facts.errors
    ]
    return orjson.dumps([facts.encoding, facts.invalid_at, sites, problems, exports])


def decode(body: bytes) -> FileReport:
    """Read an answer. Raises `ValueError` or `TypeError` when it is none."""
    encoding, invalid_at, sites, problems, exports = cast(list[Any], orjson.loads(body))
    return FileReport(
        encoding,
        invalid_at,
        [_site(row) for row in sites],
        [Problem(*row) for row in problems],
        [_exported(row) for row in exports],
    )


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
