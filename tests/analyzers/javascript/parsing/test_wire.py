"""What parser processes answer, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.analyzers.javascript._facts import ErrorRange, Export, FileFacts, Position, Reference, Span
from affidavit.analyzers.javascript.parsing.wire import decode, encode

SOURCE = 'const { a } = require("x"); // é'.encode()
SPAN = Span(Position(14, 1, 14), Position(26, 1, 26))
STATEMENT = Span(Position(0, 1, 0), Position(27, 1, 27))


def facts(specifier: str | None = "x", bindings: tuple[str, ...] = ("a",), span: Span = SPAN) -> FileFacts:
    name = specifier or "default"
    reference = Reference(
        kind="require",
        specifier=specifier,
        span=span,
        statement=STATEMENT,
        bindings=bindings,
        names=((name, bindings),),
    )
    export = Export(name=name, form="from", span=span, local=name, specifier=specifier, type_only=True)
    error = ErrorRange(span=SPAN, reason="unexpected")
    return FileFacts(
        language="javascript",
        encoding="utf-8",
        size=len(SOURCE),
        references=(reference,),
        exports=(export,),
        errors=(error,),
    )


def test_every_field_arrives() -> None:
    report = decode(encode(facts(), SOURCE))
    assert (report.encoding, report.invalid_at) == ("utf-8", None)
    (site,) = report.sites
    assert (site.kind, site.specifier, site.base, site.bindings) == ("require", "x", "file", ["a"])
    assert (site.line, site.column, site.start, site.end_line, site.end_column, site.end) == (
        1,
        14,
        14,
        1,
        26,
        26,
    )
    assert (site.statement_start, site.statement_end, site.statement_end_column) == (0, 27, 27)
    assert site.excerpt == 'require("x")'
    assert site.names == [("x", ["a"])]
    (export,) = report.exports
    assert export == ("x", "from", "x", "x", True, 1, 14, 14, 1, 26, 26, 'require("x")')
    (problem,) = report.problems
    assert (problem.reason, problem.line, problem.column, problem.start, problem.end) == (
        "unexpected",
        1,
        14,
        14,
        26,
    )


TEXT = st.text(st.characters(exclude_categories=()), max_size=20)


@given(st.none() | TEXT, st.lists(TEXT, max_size=3))
def test_every_text_arrives_lone_surrogates_included(specifier: str | None, bindings: list[str]) -> None:
    report = decode(encode(facts(specifier, tuple(bindings)), SOURCE))
    (site,), (export,) = report.sites, report.exports
    name = specifier or "default"
    assert (site.specifier, site.bindings, site.names) == (specifier, bindings, [(name, bindings)])
    assert (export.name, export.local, export.specifier) == (name, name, specifier)


def test_long_source_is_quoted_in_part_and_never_within_a_character() -> None:
    data = ("é" * 1000).encode()
    for start in range(4):
        span = Span(Position(start, 1, start), Position(2000, 1, 2000))
        (site,) = decode(encode(facts(span=span), data)).sites
        assert len(site.excerpt.encode()) <= 245
        assert site.excerpt.endswith("…")
        assert set(site.excerpt.strip("\ufffd…")) == {"é"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"[1,2,3]",
        b'["utf-8",null,[[1]],[],[]]',
        b'["utf-8",null,[],[],[[1]]]',
        b"\xff",
        b"null",
    ],
)
def test_nonsense_is_an_error_and_not_a_report(body: bytes) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        decode(body)
