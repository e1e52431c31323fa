from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from affidavit.runtime.typecheck import Checker, Verdict
from tests.runtime.typecheck import host

Check = Callable[[str], Verdict]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="session")
def checker(runner: asyncio.Runner) -> Iterator[Checker]:
    """One warm checker for all tests that do not harm it."""
    made = Checker(timeout=30.0, start_timeout=60.0)
    runner.run(made.start())
    yield made
    runner.run(made.close())


@pytest.fixture(scope="session")
def stubs() -> str:
    return host.stubs()


@pytest.fixture(scope="session")
def check(runner: asyncio.Runner, checker: Checker, stubs: str) -> Check:
    """Check a script against the sample host, with two earlier results."""
    return lambda source: runner.run(checker.check(source, stubs=stubs, inputs_stub=host.RESULTS))
