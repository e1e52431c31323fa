"""Earlier results as inputs: their types come from what is in them, so the check may conclude from them."""

from __future__ import annotations

import asyncio

import pytest

from affidavit.evidence.record import JsonValue
from affidavit.runtime.typecheck import Checker, Verdict
from tests.runtime.typecheck import host

_NULL_FIRST: JsonValue = [{"a": None}, {"a": [1, 2]}]
_LATER_KEY: JsonValue = [{"id": 1}, {"id": 2, "tag": "x"}]
_FLAGS: JsonValue = {"on": True, "n": 3}
_NUMBERS: JsonValue = {"v": [1, 2.5]}
_TABLE: JsonValue = {"101": {"n": "a"}, "205": {"n": "b"}, "309": {"n": "c"}}
_FLOATS: JsonValue = {"v": [1.5, 2.5]}
_NESTED: JsonValue = [{"xs": [1, 2]}, {"xs": [None, 3]}]

ACCEPTED: tuple[tuple[JsonValue, str], ...] = (
    (_NULL_FIRST, "[x for d in r for x in (d['a'] or [])]"),
    (_NULL_FIRST, "sum(len(d['a']) for d in r if d['a'] is not None)"),
    (_NULL_FIRST, "[len(d['a']) for d in r[1:]]"),
    (_NULL_FIRST, "len(r[1]['a'])"),
    (_NULL_FIRST, "[len(d['a'] or []) for d in r]"),
    (_NULL_FIRST, "[len(d['a']) if d['a'] else 0 for d in r]"),
    (_NULL_FIRST, "[d['a'] and len(d['a']) for d in r]"),
    (_NULL_FIRST, "next(len(d['a']) for d in reversed(r))"),
    (_NULL_FIRST, "any(len(d['a']) for d in r if d['a'])"),
    (_NULL_FIRST, "for d in r:\n    d['a'] = d['a'] or []\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "for d in r:\n    if d['a'] is None:\n        continue\n    print(len(d['a']))"),
    (_NULL_FIRST, "r.pop(0)\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "del r[0]\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "def drop(rows): rows.pop(0)\ndrop(r)\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "rows = r\nrows.pop(0)\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "try:\n    [len(d['a']) for d in r]\nexcept TypeError:\n    print('some are missing')"),
    (_NULL_FIRST, "if any(d['a'] is None for d in r):\n    return 'no'\nreturn [len(d['a']) for d in r]"),
    (_NULL_FIRST, "def lengths():\n    return [len(d['a']) for d in r]\nlengths"),
    (_NULL_FIRST, "if len(r) > 5:\n    print([len(d['a']) for d in r])"),
    (_NULL_FIRST, "assert all(d['a'] for d in r)\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "r = [{'a': [1]}]\n[len(d['a']) for d in r]"),
    (_NULL_FIRST, "lengths = (len(d['a']) for d in r)\n0"),
    (_LATER_KEY, "[d.get('tag') for d in r]"),
    (_LATER_KEY, "[d['tag'] for d in r if 'tag' in d]"),
    (_LATER_KEY, "r[1]['tag'].upper()"),
    (_LATER_KEY, "[d['tag'] for d in r[1:]]"),
    (_LATER_KEY, "for d in r:\n    d.setdefault('tag', '')\n[d['tag'].upper() for d in r]"),
    (_LATER_KEY, "for d in r:\n    try:\n        print(d['tag'])\n    except KeyError:\n        pass"),
    (_LATER_KEY, "[d['tag'] if d['id'] == 2 else None for d in r]"),
    (_LATER_KEY, "for d in r:\n    if d['id'] == 2:\n        print(d['tag'])"),
    (_FLAGS, "r['n'] + 1"),
    (_FLAGS, "'yes' if r['on'] else 'no'"),
    (_FLAGS, "r['on'] = 'yes'\nr['on'].upper()"),
    (_FLAGS, "r.update(extra=1)\nr['extra']"),
    (_NUMBERS, "sum(r['v']) / 2"),
    (_NUMBERS, "[round(x) for x in r['v']]"),
    (_NUMBERS, "[x.bit_length() for x in r['v'] if isinstance(x, int)]"),
    (_NUMBERS, "r['v'][0].bit_length()"),
    (_FLOATS, "[x.is_integer() for x in r['v']]"),
    (_FLOATS, "[x.hex() for x in r['v']]"),
    (_NESTED, "[x.bit_length() for x in r[0]['xs']]"),
    (_NESTED, "[x.bit_length() for d in r for x in d['xs'] if x]"),
    (_TABLE, "[r[k]['n'] for k in r]"),
    (_TABLE, "r.get('999')"),
    (_TABLE, "r['999']['n'] if '999' in r else None"),
    (_TABLE, "[v['n'] for v in r.values()]"),
    (_TABLE, "{k: v['n'] for k, v in r.items()}"),
)

REFUSED: tuple[tuple[JsonValue, str, int], ...] = (
    (_NULL_FIRST, "[len(d['a']) for d in r]", 6),
    (_NULL_FIRST, "sum(len(d['a']) for d in r)", 9),
    (_NULL_FIRST, "{d['a'].index(1) for d in r}", 9),
    (_NULL_FIRST, "total = 0\nfor d in r:\n    total += len(d['a'])", 18),
    (_NULL_FIRST, "[d['a'].upper() for d in r if d['a'] is not None]", 9),
    (_NULL_FIRST, "[d['b'] for d in r]", 4),
    (_LATER_KEY, "[d['tag'].upper() for d in r]", 4),
    (_LATER_KEY, "for d in r:\n    print(d['tag'])", 13),
    (_LATER_KEY, "sorted(d['tag'] for d in r)", 10),
    (_FLAGS, "r['on'].upper()", 9),
    (_FLAGS, "on = r['on']\non.upper()", 4),
    (_FLAGS, "r['off']", 3),
    (_FLAGS, "r.on", 3),
    (_NUMBERS, "[x.bit_length() for x in r['v']]", 4),
    (_NUMBERS, "[x.upper() for x in r['v']]", 4),
    (_TABLE, "[v['m'] for v in r.values()]", 4),
    (_TABLE, "[r[k]['m'] for k in r]", 7),
)


def _check(runner: asyncio.Runner, checker: Checker, stubs: str, value: JsonValue, source: str) -> Verdict:
    return runner.run(checker.check(source, stubs=stubs, inputs_stub=host.inputs({"r": value})))


@pytest.mark.parametrize(("value", "source"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_may_be_right_passes(
    runner: asyncio.Runner, checker: Checker, stubs: str, value: JsonValue, source: str
) -> None:
    verdict = _check(runner, checker, stubs, value, source)
    assert verdict.status in {"clean", "advised"}, verdict


@pytest.mark.parametrize(("value", "source", "column"), REFUSED, ids=range(len(REFUSED)))
def test_what_must_fail_is_refused(
    runner: asyncio.Runner, checker: Checker, stubs: str, value: JsonValue, source: str, column: int
) -> None:
    verdict = _check(runner, checker, stubs, value, source)
    assert verdict.status == "rejected", verdict
    assert verdict.blocking[0].line == source.count("\n") + 1
    assert verdict.blocking[0].column == column


def test_a_class_name_of_both_host_and_input_proves_nothing(
    runner: asyncio.Runner, checker: Checker, stubs: str
) -> None:
    inputs = "from typing import TypedDict\nclass ModulesRow(TypedDict):\n    other: int\nrow: ModulesRow\n"
    verdict = runner.run(checker.check("row['path']", stubs=stubs, inputs_stub=inputs))
    assert verdict.status == "advised"
    verdict = runner.run(checker.check("row['other'] + 1", stubs=stubs, inputs_stub=inputs))
    assert verdict.status == "clean"
