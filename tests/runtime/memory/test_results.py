"""`results`: what earlier scripts of a session returned, typed, addressed by position and by number."""

import json
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit import Workspace
from affidavit.errors import AffidavitError
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.memory.mentions import mentions
from affidavit.runtime.memory.results import ERROR_BYTES, INLINE_BYTES, TAIL, Results, tail_of
from affidavit.runtime.run import Run
from affidavit.runtime.session import Session
from affidavit.store import Event, Store

LARGE = "[{'n': i, 'note': 'n' * 40} for i in range(800)]"


def boom(text: str) -> int:
    """Always fails."""
    raise ValueError(text)


def ok(n: int) -> int:
    """Returns n."""
    return n


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        opened.use(functions_namespace("t", [ok, boom]))
        yield opened


@pytest.fixture
async def session(workspace: Workspace) -> Session:
    return await workspace.session("s1")


async def value(session: Session, source: str) -> Any:
    run = await session.run(source)
    assert run.status == "succeeded", (run.error, run.diagnostics)
    assert run.check in ("clean", "advised")
    return run.data


async def rejected(session: Session, source: str) -> dict[str, Any]:
    run = await session.run(source)
    assert run.status == "rejected", run
    assert run.calls == ()
    [first, *_] = [item for item in run.diagnostics if item["blocking"]]
    return cast("dict[str, Any]", first)


def error_of(run: Run) -> dict[str, Any]:
    assert run.error is not None
    return dict(run.error)


async def test_the_next_script_reads_what_the_last_one_returned(session: Session) -> None:
    await session.run("{'counts': {'a': 1}, 'names': ['x', 'y']}")
    wrong = await rejected(session, "n = 1\nresults[0].data['count']")
    assert (wrong["line"], wrong["suggestion"]) == (2, "counts")
    assert await value(session, "results[0].data['counts']['a'] + len(results[0].data['names'])") == 3


async def test_a_new_process_goes_on_with_the_results(tmp_path: Path) -> None:
    def other(source: str) -> dict[str, Any]:
        code = textwrap.dedent(f"""
            import asyncio, json
            from affidavit import Workspace
            async def main():
                async with Workspace.open({str(tmp_path / "w")!r}) as workspace:
                    run = await (await workspace.session("s")).run({source!r})
                    print(json.dumps(run.as_json()))
            asyncio.run(main())
        """)
        return json.loads(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        )

    assert other("{'total': 3, 'rows': [1, 2, 3]}")["status"] == "succeeded"
    wrong = other("results[0].data['totl']")
    assert (wrong["status"], wrong["diagnostics"][0]["suggestion"]) == ("rejected", "total")
    right = other("results[0].data['total'] + 1")
    assert (right["value"], right["calls"]) == (4, [])


async def test_a_large_value_says_how_to_load_it(session: Session) -> None:
    await session.run(LARGE)
    wrong = await rejected(session, "results[0].data[0]")
    assert (wrong["rule"], wrong["suggestion"]) == ("result-kind", "await results[0].load()")
    assert await value(session, "(await results[0].load())[799]['n']") == 799
    caught = (
        "try:\n    x = results.by_run(1).data\nexcept df.Error as error:\n    x = [error.code, error.hint]\nx"
    )
    assert await value(session, caught) == ["value-too-large", "await results.by_run(1).load()"]


async def test_a_key_of_a_loaded_value_is_checked(session: Session) -> None:
    await session.run(LARGE)
    wrong = await rejected(session, "rows = await results[0].load()\nrows[0]['nott']")
    assert (wrong["line"], wrong["suggestion"]) == (2, "note")


async def test_a_load_that_is_not_awaited_is_refused(session: Session) -> None:
    await session.run(LARGE)
    assert (await rejected(session, "results[0].load()"))["suggestion"] == "await results[0].load()"
    run = await session.run("def take(row):\n    row.load()\ntake(results[0])")
    assert error_of(run)["code"] == "call-not-awaited"


async def test_a_failed_run_has_an_error_and_no_value(session: Session) -> None:
    await session.run("await df.tool.t.boom(text='late')")
    wrong = await rejected(session, "results[0].data['n']")
    assert wrong["suggestion"] == "results[0].error"
    assert (await rejected(session, "await results[0].load()"))["rule"] == "result-kind"
    assert await value(session, "[results[0].error['code'], results[0].error['line']]") == ["tool-failed", 1]
    run = await session.run("row = [r for r in results if r.kind == 'error'][0]\nrow.data")
    assert error_of(run)["code"] == "result-unavailable"


