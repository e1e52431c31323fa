"""What the value of a script is, and what becomes of values that records do not hold."""

from __future__ import annotations

from typing import Any

import pytest

from affidavit.runtime.program import Limits

from .world import Bench, World

_RULES: list[tuple[str, Any]] = [
    ("1\n2", 2),
    ("x = 5", 5),
    ("x: int = 6", 6),
    ("a = b = 7", 7),
    ("a, b = 1, 2", [1, 2]),
    ("[a, *b] = 'xyz'", ["x", "y", "z"]),
    ("x = 1\nx += 4", 5),
    ("d = {'a': 1}\nd['a'] += 4", 5),
    ("d = {}\nd['k'] = 9", 9),
    ("class A:\n    pass\na = A()\na.b = 3", 3),
    ("class A:\n    pass\na = A()\na.b = 3\na.b *= 2", 6),
    ("return 8", 8),
    ("for n in range(5):\n    if n == 3:\n        return n", 3),
    ("def main():\n    return 1", 1),
    ("async def main():\n    return await df.tool.math.ten(1)", 10),
    ("async def run():\n    return 'run'", "run"),
    ("def solve(n=4):\n    return n", 4),
    ("def main():\n    return 1\nmain()", 1),
    ("def main():\n    return 1\nx = 2", 2),
    ("def main():\n    return 'main'\ndef run():\n    return 'run'", "main"),
    ("async def f():\n    return 5\nf()", 5),
    ("if __name__ == '__main__':\n    x = 3", 3),
    ("def main():\n    return 4\nif __name__ == '__main__':\n    main()", 4),
    ("await df.tool.math.ten(3)", 30),
    ("x = await df.tool.math.ten(4)", 40),
    ("None", None),
    ("x = None", None),
    ("calls = []\ndef key():\n    calls.append(1)\n    return 'k'\nd = {'k': 1}\nd[key()] += 1", 2),
    ("def main():\n    return 2\nfor n in range(3):\n    pass", 2),
    ("data = [3, 1]\nfor n in data:\n    pass\nsorted(data)", [1, 3]),
]


@pytest.mark.parametrize(("script", "value"), _RULES, ids=[script for script, _ in _RULES])
def test_the_value_of_a_script(bench: Bench, script: str, value: Any) -> None:
    outcome = bench.run(script)
    assert outcome.error is None
    assert outcome.has_value
    assert bench.value(script) == value


_NOTHING = [
    "",
    "# nothing",
    "print('shown')",
    "for n in range(3):\n    pass",
    "def helper():\n    return 1",
    "def main(needed):\n    return needed",
    "def main():\n    return 1\nif False:\n    main()",
    "import math",
    "df.answer(status='answered', value=1)",
    "await df.answer(status='answered', value=1)",
    "return",
    "if True:\n    x = 5",
]


@pytest.mark.parametrize("script", _NOTHING)
def test_scripts_without_a_value(bench: Bench, script: str) -> None:
    outcome = bench.run(script)
    assert outcome.error is None
    assert (outcome.reason, outcome.has_value, outcome.value) == ("finished", False, None)


KEYS = ("int at $ became a text key", "float at $ became a text key", "NoneType at $ became a text key")
_SOFTENED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("(1, 2)", [1, 2], ("tuple at $ became a list",)),
    ("{'a': (1,)}", {"a": [1]}, ("tuple at $.a became a list",)),
    ("{3, 1, 2}", [1, 2, 3], ("set at $ became a sorted list",)),
    ("{1: 'a', 2.5: 'b', None: 'c'}", {"1": "a", "2.5": "b", "null": "c"}, KEYS),
    ("{'k': {7: 1}}", {"k": {"7": 1}}, ("int at $.k became a text key",)),
    ("frozenset('ba')", ["a", "b"], ("frozenset at $ became a sorted list",)),
    (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: list\nP(1, [(2,)])",
        {"x": 1, "y": [[2]]},
        ("P at $ became a dict", "tuple at $.y[0] became a list"),
    ),
    ("from collections import namedtuple\nnamedtuple('N', 'a b')(1, 2)", [1, 2], ("N at $ became a list",)),
    ("from collections import Counter\nCounter('aab')", {"a": 2, "b": 1}, ("Counter at $ became a dict",)),
    (
        "from collections import defaultdict\nd = defaultdict(list)\nd['k'].append(1)\n[d]",
        [{"k": [1]}],
        ("defaultdict at $[0] became a dict",),
    ),
]


@pytest.mark.parametrize(("script", "value", "notes"), _SOFTENED, ids=[script for script, _, _ in _SOFTENED])
def test_ordinary_results_are_made_to_fit_and_say_so(
    bench: Bench, script: str, value: Any, notes: tuple[str, ...]
) -> None:
    outcome = bench.run(script)
    assert outcome.error is None
    assert bench.value(script) == value
    assert outcome.notes == notes


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("lambda: 1", "$"),
        ("[print]", "$[0]"),
        ("{'a': [object_of_ours]}", "$.a[0]"),
        ("{(1, 2): 2}", "$"),
        ("{'k': {1: 'one', '1': 'text'}}", "$.k"),
        ("df.tool", "$"),
        ("[range(3)]", "$[0]"),
        ("iter([1])", "$"),
    ],
)
def test_values_that_records_cannot_hold_are_refused_with_their_place(
    bench: Bench, script: str, path: str
) -> None:
    outcome = bench.run("class Ours:\n    pass\nobject_of_ours = Ours()\n" + script)
    assert outcome.error is not None
    assert outcome.error.code == "value-unsupported"
    assert outcome.error.details["path"].startswith(path)
    assert not outcome.has_value


def test_a_cycle_is_refused(bench: Bench) -> None:
    outcome = bench.run("a = []\na.append({'again': a})\na")
    assert outcome.error is not None
    assert outcome.error.code == "value-unsupported"


@pytest.mark.parametrize("levels", [150, 30_000])
def test_deep_nesting_is_refused(bench: Bench, levels: int) -> None:
    outcome = bench.run(f"a = []\nfor _ in range({levels}):\n    a = [a]\na")
    assert outcome.error is not None
    assert outcome.error.code == "value-too-deep"
    assert bench.value("1 + 1") == 2


def test_nesting_within_the_bound_is_fine(bench: Bench) -> None:
    value = bench.value("a = []\nfor _ in range(90):\n    a = [a]\na")
    for _ in range(90):
        value = value[0]
    assert value == []


def test_a_value_above_its_bound_is_refused(bench: Bench) -> None:
    limits = Limits(result_bytes=10_000)
    outcome = bench.run("'x' * 20_000", limits=limits)
    assert outcome.error is not None
    assert (outcome.reason, outcome.error.code) == ("output", "output-exceeded")
    assert bench.value("'x' * 9_000", limits=limits) == "x" * 9_000


def test_inputs_are_globals(bench: Bench) -> None:
    script = "def double():\n    return [n * 2 for n in numbers]\n[double(), settings['deep']['x']]"
    assert bench.value(script, World(), inputs={"numbers": [1, 2], "settings": {"deep": {"x": None}}}) == [
        [2, 4],
        None,
    ]
