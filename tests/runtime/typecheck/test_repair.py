# ruff: noqa: RUF001 - typographic quotes are what this is about
from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.runtime.typecheck.repair import repair
from tests.runtime.typecheck.good_scripts import GOOD

_MAIN = "import asyncio\nasync def main():\n    return 1\n"


@pytest.mark.parametrize(
    ("given_", "wanted", "note"),
    [
        ("```python\nx = 1\n```", "\nx = 1\n", "line 1, 3"),
        ("\n```py\nx = 1\n\n```\n\n", "\n\nx = 1\n\n\n\n", "line 2, 5"),
        ("```\nx = 1", "\nx = 1", "line 1"),
        ("~~~\nx = 1\n~~~", "\nx = 1\n", "line 1, 3"),
        ("x = 1\n```", "x = 1\n", "line 2"),
        ("```python\r\nx = 1\r\n```\r\n", "\r\nx = 1\r\n\r\n", "line 1, 3"),
        ("  ```python title\nx", "  ```python title\nx", None),
        ("print(“hello”)", 'print("hello")', "line 1"),
        ("x = 1\nprint(‘it is “so”’)", "x = 1\nprint('it is “so”')", "line 2"),
        ("f“{x}”", 'f"{x}"', "line 1"),
        ("“““a\nb”””", '"""a\nb"""', "line 1"),
        (
            "a = “x”\nb = 'it’s “in”'\n# “c”\nd = “y”",
            'a = "x"\nb = \'it’s “in”\'\n# “c”\nd = "y"',
            "line 1, 4",
        ),
        ("```python\nprint(“hi”)\n```", '\nprint("hi")\n', "line 2"),
        (_MAIN + "asyncio.run(main())", _MAIN + "await      (main())", "line 4"),
        (_MAIN + "asyncio.run(main(),)\n", _MAIN + "await      (main(),)\n", None),
        (_MAIN + "asyncio.run(\n    main()\n)", _MAIN + "await      (\n    main()\n)", "line 4"),
        (
            _MAIN + 'if __name__ == "__main__":\n    asyncio.run(main())\n',
            _MAIN + " " * 26 + "\n" + " " * 23 + "\n",
            "line 5",
        ),
        (
            _MAIN + 'if __name__ == "__main__":\n    asyncio.run(other(1))',
            _MAIN + 'if __name__ == "__main__":\n    await      (other(1))',
            "line 5",
        ),
    ],
)
def test_what_is_repaired(given_: str, wanted: str, note: str | None) -> None:
    repaired = repair(given_)
    if note is None:
        assert repaired.source == given_
        assert repaired.notes == ()
    else:
        assert repaired.source == wanted
        assert any(note in one for one in repaired.notes), repaired.notes
        assert len(repaired.source.splitlines()) <= len(given_.splitlines())


@pytest.mark.parametrize(
    "source",
    [
        'x = """\n```python\n```\n"""',
        "x = “unclosed",
        "print(“a”",
        "here is the code:\n```python\nx = 1\n```",
        "‘it’s broken’",
        "result = asyncio.run(main())",
        "asyncio.run(main(), debug=True)",
        "asyncio.run(main)",
        "asyncio.run(main())\nx = 1",
        "def f():\n    asyncio.run(main())",
        'if __name__ == "__main__":\n    asyncio.run(main())\nelse:\n    pass',
        "loop.run_until_complete(main())",
        "",
        "\n \n",
        "```",
        "x = (",
        "\0",
        "\ud800",
        "(" * 5_000,
    ],
)
def test_nothing_else_is_rewritten(source: str) -> None:
    repaired = repair(source)
    if source == "```":
        assert repaired.source == ""
    else:
        assert repaired.source == source
        assert repaired.notes == ()


@pytest.mark.parametrize("source", GOOD, ids=range(len(GOOD)))
def test_correct_scripts_are_left_alone(source: str) -> None:
    assert repair(source).source == source


@given(st.text(alphabet="ab1 =\n\"'“”‘’#`()\\\r", max_size=40))
def test_valid_python_is_left_alone_and_places_are_kept(source: str) -> None:
    repaired = repair(source)
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        assert repaired.source.count("\n") == source.count("\n")
        assert (repaired.source == source) == (repaired.notes == ())
    else:
        assert repaired.source == source


@given(st.text(alphabet="ab1 =\n\"'“”‘’#`()\\", max_size=40))
def test_repairing_twice_changes_nothing_more(source: str) -> None:
    once = repair(source).source
    assert repair(once).source == once