async def test_a_run_that_returned_nothing_has_none(session: Session) -> None:
    await session.run("x = 1\nfor i in range(3):\n    x += i")
    wrong = await rejected(session, "results[0].data['n']")
    assert wrong["rule"] == "result-kind"
    assert await value(
        session, "[results[0].kind, results[0].data is None, await results[0].load() is None]"
    ) == [
        "done",
        True,
        True,
    ]


async def test_a_position_past_the_end(session: Session) -> None:
    assert "no rows yet" in (await rejected(session, "results[0].data"))["message"]
    await session.run("1")
    wrong = await rejected(session, "results[1].data")
    assert (wrong["rule"], wrong["suggestion"]) == ("unknown-result", "results[0]")
    run = await session.run("for i in range(5):\n    x = results[i]")
    assert error_of(run)["type"] == "IndexError"
    assert "by_run" in error_of(run)["message"]
    assert "load" in error_of(run)["message"]


async def test_an_unknown_run_number(session: Session) -> None:
    await session.run("1")
    await session.run("1 +")
    for number in (2, 7, 0, -1):
        wrong = await rejected(session, f"results.by_run({number}).data")
        assert (wrong["rule"], wrong["suggestion"]) == ("unknown-result", "results.by_run(1)")
    run = await session.run("n = int('99')\nresults.by_run(n)")
    assert error_of(run)["type"] == "IndexError"


async def test_a_row_is_not_its_value(session: Session) -> None:
    await session.run("{'n': 1}")
    assert (await rejected(session, "results[0]['n']"))["suggestion"] == "results[0].data['n']"
    assert (await rejected(session, "results['n']"))["suggestion"] == 'results[0].data["n"]'
    assert (await rejected(session, "results[0].dta"))["suggestion"] == "data"


async def test_a_whole_conversation(session: Session) -> None:
    """Output stays with its run, a trailing assignment counts, failures and rejections shift no number."""
    first = await session.run("print('one')\n{'n': 1}")
    assert (first.data, first.stdout) == ({"n": 1}, "one\n")
    second = await session.run("print('two'\n")
    assert (second.status, second.stdout, error_of(second)["line"]) == ("rejected", "", 1)
    assert [row.number for row in session.results()] == [1]
    assert (await session.run("x = await df.tool.t.ok(n=41) + 1")).data == 42
    failed = await session.run("print('part')\nawait df.tool.t.boom(text='late')\n'never'")
    assert (failed.status, failed.stdout, len(failed.calls)) == ("failed", "part\n", 1)
    assert await value(session, "results.by_run(1).data['n'] + 1") == 2
    assert [(row.number, row.kind) for row in session.results()] == [
        (5, "data"),
        (4, "error"),
        (3, "data"),
        (1, "data"),
    ]


async def test_slices_negative_indexes_iteration_and_last(session: Session) -> None:
    for source in ("'a'", "'b'", "1/0"):
        await session.run(source)
    assert await value(session, "[results[-1].data, results.last.data, len(results)]") == ["a", "b", 3]
    assert await value(session, "[row.number for row in results[1:3]]") == [3, 2]
    assert await value(session, "[row.kind for row in results]") == ["data", "data", "error", "data", "data"]
    assert await value(session, "[row.data for row in reversed(results) if row.kind == 'data'][:2]") == [
        "a",
        "b",
    ]
    assert (await session.run("results[0].number = 3")).status in ("failed", "rejected")


async def test_conditional_reads_are_advice(session: Session) -> None:
    await session.run(LARGE)
    source = "row = results[0]\nvalue = row.data if row.kind == 'data' else await row.load()\nlen(value)"
    assert await value(session, source) == 800
    assert await value(session, "x = results[5] if len(results) > 5 else None\n1") == 1


async def test_the_name_may_mean_something_else(session: Session) -> None:
    await session.run("[1, 2]")
    assert await value(session, "results = []\nresults.append(1)\nresults[0] + len(results)") == 2
    assert await value(session, "results = results[-1].data\nsum(results)") == 3
    assert await value(session, "def f(results):\n    return results[0]['a']\nf([{'a': 1}])") == 1
    run = await session.run("results['n']", inputs={"results": {"n": 5}})
    assert run.data == 5


async def test_only_the_last_twenty_are_rows_and_all_can_be_reached(session: Session) -> None:
    await session.run("{'first': 1}")
    await session.run(LARGE)
    for number in range(TAIL + 1):
        await session.run(str(number))
    assert [row.number for row in session.results()] == list(range(TAIL + 3, 3, -1))
    assert await value(session, "results.by_run(1).data['first']") == 1
    assert (await rejected(session, "results.by_run(1).data['frst']"))["suggestion"] == "first"
    assert await value(session, "n = int('2')\nlen(await results.by_run(n).load())") == 800
    assert (await rejected(session, f"results[{TAIL}]"))["rule"] == "unknown-result"


