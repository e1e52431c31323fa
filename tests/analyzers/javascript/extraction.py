"""Short forms of extracted facts, for tests."""

from __future__ import annotations

from typing import Any

from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.references import FileFacts, Reference, Span, extract


def sites(source: str | bytes, language: LanguageName = "javascript") -> list[tuple[str, str | None]]:
    """Kind and specifier of each site."""
    return [(site.kind, site.specifier) for site in facts(source, language).references]


def facts(source: str | bytes, language: LanguageName = "javascript") -> FileFacts:
    """The facts of a text."""
    return extract(source.encode() if isinstance(source, str) else source, language)


def texts(source: str, language: LanguageName = "javascript") -> list[tuple[str, str]]:
    """Of each site the text of its span and of its statement."""
    data = source.encode()

    def cut(span: Span) -> str:
        return data[span.start.offset : span.end.offset].decode()

    return [(cut(site.span), cut(site.statement)) for site in extract(data, language).references]


def bindings(source: str, language: LanguageName = "javascript") -> list[tuple[str, ...]]:
    """The bindings of each site."""
    return [site.bindings for site in facts(source, language).references]


def as_answer(site: Reference) -> dict[str, Any]:
    """A reference as `oracles/references.mjs` writes it."""
    return {
        "kind": site.kind,
        "specifier": site.specifier,
        "base": site.base,
        "bindings": list(site.bindings),
        "span": _numbers(site.span),
        "statement": _numbers(site.statement),
    }


def _numbers(span: Span) -> list[int]:
    return [number for place in (span.start, span.end) for number in (place.offset, place.line, place.column)]
