"""Parsing without recursion, positions, and what the grammar cannot read."""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.analyzers.javascript.languages import LANGUAGES, LanguageName, grammar
from affidavit.analyzers.javascript.references import ErrorRange, extract
from affidavit.analyzers.javascript.syntax import Lines, Locator, parse, walk
from tests.analyzers.javascript.extraction import facts, sites


def errors(source: str, language: LanguageName = "javascript") -> list[tuple[str, str]]:
    data = source.encode()
    return [
        (error.reason, data[error.span.start.offset : error.span.end.offset].decode())
        for error in extract(data, language).errors
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('require("a"); x = = y; require("b")', [("require", "a"), ("require", "b")]),
        ('require("a"); var o = {; require("b")', [("require", "a"), ("require", "b")]),
        ('class A { accessor x = require("a") }; require("b")', [("require", "a"), ("require", "b")]),
        ('for (async of of require("a")); require("b")', [("require", "a"), ("require", "b")]),
        (
            'require("a"); import defer * as x from "m"; import("b")',
            [("require", "a"), ("dynamic-import", "b")],
        ),
        ('require("a"); import source x from "m"; import("b")', [("require", "a"), ("dynamic-import", "b")]),
    ],
)
def test_an_error_stays_where_it_is(source: str, expected: list[tuple[str, str]]) -> None:
    found = sites(source)
    assert [site for site in found if site in expected] == expected
    assert errors(source)


def test_error_ranges_are_ordered_and_apart() -> None:
    found = facts("x = = 1;\ny = [1, 2;\nfunction f(,) {}\nif (a b();\n" * 20).errors
    assert len(found) >= 20
    assert all(one.span.end <= two.span.start for one, two in pairwise(found))
    assert all(one.span.start < one.span.end for one in found if one.reason == "unexpected")
    assert all(one.span.start == one.span.end for one in found if one.reason == "missing")


def test_very_many_errors_become_one_range_at_the_end() -> None:
    found = facts("x = = 1;\n" * 5000).errors
    assert len(found) == 1000
    assert {error.reason for error in found[:-1]} == {"unexpected"}
    assert (found[-1].reason, found[-1].span.start.line, found[-1].span.end.line) == ("truncated", 1000, 5000)


def test_a_file_that_reads_well_has_no_error_ranges() -> None:
    assert errors('using x = y; for await (const a of b); export * as c from "m"; a ??= b?.[c]') == []


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\xef\xbb\xbf", b"\x00", b"\xff", b"import", b"require(", b"`${", b"'"]
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_scraps_are_read_or_reported(data: bytes, language: LanguageName) -> None:
    read = extract(data, language)
    assert read.size == len(data)
    assert all(isinstance(error, ErrorRange) for error in read.errors)


@given(st.binary(max_size=200), st.sampled_from(LANGUAGES))
def test_noise_never_raises(data: bytes, language: LanguageName) -> None:
    read = extract(data, language)
    for span in [site.span for site in read.references] + [error.span for error in read.errors]:
        assert 0 <= span.start.offset <= span.end.offset <= len(data)


_SCRAPS = st.sampled_from(
    ["require", "import", "export", "(", ")", '"m"', "`m`", "`${", "}", "{", "await ", "=>", "function ", "from ",
     "new ", "Worker", "URL", ".", "import.meta.url", ",", ";", "\n", "=", "var ", "createRequire", "type ", "<", ">",
     "\\u0072"]
)  # fmt: skip


@given(st.lists(_SCRAPS, max_size=40).map("".join), st.sampled_from(LANGUAGES))
def test_scraps_of_code_never_raise_and_ranges_nest(source: str, language: LanguageName) -> None:
    for site in extract(source.encode(), language).references:
        assert site.statement.start <= site.span.start < site.span.end <= site.statement.end


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[", "]"), ("(", ")"), ("{", "}"), ("f(", ")"), ("x => ", ""), ("!", ""), ("if (a) ", ";"), ("a ? b : ", ""),
     ("function f() {", "}"), ("`${", "}`"), ("await (", ")"), ("class A { static {", "}}"), ("a.b(c).", "d")],
)  # fmt: skip
def test_nesting_costs_no_stack(opening: str, closing: str) -> None:
    deep = 20_000
    source = opening * deep + 'require("m")' + closing * deep
    read = facts(source)
    gc.collect()
    assert all(site.specifier == "m" for site in read.references)
    assert read.references or read.errors


def test_two_hundred_thousand_levels() -> None:
    deep = 200_000
    read = facts("(" * deep + 'require("m")' + ")" * deep)
    assert [site.specifier for site in read.references] == ["m"]
    assert read.references[0].statement.end.offset == 2 * deep + 12


@given(
    st.lists(st.sampled_from(["a", "é", "😀", "\n", "\r", "\r\n", "\u2028", "\u2029", "\u00e2\u0080"])).map(
        "".join
    )
)
def test_lines_are_those_of_ecmascript(text: str) -> None:
    data = text.encode()
    lines = Lines(data)
    expected_line, line_start = 1, 0
    offset = 0
    while offset <= len(data):
        place = lines.position(offset)
        assert (place.offset, place.line, place.column) == (offset, expected_line, offset - line_start)
        width = next((len(end) for end in _ENDS if data.startswith(end, offset)), 0)
        if width:
            for inside in range(offset + 1, offset + width):
                assert lines.position(inside).line == expected_line
            expected_line, line_start = expected_line + 1, offset + width
        offset += width or 1


_ENDS = (b"\r\n", b"\n", b"\r", "\u2028".encode(), "\u2029".encode())


def test_a_locator_finds_what_the_tree_finds() -> None:
    data = b'a = [b, c.d(`${e}`), { f: "g" }];\n\n  h /* i */ ()'
    tree = parse(data, "javascript")
    locator = Locator(tree)
    for offset in (*range(len(data)), *reversed(range(len(data)))):
        leaf = locator.leaf(offset)
        expected = tree.root_node.descendant_for_byte_range(offset, offset + 1)
        assert expected is not None
        assert (leaf.start, leaf.end) == (expected.start_byte, expected.end_byte)
        chain = leaf
        while chain.parent is not None:
            assert chain.parent.start <= chain.start <= chain.end <= chain.parent.end
            chain = chain.parent
        assert chain.type == "program"


def test_walk_visits_every_node_once_in_order() -> None:
    tree = parse(b"a(b, [c], () => { d })", "javascript")
    seen = [node.id for node in walk(tree.root_node, lambda node: True)]
    assert len(seen) == len(set(seen)) == tree.root_node.descendant_count
    arguments = tree.root_node.children[0].children[0].children[1]
    assert [node.id for node in walk(arguments, lambda node: False)] == [arguments.id]


def test_grammars_are_loaded_once() -> None:
    assert grammar("typescript") is grammar("typescript")
    with pytest.raises(ValueError, match="cobol"):
        grammar("cobol")  # pyright: ignore[reportArgumentType]