async def test_a_value_that_is_gone_is_omitted(session: Session, workspace: Workspace) -> None:
    await session.run(LARGE)
    workspace.store.blobs.path(session.results()[0].blob).unlink()
    again = await workspace.session("s1")
    assert [row.kind for row in again.results()] == ["omitted"]
    assert "no longer kept" in (await rejected(again, "await results[0].load()"))["message"]
    run = await again.run("rows = [row for row in results]\nawait rows[0].load()")
    assert error_of(run)["code"] == "result-unavailable"


async def test_an_error_is_bounded_and_says_what_was_cut(session: Session) -> None:
    await session.run("raise ValueError('ä' * 20_000)")
    error = session.results()[0].error
    assert error is not None
    assert len(json.dumps(error, ensure_ascii=False).encode()) <= ERROR_BYTES
    assert "more characters" in str(error["message"])


async def test_reading_results_is_no_call_and_costs_no_budget(session: Session) -> None:
    await session.run("{'n': 1}")
    run = await session.run("for i in range(50):\n    x = results[0].data['n']\n[len(df.calls()), x]")
    assert (run.data, run.calls) == ([0, 1], ())


async def test_changing_a_result_changes_nothing_that_is_kept(session: Session) -> None:
    await session.run("{'n': [1]}")
    assert await value(session, "results[0].data['n'].append(2)\nresults[0].data['n']") == [1, 2]
    assert await value(session, "results.by_run(1).data['n']") == [1]


async def test_values_that_json_cannot_hold_come_back(session: Session) -> None:
    source = (
        "import datetime, decimal\n"
        "[2**70, float('nan'), b'x', datetime.date(2026, 1, 2), decimal.Decimal('1.10'), '\\ud800', 1.0]"
    )
    await session.run(source)
    back = (
        "r = results[0].data\n"
        "[r[0] == 2**70, r[1] != r[1], r[2] == b'x', r[3].year, str(r[4]), r[5] == '\\ud800', type(r[6]).__name__]"
    )
    assert await value(session, back) == [True, True, True, 2026, "1.10", True, "float"]


async def test_monty_refuses_before_running(session: Session) -> None:
    await session.run("{'n': 1}")
    run = await session.run("x = 1\nresults[0].data['n']", engine="monty")
    assert (run.status, error_of(run)["code"], error_of(run)["line"]) == ("rejected", "engine-unsupported", 2)


async def test_a_whole_long_result_can_be_reached(session: Session) -> None:
    made = await session.run(
        'rows = [{"id": i, "name": "row %04d" % i, "note": "n" * 40} for i in range(800)]\n'
        'print(rows)\n{"total": len(rows), "rows": rows, "last": "END-MARK"}'
    )
    assert (len(made.stdout) > 60_000, made.stdout_cut) == (True, 0)
    back = "whole = await results[-1].load()\n[whole['total'], whole['last'], whole['rows'][799]['name']]"
    assert await value(session, back) == [800, "END-MARK", "row 0799"]
    assert session.result(1)["rows"][799] == {"id": 799, "name": "row 0799", "note": "n" * 40}
    with pytest.raises(AffidavitError, match="run-not-found"):
        session.result(9)


ACCEPT_AND_REJECT: list[tuple[str, list[str], list[str]]] = [
    (
        "[{'a': None}, {'a': [1, 2]}]",
        ["[x for d in results[-1].data for x in (d['a'] or [])]"],
        ["[len(d['a']) for d in results[-1].data]"],
    ),
    (
        "[{'id': 1}, {'id': 2, 'tag': 'x'}]",
        ["[d.get('tag') for d in results[-1].data]", "[d['tag'] for d in results[-1].data if 'tag' in d]"],
        ["[d['tag'].upper() for d in results[-1].data]"],
    ),
    (
        "{'on': True, 'n': 3}",
        ["'yes' if results[-1].data['on'] else 'no'"],
        ["results[-1].data['on'].upper()"],
    ),
    ("{'v': [1, 2.5]}", ["[round(x) for x in results[-1].data['v']]"], []),
    (
        "{'101': {'n': 'a'}, '205': {'n': 'b'}}",
        ["[results[-1].data[k]['n'] for k in results[-1].data]", "results[-1].data.get('999') is None"],
        ["[v['m'] for v in results[-1].data.values()]"],
    ),
]


