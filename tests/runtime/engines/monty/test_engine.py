"""The engine's own life: starting, probing, values that Python has otherwise, and what is kept exact."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.errors import FailedError
from affidavit.runtime.engines.monty import MontyEngine
from affidavit.runtime.program import Limits, Program
from tests.conformance.world import TREE, Bench, World


@pytest.fixture(scope="module")
def monty() -> Iterator[Bench]:
    made = Bench(MontyEngine())
    yield made
    made.close()


def test_the_probe_tries_and_finds_isolation() -> None:
    findings = MontyEngine.probe()
    assert len(findings) >= 2
    assert [finding.name for finding in findings if not finding.ok] == []


def test_running_needs_starting() -> None:
    with pytest.raises(FailedError) as caught:
        asyncio.run(MontyEngine().run(Program(source="1", tree={}), World().handle))
    assert caught.value.code == "engine-unavailable"


def test_an_engine_can_be_started_again_and_closed_twice() -> None:
    async def lives() -> None:
        engine = MontyEngine()
        for _ in range(2):
            await engine.start()
            await engine.start()
            outcome = await engine.run(Program(source="1 + 1", tree={}), World().handle)
            assert outcome.value == b"2"
            await engine.close()
            await engine.close()

    asyncio.run(lives())


_ENDS = """
import asyncio
from affidavit.runtime.engines.monty import MontyEngine
from affidavit.runtime.program import Program

async def nothing(call):
    raise AssertionError

async def main():
    engine = MontyEngine()
    await engine.start()
    for _ in range(3):
        await engine.run(Program(source="1 + 1", tree={}), nothing)
    await engine.close()

asyncio.run(main())
print("ended")
"""


def test_a_host_that_ends_right_after_closing_does_not_abort() -> None:
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", _ENDS], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


def test_a_refused_script_makes_no_call_and_says_what_to_do(monty: Bench) -> None:
    world = World()
    outcome = monty.run("await df.tool.math.ten(1)\ndef f():\n    yield 1", world)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.line) == ("engine-unsupported", 3)
    assert "--engine cpython" in outcome.error.hint
    assert world.calls == []


def test_time_spent_is_told(monty: Bench) -> None:
    assert monty.run("for n in range(300_000):\n    pass").cpu_seconds > 0


def test_scripts_may_rebind_any_builtin(monty: Bench) -> None:
    source = (
        "type, len, str, list, dict, isinstance, getattr, repr = 1, 2, 3, 4, 5, 6, 7, 8\n"
        "page = await df.db.app.modules.page(limit=1)\n[type, len, page.rows, page.page.returned]"
    )
    assert monty.value(source) == [1, 2, [{"n": 0, "name": "row 0"}], 1]


def test_df_may_be_rebound(monty: Bench) -> None:
    assert monty.value("def f(df):\n    return df['x']\nf({'x': 3})") == 3
    assert monty.value("df = {'page': 1}\ndf['page']") == 1


def test_two_failures_with_one_text_and_other_fields_are_not_mixed_up(monty: Bench) -> None:
    # Both say "tool-failed: same (try again)"; the handler's details are equal, so their fields can be told.
    source = (
        "import asyncio\nasync def ask():\n    try:\n        await df.tool.math.fail('same')\n"
        "    except df.Error as error:\n        return error.details\nawait asyncio.gather(ask(), ask())"
    )
    assert monty.value(source) == [{"place": 7}, {"place": 7}]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.floats(allow_nan=False), digits=st.integers(-4, 12))
def test_round_is_correctly_rounded(monty: Bench, number: float, digits: int) -> None:
    found = monty.value("round(number, digits)", World(), inputs={"number": number, "digits": digits})
    expected = round(number, digits) if math.isfinite(number) else number
    assert repr(found) == repr(expected)


_PATTERNS = [
    r"\w+",
    r"\W+",
    r"\b\w",
    r"\s",
    r"[\w-]+",
    r"[^\W\d_]+",
    r"(\w)(\s)?",
    r"\S+$",
    r"^\w",
    r"[\s\d]+",
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=st.sampled_from(_PATTERNS),
    text=st.text(st.sampled_from("aZ_09 \t\n\x1c\x85é½²٣e\u0301-.日ß"), max_size=10),
)
def test_regular_expressions_find_what_python_finds(monty: Bench, pattern: str, text: str) -> None:
    source = f"import re\n[[m.group(), m.start(), m.end()] for m in re.finditer({pattern!r}, text)]"
    expected = [[m.group(), m.start(), m.end()] for m in re.finditer(pattern, text)]
    assert monty.value(source, World(), inputs={"text": text}) == expected


@pytest.mark.parametrize(
    "source", ["import sys\nsys.version", "import time\ntime.process_time()", "import os\nos.urandom(1)"]
)
def test_nothing_shows_the_host(monty: Bench, source: str) -> None:
    outcome = monty.run(source)
    assert outcome.error is not None
    assert outcome.error.code == "engine-unsupported"


def test_the_environment_is_empty(monty: Bench) -> None:
    assert monty.value("import os\n[os.getenv('PATH'), os.getenv('PATH', 'none'), os.environ.get('PATH')]") == [
        None, "none", None,
    ]  # fmt: skip


def test_many_runs_share_few_processes(monty: Bench) -> None:
    async def many() -> set[bytes | None]:
        program = Program(source="1 + 1", tree=TREE, limits=Limits(wall_seconds=60.0))
        outcomes = await asyncio.gather(*[monty.engine.run(program, World().handle) for _ in range(40)])
        return {outcome.value for outcome in outcomes}

    assert monty.complete(many()) == {b"2"}
