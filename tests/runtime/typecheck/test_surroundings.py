"""Scripts below a preamble, with results of earlier scripts: correct ones pass, wrong ones are placed."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from affidavit.evidence.record import JsonValue
from affidavit.runtime.memory.mentions import mentions
from affidavit.runtime.memory.result_types import as_type, result_types, type_of
from affidavit.runtime.memory.results import ResultRow
from affidavit.runtime.program import PreambleEntry
from affidavit.runtime.typecheck import Checker, Verdict
from affidavit.runtime.typecheck.surroundings import Surroundings

ROWS_VALUE: JsonValue = [{"id": 1, "name": "a", "tags": ["x"]}, {"id": 2, "name": None, "tags": []}]
ROWS: tuple[ResultRow, ...] = (
    ResultRow(number=9, run_id="r9", kind="data", value={"counts": {"a": 1}, "names": ["x"], "best": None}),
    ResultRow(number=7, run_id="r7", kind="large", size=20_000, type=as_type(type_of(ROWS_VALUE, 7, 100))),
    ResultRow(number=6, run_id="r6", kind="error", error={"code": "tool-failed", "message": "m", "line": 3}),
    ResultRow(number=4, run_id="r4", kind="done"),
    ResultRow(number=3, run_id="r3", kind="omitted", size=30_000),
    ResultRow(number=2, run_id="r2", kind="data", value=ROWS_VALUE),
)
PREAMBLE = (
    PreambleEntry(
        key="text", code="import json\n\ndef tag(value: int) -> str:\n    return json.dumps(value)\n"
    ),
    PreambleEntry(
        key="ask",
        code="async def add(a: int, b: int) -> int:\n    return await df.tool.weather.add(a=a, b=b)\n\nLIMIT = 10\n",
    ),
)
Check = Callable[..., Verdict]


@pytest.fixture
def below(runner: asyncio.Runner, checker: Checker, stubs: str) -> Check:
    def check(
        source: str, preamble: Sequence[PreambleEntry] = PREAMBLE, rows: Sequence[ResultRow] = ROWS
    ) -> Verdict:
        named = mentions(source, *(entry.code for entry in preamble))
        by_number = {row.number: row for row in rows}
        types = result_types(rows, named, by_number.get, {}) if named else None
        around = Surroundings(preamble=tuple(preamble), results=types)
        return runner.run(checker.check(source, stubs=stubs, around=around))

    return check


GOOD = (
    "results[0].data['counts']['a'] + 1",
    "results[0].data['names'][0].upper()",
    "results[0].data['best'] or 'none'",
    "for name, n in results[0].data['counts'].items():\n    print(name, n + 1)",
    "results[0].data['counts'].get('b', 0)",
    "row = results[0]\nrow.data['names'] + [row.run_id]",
    "rows = await results[1].load()\n[row['id'] for row in rows]",
    "[row['name'] for row in await results[1].load() if row['name']]",
    "(await results.by_run(7).load())[0]['tags']",
    "sum(len(row['tags']) for row in results.by_run(2).data)",
    "results[2].error['message'] if results[2].error else ''",
    "results[2].error['code']",
    "try:\n    x = results[1].data\nexcept df.Error:\n    x = await results[1].load()\nx",
    "x = results[1].data if results[1].kind == 'data' else await results[1].load()\nx",
    "value = None\nif results[2].kind == 'data':\n    value = results[2].data['n']\nvalue",
    "results[30] if len(results) > 30 else None",
    "for i in range(len(results)):\n    print(results[i].number, results[i].kind)",
    "[r.data for r in results if r.kind == 'data']",
    "[r.data['names'] for r in results if r.kind == 'data' and 'names' in r.data]",
    "results[-1].data[0]['id']",
    "results[1:3]",
    "[r.number for r in results[:2]]",
    "list(reversed(results))[0].number",
    "results[3].data is None",
    "await results[3].load()",
    "results.last.data['counts']",
    "n = 9\nresults.by_run(n).data['whatever']",
    "results.by_run(number=9).data['names']",
    "try:\n    row = results[40]\nexcept IndexError:\n    row = None\nrow",
    "first, second, *rest = results\nfirst.number",
    "results = [1, 2]\nresults[5:]\nresults[-1]",
    "def use(results):\n    return results['a']\nuse({'a': 1})",
    "data = results[0].data\ndata['extra'] = 1\ndata['extra']",
    "if not results:\n    raise SystemExit\nlen(results)",
    "enumerate(results)",
    "max(results, key=lambda r: r.size).number",
    "tag(3) + tag(len(results))",
    "await add(a=1, b=2)",
    "await add(1, LIMIT)",
    "import asyncio\nawait asyncio.gather(*[add(i, i) for i in range(LIMIT)])",
    "json.loads(tag(3))",
    "def tag(value):\n    return value\ntag('x')",
    "LIMIT = 5\nLIMIT + 1",
    "return tag(1)",
    "async def main():\n    return await add(1, 2)",
    "[tag(n) for n in results[0].data['counts'].values()]",
    "from json import dumps\ndumps(results[0].data)",
)
_KEY, _UNKNOWN, _KIND = "invalid-typed-dict-key", "unknown-result", "result-kind"
BAD = (
    ("x = 1\nresults[0].data['count']", 2, _KEY, "counts"),
    ("results[0].data['nams'][0]", 1, _KEY, "names"),
    ("rows = results.by_run(2).data\nrows[0]['nme']", 2, _KEY, "name"),
    ("rows = await results[1].load()\nfor row in rows:\n    print(row['tagz'])", 3, _KEY, "tags"),
    ("(await results.by_run(7).load())[0]['idd']", 1, _KEY, "id"),
    ("results.last.data['bst']", 1, _KEY, "best"),
    ("results[2].error['mesage']", 1, _KEY, "message"),
    ("results[1].data", 1, _KIND, "await results[1].load()"),
    ("y = 2\nresults[1].data[0]['id']", 2, _KIND, "await results[1].load()"),
    ("row = results.by_run(7)\nlen(row.data)", 2, _KIND, "await row.load()"),
    ("results[2].data", 1, _KIND, "results[2].error"),
    ("await results[2].load()", 1, _KIND, "results[2].error"),
    ("results[3].data['x']", 1, _KIND, "results.last.data"),
    ("results[4].data", 1, _KIND, None),
    ("await results[4].load()", 1, _KIND, None),
    ("results[6].data", 1, _UNKNOWN, "results[5]"),
    ("\n\nresults[-7]", 3, _UNKNOWN, "results[5]"),
    ("results.by_run(5).data", 1, _UNKNOWN, None),
    ("results.by_run(99)", 1, _UNKNOWN, "results.by_run(9)"),
    ("results[0]['counts']", 1, _UNKNOWN, "results[0].data['counts']"),
    ("results['counts']", 1, _UNKNOWN, 'results[0].data["counts"]'),
    ("results[0].dat", 1, "missing-attribute", "data"),
    ("results.lst", 1, "missing-attribute", "last"),
    ("results[1].load()", 1, "not-awaited", "await results[1].load()"),
    ("x = results[1].load()['a']", 1, "not-awaited", "await results[1].load()"),
    ("x = 1\ntga(3)", 2, "unresolved-reference", "tag"),
    ("await ad(1, 2)", 1, "unresolved-reference", "add"),
    ("LIMT + 1", 1, "unresolved-reference", "LIMIT"),
    ("tag(1)\ndf.tool.weather.ad(a=1, b=2)", 2, "unknown-operation", "add"),
    ("tag(1)\nx = (1,", 2, "syntax", None),
)


def test_there_are_many() -> None:
    assert len(GOOD) >= 45
    assert len(BAD) >= 30


@pytest.mark.parametrize("source", GOOD, ids=range(len(GOOD)))
def test_a_correct_script_passes(below: Check, source: str) -> None:
    verdict = below(source)
    assert verdict.blocking == ()
    assert verdict.status in ("clean", "advised"), verdict


@pytest.mark.parametrize(("source", "line", "rule", "suggestion"), BAD, ids=range(len(BAD)))
def test_a_wrong_script_is_rejected(
    below: Check, source: str, line: int, rule: str, suggestion: str | None
) -> None:
    verdict = below(source)
    assert verdict.status == "rejected", verdict
    [first, *_] = verdict.blocking
    assert (first.line, first.rule) == (line, rule)
    if suggestion is not None:
        assert first.suggestion == suggestion


def test_without_results_every_position_is_refused(below: Check) -> None:
    verdict = below("results[0].data", rows=())
    assert "no rows yet" in verdict.blocking[0].message
    assert below("results.last", rows=()).status == "rejected"
    assert below("len(results)", rows=()).status == "clean"


@pytest.mark.parametrize(
    "code", ["x = (1,", "def f(:", "import no_such_thing", "def f() -> int:\n    return 'x'"]
)
def test_below_a_broken_entry_nothing_is_blocked(below: Check, code: str) -> None:
    preamble = (*PREAMBLE, PreambleEntry(key="bad", code=code))
    for source in (*GOOD[:3], "tag(1)", "x = undefined_name", "results[0].data['count']"):
        verdict = below(source, preamble)
        assert (verdict.status, verdict.blocking) == ("unchecked", ())
        assert verdict.reason.startswith("preamble bad:")
    assert below("x = (1", preamble).status == "rejected"


def test_many_new_types_are_examined_at_once_by_the_same_checker(below: Check, checker: Checker) -> None:
    rows = tuple(
        ResultRow(
            number=number, run_id=f"r{number}", kind="data", value={f"key{number}": number, "rows": [1]}
        )
        for number in range(520, 500, -1)
    )
    assert below("results[0].data['key520']", rows=rows).status == "clean"
    before = checker.pid
    source = "\n".join(f"results[{place}].data['key{520 - place}'] + 1" for place in range(20))
    assert below(source, rows=rows).status in ("clean", "advised")
    wrong = source.replace("'key507'", "'kez507'")
    found = below(wrong, rows=rows)
    assert [(one.line, one.suggestion) for one in found.blocking] == [(14, "key507")]
    assert checker.pid == before