@pytest.mark.parametrize(
    ("made", "accepted", "refused"), ACCEPT_AND_REJECT, ids=range(len(ACCEPT_AND_REJECT))
)
async def test_types_come_from_every_element(
    session: Session, made: str, accepted: list[str], refused: list[str]
) -> None:
    await value(session, made)
    for source in accepted:
        await value(session, source)
    for source in refused:
        await rejected(session, source)


def test_mentions_without_a_mention() -> None:
    assert mentions("x = 1", "def f(): ...") is None
    found = mentions("results[0]; results[-2]; results.by_run(number=4); results.last")
    assert found is not None
    assert (sorted(found.positions), sorted(found.numbers), found.last) == ([-2, 0], [4], True)
    assert not found.every


STATUSES = st.sampled_from(["succeeded", "failed", "rejected", "cancelled", "timed-out", "orphaned"])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(STATUSES, st.booleans()), max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_following_the_log_is_reducing_it(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, bool]], looks: list[int]
) -> None:
    """However often it is looked at in between, the view is the reduction; and looking appends nothing."""
    with Store.open(tmp_path_factory.mktemp("store")) as store:
        view = Results(store, "s")
        for number, (status, has_value) in enumerate(runs, 1):
            data: dict[str, Any] = {
                "number": number,
                "status": status,
                "has_value": has_value,
                "value": number,
            }
            data["error"] = {"code": "script-error", "message": "m", "hint": "", "line": 1}
            store.append(Event(kind="run-settled", session="s", run=f"r{number}", at=0.0, data=data))
            if number in looks:
                view.rows()
        events = store.events.of_session("s")
        assert view.rows() == Results(store, "s").rows() == tail_of(events, store)
        assert [row.number for row in view.rows()] == [
            number for number, (status, _) in enumerate(runs, 1) if status in ("succeeded", "failed")
        ][: -TAIL - 1 : -1]
        assert len(store.events.of_session("s")) == len(events)


def test_the_bound_of_inline_values_is_stated() -> None:
    assert INLINE_BYTES == 16 << 10


_INFERRED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "[{'a': None}, {'a': [1, 2]}]",
        (
            "[x for d in r for x in (d['a'] or [])]",
            "sum(len(d['a']) for d in r if d['a'] is not None)",
            "r.pop(0)\n[len(d['a']) for d in r]",
            "q = r\nq.pop(0)\n[len(d['a']) for d in r]",
            "r[0].update(a=[1])\n[len(d['a']) for d in r]",
            "first = r[0]\nfirst['a'] = [1]\n[len(d['a']) for d in r]",
        ),
        ("[len(d['a']) for d in r]", "[d['a'].upper() for d in r if d['a'] is not None]"),
    ),
    (
        "[{'id': 1}, {'id': 2, 'tag': 'x'}]",
        ("[d.get('tag') for d in r]", "[d['tag'] for d in r if 'tag' in d]", "[d['tag'] for d in r[1:]]"),
        ("[d['tag'].upper() for d in r]", "rows = r\nfor d in rows:\n    print(d['tag'])"),
    ),
    ("{'on': True, 'n': 3}", ("r['n'] + 1", "'yes' if r['on'] else 'no'"), ("r['on'].upper()",)),
    (
        "{'v': [1, 2.5]}",
        ("sum(r['v']) / 2", "r.get('v').pop()\n[x.bit_length() for x in r['v']]"),
        ("[x.bit_length() for x in r['v']]", "v = r['v']\n[x.bit_length() for x in v]"),
    ),
    (
        "{'101': {'n': 'a'}, '205': {'n': 'b'}, '309': {'n': 'c'}}",
        ("[r[k]['n'] for k in r]", "r.get('999')", "[v['n'] for v in r.values()]"),
        ("[v['m'] for v in r.values()]",),
    ),
    (
        "{'test-key': 1, 'with space': 2, 'class': 3, 'ok': 4}",
        ("r['test-key'] + r['with space'] + r['class'] + r['ok']", "[r[k] for k in r]"),
        ("r['test-kye']", "r['withspace']", "r['clas']"),
    ),
)
_WAYS = ("results.by_run(1).data", "results[-1].data", "await results.by_run(1).load()")


@pytest.mark.parametrize(("made", "right", "wrong"), _INFERRED, ids=range(len(_INFERRED)))
@pytest.mark.parametrize("way", _WAYS)
async def test_values_of_earlier_scripts_are_typed_by_all_that_is_in_them(
    session: Session, way: str, made: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    await session.run(made)
    for source in right:
        await value(session, f"r = {way}\n{source}")
    for source in wrong:
        found = await rejected(session, f"r = {way}\n{source}")
        assert found["line"] == 2 + source.count("\n")
