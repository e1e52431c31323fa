"""The preamble: pinned code that every later script finds, checked when set and never in the way."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit import Workspace
from affidavit.errors import AffidavitError
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.memory.preamble import KINDS, Preamble, clashes, entries_of
from affidavit.runtime.program import PreambleEntry
from affidavit.runtime.session import Session
from affidavit.runtime.typecheck.verdict import Problem
from affidavit.store import Event, Store

HELPER = "import json\n\ndef tag(value: int) -> str:\n    return json.dumps({'n': value})\n"


def ok(n: int) -> int:
    """Returns n."""
    return n


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path / "workspace") as opened:
        opened.use(functions_namespace("t", [ok]))
        yield opened


@pytest.fixture
async def session(workspace: Workspace) -> Session:
    return await workspace.session("s1")


def force(workspace: Workspace, key: str, code: str) -> None:
    """Put an entry into the log past every check."""
    workspace.store.append(Event(kind="preamble-set", session="s1", at=0.0, data={"key": key, "code": code}))


async def refused(session: Session, code: str, key: str = "new") -> AffidavitError:
    before = session.get_preamble()
    with pytest.raises(AffidavitError) as caught:
        await session.set_preamble(key=key, code=code)
    assert caught.value.code == "preamble-invalid"
    assert session.get_preamble() == before
    return caught.value


async def test_scripts_find_what_was_pinned(session: Session, workspace: Workspace) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    run = await session.run("x = 20\ntag(x + 1)")
    assert (run.status, run.check, run.data) == ("succeeded", "clean", '{"n": 21}')
    again = await (await workspace.session("s1")).run("tag(1)")
    assert again.data == '{"n": 1}'


async def test_a_misspelt_helper_is_refused_with_a_suggestion(session: Session) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    run = await session.run("x = 1\ntagg(x)")
    assert (run.status, run.diagnostics[0]["line"], run.diagnostics[0]["suggestion"]) == (
        "rejected",
        2,
        "tag",
    )


async def test_lines_of_a_script_stay_its_own(session: Session) -> None:
    await session.set_preamble(key="helpers", code=HELPER * 1 + "\n" * 50)
    wrong = await session.run("\n\ndf.tool.t.okk(n=1)")
    assert wrong.diagnostics[0]["line"] == 3
    failed = await session.run("\n\n\n1/0")
    assert failed.error is not None
    assert failed.error["line"] == 4


async def test_an_error_in_a_helper_shows_both_places(session: Session) -> None:
    await session.set_preamble(key="parts", code="def half(x: int) -> float:\n    return x / 0\n")
    run = await session.run("y = 1\nhalf(y)")
    assert run.error is not None
    assert run.error["line"] == 2
    assert '"<preamble parts>", line 2' in str(run.error["traceback"])


async def test_a_helper_may_call_when_a_script_does(session: Session) -> None:
    await session.set_preamble(
        key="ask", code="async def twice(n: int) -> int:\n    return 2 * await df.tool.t.ok(n=n)\n"
    )
    run = await session.run("a = 1\nawait twice(21)")
    assert (run.data, [(call.operation, call.line) for call in run.calls]) == (42, [("tool.t.ok", 2)])


async def test_a_helper_may_read_results(session: Session) -> None:
    await session.run("{'n': 5}")
    await session.set_preamble(key="last", code="def newest():\n    return results[0].data\n")
    assert (await session.run("newest()['n']")).data == 5


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("def f(x):\n    return (x", 2, "never closed"),
        ("import json\n\n\ndef tag():\n    pass", 4, "bound by the entry 'helpers'"),
        ("def f(x: int) -> str:\n    return x", 2, "Return type"),
        ("x = 1\nimport no_such_module", 2, "no_such_module"),
        ("def f():\n    return undefined_name", 2, "undefined_name"),
        ("A = 1\nB = A / 0", 2, "ZeroDivisionError"),
        ("x = 1\ny = df.calls()", 2, "df"),
        ("df = {}", 1, "host's name"),
        ("def results():\n    return 1", 1, "host's name"),
        ("x = await df.tool.t.ok(n=1)", 1, "await"),
        ("x = '\0'", 1, "null"),
        ("raise SystemExit", 1, "SystemExit"),
    ],
)
async def test_what_an_entry_brings_with_it_is_refused(
    session: Session, code: str, line: int, words: str
) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    error = await refused(session, code)
    assert (error.details["key"], error.details["line"]) == ("new", line)
    assert words in error.message
    assert f"preamble new:{line}" in error.message
    run = await session.run("tag(1)")
    assert (run.status, run.check) == ("succeeded", "clean")


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 65, "../x", "a:1"])
async def test_keys_are_plain(session: Session, key: str) -> None:
    await refused(session, "x = 1", key=key)


async def test_an_entry_is_bounded(session: Session) -> None:
    error = await refused(session, "x = '" + "y" * (200 << 10) + "'")
    assert "characters" in error.message


async def test_setting_again_replaces_and_keeps_the_place(session: Session, workspace: Workspace) -> None:
    await session.set_preamble(key="a", code="A = 1")
    await session.set_preamble(key="b", code="B = A + 1")
    await session.set_preamble(key="a", code="A = 10")
    assert [entry.key for entry in session.get_preamble()] == ["a", "b"]
    assert (await session.run("B")).data == 11
    events = len(workspace.store.events.of_session("s1"))
    await session.set_preamble(key="a", code="A = 10")
    assert len(workspace.store.events.of_session("s1")) == events


async def test_the_same_import_in_two_entries_is_no_clash(session: Session) -> None:
    await session.set_preamble(key="a", code="import json\nA = json.dumps(1)")
    await session.set_preamble(key="b", code="import json\nB = json.dumps(2)")
    assert (await session.run("A + B")).data == "12"
    await refused(session, "import math as json")


BROKEN = [
    ("x = (1,\n", "preamble bad:1"),
    ("import no_such_module\n", "preamble bad:1"),
    ("def f(x: int) -> str:\n    return x\n", "preamble bad:2"),
    ("def tag(x):\n    return undefined_name\n", "preamble bad:2"),
    ("df = None\nresults = 3\n", "preamble bad:1"),
    ("y = 1\nx = y / 0\n", "preamble bad:2"),
    ("y = 1\nGOOD = 5\n", "preamble bad:2: `GOOD` is bound by the entry 'good'"),
    ("y = 1\nwhile y:\n    pass\n", "preamble bad:2"),
    ("import os\nos._exit(3)\n", "preamble bad:2"),
    ("import sys\nsys.exit('over')\n", "preamble bad:2"),
    ("x = 'a' * 10**10\n", "preamble bad:1"),
    ("x = df.tool.t.ok(n=1)\n", "preamble bad:1"),
]


@pytest.mark.parametrize(("code", "place"), BROKEN, ids=range(len(BROKEN)))
async def test_a_stale_entry_is_never_in_the_way(
    session: Session, workspace: Workspace, code: str, place: str
) -> None:
    await session.set_preamble(key="good", code="GOOD = 5")
    force(workspace, "bad", code)
    run = await session.run("x = await df.tool.t.ok(n=5)\nx + len(results) + 1")
    assert (run.status, run.data, run.check) == ("succeeded", 6, "unchecked"), run.error
    assert run.check_reason.startswith(place)
    assert not run.diagnostics
    await session.set_preamble(key="other", code="OTHER = 6")
    assert (await session.run("OTHER + GOOD")).data == 11
    syntax = await session.run("x = (1")
    assert (syntax.status, syntax.diagnostics[0]["rule"]) == ("rejected", "syntax")
    session.remove_preamble("bad")
    run = await session.run("OTHER + GOOD")
    assert (run.status, run.check) == ("succeeded", "clean")


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("x = 1\nwhile True:\n    x += 1", 2, "more than 1 s of CPU"),
        ("import os\n\nos._exit(1)", 3, "SystemExit"),
        ("import os, signal\nsignal.raise_signal(signal.SIGKILL)", 1, "process was ended"),
    ],
)
async def test_an_entry_that_does_not_end_well_is_refused(
    session: Session, code: str, line: int, words: str
) -> None:
    error = await refused(session, code)
    assert (error.details["key"], error.details["line"]) == ("new", line)
    assert words in error.message


async def test_an_entry_that_takes_the_sandbox_with_it_is_told_from_the_others(
    session: Session, workspace: Workspace
) -> None:
    await session.set_preamble(key="good", code="GOOD = 5")
    force(workspace, "bad", "import signal\nsignal.raise_signal(signal.SIGKILL)")
    await session.set_preamble(key="other", code="OTHER = GOOD + 1")
    error = await refused(session, "THIRD = OTHER + none_such")
    assert error.details["key"] == "new"
    session.remove_preamble("bad")
    assert (await session.run("OTHER")).data == 6


async def test_what_an_older_entry_loses_by_a_new_one_is_refused(session: Session) -> None:
    await session.set_preamble(key="a", code="def base() -> int:\n    return 1")
    await session.set_preamble(key="b", code="START = base()")
    error = await refused(session, "def other() -> int:\n    return 1", key="a")
    assert (error.details["key"], "base" in error.message) == ("b", True)


async def test_a_broken_entry_can_be_replaced(session: Session, workspace: Workspace) -> None:
    force(workspace, "bad", "x = (1,\n")
    await session.set_preamble(key="bad", code="BAD = 1")
    assert (await session.run("BAD")).data == 1


async def test_removing_what_is_not_there(session: Session) -> None:
    with pytest.raises(AffidavitError, match="preamble-not-found"):
        session.remove_preamble("nothing")


async def test_scripts_pin_code_for_later_scripts(session: Session) -> None:
    run = await session.run(
        "df.session.set_preamble(key='h', code='def add(a, b):\\n    return a + b')\n"
        "[entry['key'] for entry in df.session.get_preamble()]"
    )
    assert (run.status, run.data, run.calls) == ("succeeded", ["h"], ())
    assert (await session.run("add(1, 2)")).data == 3
    failed = await session.run(
        "try:\n    df.session.set_preamble(key='k', code='x = (')\nexcept df.Error as error:\n"
        "    shown = [error.code, error.details['line']]\nshown"
    )
    assert failed.data == ["preamble-invalid", 1]
    await session.run("df.session.remove_preamble(key='h')")
    assert session.get_preamble() == ()
    wrong = await session.run("df.session.set_preamble(kez='h', code='')")
    assert wrong.status == "rejected"


async def test_what_an_entry_prints_is_no_output_of_scripts(session: Session) -> None:
    await session.set_preamble(key="loud", code="print('loud')\nLOUD = 1")
    run = await session.run("print('mine')\nLOUD")
    assert (run.stdout, run.data) == ("mine\n", 1)


async def test_a_script_may_redefine_a_helper(session: Session) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    run = await session.run("def tag(value):\n    return value\ntag(3)")
    assert (run.status, run.data) == ("succeeded", 3)
    assert (await session.run("tag(3)")).data == '{"n": 3}'


async def test_monty_runs_what_needs_no_preamble(session: Session) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    assert (await session.run("1 + 1", engine="monty")).data == 2
    run = await session.run("x = 1\ntag(x)", engine="monty")
    assert run.error is not None
    assert (run.status, run.error["code"], run.error["line"]) == ("rejected", "engine-unsupported", 2)


async def test_checking_knows_the_preamble(session: Session) -> None:
    await session.set_preamble(key="helpers", code=HELPER)
    assert (await session.check("tag(1)")).status == "clean"
    assert (await session.check("tagg(1)")).status == "rejected"


async def _fine(_: Any) -> list[Problem]:
    return []


KEYS = st.sampled_from(["a", "b", "c", "d"])
CHANGES = st.lists(st.one_of(st.tuples(KEYS, st.integers(0, 3)), st.tuples(KEYS, st.none())), max_size=30)


@settings(max_examples=30, deadline=None)
@given(CHANGES, st.sets(st.integers(0, 30)))
def test_following_the_log_is_reducing_it(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int | None]], looks: set[int]
) -> None:
    """First-set order, upserts, removals of what is not there; reducing again appends nothing."""
    with Store.open(tmp_path_factory.mktemp("store")) as store:
        view = Preamble(store, "s", now=lambda: 0.0, judge=_fine)
        expected: dict[str, str] = {}
        for at, (key, number) in enumerate(changes):
            if number is None:
                data: dict[str, Any] = {"key": key}
                expected.pop(key, None)
            else:
                data = {"key": key, "code": f"X = {number}"}
                expected[key] = f"X = {number}"
            store.append(Event(kind=KINDS[number is None], session="s", at=0.0, data=data))
            if at in looks:
                view.entries()
        events = store.events.of_session("s")
        shown = [(entry.key, entry.code) for entry in view.entries()]
        assert shown == list(expected.items())
        assert tuple(view.entries()) == entries_of(events)
        assert len(store.events.of_session("s")) == len(events)


def test_clashes_name_the_candidate() -> None:
    first, second = PreambleEntry(key="a", code="x = 1\ny = 2"), PreambleEntry(key="b", code="z = 3\ny = 4")
    assert [(one.key, one.line) for one in clashes([first, second], "a")] == [("a", 2)]
    assert [(one.key, one.line) for one in clashes([first, second], "b")] == [("b", 2)]
    assert clashes([first], "a") == []
