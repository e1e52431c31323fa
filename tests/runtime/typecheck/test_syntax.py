from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.runtime.typecheck.syntax import MAX_BYTES, Parsed, Unparsable, parse, unfit_for_checking
from affidavit.runtime.typecheck.verdict import Diagnostic, SourceText


@pytest.mark.parametrize(
    "source",
    [
        "",
        "await x",
        "return 1",
        "if x:\n    return await y\nreturn [await z for z in w]",
        "async for x in y: pass",
        "async with x as y: return y",
        "[i async for i in x]",
        "def f():\n    yield 1\nreturn f",
        "x = 1\r\ny = 2\rz = 3",
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\nx = 'é'",
        "x is 'literal'",
        r"'\d'",
        "if True:\n\tx = 1",
        "\x0cx = 1",
    ],
)
def test_what_a_script_may_be(source: str) -> None:
    assert isinstance(parse(source), Parsed)


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("x = (", 1, 5),
        ("\n\nbreak", 3, 1),
        ("return 1\nyield 2", 2, 1),
        ("return 1\nlambda: (yield)\nx = yield", 3, 5),
        ("nonlocal x", 1, 1),
        ("def f():\n    await x", 2, 5),
        ("lambda: await x", 1, 9),
        ("class A:\n    return 1", 2, 5),
        ("ö = 1; é = = 2", 1, 12),
        ("x = '\ud800'", 1, 6),
        ("\r\n\0", 2, 1),
        ("!ls", 1, 1),
        ("%matplotlib inline", 1, 1),
        ("f'{x!}'", 1, 1),
        ("(" * 20_000, 1, 200),
        ("x = " + "[" * 5_000 + "]" * 5_000, 1, 204),
        ("x = " + "9" * 5_000, 1, 1),
    ],
)
def test_what_is_no_python_is_named_with_its_place(source: str, line: int, column: int) -> None:
    found = parse(source)
    assert isinstance(found, Diagnostic)
    assert found.blocking
    assert found.rule == "syntax"
    assert found.line == line
    if source[:1] not in "f(" and not source.startswith(
        ("x = [", "x = 9")
    ):  # these vary between Python versions
        assert found.column == column


@pytest.mark.parametrize(
    "source",
    [
        "x = 1" + " + 1" * 5_000,
        "x = " + "-" * 100_000 + "1",
        "f" + "()" * 20_000,
        "lambda:" * 5_000 + "1",
        "not " * 50_000 + "1",
        "x = 1\n" * (MAX_BYTES // 6 + 1),
        "".join(f"{' ' * i}try:\n{' ' * i} pass\n{' ' * i}finally:\n" for i in range(18))
        + " " * 18
        + "x = 1",
    ],
    ids=["terms", "signs", "calls", "lambdas", "nots", "long", "finally"],
)
def test_what_would_exhaust_the_compiler_is_not_judged(source: str) -> None:
    found = parse(source)
    # Newer compilers take some of these; then the examination does not.
    assert isinstance(found, Unparsable) or (isinstance(found, Parsed) and unfit_for_checking(found))


@pytest.mark.parametrize("source", ["x = 1\n  y = 2", "if x:\n\ty = 1\n        z = 2", "def f():\npass"])
def test_wrong_indentation_is_named_with_its_line(source: str) -> None:
    found = parse(source)
    assert isinstance(found, Diagnostic)
    assert found.line == source.count("\n") + 1


def test_the_tree_keeps_the_callers_places() -> None:
    parsed = parse("x = 1\nif x:\n    return (\n        x)")
    assert isinstance(parsed, Parsed)
    found = next(node for node in ast.walk(parsed.tree) if isinstance(node, ast.Return))
    assert (found.lineno, found.col_offset, found.end_lineno) == (3, 4, 4)


@given(st.text(max_size=200))
def test_no_text_breaks_it(source: str) -> None:
    found = parse(source)
    if isinstance(found, Diagnostic):
        assert found.line >= 1
        assert found.column >= 1
        assert found.message


@given(st.text(alphabet="aé漢😀\r\n \t\x0b\u2028", max_size=60), st.data())
def test_places_in_the_text(source: str, data: st.DataObject) -> None:
    text = SourceText(source)
    offset = data.draw(st.integers(0, len(source)))
    line, column = text.position(offset)
    assert column >= 1
    shown = text.line(line)
    assert "\n" not in shown
    if column <= len(shown):
        assert shown[column - 1] == source[offset]
        assert text.column(line, len(shown[: column - 1].encode())) == column
