"""The text that the sandbox runs, and the way back from its places to the caller's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.runtime.engines.monty._regex import translate
from affidavit.runtime.engines.monty._rewrite import rewrite
from affidavit.runtime.engines.monty.scan import Place, Scan, call_place, chain
from tests.conformance.programs import programs
from tests.conformance.world import TREE


def _text(source: str) -> str:
    return rewrite(ast.parse(source), TREE).text


def test_calls_are_told_their_site() -> None:
    rewritten = rewrite(ast.parse("x = 1\nawait df.tool.math.ten(x)"), TREE)
    assert rewritten.sites == (Place(line=0, column=0), Place(line=2, column=6))
    assert "_affidavit_at(1, df.tool.math).ten(x)" in rewritten.text


def test_async_for_becomes_a_while_loop_with_the_same_else() -> None:
    text = _text("async for p in df.db.app.modules.pages():\n    print(p)\nelse:\n    print('end')")
    assert "async for" not in text
    assert (
        "while await _affidavit_advance(_affidavit_pages1):\n    p = _affidavit_current(_affidavit_pages1)"
        in text
    )
    assert "else:\n    print('end')" in text


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("x.rows", "_affidavit_get(x, 'rows')"),
        ("x.a.b", "_affidavit_get(_affidavit_get(x, 'a'), 'b')"),
        ("x.a.lower()", "_affidavit_get(x, 'a').lower()"),
        ("import math\nmath.pi", "math.pi"),
        ("df.db.app", "df.db.app"),
        ("class A:\n    def f(self):\n        return self.n", "return self.n"),
        ("x.n = 1\nx", "x.n = 1"),
        ("f'{x.a}'", "_affidavit_get(x, 'a')"),
        ("round(x, 2)", "_affidavit_round(x, 2)"),
        ("import sys\nsys.exit(1)", "_affidavit_leave(1)"),
        ("raise SystemExit(1)", "_affidavit_leave(1)"),
        ("await df.answer(status='x')", "_affidavit_at(1, df).answer(status='x')"),
        ("match x:\n    case A.b:\n        y = x.c", "case A.b:\n        y = _affidavit_get(x, 'c')"),
        ("def round(x):\n    return x\nround(1)", "round(1)"),
    ],
)
def test_what_is_written(source: str, part: str) -> None:
    assert part in _text(source)


@settings(max_examples=60, deadline=None)
@given(source=programs())
def test_every_name_of_a_program_leads_back_to_itself(source: str) -> None:
    original = {
        (node.lineno, node.col_offset): node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name)
    }
    rewritten = rewrite(ast.parse(source), TREE)
    origins = rewritten.origins()
    lines = rewritten.text.split("\n")
    for node in _outside_of_texts(ast.parse(rewritten.text)):
        if isinstance(node, ast.Name) and not node.id.startswith("_affidavit"):
            column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
            place = origins.place((node.lineno, column), (node.lineno, column + len(node.id)))
            assert place is not None
            assert original[place.line, place.column] == node.id


def _outside_of_texts(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes but those in f-strings, whose places Python 3.11 does not tell, and in `raise`, which is placed whole."""
    if not isinstance(node, ast.JoinedStr | ast.Raise):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_of_texts(child)


def test_a_place_before_any_code_leads_nowhere() -> None:
    assert rewrite(ast.parse("x = 1"), TREE).origins().place((0, 0), (0, 1)) is None


def test_places_of_calls_are_those_of_cpython() -> None:
    source = "(a\n .b\n .c(1))\nf(\n 2)\n(a\n .b(*x))\na.b(3)"
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert sorted((call_place(call).line, call_place(call).column) for call in calls) == [
        (3, 2),
        (4, 0),
        (6, 1),
        (8, 0),
    ]


def test_chains_of_names() -> None:
    def parsed(text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body

    assert chain(parsed("a.b.c")) == ["a", "b", "c"]
    assert chain(parsed("f().b")) is None


@pytest.mark.parametrize(
    ("source", "aliases", "names", "values"),
    [
        ("await df.tool.math.ten(1)", False, False, 0),
        ("m = df.tool.math", True, False, 0),
        ("ten = df.tool.math.ten", False, True, 0),
        ("map(df.tool.math.ten, [])", False, False, 1),
        ("try:\n    pass\nexcept df.Error:\n    pass", False, False, 0),
        ("df.tool.nothing", False, False, 0),
    ],
)
def test_where_df_goes(source: str, aliases: bool, names: bool, values: int) -> None:
    scan = Scan(ast.parse(source), TREE)
    assert (scan.aliases, scan.operation_names, len(scan.operation_values)) == (aliases, names, values)


# ---- regular expressions ----


@pytest.mark.parametrize(
    "pattern", [r"\w+", r"[\w-]+", r"[^\W\d_]", r"\bab\b", r"[]\s]", r"[^]\S]", r"\\w", r"a[\]\w]b", "abc"]
)
def test_a_translated_pattern_is_closed_and_keeps_its_literals(pattern: str) -> None:
    translated = translate(pattern)
    assert translated.count("(") == translated.count(")")
    plain = re.sub(r"\\[wWsSb]", "", pattern.replace("\\\\", ""))
    assert all(letter in translated for letter in plain)


@given(st.text("abc()|.^123 é", max_size=12))
def test_a_pattern_without_classes_is_left_alone(pattern: str) -> None:
    assert translate(pattern) == pattern
